"""Rules of structured control flow: plain Python where lanes agree, masks where they diverge.

In a diverging loop, a lane that leaves keeps the loop-carried values that it left with.
"""

from __future__ import annotations

from collections.abc import Sequence

from basedsl_cute.sim.machine import checks
from basedsl_cute.sim.machine.schedule import spin
from basedsl_cute.sim.translate.emitter import PythonEmitter
from basedsl_cute.sim.translate.records import Op, OpRegion, Value
from basedsl_cute.sim.translate.rule_table import rule
from basedsl_cute.sim.translate.types import is_aggregate


@rule("scf.yield", "scf.condition", "gpu.return", "gpu.terminator")
def _terminator(e: PythonEmitter, op: Op) -> None:
    """Nothing to write: the op around it takes its operands."""


def _assign(e: PythonEmitter, targets: Sequence[Value], sources: Sequence[Value]) -> None:
    """Bind all targets at once, each spread over lanes if it varies."""
    pairs = [(e.ref(t), e.like(s, t)) for t, s in zip(targets, sources, strict=True)]
    pairs += e.poison.assigned(targets, sources)
    pairs = [(t, s) for t, s in pairs if t != s]
    if pairs:
        names, values = zip(*pairs, strict=True)
        e.line(f"{', '.join(names)} = {', '.join(values)}")


def _is_empty(region: OpRegion) -> bool:
    return len(region.ops) <= 1


@rule("scf.if")
def _if(e: PythonEmitter, op: Op) -> None:
    then, otherwise = op.regions
    (condition,) = op.operands
    c = e.ref(condition)
    if op not in e.uniformity.diverging:
        with e.indented(f"if {c}:"):
            e.body(then)
            _assign(e, op.results, then.terminator.operands)
        if not _is_empty(otherwise) or op.results:
            with e.indented("else:"):
                e.body(otherwise)
                _assign(e, op.results, otherwise.terminator.operands)
        return
    yes, no = e.temporary("m"), e.temporary("m")
    if _is_empty(otherwise) and not op.results:
        e.line(f"{yes} = num.narrow({e.mask}, {c}, lanes)")
    else:
        e.line(f"{yes}, {no} = num.split({e.mask}, {c}, lanes)")
    with e.indented(f"if {yes} is not False:"), e.under(yes, op.site):
        e.body(then)
        _assign(e, op.results, then.terminator.operands)
    if not _is_empty(otherwise) or op.results:
        with e.indented(f"if {no} is not False:"), e.under(no, op.site):
            e.body(otherwise)
            for result, value in zip(op.results, otherwise.terminator.operands, strict=True):
                select = "num.select" if is_aggregate(result.type) else "where"
                both = f"{select}({c}, {e.ref(result)}, {e.lanes(value)})"
                e.let(result, f"{e.lanes(value)} if {yes} is False else {both}")
                if result in e.poison.may:
                    own, new = e.poison.name(result), e.poison.ref(value)
                    e.line(f"{own} = {new} if {yes} is False else poison.choose({c}, {own}, {new})")


@rule("scf.index_switch")
def _switch(e: PythonEmitter, op: Op) -> None:
    (selector,) = op.operands
    default, *cases = op.regions
    values = op.integers("cases")
    s = e.ref(selector)
    if op not in e.uniformity.diverging:
        for i, (value, region) in enumerate(zip(values, cases, strict=True)):
            with e.indented(f"{'elif' if i else 'if'} {s} == {value}:"):
                e.body(region)
                _assign(e, op.results, region.terminator.operands)
        with e.indented("else:" if cases else "if True:"):
            e.body(default)
            _assign(e, op.results, default.terminator.operands)
        return
    for result in op.results:
        e.let(result, "None")
        if result in e.poison.may:
            e.line(f"{e.poison.name(result)} = None")
    left = e.temporary("m")
    e.line(f"{left} = {e.mask}")
    for value, region in zip(values, cases, strict=True):
        here = e.temporary("m")
        e.line(f"{here}, {left} = num.split({left}, {s} == {value}, lanes)")
        _case(e, op, region, here)
        # Once nobody is left the remaining cases do not run.
        e.line(f"if {left} is False: {left} = num.nobody(lanes)")
    e.line(f"{left} = num.narrow({left}, num.everybody(lanes), lanes)")
    _case(e, op, default, left)


def _case(e: PythonEmitter, op: Op, region: OpRegion, mask: str) -> None:
    with e.indented(f"if {mask} is not False:"), e.under(mask, op.site):
        e.body(region)
        for result, value in zip(op.results, region.terminator.operands, strict=True):
            e.let(result, f"num.keep({mask}, {e.lanes(value)}, {e.ref(result)})")
            if result in e.poison.may:
                e.line(f"{e.poison.name(result)} = {e.poison.kept(result, value, mask)}")


@rule("scf.for")
def _for(e: PythonEmitter, op: Op) -> None:
    lower, upper, step, *initial = op.operands
    (body,) = op.regions
    counter, *carried = body.args
    for result, arg in zip(op.results, carried, strict=True):
        e.alias(result, e.ref(arg))
        e.poison.alias(result, arg)
    _assign(e, carried, initial)
    if op in e.uniformity.diverging:
        _diverging_for(e, op)
        return
    bounds = [e.ref(v) for v in (lower, upper, step)]
    if op.flag("unsignedCmp"):
        bounds = [f"num.unsigned({b})" for b in bounds]
    if e.constant(step) is None or e.constant(step) <= 0:
        e.globals["checks"] = checks
        e.line(f"if {bounds[2]} <= 0: checks.bad_step({bounds[2]}, {e.at()})")
    number = e.temporary("turn")
    with e.indented(f"for {number} in range({', '.join(bounds)}):"):
        dtype = e.dtype(counter.type)
        e.let(
            counter,
            f"num.wrapped({number}, {dtype})" if op.flag("unsignedCmp") else f"{dtype}({number})",
        )
        e.body(body)
        _assign(e, carried, body.terminator.operands)


def _diverging_for(e: PythonEmitter, op: Op) -> None:
    lower, upper, step = op.operands[:3]
    (body,) = op.regions
    counter, *carried = body.args
    bounds = [e.ref(v) for v in (lower, upper, step)]
    if op.flag("unsignedCmp"):
        bounds = [f"num.unsigned({b}).astype(i64)" for b in bounds]
    if e.constant(step) is None or not (e.constant(step) > 0).all():
        e.globals["checks"] = checks
        e.line(f"if num.some({bounds[2]} <= 0, {e.mask}): checks.bad_step({bounds[2]}, {e.at()})")
    trips, turn, mask = e.temporary("n"), e.temporary("k"), e.temporary("m")
    e.line(f"{trips} = num.spread_any(num.trips({', '.join(bounds)}), lanes)")
    e.line(f"{turn} = 0")
    e.let(counter, e.lanes(lower))
    e.line(f"{mask} = num.narrow({e.mask}, {trips} > 0, lanes)")
    with e.indented(f"while {mask} is not False:"), e.under(mask, op.site):
        e.body(body)
        _keep(e, carried, body.terminator.operands, mask)
        e.line(f"{turn} += 1")
        e.let(counter, f"{e.ref(counter)} + {e.ref(step)}")
        e.line(f"{mask} = num.narrow({mask}, {trips} > {turn}, lanes)")


def _keep(e: PythonEmitter, targets: Sequence[Value], sources: Sequence[Value], mask: str) -> None:
    """Bind targets in the lanes of `mask`; the other lanes keep their values."""
    if not targets:
        return
    news = [
        f"num.keep({mask}, {e.lanes(s)}, {e.ref(t)})" for t, s in zip(targets, sources, strict=True)
    ]
    names = [e.ref(t) for t in targets]
    for target, source in zip(targets, sources, strict=True):
        if target in e.poison.may:
            names.append(e.poison.name(target))
            news.append(e.poison.kept(target, source, mask))
    e.line(f"{', '.join(names)} = {', '.join(news)}")


def _may_spin(e: PythonEmitter, op: Op) -> bool:
    """True when an op in the loop reads what other threads may change."""
    return any(e.rules.for_op(inner, "sim").is_volatile(inner) for inner in op.walk())


# Ops that neither write nor wait, and give the same again.
_STEADY = ("arith.", "math.", "scf.", "vector.", "llvm.load", "llvm.getelementptr", "llvm.mlir.")


def _changes_nothing(e: PythonEmitter, op: Op) -> bool:
    """True for a loop that carries and changes nothing: once it goes round, it does so for ever."""
    before, after = op.regions
    if before.args or after.args or _may_spin(e, op):
        return False
    return all(
        inner.name.startswith(_STEADY)
        for region in op.regions
        for one in region.ops
        for inner in one.walk()
    )


@rule("scf.while")
def _while(e: PythonEmitter, op: Op) -> None:
    before, after = op.regions
    condition, *passed = before.terminator.operands
    spins = e.coroutine and _may_spin(e, op)
    endless = _changes_nothing(e, op)
    for result, arg in zip(op.results, after.args, strict=True):
        e.alias(result, e.ref(arg))
        e.poison.alias(result, arg)
    _assign(e, before.args, op.operands)
    diverging = op in e.uniformity.diverging
    mask = e.mask
    if diverging:
        mask = e.temporary("m")
        e.line(f"{mask} = {e.mask}")
        for arg in after.args:
            e.let(arg, "None")
            if arg in e.poison.may:
                e.line(f"{e.poison.name(arg)} = None")
    turns = e.temporary("turn")
    e.line(f"{turns} = 0")
    with e.indented("while True:"), e.under(mask, op.site if diverging else None):
        e.body(before)
        e.site = op.site
        e.poison.use([condition], "decides this loop")
        if diverging:
            _keep(e, after.args, passed, mask)
            e.line(f"{mask} = num.narrow({mask}, {e.ref(condition)}, lanes)")
            e.line(f"if {mask} is False: break")
        else:
            _assign(e, after.args, passed)
            e.line(f"if not {e.ref(condition)}: break")
        e.globals["checks"] = checks
        e.line(f"{turns} += 1")
        e.line(f"if {turns} > g.max_steps: checks.endless_loop(g, {mask}, {e.at()})")
        if endless:
            e.line(f"checks.infinite_loop(g, {mask if diverging else None}, {e.at()})")
        if spins:
            e.globals["spin"] = spin
            e.line(f"yield spin({e.at()})")
        e.body(after)
        _assign(e, before.args, after.terminator.operands)
