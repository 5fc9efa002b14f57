"""Text for people and for programs: colours on a terminal alone, differences, JSON, errors."""

from __future__ import annotations

import argparse
import json
import os
import sys
from typing import Any, TextIO

from basedsl.errors import DSLError

_CODES = {"bold": "1", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


def coloured(text: str, colour: str, stream: TextIO | None = None) -> str:
    """Return `text` in a colour if `stream` (by default standard output) is a terminal.

    The variable NO_COLOR turns colours off (https://no-color.org).
    """
    stream = sys.stdout if stream is None else stream
    if not stream.isatty() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    return f"\x1b[{_CODES[colour]}m{text}\x1b[0m"


def show_problem(text: str) -> None:
    """Write one line about what is wrong to standard error."""
    print(f"{coloured('error', 'red', sys.stderr)}: {text}", file=sys.stderr)


def show_error(error: DSLError) -> None:
    """Write an error with its source lines, notes and hint to standard error."""
    show_problem(str(error))


def add_json(parser: argparse.ArgumentParser) -> None:
    """Add the argument `--json` of commands that have an answer for programs."""
    parser.add_argument("--json", action="store_true", help="write JSON, for programs")


def print_json(value: Any) -> None:
    """Write a value as indented JSON."""
    print(json.dumps(value, indent=2))


def print_difference(lines: list[str]) -> None:
    """Write a unified difference, additions green and removals red."""
    for line in lines:
        colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
        print(line if colour is None else coloured(line, colour))
