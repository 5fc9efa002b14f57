"""Messages of assertions, exceptions of one's own, comparisons of ints with floats.

PYTEST_DONT_REWRITE: the messages of assertions are compared.
"""

# mypy: ignore-errors
# ruff: noqa

import math

from basedsl.conformance.cases import program, refused


@program("int ints", tags="raise")
def assert_message_stores(n, a):
    def note():
        a[0] = 77
        return "bad"

    assert n > 0, note()
    return n


class Box:
    def __init__(self):
        self.n = 0

    def bump(self):
        self.n += 1
        return "bumped"


@program("int", tags="raise")
def assert_message_bumps(n):
    b = Box()
    assert n > 0, b.bump()
    return b.n


@program("int", tags="raise")
def assert_message_walrus(n):
    m = 5
    assert n > 0, (m := 9)
    return m


@program("int", tags="raise")
def assert_plain(n):
    assert n > 0, "n is small"
    return n


@program("int", tags="raise")
def assert_static_message(n):
    assert n > -3, "n is " + "small"
    assert n > 0, str("x") * 2
    return n


@program("count", tags="raise")
def assert_in_loop(n):
    b = Box()
    for i in range(n):
        assert i < 5, b.bump()
    return b.n


@program("int", tags="raise")
def assert_divides(n):
    assert n != 0, 10 // n
    return n


class CodeError(Exception):
    def __init__(self, code):
        super().__init__(f"code {code}")
        self.code = code


class Two(ValueError):
    def __init__(self, a, b):
        super().__init__(f"{a} and {b}")
        self.a, self.b = a, b


class Plain(KeyError):
    pass


class Stringed(Exception):
    def __str__(self):
        return "<" + ",".join(map(str, self.args)) + ">"


@program("int", tags="raise")
def own_error(n):
    if n > 2:
        raise CodeError(7)
    return n


@program("int", tags="raise")
def own_two(n):
    if n > 2:
        raise Two(1, "x")
    return n


@program("int", tags="raise")
def own_keyerror(n):
    if n > 2:
        raise Plain("k")
    return n


@program("int", tags="raise")
def own_stringed(n):
    if n > 2:
        raise Stringed(1, 2)
    return n


@program("int", tags="raise")
def own_class(n):
    if n > 2:
        raise Plain
    return n


@program("int", tags="raise")
def os_error(n):
    if n > 2:
        raise OSError(2, "no such file")
    return n


@program("int", tags="raise")
def stop(n):
    if n > 2:
        raise StopIteration(3)
    return n


@program("int", tags="raise")
def not_implemented(n):
    if n > 2:
        raise NotImplementedError
    return n


@program("int", tags="raise")
def two_args(n):
    if n > 2:
        raise ValueError("a", 3)
    return n


@program(
    "",
    inputs=[
        (2**24 + 1, 2.0**24),
        (2**24, 2.0**24),
        (2**24 + 1, 2.0**24 + 2),
        (-(2**24 + 1), -(2.0**24)),
        (2**30 + 1, 2.0**30),
        (2**31 - 1, 2.0**31),
        (-(2**31), -(2.0**31)),
        (5, 5.5),
        (5, 5.0),
        (0, -0.0),
        (1, math.nan),
        (1, math.inf),
        (1, -math.inf),
        (2**31 - 1, 2.0**31 - 128),
        (2**31 - 1, 1e30),
    ],
)
def compare_exact32(n, x):
    return (
        (n == x),
        (n != x),
        (n < x),
        (n <= x),
        (n > x),
        (n >= x),
        (x == n),
        (x < n),
        (x <= n),
        (x > n),
        (x >= n),
    )


@program("int")
def compare_literal(n):
    return (
        n < 2.5,
        n == 2.5,
        n == 3.0,
        n > 1e300,
        n <= -0.5,
        n != 3.0,
        2.5 < n,
        1e30 > n,
        n < math.inf,
        n > -math.inf,
        n == math.nan,
        n != math.nan,
        n >= -2.0,
    )


@program("float")
def compare_float_literal(x):
    return (
        x < 3,
        x == 16777217,
        x <= 16777217,
        x > 2**70,
        x != 2**70,
        x > -(2**200),
        3 >= x,
        x == 1,
        x < 10**400,
    )


@program("", inputs=[(16777216.0,), (16777218.0,), (16777220.0,)])
def compare_float_literal2(x):
    return (
        x < 16777217,
        x == 16777217,
        x <= 16777217,
        x > 16777217,
        x >= 16777217,
        x != 16777217,
        x < 16777219,
        x <= 16777219,
        x > 16777219,
        16777219 > x,
    )


@program("int float")
def in_mixed(n, x):
    return n in (1.0, 2.5, 3), x in (1, 2), min(n, 2.5) < 3, max(n, x) >= n
