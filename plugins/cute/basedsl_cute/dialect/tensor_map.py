"""The ops that change tensor maps in memory (PTX ISA 9.7.9.28, "tensormap.replace"), with IR
samples. `lower-cute` leaves them: the simulator runs them, `ptx-only` makes instructions of them.
"""

from __future__ import annotations

from typing import Any

from basedsl_cute.dialect.declare import Operands, op

# Field -> the type of its value, and whether it has one for each mode.
FIELDS = {"global_address": ("i64", False), "global_dim": ("i32", True)}
FIELDS["global_stride"] = ("i64", True)
MAX_ORDINAL = 4
_GLOBAL, _SHARED = "!llvm.ptr<1>", "!llvm.ptr<3>"


@op("tensormap_replace")
class TensormapReplace:
    """One field of the tensor map at an address in global or shared memory gets a new value.

        "cute.tensormap_replace"(%map, %value) {field = "global_dim", ordinal = 1 : i64}
            : (!llvm.ptr<3>, i32) -> ()

    `global_dim` is an extent in elements, `global_stride` the distance in bytes between elements of
    mode `ordinal` + 1.
    """

    operands = ("map", "value")
    attributes = ("field", "ordinal")

    @staticmethod
    def verify(op: Operands) -> str | None:
        field = op.text("field") or ""
        if field not in FIELDS:
            return f"{field!r} is none of the fields {', '.join(FIELDS)}"
        kind, has_ordinal = FIELDS[field]
        if str(op.value.type) != kind:
            return f"the value of {field} is {op.value.type}, not {kind}"
        most = MAX_ORDINAL if has_ordinal else 0
        if not 0 <= (op.integer("ordinal") or 0) <= most:
            return f"the ordinal of {field} is 0 to {most}"
        return _place(op.map, "map", (_GLOBAL, _SHARED))


@op("tensormap_release")
class TensormapRelease:
    """A warp copies a tensor map of 128 bytes from shared to global memory and releases it to those
    who acquire it there (PTX ISA 9.7.13.15.17, "tensormap.cp_fenceproxy").

        "cute.tensormap_release"(%target, %source) : (!llvm.ptr<1>, !llvm.ptr<3>) -> ()
    """

    operands = ("target", "source")

    @staticmethod
    def verify(op: Operands) -> str | None:
        wrong = _place(op.target, "target", (_GLOBAL,))
        return wrong or _place(op.source, "source", (_SHARED,))


def _place(value: Any, what: str, kinds: tuple[str, ...]) -> str | None:
    if str(value.type) not in kinds:
        return f"{what} is {value.type}, not {' or '.join(kinds)}"
    return None
