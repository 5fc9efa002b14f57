"""Addresses in the shared memory of a cluster's blocks: the simulator's, and the 32 bits that
programs compute with. Above the place in a block both have the block's rank plus 1, or 0 for the
own block.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from basedsl_cute.sim.machine.memory import CLUSTER_SHIFT

RANK_SHIFT = 24  # of a block in a 32-bit address


def widened(address: Any) -> Any:
    """The simulator's address of a shared one of 32 bits."""
    rank = address >> RANK_SHIFT
    small = rank < 1 << 8
    return np.where(small, (address & ((1 << RANK_SHIFT) - 1)) + (rank << CLUSTER_SHIFT), address)


def narrowed(address: Any) -> Any:
    """The 32-bit form of one of the simulator's shared addresses."""
    rank, offset = address >> CLUSTER_SHIFT, address & ((1 << CLUSTER_SHIFT) - 1)
    return (offset + (rank << RANK_SHIFT)).astype(np.uint32).view(np.int32)
