"""Changes of tensor maps as PTX."""

from __future__ import annotations

from basedsl_cute.dialect.tensor_map import FIELDS, TensormapRelease, TensormapReplace
from basedsl_cute.hardware.tensor_map_format import BYTES
from basedsl_cute.lowering.kernel.builder import Builder


def replace_to_ptx(b: Builder, op: TensormapReplace) -> None:
    """Emit `tensormap.replace.tile`."""
    kind, has_ordinal = FIELDS[op.field]
    place, value = op.map, op.value
    space, letter = ("shared::cta", "r") if str(place.type) == "!llvm.ptr<3>" else ("global", "l")
    ordinal = f" {op.ordinal}," if has_ordinal else ""
    width, register = ("b64", "l") if kind == "i64" else ("b32", "r")
    text = f"tensormap.replace.tile.{op.field}.{space}.b1024.{width} [$0],{ordinal} $1;"
    constraints = f"{letter},{register},~{{memory}}"
    b.assembly(text, constraints, [], [place, value], has_side_effects=True)


def release_to_ptx(b: Builder, op: TensormapRelease) -> None:
    """Emit `tensormap.cp_fenceproxy`."""
    text = (
        "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned "
        f"[$0], [$1], {BYTES};"
    )
    b.assembly(text, "l,r,~{memory}", [], [op.target, op.source], has_side_effects=True)
