"""The pipeline `cute-to-nvvm`, as values.

    lower-cute   cute ops -> scf, arith, math, vector, llvm, nvvm, gpu   (what the simulator takes)
    nvvm         -> llvm and nvvm ops only
    ptx          -> PTX text, by LLVM in this process
    cubin        -> machine code and resource report, by ptxas

The passes are as few as kernels need: each one costs every compilation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from basedsl.errors import CompilerBug
from basedsl.objectstage import Pipeline, PipelineContext, Step
from basedsl_cute.lowering import ptxas
from basedsl_cute.lowering.rewriter import Rewriter
from basedsl_cute.lowering.rules import RULES
from basedsl_cute.lowering.targets import Target

# Math on vectors, integer division that floors and the like are spelled out first; then one pass
# takes arith, cf, gpu, math (as libdevice calls) and vector to llvm and nvvm, and another turns
# nvvm ops without an intrinsic into inline PTX.
TO_NVVM = (
    "gpu.module("
    "convert-scf-to-cf,"
    "convert-gpu-to-nvvm,"
    "convert-nvvm-to-llvm,"
    "reconcile-unrealized-casts,"
    "canonicalize,"
    "cse)"
)


@dataclass(frozen=True)
class LowerCute:
    """The step `lower-cute` for a target (its name only shows in messages)."""

    target: str

    def __call__(self, op: Any, context: PipelineContext) -> None:
        Rewriter(context.bindings, RULES, self.target).run(op)


@dataclass(frozen=True)
class EmitPTX:
    """Every gpu.module of the module -> PTX text, through MLIR's `gpu-module-to-binary`."""

    target: Target
    opt_level: int = 3

    def __call__(self, op: Any, context: PipelineContext) -> str:
        bindings = context.bindings
        chip = f"chip={self.target.name} features={self.target.features} O={self.opt_level}"
        manager = bindings.passmanager.PassManager.parse(
            f"builtin.module(nvvm-attach-target{{{chip}}},gpu-module-to-binary{{format=isa}})"
        )
        copy = op.clone()
        manager.enable_verifier(False)
        manager.run(copy.operation)
        texts = []
        for inner in copy.regions[0].blocks[0].operations:
            if inner.operation.name == "gpu.binary":
                objects = bindings.ir.ArrayAttr(inner.attributes["objects"])
                texts += [bindings.gpu.ObjectAttr(o).object.decode() for o in objects]
        if len(texts) != 1:
            raise CompilerBug(f"expected one gpu.module, found {len(texts)}")
        return texts[0].rstrip("\0")


@dataclass(frozen=True)
class Assemble:
    """PTX text -> machine code. What ptxas reports is left in `context.state["assembly"]`."""

    target: Target
    line_info: bool = False
    options: tuple[str, ...] = ()

    def __call__(self, op: Any, context: PipelineContext) -> bytes:
        made = ptxas.assemble(
            context.artifact, self.target.name, line_info=self.line_info, options=self.options
        )
        context.state["assembly"] = made
        return made.cubin


def lower_cute(target: Target) -> Step:
    """The step that both targets share."""
    return Step("lower-cute", LowerCute(target.name))


def ptx_steps(target: Target) -> tuple[Step, ...]:
    """From lowered kernels to PTX, and on to machine code if there is a ptxas."""
    steps = (Step("nvvm", TO_NVVM), Step("ptx", EmitPTX(target), verify=False, suffix=".ptx"))
    if ptxas.find_ptxas() is None:
        return steps
    return (*steps, Step("cubin", Assemble(target), verify=False, suffix=".cubin"))


def cute_to_nvvm(target: Target) -> Pipeline:
    """cute -> PTX -> machine code; without ptxas the artifact is PTX, for the driver to compile."""
    return Pipeline("cute-to-nvvm", (lower_cute(target), *ptx_steps(target)), input="cute")
