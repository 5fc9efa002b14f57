"""Rules of mbarrier operations. One warp waits while others go on, so groups are warps."""

from __future__ import annotations

from basedsl_cute.sim.machine import mbarriers
from basedsl_cute.sim.translate.emitter import PythonEmitter
from basedsl_cute.sim.translate.records import Op, Value
from basedsl_cute.sim.translate.rule_table import never, nvidia_rule
from basedsl_cute.sim.translate.types import IntType, element_type

_SHARED = ("", ".shared")


def _names(*names: str) -> list[str]:
    return [f"nvvm.mbarrier.{name}{suffix}" for name in names for suffix in _SHARED]


def _lanes(e: PythonEmitter, values: list[Value]) -> list[str]:
    e.globals["mbarriers"] = mbarriers
    return [e.lanes(value) for value in values]


def _predicated(e: PythonEmitter, op: Op, extra: int) -> str:
    """The mask, narrowed by the predicate operand after `extra` others if the op has one."""
    if len(op.operands) <= extra:
        return e.mask
    mask = e.temporary("m")
    e.line(f"{mask} = num.narrow({e.mask}, {e.lanes(op.operands[extra])}, lanes)")
    e.line(f"if {mask} is False: {mask} = num.nobody(lanes)")
    return mask


@nvidia_rule(*_names("init"), sync="warp")
def _init(e: PythonEmitter, op: Op) -> None:
    address, count = _lanes(e, op.operands[:2])
    e.line(f"mbarriers.init_mbarrier(g, {address}, {count}, {_predicated(e, op, 2)}, {e.at()})")


@nvidia_rule(*_names("inval"), sync="warp")
def _inval(e: PythonEmitter, op: Op) -> None:
    (address,) = _lanes(e, op.operands)
    e.line(f"mbarriers.invalidate_mbarrier(g, {address}, {e.mask}, {e.at()})")


_ONES = "num.spread(i32(1), lanes)"
_NONE = "num.spread(i32(0), lanes)"


@nvidia_rule(
    *_names("arrive", "arrive.nocomplete", "arrive_drop", "arrive_drop.nocomplete"),
    uniform=never,
    sync="warp",
)
def _arrive(e: PythonEmitter, op: Op) -> None:
    address, *count = _lanes(e, op.operands)
    call = (
        f"mbarriers.arrive_at_mbarrier(g, {address}, {count[0] if count else _ONES}, {_NONE}, "
        f"{e.mask}, {e.at()}, {'arrive_drop' in op.name}, {_is_of_block(op)})"
    )
    if op.results:
        e.let(op.results[0], call)
    else:
        e.line(call)


def _is_of_block(op: Op) -> bool:
    """True for an arrival that releases to the threads of its own block alone."""
    return "scope" not in op.attributes or op.word("scope") == "cta"


@nvidia_rule(*_names("arrive.expect_tx", "arrive_drop.expect_tx"), uniform=never, sync="warp")
def _arrive_expect(e: PythonEmitter, op: Op) -> None:
    address, nbytes = _lanes(e, op.operands[:2])
    mask = _predicated(e, op, 2)
    call = (
        f"mbarriers.arrive_at_mbarrier(g, {address}, {_ONES}, {nbytes}, {mask}, {e.at()}, "
        f"{'arrive_drop' in op.name})"
    )
    if op.results:
        e.let(op.results[0], call)
    else:
        e.line(call)


@nvidia_rule(*_names("expect_tx"), sync="warp")
def _expect(e: PythonEmitter, op: Op) -> None:
    address, nbytes = _lanes(e, op.operands)
    e.line(f"mbarriers.count_transactions(g, {address}, {nbytes}, {e.mask}, {e.at()}, 1)")


@nvidia_rule(*_names("complete_tx"), sync="warp")
def _complete(e: PythonEmitter, op: Op) -> None:
    address, nbytes = _lanes(e, op.operands)
    e.line(f"mbarriers.count_transactions(g, {address}, {nbytes}, {e.mask}, {e.at()}, -1)")


def _is_parity(op: Op) -> bool:
    """A 32-bit second operand is a phase parity, a 64-bit one the token of an arrival."""
    type_ = element_type(op.operands[1].type)
    return isinstance(type_, IntType) and type_.width == 32


@nvidia_rule(*_names("test.wait", "try_wait"), uniform=never, sync="warp", volatile=True)
def _test(e: PythonEmitter, op: Op) -> None:
    """Hardware may block in `try_wait`; the simulator never does, so that a kernel that ignores a
    false result fails here.
    """
    address, which = _lanes(e, op.operands[:2])
    e.let(
        op.results[0],
        f"mbarriers.test_mbarrier(g, {address}, {which}, {_is_parity(op)}, {e.mask}, {e.at()})",
    )


@nvidia_rule(*_names("try_wait.parity"), sync="warp")
def _wait_parity(e: PythonEmitter, op: Op) -> None:
    """MLIR lowers this to a loop that ends when the phase is complete."""
    address, which = _lanes(e, op.operands[:2])
    e.wait(f"mbarriers.wait_for_mbarrier(g, {address}, {which}, True, {e.mask}, {e.at()})")
    e.line(f"mbarriers.test_mbarrier(g, {address}, {which}, True, {e.mask}, {e.at()})")
