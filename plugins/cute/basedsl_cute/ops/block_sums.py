"""Sums over the threads of a block."""

from __future__ import annotations

from typing import Any

import basedsl_cute as cute
from basedsl_cute import arch


@cute.jit
def block_sums(totals: Any, buffer: Any, warps: cute.Constexpr):
    """Return the sums over `warps` warps, the whole block, of numbers that each warp has the same
    of in all its threads. `buffer` is shared memory (warps, numbers). All threads must call it.
    """
    if arch.lane_idx() == 0:
        for n in cute.range_constexpr(len(totals)):
            buffer[arch.warp_idx(), n] = totals[n]
    arch.sync_threads()
    found = []
    for n in cute.range_constexpr(len(totals)):
        total = buffer[0, n]
        for w in cute.range_constexpr(1, warps):
            total += buffer[w, n]
        found.append(total)
    arch.sync_threads()
    return tuple(found)
