"""The command line: `basedsl list`, `options`, `opt`, `run`, `cache`, and what plugins add."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from basedsl.cache.command import CACHE_COMMAND
from basedsl.errors import DSLError
from basedsl.options import Options
from basedsl.plugin import PluginManager, plugin_manager
from basedsl.run_program import RUN_COMMAND


def main(arguments: Sequence[str] | None = None, manager: PluginManager | None = None) -> int:
    """Run a command; return the exit status."""
    manager = manager or plugin_manager()
    parser = argparse.ArgumentParser(
        prog="basedsl", description="Python DSLs that compile through MLIR."
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    _add(commands, "list", "the installed DSLs and their plugins", _list)
    show = _add(commands, "options", "every option and its environment variable", _options)
    show.add_argument("--dsl", help="the options of this DSL, not only the core's")
    opt = _add(commands, "opt", "run MLIR passes on a file, as saved when a pass fails", _opt)
    opt.add_argument("file", type=Path)
    opt.add_argument("--passes", default="", help="such as canonicalize,cse; verify only if empty")
    opt.add_argument("--dsl", help="load the dialects of this DSL")
    for command in (CACHE_COMMAND, RUN_COMMAND, *manager.cli_commands()):
        command.configure(_add(commands, command.name, command.help, command.run))
    parsed = parser.parse_args(arguments)
    parsed.manager = manager
    try:
        status: int = parsed.run(parsed)
    except DSLError as error:
        print(f"error: {error.message}", file=sys.stderr)
        for text, _ in error.notes:
            print(f"note: {text}", file=sys.stderr)
        if error.hint:
            print(f"hint: {error.hint}", file=sys.stderr)
        return 1
    return status


def _add(commands: Any, name: str, text: str, run: Any) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(name, help=text, description=text)
    parser.set_defaults(run=run)
    return parser


def _list(parsed: argparse.Namespace) -> int:
    entries = parsed.manager.dsl_entries()
    if not entries and not parsed.manager.broken:
        print("no DSL is installed; try: pip install basedsl-toy")
    for owner, entry in entries:
        print(f"{entry.name:<12} {entry.summary or '-'}  (plugin {owner})")
    for broken in parsed.manager.broken.values():
        print(f"{broken.plugin:<12} broken: {broken.reason}")
    return 0


def _options(parsed: argparse.Namespace) -> int:
    record: type[Options] = Options
    if parsed.dsl:
        record = parsed.manager.get_dsl(parsed.dsl).language.options_class
    for info in record.describe():
        default = ",".join(info.default) if isinstance(info.default, tuple) else info.default
        shown = "none" if default is None or default == "" else default
        changes = "; changes the code" if info.affects_output else ""
        print(f"{info.name} ({info.type_name}, default {shown}{changes})")
        print(f"    {info.doc}")
        print(f"    {', '.join(info.variables)}")
    for name, near in record.unknown_variables().items():
        guess = f", did you mean {near}?" if near else ""
        print(f"warning: nothing reads the variable {name}{guess}", file=sys.stderr)
    return 0


def _opt(parsed: argparse.Namespace) -> int:
    from basedsl.mlir import MLIRContext, load_bindings
    from basedsl.objectstage import Pipeline, Step, run

    if parsed.dsl:
        context: MLIRContext = parsed.manager.get_dsl(parsed.dsl).mlir
    else:
        context = MLIRContext(load_bindings())
    steps = (Step("passes", parsed.passes),) if parsed.passes else ()
    ir = context.bindings.ir
    with context.entered():
        try:
            # The run verifies the module, and reports failures better than the parser.
            module = ir.Module.parse(parsed.file.read_text(encoding="utf-8"))
        except ir.MLIRError as error:
            print(f"error: {parsed.file} does not parse: {error}", file=sys.stderr)
            return 1
        stages = run(Pipeline("opt", steps), module, context, label=parsed.file.stem)
    sys.stdout.write(stages.text(stages.names[-1]))
    return 0
