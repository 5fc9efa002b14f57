"""macOS, for which MLIR's bindings have no wheels, simulated: what does not compile works there."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINUX_ALONE = ("numba-cuda-mlir", "cuda-bindings", "nvidia-")

# Blocked packages are as if they were not installed; the platform says that it is another.
HEAD = """
import importlib.machinery, platform, sys

MISSING = ("numba_cuda_mlir", "mlir", "circt", "cuda", "nvidia", "llvmlite")

class Finder(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        if name.partition(".")[0] in MISSING:
            return None
        return super().find_spec(name, path, target)

sys.meta_path[:] = [
    Finder if finder is importlib.machinery.PathFinder else finder for finder in sys.meta_path
]
import numpy as np  # which asks for the platform it was built for
sys.platform, platform.system = "darwin", lambda: "Darwin"
import basedsl
import basedsl_cute as cute
"""
LAYOUTS = """
rows = cute.make_layout((8, 8), stride=(8, 1))
assert str(cute.composition(rows, cute.make_layout(4, stride=2))) == "4:16"
assert str(cute.zipped_divide(rows, (4, 2))) == "((4,2),(2,4)):((8,1),(32,2))"
assert cute.make_layout((4, 4))._repr_svg_().startswith("<svg")
cute.draw(cute.make_layout((4, 4)), "picture.svg")
"""
NUMBERS = """
assert cute.Int32(5) + 3 == 8 and cute.Float32(1.5) * 2 == 3
assert basedsl.Options().parse("--opt-level 3").opt_level == 3
"""
COMPILING = """
@cute.kernel
def kernel(x: cute.Tensor):
    x[0] = 1.0

@cute.jit
def host(x: cute.Tensor):
    kernel(x).launch(grid=1, block=1)

try:
    host(np.zeros(4, np.float32))
except basedsl.DSLRuntimeError as error:
    assert "no MLIR Python bindings fit" in error.message, error
    assert error.hint.startswith("compiling needs Linux"), error.hint
else:
    raise AssertionError("it ran")
"""
DOCTOR = """
from basedsl.cli import main
assert main(["doctor"]) in (0, 1)
"""


PARTS = {"layouts": LAYOUTS, "numbers": NUMBERS, "compiling": COMPILING, "doctor": DOCTOR}


@pytest.mark.parametrize("part", PARTS.values(), ids=PARTS)
def test_what_needs_no_bindings_works(part, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(HEAD + part)
    command = [sys.executable, str(program)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=90)
    assert done.returncode == 0, done.stderr


def test_only_linux_gets_packages_that_others_lack():
    for project in (ROOT, ROOT / "plugins" / "toy", ROOT / "plugins" / "cute"):
        table = tomllib.loads((project / "pyproject.toml").read_text())["project"]
        extra = table.get("optional-dependencies", {}).get("cuda", [])
        for one in (*table["dependencies"], *extra):
            if one.startswith(LINUX_ALONE):
                assert one.endswith("; platform_system == 'Linux'"), one


def test_the_workflow_runs_commands_that_exist():
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    targets = re.findall(r"run: make ([\w-]+)", workflow)
    makefile = (ROOT / "Makefile").read_text()
    assert {"lint", "test", "docs"} <= set(targets)
    assert all(f"\n{target}: " in makefile for target in targets)
    versions = re.search(r"python: (\[.*\])", workflow)[1]
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    assert all(f"Programming Language :: Python :: {one}" in known for one in eval(versions))
