"""Dialects declared in Python: operations as classes of typed fields, defined in MLIR by IRDL.

    class ArraysOp(OpView, dialect="arrays"):
        \"\"\"The operations of `arrays`.\"\"\"

    class Scale(ArraysOp, name="scale"):
        \"\"\"...an IR sample...\"\"\"

        source: Value = operand()
        scaled: Value = result(alias="type")
        factor: int = i64_attr()
        order: str | None = str_attr(default=None)

    class Arrays(Dialect):
        ops = ArraysOp

The declaration gives everything else. `Scale(dialect, source=x, type=t, factor=2)` builds the
operation at the current insertion point, as the generated classes of MLIR's bindings do, and is a
view of it: `.scaled` is the result, `.factor` a Python int. `Scale.of(dialect, op)` views one that
exists. MLIR verifies it: against the fields, then by `verify`, which returns the error in words, or
None.
"""

from basedsl.dialect.dialect import Dialect
from basedsl.dialect.fields import (
    i64_array_attr,
    i64_attr,
    operand,
    parameter,
    result,
    str_attr,
    unit_attr,
)
from basedsl.dialect.op_view import InvalidOp, OpView

__all__ = [
    "Dialect",
    "InvalidOp",
    "OpView",
    "i64_array_attr",
    "i64_attr",
    "operand",
    "parameter",
    "result",
    "str_attr",
    "unit_attr",
]
