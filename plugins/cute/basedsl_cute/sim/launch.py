"""Launches: checks of a configuration, and the run over all blocks of the grid."""

from __future__ import annotations

import functools
import itertools
import linecache
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from basedsl_cute.hardware.launch_limits import (
    LaunchLimits,
    LaunchProblem,
    launch_problem,
    three_extents,
)
from basedsl_cute.sim.errors import LaunchError
from basedsl_cute.sim.machine.bulk_groups import finish_bulk_stores
from basedsl_cute.sim.machine.lanes import Lanes, lanes_of
from basedsl_cute.sim.machine.memory import SHARED_BASE, Segment, private_segment
from basedsl_cute.sim.machine.races import check_visits
from basedsl_cute.sim.machine.schedule import run_together
from basedsl_cute.sim.machine.shadow_memory import ShadowMemory
from basedsl_cute.sim.machine.state import (
    Block,
    Cluster,
    Group,
    SimLaunch,
    UnstartedClusters,
)
from basedsl_cute.sim.machine.tensor_memory import check_freed
from basedsl_cute.sim.machine.thread_order import ThreadOrder
from basedsl_cute.sim.machine.vector_clock import VectorClocks
from basedsl_cute.sim.machine.wgmma_queue import check_warpgroups_agree
from basedsl_cute.sim.options import LockstepWidth

_AT_ONCE = 16  # clusters that run together in a shuffled schedule, at least


def triple(value: Any, what: str) -> tuple[int, int, int]:
    """Convert a grid, block or cluster to three ints. Raises LaunchError, which calls it `what`."""
    if type(value) is tuple and len(value) == 3:
        x, y, z = value
        if type(x) is type(y) is type(z) is int and x > 0 and y > 0 and z > 0:
            return value
    extents = three_extents(what, value, _is_integer)
    if isinstance(extents, LaunchProblem):
        raise LaunchError(extents.message, hint=extents.hint)
    x, y, z = extents
    return x.__index__(), y.__index__(), z.__index__()


def _is_integer(value: Any) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool)


@functools.lru_cache(maxsize=256)
def check_configuration(
    limits: LaunchLimits,
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    cluster: tuple[int, int, int],
    shared: int,
) -> None:
    """Raise LaunchError for a configuration beyond `limits`; `shared` is bytes for each block."""
    problem = launch_problem(limits, grid, block, cluster, shared)
    if problem is not None:
        raise LaunchError(problem.message, hint=problem.hint)


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
    except KeyboardInterrupt as stopped:
        line = kernel_line(stopped)
        if line is not None:
            stopped.add_note(f"the kernel was at {line}")
        raise
    finally:
        launch.output.flush()


def kernel_line(error: BaseException) -> str | None:
    """The file and line of the kernel at which a simulated launch was stopped by `error`."""
    found = None
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_name == "kernel" and code.co_filename.endswith(">"):
            source = linecache.getlines(code.co_filename)[: trace.tb_lineno]
            marked = [line.rpartition("  # ")[2].strip() for line in source if "  # " in line]
            found = marked[-1] if marked else found
        trace = trace.tb_next
    return found


def _shared_segment(launch: SimLaunch, blocks: int) -> Segment:
    track = launch.options.level("uninitialized") != "off" and launch.shared_size > 0
    return private_segment(
        SHARED_BASE, launch.shared_span, blocks, "shared memory", "shared", track
    )


# Warps as coroutines -----------------------------------------------------------------------------


def _run_by_warp(launch: SimLaunch, call: Any, args: tuple[Any, ...], waits: bool) -> None:
    warp = launch.machine.lanes
    shapes = [
        lanes_of(launch.block, first, min(warp, launch.threads - first), (1, 1, 1), warp)
        for first in range(0, launch.threads, warp)
    ]
    count = launch.blocks // math.prod(launch.cluster)
    members_of: Iterator[Any] = itertools.islice(_clusters(launch), count)
    if launch.preferred is not None:
        mixed = list(_mixed_clusters(launch, launch.preferred))
        members_of, count = iter(mixed), len(mixed)
    if launch.chance is not None:
        shuffled = list(members_of)
        launch.chance.shuffle(shuffled)
        members_of = iter(shuffled)
    launch.unstarted = UnstartedClusters(members_of, count)
    clusters = _started(launch, shapes)
    if launch.cooperative:
        _check_resident(launch)
        everyone = [group for groups in clusters for group in groups]
        _run_groups(launch, everyone, clusters, call, args, waits)
    elif launch.chance is not None:
        while together := [g for groups in itertools.islice(clusters, _AT_ONCE) for g in groups]:
            _run_groups(launch, together, clusters, call, args, waits)
    for groups in clusters:
        _run_groups(launch, groups, clusters, call, args, waits)


def _started(launch: SimLaunch, shapes: list[Lanes]) -> Iterator[list[Group]]:
    """The groups of each cluster that was not cancelled before it starts."""
    while (members := launch.unstarted.start()) is not None:
        yield _start_cluster(launch, members, shapes)


def _check_resident(launch: SimLaunch) -> None:
    """Raise unless all blocks of a cooperative launch fit on a GPU at the same time."""
    blocks = math.prod(launch.grid)
    room = launch.machine.resident_blocks(launch.threads, launch.shared_size)
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


def _mixed_clusters(
    launch: SimLaunch, preferred: tuple[int, int, int]
) -> Iterator[list[tuple[int, int, int]]]:
    """The block indices of clusters of two shapes by rank: every second place of a preferred
    cluster has smaller ones.
    """
    px, py, pz = preferred
    gx, gy, gz = launch.grid
    places = itertools.product(range(0, gz, pz), range(0, gy, py), range(0, gx, px))
    for number, (z, y, x) in enumerate(places):
        sx, sy, sz = launch.cluster if number % 2 else preferred
        inside = list(itertools.product(range(sz), range(sy), range(sx)))
        parts = itertools.product(range(0, pz, sz), range(0, py, sy), range(0, px, sx))
        for oz, oy, ox in parts:
            yield [(x + ox + dx, y + oy + dy, z + oz + dz) for dz, dy, dx in inside]


def _start_cluster(
    launch: SimLaunch, members: list[tuple[int, int, int]], shapes: list[Lanes]
) -> list[Group]:
    """The groups of the blocks of one cluster, with the blocks' indices in `members`."""
    order = None
    if launch.races is not None:
        order = VectorClocks(len(members) * len(shapes), launch.races.events)
    blocks = [_block(launch, *place, len(shapes), order) for place in enumerate(members)]
    share = -(-launch.unstarted.count // 2)
    is_small = launch.preferred is None or len(members) == math.prod(launch.cluster)
    shape = launch.cluster if is_small else launch.preferred
    assert shape is not None
    cluster = Cluster(blocks, len(blocks) * len(shapes), share, shape=shape)
    groups = []
    for block in blocks:
        block.cluster = cluster
        block.order = order
        groups += [Group(launch, shape, block, warp) for warp, shape in enumerate(shapes)]
    if order is not None:
        first = launch.races.first_block
        ranks = {first + block.linear: block.rank for block in blocks}
        for group in groups:
            _follow_order(launch, group, group.block.linear, 1, order, ranks)
            order.acquired[group.agent] = group.known.gathered
            order.read[group.agent] = group.known.gathered_pending
    return groups


def _follow_order(
    launch: SimLaunch,
    group: Group,
    first: int,
    blocks: int,
    order: VectorClocks | None = None,
    ranks: dict[int, int] | None = None,
) -> None:
    """Let the race check follow the order of a group of `blocks` blocks from the number `first`."""
    first += launch.races.first_block
    group.known = ThreadOrder(
        launch.races.events,
        int(launch.races.block_threads),
        range(first, first + blocks),
        group.shape,
        order,
        group.agent,
        ranks or {},
        launch.races.warps,
        launch.races.known,
    )
    if launch.races.shared is not None:
        launch.races.orders.append(group.known)


def _block(
    launch: SimLaunch,
    rank: int,
    index: tuple[int, int, int],
    warps: int,
    order: VectorClocks | None,
) -> Block:
    shadow = None
    if order is not None and launch.asynchronous and launch.shared_size:
        shadow = ShadowMemory(order, rank, warps, launch.shared_span)
    x, y, z = index
    linear = x + launch.grid[0] * (y + launch.grid[1] * z)
    return Block(index, linear, launch.threads, warps, _shared_segment(launch, 1), shadow, rank)


def _run_groups(
    launch: SimLaunch,
    groups: list[Group],
    later: Iterator[list[Group]],
    call: Any,
    args: tuple[Any, ...],
    waits: bool,
) -> None:
    """Run groups to their end; those of `later` blocks join them if they wait for these."""
    if launch.chance is not None:
        launch.chance.shuffle(groups)
    if not waits:
        for group in groups:
            call(group, *args)
    else:
        warps = -(-launch.threads // launch.machine.lanes)
        room = warps * launch.machine.resident_blocks(launch.threads, launch.shared_size)
        more_warps = warps * math.prod(launch.preferred or launch.cluster)

        def more() -> list[tuple[Group, Any]]:
            joined = next(later, []) if len(groups) + more_warps <= room else []
            groups.extend(joined)
            return [(group, call(group, *args)) for group in joined]

        tasks = [(group, call(group, *args)) for group in groups]
        run_together(
            tasks,
            launch.options.max_spins,
            lambda: launch.stores,
            more,
            launch.chance,
            launch.member,
        )
    groups.sort(key=lambda group: (group.block.linear, group.first_warp))
    check_warpgroups_agree(groups)
    for group in groups:
        finish_bulk_stores(group)
        if group.first_warp == 0:
            own = (other for other in groups if other.block is group.block)
            check_visits(launch, group.block, min(other.cluster_waits for other in own))
            if group.block.has_tensor_memory:
                check_freed(group.block)
    for group in groups:
        if group.first_warp == 0 and group.block.shadow is not None:
            group.block.shadow.give_back()
            group.block.shadow = None


# Blocks in lock step -----------------------------------------------------------------------------


def _run_in_step(launch: SimLaunch, call: Any, args: tuple[Any, ...], many: bool) -> None:
    """Run blocks one at a time or, with `many`, as many at a time as the options allow."""
    total = launch.blocks
    batch = 1
    if many:
        lanes = launch.options.batch_lanes
        batch = max(1, min(total, lanes // launch.threads))
        batch = min(batch, max(1, (8 << 20) // max(launch.shared_size, 1)))
    first, warps = 0, -(-launch.threads // launch.machine.lanes)
    for corner, box in _boxes(launch.grid, total, batch):
        shape = lanes_of(launch.block, 0, launch.threads, box, launch.machine.lanes)
        shared = _shared_segment(launch, shape.blocks)
        group = Group(launch, shape, Block(corner, first, launch.threads, warps, shared), 0)
        if launch.races is not None:
            _follow_order(launch, group, first, shape.blocks)
        call(group, *args)
        first += shape.blocks


def _boxes(
    grid: tuple[int, int, int], total: int, most: int
) -> Iterator[tuple[tuple[int, int, int], tuple[int, int, int]]]:
    """The first `total` blocks of a grid in order, as boxes of at most `most` blocks: the index of
    the first block, and the extents in x, y, z.
    """
    gx, gy, _ = grid
    first = 0
    while first < total:
        left = min(most, total - first)
        x, y, z = first % gx, first // gx % gy, first // (gx * gy)
        if x or left < gx:
            box = min(left, gx - x), 1, 1
        elif y or left < gx * gy:
            box = gx, min(left // gx, gy - y), 1
        else:
            box = gx, gy, left // (gx * gy)
        yield (x, y, z), box
        first += math.prod(box)
