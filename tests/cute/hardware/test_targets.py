"""The table of targets and what is chosen from it."""

from __future__ import annotations

import pytest

import basedsl_cute as cute
from basedsl.errors import DSLError
from basedsl_cute.device import driver
from basedsl_cute.device.detect import detect
from basedsl_cute.hardware.arch_enum import Arch, arch_of
from basedsl_cute.hardware.targets import (
    ENVIRONMENT_VARIABLE,
    MAX_BLOCKS_PER_SM,
    MAX_CLUSTER,
    MAX_REGISTERS_PER_THREAD,
    MAX_THREADS_PER_BLOCK,
    PORTABLE_CLUSTER,
    REGISTERS_PER_SM,
    SIM,
    STATIC_SMEM,
    SYSTEM_SMEM,
    TARGETS,
    WARP_SIZE,
    WARPS_PER_WARPGROUP,
    target_for_capability,
    target_of,
)


def test_rows_are_consistent():
    for name, target in TARGETS.items():
        assert target.name == name
        assert STATIC_SMEM <= target.smem_per_block <= target.smem_per_sm
        if target.is_gpu:
            assert target.ptx >= 83 and target.features() == f"+ptx{target.ptx}"


# CUDA C++ Programming Guide, "Technical Specifications per Compute Capability": KiB of shared
# memory of an SM and of a block, warps and blocks of an SM.
GUIDE = {
    (7, 5): (64, 64, 32, 16),
    (8, 0): (164, 163, 64, 32),
    (8, 6): (100, 99, 48, 16),
    (8, 7): (164, 163, 48, 16),
    (8, 9): (100, 99, 48, 24),
    (9, 0): (228, 227, 64, 32),
    (10, 0): (228, 227, 64, 32),
    (10, 3): (228, 227, 64, 32),
    (11, 0): (228, 227, 48, 24),
    (12, 0): (100, 99, 48, 24),
    (12, 1): (100, 99, 48, 24),
}


@pytest.mark.parametrize("name", TARGETS)
def test_rows_agree_with_the_programming_guide(name):
    target = TARGETS[name]
    capability = target.capability if target.is_gpu else (9, 0)
    assert capability in GUIDE, f"give GUIDE the guide's figures of {name}"
    smem_per_sm, smem_per_block, warps, blocks = GUIDE[capability]
    assert (target.smem_per_sm, target.smem_per_block) == (smem_per_sm << 10, smem_per_block << 10)
    assert (target.max_warps_per_sm, target.max_blocks_per_sm) == (warps, blocks)
    if target.capability >= (8, 0):
        assert target.smem_per_block == target.smem_per_sm - SYSTEM_SMEM


@pytest.mark.parametrize("name", TARGETS)
def test_every_target_is_a_member_of_arch(name):
    assert name == SIM or name in Arch.__members__, f"give Arch the member {name}"
    target = TARGETS[name]
    expected = (*target.capability, target.variant) if target.is_gpu else (9, 0, "a")
    assert arch_of(target).value == expected


def test_tensor_memory_is_of_data_center_blackwell():
    for target in TARGETS.values():
        has_it = target.capability[0] in (10, 11) or not target.is_gpu
        assert target.tmem_columns == (512 if has_it else 0)


def test_constants_of_every_architecture():
    assert (WARP_SIZE, WARPS_PER_WARPGROUP, MAX_THREADS_PER_BLOCK) == (32, 4, 1024)
    assert (REGISTERS_PER_SM, MAX_REGISTERS_PER_THREAD) == (65536, 255)
    assert (STATIC_SMEM, SYSTEM_SMEM) == (49152, 1024)
    assert (PORTABLE_CLUSTER, MAX_CLUSTER, MAX_BLOCKS_PER_SM) == (8, 16, 32)
    assert cute.arch.WARP_SIZE is WARP_SIZE


FEATURES = {
    "sm_90": ["sm_90", "sm_90a", "sm_100", "sm_100a", "sm_100f", "sm_103", "sm_120a"],
    "sm_90a": ["sm_90a"],
    "sm_100": ["sm_100", "sm_100a", "sm_100f", "sm_103", "sm_120"],
    "sm_100f": ["sm_100a", "sm_100f", "sm_103a", "sm_103f"],
    "sm_100a": ["sm_100a"],
    "sm_103f": ["sm_103a", "sm_103f"],
    "sm_120f": ["sm_120a", "sm_121a"],
}
ASKED = ("sm_80", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_100f", "sm_103", "sm_103a", "sm_103f",
         "sm_120", "sm_120a", "sm_121a")  # fmt: skip


@pytest.mark.parametrize("architecture", FEATURES)
def test_the_features_of_architectures_families_and_later_ones(architecture):
    """PTX ISA 11.1.2."""
    having = [name for name in ASKED if TARGETS[name].has_features_of(architecture)]
    assert set(FEATURES[architecture]) <= set(having)
    if architecture[-1] in "af":
        assert having == FEATURES[architecture]
    assert TARGETS[SIM].has_features_of(architecture)


def test_programs_compare_architectures():
    a = Arch.sm_100f
    assert Arch.sm_100 <= a <= Arch.sm_100f and not Arch.sm_101 <= a <= Arch.sm_101f
    in_order = [Arch.sm_100f, Arch.sm_101, Arch.sm_101f, Arch.sm_103, Arch.sm_103f, Arch.sm_110]
    assert in_order == sorted(in_order) and in_order[-1] < Arch.sm_110f
    assert [(x.major, x.minor) for x in (Arch.sm_103f, Arch.sm_110)] == [(10, 3), (11, 0)]


def test_blocks_that_an_sm_runs_together():
    hopper, ada = TARGETS["sm_90"], TARGETS["sm_89"]
    assert hopper.resident_blocks(32, 0) == 32  # as many blocks as there can be
    assert hopper.resident_blocks(33, 0) == 32  # two warps each
    assert hopper.resident_blocks(1024, 0) == 2  # 64 warps
    assert ada.resident_blocks(1024, 0) == 1  # 48 warps
    assert hopper.resident_blocks(32, 227 << 10) == 1  # all shared memory but the system's
    assert hopper.resident_blocks(32, 113 << 10) == 2


@pytest.mark.parametrize(
    ("name", "capability"), [("sm_90a", (9, 0)), ("sm_103f", (10, 3)), ("sim", (0, 0))]
)
def test_capabilities(name, capability):
    assert TARGETS[name].capability == capability


@pytest.mark.parametrize(
    ("capability", "name"),
    [
        ((8, 0), "sm_80"),
        ((9, 0), "sm_90a"),
        ((10, 0), "sm_100a"),
        ((12, 1), "sm_121"),
        ((10, 7), "sm_103"),  # newer than the table: the newest that such a device runs
        ((19, 0), "sm_121"),
    ],
)
def test_the_target_for_a_device(capability, name):
    assert target_for_capability(*capability).name == name


def test_devices_that_are_too_old():
    with pytest.raises(DSLError, match=r"7\.0 is too old"):
        target_for_capability(7, 0)


def test_names_are_forgiving_about_case():
    assert target_of(" SM_90A ") is TARGETS["sm_90a"]


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(DSLError, match="'sm_42' is no target") as error:
        target_of("sm_42")
    assert "note: there are sm_75, sm_80" in str(error.value)


def test_the_environment_decides(monkeypatch):
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "sm_100a")
    monkeypatch.setattr(driver, "capability_or_none", lambda: (9, 0))
    assert detect().name == "sm_100a"


def test_the_device_decides(monkeypatch):
    monkeypatch.delenv(ENVIRONMENT_VARIABLE, raising=False)
    monkeypatch.setattr(driver, "capability_or_none", lambda: (9, 0))
    assert detect().name == "sm_90a"


def test_without_a_device_it_is_the_simulator(monkeypatch):
    monkeypatch.delenv(ENVIRONMENT_VARIABLE, raising=False)
    monkeypatch.setattr(driver, "capability_or_none", lambda: None)
    assert detect().name == SIM
