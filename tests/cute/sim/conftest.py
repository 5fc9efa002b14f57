"""Kernels for the simulator's tests: MLIR text in, a translated kernel and a runner out."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from basedsl.mlir import load_bindings
from basedsl_cute.sim import Memory, SimKernel, SimOptions
from basedsl_cute.sim.translate.records import read_kernel

sys.path.insert(0, str(Path(__file__).parent))  # of kernel_parts

# Every kernel sits in a file of this name, so that errors have lines to point at.
FILE = "kernel.mlir"


class Kernel:
    """A translated kernel, as it comes out of a cache, with the names of its parameters."""

    def __init__(self, ir, path, params: str) -> None:
        with ir.Context():
            record = read_kernel(ir.Module.parseFile(str(path)), "k")
        self.sim = SimKernel.unpack(SimKernel(record).pack(), lambda: record)
        self.params = re.findall(r"%(\w+)", params)

    def once(self, grid, block, args, *, read_only=(), smem=0, **options):
        """Run at one width; arrays are changed in place."""
        memory = Memory()
        values = []
        for name, value in zip(self.params, args, strict=True):
            if isinstance(value, np.ndarray):
                value = memory.add_array(value, name, writable=name not in read_only)
            values.append(value)
        self.sim.launch(
            grid, block, values, memory=memory, dynamic_smem=smem, options=SimOptions(**options)
        )

    def __call__(self, grid, block, *args, **options):
        """Run at every width the kernel allows, demand equal results, and return the arrays."""
        results = []
        for width in self.sim.widths:
            own = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
            self.once(grid, block, own, width=width, **options)
            results.append([a for a in own if isinstance(a, np.ndarray)])
        for other in results[1:]:
            for a, b in zip(results[0], other, strict=True):
                assert a.tobytes() == b.tobytes(), "widths give different results"
        return results[0]


class Maker:
    def __init__(self, ir, folder) -> None:
        self.ir = ir
        self.folder = folder
        self.count = 0

    def __call__(self, params: str, body: str, outside: str = "") -> Kernel:
        """A kernel `k` with these parameters; its line n is line n of kernel.mlir."""
        head = f"gpu.module @kernels {{ {outside} gpu.func @k({params}) kernel {{"
        text = " ".join(head.split()) + body.rstrip() + "\ngpu.return\n}}\n"
        self.count += 1
        path = self.folder / str(self.count) / FILE
        path.parent.mkdir()
        path.write_text(text)
        return Kernel(self.ir, path, params)


@pytest.fixture(scope="session")
def ir():
    return load_bindings(needs=("gpu", "nvvm", "llvm")).ir


@pytest.fixture(scope="session")
def kernel(ir, tmp_path_factory):
    """`kernel(params, body, outside="")` translates; calling the result runs it."""
    return Maker(ir, tmp_path_factory.mktemp("kernels"))


@pytest.fixture
def rng():
    return np.random.default_rng(20260101)


_MLIR = {
    "bool": "i1",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
}


THREAD = """
%thread_in_block = gpu.thread_id x
%block = gpu.block_id x
%threads = gpu.block_dim x
%block_start = arith.muli %block, %threads : index
%number = arith.addi %block_start, %thread_in_block : index
%thread = arith.index_cast %number : index to i64
%count = arith.constant {} : i64
%inside = arith.cmpi ult, %thread, %count : i64
scf.if %inside {{"""


class Elementwise:
    """Runs straight-line code on arrays, one element per thread."""

    def __init__(self, kernel) -> None:
        self.kernel = kernel

    def __call__(self, lines: str, results: dict, **inputs):
        """`lines` read %name of each input and define each %name of `results` (name: dtype)."""
        size = len(next(iter(inputs.values())))
        arrays = inputs | {name: np.zeros(size, dtype) for name, dtype in results.items()}
        before, after = [], []
        for name, array in arrays.items():
            type_ = _MLIR[array.dtype.name]
            at = (
                f"%at_{name} = llvm.getelementptr %p_{name}[%thread] : "
                f"(!llvm.ptr<1>, i64) -> !llvm.ptr<1>, {'i8' if type_ == 'i1' else type_}"
            )
            if name in inputs:
                before += [at, f"%{name} = llvm.load %at_{name} : !llvm.ptr<1> -> {type_}"]
            else:
                after += [at, f"llvm.store %{name}, %at_{name} : {type_}, !llvm.ptr<1>"]
        body = "\n".join([THREAD.format(size), *before, lines, *after, "}"])
        params = ", ".join(f"%p_{name}: !llvm.ptr<1>" for name in arrays)
        k = self.kernel(params, body)
        got = k(-(-size // 96), 96, *arrays.values())
        return dict(zip(results, got[len(inputs) :], strict=True))


@pytest.fixture(scope="session")
def elementwise(kernel):
    return Elementwise(kernel)
