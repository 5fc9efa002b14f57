"""What happens while compiling and must not be mistaken for what happens at run time.

Iterators, exceptions and their handlers, context managers, changes of what outlives the call.
"""

# mypy: ignore-errors
# ruff: noqa: B007, B023, C416, C417, E722, F841, RUF015, RUF100

from contextlib import contextmanager, suppress

from basedsl.conformance.cases import program, program_of, refused

ADVANCED = "made before, is advanced inside staged control flow"
NOT_TAKEN = "on a path that may not be taken at run time"

# Python's exceptions on paths that may not run ----------------------------------------------------


@refused("ZeroDivisionError: integer division or modulo by zero. It is raised while", "int")
def static_division_in_a_branch(n):
    x = 0
    if n > 100:
        x = 1 // 0  # error
    return x


@refused("IndexError: list index out of range. It is raised while compiling", "count")
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


@refused("ValueError: no such k. It is raised while compiling", "int")
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


# What outlives the call ---------------------------------------------------------------------------


@program_of("int", message="the nonlocal variable 'kept' cannot hold a dynamic value")
def dynamic_nonlocal_write(jit):
    kept = 0

    def main(n):
        nonlocal kept
        kept = n  # error
        return n

    return main


@program_of("int", message="the nonlocal variable 'kept' cannot hold a dynamic value")
def dynamic_nonlocal_update(jit):
    kept = 0

    def main(n):
        nonlocal kept
        kept += n  # error
        return n

    return main


@program_of("int")
def static_nonlocal_write(jit):
    kept = 0

    def main(n):
        nonlocal kept
        kept = 5
        kept += 1
        return n + kept

    return main


@program("int")
def nonlocal_inside_the_function(n):
    total = 0

    def add():
        nonlocal total
        total = total + n

    add()
    add()
    return total


def _fresh(x, held=None):
    held = [] if held is None else held
    held.append(x)
    return len(held)


@program("int")
def default_arguments_of_a_function_inside(n):
    def total(x, held=[0]):  # noqa: B006
        held[0] = held[0] + x
        return held[0]

    r = total(n) + total(n)
    for i in range(3):
        r += total(i)
    return r, _fresh(n)


@program("count")
def lambdas_made_in_a_loop(n):
    r = 0
    f = lambda x: x  # noqa: E731
    for i in range(n):
        f = lambda x: x + i  # noqa: E731
        r += f(1)
    return r


@program("int")
def closures_share_the_last_value(n):
    late = [lambda: n + i for i in (1, 2, 3)]
    early = [lambda i=i: n + i for i in (1, 2, 3)]
    return late[0](), early[0](), late[2]()


@program("", inputs=[(0,), (2,)])
def aliases_of_lists_in_a_loop_that_may_not_run(n):
    a = [1, 2]
    b = a
    for i in range(n):
        b[0] = i + 5
        b = a
    a[1] = 9
    return b[0], b[1], a[0]


@refused("refers to different", inputs=[(0,)])
def rebinding_to_an_alias_in_a_loop(n):
    a, b = [1, 2], [3, 4]
    for i in range(n):
        b = a  # error
    a[0] = 50
    return b[0]


@program("count")
def comprehension_variables_are_their_own(n):
    v = 5
    r = 0
    for i in range(n):
        r += v
        r += [v for v in (1, 2)][0]
        r += sum({v: v for v in (3, 4)}.values())
    return r + v


@program("int")
def comprehension_variables_in_a_branch(n):
    v = 0
    if n not in (1, 3):
        return 0
    for i, j in enumerate([2, n, n]):
        m = v + i
    [0 for u, v in ((1, 2),)]
    return m


MAYBE = "If the loop does not run it still is the old one, which has another name too"


@refused(MAYBE, inputs=[(0,)])
def changing_what_a_loop_may_have_left_alone(n):
    e = d = [1, 2]
    for i in range(n):
        d = [i, i]
    d[0] = 50
    return e[0]


@refused(MAYBE, inputs=[(0,)])
def changing_the_other_name_after_a_loop(n):
    d = [1, 2]
    held = [d]
    while n > 0:
        d = [n, n]
        n -= 1
    held[0][0] = 50
    return d[0]


@refused(MAYBE, inputs=[(0,)])
def changing_an_argument_that_a_loop_may_have_replaced(n):
    def inner(d):
        for i in range(n):
            d = [i, i]
        d[0] = 9
        return d

    x = [1, 2]
    y = inner(x)
    return x[0], y[0]


@refused("which another name for it is bound anew in", inputs=[(0,)])
def changing_under_one_name_and_binding_another(n):
    e = d = [1, 2]
    total = 0
    for i in range(n):
        e[0] += 1
        total += d[0]
        d = [i, i]
    return total


@program("", inputs=[(0,), (2,)])
def reading_what_a_loop_may_have_left_alone(n):
    e = d = [1, 2]
    for i in range(n):
        d = [i, i]
    return e[0] + d[0], d[1]


@program("", inputs=[(0,), (2,), (5,)])
def changing_what_only_one_name_has(n):
    d = [0, 0]
    for i in range(n):
        d = [d[0] + i, i]
    d[0] += 1
    total = 0
    for k in range(n):
        inner = [k, 0]
        for i in range(n):
            inner = [inner[0] + i, k]
        inner[1] += 1
        total += inner[0] + inner[1]
    return d, total


# What classes, functions, modules and global variables hold ---------------------------------------

ONCE = "inside staged control flow, which would happen once, while compiling"
STATE = 0


class Shared:
    count = 0

    @classmethod
    def add(cls, x):
        cls.count = cls.count + x


@refused("the global variable 'STATE' is bound " + ONCE, "int")
def static_global_write_in_a_branch(n):
    global STATE
    if n > 0:
        STATE = 4  # error
    return n


@program_of("int", message="the nonlocal variable 'kept' is bound " + ONCE)
def static_nonlocal_write_in_a_loop(jit):
    kept = 0

    def main(n):
        nonlocal kept
        for i in range(n):
            kept = 5  # error
        return n

    return main


@refused("'Shared.count' is set " + ONCE, "int")
def class_attribute_in_a_branch(n):
    if n > 0:  # error
        Shared.count = Shared.count + 5
    return n


@refused("'Shared.count' is set " + ONCE, "count")
def class_attribute_by_a_method_in_a_loop(n):
    for i in range(n):  # error
        Shared.add(1)
    return n


@refused("'Local.k' is set " + ONCE, "count")
def attribute_of_a_local_class_in_a_loop(n):
    class Local:
        k = 0

    for i in range(n):  # error
        Local.k = Local.k + i
    return Local.k


@refused("'f.calls' is set " + ONCE, "count")
def attribute_of_a_function_in_a_loop(n):
    def f():
        f.calls = f.calls + 1

    f.calls = 0
    for i in range(n):  # error
        f()
    return f.calls


@program("int")
def static_class_attribute(n):
    class Local:
        k = 1

    for i in (1, 2, 3):
        Local.k = Local.k + i
    Local.k = Local.k + n
    return Local.k
