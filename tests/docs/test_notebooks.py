"""The notebooks run: in IPython where that is installed, else cell by cell as Python does."""

import ast
import importlib.util
import json
import linecache
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "docs" / "notebooks").glob("*.ipynb"))


def cells(path):
    return [
        "".join(cell["source"])
        for cell in json.loads(path.read_text())["cells"]
        if cell["cell_type"] == "code"
    ]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_cells_run(path, monkeypatch):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sim")
    scope = {"__name__": "notebook"}
    for i, code in enumerate(cells(path)):
        name = f"<{path.stem} {i}>"
        linecache.cache[name] = (len(code), None, code.splitlines(True), name)
        exec(compile(code, name, "exec"), scope)


def test_layouts_are_shown_as_pictures(monkeypatch):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sim")
    scope, shown = {"__name__": "notebook"}, []
    for code in cells(next(path for path in NOTEBOOKS if path.stem == "layouts")):
        tree = ast.parse(code)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, "<layouts>", "exec"), scope)
        if last is not None:
            shown.append(eval(compile(ast.Expression(last.value), "<layouts>", "eval"), scope))
    assert len(shown) >= 5
    assert all(thing._repr_svg_().startswith("<svg") for thing in shown)


def test_messages_name_the_cell(monkeypatch, tmp_path):
    if importlib.util.find_spec("IPython") is None:
        pytest.skip("IPython is not installed")
    from IPython.core.interactiveshell import InteractiveShell

    monkeypatch.setenv("CUTE_DSL_ARCH", "sim")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    shell = InteractiveShell.instance()
    try:
        for code in cells(next(path for path in NOTEBOOKS if path.stem == "first_kernels")):
            shell.run_cell(code, store_history=True).raise_error()
        assert "--> cell [3], line 4\n" in shell.user_ns["message"]
    finally:
        InteractiveShell.clear_instance()
