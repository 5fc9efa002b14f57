"""Observers of simulated launches: profiles and the debugger, which add lines to generated code.

Without an observer the generated code, and with it the speed of a launch, is what it always is.
"""

from __future__ import annotations

import contextlib
import contextvars
from collections.abc import Iterator
from typing import Any, Protocol

from basedsl_cute.sim.machine.state import SimLaunch
from basedsl_cute.sim.options import LockstepWidth


class Observer(Protocol):
    """An observer: `boundary` and `before` write lines of Python while a kernel is translated,
    which call the observer when they run; `begin` and `end` are around each launch. `e` is the
    PythonEmitter of a translation, `op` and `record` are what it translates (`translate.records`).

    `width` is how many lanes run in lock step, None for as many as the kernel allows.
    """

    width: LockstepWidth | None

    def boundary(self, e: Any) -> None:
        """Note that a straight line of operations begins, or ends, here."""

    def before(self, e: Any, op: Any) -> None:
        """Write lines that run before `op` does."""

    def translating(self, record: Any) -> None:
        """Note that a kernel is about to be translated."""

    def begin(self, launch: SimLaunch, kernel: str) -> None:
        """Note that a launch begins; it may set `launch.blocks`, how many blocks run."""

    def end(self, launch: SimLaunch) -> None:
        """Note that a launch has ended well."""


_observer: contextvars.ContextVar[Observer | None] = contextvars.ContextVar(
    "observer", default=None
)


def watching() -> Observer | None:
    """The observer of launches in this context, None if there is none."""
    return _observer.get()


@contextlib.contextmanager
def watched_by(observer: Observer) -> Iterator[None]:
    """Let `observer` watch the launches made inside."""
    token = _observer.set(observer)
    try:
        yield
    finally:
        _observer.reset(token)
