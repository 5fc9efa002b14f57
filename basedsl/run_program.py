"""The command `basedsl run`: a program that imports another package than the DSL that runs it."""

from __future__ import annotations

import argparse
import runpy
import sys
from pathlib import Path

from basedsl.errors import DSLError, DSLRuntimeError
from basedsl.numeric import show_own_classes
from basedsl.plugin import Command


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--as",
        dest="name",
        metavar="PACKAGE",
        required=True,
        help="the name of the package that the program imports",
    )
    parser.add_argument("--dsl", help="the DSL that runs it; by default the one that says it can")
    parser.add_argument("-m", dest="module", action="store_true", help="PROGRAM is a module's name")
    parser.add_argument("program", metavar="PROGRAM")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGS")


def _run(parsed: argparse.Namespace) -> int:
    manager, name = parsed.manager, parsed.name
    names = [parsed.dsl] if parsed.dsl else [entry.name for _, entry in manager.dsl_entries()]
    languages = [manager.get_dsl(one).language for one in names]
    fitting = [one for one in languages if parsed.dsl or name in one.stands_for]
    if not fitting:
        raise DSLRuntimeError(
            f"no installed DSL stands for {name!r}",
            hint=f"pip install its distribution; there are {', '.join(names) or 'none'}",
        )
    fitting[0].install_as(name)
    show_own_classes()
    sys.argv = [parsed.program, *parsed.arguments]
    sys.path.insert(0, "" if parsed.module else str(Path(parsed.program).resolve().parent))
    try:
        if parsed.module:
            runpy.run_module(parsed.program, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(parsed.program, run_name="__main__")
    except DSLError:
        sys.excepthook(*sys.exc_info())  # as Python shows it, with the program's own lines
        return 1
    return 0


RUN_COMMAND = Command("run", "run a program that imports another package", _configure, _run)
