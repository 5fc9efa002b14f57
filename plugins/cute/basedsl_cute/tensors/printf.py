"""`cute.printf`: print while the program runs, on the host or from every thread of a kernel."""

from __future__ import annotations

import re
from collections.abc import Sequence
from string import Formatter
from typing import Any

from basedsl import (
    Boolean,
    DSLTypeError,
    Float64,
    Int32,
    Int64,
    Numeric,
    as_numeric,
    current_trace,
    with_article,
)
from basedsl_cute import algebra
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.tensors.tensor import Tensor
from basedsl_cute.tensors.tensor_ssa import TensorSSA
from basedsl_cute.tensors.vector_ops import to_elements

_INTEGERS = "diouxX"
# A replacement field of Python's format strings, without a name.
_PLACE = re.compile(r"\{(:[^{}]*)?\}")
_SPEC = re.compile(r"([-+ 0]*\d*(?:\.\d+)?)([dxXofeEgG]?)")
_CONVERSION = re.compile(r"%[-+ #0]*\d*(?:\.\d+)?(?:hh|h|ll|l|z)?([diouxXfFeEgGcsp%])")


@takes_location
def printf(*args: Any) -> None:
    """Print at run time: `printf(fmt, *values)` or `printf(value)`.

    `fmt` has replacement fields of Python (`{}`, `{:.3f}`, and `{{` for a brace) or conversions of
    C (`%d`, `%f`, `%s` for any value, ...). As in these languages, a `%` stands for itself beside
    `{}`, and is written `%%` beside conversions. Values are numbers, vectors, integer tuples,
    layouts, or Python strings; of a tensor its type and layout are printed (`print_tensor` prints
    the elements). A missing newline at the end is added. In a kernel every thread prints; on a GPU
    the output appears when the stream is synchronised.

    Raises DSLTypeError for another number of values than `fmt` has, and for a value that its
    conversion does not take.

    >>> import basedsl_cute as cute
    >>> @cute.jit
    ... def show(n: cute.Int32, x: cute.Float32):
    ...     cute.printf("n = {}, x = {:.2f}", n, x)
    """
    fmt, values = (args[0], args[1:]) if args and isinstance(args[0], str) else ("", args)
    _emit(fmt, values, "\n")


def write(fmt: str, *values: Any) -> None:
    """Print like `printf`, without the newline at the end."""
    _emit(fmt, values, "")


def _emit(fmt: str, values: Sequence[Any], end: str) -> None:
    trace = current_trace("printf()")
    text, operands = _format(fmt, list(values))
    values_ir = [x.ir_value() for x in operands]
    text = text if text.endswith("\n") else text + end
    # C's format: integers as i32 or i64, floats as f64, widened where C would promote.
    format = {"format": trace.ir.StringAttr.get(text)}
    trace.ir.Operation.create("gpu.printf", operands=values_ir, attributes=format, loc=trace.loc())


def _format(fmt: str, values: list[Any]) -> tuple[str, list[Any]]:
    if _PLACE.search(fmt):
        return _braces(fmt, values)
    kinds = [k for k in _CONVERSION.findall(fmt) if k != "%"]
    if len(kinds) == len(values):
        return _conversions(fmt, values)
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
    return text, operands


def _conversions(fmt: str, values: list[Any]) -> tuple[str, list[Any]]:
    """The C format and the operands of a format in C's style; `%s` shows any value."""
    operands: list[Any] = []
    rest = iter(values)

    def place(match: re.Match[str]) -> str:
        kind = match[1]
        if kind == "%":
            return match[0]
        value = next(rest)
        if kind == "s":
            shown, numbers = _show(value)
            operands.extend(numbers)
            return shown
        number = _convert(value, kind)
        flags = match[0][:-1].rstrip("hlz")
        if kind in _INTEGERS and (number.width > 32 or match[0][-2] in "lz"):
            number, kind = number.to(Int64), "ll" + kind  # as wide as what is passed
        operands.append(number)
        return flags + kind

    return _CONVERSION.sub(place, fmt), operands


def _braces(fmt: str, values: list[Any]) -> tuple[str, list[Any]]:
    """The C format and the operands of a format in Python's style."""
    try:
        pieces = list(Formatter().parse(fmt))
    except ValueError as error:
        raise DSLTypeError(f"printf's format {fmt!r}: {error}") from None
    places = [(field, spec, how) for _, field, spec, how in pieces if field is not None]
    if len(places) != len(values):
        raise DSLTypeError(
            f"printf has {len(places)} places {{}} and {len(values)} value(s)",
            hint="pass one value for each {}",
        )
    text, operands, rest = "", [], iter(values)
    for literal, field, spec, how in pieces:
        text += literal.replace("%", "%%")
        if field is None:
            continue
        if field or how:
            raise DSLTypeError(
                f"printf takes values in their order, not by {'{' + field + '}'}", hint="write {}"
            )
        shown, numbers = _shown_as(next(rest), spec or "")
        text += shown
        operands += numbers
    return text, operands


def _shown_as(value: Any, spec: str) -> tuple[str, list[Any]]:
    """The C format and operands of a value under a Python format specification that C has too."""
    if not spec:
        return _show(value)
    match = _SPEC.fullmatch(spec)
    number = isinstance(value, Numeric | int | float)
    if match is None or not number:
        raise DSLTypeError(
            f"printf cannot show {with_article(type(value))} as {{:{spec}}}",
            hint="numbers take width, precision and a type, for instance {:8.3f} or {:04x}",
        )
    value = as_numeric(value)
    flags, kind = match.groups()
    kind = kind or ("f" if "." in flags else "g" if type(value).is_float else "d")
    converted = _convert(value, kind)
    wide = "ll" if kind in _INTEGERS and converted.width == 64 else ""
    if kind == "d" and not type(value).signed and type(value) is not Boolean:
        kind = "u"
    return f"%{flags}{wide}{kind}", [converted]


def _show(value: Any) -> tuple[str, list[Any]]:
    """The C format and the operands that print a value of any kind."""
    if isinstance(value, tuple):
        return _joined("(", [_show(part) for part in value], ",", ")")
    if isinstance(value, algebra.Layout):
        return _joined("", [_show(value.shape), _show(value.stride)], ":", "")
    if isinstance(value, algebra.ComposedLayout):
        parts = [(_escaped(value.inner), []), _show(value.offset), _show(value.outer)]
        return _joined("", parts, " o ", "")
    if isinstance(value, Tensor):
        start = value.iterator
        begin = _show(start) if isinstance(start, tuple) else (_escaped(start), [])
        return _joined("tensor<", [begin, _show(value.layout)], " o ", ">")
    if isinstance(value, TensorSSA):
        elements = [value.dtype.from_value(x) for x in to_elements(value.ir_value())]
        return _joined("[", [_show(x) for x in elements], ", ", "]")
    if isinstance(value, Numeric) and value.is_dynamic:
        return _show_number(value)
    return _escaped(value), []


def _joined(
    begin: str, parts: Sequence[tuple[str, list[Any]]], separator: str, end: str
) -> tuple[str, list[Any]]:
    text = begin + separator.join(text for text, _ in parts) + end
    return text, [operand for _, operands in parts for operand in operands]


def _escaped(value: Any) -> str:
    return str(value).replace("%", "%%")


def _show_number(value: Numeric) -> tuple[str, list[Any]]:
    kind = type(value)
    if kind.is_float:
        return "%f", [value.to(Float64)]
    if value.width > 32:
        return ("%lld" if kind.signed else "%llu"), [value.to(Int64)]
    return ("%d" if kind is Boolean or kind.signed else "%u"), [value.to(Int32)]


def _convert(value: Any, kind: str) -> Any:
    number = as_numeric(value)
    if kind in "fFeEgG":
        return number.to(Float64)
    if type(number).is_float:
        raise DSLTypeError(
            f"printf got {with_article(type(number))} for %{kind}",
            hint="use %f, or convert the value",
        )
    return number.to(Int64 if number.width > 32 else Int32)
