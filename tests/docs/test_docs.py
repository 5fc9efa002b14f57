"""The Python in the documentation runs."""

import doctest
import linecache
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def blocks(text):
    return re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("plugin, printed", [("toy", "6.0"), ("cute", "300.0")])
def test_readme_of_a_plugin_runs(plugin, printed, monkeypatch, capsys):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sim")
    path = ROOT / "plugins" / plugin / "README.md"
    (code,) = blocks(path.read_text())
    name = f"<{plugin} README>"
    linecache.cache[name] = (len(code), None, code.splitlines(True), name)
    exec(compile(code, name, "exec"), {"__name__": "readme"})
    assert capsys.readouterr().out == f"{printed}\n"


PAGES = sorted(
    str(path.relative_to(ROOT / "docs"))
    for path in (ROOT / "docs").rglob("*.md")
    # tests/errors runs the one, test_plugin_chapters.py the others
    if blocks(path.read_text()) and path.name != "errors.md" and path.parent.name != "plugins"
)
#: Pages of which some blocks need a package: those with this line.
NEEDS_IN_PARTS = {"several_gpus.md": "import torch\n"}
NEEDS = {"guides/pytorch.md": "torch", "guides/jax.md": "jax"}


@pytest.mark.parametrize("page", PAGES)
def test_page_runs(page, monkeypatch):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sim")
    if page in NEEDS:
        pytest.importorskip(NEEDS[page], reason=f"{NEEDS[page]} is not installed")
    run_blocks(page, lambda code: not (page in NEEDS_IN_PARTS and NEEDS_IN_PARTS[page] in code))


@pytest.mark.parametrize("page", NEEDS_IN_PARTS)
@pytest.mark.filterwarnings("ignore:collectives of group")  # which go through gloo
def test_blocks_that_need_another_package_run(page):
    package = NEEDS_IN_PARTS[page].removeprefix("import ").strip()
    torch = pytest.importorskip(package, reason=f"{package} is not installed")
    try:
        assert run_blocks(page, lambda code: NEEDS_IN_PARTS[page] in code) > 1
    finally:
        torch.distributed.destroy_process_group()


def run_blocks(page, wanted):
    """Run the blocks of a page that are `wanted`, one after another; return how many."""
    scope, count = {"__name__": "docs"}, 0
    for i, code in enumerate(filter(wanted, blocks((ROOT / "docs" / page).read_text()))):
        name = f"<{page} {i}>"
        linecache.cache[name] = (len(code), None, code.splitlines(True), name)
        exec(compile(code, name, "exec"), scope)
        count += 1
    return count


def test_no_python_hides_in_blocks_of_another_kind():
    found = {}
    for path in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")):
        fenced = re.findall(r"^ *```(\w*)\n(.*?)^ *```", path.read_text(), re.S | re.M)
        others = [code for kind, code in fenced if kind not in ("python", "console")]
        hidden = [code for code in others if re.search(r"^(import|from|def|@)\b", code, re.M)]
        if hidden:
            found[str(path.relative_to(ROOT))] = len(hidden)
    assert found == {}


def test_readme_session_is_what_python_prints():
    examples = doctest.DocTestParser().get_doctest(
        (ROOT / "README.md").read_text(), {}, "README.md", None, 0
    )
    assert len(examples.examples) >= 5
    results = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(examples)
    assert results.failed == 0


def test_the_first_program_of_the_readme_runs_when_pasted(tmp_path):
    code = blocks((ROOT / "README.md").read_text())[0]
    (tmp_path / "first.py").write_text(code)
    done = subprocess.run(
        [sys.executable, "first.py"],
        cwd=tmp_path,
        env={**os.environ, "CUTE_DSL_ARCH": "sim"},
        capture_output=True,
        text=True,
        check=False,
    )
    (printed,) = re.findall(r"^print\(.*\)  # (.*)$", code, re.MULTILINE)
    assert done.stdout == f"{printed}\n", done.stderr


def test_the_readme_is_read_in_one_screen_before_its_details():
    text = (ROOT / "README.md").read_text()
    assert text.index("\n## ") < 2600
    assert "![" in text[: text.index("\n## ")]
