"""Detection of undecorated helpers that ask for the class or identity of a dynamic number.

In a decorated function `type(n)`, `n is True` and the like go through hooks. A helper that is not
decorated runs as it is: there `type(n) is int` is False of an Int64, and `flag is True` of a
Boolean, as is `mode is Mode.A` of a member that the run time chose. None can be noticed from the
value, so helpers whose code asks are watched while they are traced, by the interpreter's profiling
hook, or that of debuggers where a profiler has the first; where no helper asks, nothing is. A
decorator of helpers that are written for a DSL's own classes says so by the function's attribute
`__knows_numbers__`.
"""

from __future__ import annotations

import dis
import enum
import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from types import CodeType, FrameType, MemberDescriptorType
from typing import Any, NamedTuple

from basedsl.errors import DSLError, DSLTypeError
from basedsl.location import span_of_code
from basedsl.metastage.chosen_member import ChosenMember
from basedsl.numeric import Boolean, is_ambiguous, is_dynamic, python_class

_PYTHON_CLASSES = ("int", "float", "bool")
_NAMES_OF_CLASSES = ("__name__", "__qualname__")
_LOADS = ("LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_FAST_BORROW", "LOAD_DEREF", "LOAD_NAME")
_SILENT = frozenset({"CACHE", "PRECALL", "PUSH_NULL", "NOP", "RESUME", "EXTENDED_ARG", "COPY"})


class Question(NamedTuple):
    """A question in a helper's code: the variable asked, if about its `type`, and where.

    `sides` are the two sides of an `is` or `==` that may ask about a chosen member, each as names
    from a variable on ("self.mode"), or None for what a call or an index gives.
    """

    variable: str
    of_type: bool
    offset: int
    sides: tuple[str | None, ...] = ()


@functools.lru_cache(maxsize=4096)
def questions_in(code: CodeType) -> tuple[tuple[CodeType, list[Question]], ...]:
    """Return the code objects of a function that ask, itself and those in it."""
    return tuple(_questions_in(code))


def _questions_in(code: CodeType) -> Iterator[tuple[CodeType, list[Question]]]:
    names = frozenset(code.co_names)
    has_is = _IS in code.co_code[::2]
    asks = "type" in names or (has_is and any(type(one) is bool for one in code.co_consts))
    found = list(_questions(code)) if asks else []
    if has_is or "type" in names:
        found += _about_members(code)
    if found:
        yield code, found
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _questions_in(constant)


def _questions(code: CodeType) -> Iterator[Question]:
    steps = [one for one in dis.get_instructions(code) if one.opname not in _SILENT]
    for at, step in enumerate(steps):
        near = steps[at + 1 : at + 3]
        if step.opname == "IS_OP" and at >= 2:
            pair = steps[at - 2 : at]
            if any(one.opname.startswith("LOAD_CONST") and _is_bool(one) for one in pair):
                yield from (Question(str(one.argval), False, step.offset) for one in _loads(pair))
        elif step.opname.startswith("CALL") and at >= 2 and _is_type(steps[at - 2]):
            asked = list(_loads([steps[at - 1]]))
            before = steps[at - 3] if at >= 3 else None
            if asked and _decides(before, near):
                yield Question(str(asked[0].argval), True, step.offset)


def _about_members(code: CodeType) -> Iterator[Question]:
    """Yield each `is`, and each comparison with a class, of two things that are no constants."""
    steps = [one for one in dis.get_instructions(code) if one.opname not in _SILENT]
    for at, step in enumerate(steps):
        if step.opname == "IS_OP" or (step.opname == "COMPARE_OP" and step.argval in ("==", "!=")):
            start, right, constant = _side(steps, at)
            _, left, other = (start, None, False) if right is None else _side(steps, start)
            if not (constant or other) and (step.opname == "IS_OP" or "type" in code.co_names):
                yield Question("", False, step.offset, (left, right))


def _side(steps: list[dis.Instruction], end: int) -> tuple[int, str | None, bool]:
    """Return where the operand before `end` starts, its names, and if it is a constant."""
    at, names = end - 1, []
    while at > 0 and steps[at].opname in ("LOAD_ATTR", "LOAD_METHOD"):
        names.append(str(steps[at].argval))
        at -= 1
    if steps[at].opname == "LOAD_CONST":
        return at, None, True
    if steps[at].opname not in (*_LOADS, "LOAD_GLOBAL"):
        return at, None, False
    return at, ".".join([str(steps[at].argval), *reversed(names)]), False


_IS = dis.opmap["IS_OP"]


def _is_bool(step: dis.Instruction) -> bool:
    return type(step.argval) is bool


def _is_type(step: dis.Instruction) -> bool:
    return step.opname in ("LOAD_GLOBAL", "LOAD_NAME") and step.argval == "type"


def _loads(steps: list[dis.Instruction]) -> Iterator[dis.Instruction]:
    return (one for one in steps if one.opname in _LOADS)


def _decides(before: dis.Instruction | None, after: list[dis.Instruction]) -> bool:
    """Return True if what `type(x)` gives is compared by `is`, looked up, or asked for its name."""
    if not after:
        return False
    following = after[0]
    if following.opname == "IS_OP":
        return before is not None and before.argval in _PYTHON_CLASSES
    if len(after) > 1 and after[1].opname == "IS_OP":
        return following.argval in _PYTHON_CLASSES
    if following.opname == "LOAD_ATTR":
        return following.argval in _NAMES_OF_CLASSES
    looked_up = following.opname in ("BINARY_SUBSCR", "BINARY_OP") and "[" in (
        following.argrepr or "["
    )
    return looked_up or (before is not None and before.argval == "get")


class Watch:
    """The hook of one trace that sees helpers return, in place from the first one on that asks."""

    def __init__(self, questions: Mapping[CodeType, list[Question]]) -> None:
        self._questions = questions
        self._set: Callable[[Any], None] | None = None
        #: The enumerations of which a member was chosen; before the first, nothing asks about one.
        self._chosen: set[Any] = set()

    def on_choice(self, cls: Any) -> None:
        """Watch for questions about members of an enumeration, too."""
        if cls not in self._chosen:
            self._chosen.add(cls)
            self.start()

    def start(self) -> None:
        """Watch from now on if there are questions. Where a profiler runs, the hook of debuggers
        serves; DSLError where that is taken, too.
        """
        if self._set is not None:
            return
        found = (one for questions in self._questions.values() for one in questions)
        if not any(self._chosen or not one.sides for one in found):
            return
        if sys.getprofile() is None:
            self._set = sys.setprofile
            sys.setprofile(self._on_event)
        elif sys.gettrace() is None:
            self._set = sys.settrace
            sys.settrace(self._on_call)
        else:
            code, (question, *_) = next(iter(self._questions.items()))
            raise DSLError(
                f"the helper '{code.co_name}' asks for the class of a value, and cannot be watched",
                span_of_code(code, question.offset),
                notes=(("a profiler and a debugger run, which take both hooks", None),),
                hint="decorate the helper, or compile without one of them",
            )

    def __enter__(self) -> Watch:
        self.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._set is not None:
            self._set(None)

    def _on_call(self, frame: FrameType, event: str, argument: Any) -> Any:
        return self._on_event if frame.f_code in self._questions else None

    def _on_event(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "return" and frame.f_code in self._questions:
            _check_questions(frame, self._questions[frame.f_code], self._chosen)
        return self._on_event


def _check_questions(frame: FrameType, questions: list[Question], chosen: set[Any]) -> None:
    values = frame.f_locals
    for question in questions:
        if question.sides:
            _check_members(frame, question, chosen)
            continue
        value = values.get(question.variable)
        if not is_dynamic(value):
            continue
        kind: Any = type(value)
        name = question.variable
        if question.of_type and is_ambiguous(kind, python_class(kind)):
            asked, instead = f"type({name})", f"isinstance({name}, {python_class(kind).__name__})"
        elif not question.of_type and kind is Boolean:
            asked, instead = f"`{name} is True`", f"the truth of {name}"
        else:
            continue
        raise DSLTypeError(
            f"{asked} of a dynamic {kind.__name__} is asked in '{frame.f_code.co_name}', which is "
            "not decorated",
            span_of_code(frame.f_code, question.offset),
            notes=(("there it is not what Python answers", None),),
            hint=f"decorate the helper, or ask for {instead}",
        )


def _check_members(frame: FrameType, question: Question, chosen: set[Any]) -> None:
    sides = [_value(frame, names) for names in question.sides]
    unknown = any(side is _UNKNOWN for side in sides)
    for side in sides:
        cls = side if isinstance(side, type) else type(side)
        if type(side) is ChosenMember or (unknown and cls in chosen):
            raise DSLTypeError(
                f"an enumeration's member is asked for in '{frame.f_code.co_name}', which is not "
                "decorated",
                span_of_code(frame.f_code, question.offset),
                notes=(("the member is known at run time only: no Python object is it", None),),
                hint="decorate the helper, or compare members with == in a decorated function",
            )


_UNKNOWN = object()


def _value(frame: FrameType, names: str | None) -> Any:
    """Return what an operand is, without running code of the program; `_UNKNOWN` if that runs."""
    if names is None:
        return _UNKNOWN
    name, *attributes = names.split(".")
    value: Any = _UNKNOWN
    for scope in (frame.f_locals, frame.f_globals, frame.f_builtins):
        if name in scope:
            value = scope[name]
            break
    for attribute in attributes:
        if isinstance(value, enum.EnumMeta) and attribute in value.__members__:
            value = value.__members__[attribute]
            continue
        try:
            found = inspect.getattr_static(value, attribute)
        except AttributeError:
            return _UNKNOWN
        if isinstance(found, MemberDescriptorType):  # a slot
            found = getattr(value, attribute)
        elif hasattr(type(found), "__get__"):
            return _UNKNOWN
        value = found
    return value
