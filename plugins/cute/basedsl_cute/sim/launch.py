"""Launches: checks of a configuration, and the run over all blocks of the grid."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from basedsl_cute.sim.errors import LaunchError
from basedsl_cute.sim.machine.bulk_groups import finish_bulk_stores
from basedsl_cute.sim.machine.memory import SHARED_BASE, Segment, private_segment
from basedsl_cute.sim.machine.races import check_visits
from basedsl_cute.sim.machine.schedule import run_together
from basedsl_cute.sim.machine.shadow_memory import ShadowMemory
from basedsl_cute.sim.machine.state import WARP, Block, Cluster, Group, Lanes, SimLaunch
from basedsl_cute.sim.machine.vector_clock import VectorClocks
from basedsl_cute.sim.machine.wgmma_queue import check_warpgroups_agree
from basedsl_cute.sim.options import LockstepWidth

MAX_THREADS = 1024
MAX_BLOCK = (1024, 1024, 64)
MAX_GRID = (2**31 - 1, 65535, 65535)
MAX_SHARED = 227 * 1024
"""Limits of compute capability 9.0 (CUDA C++ Programming Guide, technical specifications)."""


def triple(value: Any, what: str) -> tuple[int, int, int]:
    """Convert a grid, block or cluster to three positive ints. Raises LaunchError, which calls it
    `what`.
    """
    parts = tuple(value) if isinstance(value, tuple | list) else (value,)
    if not 1 <= len(parts) <= 3:
        raise LaunchError(f"{what} has {len(parts)} extents; give 1 to 3")
    out = []
    for part in (*parts, 1, 1)[:3]:
        if isinstance(part, bool) or not hasattr(part, "__index__"):
            raise LaunchError(f"{what}={value}: an extent is {part!r}, not an int")
        if part.__index__() <= 0:
            raise LaunchError(f"{what}={value}: every extent must be at least 1")
        out.append(part.__index__())
    return out[0], out[1], out[2]


def check_configuration(
    grid: tuple[int, int, int], block: tuple[int, int, int], shared: int
) -> None:
    """Raise LaunchError for a configuration that no GPU takes; `shared` is bytes for each block."""
    threads = block[0] * block[1] * block[2]
    if threads > MAX_THREADS:
        raise LaunchError(
            f"block={block} has {threads} threads; a block holds at most {MAX_THREADS}"
        )
    for name, extents, limits in (("grid", grid, MAX_GRID), ("block", block, MAX_BLOCK)):
        for axis, extent, limit in zip("xyz", extents, limits, strict=True):
            if extent > limit:
                raise LaunchError(f"{name}={extents}: {axis} is at most {limit}")
    if shared > MAX_SHARED:
        raise LaunchError(
            f"the block needs {shared} bytes of shared memory; there are at most {MAX_SHARED}"
        )


def resident_blocks(threads: int, shared: int) -> int:
    """The number of such blocks that run at the same time on an H100: it has 132 multiprocessors,
    each for 32 blocks, 64 warps and 228 KB of shared memory, of which a block takes 1 KB more than
    the `shared` bytes that it asks for.
    """
    warps = -(-threads // WARP)
    return 132 * min(32, 64 // warps, 228 * 1024 // (shared + 1024))


def run_launch(
    launch: SimLaunch, width: LockstepWidth, call: Any, args: tuple[Any, ...], waits: bool
) -> None:
    """Run the generated function `call` for every block, in order. `waits` says that it makes a
    generator. Raises SimulationError; what was printed until then is written out.
    """
    try:
        with np.errstate(all="ignore"):
            if width == "warp":
                _run_by_warp(launch, call, args, waits)
            else:
                _run_in_step(launch, call, args, many=width == "grid")
    finally:
        launch.output.flush()


def _shared_segment(launch: SimLaunch, blocks: int) -> Segment:
    track = launch.options.check_uninitialized and launch.shared_size > 0
    return private_segment(
        SHARED_BASE, launch.shared_size, blocks, "shared memory", "shared", track
    )


# Warps as coroutines -----------------------------------------------------------------------------


def _run_by_warp(launch: SimLaunch, call: Any, args: tuple[Any, ...], waits: bool) -> None:
    shapes = [
        Lanes(launch.block, first, min(WARP, launch.threads - first), 1)
        for first in range(0, launch.threads, WARP)
    ]
    clusters = (_start_cluster(launch, members, shapes) for members in _clusters(launch))
    if launch.cooperative:
        _check_resident(launch)
        everyone = [group for groups in clusters for group in groups]
        _run_groups(launch, everyone, clusters, call, args, waits)
    for groups in clusters:
        _run_groups(launch, groups, clusters, call, args, waits)


def _check_resident(launch: SimLaunch) -> None:
    """Raise unless all blocks of a cooperative launch fit on a GPU at the same time."""
    blocks = math.prod(launch.grid)
    room = resident_blocks(launch.threads, launch.shared_size)
    if blocks > room:
        raise LaunchError(
            f"a cooperative launch of {blocks} blocks: a GPU runs {room} such blocks at a time"
        )


def _clusters(launch: SimLaunch) -> Iterator[list[tuple[int, int, int]]]:
    """The block indices of each cluster, by rank: x fastest."""
    cx, cy, cz = launch.cluster
    inside = list(itertools.product(range(cz), range(cy), range(cx)))
    gx, gy, gz = launch.grid
    for z, y, x in itertools.product(range(0, gz, cz), range(0, gy, cy), range(0, gx, cx)):
        yield [(x + dx, y + dy, z + dz) for dz, dy, dx in inside]


def _start_cluster(
    launch: SimLaunch, members: list[tuple[int, int, int]], shapes: list[Lanes]
) -> list[Group]:
    """The groups of the blocks of one cluster, with the blocks' indices in `members`."""
    order = None
    if launch.options.check_races and launch.shared_size:
        order = VectorClocks(len(members) * len(shapes))
    blocks = [_block(launch, *place, len(shapes), order) for place in enumerate(members)]
    cluster = Cluster(blocks, len(blocks) * len(shapes))
    groups = []
    for block in blocks:
        block.cluster = cluster
        groups += [Group(launch, shape, block, warp) for warp, shape in enumerate(shapes)]
    return groups


def _block(
    launch: SimLaunch,
    rank: int,
    index: tuple[int, int, int],
    warps: int,
    order: VectorClocks | None,
) -> Block:
    shadow = None
    if order is not None:
        shadow = ShadowMemory(order, rank, warps, launch.shared_size)
    x, y, z = index
    linear = x + launch.grid[0] * (y + launch.grid[1] * z)
    return Block(index, linear, launch.threads, _shared_segment(launch, 1), shadow, rank)


def _run_groups(
    launch: SimLaunch,
    groups: list[Group],
    later: Iterator[list[Group]],
    call: Any,
    args: tuple[Any, ...],
    waits: bool,
) -> None:
    """Run groups to their end; those of `later` blocks join them if they wait for these."""
    if not waits:
        for group in groups:
            call(group, *args)
    else:
        warps = -(-launch.threads // WARP)
        room = warps * resident_blocks(launch.threads, launch.shared_size)
        more_warps = warps * math.prod(launch.cluster)

        def more() -> list[tuple[Group, Any]]:
            joined = next(later, []) if len(groups) + more_warps <= room else []
            groups.extend(joined)
            return [(group, call(group, *args)) for group in joined]

        tasks = [(group, call(group, *args)) for group in groups]
        run_together(tasks, launch.options.max_spins, lambda: launch.stores, more)
    check_warpgroups_agree(groups)
    for group in groups:
        finish_bulk_stores(group)
        if group.first_warp == 0:
            check_visits(group.block)


# Blocks in lock step -----------------------------------------------------------------------------


def _run_in_step(launch: SimLaunch, call: Any, args: tuple[Any, ...], many: bool) -> None:
    """Run blocks one at a time or, with `many`, as many at a time as the options allow."""
    total = launch.grid[0] * launch.grid[1] * launch.grid[2]
    batch = 1
    if many:
        batch = max(1, min(total, launch.options.batch_lanes // launch.threads))
        batch = min(batch, max(1, (8 << 20) // max(launch.shared_size, 1)))
    gx, gy, _ = launch.grid
    shape = None
    for first in range(0, total, batch):
        blocks = min(batch, total - first)
        if shape is None or shape.blocks != blocks:
            shape = Lanes(launch.block, 0, launch.threads, blocks)
        numbers = np.arange(first, first + blocks, dtype=np.int64)
        axes = (numbers % gx, numbers // gx % gy, numbers // (gx * gy))
        index = tuple(a.astype(np.int32) if many else int(a[0]) for a in axes)
        shared = _shared_segment(launch, blocks)
        block = Block(index, first, launch.threads, shared)  # type: ignore[arg-type]
        call(Group(launch, shape, block, 0), *args)
