"""Replacements of sm_90's instructions for mbarriers and elections, on sm_80 to sm_89.

Each means the same within a block, and there are no clusters before sm_90:

- `mbarrier.try_wait`, which may sleep, is `mbarrier.test_wait` (PTX ISA 9.7.13.15.16), which asks,
- `elect.sync` is lane 0, which is a legal choice of the whole warp that it is asked of,
- `fence.mbarrier_init` is nothing: the barrier of the block behind it orders shared memory.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from basedsl import Erase, Replace, RuleResult
from basedsl_cute.lowering.kernel.builder import Builder


def wait(b: Builder, op: Any) -> RuleResult:
    """Test the phase until it is complete."""
    ask = "ask: mbarrier.test_wait.parity.shared.b64 done, [$0], $1;"
    text = f"{{\n.reg .pred done;\n{ask}\n@!done bra ask;\n}}"
    operands = [_address(b, op), op.operands[1]]
    b.assembly(text, "r,r,~{memory}", [], operands, has_side_effects=True)
    return Erase()


def try_wait(b: Builder, op: Any) -> RuleResult:
    """Test once if the phase is complete."""
    ask = "mbarrier.test_wait.parity.shared.b64 done, [$1], $2;"
    text = f"{{\n.reg .pred done;\n{ask}\nselp.b32 $0, 1, 0, done;\n}}"
    operands = [_address(b, op), op.operands[1]]
    done = b.assembly(text, "=r,r,r,~{memory}", [b.i32], operands, has_side_effects=True)
    return Replace(b.emit("arith.trunci", [b.ir.IntegerType.get_signless(1)], [done]))


def elect(b: Builder, op: Any) -> RuleResult:
    """Elect lane 0."""
    lane = b.emit("nvvm.read.ptx.sreg.laneid", [b.i32], [])
    equal = {"predicate": b.ir.IntegerAttr.get(b.i64, 0)}
    return Replace(b.emit("arith.cmpi", [op.results[0].type], [lane, b.constant(0)], equal))


def nothing(b: Builder, op: Any) -> RuleResult:
    """Erase the op."""
    return Erase()


def _address(b: Builder, op: Any) -> Any:
    return b.emit("llvm.ptrtoint", [b.i32], [op.operands[0]])


# The rule of each op, where the target is before sm_90.
STAND_INS: dict[str, Callable[[Builder, Any], RuleResult]] = {
    "nvvm.mbarrier.try_wait.parity": wait,
    "nvvm.mbarrier.try_wait": try_wait,
    "nvvm.elect.sync": elect,
    "nvvm.fence.mbarrier.init": nothing,
}
