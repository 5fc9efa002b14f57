"""Staged loops: a `for` over a range, counted or with an early exit, and a `while`.

`loop_carried` finds the values that a loop carries; this module says how often it runs and how it
ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from basedsl.errors import DSLError
from basedsl.location import user_span
from basedsl.metastage.conditions import asked
from basedsl.metastage.loop_carried import (
    Loop,
    LoopTypes,
    Retrace,
    exit_flag,
    place_count,
    reset_places,
    types_of_loop,
)
from basedsl.metastage.ranges import Range
from basedsl.metastage.state import State
from basedsl.numeric import (
    Boolean,
    Int64,
    Numeric,
    as_numeric,
    is_dynamic,
    logical_not,
    promote,
)
from basedsl.tracing import Trace, current_trace


def stage_for(
    trace: Trace,
    bounds: Range,
    body: Callable[[Any], Any],
    names: Iterable[str],
    undef_ok: Iterable[str],
    exits: tuple[str, ...],
) -> None:
    """Emit a `for` over a range."""
    count = len(bounds.as_builtin()) if bounds.is_static else None
    if count == 0:
        return
    with types_of_loop(trace, body) as types:
        bodies = (*bounds.functions, body)
        loop = Loop(trace, types, bodies, names, undef_ok, exits, runs=bool(count))
        item = bounds.item
        run = body if item is None else lambda i: body(item(i))
        _count(trace, loop, bounds, run, count)


def _count(
    trace: Trace, loop: Loop, bounds: Range, body: Callable[[Any], Any], count: int | None
) -> None:
    start, stop, step = bounds.start, bounds.stop, bounds.step
    kind = _index_type(bounds, trace)
    plain_step = not is_dynamic(step) and int(step) == 1
    safe_step = plain_step or (count is not None and int(step) > 0)

    def emit() -> Any:
        unsigned = not kind.signed
        if safe_step and loop.types.counted:
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
        if loop.types.counted:
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
                    go = go & logical_not(as_numeric(flag))
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
            with loop.conditional_path:
                body(_fresh(item))
            if loop.types.counted and loop.exit_flag() is not False:
                loop.types.counted = False
                raise Retrace
            return loop.leave()

    loop.stage(emit)


def _fresh(item: Any) -> Any:
    """Return the loop index as a value of the body's region."""
    return type(item).from_value(item.value) if isinstance(item, Numeric) else item


def run_while(
    trace: Trace,
    test: Callable[[], Any],
    truth: Callable[[Any], Any],
    both: Callable[[Any, Callable[[], Any]], Any],
    body: Callable[[], Any],
    names: Iterable[str],
    undef_ok: Iterable[str],
    exits: tuple[str, ...],
) -> None:
    """Run a `while`: iterations that Python can decide are unrolled, the rest is one staged loop.

    `truth` makes a condition a Boolean, `both` is a short-circuit `and`. An iteration whose test or
    exit turns out to be dynamic is undone. The number of unrolled iterations is remembered, so that
    nested loops do not repeat the attempt whenever the outer one is traced again. A loop that emits
    operations and does not end is a DSLError.
    """
    with types_of_loop(trace, body) as types:
        done, before = 0, _emitted(trace)
        while types.staged_after != done:
            outcome = _try_iteration(trace, test, body, names, exits)
            if outcome is _ENDED:
                return
            if outcome is _DYNAMIC:
                types.staged_after = done
                break
            done += 1
            if done == _MOST_UNROLLED and _emitted(trace) != before:
                raise DSLError(
                    f"this `while` has gone round {done:,} times while compiling",
                    user_span(),
                    notes=(("Python alone knows its condition, so it is unrolled", None),),
                    hint="let the condition depend on a value of run time, or write "
                    "`for i in range(n)`, which is one loop of the compiled code",
                )
        _stage_while(trace, types, test, truth, both, body, names, undef_ok, exits)


_MOST_UNROLLED = 10_000


def _emitted(trace: Trace) -> tuple[Any, int]:
    block = trace.ir.InsertionPoint.current.block
    return block, len(block.operations)


_ENDED, _GOES_ON, _DYNAMIC = "ended", "goes on", "dynamic"


def _try_iteration(
    trace: Trace,
    test: Callable[[], Any],
    body: Callable[[], Any],
    names: Iterable[str],
    exits: tuple[str, ...],
) -> str:
    """Run one iteration; undo it if only the run time knows whether it happens."""
    state = State((test, body), names)
    before = state.capture()
    state.watch(before)
    count = place_count(trace)
    undo = trace.checkpoint()
    with trace.held_prints() as prints:
        go = asked(test())
        if not is_dynamic(go):
            if not go:
                return _ENDED
            body()
            flag = exit_flag(state, exits)
            if not is_dynamic(flag):
                return _ENDED if flag else _GOES_ON
        prints.clear()
    state.check_outside(before)
    undo()
    state.restore(before)
    reset_places(trace, count)
    return _DYNAMIC


def _stage_while(
    trace: Trace,
    types: LoopTypes,
    test: Callable[[], Any],
    truth: Callable[[Any], Any],
    both: Callable[[Any, Callable[[], Any]], Any],
    body: Callable[[], Any],
    names: Iterable[str],
    undef_ok: Iterable[str],
    exits: tuple[str, ...],
) -> None:
    loop = Loop(trace, types, (test, body), names, undef_ok, exits, runs=False)

    def emit_test(values: Any) -> Any:
        with trace.inside("loop condition", loop.span):
            loop.enter(values)
            flag = loop.exit_flag()
            if flag is False:
                go = truth(test())
            elif flag is True:
                go = False
            else:
                go = both(logical_not(flag), lambda: truth(test()))
            return Boolean(go).ir_value(), loop.leave(is_end=False)

    def emit_body(values: Any) -> Any:
        with trace.inside("loop body", loop.span):
            loop.enter(values)
            with loop.conditional_path:
                body()
            return loop.leave()

    loop.stage(lambda: trace.emitter.while_(loop.initial(), emit_test, emit_body, trace.loc()))


# Counting -------------------------------------------------------------------------------------


def _index_type(bounds: Range, trace: Trace) -> Any:
    """Return the type of the loop variable: the bounds' common type, the default int for Python
    ints.
    """
    kind = trace.default_int
    for bound in (bounds.start, bounds.stop, bounds.step):
        if is_dynamic(bound) or isinstance(bound, Numeric):
            strong = not bound.weak
            kind = type(bound) if kind is trace.default_int and strong else promote(kind, bound)
        elif not -(1 << kind.width - 1) <= int(bound) < 1 << kind.width - 1:
            kind = Int64
    return kind


def length_of(bounds: Range) -> Any:
    """Return the number of items of a range: an int, or a number of the loop variable's type."""
    if bounds.is_static:
        return len(bounds.as_builtin())
    kind = _index_type(bounds, current_trace("the length of a range"))
    start, stop, step = (kind(bound) for bound in (bounds.start, bounds.stop, bounds.step))
    return _trip_count(kind, start, stop, step, bounds.step)[0].to(kind)


def _trip_count(kind: Any, low: Any, high: Any, by: Any, step: Any) -> tuple[Any, Any]:
    """Return the number of iterations, unsigned, exact also where `high + step` overflows, and its
    type.
    """
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
    trace = current_trace("a staged loop")
    trace.emitter.assert_(
        (by != kind(0)).ir_value(), "ValueError: range() arg 3 must not be zero", trace.loc()
    )
    if not kind.signed:
        return upward(), counter
    positive = by > kind(0)
    return _pick(positive, upward(), downward()), counter


def _pick(condition: Any, a: Any, b: Any) -> Any:
    trace = current_trace("a staged loop")
    yes, no = a.ir_value(), b.ir_value()
    return type(a).from_value(
        trace.emit_op("arith.select", yes.type, condition.ir_value(), yes, no)
    )
