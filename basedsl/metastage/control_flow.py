"""The callbacks of rewritten Python: static values stay with Python, dynamic ones become IR.

This is the one implementation of the pre-stage's callback contract (`prestage.callbacks`). A value
is dynamic if it is a proxy for something known at run time only; everything else is plain Python.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
import io
import operator
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

from basedsl.errors import DSLError, DSLNameError, DSLTypeError
from basedsl.location import user_span
from basedsl.metastage import conditions, identity, range_views, ranges
from basedsl.metastage.branches import Branch
from basedsl.metastage.chosen_member import ChosenMember, looked_up
from basedsl.metastage.conditions import asked, i1, negation, staged, truth
from basedsl.metastage.containment import contains
from basedsl.metastage.identity import is_same
from basedsl.metastage.items import check_index, select_item
from basedsl.metastage.loop_carried import exit_flag
from basedsl.metastage.loops import run_while, stage_for
from basedsl.metastage.namespaces import ONCE
from basedsl.metastage.quantifiers import items_made
from basedsl.metastage.ranges import Range, integer_of
from basedsl.metastage.state import Body, MaybeUnbound, State
from basedsl.numeric import (
    Boolean,
    DynamicText,
    Numeric,
    is_dynamic,
    joined,
    made_text,
    refuse_text,
    resolve,
)
from basedsl.tracing import Trace, current_trace_or_none, raised

Thunk = Callable[[], Any]
Names = tuple[str, ...]
_shared = Body


class StagedControlFlow:
    """Implements `ControlFlowCallbacks` in a running trace. It has no state of its own: the trace
    has.
    """

    # Branches ----------------------------------------------------------------------------------

    def if_(
        self,
        test: Any,
        then: Thunk,
        orelse: Thunk | None,
        names: tuple[str, ...],
        undef_ok: tuple[str, ...],
    ) -> None:
        test = asked(test)
        trace = staged(test)
        if trace is None:
            if test:
                then()
            elif orelse is not None:
                orelse()
            return
        Branch(trace, then, orelse, names, undef_ok, value=False).emit(i1(test))

    def ifexp(
        self, test: Any, then: Thunk, orelse: Thunk, names: Names = (), undef_ok: Names = ()
    ) -> Any:
        test = asked(test)
        trace = staged(test)
        if trace is None:
            return then() if test else orelse()
        return Branch(trace, then, orelse, names, undef_ok, value=True).emit(i1(test))

    def and_(self, *operands: Thunk, names: Names = (), undef_ok: Names = ()) -> Any:
        return _join(True, _itself, operands, names, undef_ok)

    def or_(self, *operands: Thunk, names: Names = (), undef_ok: Names = ()) -> Any:
        return _join(False, _itself, operands, names, undef_ok)

    def all_true(self, *operands: Thunk, names: Names = (), undef_ok: Names = ()) -> Any:
        return _join(True, truth, operands, names, undef_ok)

    def any_true(self, *operands: Thunk, names: Names = (), undef_ok: Names = ()) -> Any:
        return _join(False, truth, operands, names, undef_ok)

    def not_(self, value: Any) -> Any:
        return negation(value)

    def compare(
        self,
        left: Any,
        *links: tuple[str, Thunk],
        names: Names = (),
        undef_ok: Names = (),
    ) -> Any:
        (op, right), *rest = links
        value = right()
        refuse_text("compared", left, value)
        result = _COMPARE[op](left, value)
        if not rest:
            return result
        thunks = [thunk for _, thunk in rest]
        further = _shared(
            lambda: self.compare(value, *rest, names=names, undef_ok=undef_ok), thunks
        )
        test = asked(result)
        trace = staged(test)
        if trace is not None:
            return _choose(trace, test, result, further, None, names, undef_ok)
        return further.run() if test else result

    # Loops -------------------------------------------------------------------------------------

    def for_(
        self,
        iterable: Any,
        body: Callable[[Any], None],
        names: tuple[str, ...],
        undef_ok: tuple[str, ...],
        exits: tuple[str, ...] = (),
    ) -> None:
        trace = current_trace_or_none()
        if trace is not None and isinstance(iterable, Range):
            stage_for(trace, iterable, body, names, undef_ok, exits)
        else:
            if is_dynamic(iterable):
                raise DSLTypeError(
                    f"'{type(iterable).__name__}' object is not iterable",
                    hint="iterate over range(...) and index with the loop variable",
                )
            refuse_text("read", iterable)
            self._unroll(iter(iterable), body, names, undef_ok, exits)

    def _unroll(
        self,
        items: Iterator[Any],
        body: Callable[[Any], None],
        names: tuple[str, ...],
        undef_ok: tuple[str, ...],
        exits: tuple[str, ...],
    ) -> None:
        state = State((body,), names)
        left: Any = False
        for item in items:
            if left is False:
                body(item)
            else:  # whether an earlier iteration left the loop is known at run time only
                trace = current_trace_or_none()
                assert trace is not None
                test = i1(negation(left))
                run = _shared(functools.partial(body, item), [body])
                Branch(trace, run, None, names, undef_ok, value=False).emit(test)
            if exits:
                left = exit_flag(state, exits)
                if left is True:
                    return

    def while_(
        self,
        test: Thunk,
        body: Thunk,
        names: tuple[str, ...],
        undef_ok: tuple[str, ...],
        exits: tuple[str, ...] = (),
    ) -> None:
        trace = current_trace_or_none()
        if trace is not None:
            run_while(trace, test, truth, _both(names), body, names, undef_ok, exits)
            return
        flags = State((body,), exits)
        while test():
            body()
            if exit_flag(flags, exits):
                return

    # Statements --------------------------------------------------------------------------------

    def named(self, value: Any, text: str) -> None:
        if isinstance(value, FunctionType | BuiltinFunctionType | MethodType):
            raise DSLTypeError(f"'{text}' is named here and not called", hint=f"write {text}()")

    def assert_(self, test: Thunk, message: Thunk | None) -> None:
        condition = asked(test())
        trace = current_trace_or_none()
        if not is_dynamic(condition):
            if condition:
                return
            if trace is None or not _in_staged_region(trace):
                raise AssertionError(*(() if message is None else (message(),)))
            condition = Boolean(False)
        assert trace is not None
        text = "AssertionError" if message is None else f"AssertionError: {message()}"
        trace.emitter.assert_(i1(condition), text, trace.loc())

    AssertionError = AssertionError

    def raise_(self, error: Thunk, cause: Thunk | None = None) -> None:
        trace = current_trace_or_none()
        made = error()
        if trace is None or not _in_staged_region(trace):
            if cause is not None:
                raise made from cause()
            raise made
        if isinstance(made, type) and issubclass(made, BaseException):
            made = made()
        if not isinstance(made, BaseException):
            made = TypeError("exceptions must derive from BaseException")
        static = not any(map(is_dynamic, made.args))
        text = raised.text_of(made, static)
        trace.emitter.assert_(Boolean(False).ir_value(), text, trace.loc())

    # Names -------------------------------------------------------------------------------------

    def read(self, value: Thunk, name: str) -> Any:
        try:
            found = value()
        except NameError:
            if current_trace_or_none() is None:
                raise
            raise DSLNameError(
                f"'{name}' is read here before it is bound",
                hint=f"give '{name}' a value before this statement",
            ) from None
        if isinstance(found, MaybeUnbound):
            raise found.error()
        return found

    def check_outer(self, name: str, value: Any, kind: str) -> None:
        trace = current_trace_or_none()
        if trace is not None and trace.region.kind not in ("function", "kernel"):
            raise DSLError(
                f"the {kind} variable '{name}' is bound inside staged control flow",
                notes=(ONCE,),
                hint="return what changes, and bind it where the function is called",
            )
        if trace is not None and is_dynamic(value):
            raise DSLError(
                f"the {kind} variable '{name}' cannot hold a dynamic value",
                hint="a value known only at run time does not exist after compilation: return it, "
                "or store it in an array",
            )

    def fn(self, function: Any) -> Any:
        """Return the DSL's version of a builtin or `math` function; other callables as they are."""
        if current_trace_or_none() is None:
            return function
        try:
            own = _BUILTINS.get(function)
        except TypeError:
            return function
        if own is not None:
            return own
        if type(getattr(function, "__self__", None)) is str:
            return made_text(function)
        return resolve(function)

    def text(self, *parts: str) -> str:
        return joined(parts)

    def getitem(self, obj: Any, index: Any) -> Any:
        refuse_text("read", obj)
        refuse_text("looked up", index)
        if not isinstance(obj, dict):
            index = integer_of(index)
        if isinstance(obj, list | tuple) and is_dynamic(index):
            return select_item(obj, index)
        if type(index) is ChosenMember and isinstance(obj, dict):
            return looked_up(obj, index)
        return obj[index]

    def setitem(self, value: Any, obj: Any, index: Any) -> None:
        refuse_text("looked up", index)
        index = integer_of(index)
        stores = getattr(type(obj), "__setitem__", None)  # a subclass may have one of its own
        if isinstance(obj, list) and is_dynamic(index) and not isinstance(stores, FunctionType):
            check_index(obj, index)
            for i, old in enumerate(list(obj)):
                here = (index == i) | (index == i - len(obj))
                obj[i] = self.ifexp(here, _constant(value), _constant(old))
        else:
            obj[index] = value

    def each(self, items: Any, item: Any, eager: bool) -> Any:
        if range_views.is_dynamic_range(items):
            return range_views.mapped(items, item)
        return [item(x) for x in items] if eager else items_made(items, item)

    # Static statements --------------------------------------------------------------------------

    def static_only(self, kind: str) -> AbstractContextManager[Any]:
        """Forbid dynamic operations inside `kind`: its meaning at run time could not be kept."""
        trace = current_trace_or_none()
        if trace is None:
            return contextlib.nullcontext()
        return _StaticManager(contextlib.nullcontext(), trace, kind)

    def with_(self, manager: Any) -> Any:
        trace = current_trace_or_none()
        if trace is None or getattr(type(manager), "__dsl_staged__", False):
            return manager
        return _StaticManager(manager, trace, "with")

    #: The patterns `case True` and `case False`, which Python tries with `is`.
    TRUE = identity.Singleton(True)
    FALSE = identity.Singleton(False)


class _StaticManager:
    """A context manager whose block must not emit anything."""

    def __init__(self, manager: Any, trace: Trace, kind: str) -> None:
        self.manager = manager
        self.trace = trace
        self.kind = kind

    def __enter__(self) -> Any:
        value = self.manager.__enter__()
        self.guard = self.trace.forbidding(self.kind, user_span())
        self.guard.__enter__()
        return value

    def __exit__(self, *exc: Any) -> Any:
        self.guard.__exit__(None, None, None)
        swallows = self.manager.__exit__(*exc)
        if exc[0] is None or swallows:
            self.trace.check_refused()
        return swallows


# Helpers ----------------------------------------------------------------------------------------


def _itself(value: Any) -> Any:
    return value


def _join(
    is_and: bool,
    wanted: Callable[[Any], Any],
    operands: tuple[Thunk, ...],
    names: Names,
    undef_ok: Names,
) -> Any:
    """Return `a and b and ...`, or `a or b or ...`, of operands of which `wanted` is the value."""
    value = wanted(operands[0]())
    for i, operand in enumerate(operands[1:], 1):
        test = asked(value)
        trace = staged(test)
        if trace is not None:
            join = functools.partial(_join, is_and, wanted, operands[i:], names, undef_ok)
            rest = _shared(join, list(operands[i:]))
            true, false = (rest, None) if is_and else (None, rest)
            return _choose(trace, test, value, true, false, names, undef_ok)
        if bool(test) is not is_and:
            return value
        value = wanted(operand())
    return value


def _choose(
    trace: Trace,
    test: Any,
    value: Any,
    true: Body | None,
    false: Body | None,
    names: Names = (),
    undef_ok: Names = (),
) -> Any:
    """Return `value and true()` or `value or false()` where
    `test`, the truth of `value`, is dynamic.
    """
    itself = _shared(lambda: value, [])
    branch = Branch(trace, true or itself, false or itself, names, undef_ok, value=True)
    return branch.emit(i1(test))


def _both(names: Names) -> Callable[[Any, Thunk], Any]:
    """Return a short-circuit `and` whose right side may bind `names`."""

    def both(value: Any, right: Thunk) -> Any:
        trace = current_trace_or_none()
        assert trace is not None
        return _choose(trace, value, value, _shared(right, [right]), None, names, names)

    return both


def _in_staged_region(trace: Trace) -> bool:
    return trace.region.kind != "function"


def _constant(value: Any) -> Thunk:
    return lambda: value


def _shown(value: Any) -> str:
    """Return `str(value)`; dynamic values in tuples and lists show as `?` too."""
    if type(value) in (tuple, list) and any(map(_has_dynamic, value)):
        inside = ", ".join(_shown(x) if _has_dynamic(x) else repr(x) for x in value)
        if type(value) is list:
            return f"[{inside}]"
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    return str(value)


def _has_dynamic(value: Any) -> bool:
    if type(value) in (tuple, list):
        return any(map(_has_dynamic, value))
    return isinstance(value, Numeric) and is_dynamic(value)


def _print(
    *values: Any,
    sep: str | None = " ",
    end: str | None = "\n",
    file: Any = None,
    flush: bool = False,
) -> None:
    """Python's `print` while tracing: dynamic values show as `?`."""
    trace = current_trace_or_none()
    assert trace is not None
    if any(map(_has_dynamic, values)):
        if isinstance(file, io.StringIO):
            refuse_text("written where the program reads it", DynamicText())
        trace.remark_on_text(sys._getframe(1))
    text = (" " if sep is None else sep).join(map(_shown, values)) + ("\n" if end is None else end)
    target = file

    def write(text: str) -> None:
        builtins.print(text, end="", file=target, flush=flush)

    trace.say(text, write)


def _range(*bounds: Any, **hints: Any) -> Range:
    """Python's `range` in traced code, which takes the hints of `ranges.range` too."""
    return ranges.range(*bounds, **hints)


def _len(obj: Any) -> Any:
    refuse_text("measured", obj)
    return range_views.length(obj) if isinstance(obj, Range) else conditions.length(obj)


def _bool(*args: Any) -> Any:
    return truth(*args) if len(args) == 1 else bool(*args)


def _int(*args: Any, **kwargs: Any) -> Any:
    refuse_text("converted to a number", *args)
    return resolve(int)(*_converted(args, "__int__", "__index__"), **kwargs)


def _float(*args: Any) -> Any:
    refuse_text("converted to a number", *args)
    return resolve(float)(*_converted(args, "__float__", "__index__"))


def _converted(args: tuple[Any, ...], *methods: str) -> tuple[Any, ...]:
    """Return the dynamic number in place of an object whose class, in Python code, gives it."""
    if len(args) == 1 and not isinstance(args[0], int | float | str | Numeric):
        for name in methods:
            method = getattr(type(args[0]), name, None)
            if isinstance(method, FunctionType):
                number = method(args[0])
                return (number,) if is_dynamic(number) else args
    return args


_BUILTINS: dict[Any, Any] = {
    builtins.range: _range,
    builtins.print: _print,
    builtins.len: _len,
    builtins.bool: _bool,
    builtins.int: _int,
    builtins.float: _float,
    builtins.reversed: range_views.reversed_,
    builtins.enumerate: range_views.enumerate_,
    builtins.zip: range_views.zip_,
    builtins.sum: range_views.sum_,
    builtins.any: range_views.any_,
    builtins.all: range_views.all_,
    builtins.min: range_views.extreme(min),
    builtins.max: range_views.extreme(max),
    builtins.type: identity.type_,
    builtins.id: identity.id_,
    operator.is_: is_same,
    operator.is_not: lambda a, b: negation(is_same(a, b)),
    operator.not_: lambda x: negation(x),
    operator.truth: lambda x: truth(x),
    operator.contains: lambda items, x: truth(contains(x, items)),
}

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "is": is_same,
    "is not": lambda a, b: negation(is_same(a, b)),
    "in": lambda a, b: truth(contains(a, b)),
    "not in": lambda a, b: negation(contains(a, b)),
}

CONTROL_FLOW = StagedControlFlow()

__all__ = ["CONTROL_FLOW", "StagedControlFlow", "truth"]
