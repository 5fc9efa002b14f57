"""Golden files: whole texts (PTX, IR) kept beside the tests, found by the test's name.

The `golden` fixture of a conftest makes one `Golden` for each test:

    def golden(request): return Golden.of_request(request)

`pytest --update-golden` writes what tests produce; without it a missing file fails the test.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

OPTION = "--update-golden"


def add_option(parser: Any) -> None:
    """Add `--update-golden` to pytest; call it in `pytest_addoption` of a conftest."""
    parser.addoption(
        OPTION, action="store_true", default=False, help="write golden files instead of comparing"
    )


@dataclass(frozen=True)
class Golden:
    """The golden files of one test. `stem` is their path without suffix; `update` rewrites them."""

    stem: Path
    update: bool = False

    @classmethod
    def of_request(cls, request: Any) -> Golden:
        """Made from pytest's `request`: `golden/<test file>/<test name>` beside the test file."""
        path: Path = request.node.path
        name = re.sub(r"[^\w.-]+", "_", request.node.name).strip("_")
        return cls(path.parent / "golden" / path.stem / name, request.config.getoption(OPTION))

    def path(self, suffix: str = ".txt") -> Path:
        """Return the path of the file with this suffix."""
        return self.stem.with_name(self.stem.name + suffix)

    def check(self, text: str, suffix: str = ".txt") -> None:
        """Assert that the golden file holds `text`; write it when updating. A missing one fails."""
        __tracebackhide__ = True
        path = self.path(suffix)
        if not text.endswith("\n"):
            text += "\n"
        if self.update:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            return
        if not path.exists():
            raise AssertionError(f"no golden file {path}; pytest {OPTION} writes it")
        expected = path.read_text(encoding="utf-8")
        if expected != text:
            diff = difflib.unified_diff(
                expected.splitlines(), text.splitlines(), path.name, "this run", lineterm=""
            )
            raise AssertionError(
                "\n".join([f"{path.name} differs; pytest {OPTION} accepts the new text", *diff])
            )
