"""The tables of features, and the error about a target that lacks one."""

from __future__ import annotations

import re
import types

import pytest

from basedsl.errors import DSLTypeError
from basedsl_cute.dialect.atoms import COPY_ATOMS, MMA_ATOMS
from basedsl_cute.hardware.requirements import (
    CLUSTERS,
    CONVERSIONS,
    COPIES,
    INSTRUCTIONS,
    MMA_SYNC,
    SETMAXNREG,
    TCGEN05,
    TRY_WAIT,
    WGMMA,
    Requirement,
    instruction_requirements,
    missing_requirement,
    mma_sync,
)
from basedsl_cute.hardware.targets import SIM, TARGETS

ROWS = [
    CLUSTERS,
    SETMAXNREG,
    TCGEN05,
    TRY_WAIT,
    WGMMA,
    *instruction_requirements("nvvm.tcgen05.alloc"),
    *(row for rows in INSTRUCTIONS.values() for row in rows),
    *COPIES.values(),
    *CONVERSIONS.values(),
    *(mma_sync(shape, a, a) for a, shape in MMA_SYNC),
    *instruction_requirements("nvvm.read.ptx.sreg.clusterid.x"),
]
GPUS = [target for target in TARGETS.values() if target.is_gpu]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.feature)
def test_every_row_names_architectures_of_the_table(row):
    for name in row.architectures:
        base, variant = re.fullmatch(r"(sm_\d+)([af]?)", name).groups()
        assert base in TARGETS
        alone = Requirement(row.feature, (name,))
        assert name in TARGETS or variant == "f"
        assert any(map(alone.is_met_by, GPUS))
    assert row.is_met_by(TARGETS[SIM])


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.feature)
def test_the_error_names_the_target_the_feature_and_where_it_is(row):
    for target in GPUS:
        if row.is_met_by(target):
            continue
        error = row.error(target, None)
        assert isinstance(error, DSLTypeError)
        assert error.message.startswith(f"{target.name} has no {row.feature}: ")
        assert all(name in error.message for name in row.architectures)
        assert len(error.message) <= 100
        suggested = re.search(r"CUTE_DSL_ARCH=(\w+)", error.hint)[1]
        assert row.is_met_by(TARGETS[suggested])


@pytest.mark.parametrize(
    ("row", "target", "message"),
    [
        (TRY_WAIT, "sm_89", "sm_89 has no mbarrier.try_wait: sm_90 and later have it"),
        (WGMMA, "sm_100a", "sm_100a has no wgmma: only sm_90a has it"),
        (
            SETMAXNREG,
            "sm_90",
            "sm_90 has no setmaxnreg: "
            "only sm_90a and the families sm_100f, sm_110f and sm_120f have it",
        ),
        (
            instruction_requirements("nvvm.tcgen05.ld")[0],
            "sm_100",
            "sm_100 has no tcgen05.ld: only the families sm_100f and sm_110f have it",
        ),
        (
            instruction_requirements("nvvm.tcgen05.shift")[0],
            "sm_100f",
            "sm_100f has no tcgen05.shift: only sm_100a, sm_103a and sm_110a have it",
        ),
        (
            INSTRUCTIONS["nvvm.redux.sync"][0],
            "sm_120a",
            "sm_120a has no redux.sync.f32: only the family sm_100f has it",
        ),
        (
            mma_sync("16x8x32", "e4m3", "e5m2"),
            "sm_86",
            "sm_86 has no mma.sync of e4m3 and e5m2 with shape 16x8x32: sm_89 and later have it",
        ),
    ],
)
def test_the_words(row, target, message):
    assert not row.is_met_by(TARGETS[target])
    assert row.error(TARGETS[target], None).message == message


def test_every_atom_has_its_row():
    for name, atom in COPY_ATOMS.items():
        assert atom.requirement is COPIES.get(name.partition("_x")[0])
    for name, atom in MMA_ATOMS.items():
        assert (atom.requirement is None) == (name == "universal_fma")
    used = {atom.requirement for atom in MMA_ATOMS.values()}
    assert {mma_sync(shape, a, a) for a, shape in MMA_SYNC} <= used
    assert set(COPIES.values()) <= {atom.requirement for atom in COPY_ATOMS.values()}


@pytest.mark.parametrize(
    ("target", "group", "feature"),
    [
        ("sm_90a", "#nvvm.cta_group<cta_1>", None),
        ("sm_90a", "#nvvm.cta_group<cta_2>", "cp.async.bulk.tensor of a pair"),
        ("sm_120a", "#nvvm.cta_group<cta_2>", "cp.async.bulk.tensor of a pair"),
        ("sm_103f", "#nvvm.cta_group<cta_2>", None),
        ("sm_80", "#nvvm.cta_group<cta_1>", "cp.async.bulk.tensor"),
    ],
)
def test_copies_of_pairs_are_of_one_family(target, group, feature):
    op = types.SimpleNamespace(attributes={"group": group})
    name = "nvvm.cp.async.bulk.tensor.shared.cluster.global"
    found = missing_requirement(name, op, TARGETS[target])
    assert (found and found.feature) == feature
