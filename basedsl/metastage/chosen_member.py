"""Members of an enumeration that the run time chooses: their place among the members of the class.

A question about such a member (`==`, an attribute, a method, arithmetic of an IntEnum) is put to
each member of the class. Where all give one answer, it is known while compiling; else the member's
place chooses among the answers. So nothing of the program's class has to be known here.
"""

from __future__ import annotations

import enum
import functools
import math
import operator
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from basedsl.binding import ResultType
from basedsl.errors import DSLTypeError, with_article
from basedsl.location import asks_as_library
from basedsl.numeric import DynamicText, check_text, is_dynamic, not_static, refuse_text
from basedsl.tracing import current_trace, current_trace_or_none


@functools.lru_cache(maxsize=1024)
def members_of(cls: Any) -> tuple[Any, ...]:
    """Return the members of an enumeration in their order, without aliases."""
    return tuple(enum.EnumMeta.__iter__(cls))


def is_carried(value: Any) -> bool:
    """Return True for a member of an enumeration that a branch or loop may choose. A combination of
    flags is no member of its class: flags are not.
    """
    return isinstance(value, enum.Enum) and not isinstance(value, enum.Flag)


@dataclass(frozen=True)
class MemberType:
    """The type of the members of an enumeration, as branches and loops carry them."""

    cls: Any

    def __str__(self) -> str:
        return str(self.cls.__name__)


@dataclass(frozen=True)
class MemberResult(ResultType):
    """The result type of a member chosen at run time: Python gets the member itself."""

    cls: Any

    def unpack(self, storage: tuple[Any, ...]) -> Any:
        """Return the member whose place compiled code gave."""
        return members_of(self.cls)[storage[0]]


class ChosenMember:
    """A member of the enumeration `cls` that is known at run time only; `place` is its number among
    the members, None in an exemplar of the type.
    """

    __slots__ = ("_dsl_class", "_dsl_place")

    def __init__(self, cls: Any, place: Any = None) -> None:
        self._dsl_class = cls
        self._dsl_place = place

    # A leaf that branches, loops, kernels and results carry ------------------------------------

    def leaf_type(self) -> MemberType:
        """Return the type under which the member is carried."""
        return MemberType(self._dsl_class)

    def ir_value(self) -> Any:
        """Return the SSA value of the place."""
        return self._dsl_place.ir_value()

    def ir_value_as(self, leaf: Any) -> Any:
        """Return the SSA value of another member of the class, chosen or known."""
        if type(leaf) is not ChosenMember:
            place = [member is leaf for member in members_of(self._dsl_class)].index(True)
            return current_trace("a member").default_int(place).ir_value()
        return leaf.ir_value()

    def with_ir_value(self, value: Any) -> ChosenMember:
        """Return the member whose place is an SSA value."""
        trace = current_trace("a member chosen at run time")
        trace.on_choice(self._dsl_class)
        return ChosenMember(self._dsl_class, trace.default_int.from_value(value))

    def undefined(self) -> Any:
        """Return an SSA value for a path on which there is no member; nothing reads it."""
        return current_trace("a member").default_int(0).ir_value()

    def __dsl_result__(self) -> MemberResult:
        return MemberResult(self._dsl_class)

    # Questions ---------------------------------------------------------------------------------

    def _python_class(self) -> type:
        """The enumeration; the library's own code sees the real class."""
        if asks_as_library(sys._getframe(1)):
            return ChosenMember
        cls: type = self._dsl_class
        return cls

    __class__ = property(_python_class)

    def each(self, ask: Callable[[Any], Any]) -> Any:
        """Return the answer of the chosen member; each member is asked in a branch of its own."""
        trace = current_trace("a member chosen at run time")
        members = members_of(self._dsl_class)
        return trace.pick([_asking(ask, member) for member in members], self._dsl_place)

    def answer(self, answers: Sequence[Any]) -> Any:
        """Return the answer of the chosen member, given those of all members."""
        place, first = self._dsl_place, answers[0]
        if all(_is_same(answer, first) for answer in answers):
            return first
        if all(isinstance(answer, str) for answer in answers):
            return _text()
        kinds = set(map(type, answers))
        for one in (True, False):
            if kinds == {bool} and answers.count(one) == 1:
                at = answers.index(one)
                return place == at if one else place != at
        if kinds == {int} and all(x - i == first for i, x in enumerate(answers)):
            return type(place).from_value(place.ir_value(), weak=True) + first
        return current_trace("a member").pick([_giving(x) for x in answers], place)

    def number(self) -> Any:
        """Return the number that the member is, of an IntEnum and the like; else None."""
        cls = self._dsl_class
        for kind in (int, float):
            if issubclass(cls, kind):
                return self.answer([kind.__pos__(x) for x in members_of(cls)])
        return None

    def __dsl_number__(self) -> Any:
        number = self.number()
        if number is None:
            kind = self._dsl_class.__name__
            raise DSLTypeError(f"{with_article(kind)} is no number", hint="write its `.value`")
        return number

    def __getattr__(self, name: str) -> Any:
        cls, members = self._dsl_class, members_of(self._dsl_class)
        tables = [vars(one) for one in (*cls.__mro__, *members)]
        if not any(name in table or "__getattr__" in table for table in tables):
            raise AttributeError(f"'{cls.__name__}' object has no attribute '{name}'")
        if all(_is_data(member, name) for member in members):
            return self.answer([getattr(member, name) for member in members])
        if isinstance(_static(members[0], name), types.FunctionType):
            return lambda *args, **kwargs: self.each(
                lambda member: getattr(member, name)(*args, **kwargs)
            )
        return self.each(lambda member: getattr(member, name))

    def __bool__(self) -> Any:
        cls, members = self._dsl_class, members_of(self._dsl_class)
        if getattr(cls.__bool__, "__module__", "") == "enum" or not isinstance(
            cls.__bool__, types.FunctionType
        ):
            truth = self.answer([bool(member) for member in members])
        else:
            truth = self.each(bool)
        if is_dynamic(truth) and not asks_as_library(sys._getframe(1)):
            raise not_static(self, "is used as a Python condition")
        return truth

    def __index__(self) -> Any:
        return _integer(self, "__index__")

    def __int__(self) -> Any:
        return _integer(self, "__int__")

    def __float__(self) -> Any:
        return _integer(self, "__float__")

    def __hash__(self) -> int:
        raise not_static(
            self, "is looked up in a dict or a set (hashed), which happens while compiling",
            "write table[member] in a decorated function, or compare the member with each key",
        )  # fmt: skip

    def __str__(self) -> str:
        check_text(sys._getframe(1))
        return _text()

    def __repr__(self) -> str:
        check_text(sys._getframe(1), is_part=True)
        return _text()

    def __format__(self, spec: str) -> str:
        check_text(sys._getframe(1))
        return _text()

    def __copy__(self) -> ChosenMember:
        return self

    def __deepcopy__(self, memo: Any) -> ChosenMember:
        return self


def _asking(ask: Callable[[Any], Any], member: Any) -> Callable[[], Any]:
    return lambda: ask(member)


def _giving(value: Any) -> Callable[[], Any]:
    return lambda: value


def _text() -> DynamicText:
    trace = current_trace_or_none()
    if trace is not None:
        trace.texts += 1
    return DynamicText("?")


def _is_same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    plain = type(a) in (int, bool, str, float) and type(a) is type(b)
    return plain and bool(a == b) and str(a) == str(b)


def _static(member: Any, name: str) -> Any:
    """Return an attribute as it is found, without code of the class run; None if it is not."""
    if name in vars(member):
        return None
    return next((vars(c)[name] for c in type(member).__mro__ if name in vars(c)), None)


def _is_data(member: Any, name: str) -> bool:
    """Return True if reading an attribute runs no code of the program."""
    if name in ("name", "value", "_name_", "_value_"):
        found = _static(member, name)
        return found is None or type(found).__module__ in ("enum", "types")
    found = _static(member, name)
    return name in vars(member) or (found is not None and not hasattr(type(found), "__get__"))


def _integer(member: ChosenMember, method: str) -> Any:
    if not hasattr(member._dsl_class, method):
        kind = member._dsl_class.__name__
        raise TypeError(f"'{kind}' object cannot be interpreted as a number")
    number = member.number()
    if is_dynamic(number) and not asks_as_library(sys._getframe(2)):
        raise not_static(member, "is used where Python needs a number now", "write its `.value`")
    return number if number is not None else member.each(lambda one: getattr(one, method)())


def _operator(name: str, compute: Callable[..., Any], reflected: bool) -> Any:
    def method(self: ChosenMember, *others: Any) -> Any:
        cls = self._dsl_class
        refuse_text("compared", *others)
        asked = getattr(cls, name, None)
        plain = not isinstance(asked, types.FunctionType)
        if plain and issubclass(cls, (int, float)):
            others = tuple(_number_of(x) for x in others)
            number = self.number()
            return compute(*others, number) if reflected else compute(number, *others)
        twin = next((x for x in others if type(x) is ChosenMember), None)
        if plain and twin is not None and name in ("__eq__", "__ne__"):
            if twin._dsl_class is cls:
                return compute(self._dsl_place, twin._dsl_place)

        def ask(member: Any) -> Any:
            return compute(*others, member) if reflected else compute(member, *others)

        if plain and twin is None and not any(map(is_dynamic, others)):
            return self.answer([ask(member) for member in members_of(cls)])
        return self.each(ask)

    return method


def _number_of(x: Any) -> Any:
    number = x.number() if type(x) is ChosenMember else None
    return x if number is None else number


_BOTH_WAYS = (
    *("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift"),
    *("and", "or", "xor"),
)
for _name in _BOTH_WAYS:
    _compute = getattr(operator, f"__{_name}__")
    setattr(ChosenMember, f"__{_name}__", _operator(f"__{_name}__", _compute, False))
    setattr(ChosenMember, f"__r{_name}__", _operator(f"__r{_name}__", _compute, True))
for _name in ("eq", "ne", "lt", "le", "gt", "ge", "neg", "pos", "abs", "invert"):
    _compute = getattr(operator, f"__{_name}__")
    setattr(ChosenMember, f"__{_name}__", _operator(f"__{_name}__", _compute, False))
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "divmod": divmod, "round": round, "trunc": math.trunc, "floor": math.floor, "ceil": math.ceil,
}  # fmt: skip
for _name, _compute in _FUNCTIONS.items():
    setattr(ChosenMember, f"__{_name}__", _operator(f"__{_name}__", _compute, False))
ChosenMember.__rdivmod__ = _operator("__rdivmod__", divmod, True)  # type: ignore[attr-defined]


def is_same_member(a: Any, b: Any) -> Any:
    """Return the condition of `a is b`, of which one is a member chosen at run time."""
    one, other = (a, b) if type(a) is ChosenMember else (b, a)
    cls = one._dsl_class
    if type(other) is ChosenMember:
        return one._dsl_place == other._dsl_place if other._dsl_class is cls else False
    return one.answer([member is other for member in members_of(cls)])


def looked_up(table: Any, member: ChosenMember) -> Any:
    """Return `table[member]` of a dict; DSLTypeError if a member of the class is no key of it."""
    missing = [key for key in members_of(member._dsl_class) if key not in table]
    if missing and not hasattr(type(table), "__missing__"):
        raise DSLTypeError(
            f"{missing[0]} is no key of this dict, which is asked for a member of run time",
            hint="give the dict all members of the enumeration",
        )
    return member.each(lambda key: table[key])
