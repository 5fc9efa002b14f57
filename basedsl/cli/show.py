"""`basedsl show FILE::FUNCTION`: the stages of a function, compiled without running it."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from basedsl.cli import console
from basedsl.compiled import Compiled
from basedsl.errors import DSLRuntimeError
from basedsl.inspection import program
from basedsl.inspection.difference import difference
from basedsl.plugin import Command

ALL, PREVIOUS = "all", "previous"
_POLL_SECONDS = 0.2


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "place", metavar="FILE[::FUNCTION]", help="without FUNCTION, lists the file's functions"
    )
    parser.add_argument(
        "--arg",
        action="append",
        default=[],
        metavar="ARG",
        help='an argument: "float32[64,64]", or Python; name=ARG passes it by name',
    )
    parser.add_argument(
        "--options", default="", help="compile options, written --options='--opt-level 0'"
    )
    parser.add_argument(
        "--stage", default="", help="the stage to show; 'all' for all; without it, a table of them"
    )
    parser.add_argument(
        "--passes", action="store_true", help="make every MLIR pass a stage of its own"
    )
    parser.add_argument("--locations", action="store_true", help="print the Python lines in MLIR")
    parser.add_argument(
        "--diff",
        metavar="WITH",
        help="show differences with another stage, 'previous' (stage), other options (written "
        "--diff='--opt-level 0'), or another FILE[::FUNCTION]",
    )
    parser.add_argument("--watch", action="store_true", help="show again when a file is saved")
    parser.add_argument("--as", dest="name", metavar="PACKAGE", help="as in `basedsl run`")
    console.add_json(parser)


def _run(parsed: argparse.Namespace) -> int:
    if parsed.watch:
        return _watch(parsed)
    if parsed.name:
        _install(parsed)
    path, name = _place(parsed.place)
    if not name:
        return _list(parsed, path)
    compiled = _compile(parsed, path, name, parsed.options)
    stage = parsed.stage
    if parsed.diff:
        return _diff(parsed, compiled, path, name)
    if parsed.json:
        _show_json(parsed, compiled)
    elif not stage:
        sys.stdout.write(compiled.stages.report() + "\n")
    elif stage == ALL:
        for one in compiled.views():
            print(console.coloured(f"==== {one}", "bold"))
            sys.stdout.write(_text(parsed, compiled, one))
    else:
        sys.stdout.write(_text(parsed, compiled, stage))
    return 0


def _install(parsed: argparse.Namespace) -> None:
    manager, name = parsed.manager, parsed.name
    languages = [manager.get_dsl(one).language for one in manager.dsl_names()]
    fitting = [one for one in languages if name in one.stands_for]
    if not fitting:
        raise DSLRuntimeError(f"no installed DSL stands for {name!r}")
    fitting[0].install_as(name)


def _place(text: str) -> tuple[Path, str]:
    file, _, name = text.partition("::")
    return Path(file), name


def _list(parsed: argparse.Namespace, path: Path) -> int:
    found = program.functions_of(program.load_program(path))
    if parsed.json:
        console.print_json(
            [
                {
                    "name": name,
                    "dsl": one.language.name,
                    "kind": one.kind,
                    "parameters": [parameter.name for parameter in one.signature.parameters],
                }
                for name, one in found.items()
            ]
        )
        return 0
    for name, one in found.items():
        parameters = ", ".join(parameter.name for parameter in one.signature.parameters)
        print(f"{path}::{name}({parameters})  {one!r}")
    if not found:
        print(f"{path} has no function of a DSL")
    return 0


def _compile(parsed: argparse.Namespace, path: Path, name: str, options: str) -> Compiled:
    module = program.load_program(path)
    function = program.find_function(module, name)
    dsl = parsed.manager.get_dsl(program.dsl_function(function).language.name)
    args, kwargs = program.read_arguments(parsed.arg, vars(module))
    settings = dsl.settings(options).replace(
        pass_stages=parsed.passes or dsl.settings(options).pass_stages
    )
    compiled: Compiled = dsl.compile(function, *args, options=settings, **kwargs)
    return compiled


def _text(parsed: argparse.Namespace, compiled: Compiled, stage: str) -> str:
    text = compiled.view(stage, locations=parsed.locations)
    return text if text.endswith("\n") or not text else text + "\n"


def _show_json(parsed: argparse.Namespace, compiled: Compiled) -> None:
    wanted = [parsed.stage] if parsed.stage not in ("", ALL) else list(compiled.views())
    console.print_json(
        {
            "function": compiled.function.fn.__qualname__,
            "arguments": [str(argument) for argument in compiled.arguments],
            "seconds": compiled.seconds,
            "stages": [
                {"name": name, "text": _text(parsed, compiled, name)}
                | ({} if name not in compiled.stages.seconds else
                   {"seconds": compiled.stages.seconds[name]})
                for name in wanted
            ],
        }
    )  # fmt: skip


# Differences -----------------------------------------------------------------------------------


def _diff(parsed: argparse.Namespace, compiled: Compiled, path: Path, name: str) -> int:
    """Show differences; the exit status is 0 without any, as of `diff`, else 1."""
    pairs = _pairs(parsed, compiled, path, name)
    found: list[dict[str, Any]] = []
    any_found = False
    for old, new, old_text, new_text in pairs:
        lines = difference(old_text, new_text, old, new)
        any_found |= bool(lines)
        if parsed.json:
            found.append({"old": old, "new": new, "difference": lines})
        console.print_difference([] if parsed.json else lines)
    if parsed.json:
        console.print_json(found)
    return int(any_found)


def _pairs(
    parsed: argparse.Namespace, compiled: Compiled, path: Path, name: str
) -> list[tuple[str, str, str, str]]:
    """Return the two names and the two texts of each comparison."""
    other, stage = parsed.diff, parsed.stage
    if other == PREVIOUS:
        names = list(compiled.stages.names)
        texts = {one: _text(parsed, compiled, one) for one in names}
        chosen = names[1:] if stage in ("", ALL) else [one for one in names[1:] if one == stage]
        pairs = [(names[names.index(one) - 1], one) for one in chosen]
        return [(old, new, texts[old], texts[new]) for old, new in pairs]
    if not stage or stage == ALL:
        raise DSLRuntimeError(
            "--diff compares one stage", hint="add --stage NAME, or write --diff previous"
        )
    mine = _text(parsed, compiled, stage)
    if other.startswith("-"):
        theirs = _compile(parsed, path, name, f"{parsed.options} {other}")
        old = f"{stage} {parsed.options}".strip()
        return [(old, f"{stage} {other}", mine, _text(parsed, theirs, stage))]
    file, function = _place(other)
    if "::" in other or file.exists():
        theirs = _compile(parsed, file, function or name, parsed.options)
        return [
            (f"{path}::{name}", f"{file}::{function or name}", mine, _text(parsed, theirs, stage))
        ]
    return [(stage, other, mine, _text(parsed, compiled, other))]


# Watching --------------------------------------------------------------------------------------


def _watch(parsed: argparse.Namespace) -> int:
    """Show in a new process each time that a file is saved; ends with Ctrl-C."""
    files = [_place(parsed.place)[0]]
    if parsed.diff and (other := _place(parsed.diff)[0]).is_file():
        files.append(other)
    arguments = [one for one in sys.argv[1:] if one != "--watch"]
    known = None
    while True:
        now = [path.stat().st_mtime_ns if path.exists() else 0 for path in files]
        if now != known:
            known = now
            print(console.coloured(time.strftime("---- %H:%M:%S"), "bold"), flush=True)
            subprocess.run([sys.executable, "-m", "basedsl", *arguments], check=False)
        time.sleep(_POLL_SECONDS)


SHOW_COMMAND = Command(
    "show", "the stages of a function, compiled without running it", _configure, _run
)
