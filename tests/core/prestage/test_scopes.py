"""Functions in functions, methods, private names, closures, outer variables: as in Python."""

# The programs below are odd on purpose.
# ruff: noqa: B007, B023, RUF012
from __future__ import annotations

import functools
import inspect
import math
from math import sin
from typing import Any

import pytest
from python_runtime import PythonRuntime

from basedsl.prestage import stage_function

counter = 0


def test_closures_share_the_users_cells(tools: Any) -> None:
    k = 1

    def f(n):
        if n > k:
            return n * k
        return k

    new = tools.stage(f)
    assert new(5) == 5
    k = 10
    assert new(5) == 10
    assert new(50) == 500


def test_nonlocal_of_the_surroundings(tools: Any) -> None:
    seen = []

    class Runtime(PythonRuntime):
        def check_outer(self, name, value, kind):  # type: ignore[no-untyped-def]
            seen.append((name, value, kind))

    total = 0

    def f(n):
        nonlocal total
        for i in range(n):
            if i % 2:
                total += i
        return total

    assert stage_function(f).bind(Runtime())(5) == 4
    assert total == 4
    assert seen == [("total", 1, "nonlocal"), ("total", 4, "nonlocal")]


def test_global(tools: Any) -> None:
    seen = []

    class Runtime(PythonRuntime):
        def check_outer(self, name, value, kind):  # type: ignore[no-untyped-def]
            seen.append((name, value, kind))

    def f(n):
        global counter
        if n > 1:
            counter = n
            for counter in range(2):
                pass
        return counter

    assert stage_function(f).bind(Runtime())(3) == 1
    assert counter == 1
    assert seen == [("counter", 3, "global"), ("counter", 0, "global"), ("counter", 1, "global")]


def test_nested_functions(tools: Any) -> None:
    def f(n):
        def fib(k):
            if k < 2:
                return k
            return fib(k - 1) + fib(k - 2)

        def even(k):
            return k == 0 or odd(k - 1)

        def odd(k):
            return k != 0 and even(k - 1)

        total = 0

        def add(x=1, *args, scale=2, **kwargs):
            nonlocal total
            for a in (x, *args):
                if a:
                    total += a * scale
            return kwargs

        for i in range(n):
            add(i, i, scale=i)
        adders = [lambda y, i=i: y + i + n for i in range(n)]
        return fib(n), even(n), total, add(z=1), [a(1) for a in adders]

    tools.check(f, (0,), (1,), (5,))


def test_a_closure_sees_the_variable_not_the_value(tools: Any) -> None:
    def f(n):
        functions = []
        for i in range(n):
            if i != 1:
                functions.append(lambda: i)
        i = 100 if n > 2 else i
        return [g() for g in functions]

    tools.check(f, (0,), (2,), (4,))


def test_early_use_of_a_later_function(tools: Any) -> None:
    def f(n):
        def g():
            return x

        if n > 1:
            x = n
        if n == 3:
            return g()
        if n == 0:
            return g()
        x = 7
        return g()

    tools.check(f, (0,), (1,), (2,), (3,))


def test_decorators_of_nested_functions(tools: Any) -> None:
    def f(n):
        def twice(g):
            @functools.wraps(g)
            def inner(*args):
                return g(*args), g(*args)

            return inner

        @twice
        @twice if n else lambda g: g
        def h(x):
            return x if x else "zero"

        return h(n), h.__name__, h.__qualname__

    tools.check(f, (0,), (1,))


def test_classes_in_functions(tools: Any) -> None:
    def f(n):
        """Doc."""
        base = n

        class A:
            """Doc of A."""

            factor = 2
            flag = base and factor
            if flag:
                factor = 3
            items = [x for x in range(3) if x or n]
            __private = 5

            def __init__(self, x):
                self.x = x
                self.__hidden = x + self.__private

            def get(self):
                if self.x > 1 and base:
                    return self.__hidden * self.factor
                for __i in range(2):
                    if __i:
                        return __i

        class B(A):
            def get(self):
                inherited = super().get()
                if inherited and n:
                    return super().get() + 1
                return [super(B, self).get() for _ in range(1)]

        b = B(n)
        return b.get(), A(0).get(), B.__qualname__, B.get.__qualname__, A.items, A.flag, A.__doc__

    tools.check(f, (0,), (1,), (4,))


class Base:
    def value(self, n):
        return n + 1


class Derived(Base):
    __secret = 3

    def value(self, n):
        if n > 2:
            return super().value(n) * self.__secret
        for __x in range(n):
            if __x == 1 and super().value(n):
                __y = __x + __class__.__secret
                return __y
        total = 0
        while total < self.__secret and (__z := total + 1):
            total += __z
        return total, __z

    def __hidden(self, n):
        return n if n else self.__secret

    @classmethod
    def make(cls, n):
        return cls if n else super().__name__

    hidden = __hidden


def test_methods(tools: Any) -> None:
    new = tools.stage(Derived.value)
    for n in range(5):
        assert new(Derived(), n) == Derived().value(n)
    hidden = tools.stage(Derived.hidden)
    assert hidden(Derived(), 0) == 3
    assert hidden.__name__ == "__hidden"


def test_everything_else_of_the_function_is_kept() -> None:
    def f(a: int, /, b: str = "b", *args: int, c: float = 1.0, **kwargs: Any) -> list[int]:
        """A docstring."""
        return [a, b, args, c, kwargs] if a else []

    f.extra = "x"  # type: ignore[attr-defined]
    code, names = f.__code__, set(f.__globals__)
    new = stage_function(f).bind(PythonRuntime())
    assert f.__code__ is code
    assert set(f.__globals__) == names
    assert new.__globals__ is f.__globals__
    for attribute in (
        "__name__",
        "__qualname__",
        "__doc__",
        "__module__",
        "__defaults__",
        "__kwdefaults__",
        "__annotations__",
        "__dict__",
    ):
        assert getattr(new, attribute) == getattr(f, attribute), attribute
    assert inspect.signature(new) == inspect.signature(f)
    assert new.__code__.co_qualname == f.__code__.co_qualname
    assert new(1, "x", 2, c=3, d=4) == f(1, "x", 2, c=3, d=4)
    assert new.__code__.co_flags == code.co_flags | inspect.CO_NESTED


def test_defaults_changed_later_count() -> None:
    def f(a=1):
        return a if a else 0

    stage_function(f)
    f.__defaults__ = (5,)
    assert stage_function(f).bind(PythonRuntime())() == 5


def test_names_of_inner_functions() -> None:
    def f(n):
        if n:

            def g():
                class C:
                    def m(self):
                        return lambda: (x for x in "a")

                return C

        return g

    new = stage_function(f).bind(PythonRuntime())
    for made, wanted in ((new(1), f(1)), (new(1)(), f(1)()), (new(1)().m, f(1)().m)):
        assert made.__qualname__ == wanted.__qualname__
    inner, expected = new(1)()().m(), f(1)()().m()
    assert inner.__qualname__ == expected.__qualname__
    assert inner().__qualname__ == expected().__qualname__


def test_string_annotations_and_annotated_locals(tools: Any) -> None:
    text = """
from __future__ import annotations
def f(n: Missing) -> AlsoMissing:
    x: Missing = n
    y: AlsoMissing
    if n > 1:
        x: int = 2
        y: int = 3
    (z): int = 4
    box = [0]
    box[0]: int = n
    def g(a: NotThere = 1) -> NotThere:
        return a
    return x, z, box, g(), g.__annotations__, y
"""
    tools.check(tools.define(text), (0,), (3,))


def test_docstrings(tools: Any) -> None:
    def f(n):
        """Outer."""
        global counter

        def g():
            """Inner."""
            for i in range(3):
                if i:
                    return i

        return g.__doc__, g()

    tools.check(f, (1,))


class Noting(PythonRuntime):
    def __init__(self) -> None:
        self.seen: list[Any] = []

    def fn(self, function: Any) -> Any:
        self.seen.append(function)
        return function


def test_known_callees_are_intercepted() -> None:
    m = math

    def f(x):
        len = lambda y: 7  # noqa: E731
        return [max(x, 1), m.floor(x), math.cos(x), sin(x), len(x), sorted([x]), str(x), abs]

    runtime = Noting()
    new = stage_function(f).bind(runtime)
    assert new(0) == f(0)
    # A variable may hold anything; `sorted` and `str` are known to need nothing.
    *known, local = runtime.seen
    assert known == [max, math.floor, math.cos, math.sin] and local(0) == 7


def test_a_shadowed_builtin_is_not_intercepted(tools: Any) -> None:
    text = "def f(x):\n    return max(x)\n"
    plain, shadowed = tools.define(text), tools.define(text, max=lambda x: "mine")
    for fn, calls in ((plain, [max]), (shadowed, [])):
        runtime = Noting()
        assert stage_function(fn).bind(runtime)([1]) == fn([1])
        assert runtime.seen == calls


def test_rewritings_are_kept_while_names_mean_the_same() -> None:
    def make(g: Any) -> Any:
        def f(x):
            return g(x)

        return f

    a, b, c = make(len), make(len), make(repr)
    first = stage_function(a)
    assert stage_function(b)._rewriting is first._rewriting
    assert stage_function(c)._rewriting is not first._rewriting
    assert "fn(g)" not in stage_function(c).source


def test_static_markers(tools: Any) -> None:
    def const_expr(value):
        return value

    const_expr.__basedsl_static__ = True  # type: ignore[attr-defined]

    def f(n, flag):
        total = 0
        for i in const_expr((1, 2, 3)):
            if const_expr(flag):
                continue
            total += i
        if isinstance(n, int) and flag is not None:
            return total
        return None

    tools.check(f, (1, True), (1, False), ("x", None))
    source = stage_function(f).source
    assert "__dsl__.if_" not in source
    assert "__dsl__.for_" not in source


@pytest.mark.parametrize("value", [print, len, int, functools.partial(int)])
def test_only_python_functions(value: Any) -> None:
    with pytest.raises(TypeError, match="not a Python function"):
        stage_function(value)


def test_methods_are_refused_with_a_hint() -> None:
    with pytest.raises(TypeError, match="__func__"):
        stage_function(Derived().value)  # type: ignore[arg-type]


def test_odd_bindings(tools: Any) -> None:
    text = """
def f(n, p=1):
    global os_path, g1
    if n:
        import os.path as os_path, json
        from math import floor as fl, pi
        def g1(): return 1
        class C: x = n
        if n > 1 and (p := n + p) > 3:
            p += fl(pi)
        with open(__import__("os").devnull) as (handle): pass
        for (a, *b), c in [((1, 2), 3)]: pass
        match {"k": n}:
            case {"k": int() as k, **others}: pass
        try: 1 / 0
        except ZeroDivisionError as error: text = str(error)
        value = json.dumps([a, b, c, k, others, text, C.x, g1(), os_path.basename("x/y")])
        return value, p
    return p
"""
    tools.check(tools.define(text), (0,), (1,), (3,))


def test_star_arguments_and_unpacking(tools: Any) -> None:
    def f(*args, **kwargs):
        def g(*a, k=0, **kw):
            return a, k, kw

        pairs = {**kwargs, "n": len(args)}
        for name in sorted(pairs):
            if pairs[name] and name != "k":
                pairs[name] = g(*args, *args[:1], k=name, z=name)
        return pairs, [*args, *pairs], (lambda *x, **y: x or y)(*args)

    tools.check(f, (), (1,), (0, 2))
    new = tools.stage(f)
    assert new(1, k=2, m=3) == f(1, k=2, m=3)


def test_recursion_through_the_closure(tools: Any) -> None:
    def f(n):
        if n < 2:
            return 1
        return n * f(n - 1)

    new = tools.stage(f)
    assert new(5) == 120
    f = new
    assert new(5) == 120
