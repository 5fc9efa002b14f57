"""Tensor maps in compiled code: host code encodes one, and a kernel takes it as a parameter.

The 128 bytes lie on the host's stack, 64-byte aligned, and are passed by value as a
`__grid_constant__` parameter, whose address the TMA unit reads (CUDA C++ Programming Guide, "Tensor
Memory Access").
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

from basedsl import (
    DSLError,
    DSLTypeError,
    Int64,
    Trace,
    as_numeric,
    current_trace,
    is_dynamic,
    kit_of,
    select,
)
from basedsl_cute.hardware.tensor_map_format import (
    ALIGNMENT,
    BYTES,
    CORNER_BITS,
    DATA_TYPES,
    ENCODE_IM2COL_SYMBOL,
    ENCODE_SYMBOL,
    ENCODERS,
    L2_PROMOTIONS,
    MAX_BOX,
    MAX_PIXELS,
    MAX_RANK,
    SWIZZLE_BYTES,
    SWIZZLE_NONE,
    UNPACKED_TYPES,
)

_FAILED = "the driver rejected the tensor map of this tensor"
_MAX_EXTENT, _MAX_STRIDE = 1 << 32, 1 << 40  # elements, bytes (CUDA driver API, tensor maps)
_MAX_STEP = 8  # elementStrides there


class TensorMapValue:
    """The address of a tensor map, as one leaf that a kernel takes by value."""

    __slots__ = ("value",)
    __dsl_leaf__ = True
    parameter_marks: ClassVar[dict[str, str]] = {
        "llvm.byval": f"!llvm.array<{BYTES} x i8>",
        "llvm.align": f"{ALIGNMENT} : i64",
        "cute.grid_constant": "unit",
    }

    def __init__(self, value: Any) -> None:
        self.value = value

    def ir_value(self) -> Any:
        return self.value

    def with_ir_value(self, value: Any) -> TensorMapValue:
        return TensorMapValue(value)

    def leaf_type(self) -> str:
        return "a tensor map"

    def undefined(self) -> Any:
        trace = current_trace("a tensor map")
        pointer = trace.bindings.llvm.PointerType.get()
        return trace.emit(trace.ir.Operation.create, "llvm.mlir.zero", results=[pointer]).result


def encode_tensor_map(
    dtype: Any,
    address: Any,
    extents: Sequence[Any],
    strides: Sequence[Any],
    box: Sequence[int],
    swizzle: int = SWIZZLE_NONE,
    element_strides: Sequence[int] | None = None,
    modes: Sequence[Any] | None = None,
    bits_in_smem: int | None = None,
    l2_promotion: int = 256,
) -> TensorMapValue:
    """Encode a tensor map in host code.

    `address` is an integer; `extents` and `strides` are in elements. Mode 0 is contiguous, and its
    stride is left out of `strides`. `box` is the shape that one copy moves, in elements, up to 256
    in each mode. `modes` are the names of the modes in messages; `bits_in_smem` those that an
    element takes in shared memory, if they are other than its own: 8 for elements of 4 and 6 bits.
    `l2_promotion` is 0, or the bytes, 64, 128 or 256, that a miss brings into L2 at least.

    A tensor that TMA cannot copy raises an error: DSLTypeError while compiling if that is known
    then, else an error when the host code runs.
    """
    host = _host()
    in_smem = dtype.width if bits_in_smem is None else bits_in_smem
    _check_tensor_map(dtype, extents, strides, box, swizzle, in_smem)
    rank = len(extents)
    out = host.slot("i8", BYTES, ALIGNMENT)
    wide = _checked_tensor(host, dtype, address, extents, strides, modes or range(rank))
    if in_smem != dtype.width:
        _demand(
            host,
            (wide[0][0] & 127) == 0,
            f"its contiguous extent of elements of {dtype.width} bits is no multiple of 128",
        )
    pointers = [
        host.array("i64", [n.ir_value() for n in wide[0]]),
        host.array("i64", [n.ir_value() for n in wide[1]]),
        host.array("i32", [host.constant(n) for n in box]),
        host.array("i32", [host.constant(n) for n in element_strides or [1] * rank]),
    ]
    numbers = [host.constant(n) for n in (0, swizzle, L2_PROMOTIONS[l2_promotion], 0)]
    number = DATA_TYPES.get(dtype.__name__, 0)
    if in_smem != dtype.width:
        number = UNPACKED_TYPES[dtype.width]
    first = [out, host.constant(number), host.constant(rank)]
    operands = [*first, _int64(address).ir_value(), *pointers, *numbers]
    return host.encoded(ENCODE_SYMBOL, out, operands)


def too_large_a_filter(mode: int) -> str:
    """Return the message for a filter that has no position in a spatial mode."""
    return f"the filter is larger than the image and its padding in spatial mode {mode}"


def encode_im2col_map(
    dtype: Any,
    address: Any,
    extents: Sequence[Any],
    strides: Sequence[Any],
    corners: tuple[Sequence[int], Sequence[int]],
    box: tuple[int, int],
    steps: Sequence[int],
    swizzle: int = SWIZZLE_NONE,
    modes: Sequence[Any] | None = None,
) -> TensorMapValue:
    """Encode the tensor map of an im2col copy in host code (`cuTensorMapEncodeIm2col`).

    `extents` are those of channels, of 1 to 3 spatial modes, the fastest first, and of images, and
    `strides` those of all but the channels, in elements. `corners` are the first position in each
    spatial mode, and the last one behind the extent - 1; positions are `steps` apart. `box` is the
    numbers of channels, up to 256, and of pixels, up to 1,024, of one copy. `address`, `swizzle`
    and `modes` are as for `encode_tensor_map`, and so are errors.
    """
    host = _host()
    rank, spatial = len(extents), len(steps)
    channels, pixels = box
    if rank != spatial + 2 or spatial not in CORNER_BITS:
        raise DSLTypeError(
            f"an im2col tensor map has channels, 1 to 3 spatial modes and images, not {rank} modes"
        )
    _check_elements(dtype, dtype.width)
    _check_row(channels * dtype.width // 8, swizzle)
    if not 0 < channels <= MAX_BOX or not 0 < pixels <= MAX_PIXELS:
        raise DSLTypeError(
            f"an im2col copy has 1 to {MAX_BOX} channels of 1 to {MAX_PIXELS} pixels, not "
            f"{channels} of {pixels}"
        )
    limit = 1 << CORNER_BITS[spatial] - 1
    if any(not -limit <= corner < limit for corner in (*corners[0], *corners[1])):
        raise DSLTypeError(
            f"the corners {tuple(corners[0])} and {tuple(corners[1])} are beyond {-limit} to "
            f"{limit - 1}",
            hint=f"so it is with {spatial} spatial modes; corners are -padding, and padding - "
            "dilation * (filter - 1)",
        )
    if any(not 0 < step <= _MAX_STEP for step in steps):
        raise DSLTypeError(f"a stride of pixels is 1 to {_MAX_STEP}, not {tuple(steps)}")
    out = host.slot("i8", BYTES, ALIGNMENT)
    wide = _checked_tensor(host, dtype, address, extents, strides, modes or range(rank))
    for mode in range(spatial):
        _demand(
            host,
            wide[0][1 + mode] + (corners[1][mode] - corners[0][mode]) > 0,
            too_large_a_filter(mode),
        )
    number = host.constant(DATA_TYPES[dtype.__name__])
    operands = [
        *(out, number, host.constant(rank), _int64(address).ir_value()),
        host.array("i64", [n.ir_value() for n in wide[0]]),
        host.array("i64", [n.ir_value() for n in wide[1]]),
        host.array("i32", [host.constant(n) for n in corners[0]]),
        host.array("i32", [host.constant(n) for n in corners[1]]),
        *(host.constant(channels), host.constant(pixels)),
        host.array("i32", [host.constant(n) for n in (1, *steps, 1)]),
        *(host.constant(n) for n in (0, swizzle, L2_PROMOTIONS[256], 0)),
    ]
    return host.encoded(ENCODE_IM2COL_SYMBOL, out, operands)


def _host() -> _Host:
    """Return a builder in the host function that is compiled; DSLError in a kernel."""
    trace = current_trace("a tensor map")
    if trace.function_kind == "kernel":
        raise DSLError(
            "a tensor map is encoded by the host; this is a kernel",
            hint="make the TMA atom in the @jit function and pass it to the kernel",
        )
    return _Host(trace)


def _check_elements(dtype: Any, in_smem: int) -> None:
    if dtype.__name__ not in DATA_TYPES and in_smem == dtype.width:
        raise DSLTypeError(f"TMA cannot copy elements of {dtype.__name__}")


def _check_row(row: int, swizzle: int) -> None:
    if row % 16 or (swizzle != SWIZZLE_NONE and row > SWIZZLE_BYTES[swizzle]):
        limit = "" if swizzle == SWIZZLE_NONE else f", at most {SWIZZLE_BYTES[swizzle]}"
        raise DSLTypeError(
            f"the contiguous mode of a TMA box is a multiple of 16 bytes{limit}, not {row}"
        )


def _check_tensor_map(
    dtype: Any, extents: Any, strides: Any, box: Any, swizzle: int, in_smem: int
) -> None:
    _check_elements(dtype, in_smem)
    if not 1 <= len(extents) <= MAX_RANK or len(strides) != len(extents) - 1:
        raise DSLTypeError(
            f"no tensor map has {len(extents)} extents and {len(strides)} strides",
            hint=f"it has 1 to {MAX_RANK} modes, and a stride for each but the contiguous one",
        )
    if len(box) != len(extents) or any(not 0 < n <= MAX_BOX for n in box):
        raise DSLTypeError(f"a TMA box has 1 to {MAX_BOX} elements in each mode, not {tuple(box)}")
    _check_row(box[0] * in_smem // 8, swizzle)


def _steps(extents: Sequence[Any], strides: Sequence[Any]) -> list[Any]:
    """Return the strides, with 0 for modes of one element, whose strides are arbitrary in
    arrays.
    """
    steps: list[Any] = []
    for extent, stride in zip(extents[1:], strides, strict=True):
        is_one = extent == 1
        if is_dynamic(is_one):
            steps.append(select(is_one, Int64(0), _int64(stride)))
        else:
            steps.append(0 if is_one else stride)
    return steps


def _checked_tensor(
    host: _Host, dtype: Any, address: Any, extents: Any, strides: Any, modes: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    """Return the extents, and the strides in bytes, as Int64, checked by the driver's rules."""
    steps = _steps(extents, strides)
    wide = [_int64(n) for n in extents], [_int64(n) * dtype.width // 8 for n in steps]
    _check_tensor(host, _int64(address), *wide, dtype.width, modes)
    return wide


def _check_tensor(
    host: _Host, address: Any, extents: Any, strides: Any, bits: int, modes: Sequence[Any]
) -> None:
    """Check the rules of cuTensorMapEncodeTiled for numbers that may be known at run time only."""
    _demand(host, (address & 15) == 0, "its first element is not at a multiple of 16 bytes")
    for mode, extent in zip(modes, extents, strict=True):
        _demand(host, extent > 0, f"mode {mode} has no elements: copy nothing instead")
        _demand(host, extent <= _MAX_EXTENT, f"mode {mode} has more than 2**32 elements")
    for mode, stride in zip(modes[1:], strides, strict=True):
        wanted = f"{128 // math.gcd(128, bits)} elements"
        _demand(
            host,
            (stride & 15) == 0,
            f"the stride of mode {mode} is not one of the multiples of 16 bytes ({wanted}): pad it",
        )
        _demand(
            host,
            (stride >= 0) & (stride < _MAX_STRIDE),
            f"the stride of mode {mode} is negative or 2**40 bytes or more",
        )


def _demand(host: _Host, holds: Any, what: str) -> None:
    message = f"TMA cannot copy this tensor: {what}"
    if is_dynamic(holds):
        host.emit("cf.assert", [holds.ir_value()], msg=host.ir.StringAttr.get(message))
    elif not holds:
        raise DSLTypeError(message)


def _int64(value: Any) -> Any:
    return as_numeric(value).to(Int64)


class _Host:
    """A builder of IR in a host function."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.ir = trace.ir
        self.pointer = trace.bindings.llvm.PointerType.get()

    def emit(self, name: str, operands: Sequence[Any], results: Any = (), **attributes: Any) -> Any:
        return self.trace.emit(
            self.ir.Operation.create,
            name,
            operands=list(operands),
            results=list(results),
            attributes=attributes,
        )

    def constant(self, value: int, bits: int = 32) -> Any:
        kind = self.ir.IntegerType.get_signless(bits)
        attribute = self.ir.IntegerAttr.get(kind, value)
        return self.emit("arith.constant", [], [kind], value=attribute).result

    def slot(self, element: str, count: int, alignment: int = 8) -> Any:
        """Allocate `count` elements on the stack, at the function's entry; return the address."""
        ir = self.ir
        block = ir.InsertionPoint.current.block
        while block.owner.operation.name != "func.func":
            block = block.owner.operation.block
        entry = block.owner.operation.regions[0].blocks[0]
        i64 = ir.IntegerType.get_signless(64)
        with ir.InsertionPoint.at_block_begin(entry):
            size = self.constant(count, 64)
            return self.emit(
                "llvm.alloca",
                [size],
                [self.pointer],
                elem_type=ir.TypeAttr.get(ir.Type.parse(element)),
                alignment=ir.IntegerAttr.get(i64, alignment),
            ).result

    def array(self, element: str, values: Sequence[Any]) -> Any:
        """Store the values in an array on the stack; return its address."""
        ir = self.ir
        slot = self.slot(element, max(1, len(values)))
        for i, value in enumerate(values):
            at = self.emit(
                "llvm.getelementptr",
                [slot],
                [self.pointer],
                elem_type=ir.TypeAttr.get(ir.Type.parse(element)),
                rawConstantIndices=ir.DenseI32ArrayAttr.get([i]),
            ).result
            self.emit("llvm.store", [value, at])
        return slot

    def encoded(self, symbol: str, out: Any, operands: Sequence[Any]) -> TensorMapValue:
        """Return the tensor map that an encoder writes to `out`, or fails."""
        status = self.call(symbol, operands)
        zero = self.constant(0)
        kit = kit_of(self.trace)
        kit.begin()
        good = kit.cmpi("eq", status, zero)
        message = f"{_FAILED} ({ENCODERS[symbol][0]})"
        self.emit("cf.assert", [good], msg=self.ir.StringAttr.get(message))
        return TensorMapValue(out)

    def call(self, symbol: str, operands: Sequence[Any]) -> Any:
        """Call an encoder, which is declared at its first use in the module; return the status."""
        ir, trace = self.ir, self.trace
        if symbol not in trace.declared:
            trace.declared.add(symbol)
            arguments = ", ".join(ENCODERS[symbol][1].split())
            kind = ir.Type.parse(f"!llvm.func<i32 ({arguments})>")
            with ir.InsertionPoint.at_block_begin(trace.module.body):
                ir.Operation.create(
                    "llvm.func",
                    attributes={
                        "sym_name": ir.StringAttr.get(symbol),
                        "function_type": ir.TypeAttr.get(kind),
                        "linkage": ir.Attribute.parse("#llvm.linkage<external>"),
                    },
                    regions=1,
                    loc=ir.Location.unknown(),
                )
        return self.emit(
            "llvm.call",
            operands,
            [ir.IntegerType.get_signless(32)],
            callee=ir.FlatSymbolRefAttr.get(symbol),
            operandSegmentSizes=ir.DenseI32ArrayAttr.get([len(operands), 0]),
            op_bundle_sizes=ir.DenseI32ArrayAttr.get([]),
        ).result
