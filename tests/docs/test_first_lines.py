"""First lines of docstrings have a subject and a verb: none begins with What, Whether, That, ..."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCES = (
    "basedsl", "plugins/toy/basedsl_toy", "plugins/cute/basedsl_cute", "bench", "examples", "tests",
)  # fmt: skip
REFUSED = re.compile(r"(What|Whether|That|Of|Where|As|How)\b")
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def opaque_first_lines(source: str) -> Iterator[tuple[int, str]]:
    """Yield the line number and the text of each first line that begins with a refused word."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED):
            text = ast.get_docstring(node) or ""
            if REFUSED.match(text):
                yield node.body[0].lineno, text.splitlines()[0]


def test_first_lines_have_a_subject():
    files = [path for folder in SOURCES for path in sorted((ROOT / folder).rglob("*.py"))]
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for path in files
        for line, text in opaque_first_lines(path.read_text())
    ]
    assert len(files) > 300
    assert not found, "\n".join(["begin these docstrings with a subject and a verb:", *found])


def test_a_refused_first_line_is_found():
    source = "'Where data lives.'\n\ndef f():\n    'What f does.'\n\ndef g():\n    'Return 1.'\n"
    assert list(opaque_first_lines(source)) == [(1, "Where data lives."), (4, "What f does.")]
