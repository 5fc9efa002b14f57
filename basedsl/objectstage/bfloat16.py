"""BFloat16 on a CPU: arithmetic in Float32, each result rounded once.

Left to LLVM, hosts with AVX512-BF16 flush denormals and fold roundings away, so the same program
would compute other numbers there.
"""

from __future__ import annotations

from typing import Any

from basedsl.objectstage.pipeline import PipelineContext
from basedsl.objectstage.snapshot import Snapshot

_EMULATE = "arith-emulate-unsupported-floats{source-types=bf16 target-type=f32}"
_EXPAND = "arith-expand{include-bf16=true}"


def exact_bfloat16(op: Any, context: PipelineContext) -> Snapshot | None:
    """The pass that expands bf16 arithmetic and conversions; nothing changes if there is none."""
    if not context.may_use("arith") or not _has_bfloat16(op, context):
        return context.input
    ir = context.bindings.ir
    _run_passes(_EMULATE, op, context)
    plain = ir.Attribute.parse("#arith.fastmath<none>")

    def visit(inner: Any) -> Any:
        # The pass marks its conversions as contractible: two operations would round once.
        if inner.name in ("arith.extf", "arith.truncf") and "fastmath" in inner.attributes:
            inner.attributes["fastmath"] = plain
        return ir.WalkResult.ADVANCE

    op.walk(visit)
    _run_passes(_EXPAND, op, context)
    return None


def _has_bfloat16(op: Any, context: PipelineContext) -> bool:
    ir = context.bindings.ir
    found = False
    others: set[Any] = set()  # types that were printed already
    advance, interrupt = ir.WalkResult.ADVANCE, ir.WalkResult.INTERRUPT

    def visit(inner: Any) -> Any:
        nonlocal found
        if inner.name.startswith("arith."):
            for result in inner.results:
                kind = result.type
                if kind not in others:
                    if "bf16" in str(kind):
                        found = True
                        return interrupt
                    others.add(kind)
        return advance

    op.walk(visit)
    return found


def _run_passes(passes: str, op: Any, context: PipelineContext) -> None:
    manager = context.bindings.passmanager.PassManager.parse(f"builtin.module({passes})")
    manager.run(op)
