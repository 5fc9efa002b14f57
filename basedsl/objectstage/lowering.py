"""The standard steps from upstream dialects to native code, and the pipeline made of them.

In: scf, cf, arith, math, memref, vector, func, index, llvm. Out: object code. A DSL puts its own
steps first (`native_pipeline(extra_steps=...)`) or builds a pipeline from the pieces here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from basedsl.mlir import new_function
from basedsl.objectstage import asserts, native
from basedsl.objectstage.bfloat16 import exact_bfloat16
from basedsl.objectstage.failure import reject
from basedsl.objectstage.native import NativeTarget
from basedsl.objectstage.pipeline import Pipeline, PipelineContext, Step
from basedsl.objectstage.snapshot import Snapshot
from basedsl.objectstage.storage_floats import spell_out_storage_floats

# log1p must not become log(1 + x), which has no correct digit for small x.
TO_LLVM = (
    "lower-affine",
    "convert-scf-to-cf",
    "convert-math-to-llvm{approximate-log1p=false}",
    "convert-math-to-libm",
    "convert-to-llvm",
    "reconcile-unrealized-casts",
)


@dataclass(frozen=True)
class ToLLVMIR:
    """The pass from an LLVM-dialect module to LLVM IR text, by MLIR's translation.

    An operation of another dialect is an error first: the bindings crash where translation fails.
    """

    def __call__(self, op: Any, context: PipelineContext) -> str:
        names = context.operations
        if names is None or any(not _translates(name) for name in names):
            _refuse_leftovers(op, context)
        text: str = context.bindings.llvm.translate_module_to_llvmir(op)
        return text


def _translates(name: str) -> bool:
    return name.startswith(("llvm.", "nvvm.", "gpu.")) or name == "builtin.module"


def _refuse_leftovers(op: Any, context: PipelineContext) -> None:
    ir = context.bindings.ir
    left: list[Any] = []

    def visit(inner: Any) -> Any:
        if inner.name == "gpu.module":  # code for another machine is not translated
            return ir.WalkResult.SKIP
        if not _translates(inner.name):
            left.append(inner)
        return ir.WalkResult.ADVANCE

    op.walk(visit, ir.WalkOrder.PRE_ORDER)
    # Casts and functions are left because another op was not lowered: name that op.
    left.sort(key=lambda one: (one.name == CAST, one.name.startswith("func.")))
    if left and left[0].name == CAST:
        types = f"{left[0].operands[0].type} to {left[0].results[0].type}"
        reject(left[0], f"a conversion from {types} is left over, which this target cannot do")
    if left:
        reject(left[0], f"failed to legalize operation '{left[0].name}'")


CAST = "builtin.unrealized_conversion_cast"


@dataclass(frozen=True)
class Optimise:
    """The pass from LLVM IR text to optimised bitcode."""

    target: NativeTarget

    #: Python calls the code by its entry, which the driver adds to the stage `llvmir`.
    of_host = True

    def __call__(self, op: Any, context: PipelineContext) -> Snapshot:
        return Snapshot(native.optimise(context.artifact, self.target), native.BITCODE, ".ll")


@dataclass(frozen=True)
class EmitObject:
    """The pass from bitcode to object code."""

    target: NativeTarget

    def __call__(self, op: Any, context: PipelineContext) -> bytes:
        return native.emit_object(context.artifact, self.target)


def libm_where_exact(op: Any, context: PipelineContext) -> Snapshot | None:
    """The pass that calls libm's expm1: MLIR would make it exp(x) - 1, which has no correct digit
    for small x.
    """
    if not context.may_contain("math.expm1"):
        return context.input
    ir = context.bindings.ir
    found: list[Any] = []

    def visit(inner: Any) -> Any:
        if inner.name == "math.expm1":
            found.append(inner)
        return ir.WalkResult.ADVANCE

    op.walk(visit)
    declared: set[str] = set()
    body = op.regions[0].blocks[0]
    for one in found:
        kind = one.results[0].type
        name = {"f32": "expm1f", "f64": "expm1"}.get(str(kind))
        if name is None:
            continue
        if name not in declared:
            declared.add(name)
            with ir.InsertionPoint.at_block_begin(body), one.location:
                new_function(ir, name, [kind], [kind], body=False)
        with ir.InsertionPoint(one), one.location:
            callee = {"callee": ir.FlatSymbolRefAttr.get(name)}
            call = ir.Operation.create(
                "func.call", results=[kind], operands=[one.operands[0]], attributes=callee
            )
        one.results[0].replace_all_uses_with(call.results[0])
        one.operation.erase()
    return None


def native_steps(target: NativeTarget | None = None) -> tuple[Step, ...]:
    """Return the steps from upstream dialects to object code: stages `storage-floats`, `bfloat16`,
    `exact-math`, `buffers`, `vectors`, `llvm`, `asserts`, `llvmir`, `optimised`, `object`. `target`
    is the machine and the optimisation level, by default this machine and 2.
    """
    target = target or NativeTarget()
    return (
        Step("storage-floats", spell_out_storage_floats, verify=False),
        Step("bfloat16", exact_bfloat16, verify=False, only_for=("arith",)),
        Step("exact-math", libm_where_exact, verify=False, only_for=("math",)),
        # 2 and 16 ms for 5,000 operations even where there is nothing to do.
        Step("buffers", "expand-strided-metadata", only_for=("memref",)),
        Step("vectors", "convert-vector-to-scf,convert-vector-to-llvm", only_for=("vector",)),
        Step("llvm", TO_LLVM),
        Step("asserts", asserts.report_failures, verify=False),
        Step("llvmir", ToLLVMIR(), suffix=".ll"),
        Step("optimised", Optimise(target)),
        Step("object", EmitObject(target), suffix=".o"),
    )


def native_pipeline(
    extra_steps: tuple[Step, ...] = (),
    opt_level: int = 2,
    *,
    target: NativeTarget | None = None,
    name: str = "native",
    input: str = "input",
) -> Pipeline:
    """Return a DSL's own steps, `extra_steps`, followed by the standard ones; the artifact is
    object code for `native.load_object`.

    `opt_level` is LLVM's, 0 to 3, for this machine; a `target` that is given says both itself.
    `name` is the pipeline's, in messages; `input` is the name of the stage that goes in.
    """
    steps = native_steps(target or NativeTarget(opt_level))
    return Pipeline(name, (*extra_steps, *steps), input)
