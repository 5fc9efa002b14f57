"""An import of a DSL loads no module that only some programs need, and changes no import."""

from __future__ import annotations

import datetime
import decimal
import fractions
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import basedsl
from basedsl.loaded_classes import loaded_classes

#: Modules of the standard library that errors, the simulator, plugins, the command line or pictures
#: need.
LATER = (
    "argparse", "decimal", "difflib", "email", "fractions", "html", "importlib.abc",
    "importlib.metadata", "pkgutil", "queue", "subprocess", "uuid", "zipfile",
)  # fmt: skip

#: Rooms of the packages that the first compilation, a launch or some kernels load.
ROOMS = ("aot", "arch", "executors", "lowering", "nvgpu", "ops", "pipeline", "sim", "utils")

PROGRAM = """
import sys
import numpy
before = set(sys.modules)
import {package}
{package}.jit
from {module} import {dsl}
{dsl}.options  # asks plugins
print(*sorted(set(sys.modules) - before))
"""


#: What only calls and compilations need: naming a decorator loads none of it.
COMPILERS = (
    "basedsl.driver", "basedsl.metastage", "basedsl.native_call",
    "basedsl.objectstage", "basedsl.prestage", "basedsl_cute.algebra", "basedsl_cute.device",
    "basedsl_cute.dialect", "basedsl_cute.hardware", "basedsl_cute.host", "basedsl_cute.tensors",
)  # fmt: skip


def test_the_decorators_load_nothing_of_what_compiles():
    program = "import sys, basedsl_cute as cute; cute.jit; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = done.stdout.split()
    assert "basedsl.dsl" in loaded
    assert [name for name in loaded if name.startswith(COMPILERS)] == []


@pytest.mark.parametrize(
    ("module", "dsl"), [("basedsl_toy.dsl", "TOY"), ("basedsl_cute.dsl.cute", "CUTE")]
)
def test_an_import_loads_no_module_that_few_programs_need(module, dsl):
    package = module.partition(".")[0]
    program = PROGRAM.format(package=package, module=module, dsl=dsl)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = done.stdout.split()
    assert package in loaded and f"{package}.dsl" in loaded
    assert [name for name in loaded if name in LATER] == []
    assert [
        name for name in loaded if name.startswith(tuple(f"{package}.{x}" for x in ROOMS))
    ] == []


FINDERS = """
import importlib, pkgutil, sys
finders = list(sys.meta_path)
import basedsl_cute
# Second paths of one module, and what needs JAX or PyTorch, are left out.
OTHERS = "basedsl_cute.cute.", "basedsl_cute.jax", "basedsl_cute.interop.jax"
OTHERS += "basedsl_cute.ops.gemm.torch_matmul", "basedsl_cute.ops.layer.torch_"
OTHERS += "basedsl_cute.ops.torch_", "basedsl_cute.ops.flash.torch_attention"
for module in pkgutil.walk_packages(basedsl_cute.__path__, "basedsl_cute."):
    if not module.name.startswith(OTHERS):
        importlib.import_module(module.name)
assert importlib.import_module("basedsl_cute.cute.nvgpu") is basedsl_cute.nvgpu
added = [type(finder) for finder in sys.meta_path if finder not in finders]
print([cls for cls in added if cls.__module__.startswith("basedsl_cute.")])
"""


COMMON = """
import sys
import numpy
import basedsl_cute as cute

@cute.kernel
def kernel(x: cute.Tensor):
    x[cute.arch.thread_idx()[0]] = 1.0

@cute.jit
def host(x: cute.Tensor):
    cute.utils.SmemAllocator()
    cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32)
    kernel(x).launch(grid=1, block=4)

x = numpy.zeros(4, numpy.float32)
host(x)
assert x.tolist() == [1.0] * 4
names = "lowering.ptx", "nvgpu.t", "nvgpu.w", "sim.rules.tcgen05", "utils.blackwell", "utils.hopper"
print(*(name for name in sys.modules if name.startswith(tuple(f"basedsl_cute.{n}" for n in names))))
"""


def test_a_common_kernel_on_the_simulator_loads_nothing_of_other_architectures(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(COMMON)
    done = subprocess.run(
        [sys.executable, str(program)],
        env={**os.environ, "CUTE_DSL_ARCH": "sim", "BASEDSL_CACHE": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == []


def test_the_core_names_no_plugin_and_no_other_system():
    root = Path(basedsl.__file__).parent
    files = [one for one in root.rglob("*.py") if "conformance" not in one.parts]
    names = re.compile(r"\b(cute|basedsl_cute|cutlass|triton)\b", re.IGNORECASE)
    assert len(files) > 200
    assert not [str(one) for one in files if names.search(one.read_text(encoding="utf-8"))]


def test_no_module_of_cute_puts_a_finder_into_pythons_import_system():
    done = subprocess.run(
        [sys.executable, "-c", FINDERS], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_classes_of_modules_that_are_not_loaded_have_no_objects(monkeypatch):
    names = ("decimal.Decimal", "fractions.Fraction", "datetime.date", "datetime.nothing")
    assert loaded_classes(*names) == (decimal.Decimal, fractions.Fraction, datetime.date)
    monkeypatch.delitem(sys.modules, "fractions")
    assert loaded_classes(*names) == (decimal.Decimal, datetime.date)
