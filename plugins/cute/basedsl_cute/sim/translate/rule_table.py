"""The simulator's rule table: one row per operation name.

A rule writes Python for one op through the `PythonEmitter`. `uniform` says when the op's results
are the same in all lanes; `sync` says what the op waits for, which decides how many lanes may run
in lock step. The modules of `sim.rules` fill the table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from basedsl import Rule, RuleTable
from basedsl_cute.sim.errors import MissingRuleError
from basedsl_cute.sim.translate.emitter import PythonEmitter
from basedsl_cute.sim.translate.records import Op
from basedsl_cute.sim.translate.uniformity import UniformityAnalysis

Emit = Callable[[PythonEmitter, Op], None]

Sync = Literal["none", "block", "warp"]
"""none: waits for nobody. block: for the whole block, so lanes in lock step wait by arriving.
warp: some warps may go on while others wait, so each warp must be a coroutine of its own."""

Uniform = Callable[[UniformityAnalysis, Op], bool]
SyncOf = Sync | Callable[[Op], Sync]


@dataclass(frozen=True, slots=True)
class SimRule(Rule[Emit]):
    """A rule of the simulator for one op. `volatile` says that other threads may change what the op
    returns, so that a loop on it may spin.
    """

    uniform: Uniform
    sync: SyncOf
    volatile: bool | Callable[[Op], bool]

    def is_uniform(self, uniformity: UniformityAnalysis, op: Op) -> bool:
        """True when the results of `op` are the same in all lanes of a group."""
        return self.uniform(uniformity, op)

    def is_volatile(self, op: Op) -> bool:
        """True when other threads may change what `op` returns."""
        return self.volatile(op) if callable(self.volatile) else self.volatile

    def sync_of(self, op: Op) -> Sync:
        """The threads that `op` waits for."""
        return self.sync(op) if callable(self.sync) else self.sync


def _missing(op: Op, target: str) -> MissingRuleError:
    return MissingRuleError(op.site)


SimRules = RuleTable[Emit, SimRule]
RULES: SimRules = RuleTable("the simulator", SimRule, _missing)


def from_operands(uniformity: UniformityAnalysis, op: Op) -> bool:
    """Uniform when every operand is: true of pure operations."""
    return not any(operand in uniformity.varying for operand in op.operands)


def always(uniformity: UniformityAnalysis, op: Op) -> bool:
    """Uniform whatever the operands are."""
    return True


def never(uniformity: UniformityAnalysis, op: Op) -> bool:
    """Different in each lane."""
    return False


def per_block(uniformity: UniformityAnalysis, op: Op) -> bool:
    """The same in all lanes of a block; different when one group spans blocks."""
    return not uniformity.many_blocks


def rule(
    *names: str,
    uniform: Uniform = from_operands,
    sync: SyncOf = "none",
    volatile: bool | Callable[[Op], bool] = False,
) -> Callable[[Emit], Emit]:
    """Register the decorated function as the rule of each op in `names`."""
    return RULES.register(*names, uniform=uniform, sync=sync, volatile=volatile)
