"""`cute.arch`: what one thread can ask of the hardware, named as in CuTe."""

from basedsl_cute.arch.atomics import atomic_add
from basedsl_cute.arch.indices import (
    FULL_MASK,
    WARP_SIZE,
    block_dim,
    block_idx,
    grid_dim,
    lane_idx,
    thread_idx,
    warp_idx,
)
from basedsl_cute.arch.sync import barrier, sync_threads, sync_warp

__all__ = [
    "FULL_MASK",
    "WARP_SIZE",
    "atomic_add",
    "barrier",
    "block_dim",
    "block_idx",
    "grid_dim",
    "lane_idx",
    "sync_threads",
    "sync_warp",
    "thread_idx",
    "warp_idx",
]
