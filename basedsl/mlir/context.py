"""The MLIR context of a DSL, and the one way to enter it.

A DSL owns one context for the life of the process: touching an operation after its context is gone
crashes the interpreter, and dynamic dialects are loaded once. Entering is reentrant and serialised.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import Any

from basedsl.mlir.bindings import Bindings


class MLIRContext:
    """A context of `bindings` in which `load_dialects` has run once."""

    def __init__(
        self,
        bindings: Bindings,
        load_dialects: Callable[[Bindings], None] | None = None,
        *,
        allow_unregistered_dialects: bool = False,
    ) -> None:
        self.bindings = bindings
        self.lock = threading.RLock()
        self._load_dialects = load_dialects
        self._allow_unregistered = allow_unregistered_dialects
        self._context: Any = None

    @contextlib.contextmanager
    def entered(self) -> Iterator[Any]:
        """Make the context current, with an unknown default location; other threads wait."""
        ir = self.bindings.ir
        with self.lock:
            if self._context is None:
                context = ir.Context()
                context.allow_unregistered_dialects = self._allow_unregistered
                with context, ir.Location.unknown():
                    if self._load_dialects is not None:
                        self._load_dialects(self.bindings)
                self._context = context
            with self._context, ir.Location.unknown():
                yield self._context

    @contextlib.contextmanager
    def current_in_this_thread(self) -> Iterator[Any]:
        """Make the context current in a helper thread, while its owner waits inside `entered()`."""
        with self._context, self.bindings.ir.Location.unknown():
            yield self._context
