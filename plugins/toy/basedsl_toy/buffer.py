"""Buffers: NumPy arrays of one or two dimensions as arguments of compiled functions.

`BufferArgument` is the argument type: how an array crosses the call (a pointer, the shape, the
strides). `Buffer` is the proxy that the function sees while it is traced.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from basedsl import (
    ArgumentType,
    ArrayRecord,
    CParameter,
    DSLCallError,
    DSLTypeError,
    Int64,
    Leaf,
    Numeric,
    Trace,
    Unpacker,
    array_unpacker,
    as_numeric,
    current_trace,
    from_numpy_dtype,
    mlir_type,
    with_article,
)


class Buffer:
    """An array inside a compiled function: `b[i]`, `b[i, j]`, `b.shape`, `len(b)`.

    The caller passes a writable NumPy array of one or two dimensions; the function reads and writes
    the caller's memory. Indexing means what it means in NumPy: negative indices count from the end,
    and an index out of range raises IndexError when the code runs. An element that is stored is
    converted to the element type; a float into a buffer of integers is a DSLTypeError.

    As an annotation, `Buffer` takes any element type, `Buffer[Int32]` any number of dimensions,
    and `Buffer[Int32, 1]` declares both:

        @toy.jit
        def double(b: toy.Buffer[toy.Int32, 1]):
            for i in range(len(b)):
                b[i] *= 2

    Attributes: `dtype`, the class of the elements; `shape`, an Int64 for each dimension, in
    elements; `pointer`, the address of the first element as an `!llvm.ptr`. A buffer is made of
    these and of `strides`, an Int64 for each dimension, in bytes.
    """

    #: The core carries a buffer through loops and branches as one value.
    __dsl_leaf__ = True

    def __init__(
        self,
        dtype: type[Numeric],
        pointer: Any,
        shape: tuple[Int64, ...],
        strides: tuple[Int64, ...],
    ) -> None:
        self.dtype = dtype
        self.pointer = pointer
        self.shape = shape
        self._strides = strides  # in bytes

    def __class_getitem__(cls, item: Any) -> Declared:
        return Declared(*item) if isinstance(item, tuple) else Declared(item, None)

    @property
    def ndim(self) -> int:
        """The number of dimensions, 1 or 2."""
        return len(self.shape)

    def __dsl_len__(self) -> Int64:
        """The first extent: Python's `len` must return an int, so the core calls this instead."""
        return self.shape[0]

    if TYPE_CHECKING:

        def __len__(self) -> int: ...

    def __iter__(self) -> NoReturn:  # without it, Python would call __getitem__ without end
        raise DSLTypeError("a buffer is not iterated", hint="loop over range(len(b)) and read b[i]")

    def __bool__(self) -> NoReturn:
        raise DSLTypeError("a buffer has no truth value", hint="compare its length: len(b) > 0")

    def __getitem__(self, index: Any) -> Numeric:
        """Load one element; `index` is an integer, or a tuple of one for each dimension."""
        trace, address = self._address(index)
        llvm = trace.bindings.llvm
        kind = mlir_type(self.dtype, trace.ir)
        return self.dtype.from_value(trace.emit(llvm.LoadOp, kind, address).result)

    def __setitem__(self, index: Any, value: Any) -> None:
        """Store one element, converted to the element type."""
        trace, address = self._address(index)
        value = as_numeric(value)
        if type(value).is_float and self.dtype.is_integer:
            raise DSLTypeError(
                f"{with_article(type(value))} is stored into a buffer of {self.dtype.__name__}",
                hint=f"convert it with .to({self.dtype.__name__}) or int(...)",
            )
        trace.emit(trace.bindings.llvm.StoreOp, value.to(self.dtype).ir_value(), address)

    def _address(self, index: Any) -> tuple[Trace, Any]:
        """The trace and the address of an element: the pointer plus the indices times strides."""
        trace = current_trace("indexing a buffer")
        indices = index if isinstance(index, tuple) else (index,)
        if len(indices) != self.ndim:
            raise DSLTypeError(
                f"a buffer of {self.ndim} dimension(s) is indexed with {len(indices)} indices"
            )
        offset = Int64(0)
        for i, size, stride in zip(indices, self.shape, self._strides, strict=True):
            offset = offset + _in_range(trace, i, size) * stride
        llvm, ir = trace.bindings.llvm, trace.ir
        byte = ir.IntegerType.get_signless(8)
        dynamic = ir.DenseI32ArrayAttr.get([-(2**31)])
        pointer = llvm.PointerType.get()
        value = trace.emit(
            llvm.GEPOp, pointer, self.pointer, [offset.ir_value()], dynamic, byte, None
        ).result
        return trace, value


def _in_range(trace: Trace, index: Any, size: Int64) -> Int64:
    """Check an index when the code runs, and make a negative one count from the end."""
    if not isinstance(index, Numeric | int) or (
        isinstance(index, Numeric) and type(index).is_float
    ):
        raise DSLTypeError(
            f"a buffer index must be an integer, got {type(index).__name__}",
            hint="a loop over range(...) takes the place of a slice"
            if isinstance(index, slice)
            else "divide with // for a whole number, or convert with .to(Int64)",
        )
    index = as_numeric(index).to(Int64)
    ok = (index >= -size) & (index < size)
    trace.emitter.assert_(ok.ir_value(), "IndexError: index out of range", trace.loc())
    arith = trace.bindings.arith
    wrapped, negative = (index + size).ir_value(), (index < 0).ir_value()
    return Int64.from_value(trace.emit(arith.SelectOp, negative, wrapped, index.ir_value()).result)


@dataclass(frozen=True)
class Declared:
    """The annotation `Buffer[dtype, ndim]`; `ndim` None takes any number of dimensions."""

    dtype: type[Numeric]
    ndim: int | None


@dataclass(frozen=True)
class BufferArgument(ArgumentType):
    """The argument type of an array: compiled code depends on its elements and dimensions.

    Arrays of equal `BufferArgument` share compiled code. See `basedsl.ArgumentType` for
    the promises of each method.
    """

    dtype: type[Numeric]
    ndim: int

    address_places = (0,)

    @staticmethod
    def is_declared_by(annotation: Any) -> bool:
        """True for the annotations `Buffer`, `Buffer[dtype]` and `Buffer[dtype, ndim]`."""
        return annotation is Buffer or isinstance(annotation, Declared)

    @classmethod
    def of(cls, value: Any, annotation: Any, name: str) -> BufferArgument:
        """The type of the array `value` for the parameter `name`, checked against its annotation.

        Raises DSLCallError for anything but a writable array of one or two dimensions whose
        elements have a numeric type, and for one that differs from its declaration. Raises
        DSLTypeError for a masked array, and for elements whose bytes are in another order.
        """
        if not isinstance(value, np.ndarray):
            raise DSLCallError(f"'{name}' is declared a Buffer, got {type(value).__name__}")
        is_known = value.dtype.kind in "biufV"
        if is_known:
            ArrayRecord.of(value, name)  # raises for masks and for bytes in another order
        dtype = from_numpy_dtype(value.dtype) if is_known else None
        if dtype is None or not 1 <= value.ndim <= 2:
            raise DSLCallError(
                f"'{name}' is an array of {value.dtype} with {value.ndim} dimension(s)",
                hint="a buffer has one or two dimensions, of numbers",
            )
        if isinstance(annotation, Declared):
            ndim = annotation.ndim or value.ndim
            if dtype is not annotation.dtype or value.ndim != ndim:
                raise DSLCallError(
                    f"'{name}' is declared Buffer[{annotation.dtype.__name__}, {ndim}], got "
                    f"{value.dtype} in {value.ndim} dimension(s)"
                )
        if not value.flags.writeable:
            raise DSLCallError(f"'{name}' is read-only", hint="pass a copy")
        return cls(dtype, value.ndim)

    def ir_types(self, ir: Any) -> list[Any]:
        """The types of the address, of each extent and of each stride (64-bit integers)."""
        return [ir.Type.parse("!llvm.ptr"), *[ir.IntegerType.get_signless(64)] * (2 * self.ndim)]

    def proxy(self, values: Sequence[Any]) -> Buffer:
        """The `Buffer` made of the function's IR parameters."""
        pointer, *rest = values
        numbers = [Int64.from_value(value) for value in rest]
        shape, strides = numbers[: self.ndim], numbers[self.ndim :]
        return Buffer(self.dtype, pointer, tuple(shape), tuple(strides))

    def pack(self, value: Any) -> tuple[int, ...]:
        """The address, the shape in elements, and the strides in bytes of the array `value`."""
        return (value.__array_interface__["data"][0], *value.shape, *value.strides)

    def c_parameters(self, name: str) -> list[CParameter]:
        """In C, a struct of the address, the shape in elements and the strides in bytes."""
        text = f"{self}, strides in bytes"
        size = -(-self.dtype.width // 8)
        return [CParameter(name, "array", self.storage, self.ndim, text=text, align=size)]

    def unpacker(self) -> Unpacker | None:
        """`pack` as native code, so that a repeated call needs no Python."""
        axes = range(self.ndim)
        leaves = [Leaf(False, i) for i in axes] + [Leaf(True, i) for i in axes]
        return array_unpacker(self.dtype.numpy_dtype, self.ndim, leaves)

    def __str__(self) -> str:
        return f"Buffer[{self.dtype.__name__}, {self.ndim}]"
