"""Declares conformance programs: a Python function, its inputs, and the features it needs.

    @program("int int", tags="loops")
    def gauss(n, m): ...

The kinds of the parameters, in order: `int` (small, negative too), `count` (0 to 9), `wide` (up to
the DSL's extremes), `float` (a small multiple of 1/4), `bool`, `ints` and `floats` (a 1-D buffer of
LENGTH numbers). A line that ends in `# error` is where the error of a refused program points.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from basedsl.location import Span

LENGTH = 6
MARK = "# error"


class Buf(list[Any]):
    """A 1-D buffer argument: a list for Python, an array for the DSL."""


@dataclass
class Case:
    """One program. `build(jit)` returns the function; `jit` decorates the helpers it calls.

    `kinds` are those of the parameters, `tags` the features it needs, `message` is part of the
    DSLError of a refused program.
    `inputs` and `kwargs` are given arguments. Of a session `build` returns the function and what
    tells the state that outlives its calls; `inputs` are the calls.
    """

    name: str
    build: Callable[[Callable[..., Any]], Callable[..., Any]]
    kinds: tuple[str, ...]
    tags: frozenset[str]
    message: str = ""
    inputs: list[tuple[Any, ...]] = field(default_factory=list)
    kwargs: dict[str, Any] = field(default_factory=dict)
    source: Any = None
    is_session: bool = False

    def arguments(self, int_bits: int, count: int = 9) -> list[tuple[Any, ...]]:
        """Return argument tuples for the program: given inputs, then edges, then random ones."""
        found = [tuple(row) for row in self.inputs]
        if found or not self.kinds:
            return found or [()]
        r = random.Random(self.name)
        for i in range(count):
            found.append(tuple(_value(kind, i, r, int_bits) for kind in self.kinds))
        return found

    def marked_lines(self) -> set[int]:
        """Return the lines of the program that end in the mark."""
        import inspect

        lines, first = inspect.getsourcelines(self.source)
        return {first + i for i, line in enumerate(lines) if line.rstrip().endswith(MARK)}

    def covers(self, span: Span | None) -> bool:
        """Return True if a place lies in the program's own file."""
        return span is not None and span.filename == self.source.__code__.co_filename


_EDGES = (0, 3, -2, 1, -1, 7)


def _value(kind: str, i: int, r: random.Random, int_bits: int) -> Any:
    if kind == "int":
        return _EDGES[i] if i < len(_EDGES) and r.random() < 0.8 else r.randint(-12, 20)
    if kind == "count":
        return i if i < 4 else r.randint(0, 9)
    if kind == "wide":
        top = 2 ** (int_bits - 1)
        return (0, top - 1, -top, -1, 1, top // 2)[i] if i < 6 else r.randrange(-top, top)
    if kind == "float":
        return (0.0, 1.0, -1.5, 0.25)[i] if i < 4 else r.randint(-80, 80) / 4
    if kind == "bool":
        return bool(i % 2) if i < 2 else r.random() < 0.5
    if kind == "ints":
        return Buf([0] * LENGTH if i == 0 else [r.randint(-9, 9) for _ in range(LENGTH)])
    if kind == "floats":
        return Buf([0.0] * LENGTH if i == 0 else [r.randint(-40, 40) / 4 for _ in range(LENGTH)])
    raise ValueError(f"no kind of argument is called {kind!r}")


def _register(fn: Callable[..., Any], case: Case) -> None:
    module = sys.modules[fn.__module__]
    cases: list[Case] = module.__dict__.setdefault("CASES", [])
    case.source = fn
    cases.append(case)


def _split(text: str | Sequence[str]) -> tuple[str, ...]:
    return tuple(text.split()) if isinstance(text, str) else tuple(text)


def program(
    kinds: str = "",
    *,
    tags: str = "",
    inputs: Sequence[tuple[Any, ...]] = (),
    kwargs: dict[str, Any] | None = None,
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a program that must give the result, or the exception, that Python gives.

    `kinds` are the kinds of its parameters, `tags` the features it needs, both separated by spaces;
    `inputs` are argument tuples to try besides the generated ones, `kwargs` keyword arguments of
    all calls. ValueError for an unknown kind.
    """

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        tagged = frozenset(_split(tags))
        _register(
            fn,
            Case(
                fn.__name__, lambda jit: fn, _split(kinds), tagged, "", list(inputs), kwargs or {}
            ),
        )
        return fn

    return register


def program_of(
    kinds: str = "",
    *,
    tags: str = "",
    inputs: Sequence[tuple[Any, ...]] = (),
    message: str = "",
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a function that makes the program: it gets the decorator for helpers.

    Otherwise like `program`, or with a `message` like `refused`.
    """

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        tagged = frozenset(_split(tags))
        _register(fn, Case(fn.__name__, fn, _split(kinds), tagged, message, list(inputs)))
        return fn

    return register


def session(
    *calls: tuple[Any, ...], message: str = "", tags: str = ""
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare several calls of one function, with state between them.

    The declared function gets the decorator for helpers, and returns the function to call and one
    without parameters that returns all that outlives a call. After each call, result and state must
    be Python's. With a `message` the first call is a DSLError, which leaves the state as it was.
    """

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        tagged = frozenset(_split(tags))
        given = list(calls) or [(1,), (1,), (2,), (1,)]
        _register(fn, Case(fn.__name__, fn, (), tagged, message, given, is_session=True))
        return fn

    return register


def refused(
    message: str,
    kinds: str = "",
    *,
    tags: str = "",
    inputs: Sequence[tuple[Any, ...]] = (),
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare a program with no meaning in a DSL: a `DSLError` with `message`, at the marked line.

    The other parameters are those of `program`.
    """

    def register(fn: Callable[..., Any]) -> Callable[..., Any]:
        tagged = frozenset(_split(tags))
        case = Case(fn.__name__, lambda jit: fn, _split(kinds), tagged, message, list(inputs))
        _register(fn, case)
        return fn

    return register
