"""Actions while compiling that must not be mistaken for actions at run time.

Iterators, exceptions and their handlers, context managers.
"""

# mypy: ignore-errors
# ruff: noqa: B007, B023, C416, C417, E722, F841, RUF015, RUF100

from contextlib import contextmanager, suppress

from basedsl.conformance.cases import program, program_of, refused

ADVANCED = "made before, is advanced inside staged control flow"
NOT_TAKEN = "on a path that may not be taken at run time"

# Python's exceptions on paths that may not run ----------------------------------------------------


@refused("ZeroDivisionError: integer division or modulo by zero (while", "int")
def static_division_in_a_branch(n):
    x = 0
    if n > 100:
        x = 1 // 0  # error
    return x


@refused("IndexError: list index out of range (while compiling,", "count")
def static_index_in_a_loop(n):
    r = 0
    for i in range(n):
        r += [1, 2][3]  # error
    return r


@refused(NOT_TAKEN, "int")
def static_error_in_an_operand(n):
    return n > 100 and 1 // 0  # error


@refused(NOT_TAKEN, "int")
def static_error_in_a_conditional_expression(n):
    return {"a": 1}["b"] if n > 100 else n  # error


@refused("ValueError: no such k (while compiling,", "int")
def exception_of_a_helper_in_a_branch(n):
    def helper(k):
        raise ValueError("no such k")

    if n > 100:
        helper(int("3"))
    return n


@refused(NOT_TAKEN, "int")
def static_error_in_a_while(n):
    while n > 100:
        n += int("x")  # error
    return n


@program("", tags="raise")
def static_error_that_python_meets_too():
    r = 0
    for i in range(3):
        r += [1, 2][5]
    return r


@program("int")
def static_error_on_a_path_that_is_static_too(n):
    debug = False
    return 1 // 0 if debug else n


# Handlers -----------------------------------------------------------------------------------------


@refused("a dynamic value is computed inside `try`", "int")
def error_caught_by_except(n):
    try:
        k = n + 1  # error
    except Exception:
        k = 0
    return k


@refused("a dynamic value is computed inside `try`", "int")
def error_caught_by_a_bare_except(n):
    k = 5
    try:
        k = n * 2  # error
    except:
        pass
    return k


@refused("a dynamic value is computed inside `try`", "int")
def dynamic_raise_in_try(n):
    try:
        if n > 0:  # error
            raise ValueError("positive")
    except ValueError:
        return 1
    return 0


@refused("a dynamic value is computed inside `try`", "int")
def dynamic_return_in_try_finally(n):
    r = 0
    try:
        if n > 0:  # error
            return 1
    finally:
        r += 10
    return r


@refused("is used as a Python condition", "int")
def error_caught_in_an_undecorated_helper(n):
    return _sign(n)


def _sign(x):
    try:
        return 1 if x > 0 else -1
    except Exception:
        return 0


class Swallow:
    """A context manager that lets no exception out."""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return True


@refused("a dynamic value is computed inside `with`", "int")
def error_swallowed_by_with(n):
    r = 0
    with Swallow():
        r = 1
        if n > 0:  # error
            raise ValueError("positive")
        r = 2
    return r


@refused("a dynamic value is computed inside `with`", "int")
def error_suppressed(n):
    r = 0
    with suppress(ArithmeticError, ValueError):
        r = 1 // n  # error
    return r


@program("int")
def static_exceptions_are_pythons(n):
    with Swallow():
        n = n if n is None else 3
        raise ValueError("static")
    with suppress(KeyError):
        {}["a"]
    try:
        [][1]
    except IndexError as error:
        k = len(str(error))
    else:
        k = -1
    finally:
        j = 2
    return n, k, j


@program("int")
def static_return_in_try(n):
    try:
        return int("12")
    finally:
        n = 0


@contextmanager
def noted(seen, what):
    seen.append(what)
    yield len(seen)
    seen.append(f"end of {what}")


@program("int")
def managers_of_ones_own(n):
    seen = []
    with noted(seen, "a") as first, noted(seen, "b") as second:
        k = first * 10 + second
    return n + k, len(seen)


# Iterators ----------------------------------------------------------------------------------------


@refused(ADVANCED, "count")
def next_of_an_outer_iterator_in_a_loop(n):
    items = iter([1, 2, 3])
    r = 0
    for i in range(n):
        r += next(items)
    return r


@refused(ADVANCED, "int")
def outer_generator_in_a_branch(n):
    squares = (x * x for x in [1, 2, 3])
    r = 0
    if n > 0:
        r = next(squares)
    return r


@refused(ADVANCED, "int")
def outer_iterator_in_a_container(n):
    held = {"items": iter((1, 2, 3))}
    return sum(held["items"]) if n > 0 else 0


@refused(ADVANCED, "count")
def outer_zip_in_a_staged_loop(n):
    pairs = zip((1, 2, 3), (4, 5, 6), strict=True)
    r = 0
    for i in range(n):
        for a, b in pairs:
            if a > n:
                break
            r += a * b
    return r


@refused(ADVANCED, "int")
def outer_iterator_in_an_endless_loop(n):
    items = iter([5, 4, 3, 2, 1])
    while True:
        x = next(items)
        if x < n:
            break
    return x


ITEMS = iter([1, 2, 3])


@refused(ADVANCED, "int")
def global_iterator_in_a_branch(n):
    r = 0
    if n > 0:
        r = next(ITEMS)
    return r


@program("count")
def iterators_where_they_are_made(n):
    items = iter([1, 2, n])
    r = next(items)
    for x in items:
        r += x
    for i in range(n):
        inner = iter((i, 2))
        r += next(inner) + sum(inner)
    for x in map(lambda k: k * n, filter(lambda k: k > 1, [1, 2, 3])):
        r += x
    return r


@program("count")
def generators_see_the_loop_variable(n):
    r = 0
    for i in range(n):
        r += sum(i * k for k in (1, 2, 3))
        r += max([i - k for k in (1, 4)])
    return r


# Constructs that cannot be compiled ---------------------------------------------------------------


@refused("generators cannot be compiled", "int")
def yield_in_a_function(n):
    yield n  # error


@refused("'async def' cannot be compiled", "int")
def async_function_inside(n):
    async def later():  # error
        return n

    return later


@program_of("int", message="async function 'later' cannot be compiled")
def async_function(jit):
    async def later(n):
        return n

    return later


@refused("calls itself without end while it is compiled", "int")
def recursion_without_end(n):
    def down(k):
        return down(k + 1)  # error

    return down(0)


@program("int")
def recursion_with_a_static_end(n):
    def down(k):
        return down(k - 1) + n if k > 0 else 0

    return down(60)
