"""The `cute` dialect for one package of MLIR bindings: its types, and loading it into a context.

`define(bindings)` gives the one `CuteDialect` of those bindings; `load(bindings)` registers the
operations and types in the current context (pass it to `MLIRContext`). Operations are declared in
`dialect.ops` and its neighbours.
"""

from __future__ import annotations

from typing import Any, ClassVar

from basedsl import Bindings, Dialect, DSLTypeError, current_trace_or_none, user_span
from basedsl_cute.dialect.cute_op import CuteOp
from basedsl_cute.dialect.cute_trace import cute_trace
from basedsl_cute.dialect.types import MemRef, read_space, space_text

# Dialects that surround cute IR or that it lowers to. They are imported now: otherwise the bindings
# import them lazily, possibly while another thread holds a lock.
COMPANIONS = ("arith", "builtin", "cf", "func", "gpu", "llvm", "math", "nvvm", "scf", "vector")


def note_access() -> None:
    """Remember where host code first reads or writes an element, for `Cute.after_trace`."""
    trace = current_trace_or_none()
    if trace is None or trace.function_kind == "kernel":
        return
    record = cute_trace(trace)
    if record.host_access is None:
        record.host_access = user_span()


class CuteDialect(Dialect):
    """Types of the dialect, and what its operations need of the bindings."""

    ops = CuteOp
    types: ClassVar = {"memref": {"element": "type", "space": "string", "layout": "string"}}

    def __init__(self, bindings: Bindings) -> None:
        super().__init__(bindings)
        for name in COMPANIONS:
            getattr(bindings, name)
        self.memref_class = self.type_classes["memref"]
        self._records: dict[Any, MemRef | None] = {}
        self._types: dict[tuple[Any, str, str, int | None], Any] = {}

    def define(self) -> None:
        """Define the dialect in the current context. Types of another one are forgotten."""
        self._records.clear()
        self._types.clear()
        super().define()

    # Types -----------------------------------------------------------------------------------

    def memref_type(self, element: Any, space: str, layout: str, align: int | None = None) -> Any:
        """Build the type `!cute.memref<element, "space align<align>", "layout">`, an `ir.Type`."""
        key = (element, space, layout, align)
        found = self._types.get(key)
        if found is None:
            found = self._types[key] = self.type(
                "memref", element, space_text(space, align), layout
            )
            self._records[found] = MemRef(element, space, layout, align)
        return found

    def record(self, type: Any) -> MemRef | None:
        """Read a `!cute.memref` type. Returns None for another type; raises DSLTypeError for a
        memory space that does not exist.
        """
        try:
            return self._records[type]
        except KeyError:
            record = self._records[type] = self._read(type)
            return record

    def _read(self, type: Any) -> MemRef | None:
        if not isinstance(type, self.memref_class):
            return None
        element, place, layout = type.params
        ir = self.ir
        space, align = read_space(ir.StringAttr(place).value)
        return MemRef(ir.TypeAttr(element).value, space, ir.StringAttr(layout).value, align)

    def record_of(self, value: Any) -> MemRef:
        """Read the type of a tensor. Raises DSLTypeError for a value of another type."""
        record = self.record(value.type)
        if record is None:
            raise DSLTypeError(f"{value.type} is no tensor (!cute.memref)")
        return record

    def pointer_type(self, address_space: int) -> Any:
        """`!llvm.ptr` or `!llvm.ptr<address_space>`."""
        kind: Any = self.bindings.llvm.PointerType
        return kind.get(address_space) if address_space else kind.get()


def define(bindings: Bindings) -> CuteDialect:
    """Return the dialect of these bindings, made once."""
    return CuteDialect.of(bindings)


def load(bindings: Bindings) -> None:
    """Load the dialect into the current context: `MLIRContext(bindings, load_dialects=load)`."""
    CuteDialect.load(bindings)
