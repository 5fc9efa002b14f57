"""`basedsl options`: every option of every DSL, its variables and flags."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from typing import Any

from basedsl.cli import console
from basedsl.option_fields import OptionInfo
from basedsl.options import Options
from basedsl.plugin import Command


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--dsl", help="the options of this DSL alone, with those of all DSLs")
    console.add_json(parser)


def _run(parsed: argparse.Namespace) -> int:
    manager = parsed.manager
    names = [parsed.dsl] if parsed.dsl else list(manager.dsl_names())
    records: dict[str, type[Options]] = {
        name: manager.options_class(name, manager.get_dsl(name).language.options_class)
        for name in names
    }
    if parsed.json:
        shown: dict[str, Any] = {"all DSLs": _as_json(Options.describe())}
        shown |= {name: _as_json(record.describe()) for name, record in records.items()}
        console.print_json(shown)
        return 0
    _section("all DSLs", Options.describe(), Options)
    for name, record in records.items():
        if record is not Options:
            _section(name, _own(record), record)
    every: set[type[Options]] = {Options, *records.values()}
    for one in sorted(every, key=lambda one: one.PREFIX):
        for variable, near in one.unknown_variables().items():
            guess = f", did you mean {near}?" if near else ""
            print(f"warning: nothing reads the variable {variable}{guess}", file=sys.stderr)
    return 0


def _own(record: type[Options]) -> list[OptionInfo]:
    """Return the options that a DSL adds, or whose default or text it changes."""
    core = {info.name: info for info in Options.describe()}
    return [
        info
        for info in record.describe()
        if info.name not in core
        or (info.default, info.doc) != (core[info.name].default, core[info.name].doc)
    ]


def _section(title: str, infos: Iterable[OptionInfo], record: type[Options]) -> None:
    print(console.coloured(f"{title} (variables begin with {record.PREFIX})", "bold"))
    for info in infos:
        default = ",".join(info.default) if isinstance(info.default, tuple) else info.default
        shown = "none" if default is None or default == "" else default
        changes = "; changes the code" if info.affects_output else ""
        print(f"  {info.name} ({info.type_name}, default {shown}{changes})")
        print(f"      {info.doc}")
        if info.choices:
            print(f"      one of {', '.join(map(str, info.choices))}")
        flag = "--" + info.name.replace("_", "-")
        print(f"      {', '.join((flag, *info.variables))}")
    others = record.spellings()
    if others:
        print("  other spellings")
        for spelling, meaning in others:
            print(f"      {spelling:<32} {meaning}")


def _as_json(infos: Iterable[OptionInfo]) -> list[dict[str, Any]]:
    return [
        {
            "name": info.name,
            "type": info.type_name,
            "default": info.default if info.default is None else _plain(info.default),
            "doc": info.doc,
            "affects_output": info.affects_output,
            "variables": list(info.variables),
            "choices": list(info.choices),
        }
        for info in infos
    ]


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return value if isinstance(value, bool | int | str) else str(value)


OPTIONS_COMMAND = Command(
    "options", "every option of every DSL, with its variables", _configure, _run
)
