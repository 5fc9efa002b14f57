"""docs/errors.md: a section for each error class, whose first snippet fails with it and whose
second runs.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import linecache
import os
import re
from pathlib import Path

import numpy as np
import pytest

import basedsl
import basedsl_cute
import basedsl_toy

DOCS = Path(__file__).parents[2] / "docs" / "errors.md"
SECTIONS = dict(re.findall(r"^### (\w+)\n(.*?)(?=^##|\Z)", DOCS.read_text(), flags=re.S | re.M))
SNIPPETS = {
    name: re.findall(r"^```python\n(.*?)^```", text, flags=re.S | re.M)
    for name, text in SECTIONS.items()
}
# Modules that define error classes of their own.
MODULES = (
    "basedsl.errors",
    "basedsl.objectstage.asserts",
    "basedsl.objectstage.failure",
    "basedsl.option_fields",
    "basedsl.plugin.answers",
    "basedsl_cute.device.driver",
    "basedsl_cute.sim.errors",
)
# What needs a GPU, a broken plugin or a defect has no snippet.
UNTRIED = {
    "CudaDriverDependencyError",
    "CompilerBug",
    "DSLCudaRuntimeError",
    "DSLOverflowError",
    "DeadlockError",
    "LaunchError",
    "PluginError",
}


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    """The simulator, a cache of its own, and everything restored that a snippet sets."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = dict(os.environ)
    os.environ.update(CUTE_DSL_ARCH="sim", BASEDSL_CACHE_DIR=str(tmp_path / "cache"))
    yield
    os.environ.clear()
    os.environ.update(before)


def run(code, name):
    filename = f"<docs/errors.md {name}>"
    linecache.cache[filename] = len(code), None, code.splitlines(True), filename
    scope = {"toy": basedsl_toy, "cute": basedsl_cute, "np": np, "__name__": "docs"}
    with contextlib.redirect_stdout(io.StringIO()):
        exec(compile(code, filename, "exec"), scope)


def subclasses(cls):
    for sub in cls.__subclasses__():
        yield sub
        yield from subclasses(sub)


def test_every_class_has_a_section():
    for module in MODULES:
        importlib.import_module(module)
    known = {c for c in subclasses(basedsl.DSLError) if c.__module__ in MODULES}
    expected = {c.__name__ for c in known} | {"DSLError"}
    expected -= {"SimulationError"}  # the family, which its heading describes
    assert set(SECTIONS) == expected


def test_which_sections_have_snippets():
    assert {name for name, snippets in SNIPPETS.items() if not snippets} == UNTRIED


@pytest.mark.parametrize("name", sorted(set(SNIPPETS) - UNTRIED))
def test_snippets(name):
    wrong, right = SNIPPETS[name]
    with pytest.raises(basedsl.DSLError) as caught:
        run(wrong, name)
    assert type(caught.value).__name__ == name
    assert "docs/errors.md" in str(caught.value.span)
    run(right, name)
