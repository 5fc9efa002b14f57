"""Changes of tensor maps on their way to PTX."""

from __future__ import annotations

from typing import Any

from basedsl_cute.dialect import Operands
from basedsl_cute.dialect.tensor_map import FIELDS
from basedsl_cute.hardware.tensor_map_format import BYTES
from basedsl_cute.lowering.kernel.builder import Builder
from basedsl_cute.lowering.kernel.rewriter import Rewriter


def keep(b: Rewriter, op: Operands) -> None:
    """The same op."""
    operands = [getattr(op, name) for name in op.spec.operands]
    attributes = {name: getattr(op, name) for name in op.spec.attributes}
    b.emit(op.spec.full_name, [], operands, attributes)


def replace_to_ptx(b: Builder, op: Any) -> None:
    """`tensormap.replace.tile`."""
    ir = b.ir
    field = ir.StringAttr(op.attributes["field"]).value
    kind, has_ordinal = FIELDS[field]
    place, value = op.operands
    space, letter = ("shared::cta", "r") if str(place.type) == "!llvm.ptr<3>" else ("global", "l")
    ordinal = f" {ir.IntegerAttr(op.attributes['ordinal']).value}," if has_ordinal else ""
    width, register = ("b64", "l") if kind == "i64" else ("b32", "r")
    text = f"tensormap.replace.tile.{field}.{space}.b1024.{width} [$0],{ordinal} $1;"
    constraints = f"{letter},{register},~{{memory}}"
    b.assembly(text, constraints, [], [place, value], has_side_effects=True)


def release_to_ptx(b: Builder, op: Any) -> None:
    """`tensormap.cp_fenceproxy`."""
    text = (
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
        f"[$0], [$1], {BYTES};"
    )
    b.assembly(text, "l,r,~{memory}", [], list(op.operands), has_side_effects=True)
