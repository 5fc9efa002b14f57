"""Carried types: how a leaf of staged control flow becomes an SSA value, and back.

A leaf (a number, an object of a plugin) has a `CarriedType`. Two carried types of one variable join
to the type that the values of both paths can be converted to; if there is none, the program is
wrong. A leaf without a carried type is static. A member of an enumeration becomes its place
(`chosen_member`).

Besides numerics, any class may be carried as one SSA value by providing `ir_value()`,
`with_ir_value(value)` and `leaf_type()` (hashable: all of it that is static). If values of two
types can be converted to a third, `joined(other)` returns a leaf of that type (or None), and
`ir_value_as(leaf)` of that leaf converts.
"""

from __future__ import annotations

import functools
import math
import sys
from dataclasses import dataclass, field, replace
from typing import Any

from basedsl.errors import DSLTypeError
from basedsl.location import file_of_module, is_internal
from basedsl.metastage.chosen_member import ChosenMember, is_carried
from basedsl.numeric import Boolean, Int64, Numeric, is_dynamic, join_types
from basedsl.numeric import promote as promote_types
from basedsl.tracing import Trace


@dataclass(frozen=True)
class CarriedNumber:
    """The carried type of a number: a DSL type; weak if it came from a Python literal.

    `literal` is True while it still is one. `divby` divides the number on every path: 0 for a
    literal 0, 1 if nothing is known.
    """

    type: Any
    weak: bool
    literal: bool = field(default=False, compare=False)
    divby: int = 1

    def __str__(self) -> str:
        return str(self.type.__name__)

    def to_ir(self, leaf: Any) -> Any:
        """Return the SSA value of `leaf`, converted to this type."""
        if isinstance(leaf, Numeric):
            return leaf.to(self.type).ir_value()
        if type(leaf) is bool and self.type is not Boolean:
            leaf = int(leaf)
        return self.type(leaf).ir_value()

    def from_ir(self, value: Any) -> Any:
        """Return the leaf for an SSA value of this type."""
        number = self.type.from_value(value, weak=self.weak)
        known = self.divby & -self.divby  # a power of two still divides a number that wrapped
        return number.with_divby(known) if known > 1 else number

    def undefined(self) -> Any:
        """Return an SSA value for a path on which the variable has none; nothing reads it."""
        return self.type(0).ir_value()


@dataclass(frozen=True)
class CarriedObject:
    """The carried type of an object of a plugin's class: a pointer, a descriptor, a vector."""

    type: Any
    exemplar: Any

    def __str__(self) -> str:
        return str(self.type)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CarriedObject) and self.type == other.type

    def __hash__(self) -> int:
        return hash(self.type)

    def to_ir(self, leaf: Any) -> Any:
        """Return the SSA value of `leaf`, converted to this type."""
        if hasattr(type(self.exemplar), "ir_value_as"):
            return self.exemplar.ir_value_as(leaf)
        return leaf.ir_value()

    def from_ir(self, value: Any) -> Any:
        """Return the leaf for an SSA value of this type."""
        return self.exemplar.with_ir_value(value)

    def undefined(self) -> Any:
        """Return an SSA value for a path on which the variable has none; nothing reads it."""
        return self.exemplar.undefined()


CarriedType = CarriedNumber | CarriedObject


def carried_type_of(leaf: Any, trace: Trace) -> CarriedType | None:
    """Return the carried type of `leaf`, or None if it can only be static."""
    if isinstance(leaf, Numeric):
        return CarriedNumber(type(leaf), leaf.weak, divby=_divisor(leaf))
    if type(leaf) is bool:
        return CarriedNumber(Boolean, True, True)
    if type(leaf) is int:
        return CarriedNumber(_int_type(leaf, trace), True, True, abs(leaf))
    if type(leaf) is float:
        return CarriedNumber(trace.default_float, True, True)
    if hasattr(type(leaf), "with_ir_value"):
        return CarriedObject(leaf.leaf_type(), leaf)
    if is_carried(leaf):
        member = ChosenMember(type(leaf))
        return CarriedObject(member.leaf_type(), member)
    return None


def joined_type(a: CarriedType, b: CarriedType) -> CarriedType | None:
    """Return the type of a variable that is `a` on one path and `b` on another, or None."""
    if a == b:
        return a
    if isinstance(a, CarriedNumber) and isinstance(b, CarriedNumber):
        divby = math.gcd(a.divby, b.divby)
        if (a.type, a.weak) == (b.type, b.weak):
            return replace(a, divby=divby, literal=a.literal and b.literal)
        dynamic = not (a if a.weak else b).literal
        joined = join_types(a.type, a.weak, b.type, b.weak, dynamic=dynamic)
        if joined is None:
            return None
        return CarriedNumber(*joined, divby=divby if joined[0].is_integer else 1)
    if isinstance(a, CarriedObject) and isinstance(b, CarriedObject):
        if hasattr(type(a.exemplar), "joined"):
            leaf = a.exemplar.joined(b.exemplar)
            return None if leaf is None else CarriedObject(leaf.leaf_type(), leaf)
    return None


def promoted_type(x: Any, y: Any, trace: Trace) -> CarriedType | None:
    """The type of an expression that is `x` or `y`, as `x if c else y` and `max(x, y)` are."""
    a, b = carried_type_of(x, trace), carried_type_of(y, trace)
    if isinstance(a, CarriedNumber) and isinstance(b, CarriedNumber):
        try:
            kind = promote_types(x, y)
            divby = math.gcd(a.divby, b.divby) if kind.is_integer else 1
            return CarriedNumber(kind, a.weak and b.weak, divby=divby)
        except DSLTypeError:
            return None
    return a if a == b else None


def _divisor(number: Numeric) -> int:
    if not type(number).is_integer or type(number) is Boolean:
        return 1
    return number.divby if number.is_dynamic else abs(number.value)


def _int_type(value: int, trace: Trace) -> Any:
    """Return the DSL's default int, or Int64 if the literal does not fit."""
    bits = trace.default_int.width
    return trace.default_int if -(1 << bits - 1) <= value < 1 << bits - 1 else Int64


def same_leaf(a: Any, b: Any) -> bool:
    """Return True if two leaves certainly are the same value, so that nothing has to be carried."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if hasattr(type(a), "ir_value"):
        if isinstance(a, Numeric) and not (is_dynamic(a) and is_dynamic(b)):
            return not is_dynamic(a) and not is_dynamic(b) and _equal(a.value, b.value)
        return bool(a.ir_value() == b.ir_value())
    return _equal(a, b)


@functools.lru_cache(maxsize=4096)
def _is_own(cls: Any) -> bool:
    """Return True for a class of the library or of a plugin."""
    module = sys.modules.get(cls.__module__)
    return is_internal(file_of_module(module))


_PLAIN = frozenset((int, bool, str, bytes))


def _equal(a: Any, b: Any) -> bool:
    kind: Any = type(a)
    if is_carried(a):
        return False  # no two members are one, whatever their class's `==` says
    try:
        if kind is float:
            return (a == b and str(a) == str(b)) or (a != a and b != b)
        if (a == b) is not True:
            return False
        # Equal Decimals, sets and ranges can still differ: 1.0 and 1.00, {1} and {True}.
        return kind in _PLAIN or _is_own(kind) or repr(a) == repr(b)
    except Exception:  # a foreign __eq__ may refuse; then they count as different
        return False
