"""The chapters about writing a DSL: their code runs, each on top of those before it."""

import importlib.util
import itertools
import linecache
import os
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

from basedsl.plugin import hookspecs

ROOT = Path(__file__).parents[2]
CHAPTERS = sorted((ROOT / "docs" / "plugins").glob("*.md"))
APART = "08_other_bindings.md"  # its bindings cannot be in a process with ours


def blocks(page):
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE)


def run(page, scope):
    for i, code in enumerate(blocks(page)):
        name = f"<{page.name} {i}>"
        linecache.cache[name] = (len(code), None, code.splitlines(True), name)
        exec(compile(code, name, "exec"), scope)


def test_the_table_of_hooks_names_each():
    text = (ROOT / "docs/plugins/09_options_hooks_commands.md").read_text()
    rows = "".join(row for row in text.splitlines() if row.startswith("|"))
    hooks = {name for name in vars(hookspecs) if name.startswith("basedsl_")}
    assert set(re.findall(r"`(basedsl_\w+)`", rows)) == hooks


def test_chapters_run_in_order(monkeypatch):
    """They are one module, whose classes exported functions name."""
    assert len(CHAPTERS) == 11
    book = types.ModuleType("book")
    monkeypatch.setitem(sys.modules, "book", book)
    scope = vars(book)
    for page in CHAPTERS:
        if page.name != APART:
            run(page, scope)


def test_the_array_dsl_of_chapter_four_is_short():
    scope = [
        code
        for page in CHAPTERS[1:4]
        for code in blocks(page)
        if "class " in code or "def clamp" in code
    ]
    lines = [line for code in scope for line in code.splitlines() if line.strip()]
    assert 60 < len(lines) < 120


@pytest.mark.slow
def test_the_chapter_about_other_bindings_runs(tmp_path):
    if importlib.util.find_spec("circt") is None:
        pytest.skip("circt is not installed: pip install 'basedsl[bindings]'")
    program = tmp_path / "chapter.py"
    program.write_text("\n".join(blocks(ROOT / "docs" / "plugins" / APART)))
    done = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, env={**os.environ}
    )
    assert done.returncode == 0, done.stderr


def test_every_chapter_is_linked():
    contents = (ROOT / "docs" / "writing_a_plugin.md").read_text()
    assert re.findall(r"plugins/(\S+\.md)", contents) == [page.name for page in CHAPTERS]
    for page, following in itertools.pairwise(CHAPTERS):
        assert f"]({following.name})" in page.read_text()
