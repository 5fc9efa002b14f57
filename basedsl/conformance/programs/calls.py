# mypy: ignore-errors
"""Calls: inlining, Constexpr, recursion, keywords, pytrees in and out."""

from dataclasses import dataclass
from typing import Any, NamedTuple

from basedsl import Constexpr
from basedsl.conformance.cases import program, program_of


@program_of("int")
def constexpr_recursion(jit):
    @jit
    def power(x, n: Constexpr):
        if n == 0:
            return 1
        half = power(x, n // 2)
        return half * half * x if n % 2 else half * half

    def main(n):
        return power(n, 5), power(2, 3) + n

    return main


@program_of("int int")
def keywords_and_defaults(jit):
    @jit
    def combine(a, b=3, *, c=5, d: Constexpr = 2):
        return a * 100 + b * 10 + c * d

    def main(n, m):
        return combine(n), combine(n, m), combine(b=m, a=1, c=n), combine(n, c=m, d=4)

    return main


@program_of("int")
def functions_as_arguments(jit):
    @jit
    def apply(f: Constexpr, x):
        return f(x)

    def main(n):
        return apply(lambda x: x + 1, n), apply(lambda x: x * x, n)

    return main


@program_of("int")
def class_as_constexpr(jit):
    class Doubler:
        def apply(self, x):
            return x * 2

    @jit
    def run(cls: Constexpr, x):
        return cls().apply(x)

    def main(n):
        return run(Doubler, n)

    return main


@program_of("int int")
def inlined_function_changes_an_object(jit):
    from basedsl.conformance.objects import Point

    @jit
    def move(p, by):
        if by > 0:
            p.x += by
        else:
            p.y -= by

    def main(n, m):
        p = Point(0, 0)
        for i in range(4):
            move(p, n + i * m)
        return p.x, p.y

    return main


@program_of("int int")
def star_arguments(jit):
    @jit
    def total(*values, **named):
        result = 0
        for v in values:
            result += v
        for v in named.values():
            result += 10 * v
        return result

    def main(n, m):
        pair = (n, m)
        return total(*pair, 3, a=n, b=m)

    return main


@program("int", kwargs={"m": 4})
def keyword_arguments_from_python(n, *, m, k=7):
    return n * 100 + m * 10 + k


@dataclass
class Size:
    width: Any
    height: Any


class Span(NamedTuple):
    low: Any
    high: Any


@program("", inputs=[(Size(2, 3),), (Size(-1, 5),)], tags="tree-arguments")
def dataclass_argument(size):
    if size.width > 0:
        return size.width * size.height
    return size.height


@program("", inputs=[(Span(1, 5), (2, 3.5)), (Span(4, 4), (0, 0.5))], tags="tree-arguments")
def tuple_arguments(span, pair):
    total = 0
    for i in range(span.low, span.high):
        total += i * pair[0]
    return total, pair[1]


@program("", inputs=[({"a": 1, "b": 2.5},)], tags="tree-arguments")
def dict_argument(table):
    return table["a"] + 1, table["b"]


@program("int float", tags="tree-results")
def returns_a_dataclass(n, x):
    if n > 0:
        return Size(n, x)
    return Size(0, x * 2)


@program("int float", tags="tree-results")
def returns_nested(n, x):
    return Span((n, 1), {"x": x, "y": [n, n + 1]}), "text", None


@program("int")
def returns_static_and_dynamic(n):
    return n, 7, True, 1.5


@program("")
def no_arguments():
    total = 0
    for i in range(5):
        total += i
    return total
