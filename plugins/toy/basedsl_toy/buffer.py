"""NumPy arrays of one or two dimensions as arguments: a pointer, the shape, and the strides."""

from dataclasses import dataclass

import numpy as np

from basedsl import DSLCallError, DSLTypeError
from basedsl.binding import ArgumentType
from basedsl.metastage import require
from basedsl.native_call.unpackers import Leaf, array
from basedsl.numeric import Int64, Numeric, as_numeric, from_numpy_dtype, mlir_type


class Buffer:
    """An array inside a compiled function: `b[i]`, `b[i, j]`, `b.shape`, `len(b)`.

    As an annotation, `Buffer[Int32, 1]` declares the element type and the number of dimensions.
    Indexing means what it means in NumPy: negative indices count from the end, and an index out of
    range raises IndexError.
    """

    __dsl_leaf__ = True

    def __init__(self, dtype, pointer, shape, strides):
        self.dtype = dtype
        self.pointer = pointer
        self.shape = shape
        self._strides = strides  # in bytes

    def __class_getitem__(cls, item):
        return Declared(*item) if isinstance(item, tuple) else Declared(item, None)

    @property
    def ndim(self):
        return len(self.shape)

    def __dsl_len__(self):
        return self.shape[0]

    def __iter__(self):  # without it, Python would index without end
        raise DSLTypeError("a buffer is not iterated", hint="loop over range(len(b)) and read b[i]")

    def __bool__(self):
        raise DSLTypeError("a buffer has no truth value", hint="compare its length: len(b) > 0")

    def __getitem__(self, index):
        trace, address = self._address(index)
        llvm = trace.bindings.llvm
        kind = mlir_type(self.dtype, trace.ir)
        return self.dtype.from_value(trace.emit(llvm.LoadOp, kind, address).result)

    def __setitem__(self, index, value):
        trace, address = self._address(index)
        value = as_numeric(value)
        if type(value).is_float and self.dtype.is_integer:
            raise DSLTypeError(
                f"a {type(value).__name__} is stored into a buffer of {self.dtype.__name__}",
                hint=f"convert it with .to({self.dtype.__name__}) or int(...)",
            )
        trace.emit(trace.bindings.llvm.StoreOp, value.to(self.dtype).ir_value(), address)

    def _address(self, index):
        trace = require("indexing a buffer")
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


def _in_range(trace, index, size):
    """`index` as NumPy reads it; a trap if there is no such item."""
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
    """The annotation `Buffer[dtype, ndim]`."""

    dtype: type
    ndim: int | None


@dataclass(frozen=True)
class BufferArgument(ArgumentType):
    """What code for a buffer depends on: its element type and number of dimensions."""

    dtype: type
    ndim: int

    @staticmethod
    def is_declared_by(annotation):
        return annotation is Buffer or isinstance(annotation, Declared)

    @classmethod
    def of(cls, value, annotation, name):
        if not isinstance(value, np.ndarray):
            raise DSLCallError(f"'{name}' is declared a Buffer, got {type(value).__name__}")
        dtype = from_numpy_dtype(value.dtype) if value.dtype.kind in "biufV" else None
        if dtype is None or not 1 <= value.ndim <= 2:
            raise DSLCallError(
                f"'{name}' is an array of {value.dtype} with {value.ndim} dimension(s); a buffer "
                "holds numbers in one or two dimensions"
            )
        if isinstance(annotation, Declared):
            ndim = annotation.ndim or value.ndim
            if dtype is not annotation.dtype or value.ndim != ndim:
                raise DSLCallError(
                    f"'{name}' is declared Buffer[{annotation.dtype.__name__}, {ndim}], got an "
                    f"array of {value.dtype} with {value.ndim} dimension(s)"
                )
        if not value.flags.writeable:
            raise DSLCallError(f"'{name}' is read-only", hint="pass a copy")
        return cls(dtype, value.ndim)

    @property
    def formats(self):
        return ("q",) * (1 + 2 * self.ndim)

    def ir_types(self, ir):
        return [ir.Type.parse("!llvm.ptr"), *[ir.IntegerType.get_signless(64)] * (2 * self.ndim)]

    def proxy(self, values):
        pointer, *numbers = values
        numbers = [Int64.from_value(v) for v in numbers]
        shape, strides = numbers[: self.ndim], numbers[self.ndim :]
        return Buffer(self.dtype, pointer, tuple(shape), tuple(strides))

    def pack(self, value):
        return (value.__array_interface__["data"][0], *value.shape, *value.strides)

    def unpacker(self):
        """As `pack`, in native code: the address, the shape, the strides in bytes."""
        axes = range(self.ndim)
        leaves = [Leaf(False, i) for i in axes] + [Leaf(True, i) for i in axes]
        return array(self.dtype.numpy_dtype, self.ndim, leaves)

    def __str__(self):
        return f"Buffer[{self.dtype.__name__}, {self.ndim}]"
