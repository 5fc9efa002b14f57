"""Hooks that cute specifies: other plugins add architectures, matrix instructions, simulator rules.

    from basedsl import hookimpl
    from basedsl_cute.hardware.targets import Target

    @hookimpl
    def basedsl_cute_architectures():
        return [Target("sm_110a", ...)]

They are asked when a program names what cute does not know.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from basedsl import hookspec


@hookspec
def basedsl_cute_architectures() -> Iterable[Any]:
    """Return architectures that kernels are compiled for besides cute's own, each a
    `hardware.targets.Target`. LLVM and ptxas must know their names.
    """
    return ()


@hookspec
def basedsl_cute_mma_atoms() -> Iterable[Any]:
    """Return matrix instructions that `cute.gemm` operations may name besides cute's own, each a
    `dialect.atoms.MmaAtomRow` with its lowering, `lower`. Programs use them by an `MmaOp`, a
    subclass of the plugin's whose `issue` emits the operation.
    """
    return ()


@hookspec
def basedsl_cute_simulator_rules() -> Any:
    """Return the simulator's rules of operations that it has none of: a table that
    `sim.rules.sim_rules` made, without `extends`.
    """
    return None
