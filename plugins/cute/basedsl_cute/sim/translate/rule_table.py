"""The simulator's rule table: one row per operation name.

A rule writes Python for one op through the `Emitter`. `uniform` says when the op's results are the
same in all lanes; `sync` says what the op waits for, which decides how wide a group may be.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from basedsl.objectstage import Rule, RuleTable
from basedsl_cute.sim.errors import MissingRuleError
from basedsl_cute.sim.translate.records import Op

if TYPE_CHECKING:
    from basedsl_cute.sim.translate.emitter import Emitter
    from basedsl_cute.sim.translate.uniformity import Variance

Emit = Callable[["Emitter", Op], None]

Sync = Literal["none", "block", "warp"]
"""none: waits for nobody. block: the whole block, so lanes in lock step wait by arriving.
warp: some warps may go on while others wait, so each warp must be a coroutine of its own."""

Uniform = Callable[["Variance", Op], bool]
SyncOf = Sync | Callable[[Op], Sync]


@dataclass(frozen=True, slots=True)
class SimRule(Rule[Emit]):
    """How the simulator runs one op."""

    uniform: Uniform
    sync: SyncOf
    # Others may change what the op returns: a loop on it may spin.
    volatile: bool | Callable[[Op], bool]

    def is_volatile(self, op: Op) -> bool:
        return self.volatile(op) if callable(self.volatile) else self.volatile

    def sync_of(self, op: Op) -> Sync:
        return self.sync(op) if callable(self.sync) else self.sync


def _missing(op: Op, target: str) -> MissingRuleError:
    return MissingRuleError(op.site)


RULES: RuleTable[Emit, SimRule] = RuleTable("the simulator", SimRule, _missing)

_FAMILIES = (
    "arith",
    "math",
    "vector",
    "scf",
    "llvm",
    "memory",
    "atomic",
    "gpu",
    "warp",
    "matrix",
    "barrier",
    "async_copy",
    "mbarrier",
    "cluster",
    "tma",
    "wgmma",
    "nvvm",
)


def from_operands(variance: Variance, op: Op) -> bool:
    """Uniform when every operand is: what pure operations are."""
    return not any(operand in variance.varying for operand in op.operands)


def always(variance: Variance, op: Op) -> bool:
    """The same in all lanes whatever the operands."""
    return True


def never(variance: Variance, op: Op) -> bool:
    """Different in each lane."""
    return False


def per_block(variance: Variance, op: Op) -> bool:
    """The same in all lanes of a block; different when one group spans blocks."""
    return not variance.many_blocks


def rule(
    *names: str,
    uniform: Uniform = from_operands,
    sync: SyncOf = "none",
    volatile: bool | Callable[[Op], bool] = False,
) -> Callable[[Emit], Emit]:
    """Register the decorated function as the rule of each op in `names`."""
    return RULES.register(*names, uniform=uniform, sync=sync, volatile=volatile)


def load_rules() -> RuleTable[Emit, SimRule]:
    """The whole table."""
    for family in _FAMILIES:
        importlib.import_module(f"basedsl_cute.sim.rules.{family}")
    return RULES


def rule_of(op: Op) -> SimRule:
    """The rule of `op`. Raises MissingRuleError, which names op, target and line."""
    return RULES.for_op(op, "sim")
