"""Hooks around single compilations of this thread: `with PostCompileHookContext(dsl, hook): ...`.

The hooks of plugins (`plugin.hookspecs`) are for every compilation of a process.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from types import TracebackType
from typing import Any

from basedsl.compiled import Compiled

Observer = Callable[[Compiled], None]

_observers: ContextVar[tuple[tuple[str, Observer], ...]] = ContextVar("observers", default=())


def observers_of(dsl: str) -> list[Observer]:
    """Return the observers of compilations by the DSL of this name, in this thread."""
    return [observe for name, observe in _observers.get() if name in ("", dsl)]


@contextlib.contextmanager
def observing(observe: Observer, dsl: str = "") -> Iterator[None]:
    """Call `observe` with each compiled function of the `with` block: those of the DSL called
    `dsl`, or, with "", of all DSLs.

    Nothing is read from the disk cache meanwhile, so that all stages are there.
    """
    token = _observers.set((*_observers.get(), (dsl, observe)))
    try:
        yield
    finally:
        _observers.reset(token)


class PostCompileHookContext:
    """Context manager: `hook` gets the module of each compilation in the `with` block, after the
    passes that keep it in MLIR. `compiler` is the DSL, or None for every DSL.

    An exception of the hook passes through the compilation.
    """

    def __init__(self, compiler: Any, hook: Callable[[Any], Any]) -> None:
        self._hook = hook
        name = "" if compiler is None else str(getattr(compiler, "name", ""))
        self._context = observing(self._observe, name)

    def __enter__(self) -> PostCompileHookContext:
        self._context.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: TracebackType | None,
    ) -> None:
        self._context.__exit__(kind, error, tb)

    def _observe(self, compiled: Compiled) -> None:
        self._hook(compiled.lowered_module)
