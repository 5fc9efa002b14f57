"""Single arithmetic instructions: PTX ISA 9.7.1 (integers), 9.7.3 (floats), 9.7.9.7 "prmt"."""

from __future__ import annotations

from typing import Any

import basedsl_cute.tensors.math as math
from basedsl import (
    DSLTypeError,
    Float32,
    Int32,
    Int64,
    Integer,
    Numeric,
    Uint32,
    Uint64,
    as_numeric,
    current_trace,
    is_dynamic,
)
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.arch.emit import emit_op, i32
from basedsl_cute.tensors.kernel_scope import in_kernel
from basedsl_cute.tensors.tensor_ssa import TensorSSA, elementwise
from basedsl_cute.tensors.vector_ops import combine


@takes_location
def fmax(a: Any, b: Any, *, abs: bool = False, ftz: bool = False) -> Any:
    """Return the larger of two Float32 (PTX `max.f32`): of a NaN and a number, the number.

    `a` and `b` are numbers or vectors (`TensorSSA`), converted to Float32; vectors broadcast. With
    `abs` it is the larger of their absolute values. `ftz` lets subnormal ones be zero.
    """
    return elementwise(lambda x, y: combine("max", x, y), _float(a, abs), _float(b, abs))


@takes_location
def fmin(a: Any, b: Any, *, abs: bool = False, ftz: bool = False) -> Any:
    """Return the smaller of two Float32 (PTX `min.f32`): of a NaN and a number, the number.

    `a` and `b` are numbers or vectors (`TensorSSA`), converted to Float32; vectors broadcast. With
    `abs` it is the smaller of their absolute values. `ftz` lets subnormal ones be zero.
    """
    return elementwise(lambda x, y: combine("min", x, y), _float(a, abs), _float(b, abs))


def _float(x: Any, absolute: bool) -> Any:
    number = x.to(Float32) if isinstance(x, TensorSSA | Numeric) else Float32(x)
    return math.absf(number) if absolute else number


@takes_location
def rcp_approx(x: Any) -> Any:
    """Return the approximate reciprocal of `x`, a Float32 or a vector of them (PTX
    `rcp.approx.ftz.f32`).

    The error is at most 1 ulp; subnormal inputs and results are zero.
    """
    return math.rcp(x, approx=True)


@takes_location
def exp(x: Any, fastmath: bool = True) -> Any:
    """Return e to the power `x`, of a float or a vector.

    With `fastmath` the hardware's 2^x computes it (PTX `ex2.approx.ftz`, for Float32), else it is
    `cute.math.exp`.
    """
    return math.exp(x, fastmath=fastmath)


@takes_location
def exp2(x: Any, fastmath: bool = True) -> Any:
    """Return 2 to the power `x`, of a float or a vector; with `fastmath`, PTX `ex2.approx.ftz`."""
    return math.exp2(x, fastmath=fastmath)


@takes_location
def log(x: Any, fastmath: bool = True) -> Any:
    """Return the natural logarithm of `x`, a float or a vector.

    With `fastmath` the hardware's binary logarithm computes it (PTX `lg2.approx`, for Float32),
    else it is `cute.math.log`.
    """
    return math.log(x, fastmath=fastmath)


@takes_location
def log2(x: Any, fastmath: bool = True) -> Any:
    """Return the logarithm to base 2 of `x`, a float or a vector.

    With `fastmath` PTX `lg2.approx` computes it (for Float32), else it is `cute.math.log2`.
    """
    return math.log2(x, fastmath=fastmath)


@takes_location
def mul_hi(a: int | Integer, b: int | Integer) -> Integer:
    """Return the upper 32 bits of the product of two 32-bit integers (PTX `mul.hi`).

    The result is a Uint32 if `a` or `b` is one, else an Int32. Raises DSLTypeError for other types.
    """
    x, y = _words("mul_hi()", a, b)
    wide = Int64 if type(x) is Int32 else Uint64
    upper: Integer = ((x.to(wide) * y.to(wide)) >> 32).to(type(x))
    return upper


@takes_location
def mul_wide(a: int | Integer, b: int | Integer) -> Integer:
    """Return the product of two 32-bit integers in 64 bits (PTX `mul.wide`).

    The result is a Uint64 if `a` or `b` is a Uint32, else an Int64. Raises DSLTypeError for other
    types.
    """
    x, y = _words("mul_wide()", a, b)
    wide = Int64 if type(x) is Int32 else Uint64
    product: Integer = x.to(wide) * y.to(wide)
    return product


@takes_location
def lop3(a: int | Integer, b: int | Integer, c: int | Integer, lut: int) -> Integer:
    """Return a function of the bits of three 32-bit integers (PTX `lop3.b32`).

    `lut`, from 0 to 255 and known while compiling, is what the function makes of 0xF0 for `a`, 0xCC
    for `b` and 0xAA for `c`: `(0xF0 & 0xCC) | 0xAA` is `(a & b) | c`. The result is a Uint32 if one
    of the three is, else an Int32. Raises DSLTypeError for other types and tables.
    """
    if is_dynamic(lut) or not 0 <= (table := int(lut)) <= 255:
        raise DSLTypeError("the table of lop3() is an int from 0 to 255, known while compiling")
    words = _words("lop3()", a, b, c)
    result: Integer = type(words[0])(0)
    for row in range(8):
        if table >> row & 1:
            bits = zip(words, (4, 2, 1), strict=True)
            x, y, z = (word if row & bit else ~word for word, bit in bits)
            result = result | (x & y & z)
    return result


def _words(what: str, *values: Any) -> list[Any]:
    """Return 32-bit integers as numbers of one type: Uint32 if one of them is, else Int32."""
    numbers = [as_numeric(x) for x in values]
    for number in numbers:
        if not type(number).is_integer or type(number).width != 32:
            raise DSLTypeError(f"{what} takes 32-bit integers, not {type(number).__name__}")
    kind = Int32 if all(type(x).signed for x in numbers) else Uint32
    return [number.to(kind) for number in numbers]


@takes_location
def popc(x: int | Integer) -> Int32:
    """Return the number of bits of `x` that are 1, a 32- or 64-bit integer (PTX `popc`), as an
    Int32.

    Raises DSLTypeError for other types.
    """
    number = as_numeric(x)
    if not type(number).is_integer or type(number).width not in (32, 64):
        raise DSLTypeError(f"popc() takes a 32- or 64-bit integer, not {type(number).__name__}")
    trace = current_trace("popc()")
    value = number.ir_value()
    count = trace.emit(
        trace.ir.Operation.create, "math.ctpop", results=[value.type], operands=[value]
    ).result
    return (
        Int32.from_value(count) if type(number).width == 32 else Int64.from_value(count).to(Int32)
    )


@takes_location
def prmt(a: int | Integer, b: int | Integer, selector: int | Integer) -> Int32:
    """Return four bytes picked from the eight bytes of two 32-bit words (PTX `prmt.b32`).

    Bytes 0 to 3 are those of `a`, 4 to 7 those of `b`, lowest first. Bits 4i to 4i + 2 of
    `selector` are the number of the byte that becomes byte i of the result; bit 4i + 3 replicates
    its sign.
    """
    in_kernel("prmt()")
    operands = [i32(a), i32(b), i32(selector)]
    mode = {"mode": "#nvvm.permute_mode<default>"}
    return Int32.from_value(emit_op("prmt()", "nvvm.prmt", operands, ["i32"], mode).result)


@takes_location
def nanosleep(sleep_time: int | Integer) -> None:
    """Suspend the thread for about `sleep_time` nanoseconds (PTX `nanosleep.u32`, at most 1 ms)."""
    emit_op("nanosleep()", "nvvm.nanosleep", [i32(sleep_time)])
