"""The contract between rewritten code and whoever runs it: the `ControlFlowCallbacks` protocol.

Rewritten functions call these methods on the object bound to the name `__dsl__`. The meta-stage
implements them (static values: run Python; dynamic values: emit a region). This file holds the
protocol, the reserved names and two helpers for reading shared variables. It knows no MLIR and
contains no implementation.

How state is shared
-------------------
No state tuples are passed. The body of a rewritten construct is a nested function, and a variable
it shares with the surrounding code is a closure cell, reached by `shared_cells(body)`. An empty
cell is an unbound variable. A variable that a body assigns but nobody outside can observe (it is
dead after the construct and not read at the loop head) stays an ordinary local of the body and
has no cell.

`names`
    Variables which the construct may assign or delete and whose value is observable afterwards:
    live after the construct or, for loops, live at the loop head; for `while_` also what the test
    assigns (by `:=`) for the body. Ordered by first binding in the source. Every entry is a free
    variable of *every* body function of the construct, also of the branch that does not assign
    it. Compiler variables (flags, the return value) are in it like any other. A variable that
    nested functions assign (`nonlocal`) counts as assigned by every call, and is always live;
    variables from outside of the decorated function never occur (see `check_outer`).
`undef_ok`
    The entries of `names` for which every later read is definitely assigned on all paths of the
    user's program. If one path leaves such a variable unbound, its value may be merged with
    "undefined" silently: nobody reads it on that path. For an entry of `names` outside `undef_ok`
    a later read exists which may find it unbound; such reads go through `read`.
`exits`
    Names of flag variables (always also in `names`). Each is the Python bool `False` before the
    loop; a true flag ends the loop: after a call of the body, before the next item is fetched or
    the test is evaluated again.

Compiler variables
------------------
`__ret__` (a `return` was executed), `__retval__` (its value; absent if every `return` of the
function returns None), `__brk_LINE__`, `__cont_LINE__`. `is_flag` recognises the flags. Flags start
as Python `False` and are set to Python `True`, so they stay plain bools while control flow is
static. A function that needs `__retval__` ends in a plain `return __retval__`, reached with
`__retval__` bound on every path: falling off the end assigns it None, like Python. Temporaries
such as `__item_LINE__` never outlive their statement and never appear in `names`.

Evaluation order
----------------
Arguments are evaluated by Python, left to right, before the call; a thunk is evaluated by the
callback, at most once per evaluation of the construct, only if Python would evaluate it.

The line and columns of the call instruction are those of the construct's header in the user's
file, so the caller's frame (`co_positions`) is the source location of every callback.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from types import CellType, FunctionType
from typing import Any, Final, Literal, Protocol

RUNTIME: Final = "__dsl__"
RETURNED: Final = "__ret__"
RETURN_VALUE: Final = "__retval__"

Names = tuple[str, ...]
Thunk = Callable[[], Any]
Body = Callable[[], None]
CompareOp = Literal["==", "!=", "<", "<=", ">", ">=", "is", "is not", "in", "not in"]


def is_flag(name: str) -> bool:
    """Return True for an exit flag of the rewriter (a bool the user never sees)."""
    return name.endswith("__") and (
        name == RETURNED or name.startswith(("__ret_", "__brk_", "__cont_"))
    )


def is_compiler_variable(name: str) -> bool:
    """Return True for a variable that the rewriter made: a flag or the return value."""
    return is_flag(name) or (name.startswith(RETURN_VALUE.rstrip("_")) and name.endswith("__"))


def shared_cells(*functions: Callable[..., Any] | None) -> dict[str, CellType]:
    """Return the closure cells of body functions by variable name, without that of `__dsl__`."""
    cells: dict[str, CellType] = {}
    for function in functions:
        if isinstance(function, FunctionType) and function.__closure__:
            cells.update(zip(function.__code__.co_freevars, function.__closure__, strict=True))
    cells.pop(RUNTIME, None)
    return cells


class ControlFlowCallbacks(Protocol):
    """The methods that rewritten code calls on `__dsl__`. All meanings are Python's for static
    values.
    """

    # Statements ---------------------------------------------------------------------------

    def named(self, value: object, text: str) -> None:
        """A statement that only names `value`, by the source `text`: a function was meant to be
        called.
        """
        ...

    def if_(
        self, test: object, then: Body, orelse: Body | None, names: Names, undef_ok: Names
    ) -> None:
        """`if test: ... else: ...`; `test` is evaluated but its truth is not asked yet."""
        ...

    def while_(self, test: Thunk, body: Body, names: Names, undef_ok: Names, exits: Names) -> None:
        """`while test(): body()`, ended early by a true exit flag (then `test` is not called)."""
        ...

    def for_(
        self,
        iterable: Any,
        body: Callable[[Any], None],
        names: Names,
        undef_ok: Names,
        exits: Names,
    ) -> None:
        """`for item in iterable: body(item)`; the body assigns the user's target itself.

        The iterable is consumed lazily, and not beyond the item whose body set an exit flag.
        """
        ...

    def assert_(self, test: Thunk, message: Thunk | None) -> None:
        """`assert test(), message()`; the message is evaluated only on failure."""
        ...

    @property
    def AssertionError(self) -> type[BaseException]:
        """The builtin class: users may have taken its name."""
        ...

    def raise_(self, exception: Thunk, cause: Thunk | None) -> None:
        """`raise exception() from cause()` inside a staged construct.

        `cause` None means no `from` clause. Nothing follows the call in its block, and the
        path counts as leaving the function: names bound only on the other paths are in
        `undef_ok`. Inside `static_only` or a `with`, a surrounding `except` may catch it.
        """
        ...

    def check_outer(self, name: str, value: Any, kind: Literal["global", "nonlocal"]) -> None:
        """Called after each assignment to a variable outside of the decorated function."""
        ...

    # Expressions --------------------------------------------------------------------------

    def ifexp(
        self,
        test: object,
        then: Thunk,
        orelse: Thunk,
        names: Names = (),
        undef_ok: Names = (),
    ) -> Any:
        """`then() if test else orelse()`.

        Here and below, `names`/`undef_ok` are passed (by keyword) only if a thunk assigns
        variables by `:=`; the thunks concerned then have a cell for each.
        """
        ...

    def and_(self, *operands: Thunk, names: Names = (), undef_ok: Names = ()) -> Any:
        """`a and b and ...` with Python's value and short circuit; two operands or more."""
        ...

    def or_(self, *operands: Thunk, names: Names = (), undef_ok: Names = ()) -> Any:
        """`a or b or ...` with Python's value and short circuit; two operands or more."""
        ...

    def all_true(self, *operands: Thunk, names: Names = (), undef_ok: Names = ()) -> Any:
        """`a and b and ...` where only the truth is asked, which is asked of each operand once."""
        ...

    def any_true(self, *operands: Thunk, names: Names = (), undef_ok: Names = ()) -> Any:
        """`a or b or ...` where only the truth is asked, which is asked of each operand once."""
        ...

    def not_(self, value: Any) -> Any:
        """`not value`."""
        ...

    def compare(
        self,
        left: Any,
        *rest: tuple[CompareOp, Thunk],
        names: Names = (),
        undef_ok: Names = (),
    ) -> Any:
        """A chain `left < a() <= b()`, each operand evaluated once. A single comparison calls back
        only for `in` and `not in`, of which Python would ask the truth at once, and for `is` and
        `is not`, which no object can answer itself.
        """
        ...

    def read(self, value: Thunk, name: str) -> Any:
        """A read of `name` that may find it unbound; `value()` then raises NameError."""
        ...

    def fn(self, function: Any) -> Any:
        """The callee of a call to a known builtin or a function of `math`; may substitute it."""
        ...

    def each(self, items: Any, item: Callable[[Any], Any], eager: bool) -> Any:
        """`(item(x) for x in items)`, or a list of them if `eager`: the one argument of a builtin
        that consumes it.
        """
        ...

    def text(self, *parts: str) -> str:
        """An f-string: its constant parts, and each value formatted."""
        ...

    def getitem(self, container: Any, index: Any) -> Any:
        """`container[index]` for an index that is no literal, slice or tuple."""
        ...

    def setitem(self, value: Any, container: Any, index: Any) -> None:
        """`container[index] = value`; the argument order is Python's order of evaluation."""
        ...

    # Statements that stay Python ------------------------------------------------------------

    def static_only(self, kind: Literal["try"]) -> AbstractContextManager[object]:
        """Entered around a whole `try` statement; its exit must not swallow exceptions."""
        ...

    def with_(self, manager: Any) -> AbstractContextManager[Any]:
        """Wraps each context expression of a `with`; enters, exits and swallows as `manager`."""
        ...

    @property
    def TRUE(self) -> Any:
        """The pattern of `case True`: what equals the subject if it `is True`."""
        ...

    @property
    def FALSE(self) -> Any:
        """The pattern of `case False`."""
        ...


CALLBACKS: Final[Iterable[str]] = tuple(
    name for name in vars(ControlFlowCallbacks) if name.islower() and not name.startswith("_")
)
