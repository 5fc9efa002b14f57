"""Kernels as MLIR text, taken through the product's pipelines for the tests of lowering."""

from __future__ import annotations

import pytest

from basedsl.mlir import MLIRContext, load_bindings
from basedsl.objectstage import run_pipeline
from basedsl_cute import dialect
from basedsl_cute.dsl.pipelines import KernelOptions, gpu_pipeline, simulator_pipeline
from basedsl_cute.hardware.targets import TARGETS

ARGUMENTS = {
    "%g": '!cute.memref<f32, "gmem align<16>", "(?):(1)">',
    "%n": '!cute.memref<i32, "gmem", "(?):(1)">',
    "%d": '!cute.memref<f64, "gmem", "(?):(1)">',
    "%h": '!cute.memref<f16, "gmem align<16>", "(?):(1)">',
    "%o": '!cute.memref<i1, "gmem", "(?):(1)">',
    "%f8": '!cute.memref<f8E4M3FN, "gmem align<16>", "(?):(1)">',
    "%i": "i32",
    "%l": "i64",
    "%x": "f32",
    "%p": "i1",
}


class Lowering:
    """Shortens what these tests do over and over."""

    def __init__(self, context: MLIRContext) -> None:
        self.context = context
        self.ir = context.bindings.ir

    def kernel(self, body: str, arguments: str | None = None, attributes: str = "") -> str:
        """A module with one kernel `k`; without `arguments`, those of `ARGUMENTS`."""
        if arguments is None:
            arguments = ", ".join(f"{name}: {kind}" for name, kind in ARGUMENTS.items())
        return (
            "module attributes {gpu.container_module} { gpu.module @kernels {\n"
            f"gpu.func @k({arguments}) kernel {attributes} {{\n{body}\ngpu.return\n}} }} }}"
        )

    def stages(self, text: str, target: str = "sm_90a", options: KernelOptions | None = None):
        """All stages down to machine code."""
        with self.context.entered():
            module = self.ir.Module.parse(text)
            pipeline = gpu_pipeline(TARGETS[target], options or KernelOptions())
            return run_pipeline(pipeline, module, self.context)

    def lowered(self, body: str, **more) -> str:
        """The kernel after `lower-cute`."""
        with self.context.entered():
            module = self.ir.Module.parse(self.kernel(body, **more))
            pipeline = simulator_pipeline(TARGETS["sim"]).until("lower-cute")
            return run_pipeline(pipeline, module, self.context).text("lower-cute")

    def ptx(self, body: str, target: str = "sm_90a", options: KernelOptions | None = None, **more):
        """The kernel's PTX (not assembled)."""
        with self.context.entered():
            module = self.ir.Module.parse(self.kernel(body, **more))
            pipeline = gpu_pipeline(TARGETS[target], options or KernelOptions()).until("ptx")
            return run_pipeline(pipeline, module, self.context).artifact


@pytest.fixture(scope="session")
def cute_context():
    """An `MLIRContext` with the cute dialect loaded."""
    return MLIRContext(load_bindings(needs=("irdl",)), dialect.load)


@pytest.fixture
def lowering(cute_context):
    return Lowering(cute_context)
