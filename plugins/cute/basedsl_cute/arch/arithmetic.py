"""Single arithmetic instructions: PTX ISA 9.7.1 (integers), 9.7.3 (floats), 9.7.9.7 "prmt"."""

from __future__ import annotations

from typing import Any

import basedsl_cute.tensors.math as math
from basedsl.errors import DSLTypeError
from basedsl.metastage import require
from basedsl.numeric import Float32, Int32, Int64, Numeric, as_numeric
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.arch.emit import emit_op, i32
from basedsl_cute.tensors.kernel_scope import in_kernel
from basedsl_cute.tensors.tensor_ssa import TensorSSA, elementwise
from basedsl_cute.tensors.vector_ops import combine


@takes_location
def fmax(a: Any, b: Any) -> Any:
    """The larger of two Float32; of a NaN and a number, the number."""
    return elementwise(lambda x, y: combine("max", x, y), _float(a), _float(b))


@takes_location
def fmin(a: Any, b: Any) -> Any:
    """The smaller of two Float32; of a NaN and a number, the number."""
    return elementwise(lambda x, y: combine("min", x, y), _float(a), _float(b))


def _float(x: Any) -> Any:
    if isinstance(x, TensorSSA | Numeric):
        return x.to(Float32)
    return Float32(x)


@takes_location
def rcp_approx(x: Any) -> Any:
    """The approximate reciprocal of a Float32 or of a vector (1 ulp, subnormals are zero)."""
    return math.rcp(x, approx=True)


@takes_location
def exp(x: Any, fastmath: bool = True) -> Any:
    """e to the power x, by the hardware's 2^x."""
    return math.exp(x, fastmath=fastmath)


@takes_location
def exp2(x: Any, fastmath: bool = True) -> Any:
    """2 to the power x (`ex2.approx`)."""
    return math.exp2(x, fastmath=fastmath)


@takes_location
def log(x: Any, fastmath: bool = True) -> Any:
    """The natural logarithm, by the hardware's log2."""
    return math.log(x, fastmath=fastmath)


@takes_location
def log2(x: Any, fastmath: bool = True) -> Any:
    """The logarithm to base 2 (`lg2.approx`)."""
    return math.log2(x, fastmath=fastmath)


@takes_location
def popc(x: Any) -> Any:
    """The number of bits that are 1, an Int32."""
    number = as_numeric(x)
    if not type(number).is_integer or type(number).width not in (32, 64):
        raise DSLTypeError(f"popc() takes a 32- or 64-bit integer, not {type(number).__name__}")
    trace = require("popc()")
    value = number.ir_value()
    count = trace.emit(
        trace.ir.Operation.create, "math.ctpop", results=[value.type], operands=[value]
    ).result
    return (
        Int32.from_value(count) if type(number).width == 32 else Int64.from_value(count).to(Int32)
    )


@takes_location
def prmt(a: Any, b: Any, selector: Any) -> Any:
    """Four bytes picked from the eight of (b, a): nibble i of `selector` picks byte i."""
    in_kernel("prmt()")
    operands = [i32(a), i32(b), i32(selector)]
    mode = {"mode": "#nvvm.permute_mode<default>"}
    return Int32.from_value(emit_op("prmt()", "nvvm.prmt", operands, ["i32"], mode).result)


@takes_location
def nanosleep(sleep_time: Any) -> None:
    """Suspend the thread for about `sleep_time` nanoseconds."""
    emit_op("nanosleep()", "nvvm.nanosleep", [i32(sleep_time)])
