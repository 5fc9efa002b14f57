"""`basedsl explore FILE`: the page, following the file as it is saved."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
import webbrowser
from pathlib import Path
from typing import Any

from basedsl.errors import DSLRuntimeError
from basedsl.explorer.record import failed, record
from basedsl.explorer.server import Server, Versions, page
from basedsl.inspection.program import read_text
from basedsl.plugin import Command

_POLL_SECONDS = 0.2
_LONGEST_RUN_SECONDS = 600


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "place",
        metavar="FILE[::FUNCTION]",
        help="without FUNCTION, runs the program and shows what it compiles",
    )
    parser.add_argument(
        "--arg", action="append", default=[], metavar="ARG", help="as in `basedsl show`"
    )
    parser.add_argument("--options", default="", help="compile options of FUNCTION")
    parser.add_argument("--port", type=int, default=0, help="the port; by default a free one")
    parser.add_argument("--no-browser", action="store_true", help="print the address alone")
    parser.add_argument("--export", type=Path, metavar="HTML", help="write the page to a file")
    parser.add_argument("--record", type=Path, help=argparse.SUPPRESS)


def _run(parsed: argparse.Namespace) -> int:
    file, _, name = parsed.place.partition("::")
    path = Path(file)
    if parsed.record is not None:
        made = record(parsed.manager, path, name, parsed.arg, parsed.options)
        parsed.record.write_text(json.dumps(made), encoding="utf-8")
        return 0
    read_text(path)  # a file that is not there is an error at once
    if parsed.export is not None:
        return _export(parsed, path)
    versions = Versions()
    try:
        server = Server(versions, parsed.port)
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else "ports are 0 to 65535"
        raise DSLRuntimeError(f"port {parsed.port} cannot be used: {reason}") from None
    server.start()
    print(server.address, flush=True)
    if not parsed.no_browser:
        webbrowser.open(server.address)
    try:
        _follow(parsed, path, versions)
    finally:
        server.stop()
    return 0


def _export(parsed: argparse.Namespace, path: Path) -> int:
    versions = Versions()
    versions.add(_recorded(parsed, path))
    (made,) = versions.since(0)
    parsed.export.write_text(page([made], follows=False), encoding="utf-8")
    if made["error"]:
        print(made["error"], file=sys.stderr)
    return int(bool(made["error"]))


def _follow(parsed: argparse.Namespace, path: Path, versions: Versions) -> None:
    """Record each version of the file, until Ctrl-C."""
    known = None
    while True:
        now = path.stat().st_mtime_ns if path.exists() else 0
        if now != known:
            known = now
            versions.add(_recorded(parsed, path))
        time.sleep(_POLL_SECONDS)


def _recorded(parsed: argparse.Namespace, path: Path) -> dict[str, Any]:
    """Record the file as it is now, in a new process."""
    with tempfile.TemporaryDirectory(prefix="basedsl-") as folder:
        target = Path(folder, "record.json")
        command = [sys.executable, "-m", "basedsl", "explore", parsed.place]
        command += [f"--arg={one}" for one in parsed.arg]
        command += [f"--options={parsed.options}", f"--record={target}"]
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
                timeout=_LONGEST_RUN_SECONDS,
            )
        except subprocess.TimeoutExpired:
            return failed(path, f"the program ran longer than {_LONGEST_RUN_SECONDS} seconds")
        if not target.exists():
            said = done.stderr.strip()[-4000:]
            return failed(path, f"the program ended with status {done.returncode}\n{said}")
        made: dict[str, Any] = json.loads(target.read_text(encoding="utf-8"))
        return made


EXPLORE_COMMAND = Command(
    "explore",
    "a local page with every stage of a file's functions, as it is saved",
    _configure,
    _run,
)
