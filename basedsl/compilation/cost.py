"""The cost of a compilation: times of stages, garbage collection, preloaded libraries."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator
from time import perf_counter

from basedsl.language import Language
from basedsl.mlir import libraries, preload
from basedsl.objectstage import native


class Clock:
    """Wall-clock seconds by the name of the stage: `with clock("trace"): ...`."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextlib.contextmanager
    def __call__(self, stage: str) -> Iterator[None]:
        start = perf_counter()
        try:
            yield
        finally:
            self.seconds[stage] = perf_counter() - start

    def __str__(self) -> str:
        return ", ".join(f"{name} {value * 1e3:.2f}" for name, value in self.seconds.items())


@contextlib.contextmanager
def compilation_cost(language: Language, is_first: bool) -> Iterator[None]:
    """Pause garbage collection during a compilation; before the first, start to preload
    libraries.
    """
    with gc_paused(keep=is_first):
        if is_first:
            preload_libraries(language)
        yield


@contextlib.contextmanager
def gc_paused(keep: bool) -> Iterator[None]:
    """Disable the cyclic garbage collector while code is compiled (it costs up to 20 %) or loaded
    (one full collection takes as long as the load). With `keep`, move the surviving objects to the
    oldest generation, so that the next collection does not traverse them.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if keep and enabled and not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
        if enabled:
            gc.enable()


def preload_libraries(language: Language) -> None:
    """Start a thread that maps the shared libraries of MLIR and LLVM, while Python goes on."""
    needed = libraries(language.bindings_package, language.dialects)
    preload.begin((*needed, *native.libraries()))
