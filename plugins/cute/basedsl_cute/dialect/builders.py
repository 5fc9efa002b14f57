"""The `cute` dialect of given bindings: loading it into a context, its types, its builders.

`define(bindings)` gives the one `CuteDialect` of those bindings; `load(bindings)` makes the ops and
types known to the current context (pass it to `MLIRContext`). The definition that MLIR reads is in
`dialect.irdl`. Builders go through `ir.Operation.create`: 1.3 us an op, where generated
constructors take 6.5.
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from basedsl.errors import DSLTypeError
from basedsl.location import user_span
from basedsl.metastage import current
from basedsl.mlir import Bindings
from basedsl_cute.dialect import cluster as _cluster  # noqa: F401  (fills OPS)
from basedsl_cute.dialect import irdl
from basedsl_cute.dialect import loadable as _loadable
from basedsl_cute.dialect import ops as _ops  # noqa: F401  (fills OPS)
from basedsl_cute.dialect import tensor_map as _tensor_map  # noqa: F401  (fills OPS)
from basedsl_cute.dialect import warpgroup as _warpgroup  # noqa: F401  (fills OPS)
from basedsl_cute.dialect.cute_trace import cute_trace
from basedsl_cute.dialect.declare import OPS, Operands
from basedsl_cute.dialect.types import MemRef, read_space, space_text

# Dialects that cute IR stands in or lowers to. Importing them up front means that no lookup by the
# bindings happens later, at a moment that nobody chose.
COMPANIONS = ("arith", "builtin", "cf", "func", "gpu", "llvm", "math", "nvvm", "scf", "vector")


def note_access() -> None:
    """Remember where host code first reads or writes an element, for `Cute.after_trace`."""
    trace = current()
    if trace is None or trace.function_kind == "kernel":
        return
    record = cute_trace(trace)
    if record.host_access is None:
        record.host_access = user_span()


class CuteDialect:
    """Types and op builders. Builders insert at the current insertion point and return the
    result, or None; `loc` is an `ir.Location` (the current one by default).
    """

    def __init__(self, bindings: Bindings) -> None:
        self.bindings = bindings
        self.ir = ir = bindings.ir
        for name in COMPANIONS:
            getattr(bindings, name)
        ir._globals.append_dialect_search_prefix(_loadable.__name__)
        self._create = ir.Operation.create
        self.memref_class = irdl.memref_class(ir)
        self._records: dict[Any, MemRef | None] = {}
        self._types: dict[tuple[Any, str, str, int | None], Any] = {}
        self._loaded_in: weakref.WeakSet[Any] = weakref.WeakSet()
        self._is_defined = False

    def load(self) -> None:
        """Make the dialect known to the current context; again in the same one does nothing."""
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
        """`!cute.memref<element, "space", "layout">` as an `ir.Type`."""
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
        """What a `!cute.memref` type says, or None for another type."""
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

    def fields(self, op: Any) -> Operands:
        """The fields of a cute operation by name."""
        return Operands(self, OPS[op.name.removeprefix("cute.")], op)

    # Builders --------------------------------------------------------------------------------

    def load_value(
        self,
        memref: Any,
        index: Any,
        type: Any = None,
        *,
        alignment: int | None = None,
        cache: str | None = None,
        volatile: bool = False,
        order: str | None = None,
        scope: str | None = None,
        if_used: bool = False,
        loc: Any = None,
    ) -> Any:
        """`cute.load`: an element, or `type` (a vector of elements)."""
        if type is None:
            type = self._record_of(memref).element
        note_access()
        attributes = self._access_attributes(alignment, cache, volatile, order, scope)
        if if_used:
            attributes = {**(attributes or {}), "if_used": self.ir.UnitAttr.get()}
        return self._create(
            "cute.load", results=[type], operands=[memref, index], attributes=attributes, loc=loc
        ).result

    def store_value(
        self,
        value: Any,
        memref: Any,
        index: Any,
        *,
        alignment: int | None = None,
        cache: str | None = None,
        volatile: bool = False,
        order: str | None = None,
        scope: str | None = None,
        loc: Any = None,
    ) -> None:
        """`cute.store` of an element or a vector of elements."""
        note_access()
        attributes = self._access_attributes(alignment, cache, volatile, order, scope)
        self._create("cute.store", operands=[value, memref, index], attributes=attributes, loc=loc)

    def atomic_rmw(
        self,
        kind: str,
        value: Any,
        memref: Any,
        index: Any,
        *,
        order: str | None = None,
        scope: str | None = None,
        loc: Any = None,
    ) -> Any:
        """`cute.atomic_rmw`: what was in memory before."""
        return self._create(
            "cute.atomic_rmw",
            results=[value.type],
            operands=[value, memref, index],
            attributes=self._texts(kind=kind, order=order, scope=scope),
            loc=loc,
        ).result

    def atomic_cas(
        self,
        expected: Any,
        value: Any,
        memref: Any,
        index: Any,
        *,
        order: str | None = None,
        scope: str | None = None,
        loc: Any = None,
    ) -> Any:
        """`cute.atomic_cas`: what was in memory before."""
        return self._create(
            "cute.atomic_cas",
            results=[value.type],
            operands=[expected, value, memref, index],
            attributes=self._texts(order=order, scope=scope),
            loc=loc,
        ).result

    def view(self, source: Any, offset: Any, type: Any, *, loc: Any = None) -> Any:
        """`cute.view`: the tensor of `type` that begins `offset` elements into `source`."""
        return self._create("cute.view", results=[type], operands=[source, offset], loc=loc).result

    def recast(self, source: Any, type: Any, *, loc: Any = None) -> Any:
        """`cute.recast`: the same memory as a tensor of `type`."""
        return self._create("cute.recast", results=[type], operands=[source], loc=loc).result

    def iterator(self, source: Any, *, loc: Any = None) -> Any:
        """`cute.iterator`: the address of the first element, an `!llvm.ptr`."""
        type = self.pointer_type(self._record_of(source).address_space)
        return self._create("cute.iterator", results=[type], operands=[source], loc=loc).result

    def make_memref(self, pointer: Any, type: Any, *, loc: Any = None) -> Any:
        """`cute.make_memref`: the tensor of `type` that begins at an `!llvm.ptr`."""
        return self._create("cute.make_memref", results=[type], operands=[pointer], loc=loc).result

    def alloc_smem(
        self,
        type: Any,
        bytes: int,
        *,
        name: str | None = None,
        fields: str | None = None,
        loc: Any = None,
    ) -> Any:
        """`cute.alloc_smem`: `bytes` of the block's shared memory, aligned as `type` says."""
        attributes = {"bytes": self._integer(bytes), **self._texts(name=name, fields=fields)}
        return self._create(
            "cute.alloc_smem", results=[type], attributes=attributes, loc=loc
        ).result

    def dynamic_smem(self, type: Any, *, loc: Any = None) -> Any:
        """`cute.dynamic_smem`: the shared memory sized by the launch."""
        return self._create("cute.dynamic_smem", results=[type], loc=loc).result

    def alloc_rmem(self, type: Any, bytes: int, *, loc: Any = None) -> Any:
        """`cute.alloc_rmem`: `bytes` of the thread's registers."""
        attributes = {"bytes": self._integer(bytes)}
        return self._create(
            "cute.alloc_rmem", results=[type], attributes=attributes, loc=loc
        ).result

    def copy(
        self,
        source: Any,
        target: Any,
        *,
        atom: str = "universal",
        bits: int,
        predicate: Any = None,
        cache: str | None = None,
        loc: Any = None,
    ) -> None:
        """`cute.copy` of `bits` by a copy atom."""
        operands = [source, target] if predicate is None else [source, target, predicate]
        attributes = {"bits": self._integer(bits), **self._texts(atom=atom, cache=cache)}
        self._create("cute.copy", operands=operands, attributes=attributes, loc=loc)

    def gemm(self, d: Any, a: Any, b: Any, c: Any, *, atom: str, loc: Any = None) -> None:
        """`cute.gemm`: d = a * b + c by an MMA atom."""
        self._create("cute.gemm", operands=[d, a, b, c], attributes=self._texts(atom=atom), loc=loc)

    def barrier(self, id: int | None = None, count: int | None = None, *, loc: Any = None) -> None:
        """`cute.barrier`: all threads of the block, or `count` of them at barrier `id`."""
        numbers = {"id": id, "count": count}
        attributes = {k: self._integer(v) for k, v in numbers.items() if v is not None}
        self._create("cute.barrier", attributes=attributes, loc=loc)

    def printf(self, format: str, args: Sequence[Any] = (), *, loc: Any = None) -> None:
        """`gpu.printf` with C's format: integers as i32 or i64, floats as f64 (the caller widens
        what C would promote, since only it knows what is signed).
        """
        attributes = self._texts(format=format)
        self._create("gpu.printf", operands=list(args), attributes=attributes, loc=loc)

    def pointer_type(self, address_space: int) -> Any:
        """`!llvm.ptr` or `!llvm.ptr<address_space>`."""
        kind: Any = self.bindings.llvm.PointerType
        return kind.get(address_space) if address_space else kind.get()

    def _record_of(self, value: Any) -> MemRef:
        record = self.record(value.type)
        if record is None:
            raise DSLTypeError(f"{value.type} is no tensor (!cute.memref)")
        return record

    def _integer(self, value: int) -> Any:
        return self.ir.IntegerAttr.get(self.ir.IntegerType.get_signless(64), value)

    def _texts(self, **texts: str | None) -> dict[str, Any]:
        get = self.ir.StringAttr.get
        return {name: get(text) for name, text in texts.items() if text is not None}

    def _access_attributes(
        self,
        alignment: int | None,
        cache: str | None,
        volatile: bool,
        order: str | None,
        scope: str | None,
    ) -> dict[str, Any] | None:
        if alignment is cache is order is None and not volatile:
            return None
        attributes: dict[str, Any] = {}
        if alignment is not None:
            attributes["alignment"] = self._integer(alignment)
        if cache is not None:
            attributes["cache"] = self.ir.StringAttr.get(cache)
        if volatile:
            attributes["volatile"] = self.ir.UnitAttr.get()
        if order is not None:
            attributes |= self._texts(order=order, scope=scope)
        return attributes


_defined: dict[int, CuteDialect] = {}


def define(bindings: Bindings) -> CuteDialect:
    """The dialect of these bindings, made once."""
    found = _defined.get(id(bindings))
    if found is None:
        found = _defined[id(bindings)] = CuteDialect(bindings)
    return found


def load(bindings: Bindings) -> None:
    """Load the dialect into the current context: `MLIRContext(bindings, load_dialects=load)`."""
    define(bindings).load()
