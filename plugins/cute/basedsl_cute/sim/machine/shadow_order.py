"""Order by strong accesses to shared memory that asynchronous units or other blocks use too.

The order is that of warps (`vector_clock`): a release hands on what its warp knows and did, an
acquire takes it. A relaxed access of a warp counts as a release behind a fence, and as an acquire
once a fence follows.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from basedsl_cute.sim.machine.access import MemoryAccess
from basedsl_cute.sim.machine.shadow_memory import ShadowMemory
from basedsl_cute.sim.machine.state import Group


def synchronise(shadow: ShadowMemory, g: Group, a: MemoryAccess, offset: Any, writes: Any) -> None:
    """Let strong accesses of a warp at byte offsets release and acquire. `writes` says which of
    them write: an array, or one boolean.
    """
    order = shadow.order
    fences = g.known.fences
    written = offset[np.broadcast_to(writes, offset.shape)]
    for at in np.unique(offset).tolist():
        block = g.block.rank
        if a.reads:
            for token in _tokens(shadow, at, block, a.wide):
                if a.acquires:
                    order.acquire(token, g.agent)
                else:
                    g.unfenced.append(token)
        if at not in written:  # a compare-and-swap that failed
            continue
        fenced = fences is not None and bool(fences[a.scope].any())
        if a.releases or fenced:
            for token in _tokens(shadow, at, block, a.wide):
                order.release(token, g.agent)
                order.publish(token)
        elif not a.reads:  # not part of what was released before
            for token in _tokens(shadow, at, block, a.wide):
                order.forget(token)


def acquire_behind_fence(g: Group) -> None:
    """Let the warp know what was released where it has read without acquiring."""
    order = g.block.order
    while order is not None and g.unfenced:
        order.acquire(g.unfenced.pop(), g.agent)


def _tokens(shadow: ShadowMemory, at: int, block: int, wide: bool) -> list[Any]:
    """The place for the threads of one block, and for those of all blocks."""
    own = ("word", shadow.own_warps.start, at, block)
    return [own, ("word", shadow.own_warps.start, at)] if wide else [own]
