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


class OutOfRange(Exception):
    """A user's own exception."""


@program("int", tags="raise")
def raise_users_own(n):
    if n < 0:
        raise OutOfRange("below zero")
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
