"""LLVM's FileCheck on strings, in process, with failures that a person can read.

Uses the `filecheck` package from PyPI, which is a development dependency.
"""

from __future__ import annotations

import contextlib
import io
import re


def filecheck(text: str, checks: str, prefix: str = "CHECK") -> None:
    """Assert that `text` satisfies the `CHECK:` lines in `checks`.

        filecheck("%0 = arith.addi %a, %b : i32", "CHECK: %[[SUM:.*]] = arith.addi")

    All of FileCheck's directives work, and MLIR-style `%[[NAME:.*]]` captures; `prefix` replaces
    "CHECK". Lines in `checks` without a directive are ignored, so it can be a docstring. A failure
    is an AssertionError that shows the directive, where matching stood, the closest line, and the
    whole text.
    """
    from filecheck.finput import FInput
    from filecheck.matcher import Matcher
    from filecheck.options import Options
    from filecheck.parser import Parser, pattern_for_opts

    options = Options(match_filename="checks", check_prefixes=[prefix])
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        operations = Parser(options, io.StringIO(checks), *pattern_for_opts(options))
        matcher = Matcher(options, FInput("text", text), operations)
        matcher.stderr = said
        failed = matcher.run()
    if not failed:
        return
    __tracebackhide__ = True
    message = re.sub(r"\x1b\[[0-9;]*m", "", said.getvalue()).strip()
    raise AssertionError(f"{message}\n{_directive(message, checks)}{_numbered(text)}")


def _directive(message: str, checks: str) -> str:
    found = re.search(r"^checks:(\d+)", message, re.MULTILINE)
    lines = checks.splitlines()
    if found is None or not 0 < int(found[1]) <= len(lines):
        return ""
    return f"the check that failed:\n  {lines[int(found[1]) - 1].strip()}\n"


def _numbered(text: str) -> str:
    lines = text.splitlines()
    width = len(str(len(lines)))
    return "the text:\n" + "\n".join(f"{i:>{width}} | {line}" for i, line in enumerate(lines, 1))
