"""Staged branches: both sides are traced, and what they leave behind is merged leaf by leaf."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from basedsl.errors import DSLError, DSLTypeError
from basedsl.location import user_span
from basedsl.metastage.names import RETURN_VALUE
from basedsl.metastage.slots import Slot, join, promote, same_leaf, slot_of
from basedsl.metastage.state import Body, MaybeUnbound, Picture, State, binding_span
from basedsl.metastage.trace import Region, Trace
from basedsl.tree import UNBOUND, mutable_objects, same_shape, unflatten

RESULT = "the value"  # how messages call what an expression's branch returns
Side = Body | Callable[[], Any] | None


class _Outcome:
    """One traced branch: its region, still open for casts, and the state it left."""

    def __init__(self, region: Region, picture: Picture) -> None:
        self.region = region
        self.picture = picture


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
        self.undef_ok = frozenset(undef_ok)
        self.with_value = value
        self.span = user_span()
        self.changed: list[tuple[str, int, Slot]] = []
        self.final: Picture | None = None

    def emit(self, condition: Any) -> Any:
        """Emit the branch on the i1 `condition`; returns the merged value, if it has one."""
        trace = self.trace
        self.before = self.state.capture()
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
        assert self.final is not None
        for (name, index, slot), result in zip(self.changed, results, strict=True):
            self.final.leaves[name][index] = slot.from_ir(result)
        self.state.restore(self.final)
        if not self.with_value:
            return None
        return unflatten(self.final.nodes[RESULT], self.final.leaves[RESULT])

    def _run(self, side: int, outcomes: list[_Outcome]) -> _Outcome:
        trace = self.trace
        self.state.restore(self.before)
        region = Region(("true", "false")[side] + " branch", self.span, trace.region)
        outcome = _Outcome(region, self.before)
        outcomes.append(outcome)
        outer, trace.region = trace.region, region
        try:
            body = self.bodies[side]
            value = None
            if body is not None:
                value = body.run() if isinstance(body, Body) else body()
            extra = {RESULT: value} if self.with_value else None
            outcome.picture = self.state.capture(extra)
        finally:
            trace.region = outer
        return outcome

    # Merging -----------------------------------------------------------------------------------

    def _merge(self, a: _Outcome, b: _Outcome) -> tuple[Callable[[], Any], Callable[[], Any]]:
        self.final = a.picture.copy()
        for name in (*self.state.cells, *((RESULT,) if self.with_value else ())):
            self._merge_variable(name, a.picture, b.picture)
        return (lambda: self._yields(a)), (lambda: self._yields(b))

    def _merge_variable(self, name: str, a: Picture, b: Picture) -> None:
        assert self.final is not None
        final = self.final
        if name not in self.state.names and name != RESULT and self._rebound(name, a, b):
            final.set_unbound(name)  # dead after this: nothing reads it
            return
        unbound = a.is_unbound(name), b.is_unbound(name)
        if all(unbound):
            self._pick(name, b if a.leaves[name][0] is UNBOUND else a)
            return
        if any(unbound):
            bound = b if unbound[0] else a
            if name not in self.undef_ok:
                side = 0 if unbound[0] else 1
                path = "when the condition is " + ("true", "false")[side]
                final.nodes[name] = None
                final.leaves[name] = [MaybeUnbound(name, path, self.span)]
                return
            self._pick(name, bound)
            for index, leaf in enumerate(bound.leaves[name]):
                slot = slot_of(leaf, self.trace)
                if slot is not None and hasattr(type(leaf), "ir_value"):
                    self.changed.append((name, index, slot))
            return
        if not same_shape(a.nodes[name], b.nodes[name]):
            self._mismatch(name, _describe(a, name), _describe(b, name))
        self._check_identity(name, a, b)
        for index, (x, y) in enumerate(zip(a.leaves[name], b.leaves[name], strict=True)):
            if not same_leaf(x, y):
                self.changed.append((name, index, self._join(name, index, x, y, a)))

    def _pick(self, name: str, picture: Picture) -> None:
        assert self.final is not None
        self.final.nodes[name] = picture.nodes[name]
        self.final.leaves[name] = list(picture.leaves[name])

    def _rebound(self, name: str, a: Picture, b: Picture) -> bool:
        old = self.before.value(name)
        return any(p.value(name) is not old and not same_leaf(p.value(name), old) for p in (a, b))

    def _check_identity(self, name: str, a: Picture, b: Picture) -> None:
        older = self.before.objects()
        pairs = zip(mutable_objects(a.nodes[name]), mutable_objects(b.nodes[name]), strict=True)
        for x, y in pairs:
            if x is not y and (id(x) in older or id(y) in older):
                raise DSLError(
                    f"'{name}' refers to different {type(x).__name__} objects depending on a "
                    "dynamic condition",
                    self.span,
                    hint="build a new object on both paths, or change one object in place",
                )

    def _join(self, name: str, index: int, x: Any, y: Any, shape: Picture) -> Slot:
        a, b = slot_of(x, self.trace), slot_of(y, self.trace)
        path = shape.path(name, index)
        if a is None or b is None:
            self._mismatch(path, _show(x), _show(y), name)
        joined = promote(x, y, self.trace) if name == RESULT else join(a, b)
        if joined is None:
            self._mismatch(path, str(a), str(b), name)
        return joined

    def _mismatch(self, path: str, a: str, b: str, name: str | None = None) -> Any:
        name = name or path
        if name == RESULT:
            raise DSLTypeError(
                f"this expression is {a} or {b}, depending on a dynamic condition",
                self.span,
                hint="convert one side with .to(...) so that both have one type",
            )
        then, orelse = (binding_span(body, name) for body in self.bodies)
        if name == RETURN_VALUE:
            path = "the return value"
        raise DSLTypeError(
            f"'{path}' is {a} on one path and {b} on the other",
            then or self.span,
            notes=((f"'{path}' is {b} here", orelse),)
            if orelse
            else ((f"'{path}' is {b} when the condition is false", self.span),),
            hint=f"convert one of them, so that '{path}' has one type on every path",
        )

    def _yields(self, outcome: _Outcome) -> list[Any]:
        outer, self.trace.region = self.trace.region, outcome.region
        try:
            values = []
            for name, index, slot in self.changed:
                picture = outcome.picture
                if picture.is_unbound(name):
                    values.append(slot.undefined())
                else:
                    values.append(slot.to_ir(picture.leaves[name][index]))
            return values
        finally:
            self.trace.region = outer


def _describe(picture: Picture, name: str) -> str:
    node = picture.nodes[name]
    if node is None:
        return _show(picture.leaves[name][0])
    return f"a {type(node.obj).__name__} of {len(node.keys)}"


def _show(leaf: Any) -> str:
    from basedsl.numeric import Numeric

    if leaf is None:
        return "None"
    if isinstance(leaf, Numeric):
        return type(leaf).__name__
    text = repr(leaf)
    return f"the {type(leaf).__name__} {text}" if len(text) < 40 else f"a {type(leaf).__name__}"
