"""Work around a compilation: timing, pausing garbage collection, preloading libraries, reports."""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Iterator
from logging import INFO
from pathlib import Path
from time import perf_counter
from typing import Any

from basedsl import logs
from basedsl.language import Language
from basedsl.mlir import libraries, preload
from basedsl.objectstage import Stages, native
from basedsl.stages import BoundCall

_log = logs.logger("compile")


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


def shows_stages(settings: Any) -> bool:
    """Return True if the options print, save or time stages: then nothing is read from the disk
    cache, because only a compilation runs the stages.
    """
    shown = settings.print_ir or settings.print_after_preprocess or settings.keep
    return bool(shown or settings.time_stages or settings.pass_stages)


def report(call: BoundCall, stages: Stages, clock: Clock) -> None:
    """Print, save and log the stages and times that the options ask for."""
    settings, symbol = call.settings, call.function.symbol
    if settings.print_ir:
        print(stages.text(stages.names[0]))
    if settings.keep:
        names = None if "all" in settings.keep else settings.keep
        stages.save(settings.dump_dir or Path.cwd(), symbol, names)
    if settings.time_stages:
        print(f"{symbol}: {clock} ms", file=sys.stderr)
    if _log.isEnabledFor(INFO):
        took = sum(clock.seconds.values()) * 1e3
        _log.info("%s(%s): compiled in %.1f ms", symbol, call.shown, took)
        _log.debug("%s: %s", symbol, clock)


def report_loaded(call: BoundCall, compiled: Any) -> None:
    """Log that a call's code was read from the disk cache."""
    _log.info("%s: %r from the disk", call.function.symbol, compiled)
