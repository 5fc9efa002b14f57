"""Fixtures of the pre-stage tests: running a function as written and as rewritten."""

from __future__ import annotations

import functools
import itertools
import linecache
import sys
from collections.abc import Callable
from pathlib import Path
from types import FunctionType
from typing import Any

import pytest

from basedsl.prestage import shared_cells, stage_function

sys.path.insert(0, str(Path(__file__).parent))
from python_runtime import PythonRuntime

Outcome = tuple[Any, ...]
_numbers = itertools.count()


class Poison:
    """The value of a variable where the rewriter promised that nobody reads it."""


class StrictRuntime(PythonRuntime):
    """Runs as Python, but withholds every value the contract does not promise.

    What is not in `names` is lost after a body; an unbound entry of `undef_ok` becomes a `Poison`.
    """

    def _run(self, run: Callable[[], None], names: Any, undef_ok: Any, *bodies: Any) -> None:
        cells = shared_cells(*bodies)
        before = {name: contents(cell) for name, cell in cells.items()}
        try:
            run()
        finally:
            for name, cell in cells.items():
                if name not in names and contents(cell) is not before[name]:
                    if contents(cell) is not EMPTY:
                        del cell.cell_contents
        for name in undef_ok:
            if contents(cells[name]) is EMPTY:
                cells[name].cell_contents = Poison()

    def if_(self, test, then, orelse, names, undef_ok):  # type: ignore[no-untyped-def]
        run = super().if_
        self._run(lambda: run(test, then, orelse, names, undef_ok), names, undef_ok, then, orelse)

    def while_(self, test, body, names, undef_ok, exits):  # type: ignore[no-untyped-def]
        def run() -> None:
            while test():
                self._run(body, names, (), body)
                if any(flag.cell_contents for flag in flags):
                    break

        flags = self._flags(body, names, undef_ok, exits)
        self._run(run, names, undef_ok, body)

    def for_(self, iterable, body, names, undef_ok, exits):  # type: ignore[no-untyped-def]
        def run() -> None:
            for item in iterable:
                self._run(functools.partial(body, item), names, (), body)
                if any(flag.cell_contents for flag in flags):
                    break

        flags = self._flags(body, names, undef_ok, exits)
        self._run(run, names, undef_ok, body)


EMPTY = object()


def contents(cell: Any) -> object:
    try:
        return cell.cell_contents
    except ValueError:
        return EMPTY


def outcome(fn: Callable[..., Any], *args: Any) -> Outcome:
    """The outcome of a call, in a form that can be compared."""
    try:
        return "returned", fn(*args)
    except NameError:  # the text and the subclass tell locals from cells
        return "raised", NameError
    except RecursionError:
        raise
    except Exception as error:
        return "raised", type(error), str(error), repr(error.__cause__)


def define(source: str, name: str = "f", **names: Any) -> FunctionType:
    """A function from text, as `exec` in a notebook or a library defines it."""
    filename = f"<text {next(_numbers)}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(True), filename)
    namespace: dict[str, Any] = dict(names)
    exec(compile(source, filename, "exec"), namespace)
    function = namespace[name]
    assert isinstance(function, FunctionType)
    return function


class Toolbox:
    define = staticmethod(define)
    outcome = staticmethod(outcome)
    StrictRuntime = StrictRuntime

    @staticmethod
    def stage(fn: FunctionType) -> FunctionType:
        """The rewritten function, run as Python."""
        return stage_function(fn).bind(PythonRuntime())

    @staticmethod
    def check(fn: Callable[..., Any], *inputs: tuple[Any, ...]) -> None:
        """The rewritten function does what the original does, on every input."""
        staged = stage_function(fn)  # type: ignore[arg-type]
        for runtime in (PythonRuntime(), StrictRuntime()):
            new = staged.bind(runtime)
            for args in inputs:
                expected = outcome(fn, *clone(args))
                assert outcome(new, *clone(args)) == expected, (args, staged.source)


def clone(value: Any) -> Any:
    """Fresh arguments: lists and dictionaries are copied."""
    if isinstance(value, tuple):
        return tuple(map(clone, value))
    if isinstance(value, list):
        return list(map(clone, value))
    return dict(value) if isinstance(value, dict) else value


@pytest.fixture(scope="session")
def tools() -> Toolbox:
    """`define`, `outcome` and `check`."""
    return Toolbox()
