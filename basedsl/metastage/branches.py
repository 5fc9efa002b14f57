"""Staged branches: both sides are traced, and their final states are merged leaf by leaf.

A place that existed before the branch stays itself, and its contents are merged. Where a variable
holds a place made in the true branch and another one made in the false branch, the two become one.
A variable that holds an older object on one side and another object on the other is an error:
compiled code cannot choose between objects. Of classes whose objects are values for the language
it holds a new object then (`Language.is_rebuilt`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import CellType
from typing import Any, NoReturn

from basedsl.errors import DSLError, DSLTypeError, with_article
from basedsl.location import user_span
from basedsl.metastage.carried_types import (
    CarriedType,
    carried_type_of,
    joined_type,
    promoted_type,
    same_leaf,
)
from basedsl.metastage.conditional_path import ConditionalPath
from basedsl.metastage.names import RETURN_VALUE
from basedsl.metastage.state import (
    Body,
    MaybeUnbound,
    PlaceContents,
    State,
    StateSnapshot,
    binding_span,
    change_span,
    describe_leaf,
    functions_of,
    same_contents,
)
from basedsl.pytree import UNBOUND, same_shape, set_cell
from basedsl.tracing import Region, Trace
from basedsl.tracing.contract import carried

RESULT = "the value"  # the value of an expression's branch, in messages
Side = Body | Callable[[], Any] | None
_SIDES = ("true", "false")
_KERNEL_RESULT = "write the value into a tensor, and `return` without one"


class _Outcome:
    """One traced branch: its region, still open for casts, and the state at its end."""

    def __init__(self, region: Region, snapshot: StateSnapshot) -> None:
        self.region = region
        self.snapshot = snapshot


class _ChangedLeaf:
    """A leaf of the merged state that the branch yields; None stands for a side without a value."""

    __slots__ = ("contents", "index", "leaves", "type")

    def __init__(
        self,
        contents: PlaceContents,
        index: int,
        carried_type: CarriedType,
        leaves: tuple[Any, Any],
    ) -> None:
        self.contents = contents
        self.index = index
        self.type = carried_type
        self.leaves = leaves


class Branch:
    """One `if` (or expression) with a dynamic condition."""

    def __init__(
        self,
        trace: Trace,
        then: Side,
        orelse: Side,
        names: Iterable[str],
        undef_ok: Iterable[str],
        value: bool,
    ) -> None:
        self.trace = trace
        self.bodies = (then, orelse)
        self.state = State(self.bodies, names)
        self.names = self.state.names
        self.undef_ok = frozenset(undef_ok)
        self.result: CellType | None = None
        if value:
            self.result = self.state.cells[RESULT] = CellType()
            self.names |= {RESULT}
        self.span = user_span()
        self.changed: list[_ChangedLeaf] = []

    def emit(self, condition: Any) -> Any:
        """Emit the branch on the i1 `condition`; returns the merged value, if it has one."""
        trace = self.trace
        self.before = self.state.capture()
        self.state.watch(self.before)
        outer = trace.region
        outcomes: list[_Outcome] = []
        try:
            results = trace.emitter.if_(
                condition,
                lambda: self._run(0, outcomes),
                lambda: self._run(1, outcomes),
                self._merge,
                trace.loc(),
            )
        except BaseException:
            self.state.restore(self.before)
            raise
        finally:
            for outcome in outcomes:
                outcome.region.closed = True
            trace.region = outer
        results = carried(trace, "if_", results, len(self.changed))
        for changed, result in zip(self.changed, results, strict=True):
            changed.contents.leaves[changed.index] = changed.type.from_ir(result)
        self.state.restore(self.final)
        return None if self.result is None else self.result.cell_contents

    def _run(self, side: int, outcomes: list[_Outcome]) -> _Outcome:
        trace = self.trace
        self.state.restore(self.before)
        region = Region(f"{_SIDES[side]} branch", self.span, trace.region)
        outcome = _Outcome(region, self.before)
        outcomes.append(outcome)
        outer, trace.region = trace.region, region
        try:
            body = self.bodies[side]
            value = None
            if body is not None:
                with ConditionalPath(region.kind, self.span):
                    value = body.run() if isinstance(body, Body) else body()
            if self.result is not None:
                set_cell(self.result, value)
            outcome.snapshot = self.state.capture(self.before)
            region.check()
            self.state.check_globals(self.before, outcome.snapshot, same_contents)
            self.state.check_outside(self.before)
        finally:
            trace.region = outer
        return outcome

    # Merging -----------------------------------------------------------------------------------

    def _merge(self, a: _Outcome, b: _Outcome) -> tuple[Callable[[], Any], Callable[[], Any]]:
        self.sides = (a.snapshot, b.snapshot)
        self.final: StateSnapshot = {}
        self.pairs: tuple[dict[int, int], dict[int, int]] = ({}, {})
        self.todo: list[tuple[PlaceContents, PlaceContents]] = []
        # Values of one side come last: by then the new places of both sides are paired.
        self.lone: list[tuple[PlaceContents, int]] = []
        for key, old in self.before.items():
            sides = a.snapshot[key], b.snapshot[key]
            if old.node.kind == "cell" and self._merge_cell(old, *sides):
                continue
            self._merge_contents(*sides)
        while self.todo:
            self._merge_contents(*self.todo.pop(0))
        while self.lone:
            self._keep(*self.lone.pop(0))
        return (lambda: self._yields(0, a)), (lambda: self._yields(1, b))

    def _merge_cell(self, old: PlaceContents, a: PlaceContents, b: PlaceContents) -> bool:
        """Merge a variable that is dead after this, or not bound on both sides; else False."""
        name = old.name
        if old.is_variable and name not in self.names:
            if same_contents(old, a) and same_contents(old, b):
                return False
            self.final[id(old.place)] = old.unbound()  # dead after this: nothing reads it
            return True
        unbound = a.is_unbound, b.is_unbound
        if not any(unbound):
            return False
        if all(unbound):
            self.final[id(old.place)] = b if a.leaves[0] is UNBOUND else a
        elif old.is_variable and name in self.undef_ok:
            self.lone.append((b, 1) if unbound[0] else (a, 0))
        else:
            side = 0 if unbound[0] else 1
            inner = (a, b)[side].leaves[0]
            if not isinstance(inner, MaybeUnbound):  # else a branch inside of this one says more
                path = f"when the condition is {_SIDES[side]}"
                inner = MaybeUnbound(old.prefix, path, self.span)
            self.final[id(old.place)] = old.unbound(inner)
        return True

    def _merge_contents(self, a: PlaceContents, b: PlaceContents) -> None:
        if not same_shape(a.node, b.node):
            self._different_shapes(a, b)
        final = self.final[id(a.place)] = a.with_leaves(list(a.leaves))
        for index, (x, y) in enumerate(zip(a.leaves, b.leaves, strict=True)):
            if id(x) in self.sides[0] or id(y) in self.sides[1]:
                self._merge_places(a, index, x, y)
            elif not same_leaf(x, y):
                carried_type = self._join(a, index, x, y)
                self.changed.append(_ChangedLeaf(final, index, carried_type, (x, y)))

    def _merge_places(self, a: PlaceContents, index: int, x: Any, y: Any) -> None:
        if id(x) in self.before or id(y) in self.before:
            if x is not y and not self._rebuild(a, index, x, y):
                self._different_objects(a, index, x, y)
            return
        if id(x) not in self.sides[0] or id(y) not in self.sides[1]:
            self._mismatch(a, index, describe_leaf(x), describe_leaf(y))
        pairs = self.pairs
        if id(x) in pairs[0] or id(y) in pairs[1]:
            if pairs[0].get(id(x)) != id(y):
                self._different_objects(a, index, x, y)
            return
        pairs[0][id(x)], pairs[1][id(y)] = id(y), id(x)
        self.todo.append((self.sides[0][id(x)], self.sides[1][id(y)]))

    def _rebuild(self, holder: PlaceContents, index: int, x: Any, y: Any) -> bool:
        """Merge an older object of one side with a new one of the other side, which the variable
        then holds; False unless their class allows that.
        """
        side = int(id(x) in self.before)  # that of the new object
        new, old = (y, x) if side else (x, y)
        if type(x) is not type(y) or not self.trace.is_rebuilt(type(x)) or id(new) in self.before:
            return False
        made, kept = self.sides[side].get(id(new)), self.sides[1 - side].get(id(old))
        if made is None or kept is None or not same_shape(made.node, kept.node):
            return False
        if id(new) in self.pairs[side]:
            return self.pairs[side][id(new)] == id(old)
        self.pairs[side][id(new)] = id(old)
        self.final[id(holder.place)].leaves[index] = new
        as_new = PlaceContents(made.node, list(kept.leaves), made.parent)
        self.todo.append((as_new, made) if side else (made, as_new))
        return True

    def _keep(self, contents: PlaceContents, side: int) -> None:
        """Merge a place that only one side made."""
        final = self.final[id(contents.place)] = contents.with_leaves(list(contents.leaves))
        snapshot = self.sides[side]
        for index, leaf in enumerate(contents.leaves):
            if id(leaf) in snapshot:
                twin = self.pairs[1].get(id(leaf)) if side else None
                if twin is not None:
                    final.leaves[index] = self.sides[0][twin].place
                elif id(leaf) not in self.final and id(leaf) not in self.before:
                    self.lone.append((snapshot[id(leaf)], side))
            elif hasattr(type(leaf), "ir_value"):
                carried_type = carried_type_of(leaf, self.trace)
                if carried_type is not None:
                    self.changed.append(
                        _ChangedLeaf(
                            final, index, carried_type, (None, leaf) if side else (leaf, None)
                        )
                    )

    def _join(self, contents: PlaceContents, index: int, x: Any, y: Any) -> CarriedType:
        a, b = carried_type_of(x, self.trace), carried_type_of(y, self.trace)
        if a is None or b is None:
            self._mismatch(contents, index, describe_leaf(x), describe_leaf(y))
        joined = promoted_type(x, y, self.trace) if contents.name == RESULT else joined_type(a, b)
        if joined is None:
            self._mismatch(contents, index, str(a), str(b))
        return joined

    def _yields(self, side: int, outcome: _Outcome) -> list[Any]:
        outer, self.trace.region = self.trace.region, outcome.region
        try:
            values = []
            for changed in self.changed:
                leaf = changed.leaves[side]
                carried_type = changed.type
                values.append(
                    carried_type.undefined() if leaf is None else carried_type.to_ir(leaf)
                )
            return values
        finally:
            self.trace.region = outer

    # Errors ------------------------------------------------------------------------------------

    def _different_shapes(self, a: PlaceContents, b: PlaceContents) -> NoReturn:
        if a.node.kind == "object" and type(a.place) is type(b.place):
            for one, other, side in ((a, b, 0), (b, a, 1)):
                missing = [key for key in one.node.keys if key not in other.node.keys]
                if missing:
                    raise DSLError(
                        f"'{a.prefix}.{missing[0]}' is set only when the condition is "
                        f"{_SIDES[side]}",
                        self.span,
                        hint=f"give '{missing[0]}' a value before, for example in __init__",
                    )
        texts = [a.describe(), b.describe()]
        if a.node.kind == b.node.kind == "object":
            texts = [with_article(type(x.place)) for x in (a, b)]
        elif a.node.kind == b.node.kind == "dict" and set(a.node.keys) == set(b.node.keys):
            texts = [f"a dict of {', '.join(map(repr, x.node.keys))}" for x in (a, b)]
        self._mismatch(a, None, *texts)

    def _different_objects(self, contents: PlaceContents, index: int, x: Any, y: Any) -> NoReturn:
        path = contents.path(index)
        what = "this expression" if contents.name == RESULT else f"'{_spoken(path)}'"
        kinds = {type(x).__name__, type(y).__name__}
        raise DSLError(
            f"{what} refers to different {' or '.join(sorted(kinds))} objects depending on a "
            "dynamic condition",
            next(filter(None, (binding_span(b, contents.name) for b in self.bodies)), self.span),
            hint="build a new object on both paths, or change one object in place",
        )

    def _is_of_kernel(self) -> bool:
        """Return True in the kernel's own body, not in a function that it calls."""
        functions = [f for body in self.bodies for f in functions_of(body)]
        in_kernel = self.trace.function_kind == "kernel"
        return in_kernel and any(self.trace.is_body(f.__code__) for f in functions)

    def _mismatch(self, contents: PlaceContents, index: int | None, a: str, b: str) -> NoReturn:
        name = contents.name
        if name == RESULT:
            raise DSLTypeError(
                f"this expression is {a} or {b}, depending on a dynamic condition",
                self.span,
                hint=_remedy_of_expression(a, b),
            )
        path = contents.prefix if index is None else contents.path(index)
        is_result = RETURN_VALUE in path
        path = _spoken(path) if is_result else f"'{path}'"
        then, orelse = (change_span(body, contents) for body in self.bodies)
        if is_result and self._is_of_kernel():
            raise DSLTypeError(
                "a kernel returns no value", then or orelse or self.span, hint=_KERNEL_RESULT
            )
        other = "here" if orelse else "when the condition is false"
        notes = ((f"{path} is {b} {other}", orelse or self.span),) if then or orelse else ()
        raise DSLTypeError(
            f"{path} is {a} on one path and {b} on the other",
            then or self.span,
            notes=notes,
            hint=_remedy(path, a, b),
        )


def _remedy_of_expression(a: str, b: str) -> str:
    if a.startswith("the ") or b.startswith("the "):
        return "use numbers for what is known at run time only, or make the condition Constexpr"
    if " of " in a or " of " in b:
        return "make both sides of the same structure"
    return "convert one side with .to(...) so that both have one type"


def _remedy(path: str, a: str, b: str) -> str:
    if "None" in (a, b):
        if path == _spoken(RETURN_VALUE):
            return "return a value on every path"
        return f"give {path} a number instead of None; a flag beside it can say that there is none"
    if a == b:
        return (
            f"compiled code cannot choose between objects: use {path} in each branch, or make the "
            "condition Constexpr"
        )
    if a.startswith("the ") or b.startswith("the "):
        return "use numbers for what is known at run time only, or make the condition Constexpr"
    if a[:2] in ("a ", "an") and " of " not in a:
        return (
            f"compiled code cannot choose between objects: use {path} in each branch, or make the "
            "condition Constexpr"
        )
    if a.startswith("a dict of '"):
        return f"insert the keys of {path} in the same order on every path"
    if " of " in a or " of " in b:
        return f"make {path} of the same structure on every path"
    return f"convert one of them, so that {path} has one type on every path"


def _spoken(path: str) -> str:
    return path.replace(RETURN_VALUE, "the return value")
