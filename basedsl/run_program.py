"""The command `basedsl run`: a program that imports another package than the DSL that runs it."""

from __future__ import annotations

import argparse
import runpy
import sys
import tempfile
from pathlib import Path

from basedsl.errors import DSLError, DSLRuntimeError
from basedsl.numeric import show_own_classes
from basedsl.plugin import Command, PluginManager, plugin_manager

#: The module of the package's name that processes find which `multiprocessing` starts anew: they
#: inherit nothing of this one but its sys.path.
_IN_NEW_PROCESSES = """\
import sys
from basedsl.run_program import stand_in
del sys.modules[__name__]
stand_in(__name__, {dsl!r})
"""


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
    dsl = fitting[0].name
    stand_in(name, dsl, manager)
    sys.argv = [parsed.program, *parsed.arguments]
    own = "" if parsed.module else str(Path(parsed.program).resolve().parent)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        Path(folder, f"{name}.py").write_text(_IN_NEW_PROCESSES.format(dsl=dsl), encoding="utf-8")
        sys.path[:0] = own, folder
        try:
            if parsed.module:
                runpy.run_module(parsed.program, run_name="__main__", alter_sys=True)
            else:
                runpy.run_path(parsed.program, run_name="__main__")
        except DSLError:
            sys.excepthook(*sys.exc_info())  # as Python shows it, with the program's own lines
            return 1
    return 0


def stand_in(name: str, dsl: str, manager: PluginManager | None = None) -> None:
    """Make `import name` give the package of `dsl` in this process, whose dynamic numbers are of
    the DSL's classes only.
    """
    (manager or plugin_manager()).get_dsl(dsl).language.install_as(name)
    show_own_classes()


RUN_COMMAND = Command("run", "run a program that imports another package", _configure, _run)
