"""Kernels for the simulator's tests: MLIR text in, a translated kernel and a runner out."""

from __future__ import annotations

import re

import numpy as np
import pytest
from basedsl_cute.sim import Memory, SimOptions, translate

from basedsl.mlir import load_bindings

# Every kernel's operations sit in this file, on the line of their text: what errors name.
FILE = "kernel.py"


class Kernel:
    """A translated kernel with the names of its parameters."""

    def __init__(self, ir, text: str, params: str) -> None:
        with ir.Context():
            self.sim = translate(ir.Module.parse(text), "k")
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
    def __init__(self, ir) -> None:
        self.ir = ir

    def __call__(self, params: str, body: str, outside: str = "") -> Kernel:
        """A kernel `k` with these parameters; each line of `body` is a line of kernel.py."""
        lines = [line for line in body.strip("\n").splitlines()]
        text = f"gpu.module @kernels {{\n{outside}\n gpu.func @k({params}) kernel {{\n"
        text += "\n".join(lines) + "\n gpu.return\n }\n}\n"
        skip = text[: text.index(lines[0])].count("\n")
        return Kernel(self.ir, self._located(text, skip), params)

    def _located(self, text: str, skip: int) -> str:
        """The module with locations in kernel.py, where line 1 is the body's first line."""
        with self.ir.Context() as context:
            module = self.ir.Module.parse(text, context)
            printed = module.operation.get_asm(enable_debug_info=True, pretty_debug_info=False)
        def moved(match: re.Match[str]) -> str:
            return f'loc("{FILE}":{max(int(match[1]) - skip, 1)}:'

        return re.sub(r'loc\("-":(\d+):', moved, printed)


@pytest.fixture(scope="session")
def ir():
    return load_bindings(needs=("gpu", "nvvm", "llvm")).ir


@pytest.fixture(scope="session")
def kernel(ir):
    """`kernel(params, body, outside="")` translates; calling the result runs it."""
    return Maker(ir)


@pytest.fixture
def rng():
    return np.random.default_rng(20260101)
