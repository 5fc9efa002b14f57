"""The load of built code into this process: the language's executor makes it callable."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any

from basedsl.compilation.cost import Clock
from basedsl.compiled import Compiled
from basedsl.errors import DSLError, plugin_defect, with_article
from basedsl.language import Language
from basedsl.mlir import uninterrupted
from basedsl.nvtx_ranges import nvtx_range
from basedsl.option_fields import OptionError
from basedsl.plugin import plugin_manager
from basedsl.stages import BoundCall, Built


def load_built(language: Language, call: BoundCall, built: Built, clock: Clock) -> Compiled:
    """Load the built code into this process and wrap it as a `Compiled`. `clock` has the times of
    the stages until here, and gets that of the load.
    """
    settings = call.settings
    if settings.dryrun:
        return language.compiled_class(call, built, _do_nothing, clock.seconds)
    with clock("load"), uninterrupted():
        _load_libraries(settings)
        try:
            invoke = language.executor(
                built.stages, call.function.symbol, call.arguments, built.results, settings
            )
        except DSLError:
            raise
        except Exception as error:  # a plugin's code
            raise plugin_defect(
                language, f"executor() broke: {type(error).__name__}: {error}"
            ) from error
    if not callable(invoke):
        raise plugin_defect(
            language,
            f"executor() returned {with_article(type(invoke))}, which is not callable",
            hint="return a function of the packed arguments",
        )
    if settings.nvtx:
        invoke = _ranged(invoke, f"run {call.function.symbol}")
    if settings.time_stages:
        invoke = _timed(invoke, language, call)
    compiled = language.compiled_class(call, built, invoke, clock.seconds)
    plugin_manager().compiled(language.name, call.function.symbol, compiled)
    return compiled


def _do_nothing(packed: Sequence[Any]) -> None:
    """Stand for code that a dry run has not compiled."""


def _load_libraries(settings: Any) -> None:
    """Load the shared libraries of the option `libs`, whose functions host code may call."""
    for name in settings.libs:
        try:
            ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
        except OSError as error:
            raise OptionError(
                f"the option libs names {name!r}, which cannot be loaded: {error}",
                hint="name a shared library (.so) by its path",
            ) from None


def _ranged(invoke: Callable[[Sequence[Any]], Any], name: str) -> Callable[[Sequence[Any]], Any]:
    """Return `invoke`, each run of which is an NVTX range; it is called from Python alone."""

    def run(packed: Sequence[Any]) -> Any:
        with nvtx_range(True, name):
            return invoke(packed)

    return run


def _timed(
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
