"""Occupancy by the toolkit's rules, against figures worked out by hand and the driver's own."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from basedsl_cute.device import driver
from basedsl_cute.hardware.occupancy import occupancy
from basedsl_cute.hardware.targets import TARGETS


@pytest.mark.parametrize(
    ("arch", "threads", "registers", "smem", "blocks", "limited_by"),
    [
        # 64 KiB a block: three fit into 228 KiB (the example of the pipeline's documentation).
        ("sm_90a", 128, 32, 64 << 10, 3, ("shared memory",)),
        ("sm_90a", 1024, 32, 0, 2, ("warps", "registers")),
        # 255 registers: 8192 a warp, 2 warps in each partition's 16384.
        ("sm_90a", 128, 255, 0, 2, ("registers",)),
        ("sm_90a", 32, 16, 0, 32, ("blocks",)),
        # 168 registers: 5376 a warp, 3 in each partition: 12 warps, one block of 12.
        ("sm_90a", 384, 168, 200 << 10, 1, ("registers", "shared memory")),
        # 40 registers: 1280 a warp, 12 in each partition: 48 warps.
        ("sm_80", 256, 40, 0, 6, ("registers",)),
        ("sm_86", 256, 32, 0, 6, ("warps",)),
        ("sm_75", 256, 32, 32 << 10, 2, ("shared memory",)),
        # The system's KiB makes the fourth block of 57 KiB too much.
        ("sm_90", 128, 32, 57 << 10, 3, ("shared memory",)),
        ("sm_90", 128, 32, 56 << 10, 4, ("shared memory",)),
        ("sm_86", 128, 32, 100 << 10, 0, ("shared memory",)),
    ],
)
def test_blocks_of_an_sm(arch, threads, registers, smem, blocks, limited_by):
    found = occupancy(TARGETS[arch], threads, registers, smem)
    assert (found.blocks, found.limited_by) == (blocks, limited_by)
    assert found.warps == blocks * -(-threads // 32)
    assert found.fraction == found.warps / TARGETS[arch].max_warps_per_sm


def test_as_text():
    assert str(occupancy(TARGETS["sm_90a"], 128, 32, 64 << 10)) == (
        "19% on sm_90a: 3 blocks, 12 of 64 warps of an SM; limited by shared memory"
    )


@pytest.mark.parametrize(
    ("threads", "registers", "smem"), [(0, 32, 0), (1025, 32, 0), (32, 256, 0), (32, 32, -1)]
)
def test_blocks_that_no_architecture_has(threads, registers, smem):
    with pytest.raises(ValueError):
        occupancy(TARGETS["sm_90a"], threads, registers, smem)


HOLDING = runpy.run_path(str(Path(__file__).parents[1] / "programs" / "held_registers.py"))


@pytest.mark.gpu
@pytest.mark.parametrize("threads", HOLDING["THREADS"])
@pytest.mark.parametrize(("values", "words"), HOLDING["VALUES_AND_WORDS"])
def test_the_driver_says_the_same(threads, values, words):
    """Twenty kernels against cuOccupancyMaxActiveBlocksPerMultiprocessor."""
    compiled = HOLDING["compiled"](values, words, threads)
    if compiled.__cubin__ is None:
        pytest.skip("no ptxas")
    (found,) = compiled.resources.values()
    driver.ensure_context()
    library = driver.Library(compiled.__cubin__)
    loaded = library.kernel(found.name)
    assert loaded.attribute("registers") == found.registers
    assert loaded.active_blocks(threads, found.dynamic_smem) == found.occupancy().blocks
    library.unload()
