"""The `cute` dialect for one package of MLIR bindings: its types, and loading it into a context.

`define(bindings)` gives the one `CuteDialect` of those bindings; `load(bindings)` registers the
operations and types in the current context (pass it to `MLIRContext`). Operations are declared in
`dialect.ops` and its neighbours; the definition that MLIR reads is in `dialect.irdl`.
"""

from __future__ import annotations

import weakref
from typing import Any

from basedsl import Bindings, DSLTypeError, current_trace_or_none, user_span
from basedsl_cute.dialect import irdl
from basedsl_cute.dialect import loadable as _loadable
from basedsl_cute.dialect.cute_trace import cute_trace
from basedsl_cute.dialect.declare import OPS
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


class CuteDialect:
    """Types of the dialect, and what operations need of the bindings (`declare.OpView`)."""

    def __init__(self, bindings: Bindings) -> None:
        self.bindings = bindings
        self.ir = ir = bindings.ir
        for name in COMPANIONS:
            getattr(bindings, name)
        ir._globals.append_dialect_search_prefix(_loadable.__name__)
        self.create = ir.Operation.create
        self.memref_class = irdl.memref_class(ir)
        self._records: dict[Any, MemRef | None] = {}
        self._types: dict[tuple[Any, str, str, int | None], Any] = {}
        self._loaded_in: weakref.WeakSet[Any] = weakref.WeakSet()
        self._is_defined = False

    def load(self) -> None:
        """Register the dialect in the current context, once for each context."""
        context = self.ir.Context.current
        if context in self._loaded_in:
            return
        # MLIR verifies functions in parallel. A verifier written in Python would wait in another
        # thread for the interpreter lock, which the thread that waits for the verifier holds.
        context.enable_multithreading(False)
        self._records.clear()
        self._types.clear()
        irdl.load(self, again=self._is_defined)
        self._is_defined = True
        self._loaded_in.add(context)

    # Types -----------------------------------------------------------------------------------

    def memref_type(self, element: Any, space: str, layout: str, align: int | None = None) -> Any:
        """Build the type `!cute.memref<element, "space align<align>", "layout">`, an `ir.Type`."""
        key = (element, space, layout, align)
        found = self._types.get(key)
        if found is None:
            text = self.ir.StringAttr.get
            place = space_text(space, align)
            found = self.memref_class.get(element, text(place), text(layout))
            self._types[key] = found
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

    def view(self, op: Any) -> Any:
        """View a cute operation as an instance of the class that declares it."""
        return OPS[op.name.removeprefix("cute.")].of(self, op)

    def integer(self, value: int) -> Any:
        """An integer attribute of 64 bits."""
        return self.ir.IntegerAttr.get(self.ir.IntegerType.get_signless(64), value)

    def pointer_type(self, address_space: int) -> Any:
        """`!llvm.ptr` or `!llvm.ptr<address_space>`."""
        kind: Any = self.bindings.llvm.PointerType
        return kind.get(address_space) if address_space else kind.get()


_defined: dict[int, CuteDialect] = {}


def define(bindings: Bindings) -> CuteDialect:
    """Return the dialect of these bindings, made once."""
    found = _defined.get(id(bindings))
    if found is None:
        found = _defined[id(bindings)] = CuteDialect(bindings)
    return found


def load(bindings: Bindings) -> None:
    """Load the dialect into the current context: `MLIRContext(bindings, load_dialects=load)`."""
    define(bindings).load()
