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
from basedsl_cute.sim.translate.grouping import Bundle
from basedsl_cute.sim.translate.records import Op, Value
from basedsl_cute.sim.translate.uniformity import UniformityAnalysis

Emit = Callable[[PythonEmitter, Op], None]
EmitMany = Callable[[PythonEmitter, list[Op], dict[Value, Value]], None]
EmitBundle = Callable[[PythonEmitter, Bundle], str | None]

Sync = Literal["none", "block", "warp"]
"""none: waits for nobody. block: for the whole block, so lanes in lock step wait by arriving.
warp: some warps may go on while others wait, so each warp must be a coroutine of its own."""

Uniform = Callable[[UniformityAnalysis, Op], bool]
SyncOf = Sync | Callable[[Op], Sync]


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


@dataclass(frozen=True, slots=True)
class SimRule(Rule[Emit]):
    """A rule of the simulator for one op. `volatile` says that other threads may change what the op
    returns, so that a loop on it may spin. `many` writes several independent ops at once, given
    values that are the same as another one. `bundle` gives the expression that does all that a
    bundle of them does, or is false where the ops must be run one by one; None if there is none.
    """

    uniform: Uniform = from_operands
    sync: SyncOf = "none"
    volatile: bool | Callable[[Op], bool] = False
    many: EmitMany | None = None
    bundle: EmitBundle | None = None

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


def sim_rules(name: str, extends: SimRules | None = None) -> SimRules:
    """A new table of rules; operations that it lacks have the rules of the table it `extends`. Its
    `register` takes names of operations, and the fields of `SimRule`.
    """
    return RuleTable(name, SimRule, _missing, extends)


COMMON: SimRules = sim_rules("the simulator")
NVIDIA_RULES: SimRules = sim_rules("the simulator of NVIDIA GPUs", COMMON)


def rule(
    *names: str,
    uniform: Uniform = from_operands,
    sync: SyncOf = "none",
    volatile: bool | Callable[[Op], bool] = False,
) -> Callable[[Emit], Emit]:
    """Register the decorated function as the rule of each op in `names`, on every machine."""
    return COMMON.register(*names, uniform=uniform, sync=sync, volatile=volatile)


def nvidia_rule(
    *names: str,
    uniform: Uniform = from_operands,
    sync: SyncOf = "none",
    volatile: bool | Callable[[Op], bool] = False,
    many: EmitMany | None = None,
    bundle: EmitBundle | None = None,
) -> Callable[[Emit], Emit]:
    """Register the decorated function as the rule of each op in `names`, on NVIDIA GPUs."""
    return NVIDIA_RULES.register(
        *names, uniform=uniform, sync=sync, volatile=volatile, many=many, bundle=bundle
    )
