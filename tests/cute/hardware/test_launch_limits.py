"""The check of launches that compilation, launchers and the simulator share."""

from __future__ import annotations

import pytest

from basedsl_cute.hardware.launch_limits import (
    LaunchLimits,
    LaunchProblem,
    launch_problem,
    three_extents,
)
from basedsl_cute.hardware.targets import TARGETS

ONE = (1, 1, 1)
MOST = LaunchLimits()


def test_limits_of_every_architecture():
    """CUDA C++ Programming Guide, "Technical Specifications per Compute Capability"."""
    assert MOST.grid == (2147483647, 65535, 65535)
    assert MOST.block == (1024, 1024, 64)
    assert (MOST.threads, MOST.smem, MOST.cluster) == (1024, 49152, 16)


@pytest.mark.parametrize(
    ("launch", "message"),
    [
        (((0, 1, 1), ONE), "grid=(0, 1, 1) has 0 in x; it must be 1 to 2147483647"),
        (((None, -2, 1), ONE), "grid=(?, -2, 1) has -2 in y; it must be 1 to 65535"),
        (((1, 1, 65536), ONE), "grid=(1, 1, 65536) has 65536 in z; it must be 1 to 65535"),
        ((ONE, (1, 1, 65)), "block=(1, 1, 65) has 65 in z; it must be 1 to 64"),
        ((ONE, (None, 1025, 1)), "block=(?, 1025, 1) has 1025 in y; it must be 1 to 1024"),
        ((ONE, (32, 32, 2)), "block=(32, 32, 2) has 2048 threads; a block has at most 1024"),
        (((4, 1, 1), ONE, (0, 1, 1)), "cluster=(0, 1, 1) has 0 in x; it must be 1 to 16"),
        (
            ((8, 8, 1), ONE, (8, 4, 1)),
            "cluster=(8, 4, 1) has 32 blocks; a cluster has at most 16",
        ),
        (((5, 1, 1), ONE, (2, 1, 1)), "cluster=(2, 1, 1) does not divide grid=(5, 1, 1)"),
        (
            (ONE, ONE, None, 49153),
            "a block asks for 49153 bytes of shared memory; it can have 0 to 49152",
        ),
        (
            (ONE, ONE, None, -1),
            "a block asks for -1 bytes of shared memory; it can have 0 to 49152",
        ),
    ],
)
def test_impossible_launches(launch, message):
    assert launch_problem(MOST, *launch).message == message


@pytest.mark.parametrize(
    "launch",
    [
        ((2147483647, 65535, 65535), (1024, 1, 1)),
        ((None, None, None), (None, 1024, None)),
        ((4, None, 2), (16, 1, 64), (2, 8, 1), 49152),
    ],
)
def test_possible_launches(launch):
    assert launch_problem(MOST, *launch) is None


def test_limits_of_a_target():
    limits = LaunchLimits(smem=TARGETS["sm_90a"].smem_per_block)
    assert launch_problem(limits, ONE, ONE, smem=232448) is None
    assert "0 to 232448" in launch_problem(limits, ONE, ONE, smem=232449).message


def test_hints():
    assert "if n > 0" in launch_problem(MOST, (0, 1, 1), ONE).hint
    assert launch_problem(MOST, ONE, (0, 1, 1)).hint.startswith("extents count")
    assert "smaller block" in launch_problem(MOST, ONE, (1024, 2, 1)).hint


def is_int(value):
    return type(value) is int


@pytest.mark.parametrize(
    ("given", "extents"), [(7, (7, 1, 1)), ((7,), (7, 1, 1)), ([1, 2, 3], (1, 2, 3))]
)
def test_three_extents(given, extents):
    assert three_extents("grid", given, is_int) == extents


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ((), "grid takes one to three integers, got ()"),
        ((1, 1, 1, 1), "grid takes one to three integers, got (1, 1, 1, 1)"),
        ((1, 0.5), "grid y must be an integer, got float"),
        ("x", "grid x must be an integer, got str"),
    ],
)
def test_what_is_no_extents(given, message):
    problem = three_extents("grid", given, is_int)
    assert isinstance(problem, LaunchProblem)
    assert problem.message == message
