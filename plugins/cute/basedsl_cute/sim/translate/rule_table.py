"""The one table from operation name to rule, and what a rule is.

A rule's `emit` writes Python for one op through the `Emitter`. `uniform` says when its results are
the same in all lanes; `sync` says what the op waits for, which decides how wide a group may be.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

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
class Rule:
    name: str
    emit: Emit
    uniform: Uniform
    sync: SyncOf
    volatile: (
        bool | Callable[[Op], bool]
    )  # others may change what it returns: a loop on it may spin

    def is_volatile(self, op: Op) -> bool:
        return self.volatile(op) if callable(self.volatile) else self.volatile

    def sync_of(self, op: Op) -> Sync:
        return self.sync(op) if callable(self.sync) else self.sync


RULES: dict[str, Rule] = {}

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

    def register(emit: Emit) -> Emit:
        for name in names:
            if name in RULES:
                raise ValueError(f"two simulator rules for {name}: {RULES[name].emit} and {emit}")
            RULES[name] = Rule(name, emit, uniform, sync, volatile)
        return emit

    return register


def load_rules() -> dict[str, Rule]:
    """The whole table."""
    for family in _FAMILIES:
        importlib.import_module(f"basedsl_cute.sim.rules.{family}")
    return RULES


def rule_of(op: Op) -> Rule:
    """The rule of `op`; an error that names op, target and line if there is none."""
    found = RULES.get(op.name)
    if found is None:
        raise MissingRuleError(op.site)
    return found
