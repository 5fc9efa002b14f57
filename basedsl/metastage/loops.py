"""Staged loops: which leaves a loop carries, of which types, found by tracing its body.

The body is traced with a first guess of what is carried. If it leaves a variable with another type,
or changes something thought constant, the attempt is thrown away and the body traced again with the
better guess. Guesses are remembered by the loop's place in the trace, so that a loop inside a loop
that is traced again starts from what it found before, and cost stays linear in the nesting.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from basedsl.errors import CompilerBug, DSLError, DSLTypeError
from basedsl.location import user_span
from basedsl.metastage.emitter import LoopHints
from basedsl.metastage.ranges import Range
from basedsl.metastage.slots import Slot, join, same_leaf, slot_of
from basedsl.metastage.state import MaybeUnbound, Picture, State, binding_span
from basedsl.metastage.trace import Trace
from basedsl.numeric import Boolean, Int64, Numeric, as_numeric, is_dynamic, promote
from basedsl.tree import UNBOUND, Node, flatten, mutable_objects, same_shape

MAX_ATTEMPTS = 40


class _Again(BaseException):
    """The guess was wrong and has been improved: trace the body once more."""


class Guess:
    """What a loop carries: slots by (variable, leaf index), and new shapes for some variables."""

    def __init__(self) -> None:
        self.slots: dict[tuple[str, int], Slot] = {}
        self.nodes: dict[str, tuple[Node | None, list[Any]]] = {}
        self.counted = True  # a counted loop, until an exit turns out to be dynamic


class Loop:
    """What `for` and `while` share: carrying state through a body."""

    def __init__(
        self,
        trace: Trace,
        bodies: tuple[Callable[..., Any], ...],
        names: Iterable[str],
        undef_ok: Iterable[str],
        exits: tuple[str, ...],
        runs: bool,
    ) -> None:
        self.trace = trace
        self.body = bodies[-1]
        self.state = State(bodies, names)
        self.undef_ok = frozenset(undef_ok)
        self.exits = exits
        self.runs = runs  # known to run at least once, so that what it binds is bound after it
        self.span = user_span()
        self.before = self.state.capture()
        self.maybe_unbound: set[str] = set()

    def stage(self, emit: Callable[[], Any]) -> None:
        """Call `emit` until the guess holds, then leave the loop's results in the variables."""
        trace = self.trace
        with _remembered(trace) as guess:
            self.guess = guess
            for _ in range(MAX_ATTEMPTS):
                self._prepare()
                printed = None if trace.printed is None else len(trace.printed)
                outermost = trace.printed is None
                if outermost:
                    trace.printed = []
                try:
                    results = emit()
                except _Again:
                    self.state.restore(self.before)
                    _reset_children(trace)
                    if outermost:
                        trace.printed = None
                    else:
                        del trace.printed[printed:]  # type: ignore[union-attr,misc]
                    continue
                except BaseException:
                    self.state.restore(self.before)
                    if outermost:
                        trace.flush_prints()
                    raise
                if outermost:
                    trace.flush_prints()
                self._finish(results)
                return
        raise CompilerBug("the types of this loop's variables do not settle", self.span)

    def _prepare(self) -> None:
        self.entry = self.before.copy()
        self.new_names: set[str] = set()
        for name, (node, leaves) in self.guess.nodes.items():
            if not same_shape(self.before.nodes[name], node) or self.before.is_unbound(name):
                self.new_names.add(name)
                self.entry.leaves[name] = list(leaves)
            self.entry.nodes[name] = node
        for name in self.state.names:
            if name not in self.new_names and not self.before.is_unbound(name):
                for index, leaf in enumerate(self.before.leaves[name]):
                    # A number bound to a plain variable of the loop will hardly stay what it is.
                    if self.before.nodes[name] is None and name not in self.exits:
                        slot = slot_of(leaf, self.trace)
                        if slot is not None and (type(leaf) is not bool):
                            self.guess.slots.setdefault((name, index), slot)
        self.keys = sorted(self.guess.slots)

    def initial(self) -> list[Any]:
        """The carried values on entry."""
        values = []
        for key in self.keys:
            slot = self.guess.slots[key]
            if key[0] in self.new_names:
                values.append(slot.undefined())
            else:
                values.append(slot.to_ir(self.before.leaves[key[0]][key[1]]))
        return values

    def enter(self, values: Iterable[Any]) -> None:
        """Give the variables the carried `values`, at the head of an iteration."""
        head = self.entry.copy()
        for (name, index), value in zip(self.keys, values, strict=True):
            head.leaves[name][index] = self.guess.slots[name, index].from_ir(value)
        self.state.restore(head)
        self.head = head

    def leave(self) -> list[Any]:
        """The carried values now; improves the guess and starts over if it does not fit."""
        after = self.state.capture()
        wrong = [self._check_variable(name, after) for name in self.state.cells]
        if any(wrong):
            raise _Again
        return [self.guess.slots[name, i].to_ir(after.leaves[name][i]) for name, i in self.keys]

    def _check_variable(self, name: str, after: Picture) -> bool:
        entry = self.entry
        rebound = after.value(name) is not self.head.value(name)
        if name not in self.state.names:
            if rebound and not same_leaf(after.value(name), self.head.value(name)):
                return False  # a variable of one iteration
        elif entry.is_unbound(name):
            return self._first_bound(name, after)
        elif after.is_unbound(name):
            if name in self.undef_ok:
                return False
            raise DSLError(
                f"'{name}' is bound before this loop and not after an iteration of it",
                binding_span(self.body, name) or self.span,
                hint=f"do not delete '{name}' in the loop",
            )
        if not same_shape(entry.nodes[name], after.nodes[name]):
            if name in self.guess.nodes and name in self.undef_ok:
                self.guess.nodes[name] = after.nodes[name], after.leaves[name]
                return True
            self._changed_shape(name, after)
        if rebound and entry.nodes[name] is not None and self._new_objects(name, after):
            return True
        wrong = False
        for index, (old, new) in enumerate(
            zip(self.head.leaves[name], after.leaves[name], strict=True)
        ):
            wrong |= self._check_leaf(name, index, old, new, after)
        return wrong

    def _first_bound(self, name: str, after: Picture) -> bool:
        if after.is_unbound(name):
            return False
        if name not in self.undef_ok and not self.runs:
            self.maybe_unbound.add(name)
            return False
        self.guess.nodes[name] = after.nodes[name], after.leaves[name]
        for index, leaf in enumerate(after.leaves[name]):
            slot = slot_of(leaf, self.trace)
            if slot is not None:
                self.guess.slots[name, index] = slot
        return True

    def _new_objects(self, name: str, after: Picture) -> bool:
        """A loop that binds new objects each time must not write into the one from before."""
        if name in self.guess.nodes:
            return False
        old, new = (mutable_objects(p.nodes[name]) for p in (self.entry, after))
        if all(a is b for a, b in zip(old, new, strict=True)):
            return False
        _, leaves = flatten(self.entry.value(name))
        if not all(map(same_leaf, leaves, self.head.leaves[name])):
            raise DSLError(
                f"'{name}' is both changed in place and bound to a new object in this loop",
                self.span,
                hint="do one of the two",
            )
        self.guess.nodes[name] = after.nodes[name], after.leaves[name]
        return True

    def _check_leaf(self, name: str, index: int, old: Any, new: Any, after: Picture) -> bool:
        key = name, index
        slot = self.guess.slots.get(key)
        if slot is None and same_leaf(old, new):
            return False
        known = slot or slot_of(old, self.trace)
        found = slot_of(new, self.trace)
        path = after.path(name, index)
        where = binding_span(self.body, name) or self.span
        if known is None or found is None:
            raise DSLTypeError(
                f"'{path}' changes in this loop from {old!r} to {new!r}, which only DSL values can",
                where,
                hint="use range_constexpr to unroll the loop while compiling",
            )
        joined = join(known, found)
        if joined is None:
            raise DSLTypeError(
                f"'{path}' is {known} before the loop and {found} after an iteration",
                where,
                notes=(("the loop", self.span),),
                hint=f"start '{path}' as {found}, or convert with .to({known})",
            )
        if joined != slot:
            self.guess.slots[key] = joined
            return True
        return False

    def _changed_shape(self, name: str, after: Picture) -> None:
        raise DSLError(
            f"'{name}' changes its structure in a loop that runs at run time "
            f"(from {_outline(self.entry, name)} to {_outline(after, name)})",
            binding_span(self.body, name) or self.span,
            hint="use range_constexpr to unroll the loop while compiling, or keep the structure "
            "fixed and change its items",
        )

    def _finish(self, results: Iterable[Any]) -> None:
        final = self.entry.copy()
        for (name, index), value in zip(self.keys, results, strict=True):
            final.leaves[name][index] = self.guess.slots[name, index].from_ir(value)
        for name in self.state.cells:
            if name in self.maybe_unbound:
                final.nodes[name] = None
                final.leaves[name] = [
                    MaybeUnbound(name, "when the loop does not run once", self.span)
                ]
        self.state.restore(final)

    # Exits ------------------------------------------------------------------------------------

    def exit_flag(self) -> Any:
        """Whether a break or return has happened: a bool, or a dynamic Boolean."""
        flag: Any = False
        for name in self.exits:
            value = self.state.cells[name].cell_contents
            if is_dynamic(value):
                flag = value if flag is False else flag | value
            elif value:
                return True
        return flag


def stage_for(
    trace: Trace,
    bounds: Range,
    body: Callable[[Any], Any],
    names: Iterable[str],
    undef_ok: Iterable[str],
    exits: tuple[str, ...],
) -> None:
    """Emit a `for` over a range."""
    start, stop, step = bounds.start, bounds.stop, bounds.step
    count = len(bounds.as_builtin()) if bounds.is_static else None
    if count == 0:
        return
    loop = Loop(trace, (body,), names, undef_ok, exits, runs=bool(count))
    kind = _index_type(bounds, trace)
    plain_step = not is_dynamic(step) and int(step) == 1
    safe_step = plain_step or (count is not None and int(step) > 0)

    def emit() -> Any:
        unsigned = not kind.signed
        if safe_step and loop.guess.counted:
            low, high, by = kind(start), kind(stop), kind(step)
            return trace.emitter.for_(
                low.ir_value(),
                high.ir_value(),
                by.ir_value(),
                loop.initial(),
                lambda i, values: iteration(kind.from_value(i), values),
                bounds.hints,
                trace.loc(),
                unsigned=unsigned,
            )
        low, by = kind(start), kind(step)
        trips, counter = _trip_count(kind, low, kind(stop), by, step)
        if loop.guess.counted:
            return trace.emitter.for_(
                counter(0).ir_value(),
                trips.ir_value(),
                counter(1).ir_value(),
                loop.initial(),
                lambda k, values: iteration(index(low, by, counter.from_value(k)), values),
                bounds.hints,
                trace.loc(),
                unsigned=True,
            )

        def test(values: Any) -> Any:
            k, *carried = values
            with trace.inside("loop condition", loop.span):
                loop.enter(carried)
                go = counter.from_value(k) < trips
                flag = loop.exit_flag()
                if flag is not False:
                    go = go & ~as_numeric(flag)
                return go.ir_value(), values

        def step_body(values: Any) -> Any:
            k, *carried = values
            here = counter.from_value(k)
            following = iteration(index(low, by, here), carried)
            return [(counter.from_value(k) + counter(1)).ir_value(), *following]

        results = trace.emitter.while_(
            [counter(0).ir_value(), *loop.initial()], test, step_body, trace.loc()
        )
        return list(results)[1:]

    def index(low: Any, by: Any, k: Any) -> Any:
        return low + k.to(kind) * by

    def iteration(item: Any, values: Any) -> Any:
        with trace.inside("loop body", loop.span):
            loop.enter(values)
            body(_fresh(item, trace))
            if loop.guess.counted and loop.exit_flag() is not False:
                loop.guess.counted = False
                raise _Again
            return loop.leave()

    loop.stage(emit)


def _fresh(item: Any, trace: Trace) -> Any:
    """The index, as made in the region of the body."""
    return type(item).from_value(item.value) if isinstance(item, Numeric) else item


def stage_while(
    trace: Trace,
    test: Callable[[], Any],
    truth: Callable[[Any], Any],
    both: Callable[[Any, Callable[[], Any]], Any],
    body: Callable[[], Any],
    names: Iterable[str],
    undef_ok: Iterable[str],
    exits: tuple[str, ...],
) -> None:
    """Emit a `while`. `truth` makes a condition a Boolean, `both` is a short-circuit `and`."""
    loop = Loop(trace, (test, body), names, undef_ok, exits, runs=False)

    def emit_test(values: Any) -> Any:
        with trace.inside("loop condition", loop.span):
            loop.enter(values)
            flag = loop.exit_flag()
            if flag is False:
                go = truth(test())
            elif flag is True:
                go = False
            else:
                go = both(~flag, lambda: truth(test()))
            return Boolean(go).ir_value(), loop.leave()

    def emit_body(values: Any) -> Any:
        with trace.inside("loop body", loop.span):
            loop.enter(values)
            body()
            return loop.leave()

    loop.stage(lambda: trace.emitter.while_(loop.initial(), emit_test, emit_body, trace.loc()))


# Counting -------------------------------------------------------------------------------------


def _index_type(bounds: Range, trace: Trace) -> Any:
    """The type of the loop variable: the bounds' common type, the DSL's int for Python ints."""
    kind = trace.default_int
    for bound in (bounds.start, bounds.stop, bounds.step):
        if is_dynamic(bound) or isinstance(bound, Numeric):
            strong = not bound.weak
            kind = type(bound) if kind is trace.default_int and strong else promote(kind, bound)
        elif not -(1 << kind.width - 1) <= int(bound) < 1 << kind.width - 1:
            kind = Int64
    return kind


def _trip_count(kind: Any, low: Any, high: Any, by: Any, step: Any) -> tuple[Any, Any]:
    """How often a range runs, as an unsigned number, exact also where `high + step` overflows."""
    from basedsl import numeric

    counter = getattr(numeric, f"Uint{kind.width}")
    one, none = counter(1), counter(0)

    def upward() -> Any:
        distance = high.to(counter) - low.to(counter)
        return _pick(low < high, (distance - one) // by.to(counter) + one, none)

    def downward() -> Any:
        distance = low.to(counter) - high.to(counter)
        return _pick(high < low, (distance - one) // (none - by.to(counter)) + one, none)

    if not is_dynamic(step):
        if int(step) == 1:
            return _pick(low < high, high.to(counter) - low.to(counter), none), counter
        return (upward() if int(step) > 0 else downward()), counter
    trace = low_trace()
    trace.emitter.assert_(
        (by != kind(0)).ir_value(), "ValueError: range() arg 3 must not be zero", trace.loc()
    )
    if not kind.signed:
        return upward(), counter
    positive = by > kind(0)
    return _pick(positive, upward(), downward()), counter


def low_trace() -> Trace:
    from basedsl.metastage.trace import require

    return require("a staged loop")


def _pick(condition: Any, a: Any, b: Any) -> Any:
    trace = low_trace()
    value = trace.emit(
        trace.bindings.arith.SelectOp, condition.ir_value(), a.ir_value(), b.ir_value()
    ).result
    return type(a).from_value(value)


# Guesses by place in the trace ------------------------------------------------------------------


@contextlib.contextmanager
def _remembered(trace: Trace) -> Iterator[Guess]:
    """The guess for the loop that starts here; loops inside count from this place."""
    places = trace.state.setdefault("loop places", [((), 0)])
    path, count = places[-1]
    places[-1] = (path, count + 1)
    here = (*path, count)
    places.append((here, 0))
    guesses = trace.state.setdefault("loop guesses", {})
    depth = len(places)
    try:
        yield guesses.setdefault(here, Guess())
    finally:
        del places[depth - 1 :]


def _reset_children(trace: Trace) -> None:
    places = trace.state["loop places"]
    places[-1] = (places[-1][0], 0)


def _outline(picture: Picture, name: str) -> str:
    node = picture.nodes[name]
    if node is None:
        leaf = picture.leaves[name][0]
        return "unbound" if leaf is UNBOUND else type(leaf).__name__
    return f"a {type(node.obj).__name__} of {len(node.keys)}"


__all__ = ["Guess", "Loop", "LoopHints", "stage_for", "stage_while"]
