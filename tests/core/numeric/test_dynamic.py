"""Compiled arithmetic against the same arithmetic on concrete numbers, bit for bit."""

from __future__ import annotations

import itertools
import math
import operator
import random
from collections.abc import Callable
from typing import Any

import pytest

from basedsl.errors import DSLTypeError
from basedsl.numeric import (
    TYPES,
    Boolean,
    Float32,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Numeric,
    Uint8,
    Uint32,
    Uint64,
    promote,
)

ARITHMETIC = [T for T in TYPES.values() if T.format.arithmetic]
INTEGERS = [T for T in ARITHMETIC if T.is_integer and T is not Boolean]
FLOATS = [T for T in ARITHMETIC if T.is_float]

COMPARISONS = [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]
RING = [operator.add, operator.sub, operator.mul]
DIVISION = [operator.floordiv, operator.mod]
BITS = [operator.and_, operator.or_, operator.xor]
SHIFTS = [operator.lshift, operator.rshift]


def same(x: Any, y: Any) -> bool:
    if isinstance(x, float) and math.isnan(x):
        return math.isnan(y)
    return bool(x == y) and math.copysign(1, x) == math.copysign(1, y)


def samples(T: type[Numeric], count: int, rng: random.Random) -> list[Any]:
    """Edge values and random ones of all magnitudes."""
    if T is Boolean:
        return [False, True] * (count // 2)
    if T.is_integer:
        edges = [n for n in (0, 1, 2, 3, 7, -1, -2, -7, T.min, T.max, T.max - 1) if T.min <= n]
        wide = [rng.randint(int(T.min), int(T.max)) >> rng.randrange(T.width) for _ in range(count)]
        return [int(rng.choice(edges)) if rng.random() < 0.4 else n for n in wide]
    edges_ = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0, math.inf, -math.inf, math.nan, 1e-30]
    edges_.append(min(1e30, float(T.max)))
    wide_ = [
        rng.choice((-1, 1)) * math.ldexp(rng.random(), rng.randint(-12, 12)) for _ in range(count)
    ]
    chosen = [rng.choice(edges_) if rng.random() < 0.4 else x for x in wide_]
    return [Float64.concrete(x).to(T).value for x in chosen]


def agree(
    p: Any, name: str, fn: Callable[..., Any], types: list[type[Numeric]], rows: list[list[Any]]
) -> None:
    """The compiled `fn` of `rows` is `fn` of the same concrete numbers."""
    for row, native in zip(rows, p.run(name, rows), strict=True):
        try:
            expected = fn(*(T.concrete(x) for T, x in zip(types, row, strict=True)))
        except (ZeroDivisionError, ValueError):
            continue  # Python refuses these operands
        for i, (x, y) in enumerate(zip(native, expected, strict=True)):
            assert p.results[name][i] is type(y)
            assert same(x, y.value), f"{fn.__name__}{tuple(row)}[{i}]: {x}, not {y!r}"


@pytest.mark.parametrize("T", INTEGERS, ids=repr)
def test_integer_operators(program: Callable[..., Any], T: type[Numeric]) -> None:
    def operators(x: Numeric, y: Numeric) -> tuple[Any, ...]:
        binary = [op(x, y) for op in (*RING, *BITS, *COMPARISONS)]
        return (*binary, -x, ~x, abs(x), +x)

    def division(x: Numeric, y: Numeric) -> tuple[Any, ...]:
        # Where floats are not checked, `/` rounds large integers first (numeric.quotient).
        return (x // y, x % y, (x & 127) / ((y & 63) | 1), *divmod(x, y))

    def shifts(x: Numeric, y: Numeric) -> tuple[Any, ...]:
        return x << y, x >> y

    def literals(x: Numeric, y: Numeric) -> tuple[Any, ...]:
        by = [n for n in (1, 2, 3, 7, 8, 100, -1, -2, -3, -128, T.min, T.max) if T.min <= n and n]
        results: list[Any] = []
        for n in by:
            results += [x // n, x % n, x + n, n - x, x * n, x < n, n <= x]
        for count in (0, 1, 3, T.width - 1, T.width, T.width + 5):
            results += [x << count, x >> count]
        for exponent in range(6):
            results += [x**exponent]
        return tuple(results)

    def powers(x: Numeric, y: Numeric) -> tuple[Any, ...]:
        return x ** (y & 7), 3 ** (y & 7), 2 ** (y & 7)

    rng = random.Random(T.__name__)
    rows = [list(row) for row in zip(samples(T, 150, rng), samples(T, 150, rng), strict=True)]
    functions = (operators, division, shifts, literals, powers)
    with program() as p:
        for fn in functions:
            p.add(fn.__name__, fn, T, T)
        p.compile()
        for fn in functions:
            agree(p, fn.__name__, fn, [T, T], rows)


@pytest.mark.parametrize("T", FLOATS, ids=repr)
def test_float_operators(program: Callable[..., Any], T: type[Numeric]) -> None:
    def operators(x: Numeric, y: Numeric) -> tuple[Any, ...]:
        binary = [op(x, y) for op in (*RING, *DIVISION, operator.truediv, *COMPARISONS)]
        return (*binary, -x, abs(x), +x, *divmod(x, y))

    def literals(x: Numeric, y: Numeric) -> tuple[Any, ...]:
        return x + 1, 2 - x, x * 0.5, x / 3, 1 / x, x // 2, x % 3, x % -3.0, x < 1, x == 0, x**2

    rng = random.Random(T.__name__)
    rows = [list(row) for row in zip(samples(T, 300, rng), samples(T, 300, rng), strict=True)]
    with program() as p:
        p.add("operators", operators, T, T).add("literals", literals, T, T).compile()
        agree(p, "operators", operators, [T, T], rows)
        agree(p, "literals", literals, [T, T], rows)


@pytest.mark.parametrize("T", FLOATS, ids=repr)
def test_float_powers(program: Callable[..., Any], T: type[Numeric]) -> None:
    rows = [[x, y] for x in (0.25, 1.0, 1.5, 3.0) for y in (-2.5, -1.0, 0.0, 0.5, 3.0)]
    with program() as p:
        p.add("f", lambda x, y: (x**y, x**3, 2**y), T, T).compile()
        for (x, y), powers in zip(rows, p.run("f", rows), strict=True):
            for power, exact in zip(powers, (x**y, x**3, 2**y), strict=True):
                assert power == pytest.approx(exact, rel=2.0 ** {16: -7, 32: -22, 64: -51}[T.width])


@pytest.mark.parametrize("A", ARITHMETIC, ids=repr)
def test_mixed_types(program: Callable[..., Any], A: type[Numeric]) -> None:
    rng = random.Random(A.__name__)

    def f(x: Numeric, y: Numeric) -> tuple[Any, ...]:
        compared = tuple(op(x, y) for op in COMPARISONS)
        try:
            promote(type(x), type(y))
        except DSLTypeError:
            with pytest.raises(DSLTypeError, match="no type holds both"):
                x + y
            return compared
        return (*compared, x + y, y - x, x * y)

    rows = {}
    with program() as p:
        for B in ARITHMETIC:
            rows[B] = [list(r) for r in zip(samples(A, 40, rng), samples(B, 40, rng), strict=True)]
            p.add(B.__name__, f, A, B)
        p.compile()
        for B in ARITHMETIC:
            agree(p, B.__name__, f, [A, B], rows[B])


@pytest.mark.parametrize("A", [Int8, Uint8, Int64], ids=repr)
def test_shifts_by_other_types(program: Callable[..., Any], A: type[Numeric]) -> None:
    counts = [Int8, Uint8, Int16, Uint32, Int64, Uint64]
    rng = random.Random(A.__name__)

    def f(x: Numeric, n: Numeric) -> tuple[Any, ...]:
        assert type(x << n) is A
        return x << n, x >> n

    with program() as p:
        for B in counts:
            p.add(B.__name__, f, A, B)
        p.compile()
        for B in counts:
            rows = [[x, rng.choice((0, 1, 7, 8, 63, 64, 100, B.max))] for x in samples(A, 60, rng)]
            agree(p, B.__name__, f, [A, B], rows)


def test_booleans(program: Callable[..., Any]) -> None:
    def f(a: Numeric, b: Numeric) -> tuple[Any, ...]:
        bits = (a & b, a | b, a ^ b, a & True, a == b, a < b, a >= b)
        return (*bits, a + b, a - b, a * 3, -a, abs(a), a / 2, a << b, a + 0.5, a == 1, a < 2)

    with program() as p:
        p.add("f", f, Boolean, Boolean).compile()
        agree(p, "f", f, [Boolean, Boolean], [[x, y] for x in (0, 1) for y in (False, True)])


def test_negative_dynamic_counts_and_exponents_are_defined(program: Callable[..., Any]) -> None:
    def f(x: Numeric, n: Numeric) -> tuple[Any, ...]:
        return x << n, x >> n, x**n, 2**n

    with program() as p:
        p.add("f", f, Int32, Int32).compile()
        assert p.run("f", [[5, -1], [-5, -40], [1, -3], [-1, -3], [-1, -4], [0, -1]]) == [
            (0, 0, 0, 0), (0, -1, 0, 0), (0, 0, 1, 0), (0, -1, -1, 0), (0, -1, 1, 0), (0, 0, 0, 0),
        ]  # fmt: skip


def test_division_by_a_dynamic_zero_does_not_trap(program: Callable[..., Any]) -> None:
    with program() as p:
        for T in (Int8, Int32, Int64, Uint8, Uint64):
            p.add(T.__name__, lambda x, y: (x // y, x % y), T, T)
        p.compile()
        for T in (Int8, Int32, Int64, Uint8, Uint64):
            p.run(T.__name__, [[5, 0], [T.max, 0], [T.min, 0]])


def test_a_literal_exponent_needs_no_room_in_the_base(program: Callable[..., Any]) -> None:
    with program() as p:
        p.add("f", lambda x: x**300, Int8).compile()
        assert p.run("f", [[1], [-1], [3]]) == [(1,), (1,), ((3**300 + 128) % 256 - 128,)]


# Random expressions ---------------------------------------------------------------------------


def expression(T: type[Numeric], depth: int, rng: random.Random) -> Callable[..., Any]:
    """A random function of three numbers of type `T`, with a readable name."""
    if depth == 0:
        i = rng.randrange(3)
        return named(lambda *leaves: leaves[i], "xyz"[i])
    left = expression(T, depth - 1, rng)
    symbol, op = rng.choice(OPERATORS[T.is_float])
    if rng.random() < 0.25:
        literal: Any = rng.randint(1, 9) if T.is_integer or rng.random() < 0.5 else 0.75
        if rng.random() < 0.5 or symbol in ("<<", ">>"):
            return named(lambda *v: op(left(*v), literal), f"({left.__name__} {symbol} {literal})")
        return named(lambda *v: op(literal, left(*v)), f"({literal} {symbol} {left.__name__})")
    right = expression(T, rng.randrange(depth), rng)
    return named(lambda *v: op(left(*v), right(*v)), f"({left.__name__} {symbol} {right.__name__})")


def named(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    function.__name__ = name
    return function


_SHARED = [
    ("+", operator.add), ("-", operator.sub), ("*", operator.mul), ("//", operator.floordiv),
    ("%", operator.mod), ("<", operator.lt), ("==", operator.eq),
]  # fmt: skip
OPERATORS = {
    False: [
        *_SHARED, ("&", operator.and_), ("|", operator.or_), ("^", operator.xor),
        ("<<", operator.lshift), (">>", operator.rshift),
    ],
    True: [*_SHARED, ("/", operator.truediv)],
}  # fmt: skip


@pytest.mark.parametrize("T", ARITHMETIC, ids=repr)
def test_random_expressions(program: Callable[..., Any], T: type[Numeric]) -> None:
    rng = random.Random(f"expressions of {T.__name__}")
    functions = {}
    with program() as p:
        while len(functions) < 25:
            tree = expression(T, rng.randint(1, 5), rng)

            def f(*leaves: Any, tree: Any = tree) -> tuple[Any, ...]:
                result = tree(*leaves)
                return (result if isinstance(result, Numeric) else T.concrete(result),)

            f.__name__ = tree.__name__
            try:
                p.add(f"f{len(functions)}", f, T, T, T)
            except DSLTypeError:  # a literal that does not fit, an operator that Float has not
                continue
            functions[f"f{len(functions)}"] = f
        p.compile()
        columns = [samples(T, 40, rng) for _ in range(3)]
        rows = [list(row) for row in zip(*columns, strict=True)]
        for name, f in functions.items():
            agree(p, name, f, [T, T, T], rows)


def test_mixed_random_expressions(program: Callable[..., Any]) -> None:
    rng = random.Random("mixed")
    types = [Int32, Float32, Uint8, Int64, Float64, Boolean]
    with program() as p:
        kept = {}
        while len(kept) < 40:
            tree = expression(Float32, rng.randint(1, 5), rng)
            leaves = [rng.choice(types) for _ in range(3)]

            def f(*v: Any, tree: Any = tree) -> tuple[Any, ...]:
                return (tree(*v),)

            f.__name__ = tree.__name__
            try:
                p.add(f"f{len(kept)}", f, *leaves)
            except DSLTypeError:
                continue
            kept[f"f{len(kept)}"] = (f, leaves)
        p.compile()
        for name, (f, leaves) in kept.items():
            rows = [list(r) for r in zip(*(samples(T, 30, rng) for T in leaves), strict=True)]
            agree(p, name, f, leaves, rows)


def test_all_pairs_of_small_integers_exhaustively(program: Callable[..., Any]) -> None:
    def f(x: Numeric, y: Numeric) -> tuple[Any, ...]:
        return x // y, x % y, x >> y, x << y, x < y

    values = [-128, -127, -100, -8, -7, -3, -2, -1, 0, 1, 2, 3, 5, 7, 8, 64, 100, 126, 127]
    with program() as p:
        p.add("f", f, Int8, Int8).compile()
        agree(p, "f", f, [Int8, Int8], [list(r) for r in itertools.product(values, repeat=2)])
