"""Sectors and wavefronts of one warp's accesses, against numbers counted by hand."""

import numpy as np
import pytest

from basedsl_cute.sim.profiling import transactions

LANES = np.arange(32)
ALL = np.ones((1, 32), bool)


@pytest.mark.parametrize(
    ("addresses", "size", "sectors", "lines", "ideal"),
    [
        (4 * LANES, 4, 4, 1, 4),  # coalesced
        (16 * LANES, 16, 16, 4, 16),
        (2 * LANES, 2, 2, 1, 2),
        (4 * LANES + 4, 4, 5, 2, 4),  # misaligned by an element
        (8 * LANES, 4, 8, 2, 4),  # every other element
        (128 * LANES, 4, 32, 32, 4),  # a column
        (0 * LANES, 4, 1, 1, 1),  # broadcast
        (4 * (31 - LANES), 4, 4, 1, 4),  # backwards
        (1024 * (LANES // 8) + 4 * (LANES % 8), 4, 4, 4, 4),  # four rows of a sector
    ],
)
def test_global_memory(addresses, size, sectors, lines, ideal):
    rows = addresses[None] + 4096
    assert transactions.sectors(rows, ALL) == [sectors]
    assert transactions.lines(rows, ALL) == [lines]
    assert transactions.ideal_sectors(rows, ALL, size) == [ideal]


def test_masked_lanes_touch_nothing():
    mask = np.array([LANES < 8, LANES < 0])
    rows = np.array([4 * LANES, 4 * LANES])
    assert transactions.sectors(rows, mask).tolist() == [1, 0]
    assert transactions.ideal_sectors(rows, mask, 4).tolist() == [1, 0]
    needed, fewest = transactions.wavefronts(rows, mask, 4)
    assert (needed.tolist(), fewest.tolist()) == ([1, 0], [1, 0])


@pytest.mark.parametrize(
    ("addresses", "size", "needed", "fewest"),
    [
        (4 * LANES, 4, 1, 1),
        (0 * LANES, 4, 1, 1),  # one word for all lanes
        (2 * LANES, 2, 1, 1),  # two lanes a word
        (1 * LANES, 1, 1, 1),
        (8 * LANES, 4, 2, 1),  # words 0, 2, ... 62: two in each even bank
        (4 * 32 * LANES, 4, 32, 1),  # a column of 32 words: all in one bank
        (4 * 33 * LANES, 4, 1, 1),  # a column of rows padded by a word
        (4 * 36 * LANES, 4, 4, 1),
        (8 * LANES, 8, 2, 2),
        (8 * (LANES // 16), 8, 1, 1),  # two addresses
        (16 * LANES, 16, 4, 4),  # quarter warps
        (0 * LANES, 16, 2, 2),  # one address for all, of each half warp
        (16 * (LANES // 8), 16, 2, 2),  # each quarter reads one address
        (128 * LANES, 16, 32, 4),  # rows of 128 bytes: eight lanes of a quarter in four banks
        (144 * LANES, 16, 4, 4),  # padded by 16 bytes
        (128 * (LANES % 8) + 16 * ((LANES % 8) ^ (LANES // 8)), 16, 4, 4),  # swizzled by 8 rows
    ],
)
def test_shared_memory(addresses, size, needed, fewest):
    found = transactions.wavefronts(addresses[None], ALL, size)
    assert (int(found[0][0]), int(found[1][0])) == (needed, fewest)
