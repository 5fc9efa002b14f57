"""Which architectures have the instruction behind each op of the nvvm dialect that kernels use.

Rows are of what not every target has, as "Target ISA Notes" of each instruction in the PTX ISA say.
LLVM would give up on the others, with the name of an intrinsic and no line. Matrix and copy
atoms have rows of their own (`MMA_ATOMS`, `COPY_ATOMS`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from basedsl.errors import DSLTypeError
from basedsl.objectstage import span_of_location
from basedsl_cute.hardware.targets import Target


@dataclass(frozen=True)
class Needs:
    """What an op needs of a target: a compute capability, and whether only the architecture's own
    or family's code ("sm_90a", "sm_100f") has it. `instruction` is PTX's name; `section` that of
    the PTX ISA. `where` are attributes (as MLIR prints them, in part) that the row is about.
    """

    since: tuple[int, int]
    instruction: str
    specific: bool = False
    where: tuple[tuple[str, str], ...] = ()

    def met_by(self, target: Target) -> bool:
        own = not self.specific or not target.name[-1].isdigit()
        return not target.is_gpu or (target.capability >= self.since and own)

    def concerns(self, op: Any) -> bool:
        attributes = op.attributes
        return all(
            name in attributes and text in str(attributes[name]) for name, text in self.where
        )


_AMPERE, _HOPPER, _BLACKWELL = (8, 0), (9, 0), (10, 0)
_CLUSTER = (("scope", "cluster"),)

# Of several rows of an op the first that is not met is told.
NEEDS: dict[str, tuple[Needs, ...]] = {
    "nvvm.cp.async.shared.global": (Needs(_AMPERE, "cp.async"),),
    "nvvm.cp.async.commit.group": (Needs(_AMPERE, "cp.async.commit_group"),),
    "nvvm.cp.async.wait.group": (Needs(_AMPERE, "cp.async.wait_group"),),
    "nvvm.cp.async.mbarrier.arrive": (Needs(_AMPERE, "cp.async.mbarrier.arrive"),),
    "nvvm.cp.async.bulk.commit.group": (Needs(_HOPPER, "cp.async.bulk.commit_group"),),
    "nvvm.cp.async.bulk.wait_group": (Needs(_HOPPER, "cp.async.bulk.wait_group"),),
    "nvvm.cp.async.bulk.shared.cluster.global": (Needs(_HOPPER, "cp.async.bulk"),),
    "nvvm.cp.async.bulk.global.shared.cta": (Needs(_HOPPER, "cp.async.bulk"),),
    "nvvm.cp.async.bulk.tensor.shared.cluster.global": (Needs(_HOPPER, "cp.async.bulk.tensor"),),
    "nvvm.cp.async.bulk.tensor.global.shared.cta": (Needs(_HOPPER, "cp.async.bulk.tensor"),),
    "nvvm.cp.async.bulk.tensor.reduce": (Needs(_HOPPER, "cp.reduce.async.bulk.tensor"),),
    "nvvm.mbarrier.init": (Needs(_AMPERE, "mbarrier.init"),),
    "nvvm.mbarrier.arrive": (
        Needs(_HOPPER, "mbarrier.arrive.shared::cluster", where=_CLUSTER),
        Needs(_AMPERE, "mbarrier.arrive"),
    ),
    "nvvm.mbarrier.expect_tx": (Needs(_HOPPER, "mbarrier.expect_tx"),),
    "nvvm.mbarrier.arrive.expect_tx": (Needs(_HOPPER, "mbarrier.arrive.expect_tx"),),
    "nvvm.mbarrier.try_wait": (Needs(_AMPERE, "mbarrier.test_wait"),),
    "nvvm.mbarrier.try_wait.parity": (Needs(_AMPERE, "mbarrier.test_wait"),),
    "nvvm.fence.proxy": (Needs(_HOPPER, "fence.proxy.async", where=(("kind", "async"),)),),
    "nvvm.memory.barrier": (Needs(_HOPPER, "fence.acq_rel.cluster", where=_CLUSTER),),
    "nvvm.cluster.arrive": (Needs(_HOPPER, "barrier.cluster.arrive"),),
    "nvvm.cluster.arrive.relaxed": (Needs(_HOPPER, "barrier.cluster.arrive"),),
    "nvvm.cluster.wait": (Needs(_HOPPER, "barrier.cluster.wait"),),
    "nvvm.mapa": (Needs(_HOPPER, "mapa"),),
    "nvvm.griddepcontrol": (Needs(_HOPPER, "griddepcontrol"),),
    "nvvm.setmaxregister": (Needs(_HOPPER, "setmaxnreg", specific=True),),
    "nvvm.prefetch": (Needs(_HOPPER, "prefetch.tensormap", where=(("tensormap", "unit"),)),),
    "nvvm.redux.sync": (
        Needs(_BLACKWELL, "redux.sync.f32", specific=True, where=(("kind", "fm"),)),
        Needs(_AMPERE, "redux.sync"),
    ),
}

_SPECIAL = "nvvm.read.ptx.sreg."
_OF_CLUSTERS = ("cluster", "nclusterid")


def needs_of(name: str) -> tuple[Needs, ...]:
    """The rows of an op; none if every target has it."""
    register = name.removeprefix(_SPECIAL)
    if register != name and register.startswith(_OF_CLUSTERS):
        return (Needs(_HOPPER, f"the register %{register.replace('.', '_')}"),)
    return NEEDS.get(name, ())


def check(name: str, op: Any, target: Target) -> None:
    """DSLTypeError at the Python line of `op` if `target` has no instruction for it."""
    for needs in needs_of(name):
        if not needs.met_by(target) and needs.concerns(op):
            raise DSLTypeError(
                f"{target.name} has no {needs.instruction}: {_wanted(needs)}",
                span_of_location(op.location),
                hint="compile for such a target (CUTE_DSL_ARCH), or decide by "
                "const_expr on the architecture what the kernel does",
            )


def _wanted(needs: Needs) -> str:
    major, minor = needs.since
    if needs.specific:
        return f"it is for sm_{major}{minor}a, and for later targets whose name ends in 'a' or 'f'"
    return f"sm_{major}{minor} is the first that has"
