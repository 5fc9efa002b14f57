"""Reports of a compilation: what the options print, save and log."""

from __future__ import annotations

import sys
from collections.abc import Callable
from logging import INFO
from pathlib import Path
from typing import Any

from basedsl import logs
from basedsl.compilation.cost import Clock
from basedsl.language import Language
from basedsl.objectstage import Snapshot, Stages
from basedsl.option_fields import OptionError
from basedsl.slips import closest_name
from basedsl.stages import BoundCall
from basedsl.warning import warn

_log = logs.logger("compile")


def prepare_reports(language: Language, settings: Any) -> None:
    """Install the handlers of logs. Raises OptionError for a name in the option `keep` that no
    stage has.
    """
    logs.configure_logs(settings)
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


def report_loaded(call: BoundCall, compiled: Any) -> None:
    """Log that a call's code was read from the disk cache."""
    _log.info("%s: %r from the disk", call.function.symbol, compiled)


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
