# mypy: ignore-errors
"""raise and assert over conditions of the run time; statements that stay static.

PYTEST_DONT_REWRITE: the assertions here are Python's own.
"""

from basedsl.conformance.cases import program, program_of, refused


@program("int", tags="raise")
def assert_with_message(n):
    assert n < 5, "n is too large"
    return n


@program("int", tags="raise")
def assert_without_message(n):
    assert n >= -1
    return n * 2


@program("int", tags="raise")
def raise_value_error(n):
    if n > 3:
        raise ValueError("more than three")
    return n


@program("int", tags="raise")
def raise_a_class(n):
    if n == 0:
        raise ZeroDivisionError
    return 10 // n


class NotAllowed(Exception):
    """A user's own exception."""


@program("int", tags="raise")
def raise_users_own(n):
    if n < 0:
        raise NotAllowed("below zero")
    return n


@program("ints int", tags="raise")
def raise_in_a_loop(a, n):
    total = 0
    for i in range(6):
        if a[i] == n:
            raise KeyError("found it")
        total += a[i]
    return total


@program("int int", tags="raise")
def the_first_failure_counts(n, m):
    assert n < 6, "first"
    assert m < 6, "second"
    return n + m


@program("int", tags="raise")
def raise_from(n):
    if n > 5:
        raise RuntimeError("outer") from ValueError("inner")
    return n


class Code(Exception):
    """One with several arguments."""

    def __init__(self, code, text):
        super().__init__(code, text)
        self.code = code


@program("int", tags="raise")
def raise_with_several_arguments(n):
    if n > 2:
        raise Code(3, "text")
    return n


@program("int", tags="raise")
def raise_on_both_paths(n):
    if n > 3:
        raise ValueError("large")
    else:
        raise KeyError("small")


@program("int", tags="raise")
def raise_for_what_is_left(n):
    if n == 0:
        return 1
    elif n == 1:
        return 2
    else:
        raise NotImplementedError("only 0 and 1")


@program("int", tags="raise")
def raise_in_a_nested_function(n):
    def checked(x):
        if x > 3:
            raise ValueError("too large")
        return x

    return checked(n) + checked(n + 1)


@program("count", tags="raise")
def raise_in_while_true(n):
    k = 0
    while True:
        k += 1
        if k > n:
            raise StopIteration("ended")
        if k > 5:
            break
    return k


@program("int", tags="raise")
def static_assert_in_a_branch(n):
    k = 3
    if n > 2:
        assert k < 0, "not here"
    return n


@program("int", tags="raise")
def static_raise_after_a_handler(n):
    try:
        raise ValueError("static")
    except ValueError as error:
        k = len(str(error))
    if n > 2:
        raise KeyError(f"n is large, {k}")
    return n


@program("int", tags="raise")
def reraised_while_compiling(n):
    try:
        [][1]
    except IndexError:
        raise
    return n


@program("int", tags="raise")
def assert_of_a_chain(n):
    assert 0 <= n < 5 and n != 2, "out of range"
    return n


@program("int")
def static_try(n):
    try:
        k = int("12")
    except ValueError:
        k = 0
    return n + k


@program("count ints", tags="raise")
def index_out_of_range(i, a):
    return a[i]


@program("int int", tags="raise")
def division_by_zero(a, b):
    return a // b


def positive(x):
    if x > 0:  # helper
        return True
    return False


@program_of("int", message="decorate")
def undecorated_helper(jit):
    def main(n):
        return 1 if positive(n) else 0

    return main


@program_of("int")
def decorated_helper(jit):
    @jit
    def sign(x):
        if x > 0:
            return 1
        elif x < 0:
            return -1
        return 0

    def main(n):
        total = 0
        for i in range(3):
            total += sign(n - i)
        return total

    return main


@refused("`try`", "int")
def dynamic_value_in_try(n):
    try:
        k = n + 1
    except ValueError:
        k = 0
    return k
