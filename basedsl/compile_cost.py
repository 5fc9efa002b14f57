"""Work around a compilation: timing, pausing garbage collection, preloading libraries, reports."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys
from collections.abc import Callable, Iterator, Sequence
from logging import INFO
from pathlib import Path
from time import perf_counter
from typing import Any

from basedsl import logs
from basedsl.language import Language
from basedsl.mlir import libraries, preload
from basedsl.nvtx_ranges import nvtx_range
from basedsl.objectstage import Snapshot, Stages, native
from basedsl.option_fields import OptionError
from basedsl.slips import closest_name
from basedsl.stages import BoundCall
from basedsl.warning import warn

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
    shown = settings.print_ir or settings.print_ir_after_all or settings.print_after_preprocess
    shown = shown or settings.keep
    return bool(shown or settings.time_stages or settings.pass_stages or settings.dryrun)


def check_kept(language: Language, settings: Any) -> None:
    """Raise OptionError for a name in the option `keep` that no stage has."""
    wanted = [name for name in settings.keep if name not in ("all", "ir")]
    if not wanted:
        return
    known = language.stage_names(settings)
    for name in wanted:
        if name.partition(".")[0] not in known:
            near = closest_name(name, known)
            raise OptionError(
                f"the option keep names {name!r}, and {language.name} has no such stage",
                hint=f"did you mean {near}?" if near else f"there is {', '.join(known)}",
            )


def load_libraries(settings: Any) -> None:
    """Load the shared libraries of the option `libs`, whose functions host code may call."""
    for name in settings.libs:
        try:
            ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
        except OSError as error:
            raise OptionError(
                f"the option libs names {name!r}, which cannot be loaded: {error}",
                hint="name a shared library (.so) by its path",
            ) from None


def ranged(invoke: Callable[[Sequence[Any]], Any], name: str) -> Callable[[Sequence[Any]], Any]:
    """Return `invoke`, each run of which is an NVTX range; it is called from Python alone."""

    def run(packed: Sequence[Any]) -> Any:
        with nvtx_range(True, name):
            return invoke(packed)

    return run


def timed(
    invoke: Callable[[Sequence[Any]], Any], language: Language, call: BoundCall
) -> Callable[[Sequence[Any]], Any]:
    """Return `invoke`, which also reports the time of each run. Such code is called from Python
    alone.
    """

    def run(packed: Sequence[Any]) -> Any:
        start = perf_counter()
        try:
            return invoke(packed)
        finally:
            language.synchronize(call.settings)
            took = (perf_counter() - start) * 1e3
            print(f"{call.function.symbol}: run {took:.2f} ms", file=sys.stderr)

    return run


def printing(
    observe: Callable[[str, Snapshot], Snapshot | None] | None, symbol: str
) -> Callable[[str, Snapshot], Snapshot | None]:
    """Return `observe`, which also prints each module to stderr, below a line in MLIR's form."""

    def show(name: str, output: Snapshot) -> Snapshot | None:
        other = None if observe is None else observe(name, output)
        shown = output if other is None else other
        if shown.kind == "mlir":
            title = f"// -----// IR Dump After {name} ('{symbol}') //----- //"
            print(f"{title}\n{shown.text()}\n", file=sys.stderr)
        return other

    return show


def report(call: BoundCall, stages: Stages, clock: Clock) -> None:
    """Print, save and log the stages and times that the options ask for."""
    settings, symbol = call.settings, call.function.symbol
    if settings.print_ir:
        print(stages.text(stages.names[0]))
    if settings.keep:
        _save(call, stages)
    for found in stages.diagnostics:
        if found.severity.lower() == "warning":
            warn(settings, found.message, span=found.span)
    if settings.time_stages:
        print(f"{symbol}: {clock} ms", file=sys.stderr)
    if _log.isEnabledFor(INFO):
        took = sum(clock.seconds.values()) * 1e3
        _log.info("%s(%s): compiled in %.1f ms", symbol, call.shown, took)
        _log.debug("%s: %s", symbol, clock)


def _save(call: BoundCall, stages: Stages) -> None:
    settings, language = call.settings, call.function.language
    folder = settings.dump_dir or Path.cwd()
    names = None if "all" in settings.keep else settings.keep
    target = language.target_name(settings)
    try:
        stages.save(folder, f"{call.function.plain_symbol}.{target}", names)
    except OSError as error:
        raise OptionError(
            f"the option dump_dir names {folder}, which cannot be written: {error.strerror}",
            hint="name another folder, or make it writable",
        ) from None


def report_loaded(call: BoundCall, compiled: Any) -> None:
    """Log that a call's code was read from the disk cache."""
    _log.info("%s: %r from the disk", call.function.symbol, compiled)
