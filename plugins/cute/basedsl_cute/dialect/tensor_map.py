"""The operations that change tensor maps in memory (PTX ISA 9.7.9.28, "tensormap.replace").

The step `lower-cute` keeps them: the simulator runs them, `ptx-only` makes instructions of them.
"""

from __future__ import annotations

from basedsl import i64_attr, operand, str_attr
from basedsl_cute.dialect.cute_op import CuteOp, Value

# Field -> the type of its value, and whether it has one for each mode.
FIELDS = {"global_address": ("i64", False), "global_dim": ("i32", True)}
FIELDS["global_stride"] = ("i64", True)
MAX_ORDINAL = 4
_GLOBAL, _SHARED = "!llvm.ptr<1>", "!llvm.ptr<3>"


class TensormapReplace(CuteOp, name="tensormap_replace"):
    """Replace one field of the tensor map at an address in global or shared memory.

        "cute.tensormap_replace"(%map, %value) {field = "global_dim", ordinal = 1 : i64}
            : (!llvm.ptr<3>, i32) -> ()

    `global_dim` is an extent in elements, `global_stride` the distance in bytes between elements of
    mode `ordinal` + 1.
    """

    map: Value = operand()
    value: Value = operand()
    field: str = str_attr()
    ordinal: int = i64_attr()

    def verify(self) -> str | None:
        field = self.field
        if field not in FIELDS:
            return f"{field!r} is none of the fields {', '.join(FIELDS)}"
        kind, has_ordinal = FIELDS[field]
        if str(self.value.type) != kind:
            return f"the value of {field} is {self.value.type}, not {kind}"
        most = MAX_ORDINAL if has_ordinal else 0
        if not 0 <= self.ordinal <= most:
            return f"the ordinal of {field} is 0 to {most}"
        return _place(self.map, "map", (_GLOBAL, _SHARED))


class TensormapRelease(CuteOp, name="tensormap_release"):
    """Copy a tensor map of 128 bytes from shared to global memory by a warp, and release it to
    threads that acquire it there (PTX ISA 9.7.13.15.17, "tensormap.cp_fenceproxy").

        "cute.tensormap_release"(%target, %source) : (!llvm.ptr<1>, !llvm.ptr<3>) -> ()
    """

    target: Value = operand()
    source: Value = operand()

    def verify(self) -> str | None:
        wrong = _place(self.target, "target", (_GLOBAL,))
        return wrong or _place(self.source, "source", (_SHARED,))


def _place(value: Value, what: str, kinds: tuple[str, ...]) -> str | None:
    if str(value.type) not in kinds:
        return f"{what} is {value.type}, not {' or '.join(kinds)}"
    return None
