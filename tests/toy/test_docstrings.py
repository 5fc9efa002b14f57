"""Every public name of toy has a docstring, and the examples in docstrings run."""

from __future__ import annotations

import inspect
import pkgutil
import re
import runpy
import textwrap
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import basedsl_toy
from basedsl_toy.buffer import Buffer

MODULES = [
    import_module(f"basedsl_toy.{module.name}")
    for module in pkgutil.iter_modules(basedsl_toy.__path__)
]


def undocumented(owner: Any, prefix: str) -> list[str]:
    missing = [] if inspect.getdoc(owner) else [prefix]
    if inspect.isclass(owner):
        for name, member in vars(owner).items():
            documented = inspect.isroutine(member) or isinstance(member, property | classmethod)
            if documented and not name.startswith("_"):
                missing += undocumented(member, f"{prefix}.{name}")
    return missing


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_public_names_have_docstrings(module: Any) -> None:
    assert module.__doc__
    for name, value in vars(module).items():
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__:
            if inspect.isclass(value) or inspect.isfunction(value):
                assert undocumented(value, name) == []


def examples(text: str) -> list[str]:
    """The blocks of a docstring that are indented below a line of text."""
    return [textwrap.dedent(block) for block in re.findall(r"\n\n((?:    .*\n|\n)+)", text + "\n")]


def run(code: str, folder: Path) -> dict[str, Any]:
    path = folder / "example.py"
    path.write_text(f"import numpy as np\nimport basedsl_toy as toy\n{code}")
    return runpy.run_path(str(path))


def test_the_example_of_the_package(tmp_path: Path) -> None:
    code = "".join(examples(inspect.cleandoc(basedsl_toy.__doc__ or "")))
    dot = run(code, tmp_path)["dot"]
    assert dot(np.ones(3), np.full(3, 2.0)) == 6.0


def test_the_example_of_buffer(tmp_path: Path) -> None:
    (code,) = examples(inspect.getdoc(Buffer) or "")
    numbers = np.arange(3, dtype=np.int32)
    run(code, tmp_path)["double"](numbers)
    assert numbers.tolist() == [0, 2, 4]
