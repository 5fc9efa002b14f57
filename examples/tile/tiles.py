"""tile: a DSL of tiles for the CPU, in one file: `load`, `store`, `dot`, masks, a grid over blocks.

A kernel is one program for each block of a grid; it loads tiles of arrays, computes with them, and
stores tiles. Tiles are MLIR vectors, and become vector instructions. Blocks run in threads.

    @tile.kernel
    def scale(x, y, factor):
        at = tile.program_id(0) * 256
        tile.store(y, at, tile.load(x, at, 256) * factor)

    @tile.jit
    def run(x, y, factor):
        scale(x, y, factor).launch(grid=tile.cdiv(x.shape[0], 256))
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from basedsl import (
    DSL,
    ArrayArgument,
    ArrayRecord,
    Boolean,
    Constexpr,
    DSLCallError,
    DSLTypeError,
    Export,
    Int64,
    Language,
    Numeric,
    Step,
    as_numeric,
    current_trace,
    mlir_type,
    native_invoker,
    native_pipeline,
    raise_failed_assertion,
    trace_kernel,
)

# Values ------------------------------------------------------------------------------------------


class Pointer:
    """The address of an array's first element."""

    def __init__(self, value):
        self.value = value

    def ir_value(self):
        return self.value

    def with_ir_value(self, value):
        return Pointer(value)

    def leaf_type(self):
        return "pointer"


class Array:
    """An array of one or two dimensions in the caller's memory."""

    def __init__(self, dtype, unit, pointer, shape, strides):
        self.dtype, self.unit, self.pointer = dtype, unit, pointer
        self.shape, self.strides = shape, strides  # strides in elements

    def __dsl_leaves__(self):
        return self.pointer, self.shape, self.strides

    def __dsl_rebuild__(self, parts):
        return Array(self.dtype, self.unit, *parts)

    def __dsl_static__(self):
        return self.dtype, self.unit

    def memref(self):
        """The array as a memref: a descriptor is filled, and cast."""
        rank = len(self.shape)
        dims, steps = "?x" * rank, ", ".join("?" * (rank - 1) + ("1" if self.unit else "?"))
        value = _op(
            f"!llvm.struct<(ptr, ptr, i64, array<{rank} x i64>, array<{rank} x i64>)>",
            "llvm.mlir.undef",
        )
        fields = [((0,), self.pointer), ((1,), self.pointer), ((2,), Int64(0))]
        fields += [((3, i), size) for i, size in enumerate(self.shape)]
        fields += [((4, i), step) for i, step in enumerate(self.strides)]
        for at, part in fields:
            place = current_trace("an array").ir.DenseI64ArrayAttr.get(at)
            value = _op(value.type, "llvm.insertvalue", value, part.ir_value(), position=place)
        kind = f"memref<{dims}{_mlir(self.dtype)}, strided<[{steps}]>>"
        return _op(kind, "builtin.unrealized_conversion_cast", value)


class TileArray(ArrayArgument):
    """An array of one or two dimensions as an argument."""

    def proxy(self, values):
        pointer, shape, strides = self.parts(values)
        return Array(self.dtype, self.is_compact, Pointer(pointer), shape, strides)


class Tile:
    """A vector of a static shape: a block of an array, or what was computed from such."""

    __dsl_leaf__ = True

    def __init__(self, dtype, shape, value):
        self.dtype, self.shape, self.value = dtype, shape, value

    def ir_value(self):
        return self.value

    def with_ir_value(self, value):
        return Tile(self.dtype, self.shape, value)

    def leaf_type(self):
        return Tile, self.dtype, self.shape

    def undefined(self):
        return full(self.shape, 0, self.dtype).value

    def to(self, dtype):
        """This tile with elements of another type."""
        a, b = self.dtype, dtype
        if a is b:
            return self
        if a.is_float and b.is_float:
            name = "arith.extf" if b.width > a.width else "arith.truncf"
        elif not a.is_float and not b.is_float:
            widen = "arith.extui" if a is Boolean else "arith.extsi"
            name = widen if b.width > a.width else "arith.trunci"
        else:
            unsigned = a is Boolean
            name = (
                ("arith.uitofp" if unsigned else "arith.sitofp") if b.is_float else "arith.fptosi"
            )
        return Tile(b, self.shape, _op(_vector(b, self.shape), name, self.value))

    def _binary(self, other, ints, floats, reverse=False):
        a, b = _together(self, other)
        if reverse:
            a, b = b, a
        name = floats if a.dtype.is_float else ints
        return Tile(a.dtype, a.shape, _op(a.value.type, f"arith.{name}", a.value, b.value))

    def __add__(self, other):
        return self._binary(other, "addi", "addf")

    def __sub__(self, other):
        return self._binary(other, "subi", "subf")

    def __mul__(self, other):
        return self._binary(other, "muli", "mulf")

    def __truediv__(self, other):
        return self._binary(other, "none", "divf")

    def __rsub__(self, other):
        return self._binary(other, "subi", "subf", reverse=True)

    __radd__, __rmul__ = __add__, __mul__

    def _compare(self, other, ints, floats):
        a, b = _together(self, other)
        name, code = ("arith.cmpf", floats) if a.dtype.is_float else ("arith.cmpi", ints)
        ir = current_trace("a comparison").ir
        predicate = ir.IntegerAttr.get(ir.IntegerType.get_signless(64), code)
        kind = _vector(Boolean, a.shape)
        return Tile(Boolean, a.shape, _op(kind, name, a.value, b.value, predicate=predicate))

    def __lt__(self, other):
        return self._compare(other, 2, 4)

    def __gt__(self, other):
        return self._compare(other, 4, 2)

    def __and__(self, other):
        return self._binary(other, "andi", "none")

    def _reduced(self, kind, axis):
        axes = range(len(self.shape)) if axis is None else (axis % len(self.shape),)
        shape = tuple(n for i, n in enumerate(self.shape) if i not in axes)
        start = {"add": 0, "maximumf": -math.inf}[kind]
        first = full(shape, start, self.dtype) if shape else self.dtype(start)
        ir = current_trace("a reduction").ir
        made = _op(
            first.ir_value().type,
            "vector.multi_reduction",
            self.value,
            first.ir_value(),
            kind=ir.Attribute.parse(f"#vector.kind<{kind}>"),
            reduction_dims=ir.DenseI64ArrayAttr.get(list(axes)),
        )
        return Tile(self.dtype, shape, made) if shape else self.dtype.from_value(made)

    def sum(self, axis=None):
        """The sum over an axis, or over all elements."""
        return self._reduced("add", axis)

    def max(self, axis=None):
        """The largest number along an axis, or of all elements."""
        return self._reduced("maximumf", axis)

    def expanded(self, axis):
        """This tile with an axis of extent 1 put in."""
        shape = (*self.shape[:axis], 1, *self.shape[axis:])
        kind = _vector(self.dtype, shape)
        return Tile(self.dtype, shape, _op(kind, "vector.shape_cast", self.value))


# What kernels call -------------------------------------------------------------------------------


def program_id(axis):
    """The number of this block along an axis of the grid."""
    return current_trace("program_id").extension.block[axis]


def cdiv(a, b):
    """The number of blocks of `b` that cover `a`."""
    return (a + b - 1) // b


def full(shape, number, dtype):
    """A tile whose elements are all `number`."""
    number = as_numeric(number).to(dtype).ir_value()
    return Tile(dtype, tuple(shape), _op(_vector(dtype, shape), "vector.broadcast", number))


def arange(n):
    """The integers from 0 to n - 1."""
    ir = current_trace("arange").ir
    numbers = ir.DenseElementsAttr.get(np.arange(n), type=_vector(Int64, (n,)))
    return Tile(Int64, (n,), _op(numbers.type, "arith.constant", value=numbers))


def load(array, at, shape, mask=None, other=0):
    """A tile of `shape` whose first element is that of `array` at `at`. Elements beyond the array,
    and those that the `mask` leaves out, are `other`.
    """
    shape, at = _tuple(shape), _tuple(at)
    _check_rank(array, at, shape)
    pad = as_numeric(other).to(array.dtype).ir_value()
    operands = [array.memref(), *map(_index, at), pad]
    value = _transfer("vector.transfer_read", operands, mask, shape, [_vector(array.dtype, shape)])
    return Tile(array.dtype, shape, value.result)


def store(array, at, value, mask=None):
    """Write a tile to `array` from `at` on; nothing beyond the array, nor where the mask does not
    hold.
    """
    at = _tuple(at)
    _check_rank(array, at, value.shape)
    operands = [value.to(array.dtype).value, array.memref(), *map(_index, at)]
    _transfer("vector.transfer_write", operands, mask, value.shape, [])


def dot(a, b, acc):
    """`acc` plus the matrix product of two tiles, in `acc`'s type."""
    if a.shape[1] != b.shape[0] or acc.shape != (a.shape[0], b.shape[1]):
        raise DSLTypeError(f"dot of {a.shape} and {b.shape} does not fit {acc.shape}")
    a, b = a.to(acc.dtype), b.to(acc.dtype)
    ir = current_trace("dot").ir
    maps = ("(m, n, k) -> (m, k)", "(m, n, k) -> (k, n)", "(m, n, k) -> (m, n)")
    kinds = ("parallel", "parallel", "reduction")
    made = _op(
        acc.value.type,
        "vector.contract",
        *(one.value for one in (a, b, acc)),
        indexing_maps=ir.ArrayAttr.get([ir.Attribute.parse(f"affine_map<{m}>") for m in maps]),
        iterator_types=ir.ArrayAttr.get(
            [ir.Attribute.parse(f"#vector.iterator_type<{k}>") for k in kinds]
        ),
        kind=ir.Attribute.parse("#vector.kind<add>"),
    )
    return Tile(acc.dtype, acc.shape, made)


def where(mask, a, b):
    """`a` where the mask holds, else `b`, element by element."""
    a, b = _together(a, b)
    return Tile(a.dtype, a.shape, _op(a.value.type, "arith.select", mask.value, a.value, b.value))


def exp(x):
    """The exponential of each element."""
    return Tile(x.dtype, x.shape, _op(x.value.type, "math.exp", x.value))


# How they become IR ------------------------------------------------------------------------------


def _op(type_, name, *operands, **attributes):
    trace = current_trace(name)
    type_ = trace.ir.Type.parse(type_) if isinstance(type_, str) else type_
    return trace.emit_op(name, type_, *operands, **attributes)


def _mlir(dtype):
    return str(mlir_type(dtype, current_trace("a type").ir))


def _vector(dtype, shape):
    dims = "".join(f"{n}x" for n in shape)
    return current_trace("a tile").ir.Type.parse(f"vector<{dims}{_mlir(dtype)}>")


def _tuple(x):
    return tuple(x) if isinstance(x, tuple | list) else (x,)


def _check_rank(array, at, shape):
    if not len(array.shape) == len(at) == len(shape):
        raise DSLTypeError(
            f"a tile of {len(shape)} dimension(s) at {len(at)} indices of an array of "
            f"{len(array.shape)}"
        )


def _index(x):
    return _op("index", "arith.index_cast", as_numeric(x).to(Int64).ir_value())


def _transfer(name, operands, mask, shape, results):
    trace = current_trace(name)
    ir, rank = trace.ir, len(shape)
    sizes = [1, rank, 1] if results else [1, 1, rank]
    if mask is not None:
        operands = [*operands, mask.value]
    segments = ir.DenseI32ArrayAttr.get([*sizes, int(mask is not None)])
    dims = ", ".join(f"d{i}" for i in range(rank))
    return trace.emit(
        ir.Operation.create,
        name,
        results=results,
        operands=operands,
        attributes={
            "permutation_map": ir.Attribute.parse(f"affine_map<({dims}) -> ({dims})>"),
            "in_bounds": ir.ArrayAttr.get([ir.BoolAttr.get(False)] * rank),
            "operandSegmentSizes": segments,
        },
    )


def _together(a, b):
    """Two tiles of one type and one shape: numbers and extents of 1 are stretched."""
    tile = a if isinstance(a, Tile) else b
    a, b = (x if isinstance(x, Tile) else full(tile.shape, x, tile.dtype) for x in (a, b))
    if a.dtype is not b.dtype:
        raise DSLTypeError(
            f"a tile of {a.dtype.__name__} meets one of {b.dtype.__name__}",
            hint="convert one with .to(...)",
        )
    shape = np.broadcast_shapes(a.shape, b.shape)
    return tuple(
        x
        if x.shape == shape
        else Tile(x.dtype, shape, _op(_vector(x.dtype, shape), "vector.broadcast", x.value))
        for x in (a, b)
    )


# Launching ---------------------------------------------------------------------------------------


@dataclass
class Record:
    """The memory of one compilation: the block that the kernel being traced runs for."""

    block: tuple = ()


@dataclass
class KernelCall:
    """A kernel with its arguments."""

    __dsl_leaf__ = True
    kernel: object
    values: list

    def launch(self, *, grid):
        """Run the kernel for each block of a grid of one or two extents, in threads."""
        trace = current_trace("launch")
        ir, sizes = trace.ir, [as_numeric(n).to(Int64) for n in _tuple(grid)]
        width = sizes[0]
        blocks = sizes[0] * sizes[1] if len(sizes) == 2 else sizes[0]
        pointer = ir.Type.parse("!llvm.ptr")

        @contextlib.contextmanager
        def opened(symbol, types, passed):
            # void kernel(void *slots, int64_t begin, int64_t end): arguments are in 8-byte slots.
            i64 = mlir_type(Int64, ir)
            kinds = [pointer, i64, i64]
            with ir.InsertionPoint(trace.module.body):
                op = Language.new_function(trace.language, trace, symbol, kinds)
            entry = op.regions[0].blocks[0]
            slots, *range_ = entry.arguments
            with trace.insertion(entry):
                loaded = [_load_slot(slots, i, kind) for i, kind in enumerate([*types, i64])]
                begin, end = (_op("index", "arith.index_cast", value) for value in range_)
                one = _op(
                    "index", "arith.constant", value=ir.IntegerAttr.get(ir.IndexType.get(), 1)
                )
                loop = ir.Operation.create("scf.for", operands=[begin, end, one], regions=1)
                body = loop.regions[0].blocks.append(ir.IndexType.get())
                Language.end_function(trace.language, trace, op, [])
            with trace.insertion(body):
                number = Int64.from_value(_op(i64, "arith.index_cast", body.arguments[0]))
                across = Int64.from_value(loaded.pop())
                trace.extension.block = (number % across, number // across)
                yield loaded
                ir.Operation.create("scf.yield")

        symbol, operands = trace_kernel(trace, self.kernel, self.values, opened)
        operands = [*operands, width.ir_value()]
        count = Int64(len(operands)).ir_value()
        slots = _op(pointer, "llvm.alloca", count, elem_type=ir.TypeAttr.get(mlir_type(Int64, ir)))
        for i, operand in enumerate(operands):
            trace.emit(trace.bindings.llvm.StoreOp, operand, _slot(slots, i))
        address = _op(_FUNCTION, "func.constant", value=ir.FlatSymbolRefAttr.get(symbol))
        address = _op(pointer, "builtin.unrealized_conversion_cast", address)
        _declare(trace, pointer)
        callee = ir.FlatSymbolRefAttr.get(LAUNCHER)
        arguments = [address, slots, blocks.ir_value()]
        trace.emit(
            ir.Operation.create, "func.call", operands=arguments, attributes={"callee": callee}
        )


LAUNCHER = "tile_launch"
_FUNCTION = "(!llvm.ptr, i64, i64) -> ()"


def _declare(trace, pointer):
    if LAUNCHER not in trace.declared:
        trace.declared.add(LAUNCHER)
        ir = trace.ir
        kinds = [pointer, pointer, mlir_type(Int64, ir)]
        with ir.InsertionPoint(trace.module.body):
            kind = ir.FunctionType.get(kinds, [])
            named = {
                "sym_name": ir.StringAttr.get(LAUNCHER),
                "function_type": ir.TypeAttr.get(kind),
                "sym_visibility": ir.StringAttr.get("private"),
            }
            ir.Operation.create("func.func", attributes=named, regions=1)


def _slot(slots, i):
    trace = current_trace("a slot")
    ir = trace.ir
    at = ir.DenseI32ArrayAttr.get([i])
    return trace.emit(
        trace.bindings.llvm.GEPOp, slots.type, slots, [], at, mlir_type(Int64, ir), None
    ).result


def _load_slot(slots, i, kind):
    trace = current_trace("a slot")
    return trace.emit(trace.bindings.llvm.LoadOp, kind, _slot(slots, i)).result


_THREADS = os.cpu_count() or 1
_pool = ThreadPoolExecutor(_THREADS)
_failures = []


@ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
def _launch(kernel, slots, blocks):
    """Run the blocks in as many threads as there are processors; ctypes lets go of the GIL."""
    run = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(kernel)

    def some(begin):
        run(slots, begin, min(begin + size, blocks))
        try:
            raise_failed_assertion()
        except Exception as error:
            _failures.append(error)

    size = max(1, -(-blocks // _THREADS))
    list(_pool.map(some, range(0, blocks, size)))


def _raise_failure():
    raise_failed_assertion()
    if _failures:
        error = _failures[0]
        _failures.clear()
        raise error


# The language ------------------------------------------------------------------------------------


class TileLanguage(Language):
    """Tiles as vectors, blocks in threads, native code of this machine."""

    name = "tile"
    package = __name__  # its frames are no users'
    dialects = (*Language.dialects, "vector", "memref")

    def load_dialects(self, bindings):
        for name in ("vector", "memref"):  # their operations are made by name
            _ = bindings.ir.Context.current.dialects[name]

    def argument_type(self, value, annotation, name):
        if not ArrayRecord.can_read(value):
            return None
        found = TileArray.of(value, name)
        if not 1 <= found.rank <= 2:
            raise DSLCallError(f"'{name}' has {found.rank} dimensions; tiles are of one or two")
        return found

    def new_extension(self):
        return Record()

    def launch(self, kernel, args, kwargs):
        return KernelCall(kernel, kernel.signature.bind(args, kwargs))

    def pipeline(self, settings):
        tiles = Step(
            "tiles",
            "func.func(lower-vector-mask,lower-vector-multi-reduction,"
            "convert-vector-to-scf{full-unroll=true}),canonicalize,cse",
        )
        return native_pipeline((tiles,), opt_level=settings.opt_level)

    def executor(self, stages, symbol, arguments, results, settings):
        address = ctypes.cast(_launch, ctypes.c_void_p).value
        return native_invoker(
            stages.artifact, symbol, arguments, results, {LAUNCHER: address}, _raise_failure
        )

    def export(self, compiled, prefix):
        return TileExport(compiled, prefix)


class TileExport(Export):
    """C programs have no Python to run blocks in threads: they run one after another."""

    provides = (*Export.provides, LAUNCHER)

    def support(self):
        launcher = f"""
define internal void @{self.prefix}_{LAUNCHER}(ptr %kernel, ptr %slots, i64 %blocks) {{
  call void %kernel(ptr %slots, i64 0, i64 %blocks)
  ret void
}}
"""
        return super().support() + launcher


TILE = DSL(TileLanguage())
jit, kernel = TILE.jit, TILE.kernel

__all__ = [
    "TILE",
    "Array",
    "Constexpr",
    "Numeric",
    "Tile",
    "arange",
    "cdiv",
    "dot",
    "exp",
    "full",
    "jit",
    "kernel",
    "load",
    "program_id",
    "store",
    "where",
]
