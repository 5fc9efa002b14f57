"""Typed pointers inside compiled code: element type, address space, known alignment, swizzle.

A swizzled pointer permutes bits of the byte address of every access through it. It keeps its base
address and counts the elements that it has moved from there, since a swizzle does not commute with
moving.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from basedsl import (
    DSLTypeError,
    Int32,
    Int64,
    Numeric,
    as_numeric,
    current_trace,
    escaped,
    is_dynamic,
    mlir_type,
    with_article,
)
from basedsl_cute import algebra
from basedsl_cute.algebra import dynamic
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.dialect import define, note_access
from basedsl_cute.dialect.ops import Load, MakeMemRef, Recast, Store, TensorIterator, View
from basedsl_cute.tensors.index_arithmetic import as_int

RUN = "?:1"  # the layout behind a bare pointer: consecutive elements


def element_bytes(dtype: Any) -> int:
    """Bytes of one element in memory; 1 for elements narrower than a byte."""
    return max(1, int(dtype.width) // 8)


def storage_bits(dtype: Any) -> int:
    """Bits from one element to the next; a Boolean takes a byte."""
    return 8 if dtype.width == 1 else int(dtype.width)


def memref_type(trace: Any, dtype: Any, space: str, layout: Any, align: int | None) -> Any:
    """The IR type of a tensor; `layout` prints with `?` for dynamic numbers."""
    known = align if align is not None and align > element_bytes(dtype) else None
    return define(trace.bindings).memref_type(mlir_type(dtype, trace.ir), space, str(layout), known)


def index_value(index: Any) -> Any:
    """The linear index as an SSA value of type i32 or i64."""
    if type(index) is int and not -(2**31) <= index < 2**31:
        index = Int64(index)
    number = as_numeric(index)
    if number.width not in (32, 64):
        number = number.to(Int32)
    return number.ir_value()


class Address:
    """The SSA value of a pointer: a leaf of trees that control flow carries.

    Its IR type holds the known alignment. Where two paths join, the smaller alignment remains.
    """

    __slots__ = ("kind", "region", "value")
    __dsl_leaf__ = True

    def __init__(self, value: Any, kind: Any = None) -> None:
        self.value = value
        self.kind = value.type if kind is None else kind
        self.region = current_trace("a pointer").region

    @property
    def align(self) -> int:
        """Bytes by which the address is known to be aligned."""
        return int(self._record.alignment)

    @property
    def _record(self) -> Any:
        record = define(current_trace("a pointer").bindings).record(self.kind)
        assert record is not None
        return record

    @property
    def parameter_marks(self) -> dict[str, str]:
        """The attributes of a kernel's parameter: LLVM joins accesses as far as these allow."""
        return {"llvm.align": f"{self.align} : i64"}

    def ir_value(self) -> Any:
        if self.region.closed:
            raise escaped("a pointer or tensor", self.region)
        return self.value

    def with_ir_value(self, value: Any) -> Address:
        return Address(value)

    def leaf_type(self) -> str:
        return str(self.kind)

    def joined(self, other: Any) -> Address | None:
        if not isinstance(other, Address):
            return None
        a, b = self._record, other._record
        if (a.element, a.space) != (b.element, b.space):
            return None
        layout = a.layout if a.layout == b.layout else RUN
        align = min(a.alignment, b.alignment)
        dialect = define(current_trace("a pointer").bindings)
        known = align if align * 8 > a.element_bits else None
        return Address(self.value, dialect.memref_type(a.element, a.space, layout, known))

    def ir_value_as(self, leaf: Address) -> Any:
        value = leaf.ir_value()
        if value.type == self.kind:
            return value
        trace = current_trace("a pointer")
        return Recast(define(trace.bindings), source=value, type=self.kind, loc=trace.loc()).view

    def undefined(self) -> Any:
        trace = current_trace("a pointer")
        dialect = define(trace.bindings)
        zero = trace.ir.Operation.create(
            "llvm.mlir.zero",
            results=[dialect.pointer_type(self._record.address_space)],
            loc=trace.loc(),
        )
        return MakeMemRef(dialect, pointer=zero.result, type=self.kind, loc=trace.loc()).memref


class _Moved(NamedTuple):
    """The carried leaf of a moved pointer; errors use the field name, as in 'p.offset'."""

    offset: Any


class Pointer:
    """A typed pointer in compiled code. `p + n` and `p - n` move it by `n` elements.

    `dtype` is the element type, `space` the address space ("gmem", "smem", "rmem", "tmem", "dsmem"
    or "generic"), `align` (the attribute `base_align`) the known alignment of `value`, in bytes.
    With a `swizzle` (on bits of the byte address), `value` is the base address, and `offset` the
    distance from it in elements. Elements narrower than a byte are counted from a base in the same
    way.

    >>> import basedsl_cute as cute
    >>> @cute.jit
    ... def second(x: cute.Tensor):
    ...     p = x.iterator + 1
    ...     p.store(p.load() * 2)
    """

    __slots__ = ("address", "base_align", "dtype", "offset", "space", "swizzle")

    def __init__(
        self,
        dtype: Any,
        space: str,
        align: int,
        value: Any,
        swizzle: Any = None,
        offset: Any = 0,
    ) -> None:
        self.dtype = dtype
        self.space = space
        self.base_align = align
        self.address = value if isinstance(value, Address) else Address(value)
        self.swizzle = swizzle if swizzle is not None and swizzle.bits else None
        self.offset = offset

    # A tree: the address; of a swizzled pointer the offset too.

    def __dsl_leaves__(self) -> tuple[Any, ...]:
        return (self.address, _Moved(self.offset)) if self._counts else (self.address,)

    def __dsl_static__(self) -> Any:
        return (self.dtype, self.space, str(self.swizzle))

    def __dsl_rebuild__(self, parts: tuple[Any, ...]) -> Pointer:
        address, *moved = parts
        offset = as_int(moved[0].offset) if moved else 0
        return Pointer(self.dtype, self.space, address.align, address, self.swizzle, offset)

    # What it is ---------------------------------------------------------------------------------

    @property
    def value_type(self) -> Any:
        """The element type."""
        return self.dtype

    element_type = value_type

    @property
    def memspace(self) -> str:
        """The address space: `gmem`, `smem`, `rmem`, `dsmem` or `generic`."""
        return self.space

    @property
    def alignment(self) -> int:
        """Bytes by which the address is known to be aligned."""
        return alignment_after(self.base_align, self.offset, self.dtype)

    max_alignment = alignment

    @property
    def _counts(self) -> bool:
        """True if the pointer keeps its base address and counts elements from there."""
        return self.swizzle is not None or storage_bits(self.dtype) < 8

    @property
    def is_swizzled(self) -> bool:
        """True if accesses through the pointer are swizzled."""
        return self.swizzle is not None

    def __str__(self) -> str:
        swizzle = f", {self.swizzle}" if self.swizzle is not None else ""
        return f"ptr<{self.dtype.__name__}, {self.space}, align<{self.alignment}>{swizzle}>"

    __repr__ = __str__

    # Its value ----------------------------------------------------------------------------------

    @takes_location
    def ir_value(self) -> Any:
        """The address as an SSA value, without the swizzle; DSLTypeError within a byte."""
        value = self.address.ir_value()
        if type(self.offset) is int and self.offset == 0:
            return value
        trace = current_trace("a pointer")
        if dynamic.divisibility(self.offset) * storage_bits(self.dtype) % 8:
            raise DSLTypeError(
                f"{self} stands {self.offset} element(s) behind a byte: it is no address",
                hint="move it by whole bytes, or read and write through it",
            )
        kind = memref_type(trace, self.dtype, self.space, RUN, self.alignment)
        offset = index_value(self.offset)
        return View(
            define(trace.bindings), source=value, offset=offset, type=kind, loc=trace.loc()
        ).view

    @property
    def llvm_ptr(self) -> Any:
        """The address as an `!llvm.ptr` value, for operations of other dialects."""
        trace = current_trace("llvm_ptr")
        return TensorIterator(
            define(trace.bindings), source=self.ir_value(), loc=trace.loc()
        ).pointer

    @staticmethod
    def external_type(ir: Any) -> Any:
        """Return the type of a pointer that an external function takes, a generic address, in the
        MLIR bindings `ir`.
        """
        return ir.Type.parse("!llvm.ptr")

    @staticmethod
    def external_value(value: Any) -> Any:
        """Return the pointer `value` as a generic address; DSLTypeError for anything else."""
        if not isinstance(value, Pointer):
            raise DSLTypeError(f"an external function's pointer got {value!r}")
        trace = current_trace("an external function")
        pointer, generic = value.llvm_ptr, Pointer.external_type(trace.ir)
        if str(pointer.type) == str(generic):
            return pointer
        made = trace.emit(
            trace.ir.Operation.create, "llvm.addrspacecast", results=[generic], operands=[pointer]
        )
        return made.result

    @takes_location
    def to_llvm_ptr(self) -> Any:
        """The address as an `!llvm.ptr` value: `llvm_ptr`."""
        return self.llvm_ptr

    @takes_location
    def toint(self) -> Any:
        """The address as an integer: Int32 in shared and tensor memory, else Int64."""
        trace = current_trace("toint()")
        wide = self.space not in ("smem", "dsmem", "tmem")
        kind: Any = Int64 if wide else Int32
        number = trace.ir.Operation.create(
            "llvm.ptrtoint",
            results=[mlir_type(kind, trace.ir)],
            operands=[self.llvm_ptr],
            loc=trace.loc(),
        ).result
        return dynamic.with_divby(kind.from_value(number), self.alignment)

    # Other pointers -----------------------------------------------------------------------------

    def typed(self, layout: Any) -> Pointer:
        """The same pointer with its SSA value typed as a tensor of `layout`."""
        trace = current_trace("a view of a tensor")
        if self.swizzle is not None:
            layout = self.access_layout(layout)
        kind = memref_type(trace, self.dtype, self.space, layout, self.base_align)
        value = self.address.ir_value()
        if value.type == kind:
            return self
        value = Recast(define(trace.bindings), source=value, type=kind, loc=trace.loc()).view
        return Pointer(self.dtype, self.space, self.base_align, value, self.swizzle, self.offset)

    def moved(self, offset: Any, layout: Any = RUN) -> Pointer:
        """The pointer moved by `offset` elements, typed as a tensor of `layout`."""
        offset = as_int(offset)
        if type(offset) is int and offset == 0:
            return self.typed(layout)
        whole = dynamic.divisibility(offset) * storage_bits(self.dtype) % 8 == 0
        if self.swizzle is not None or not whole or not dynamic.is_zero(self.offset):
            return self._moved_within(offset, layout)
        trace = current_trace("moving a pointer")
        align = alignment_after(self.base_align, offset, self.dtype)
        kind = memref_type(trace, self.dtype, self.space, layout, align)
        view = View(
            define(trace.bindings),
            source=self.address.ir_value(),
            offset=index_value(offset),
            type=kind,
            loc=trace.loc(),
        )
        return Pointer(self.dtype, self.space, align, view.view)

    def _moved_within(self, offset: Any, layout: Any) -> Pointer:
        """Move the base by whole periods of the swizzle (without one, by whole bytes), with which
        it commutes, and count only the rest: accesses then share the arithmetic of one swizzle.
        """
        whole = 0
        if self.swizzle_is_relative:
            period = 8 * (self.swizzle.period if self.swizzle is not None else 1)
            period //= math.gcd(period, storage_bits(self.dtype))
            if dynamic.divisibility(offset) % period == 0:
                whole, offset = offset, 0
            elif type(offset) is int:
                whole, offset = offset - offset % period, offset % period
        base = Pointer(self.dtype, self.space, self.base_align, self.address)
        address = self.address if dynamic.is_zero(whole) else base.moved(whole).address
        further = dynamic.add(self.offset, offset)
        return Pointer(self.dtype, self.space, address.align, address, self.swizzle, further).typed(
            layout
        )

    def __getitem__(self, index: Any) -> Any:
        raise DSLTypeError(
            "a pointer is not indexed",
            hint="(p + i).load() and (p + i).store(x) are single elements; "
            "cute.make_tensor(p, layout) is a tensor there",
        )

    def __setitem__(self, index: Any, value: Any) -> None:
        self[index]

    def __add__(self, n: Any) -> Pointer:
        n = as_int(n)
        if type(n) is not int and not (isinstance(n, Numeric) and type(n).is_integer):
            raise DSLTypeError(
                f"a pointer moves by a number of elements, not by {with_article(type(n))}"
            )
        return self.moved(n)

    __radd__ = __add__

    def __sub__(self, n: Any) -> Pointer:
        return self.__add__(-n)

    @takes_location
    def align(self, nbytes: int) -> Pointer:
        """The same pointer, with the promise that its address is a multiple of `nbytes` bytes.

        Raises DSLTypeError unless `nbytes` is a power of two, and for a moved swizzled pointer.
        """
        if type(nbytes) is not int or nbytes < 1 or nbytes & (nbytes - 1):
            raise DSLTypeError(f"an alignment is a power of two of bytes, not {nbytes}")
        if nbytes <= self.alignment:
            return self
        offset = self.offset
        if not (type(offset) is int and offset == 0):
            if is_dynamic(offset) and nbytes <= self.base_align:
                promised = nbytes * 8 // storage_bits(self.dtype)
                offset = dynamic.with_divby(offset, promised)
                return Pointer(
                    self.dtype, self.space, self.base_align, self.address, self.swizzle, offset
                )
            raise DSLTypeError(
                f"{self} stands {offset} elements behind a base aligned to {self.base_align} bytes",
                hint="align the pointer before moving it",
            )
        trace = current_trace("align()")
        kind = memref_type(trace, self.dtype, self.space, RUN, nbytes)
        start = self.address.ir_value()
        value = Recast(define(trace.bindings), source=start, type=kind, loc=trace.loc()).view
        return Pointer(self.dtype, self.space, nbytes, value, self.swizzle, self.offset)

    # Access -------------------------------------------------------------------------------------

    def access_layout(self, layout: Any) -> Any:
        """`layout` composed with this pointer's swizzle and offset, in elements from the base.

        The swizzle has to leave elements whole, and the base to be aligned to its period; `index`
        also serves other pointers.
        """
        if self.swizzle is None or not isinstance(layout, algebra.Layout):
            return layout
        inner = algebra.recast_layout(storage_bits(self.dtype), 8, self._checked_swizzle())
        return algebra.make_composed_layout(inner, self.offset, layout)

    def _checked_swizzle(self) -> Any:
        swizzle: Any = self.swizzle
        if storage_bits(self.dtype) > 8 << min(swizzle.base, swizzle.base + swizzle.shift):
            raise DSLTypeError(
                f"the swizzle {swizzle} permutes bytes within elements of {self.dtype.__name__}"
            )
        return swizzle

    @property
    def swizzle_is_relative(self) -> bool:
        """True if swizzling offsets from the base equals swizzling addresses."""
        return self.swizzle is None or self.base_align % self.swizzle.period == 0

    def index(self, offset: Any) -> Any:
        """The index from the base, in elements, of the element `offset` behind the pointer."""
        at = dynamic.add(self.offset, offset)
        if self.swizzle is None:
            return at
        swizzle = self._checked_swizzle()
        if self.swizzle_is_relative:
            return algebra.recast_layout(storage_bits(self.dtype), 8, swizzle)(at)
        size = element_bytes(self.dtype)
        if storage_bits(self.dtype) < 8:
            raise DSLTypeError(
                f"{self} begins at no multiple of {swizzle.period} bytes, the period of its swizzle"
            )
        plain = Pointer(self.dtype, self.space, self.base_align, self.address)
        base = plain.toint()
        return dynamic.floordiv(
            dynamic.sub(swizzle(dynamic.add(base, dynamic.mul(at, size))), base), size
        )

    @takes_location
    def load(self) -> Any:
        """Load the element at the pointer."""
        return self._load()

    def load_if_used(self) -> Any:
        """Load the element at the pointer; the load disappears if its value is not used."""
        return self._load(if_used=True)

    def _load(self, if_used: bool = False) -> Any:
        trace = current_trace("reading through a pointer")
        refuse_tensor_memory(self.space, "read")
        note_access()
        load = Load(
            define(trace.bindings),
            memref=self.address.ir_value(),
            index=index_value(self.index(0)),
            if_used=if_used,
            loc=trace.loc(),
        )
        return self.dtype.from_value(load.value)

    @takes_location
    def store(self, value: Any) -> None:
        """Store a value of the element type, or a Python number, at the pointer.

        Raises DSLTypeError for a number of another type.
        """
        trace = current_trace("writing through a pointer")
        refuse_tensor_memory(self.space, "write")
        number = as_element(self.dtype, value)
        note_access()
        Store(
            define(trace.bindings),
            value=number.ir_value(),
            memref=self.address.ir_value(),
            index=index_value(self.index(0)),
            loc=trace.loc(),
        )


def refuse_tensor_memory(space: str, verb: str) -> None:
    """Raise DSLTypeError for an access of one thread to tensor memory, which only warps access."""
    if space == "tmem":
        raise DSLTypeError(
            f"one thread cannot {verb} tensor memory: a warp copies it from or to registers",
            hint="cute.copy with an atom of nvgpu.tcgen05, Ld32x32bOp or St32x32bOp",
        )


def alignment_after(align: int, offset: Any, dtype: Any) -> int:
    """The known alignment of an address `offset` elements behind one aligned to `align` bytes."""
    step = dynamic.divisibility(as_int(offset)) * storage_bits(dtype)
    if step == 0:
        return align
    known = math.gcd(align, step // 8) if step % 8 == 0 else 1
    return max(known & -known, 1)


def same_bits(one: Any, other: Any) -> bool:
    """Return True for the signed and the unsigned integer of one width."""
    return bool(one.is_integer and other.is_integer and one.width == other.width > 1)


_ONE_NUMBER = "an element is one number: store them one by one"
_NO_ELEMENTS = {
    "Tensor": "y[i] reads an element of the tensor; y.load() is the vector of all",
    "TensorSSA": "x.store(vector) writes all elements, vector[i] is one of them",
    "ndarray": "pass the array to the @jit function, as a cute.Tensor, and read its element",
    "tuple": _ONE_NUMBER,
    "list": _ONE_NUMBER,
    "str": "elements are numbers: text cannot be stored",
    "complex": "store the real and the imaginary part as two elements",
}


def as_element(kind: Any, value: Any) -> Any:
    """The value as an element of type `kind`: Python numbers convert, other types must match. An
    integer of the same width is the same bits, as in CuTe's DSL.
    """
    name = type(value).__name__
    if value is None or name in _NO_ELEMENTS:
        raise DSLTypeError(
            f"{'None' if value is None else with_article(name)} is stored into an element of "
            f"{kind.__name__}",
            hint=_NO_ELEMENTS.get(name, f"store a number, or a value of type {kind.__name__}"),
        )
    if not isinstance(value, Numeric) and not (isinstance(value, float) and kind.is_integer):
        return kind(value)
    if type(value) is kind:
        return value
    if isinstance(value, Numeric) and value.weak and (kind.is_float or not type(value).is_float):
        return value.to(kind)
    if isinstance(value, Numeric) and same_bits(type(value), kind):
        return value.to(kind)
    raise DSLTypeError(
        f"{with_article(type(value))} is stored into a tensor of {kind.__name__}",
        hint=f"convert it with .to({kind.__name__})"
        if isinstance(value, Numeric)
        else "write an int, or convert it with int(...)",
    )


@takes_location
def recast_ptr(ptr: Pointer, swizzle_: Any = None, dtype: Any = None) -> Pointer:
    """The address of `ptr` as a pointer to elements of `dtype` and with another swizzle.

    `swizzle_` acts on bits of the byte address (that of a layout of wgmma operands knows its
    element width and is converted); None keeps the pointer's. `dtype` is by default the pointer's.
    Raises DSLTypeError for replacing the swizzle of a moved pointer, and for a pointer that does
    not stand at a whole element of `dtype`.
    """
    if not isinstance(ptr, Pointer):
        raise DSLTypeError(f"recast_ptr takes a pointer, got {type(ptr).__name__}")
    swizzle = ptr.swizzle if swizzle_ is None else swizzle_
    if not isinstance(swizzle, algebra.Swizzle | None):
        raise DSLTypeError(f"recast_ptr takes a Swizzle, got {type(swizzle).__name__}")
    swizzle = None if swizzle is None else swizzle.of_bytes
    dtype = ptr.dtype if dtype is None else dtype
    offset = ptr.offset
    address: Any = ptr.address
    if ptr.swizzle is not None and swizzle != ptr.swizzle and not dynamic.is_zero(offset):
        raise DSLTypeError(
            f"{ptr} has moved; its swizzle cannot be replaced any more",
            hint="recast the pointer before slicing or moving it",
        )
    if dtype is not ptr.dtype:
        bits, width = dynamic.mul(offset, storage_bits(ptr.dtype)), storage_bits(dtype)
        if dynamic.divisibility(bits) % width and not dynamic.is_zero(bits):
            raise DSLTypeError(
                f"{ptr} stands between two elements of {dtype.__name__}",
                hint=f"the offset must be known to be a multiple of {width} bits",
            )
        offset = dynamic.floordiv(bits, width)
        trace = current_trace("recast_ptr()")
        kind = memref_type(trace, dtype, ptr.space, RUN, ptr.base_align)
        source = address.ir_value()
        address = Recast(define(trace.bindings), source=source, type=kind, loc=trace.loc()).view
    if swizzle is None and storage_bits(dtype) >= 8:
        return Pointer(dtype, ptr.space, ptr.base_align, address).moved(offset)
    return Pointer(dtype, ptr.space, ptr.base_align, address, swizzle, offset)
