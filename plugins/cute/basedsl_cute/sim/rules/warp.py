"""Rules of warp-wide operations: shuffles, votes, matches, reductions, election."""

from __future__ import annotations

from basedsl_cute.sim.errors import MissingRuleError
from basedsl_cute.sim.machine import warp
from basedsl_cute.sim.translate.emitter import PythonEmitter
from basedsl_cute.sim.translate.records import Op, Value
from basedsl_cute.sim.translate.rule_table import never, nvidia_rule, rule
from basedsl_cute.sim.translate.types import FloatType, IntType, LLVMStructType, element_type


def _lanes(e: PythonEmitter, op: Op) -> list[str]:
    e.globals["warp"] = warp
    return [e.lanes(operand) for operand in op.operands]


@nvidia_rule("nvvm.shfl.sync", uniform=never)
def _shfl(e: PythonEmitter, op: Op) -> None:
    members, _, b, c = e.refs(op)
    value = _lanes(e, op)[1]
    call = f"warp.shuffle(g, {op.word('kind')!r}, {members}, {value}, {b}, {c}, {e.mask}, {e.at()})"
    pair = (
        isinstance(op.results[0].type, LLVMStructType)
        and "return_value_and_is_valid" in op.attributes
    )
    e.let(op.results[0], call if pair else f"{call}[0]")


@rule("gpu.shuffle", uniform=never)
def _gpu_shuffle(e: PythonEmitter, op: Op) -> None:
    """Shuffle as MLIR's conversions do: the clamp is width-1, or lanes-width for `up`."""
    value, offset, width = op.operands
    mode, lanes = op.word("mode"), e.machine.lanes
    e.globals["warp"] = warp
    w, bits = e.ref(width), 32 if lanes <= 32 else 64
    members = f"num.signed(num.unsigned(i{bits}(-1)) >> num.unsigned(i{bits}({bits}) - {w}))"
    clamp = f"i32({lanes}) - {w}" if mode == "up" else f"{w} - i32(1)"
    got, valid = op.results
    e.line(
        f"{e.ref(got)}, {e.ref(valid)} = warp.shuffle(g, {mode!r}, {members}, {e.lanes(value)}, "
        f"{e.ref(offset)}, {clamp}, {e.mask}, {e.at()})"
    )


@nvidia_rule("nvvm.vote.sync", uniform=never)
def _vote(e: PythonEmitter, op: Op) -> None:
    members, predicate = op.operands
    e.globals["warp"] = warp
    e.let(
        op.results[0],
        f"warp.vote(g, {op.word('kind')!r}, {e.ref(members)}, {e.lanes(predicate)}, {e.mask}, "
        f"{e.at()})",
    )


@rule("gpu.ballot", uniform=never)
def _gpu_ballot(e: PythonEmitter, op: Op) -> None:
    (result,) = op.results
    e.globals["warp"] = warp
    bits = f"warp.ballot(g, {_and_mask(e, op.operands[0])})"
    dtype = e.dtype(result.type)
    if e.machine.lanes > 32 and dtype != "i64":
        raise MissingRuleError(op.site, f"to {result.type}: the warps have {e.machine.lanes} lanes")
    own = "i64" if e.machine.lanes > 32 else "i32"
    e.let(result, f"num.signed({bits})" if dtype == own else f"{bits}.astype({dtype})")


def _and_mask(e: PythonEmitter, value: Value) -> str:
    lanes = e.lanes(value)
    return lanes if e.mask == "None" else f"({lanes} if {e.mask} is None else {lanes} & {e.mask})"


@nvidia_rule("nvvm.match.sync", uniform=never)
def _match(e: PythonEmitter, op: Op) -> None:
    members, value = op.operands
    e.globals["warp"] = warp
    kind = op.word("kind")
    call = f"warp.match(g, {kind!r}, {e.ref(members)}, {e.lanes(value)}, {e.mask}, {e.at()})"
    e.let(op.results[0], call if isinstance(op.results[0].type, LLVMStructType) else f"{call}[0]")


@nvidia_rule("nvvm.redux.sync", uniform=never)
def _redux(e: PythonEmitter, op: Op) -> None:
    value, members = op.operands
    type_ = element_type(value.type)
    if isinstance(type_, IntType) and type_.width != 32:
        raise MissingRuleError(op.site, f"on {type_}")
    e.globals["warp"] = warp
    e.let(
        op.results[0],
        f"warp.redux(g, {op.word('kind')!r}, {e.lanes(value)}, {e.ref(members)}, {e.mask}, "
        f"{op.flag('abs')}, {op.flag('nan')}, {e.at()})",
    )


_SUBGROUP = {
    "add": "add",
    "and": "and",
    "or": "or",
    "xor": "xor",
    "minsi": "min",
    "maxsi": "max",
    "minui": "umin",
    "maxui": "umax",
    "minnumf": "fmin",
    "maxnumf": "fmax",
}


@rule("gpu.subgroup_reduce", uniform=never)
def _subgroup_reduce(e: PythonEmitter, op: Op) -> None:
    kind = _SUBGROUP.get(op.word("op"))
    type_ = element_type(op.operands[0].type)
    if kind is None or "cluster_size" in op.attributes or isinstance(type_, FloatType):
        raise MissingRuleError(op.site, f"of kind {op.word('op')} on {type_}")
    e.globals["warp"] = warp
    value = e.lanes(op.operands[0])
    e.let(
        op.results[0],
        f"warp.redux(g, {kind!r}, {value}, i32(-1), {e.mask}, False, False, {e.at()})",
    )


@nvidia_rule("nvvm.elect.sync", uniform=never)
def _elect(e: PythonEmitter, op: Op) -> None:
    e.globals["warp"] = warp
    members = e.ref(op.operands[0]) if op.operands else "i32(-1)"
    e.let(op.results[0], f"warp.elect(g, {members}, {e.mask}, {e.at()})")


@nvidia_rule("nvvm.bar.warp.sync")
def _bar_warp(e: PythonEmitter, op: Op) -> None:
    """Check the member mask: lanes of a warp run in step, so there is nothing to wait for."""
    e.globals["warp"] = warp
    e.line(f"warp.sync_warp(g, {e.ref(op.operands[0])}, {e.mask}, {e.at()})")
