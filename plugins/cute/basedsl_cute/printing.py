"""`cute.printf`: printing while the program runs, on the host or from every thread of a kernel."""

from __future__ import annotations

import re
from typing import Any

from basedsl.errors import DSLTypeError
from basedsl.metastage import require
from basedsl.numeric import Boolean, Float64, Int32, Int64, Numeric, as_numeric
from basedsl_cute import algebra
from basedsl_cute.dialect import define
from basedsl_cute.ssa import TensorSSA
from basedsl_cute.vectors import to_elements

_CONVERSION = re.compile(r"%[-+ #0]*\d*(?:\.\d+)?(?:hh|h|ll|l|z)?([diouxXfFeEgGcsp%])")


def printf(*args: Any) -> None:
    """Print at run time: `printf(fmt, *values)` or `printf(value)`.

    `fmt` has `{}` places, or C's conversions (`%d`, `%f`, ...). Values are numbers, vectors,
    integer tuples, layouts, or Python strings; of a tensor its type and layout are printed. In a
    kernel every thread prints; output appears when the stream is synchronised.
    """
    trace = require("printf()")
    fmt, values = (
        (args[0], list(args[1:])) if args and isinstance(args[0], str) else ("", list(args))
    )
    text, operands = _format(fmt, values)
    values_ir = [x.ir_value() for x in operands]
    define(trace.bindings).printf(text, values_ir, loc=trace.loc())


def _format(fmt: str, values: list[Any]) -> tuple[str, list[Any]]:
    if "{}" in fmt:
        parts = fmt.replace("%", "%%").split("{}")
        if len(parts) - 1 != len(values):
            raise DSLTypeError(
                f"printf has {len(parts) - 1} places {{}} and {len(values)} value(s)",
                hint="pass one value for each {}",
            )
        text, operands = parts[0], []
        for value, part in zip(values, parts[1:], strict=True):
            shown, numbers = _show(value)
            text += shown + part
            operands += numbers
        return text, operands
    kinds = [k for k in _CONVERSION.findall(fmt) if k != "%"]
    if len(kinds) == len(values):
        return fmt, [_convert(value, kind) for value, kind in zip(values, kinds, strict=True)]
    if kinds:
        raise DSLTypeError(
            f"printf has {len(kinds)} conversion(s) and {len(values)} value(s)",
            hint="pass one value for each %d, %f, ..., or write {} for any kind of value",
        )
    text, operands = fmt.replace("%", "%%"), []
    for value in values:  # print(fmt, values) in the style of Python
        shown, numbers = _show(value)
        text += (" " if text and not text.endswith((" ", "\n")) else "") + shown
        operands += numbers
    return text if text.endswith("\n") or fmt else text + "\n", operands


def _show(value: Any) -> tuple[str, list[Any]]:
    """The format and the operands that print `value`."""
    if isinstance(value, str):
        return value.replace("%", "%%"), []
    if isinstance(value, tuple):
        parts = [_show(v) for v in value]
        return "(" + ",".join(p for p, _ in parts) + ")", [x for _, xs in parts for x in xs]
    if isinstance(value, algebra.Layout):
        shape, stride = _show(value.shape), _show(value.stride)
        return f"{shape[0]}:{stride[0]}", shape[1] + stride[1]
    if isinstance(value, TensorSSA):
        parts = [_show(value.dtype.from_value(x)) for x in to_elements(value.ir_value())]
        return "[" + ", ".join(p for p, _ in parts) + "]", [x for _, xs in parts for x in xs]
    if isinstance(value, Numeric) and value.is_dynamic:
        if type(value).is_float:
            return "%f", [value.to(Float64)]
        if value.width > 32:
            return ("%lld" if type(value).signed else "%llu"), [value.to(Int64)]
        if type(value) is Boolean or type(value).signed:
            return "%d", [value.to(Int32)]
        return "%u", [value.to(Int32)]
    return str(value).replace("%", "%%"), []


def _convert(value: Any, kind: str) -> Any:
    number = as_numeric(value)
    if kind in "fFeEgG":
        return number.to(Float64)
    if type(number).is_float:
        raise DSLTypeError(
            f"printf got a {type(number).__name__} for %{kind}", hint="use %f, or convert the value"
        )
    return number.to(Int64 if number.width > 32 else Int32)
