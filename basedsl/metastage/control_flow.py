"""The callbacks of rewritten Python: static values stay with Python, dynamic ones become IR.

This is the one implementation of the pre-stage's callback contract (`prestage.callbacks`). A value
is dynamic if it is a proxy for something known at run time only; everything else is plain Python.
"""

from __future__ import annotations

import builtins
import contextlib
import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from basedsl.errors import DSLError, DSLNameError, DSLSyntaxError, DSLTypeError, with_article
from basedsl.location import user_span
from basedsl.metastage import ranges
from basedsl.metastage.branches import Branch
from basedsl.metastage.containment import contains
from basedsl.metastage.loop_carried import exit_flag
from basedsl.metastage.loops import run_while, stage_for
from basedsl.metastage.namespaces import ONCE
from basedsl.metastage.ranges import Range
from basedsl.metastage.state import Body, MaybeUnbound, State
from basedsl.numeric import Boolean, Numeric, is_dynamic, logical_not, resolve
from basedsl.tracing import Trace, current, raised

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
        trace = _staged(test)
        if trace is None:
            if test:
                then()
            elif orelse is not None:
                orelse()
            return
        Branch(trace, then, orelse, names, undef_ok, value=False).emit(_i1(test))

    def ifexp(
        self, test: Any, then: Thunk, orelse: Thunk, names: Names = (), undef_ok: Names = ()
    ) -> Any:
        trace = _staged(test)
        if trace is None:
            return then() if test else orelse()
        return Branch(trace, then, orelse, names, undef_ok, value=True).emit(_i1(test))

    def and_(self, *operands: Thunk, names: Names = (), undef_ok: Names = ()) -> Any:
        value = operands[0]()
        for i, operand in enumerate(operands[1:], 1):
            trace = _staged(value)
            if trace is not None:
                rest = operands[i:]
                return _choose(
                    trace, value, _all_of(self.and_, rest, names, undef_ok), None, names, undef_ok
                )
            if not value:
                return value
            value = operand()
        return value

    def or_(self, *operands: Thunk, names: Names = (), undef_ok: Names = ()) -> Any:
        value = operands[0]()
        for i, operand in enumerate(operands[1:], 1):
            trace = _staged(value)
            if trace is not None:
                rest = operands[i:]
                return _choose(
                    trace, value, None, _all_of(self.or_, rest, names, undef_ok), names, undef_ok
                )
            if value:
                return value
            value = operand()
        return value

    def not_(self, value: Any) -> Any:
        return _not(value)

    def compare(
        self,
        left: Any,
        *links: tuple[str, Thunk],
        names: Names = (),
        undef_ok: Names = (),
    ) -> Any:
        (op, right), *rest = links
        value = right()
        result = _COMPARE[op](left, value)
        if not rest:
            return result
        thunks = [thunk for _, thunk in rest]
        further = _shared(
            lambda: self.compare(value, *rest, names=names, undef_ok=undef_ok), thunks
        )
        trace = _staged(result)
        if trace is not None:
            return _choose(trace, result, further, None, names, undef_ok)
        return further.run() if result else result

    # Loops -------------------------------------------------------------------------------------

    def for_(
        self,
        iterable: Any,
        body: Callable[[Any], None],
        names: tuple[str, ...],
        undef_ok: tuple[str, ...],
        exits: tuple[str, ...] = (),
    ) -> None:
        trace = current()
        if trace is not None and isinstance(iterable, Range):
            stage_for(trace, iterable, body, names, undef_ok, exits)
        else:
            if is_dynamic(iterable):
                raise DSLTypeError(
                    f"'{type(iterable).__name__}' object is not iterable",
                    hint="iterate over range(...) and index with the loop variable",
                )
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
                trace = current()
                assert trace is not None
                run = _shared(functools.partial(body, item), [body])
                Branch(trace, run, None, names, undef_ok, value=False).emit(_i1(logical_not(left)))
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
        trace = current()
        if trace is not None:
            run_while(trace, test, truth, _both(names), body, names, undef_ok, exits)
            return
        flags = State((body,), exits)
        while test():
            body()
            if exit_flag(flags, exits):
                return

    # Statements --------------------------------------------------------------------------------

    def assert_(self, test: Thunk, message: Thunk | None) -> None:
        condition = test()
        trace = current()
        if not is_dynamic(condition):
            if condition:
                return
            if trace is None or not _in_staged_region(trace):
                raise AssertionError(*(() if message is None else (message(),)))
            condition = Boolean(False)
        assert trace is not None
        text = "AssertionError" if message is None else f"AssertionError: {message()}"
        trace.emitter.assert_(_i1(condition), text, trace.loc())

    def raise_(self, error: Thunk, cause: Thunk | None = None) -> None:
        trace = current()
        made = error()
        if trace is None or not _in_staged_region(trace):
            if cause is not None:
                raise made from cause()
            raise made
        static = isinstance(made, type) or not any(map(is_dynamic, made.args))
        text = raised.text_of(made, static)
        trace.emitter.assert_(Boolean(False).ir_value(), text, trace.loc())

    # Names -------------------------------------------------------------------------------------

    def read(self, value: Thunk, name: str) -> Any:
        try:
            found = value()
        except NameError:
            if current() is None:
                raise
            raise DSLNameError(
                f"'{name}' is read here before it is bound",
                hint=f"give '{name}' a value before this statement",
            ) from None
        if isinstance(found, MaybeUnbound):
            raise found.error()
        return found

    def check_outer(self, name: str, value: Any, kind: str) -> None:
        trace = current()
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
        if current() is None:
            return function
        try:
            own = _BUILTINS.get(function)
        except TypeError:
            return function
        if own is not None:
            return own
        return resolve(function)

    def getitem(self, obj: Any, index: Any) -> Any:
        if isinstance(obj, list | tuple) and is_dynamic(index):
            return _select_item(obj, index)
        return obj[index]

    def setitem(self, value: Any, obj: Any, index: Any) -> None:
        if isinstance(obj, list) and is_dynamic(index):
            _check_index(len(obj), index)
            for i, old in enumerate(list(obj)):
                here = (index == i) | (index == i - len(obj))
                obj[i] = self.ifexp(here, _constant(value), _constant(old))
        else:
            obj[index] = value

    # Static statements --------------------------------------------------------------------------

    def static_only(self, kind: str) -> AbstractContextManager[Any]:
        """Forbid dynamic operations inside `kind`: its meaning at run time could not be kept."""
        trace = current()
        if trace is None:
            return contextlib.nullcontext()
        return _StaticManager(contextlib.nullcontext(), trace, kind)

    def with_(self, manager: Any) -> Any:
        trace = current()
        if trace is None or getattr(type(manager), "__dsl_staged__", False):
            return manager
        return _StaticManager(manager, trace, "with")

    def match_subject(self, subject: Any) -> Any:
        if is_dynamic(subject):
            raise DSLSyntaxError(
                "`match` needs a static subject, this one is dynamic",
                hint="write it as if/elif/else",
            )
        return subject


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


def _staged(value: Any) -> Trace | None:
    """Return the trace if `value` is a dynamic condition in it, else None."""
    return current() if is_dynamic(value) else None


def truth(value: Any) -> Any:
    """Return `bool(value)` as a bool or a dynamic Boolean."""
    if not is_dynamic(value):
        return bool(value)
    if isinstance(value, Boolean):
        return value
    if isinstance(value, Numeric):
        return value != 0
    method = getattr(type(value), "__dsl_bool__", None)
    if method is None:
        raise DSLTypeError(
            f"{with_article(type(value))} has no truth value",
            hint="compare it, or reduce it to one Boolean",
        )
    return method(value)


def _not(value: Any) -> Any:
    return not value if _staged(value) is None else logical_not(truth(value))


def _i1(value: Any) -> Any:
    return truth(value).ir_value()


def _choose(
    trace: Trace,
    value: Any,
    true: Body | None,
    false: Body | None,
    names: Names = (),
    undef_ok: Names = (),
) -> Any:
    """Return `value and true()` or `value or false()` for a dynamic `value`."""
    itself = _shared(lambda: value, [])
    branch = Branch(trace, true or itself, false or itself, names, undef_ok, value=True)
    return branch.emit(_i1(value))


def _all_of(join: Any, thunks: tuple[Thunk, ...], names: Names, undef_ok: Names) -> Body:
    return _shared(lambda: join(*thunks, names=names, undef_ok=undef_ok), list(thunks))


def _both(names: Names) -> Callable[[Any, Thunk], Any]:
    """Return a short-circuit `and` whose right side may bind `names`."""

    def both(value: Any, right: Thunk) -> Any:
        trace = current()
        assert trace is not None
        return _choose(trace, value, _shared(right, [right]), None, names, names)

    return both


def _in_staged_region(trace: Trace) -> bool:
    return trace.region.kind != "function"


def _constant(value: Any) -> Thunk:
    return lambda: value


def _check_index(length: int, index: Any) -> None:
    trace = current()
    assert trace is not None
    if length == 0:
        raise IndexError("list index out of range")
    inside = (index >= -length) & (index < length)
    trace.emitter.assert_(inside.ir_value(), "IndexError: list index out of range", trace.loc())


def _select_item(items: Any, index: Any) -> Any:
    _check_index(len(items), index)
    control = CONTROL_FLOW
    length = len(items)

    def pick(i: int) -> Any:
        if i == length - 1:
            return items[i]
        here = (index == i) | (index == i - length)
        return control.ifexp(here, lambda: items[i], lambda: pick(i + 1))

    return pick(0)


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
    trace = current()
    assert trace is not None
    text = (" " if sep is None else sep).join(map(_shown, values)) + ("\n" if end is None else end)
    target = file

    def write(text: str) -> None:
        builtins.print(text, end="", file=target, flush=flush)

    trace.say(text, write)


def _range(*bounds: Any, **hints: Any) -> Range:
    """Python's `range` in traced code, which takes the hints of `ranges.range` too."""
    return ranges.range(*bounds, **hints)


def _len(obj: Any) -> Any:
    return builtins.len(obj) if not hasattr(type(obj), "__dsl_len__") else obj.__dsl_len__()


def _isinstance(obj: Any, kinds: Any) -> bool:
    return builtins.isinstance(obj, kinds)


def _reversed(items: Any) -> Any:
    return items.__reversed__() if isinstance(items, Range) else builtins.reversed(items)


_BUILTINS: dict[Any, Any] = {
    builtins.range: _range,
    builtins.print: _print,
    builtins.len: _len,
    builtins.isinstance: _isinstance,
    builtins.reversed: _reversed,
}

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "is": lambda a, b: a is b,
    "is not": lambda a, b: a is not b,
    "in": lambda a, b: truth(contains(a, b)),
    "not in": lambda a, b: _not(contains(a, b)),
}

CONTROL_FLOW = StagedControlFlow()

__all__ = ["CONTROL_FLOW", "StagedControlFlow", "truth"]
