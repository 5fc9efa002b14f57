"""`<<` and `>>` as ops, defined for every count: shifting out everything leaves 0 or the sign.

The count keeps its own integer type, so that a wide count is compared before it is narrowed. A
count that is negative at run time is an error where the emitter checks (`numeric.checks`); else it
shifts out everything.
"""

from __future__ import annotations

from typing import Any

from basedsl.errors import DSLError
from basedsl.numeric.checks import check_at_run_time
from basedsl.numeric.conversion import emit_conversion
from basedsl.numeric.formats import Kind
from basedsl.numeric.kit import Kit, Value
from basedsl.numeric.protocols import NumericType

Type = NumericType


def left(kit: Kit, T: Type, C: Type, x: Any, count: Any) -> Any:
    """x << count."""
    return _logical(kit, "arith.shli", T, C, x, count)


def right_unsigned(kit: Kit, T: Type, C: Type, x: Any, count: Any) -> Any:
    """x >> count of an unsigned x."""
    return _logical(kit, "arith.shrui", T, C, x, count)


def right_signed(kit: Kit, T: Type, C: Type, x: Any, count: Any) -> Any:
    """x >> count of a signed x."""
    t = kit.type_of(T)
    if isinstance(count, int):
        amount = kit.constant(T, min(_known(count), T.width - 1))
        return kit.op("arith.shrsi", t, kit.value(T, x), amount)
    _check_count(kit, C, count)
    fits, amount = _amount(kit, T, C, count)
    amount = kit.select(fits, amount, kit.constant(T, T.width - 1))
    return kit.op("arith.shrsi", t, kit.value(T, x), amount)


def _logical(kit: Kit, op: str, T: Type, C: Type, x: Any, count: Any) -> Any:
    t = kit.type_of(T)
    if isinstance(count, int):
        if _known(count) >= T.width:
            return 0
        return kit.op(op, t, kit.value(T, x), kit.constant(T, count))
    _check_count(kit, C, count)
    return shift_in_zeros(kit, op, T, C, x, count)


def shift_in_zeros(kit: Kit, op: str, T: Type, C: Type, x: Any, count: Value) -> Value:
    """Emit the logical shift `op` by a dynamic count, 0 for a count outside of the width."""
    t = kit.type_of(T)
    zero = kit.constant(T, 0)
    fits, amount = _amount(kit, T, C, count)
    # The amount is made valid first: shifting by the width or more is poison in MLIR.
    shifted = kit.op(op, t, kit.value(T, x), kit.select(fits, amount, zero))
    return kit.select(fits, shifted, zero)


def _known(count: int) -> int:
    if count < 0:
        raise DSLError(f"negative shift count {count}")
    return count


def _amount(kit: Kit, T: Type, C: Type, count: Value) -> tuple[Value, Value]:
    """Emit whether 0 <= count < T.width, and the count as a `T`."""
    if C.width < T.width:
        count, C = emit_conversion(kit, C, T, count), T
    fits = kit.cmpi("ult", count, kit.constant(C, T.width))
    return fits, emit_conversion(kit, C, T, count)


def _check_count(kit: Kit, C: Type, count: Value) -> None:
    if C.kind is Kind.SIGNED:
        check_at_run_time(
            kit,
            lambda: kit.cmpi("sge", count, kit.constant(C, 0)),
            ValueError,
            "negative shift count",
        )
