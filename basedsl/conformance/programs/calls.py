# mypy: ignore-errors
"""Calls: inlining, Constexpr, recursion, keywords, pytrees in and out."""

import functools
from dataclasses import dataclass, replace
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


class Interval(NamedTuple):
    low: Any
    high: Any


@program("", inputs=[(Size(2, 3),), (Size(-1, 5),)], tags="tree-arguments")
def dataclass_argument(size):
    if size.width > 0:
        return size.width * size.height
    return size.height


@program("", inputs=[(Interval(1, 5), (2, 3.5)), (Interval(4, 4), (0, 0.5))], tags="tree-arguments")
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
    return Interval((n, 1), {"x": x, "y": [n, n + 1]}), "text", None


@program("int")
def returns_static_and_dynamic(n):
    return n, 7, True, 1.5


@program("")
def no_arguments():
    total = 0
    for i in range(5):
        total += i
    return total


@dataclass(frozen=True)
class Fixed:
    a: Any
    b: Any = 2


@dataclass(kw_only=True)
class Named:
    a: Any
    b: Any = 5


class Sample(NamedTuple):
    x: Any
    y: Any = 1.5


@program("", inputs=[(Fixed(1),), (Fixed(-3, 5),)], tags="tree-arguments tree-results")
def frozen_dataclass_argument(z):
    return z.a + z.b, z


@program("", inputs=[(Named(a=1),), (Named(a=2, b=3),)], tags="tree-arguments tree-results")
def keyword_only_dataclass(z):
    return Named(a=z.a + 1), replace(z, b=z.a)


@program("", inputs=[(Sample(1),), (Sample(2, 3.0),)], tags="tree-arguments tree-results")
def named_tuple_with_default(z):
    return z._replace(x=z.x * 2), Sample(z.x)


@program("", inputs=[({"a": 1, "b": (2, [3, 4.5])},)], tags="tree-arguments tree-results")
def nested_argument(z):
    return z["b"][1][0] + z["a"], z["b"]


@program("", inputs=[([1, 2, 3],), ([4],)], tags="tree-arguments")
def list_argument(z):
    total = 0
    for x in z:
        total += x
    return total


@program("", inputs=[((),), ((1,),), ((1, 2.5),)], tags="tree-arguments")
def tuples_of_several_lengths(z):
    return len(z), z


@program("", inputs=[(None,), (3,), ("ab",)])
def argument_that_may_be_static(z):
    if z is None:
        return 1
    return len(z) if isinstance(z, str) else z


@program("int", kwargs={"kw": 3})
def kinds_of_parameters(n, /, m=4, *, kw, kx=7):
    return n, m, kw, kx


@program("", inputs=[(1, 2, 3), (1, 2, 4.5)], kwargs={"z": 5, "w": 1})
def star_parameters_from_python(a, *rest, **named):
    return a + sum(rest), len(rest), named["z"] - named["w"], sorted(named)


@program("", inputs=[(1,), (True,), (1.0,), (2,)])
def equal_arguments_of_different_types(a):
    return a, a + 1


@program("int")
def returns_lists_and_dicts(n):
    return [n, 2], {"a": n, 3: [1, n]}, None, "text"


@program("int")
def returns_nothing(n):
    pass


@program("int")
def partial_and_reduce(n):
    minus = functools.partial(lambda a, b: a - b, n)
    return minus(3), functools.reduce(lambda a, b: a * b, [n, 2, 3])


@program("int")
def decorators_inside(n):
    def deco(f):
        @functools.wraps(f)
        def g(*args):
            return f(*args) + 1

        return g

    @deco
    def h(x):
        return x * 2

    return h(n)


@program("int")
def protocols_of_a_class(n):
    class Thing:
        FACTOR = 3

        def __init__(self, v):
            self.v = v

        @staticmethod
        def more(x):
            return x + 1

        @classmethod
        def scaled(cls, x):
            return x * cls.FACTOR

        @property
        def double(self):
            return self.v * 2

        def __call__(self, x):
            return x - self.v

        def __getitem__(self, i):
            return i * 2

        def __len__(self):
            return 4

        def __add__(self, other):
            return Thing(self.v + other.v)

        def __lt__(self, other):
            return self.v < other.v

    one, two = Thing(n), Thing(3)
    less = 1 if one < two else 0
    return one.more(n), Thing.scaled(n), one(5), one[n], len(one), (one + two).double, less


@program_of("int")
def jit_calls_jit_that_calls_jit(jit):
    @jit
    def inner(x, by: Constexpr):
        if x > by:
            return by
        return x

    @jit
    def middle(x):
        return inner(x, 3) + inner(x + 1, by=2)

    def main(n):
        total = 0
        for i in range(3):
            total += middle(n + i)
        return total

    return main


@program_of("int")
def jit_method(jit):
    class Clamp:
        def __init__(self, high):
            self.high = high

        @jit
        def __call__(self, x):
            if x > self.high:
                return self.high
            return x

        @jit
        def twice(self, x):
            return self(x) + self(x + 1)

    def main(n):
        clamp = Clamp(4)
        return clamp(n), clamp.twice(n)

    return main


@program_of("int float", tags="tree-results")
def jit_returns_trees(jit):
    @jit
    def both(n, x):
        if n > 2:
            return Sample(n, x), {"a": n}
        return Sample(0, x * 2), {"a": 1}

    def main(n, x):
        sample, table = both(n, x)
        return sample, table["a"] + sample.x

    return main


@program("int")
def functions_imported_inside(n):
    import math as m
    from math import floor as low
    from math import sqrt

    return low(n / 2), m.ceil(n / 2), sqrt(abs(n)), m.floor(n / 3)


@program("int int")
def builtins_as_values(n, m):
    def reduced(op, a, b):
        return op(a, b)

    pick = max if n is not None else min
    return pick(n, m), reduced(min, n, m), reduced(max, n, m), [f(n, 3) for f in (max, divmod)]


@program_of("int int")
def builtins_as_constexpr(jit):
    @jit
    def reduced(op: Constexpr, a, b):
        return op(a, b)

    def main(n, m):
        return reduced(max, n, m), reduced(min, n, m), reduced(divmod, n, 7)

    return main
