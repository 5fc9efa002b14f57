"""`basedsl doctor`: what is installed, found and missing, and what to do about it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from importlib import metadata
from pathlib import Path
from typing import Any

from basedsl.cache.store import default_folder
from basedsl.cli import console
from basedsl.errors import DSLError
from basedsl.findings import Finding
from basedsl.options import Options
from basedsl.plugin import Command

_LEAST_PYTHON = (3, 11)


def _configure(parser: argparse.ArgumentParser) -> None:
    console.add_json(parser)


def _run(parsed: argparse.Namespace) -> int:
    sections = {"basedsl": list(_core())}
    manager = parsed.manager
    for owner, entry in manager.dsl_entries():
        sections[f"DSL {entry.name}"] = list(_dsl(manager, owner, entry.name))
    broken = [
        Finding(one.plugin, "missing", one.reason, "install it again, or uninstall it")
        for one in manager.broken.values()
    ]
    if broken:
        sections["plugins that do not load"] = broken
    status = int(any(one.state == "missing" for found in sections.values() for one in found))
    if parsed.json:
        console.print_json(
            {title: [asdict(one) for one in found] for title, found in sections.items()}
        )
        return status
    for title, found in sections.items():
        print(console.coloured(title, "bold"))
        for one in found:
            _show(one)
    return status


def _show(one: Finding) -> None:
    colour = {"ok": "green", "optional": "yellow", "missing": "red"}[one.state]
    word = {"ok": "ok", "optional": "-", "missing": "MISSING"}[one.state]
    print(f"  {console.coloured(f'{word:<8}', colour)}{one.name:<22} {one.detail}")
    if one.todo and one.state != "ok":
        print(f"{'':<33}-> {one.todo}")


def _core() -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    right = sys.version_info >= _LEAST_PYTHON
    yield Finding(
        "Python",
        "ok" if right else "missing",
        f"{version}, {sys.executable}",
        f"use Python {'.'.join(map(str, _LEAST_PYTHON))} or later",
    )
    yield Finding("basedsl", "ok", f"{_version('basedsl')}, {Path(__file__).parents[1]}")
    for name in ("numpy", "llvmlite"):
        found = _version(name)
        yield Finding(
            name, "ok" if found else "missing", found or "not installed", f"pip install {name}"
        )
    yield _bindings()
    try:
        options = Options.from_environment()
    except DSLError as error:
        yield Finding("variables", "missing", error.message, "change or unset the variable")
        return
    yield from _folders(options)
    yield from _unknown(Options)


def _bindings() -> Finding:
    from basedsl.mlir import load_bindings

    try:
        bindings = load_bindings()
    except DSLError as error:
        return Finding("MLIR bindings", "missing", error.message, error.hint or "")
    return Finding("MLIR bindings", "ok", bindings.package)


def _folders(options: Options) -> Iterator[Finding]:
    cache = options.cache_dir or default_folder()
    if not options.cache:
        yield Finding("cache on disk", "optional", "turned off", "unset BASEDSL_CACHE=0")
    else:
        yield _writable("cache on disk", cache, "code is compiled anew in each process")
    if options.dump_dir is not None:
        yield _writable("dump folder", options.dump_dir, "no stage can be saved")


def _writable(name: str, folder: Path, without: str) -> Finding:
    place = folder
    while not place.exists() and place != place.parent:
        place = place.parent
    if place.is_dir() and os.access(place, os.W_OK | os.X_OK):
        return Finding(name, "ok", str(folder))
    return Finding(
        name,
        "optional",
        f"{folder} cannot be written: {without}",
        "make it writable, or name another folder",
    )


def _unknown(record: type[Options]) -> Iterator[Finding]:
    for name, near in record.unknown_variables().items():
        todo = f"did you mean {near}?" if near else "unset it"
        yield Finding(name, "optional", "nothing reads this variable", todo)


def _dsl(manager: Any, owner: str, name: str) -> Iterator[Finding]:
    try:
        language = manager.get_dsl(name).language
        record = manager.options_class(name, language.options_class)
        settings = record.from_environment()
    except DSLError as error:
        yield Finding(name, "missing", error.message, error.hint or f"install {owner} again")
        return
    yield Finding("loads", "ok", f"{_version(owner) or ''} {owner}".strip())
    yield from language.findings(settings)
    if record.PREFIX != Options.PREFIX:
        yield from _unknown(record)


def _version(distribution: str) -> str:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return ""


DOCTOR_COMMAND = Command(
    "doctor", "what is installed, found and missing, and what to do about it", _configure, _run
)
