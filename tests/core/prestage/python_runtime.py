"""The executable definition of the callback contract: every construct runs as plain Python.

A function bound to `PythonRuntime` behaves exactly as the user wrote it; runtimes that stage code
must agree with it on static values. It also checks what the contract promises about names and
cells. No DSL is involved here.
"""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable
from contextlib import AbstractContextManager
from types import CellType
from typing import Any, Literal

from basedsl.prestage.callbacks import Body, CompareOp, Names, Thunk, shared_cells


def _in(a: Any, b: Any) -> bool:
    return a in b


def _not_in(a: Any, b: Any) -> bool:
    return a not in b


_COMPARE: dict[CompareOp, Callable[[Any, Any], Any]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "is": operator.is_,
    "is not": operator.is_not,
    "in": _in,
    "not in": _not_in,
}


class PythonRuntime:
    """A `ControlFlowCallbacks` that takes every value as static."""

    def named(self, value: object, text: str) -> None:
        pass

    def if_(
        self, test: object, then: Body, orelse: Body | None, names: Names, undef_ok: Names
    ) -> None:
        self._check(names, undef_ok, then, orelse)
        if test:
            then()
        elif orelse is not None:
            orelse()

    def while_(self, test: Thunk, body: Body, names: Names, undef_ok: Names, exits: Names) -> None:
        flags = self._flags(body, names, undef_ok, exits)
        while test():
            body()
            if any(flag.cell_contents for flag in flags):
                break

    def for_(
        self,
        iterable: Any,
        body: Callable[[Any], None],
        names: Names,
        undef_ok: Names,
        exits: Names,
    ) -> None:
        flags = self._flags(body, names, undef_ok, exits)
        for item in iterable:
            body(item)
            if any(flag.cell_contents for flag in flags):
                break

    def assert_(self, test: Thunk, message: Thunk | None) -> None:
        if not test():
            raise AssertionError if message is None else AssertionError(message())

    def raise_(self, exception: Thunk, cause: Thunk | None) -> None:
        error = exception()
        if cause is None:
            raise error
        raise error from cause()

    def check_outer(self, name: str, value: Any, kind: Literal["global", "nonlocal"]) -> None:
        pass

    def ifexp(
        self,
        test: object,
        then: Thunk,
        orelse: Thunk,
        names: Names = (),
        undef_ok: Names = (),
    ) -> Any:
        return then() if test else orelse()

    def and_(self, *operands: Thunk, names: Names = (), undef_ok: Names = ()) -> Any:
        *first, last = operands
        for operand in first:
            if not (value := operand()):
                return value
        return last()

    def or_(self, *operands: Thunk, names: Names = (), undef_ok: Names = ()) -> Any:
        *first, last = operands
        for operand in first:
            if value := operand():
                return value
        return last()

    def all_true(self, *operands: Thunk, names: Names = (), undef_ok: Names = ()) -> Any:
        return all(operand() for operand in operands)

    def any_true(self, *operands: Thunk, names: Names = (), undef_ok: Names = ()) -> Any:
        return any(operand() for operand in operands)

    def not_(self, value: Any) -> Any:
        return not value

    def compare(
        self,
        left: Any,
        *rest: tuple[CompareOp, Thunk],
        names: Names = (),
        undef_ok: Names = (),
    ) -> Any:
        *first, (last, final) = rest
        for op, operand in first:
            right = operand()
            if not (result := _COMPARE[op](left, right)):
                return result
            left = right
        return _COMPARE[last](left, final())

    def read(self, value: Thunk, name: str) -> Any:
        try:
            return value()
        except NameError:
            raise UnboundLocalError(
                f"cannot access local variable '{name}' where it is not associated with a value"
            ) from None

    def fn(self, function: Any) -> Any:
        return function

    def each(self, items: Any, item: Any, eager: bool) -> Any:
        return [item(x) for x in items] if eager else (item(x) for x in items)

    def text(self, *parts: str) -> str:
        return "".join(parts)

    def getitem(self, container: Any, index: Any) -> Any:
        return container[index]

    def setitem(self, value: Any, container: Any, index: Any) -> None:
        container[index] = value

    def static_only(self, kind: Literal["try"]) -> AbstractContextManager[object]:
        return contextlib.nullcontext()

    def with_(self, manager: Any) -> AbstractContextManager[Any]:
        result: AbstractContextManager[Any] = manager
        return result

    AssertionError = AssertionError
    TRUE = True
    FALSE = False

    def _check(self, names: Names, undef_ok: Names, *bodies: Callable[..., Any] | None) -> None:
        """The contract's promises hold: each name is a cell of each body, `undef_ok` a part."""
        assert len(set(names)) == len(names), names
        assert set(undef_ok) <= set(names), (names, undef_ok)
        for body in bodies:
            if body is not None:
                assert set(names) <= shared_cells(body).keys(), (body, names)

    def _flags(
        self, body: Callable[..., Any], names: Names, undef_ok: Names, exits: Names
    ) -> list[CellType]:
        self._check(names, undef_ok, body)
        assert set(exits) <= set(names), (names, exits)
        cells = shared_cells(body)
        assert not any(cells[name].cell_contents for name in exits), exits
        return [cells[name] for name in exits]
