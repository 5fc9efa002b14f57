"""The parser of the command line, and how a command ends: exit status and errors without traceback.

The exit status is 0, 1 after an error, 2 for a wrong command line, 130 after Ctrl-C, and 141 where
the reader of a pipe has closed it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

from basedsl.cache.command import CACHE_COMMAND
from basedsl.cli import console
from basedsl.cli.doctor import DOCTOR_COMMAND
from basedsl.cli.new import NEW_COMMAND
from basedsl.cli.options_command import OPTIONS_COMMAND
from basedsl.cli.show import SHOW_COMMAND
from basedsl.errors import DSLError
from basedsl.explorer import EXPLORE_COMMAND
from basedsl.inspection.program import read_text
from basedsl.plugin import Command, PluginManager, plugin_manager
from basedsl.run_program import RUN_COMMAND

INTERRUPTED, PIPE_CLOSED = 130, 141  # as shells count a command that SIGINT or SIGPIPE ended


def main(arguments: Sequence[str] | None = None, manager: PluginManager | None = None) -> int:
    """Run a command; return the exit status."""
    if sys.stdout is None:  # closed by the shell
        sys.stdout = open(os.devnull, "w", encoding="utf-8")
    manager = manager or plugin_manager()
    arguments = sys.argv[1:] if arguments is None else arguments
    manager.switched_off |= _switched_off(arguments)
    parser = argparse.ArgumentParser(
        prog="basedsl", description="Python DSLs that compile through MLIR."
    )
    parser.add_argument("--version", action="version", version=_versions(manager))
    parser.add_argument(
        "-p",
        action="append",
        default=[],
        metavar="no:NAME",
        help="switch off a plugin or DSL, by its name or its distribution's",
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    own: tuple[Command, ...] = (
        LIST_COMMAND,
        PLUGINS_COMMAND,
        OPTIONS_COMMAND,
        DOCTOR_COMMAND,
        SHOW_COMMAND,
        EXPLORE_COMMAND,
        OPT_COMMAND,
    )
    own = (*own, CACHE_COMMAND, RUN_COMMAND, NEW_COMMAND)
    for command in (*own, *_of_plugins(manager, [one.name for one in own])):
        one = commands.add_parser(command.name, help=command.help, description=command.help)
        one.set_defaults(run=command.run)
        command.configure(one)
    parsed = parser.parse_args(arguments)
    parsed.manager = manager
    try:
        status: int = parsed.run(parsed)
        sys.stdout.flush()
    except DSLError as error:
        entry = getattr(sys.modules["__main__"], "__file__", None)
        if error.span is not None and error.span.filename == entry:
            error.span = None  # the script `basedsl`: no line of the user's is to blame
        console.show_error(error)
        return 1
    except BrokenPipeError:
        # Python writes what is left at its exit, and would complain again.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        place = f"{error.filename}: " if error.filename else ""
        console.show_problem(f"{place}{error.strerror or error}")
        return 1
    return status


def _switched_off(arguments: Sequence[str]) -> frozenset[str]:
    """Return the names after `-p no:`, which must be known before any plugin is imported."""
    found = []
    for i, word in enumerate(arguments):
        if word == "-p" and i + 1 < len(arguments):
            found.append(arguments[i + 1])
        elif word.startswith("-pno:"):
            found.append(word[2:])
        elif word != "-p" and not (i and arguments[i - 1] == "-p"):
            break  # the command: what follows is its own
    return frozenset(name.removeprefix("no:") for name in found if name.startswith("no:"))


def _of_plugins(manager: PluginManager, taken: Sequence[str]) -> Iterator[Command]:
    for owner, command in manager.commands():
        if command.name in taken:
            console.show_problem(
                f"the plugin {owner!r} has a command {command.name!r}, which basedsl has itself"
            )
        else:
            yield command


def _versions(manager: PluginManager) -> str:
    names = ["basedsl", *sorted({owner for owner, _ in manager.dsl_entries()})]
    found = []
    for name in names:
        with contextlib.suppress(metadata.PackageNotFoundError):
            found.append(f"{name} {metadata.version(name)}")
    python = ".".join(map(str, sys.version_info[:3]))
    return ", ".join([*found, f"Python {python}"])


# list ------------------------------------------------------------------------------------------


def _configure_list(parser: argparse.ArgumentParser) -> None:
    console.add_json(parser)


def _list(parsed: argparse.Namespace) -> int:
    entries = parsed.manager.dsl_entries()
    broken = tuple(parsed.manager.broken.values())
    if parsed.json:
        console.print_json(
            {
                "dsls": [
                    {"name": entry.name, "summary": entry.summary, "plugin": owner}
                    for owner, entry in entries
                ],
                "broken": [{"plugin": one.plugin, "reason": one.reason} for one in broken],
            }
        )
        return 0
    if not entries and not broken:
        print("no DSL is installed; try: pip install basedsl-toy")
    for owner, entry in entries:
        print(f"{entry.name:<12} {entry.summary or '-'}  (plugin {owner})")
    for one in broken:
        print(f"{one.plugin:<12} broken: {one.reason}")
    return 0


# plugins ---------------------------------------------------------------------------------------


def _configure_plugins(parser: argparse.ArgumentParser) -> None:
    console.add_json(parser)


def _plugins(parsed: argparse.Namespace) -> int:
    rows = parsed.manager.described()
    if parsed.json:
        console.print_json([{**row, "hooks": list(row["hooks"])} for row in rows])
        return 0
    if not rows:
        print("no plugin is installed")
    for row in rows:
        print(f"{row['name']:<16} {row['state']}  ({row['source'] or 'nothing of it is loaded'})")
        for hook in row["hooks"]:
            print(f"    {hook}")
    return 0


# opt -------------------------------------------------------------------------------------------


def _configure_opt(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", type=Path)
    parser.add_argument(
        "--passes", default="", help="such as canonicalize,cse; verify only if empty"
    )
    parser.add_argument("--dsl", help="load the dialects of this DSL")


def _opt(parsed: argparse.Namespace) -> int:
    from basedsl.mlir import MLIRContext, load_bindings
    from basedsl.objectstage import Pipeline, Step, run_pipeline

    text = read_text(parsed.file)
    if parsed.dsl:
        context: MLIRContext = parsed.manager.get_dsl(parsed.dsl).mlir
    else:
        context = MLIRContext(load_bindings())
    steps = (Step("passes", parsed.passes),) if parsed.passes else ()
    ir = context.bindings.ir
    with context.entered():
        try:
            # The run verifies the module, and reports failures better than the parser.
            module: Any = ir.Module.parse(text)
        except ir.MLIRError as error:
            console.show_problem(f"{parsed.file} does not parse: {error}")
            return 1
        stages = run_pipeline(Pipeline("opt", steps), module, context, label=parsed.file.stem)
    sys.stdout.write(stages.text(stages.names[-1]))
    return 0


LIST_COMMAND = Command("list", "the installed DSLs and their plugins", _configure_list, _list)
PLUGINS_COMMAND = Command(
    "plugins", "all plugins: what they answer, what is broken or off", _configure_plugins, _plugins
)
OPT_COMMAND = Command(
    "opt", "run MLIR passes on a file, as saved when a pass fails", _configure_opt, _opt
)
