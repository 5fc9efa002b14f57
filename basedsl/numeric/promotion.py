"""Promotion: the type of an operation on two types, and of a variable on two paths.

| operands                          | result                                                      |
|-----------------------------------|-------------------------------------------------------------|
| the same type                     | that type                                                   |
| Boolean, any other                | the other                                                   |
| integers of one signedness        | the wider                                                   |
| signed wider than unsigned        | the signed one                                              |
| signed not wider than unsigned    | the signed type twice as wide as the unsigned one, up to    |
|                                   | Int64; Uint64 or wider with signed: write the conversion    |
| integer, float                    | the float                                                   |
| Float16, BFloat16                 | Float32                                                     |
| two other floats                  | the wider                                                   |
| Python int, integer or float      | that type, and the number must fit                          |
| Python float, float               | that float                                                  |
| Python float, integer or Boolean  | the default float                                           |
| Python int, Boolean               | the default int                                             |
| storage type, another type        | write the conversion                                        |

A *weak* dynamic value (a Python number that became dynamic in a staged region) counts as a Python
number, but as nobody can check that it fits it is never narrowed: where its own type is wider than
the other, the result has its type. The default types are the DSL's; in plain Python they are Int32
and Float32.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from basedsl.errors import DSLTypeError
from basedsl.numeric.formats import Kind
from basedsl.numeric.number import Numeric
from basedsl.numeric.types import (
    TYPES,
    BFloat16,
    Boolean,
    Float16,
    Float32,
    Int32,
    from_numpy_dtype,
)
from basedsl.tracing import trace as tracing

Type = type[Numeric]


class Tie(IntEnum):
    """The strength with which an operand keeps its type."""

    STRONG = 0
    WEAK = 1  # known at run time only, came from a Python number
    LITERAL = 2  # a Python number known while compiling


class Defaults(tuple[Type, Type]):
    """The types of a Python int and a Python float."""

    __slots__ = ()

    @property
    def int(self) -> Type:
        """The type of a Python int."""
        return self[0]

    @property
    def float(self) -> Type:
        """The type of a Python float."""
        return self[1]


PLAIN_PYTHON = Defaults((Int32, Float32))


def defaults() -> Defaults:
    """Return the running DSL's types of Python numbers; Int32 and Float32 in plain Python."""
    trace = tracing.current_trace_or_none()
    if trace is None:
        return PLAIN_PYTHON
    return Defaults((trace.default_int, trace.default_float))


def promote(a: Any, b: Any) -> Type:
    """Return the type in which an operation on `a` and `b` is done, by the table above.

    Each is a numeric type, a numeric value, or a Python or NumPy number. Raises DSLTypeError for a
    pair without promotion.

        promote(Int8, Uint8)            # Int16
        promote(Int32, 2.0)             # Float32
    """
    now = defaults()
    return common_type(*operand_type(a, now), *operand_type(b, now), now)


def operand_type(x: Any, now: Defaults) -> tuple[Type, Tie]:
    """Return the type and the tie of a type, a numeric value, or a Python or NumPy number."""
    if isinstance(x, type) and issubclass(x, Numeric):
        return x, Tie.STRONG
    if isinstance(x, Numeric):
        if not x.weak:
            return type(x), Tie.STRONG
        return type(x), Tie.LITERAL if x.region is None else Tie.WEAK
    for python, T, tie in (
        (bool, Boolean, Tie.STRONG), (int, now.int, Tie.LITERAL), (float, now.float, Tie.LITERAL)
    ):  # fmt: skip
        if type(x) is python:
            return T, tie
    if hasattr(x, "dtype"):
        return from_numpy_dtype(x.dtype), Tie.STRONG
    if isinstance(x, (int, float)):  # a subclass, IntEnum for instance
        return now.int if isinstance(x, int) else now.float, Tie.LITERAL
    raise DSLTypeError(f"{x!r} of type {type(x).__name__} is not a number")


def common_type(A: Type, a: Tie, B: Type, b: Tie, now: Defaults) -> Type:
    """Return the result of `promote` for types with their ties."""
    if A is B:
        return A
    if A is Boolean or B is Boolean:
        return _with_boolean(*((B, b) if A is Boolean else (A, a)), now)
    if a is Tie.STRONG and b is not Tie.STRONG:
        return _adapt(B, b, A)
    if b is Tie.STRONG and a is not Tie.STRONG:
        return _adapt(A, a, B)
    return _join_strong(A, B)


def _with_boolean(other: Type, tie: Tie, now: Defaults) -> Type:
    if tie is not Tie.STRONG:
        return now.float if other.is_float else now.int
    return other


def _adapt(weak: Type, tie: Tie, strong: Type) -> Type:
    if weak.is_float and strong.is_integer:
        return weak
    if weak.is_same_kind(strong) and tie is Tie.WEAK and weak.width > strong.width:
        return weak
    return strong


def _join_strong(A: Type, B: Type) -> Type:
    for T in (A, B):
        if not T.format.arithmetic:
            raise storage_only(T, f"{A.__name__} and {B.__name__} have no common type")
    if A.is_integer and B.is_integer:
        return _join_integers(A, B)
    if A.is_integer or B.is_integer:
        return B if A.is_integer else A
    if {A, B} == {Float16, BFloat16}:
        return Float32
    return A if A.width > B.width else B


def _join_integers(A: Type, B: Type) -> Type:
    if A.kind is B.kind:
        return A if A.width > B.width else B
    signed, unsigned = (A, B) if A.kind is Kind.SIGNED else (B, A)
    if signed.width > unsigned.width:
        return signed
    if unsigned.width >= 64:
        raise DSLTypeError(
            f"no type holds both {A.__name__} and {B.__name__}",
            hint=f"convert one of them: x.to({signed.__name__}) or x.to({unsigned.__name__})",
        )
    return TYPES[f"Int{2 * unsigned.width}"]


def storage_only(T: Type, message: str | None = None) -> DSLTypeError:
    """Return the error for arithmetic on a storage type."""
    wide = "Float32" if T.is_float else "Int32"
    text = message or f"{T.__name__} has no arithmetic"
    return DSLTypeError(
        f"{text}: {T.__name__} is a storage type", hint=f"convert it first: x.to({wide})"
    )


def promote_types(a: Type, a_weak: bool, b: Type, b_weak: bool) -> tuple[Type, bool]:
    """Return the type of an expression that is an `a` or a `b`, and whether it is weak.

    A weak type counts as a Python number known while compiling: it takes the type of the other.
    """
    ties = {True: Tie.LITERAL, False: Tie.STRONG}
    return common_type(a, ties[a_weak], b, ties[b_weak], defaults()), a_weak and b_weak


def join_types(
    a: Type, a_weak: bool, b: Type, b_weak: bool, *, dynamic: bool = False
) -> tuple[Type, bool] | None:
    """Return the type of a variable that is an `a` on one path and a `b` on another, and if it is
    weak.

    None if a variable may not be both. A weak type adapts to a strong one of its kind and a weak
    int to any float; widths of one kind widen; Boolean joins only itself. With `dynamic` the weak
    side is known at run time only, and is not narrowed.
    """
    if a is b:
        return a, a_weak and b_weak
    if a is Boolean or b is Boolean:
        return None
    if a_weak and b_weak:
        if a.is_float == b.is_float:
            return (a if a.width > b.width else b), True
        return (a if a.is_float else b), True
    if a_weak or b_weak:
        weak, strong = (a, b) if a_weak else (b, a)
        if weak.is_float and not strong.is_float:
            return None
        if dynamic and weak.is_same_kind(strong) and weak.width > strong.width:
            return weak, False
        return strong, False
    return _join_strong_variable(a, b)


def _join_strong_variable(a: Type, b: Type) -> tuple[Type, bool] | None:
    if not (a.format.arithmetic and b.format.arithmetic):
        return None
    if a.is_integer and a.kind is b.kind:
        return (a if a.width > b.width else b), False
    if a.is_float and b.is_float:
        return _join_strong(a, b), False
    return None


def promotion_table(types: tuple[Type, ...] | None = None) -> str:
    """Return `promote` over all pairs of `types` as a text table; `-` where a conversion must be
    written.
    """
    rows = types or tuple(T for T in TYPES.values() if T.format.arithmetic)
    width = max(len(T.__name__) for T in rows) + 1
    lines = ["".join(text.ljust(width) for text in ("", *(T.__name__ for T in rows))).rstrip()]
    for A in rows:
        cells = [A.__name__]
        for B in rows:
            try:
                cells.append(promote(A, B).__name__)
            except DSLTypeError:
                cells.append("-")
        lines.append("".join(cell.ljust(width) for cell in cells).rstrip())
    return "\n".join(lines)
