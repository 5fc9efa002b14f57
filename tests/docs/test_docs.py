"""The Python in the documentation runs."""

import doctest
import linecache
import re
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


@pytest.mark.parametrize(
    "page",
    [
        "asynchronous.md",
        "from_cute_dsl.md",
        "attention.md",
        "matmul.md",
        "semantics.md",
    ],
)
def test_page_runs(page, monkeypatch):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sim")
    scope = {"__name__": "docs"}
    for i, code in enumerate(blocks((ROOT / "docs" / page).read_text())):
        name = f"<{page} {i}>"
        linecache.cache[name] = (len(code), None, code.splitlines(True), name)
        exec(compile(code, name, "exec"), scope)


def test_readme_session_is_what_python_prints():
    examples = doctest.DocTestParser().get_doctest(
        (ROOT / "README.md").read_text(), {}, "README.md", None, 0
    )
    assert len(examples.examples) >= 5
    results = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(examples)
    assert results.failed == 0


def test_readme_kernel_runs(monkeypatch):
    import numpy as np

    monkeypatch.setenv("CUTE_DSL_ARCH", "sim")
    (code,) = blocks((ROOT / "README.md").read_text())
    a, b = np.random.default_rng(0).standard_normal((2, 1000), np.float32)
    c = np.full(1000, np.nan, np.float32)
    name = "<README.md>"
    linecache.cache[name] = (len(code), None, code.splitlines(True), name)
    exec(compile(code, name, "exec"), {"__name__": "readme", "a": a, "b": b, "c": c})
    np.testing.assert_array_equal(c, a + b)
