"""Which architectures have which feature, and the one error about a target that lacks it.

Rows are of what not every target has, as "Target ISA Notes" of each instruction in the PTX ISA say.
`INSTRUCTIONS` has those of the nvvm dialect's ops that kernels use, `COPIES` and `MMA_SYNC` those
of copy and matrix atoms. Without the error LLVM would give up with the name of an intrinsic and no
line, or ptxas with a line of PTX.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from basedsl import DSLTypeError, Span
from basedsl_cute.hardware.targets import ENVIRONMENT_VARIABLE, TARGETS, Target


@dataclass(frozen=True)
class Requirement:
    """A feature, in PTX's name for it, and the architectures that have it, each as PTX ISA 11.1.2
    says it: "sm_90" with all later ones, "sm_100f" with its family's, "sm_90a" alone
    (`Target.has_features_of`).

    `where` are attributes of an op (as MLIR prints them, in part) that have the feature needed.
    """

    feature: str
    architectures: tuple[str, ...]
    where: tuple[tuple[str, str], ...] = ()

    def is_met_by(self, target: Target) -> bool:
        """Tell whether code for `target` may use the feature; the simulator has every feature."""
        return any(map(target.has_features_of, self.architectures))

    def concerns(self, op: Any) -> bool:
        """Tell whether an op with these attributes needs the feature."""
        attributes = op.attributes
        return all(
            name in attributes and text in str(attributes[name]) for name, text in self.where
        )

    def error(self, target: Target, span: Span | None) -> DSLTypeError:
        """Return the error about `target`, which lacks the feature that the line at `span` uses."""
        first = next(t.name for t in TARGETS.values() if t.is_gpu and self.is_met_by(t))
        return DSLTypeError(
            f"{target.name} has no {self.feature}: {self._owners()}",
            span,
            hint=f"compile for a target that has it ({ENVIRONMENT_VARIABLE}={first}), or decide by "
            "const_expr on the architecture what the kernel does",
        )

    def _owners(self) -> str:
        exact = [name for name in self.architectures if name.endswith("a")]
        families = [name for name in self.architectures if name.endswith("f")]
        if len(exact) + len(families) < len(self.architectures):
            return f"{_listed(self.architectures)} and later have it"
        of = f"the {'family' if len(families) == 1 else 'families'} {_listed(families)}"
        owners = " and ".join(([_listed(exact)] if exact else []) + ([of] if families else []))
        return f"only {owners} {'has' if len(self.architectures) == 1 else 'have'} it"


def _listed(names: Sequence[str]) -> str:
    """Return names as a sentence has them: "a, b and c"."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def _since(feature: str, architecture: str, *where: tuple[str, str]) -> Requirement:
    return Requirement(feature, (architecture,), where)


# On a tcgen05.mma with scale factors: its descriptor, known in a run, says K = 96.
LONG_K_ATTRIBUTE = "cute.k96"

_AMPERE, _ADA, _HOPPER = "sm_80", "sm_89", "sm_90"
_CLUSTER = ("scope", "cluster")

CLUSTERS = _since("cluster of several blocks", _HOPPER)
PREFERRED_CLUSTERS = _since("cluster of a preferred and a fallback shape", "sm_100")
WGMMA = Requirement("wgmma", ("sm_90a",))  # PTX ISA 9.7.15
DEPENDENT_LAUNCH = _since("griddepcontrol", _HOPPER)
TRY_WAIT = _since("mbarrier.try_wait", _HOPPER)
TCGEN05 = Requirement("tcgen05", ("sm_100f", "sm_110f"))
TCGEN05_INTEGERS = Requirement("tcgen05.mma of kind i8", ("sm_100a", "sm_110a"), (("kind", "i8"),))
TCGEN05_LD_RED = Requirement("tcgen05.ld with a reduction", ("sm_103f", "sm_110f"))
LAUNCH_CONTROL = _since("clusterlaunchcontrol", "sm_100")
SETMAXNREG = Requirement("setmaxnreg", ("sm_90a", "sm_100f", "sm_110f", "sm_120f"))

# Of several rows of an op, the first that the target does not meet is reported.
INSTRUCTIONS: dict[str, tuple[Requirement, ...]] = {
    "nvvm.cp.async.shared.global": (_since("cp.async", _AMPERE),),
    "nvvm.cp.async.commit.group": (_since("cp.async.commit_group", _AMPERE),),
    "nvvm.cp.async.wait.group": (_since("cp.async.wait_group", _AMPERE),),
    "nvvm.cp.async.mbarrier.arrive": (_since("cp.async.mbarrier.arrive", _AMPERE),),
    "nvvm.cp.async.bulk.commit.group": (_since("cp.async.bulk.commit_group", _HOPPER),),
    "nvvm.cp.async.bulk.wait_group": (_since("cp.async.bulk.wait_group", _HOPPER),),
    "nvvm.cp.async.bulk.shared.cluster.global": (_since("cp.async.bulk", _HOPPER),),
    "nvvm.cp.async.bulk.global.shared.cta": (_since("cp.async.bulk", _HOPPER),),
    "nvvm.cp.async.bulk.tensor.shared.cluster.global": (
        Requirement(
            "cp.async.bulk.tensor of a pair", ("sm_100f", "sm_110f"), (("group", "cta_2"),)
        ),
        Requirement(
            "tile::gather4 into other blocks",
            ("sm_100f", "sm_110f"),
            (("mode", "gather4"), ("isCTAOnly", "false")),
        ),
        _since("cp.async.bulk.tensor.tile::gather4", "sm_100", ("mode", "gather4")),
        _since("cp.async.bulk.tensor", _HOPPER),
    ),
    "nvvm.cp.async.bulk.tensor.global.shared.cta": (
        Requirement(
            "cp.async.bulk.tensor.tile::scatter4", ("sm_100f", "sm_110f"), (("mode", "scatter4"),)
        ),
        _since("cp.async.bulk.tensor", _HOPPER),
    ),
    "nvvm.cp.async.bulk.tensor.reduce": (_since("cp.reduce.async.bulk.tensor", _HOPPER),),
    "nvvm.mbarrier.init": (_since("mbarrier.init", _AMPERE),),
    "nvvm.mbarrier.arrive": (
        _since("mbarrier.arrive.shared::cluster", _HOPPER, _CLUSTER),
        _since("mbarrier.arrive", _AMPERE),
    ),
    "nvvm.mbarrier.expect_tx": (_since("mbarrier.expect_tx", _HOPPER),),
    "nvvm.mbarrier.arrive.expect_tx": (_since("mbarrier.arrive.expect_tx", _HOPPER),),
    # `lowering.ptx.before_hopper` makes test_wait of these where there is no try_wait.
    "nvvm.mbarrier.try_wait": (_since("mbarrier.test_wait", _AMPERE),),
    "nvvm.mbarrier.try_wait.parity": (_since("mbarrier.test_wait", _AMPERE),),
    "nvvm.fence.proxy": (_since("fence.proxy.async", _HOPPER, ("kind", "async")),),
    "nvvm.memory.barrier": (_since("fence.acq_rel.cluster", _HOPPER, _CLUSTER),),
    "nvvm.cluster.arrive": (_since("barrier.cluster.arrive", _HOPPER),),
    "nvvm.cluster.arrive.relaxed": (_since("barrier.cluster.arrive", _HOPPER),),
    "nvvm.cluster.wait": (_since("barrier.cluster.wait", _HOPPER),),
    "nvvm.mapa": (_since("mapa", _HOPPER),),
    "nvvm.griddepcontrol": (DEPENDENT_LAUNCH,),
    "nvvm.setmaxregister": (SETMAXNREG,),
    "nvvm.prefetch": (_since("prefetch.tensormap", _HOPPER, ("tensormap", "unit")),),
    "nvvm.clusterlaunchcontrol.try.cancel": (
        Requirement(
            "multicast clusterlaunchcontrol",
            ("sm_100f", "sm_110f", "sm_120f"),
            (("multicast", "unit"),),
        ),
        LAUNCH_CONTROL,
    ),
    "nvvm.mma.block_scale": (Requirement("mma.sync with scale factors", ("sm_120f",)),),
    "nvvm.tcgen05.mma": (
        TCGEN05_INTEGERS,
        TCGEN05,
    ),
    "nvvm.tcgen05.mma.block_scale": (
        Requirement("tcgen05.mma of K = 96", ("sm_103f",), ((LONG_K_ATTRIBUTE, "unit"),)),
        Requirement("tcgen05.mma.block_scale", TCGEN05.architectures),
    ),
    "nvvm.tcgen05.mma.sp": (TCGEN05_INTEGERS, TCGEN05),
    "nvvm.tcgen05.shift": (Requirement("tcgen05.shift", ("sm_100a", "sm_103a", "sm_110a")),),
    "nvvm.redux.sync": (
        Requirement("redux.sync.f32", ("sm_100f",), where=(("kind", "fm"),)),
        _since("redux.sync", _AMPERE),
    ),
}

# By the name of a copy atom up to its number of matrices (`dialect.atoms.COPY_ATOMS`).
COPIES = {
    "cp_async": _since("cp.async", _AMPERE),
    "ldmatrix": _since("ldmatrix", "sm_75"),
    "ldmatrix_b8": Requirement("ldmatrix.b8", ("sm_100f", "sm_110f", "sm_120f")),
    **{
        f"ldmatrix_b{bits}{turned}": Requirement(
            f"ldmatrix.b8x16.b{bits}x16", ("sm_100f", "sm_110f", "sm_120f")
        )
        for bits in (4, 6)
        for turned in ("", "t")
    },
    "stmatrix": _since("stmatrix", _HOPPER),
    "stmatrix_b8": Requirement("stmatrix.b8", ("sm_100f", "sm_110f", "sm_120f")),
}

# mma.sync by the type of A and its shape (PTX ISA 9.7.14.5).
MMA_SYNC = {
    ("f16", "16x8x8"): "sm_75",
    ("f16", "16x8x16"): _AMPERE,
    ("bf16", "16x8x8"): _AMPERE,
    ("bf16", "16x8x16"): _AMPERE,
    ("tf32", "16x8x4"): _AMPERE,
    ("tf32", "16x8x8"): _AMPERE,
    ("s8", "16x8x16"): _AMPERE,
    ("s8", "16x8x32"): _AMPERE,
    ("u8", "16x8x16"): _AMPERE,
    ("u8", "16x8x32"): _AMPERE,
    ("e4m3", "16x8x32"): _ADA,
    ("e5m2", "16x8x32"): _ADA,
    ("f64", "8x8x4"): _AMPERE,
    ("f64", "16x8x4"): _HOPPER,
    ("f64", "16x8x8"): _HOPPER,
    ("f64", "16x8x16"): _HOPPER,
}

# `cvt` from and to a pair of Float8 (PTX ISA 9.7.9.21), by the element's name in MLIR. Those of
# narrower floats are of sm_100a and its kin only.
CONVERSIONS = {
    "f8E4M3FN": _since("cvt.e4m3x2", _ADA),
    "f8E5M2": _since("cvt.e5m2x2", _ADA),
}

# The version of the PTX ISA of operations that are newer than their architecture
# ("tcgen05.mma": `.block16` and `.block32`).
PTX_VERSIONS = {"nvvm.tcgen05.mma.block_scale": 88, "nvvm.tcgen05.mma.sp.block_scale": 88}

_SPECIAL, _BLACKWELL = "nvvm.read.ptx.sreg.", "nvvm.tcgen05."
_OF_CLUSTERS = ("cluster", "nclusterid")


def mma_sync(shape: str, a: str, b: str) -> Requirement:
    """Return the row of mma.sync of a shape ("16x8x16") and of A's and B's types in PTX ("f16")."""
    feature = f"mma.sync of {a} and {b} with shape {shape}"
    return Requirement(feature, (MMA_SYNC[a, shape],))


def instruction_requirements(op: str) -> tuple[Requirement, ...]:
    """Return the rows of an nvvm op by its name; none if every target has it."""
    register = op.removeprefix(_SPECIAL)
    if register != op and register.startswith(_OF_CLUSTERS):
        return (_since(f"register %{register.replace('.', '_')}", _HOPPER),)
    if op.startswith(_BLACKWELL) and op not in INSTRUCTIONS:
        return (Requirement(op.removeprefix("nvvm."), TCGEN05.architectures),)
    return INSTRUCTIONS.get(op, ())


def missing_requirement(name: str, op: Any, target: Target) -> Requirement | None:
    """Return the first row that the op called `name` needs and `target` does not meet, or None."""
    for requirement in instruction_requirements(name):
        if not requirement.is_met_by(target) and requirement.concerns(op):
            return requirement
    return None
