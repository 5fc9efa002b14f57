"""One launch: everything that exists only while a kernel runs, and the walk over its blocks."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from basedsl_cute.hardware.launch_limits import (
    LaunchLimits,
    LaunchProblem,
    launch_problem,
    three_extents,
)
from basedsl_cute.hardware.targets import SIM, TARGETS, WARP_SIZE
from basedsl_cute.sim.errors import LaunchError
from basedsl_cute.sim.machine.block import Block
from basedsl_cute.sim.machine.cluster import Cluster
from basedsl_cute.sim.machine.group import Group, Lanes
from basedsl_cute.sim.machine.memory import SHARED_BASE, Memory, Segment, private_segment
from basedsl_cute.sim.machine.output import Output
from basedsl_cute.sim.machine.races import Order, RaceDetector
from basedsl_cute.sim.machine.schedule import run_together
from basedsl_cute.sim.machine.wgmma_queue import check_together
from basedsl_cute.sim.translate.memory_map import Layout

Width = Literal["warp", "block", "grid"]

# The device that cooperative launches and waiting blocks are counted for: an H100 SXM.
MULTIPROCESSORS = 132


@dataclass(frozen=True, slots=True)
class SimOptions:
    """How to run. None of these changes what a correct kernel computes.

    `width` is how many lanes run together: "auto" takes the widest that the kernel allows.
    `check_uninitialized` reports reads of shared memory that nobody wrote. `check_races` reports
    unordered accesses to shared memory (slower, one warp at a time). `max_spins` is how often
    polling may go round while nothing else happens. `batch_lanes` bounds a group of many blocks.
    """

    width: Literal["auto", "warp", "block", "grid"] = "auto"
    check_uninitialized: bool = True
    check_races: bool = False
    max_spins: int = 10_000
    batch_lanes: int = 1 << 14


def triple(value: Any, what: str) -> tuple[int, int, int]:
    """Return a grid, block or cluster as three ints; LaunchError for anything else."""
    extents = three_extents(what, value, _is_integer)
    if isinstance(extents, LaunchProblem):
        raise LaunchError(extents.message, hint=extents.hint)
    x, y, z = extents
    return x.__index__(), y.__index__(), z.__index__()


def _is_integer(value: Any) -> bool:
    return hasattr(value, "__index__") and not isinstance(value, bool)


def check_configuration(
    grid: tuple[int, int, int],
    block: tuple[int, int, int],
    cluster: tuple[int, int, int],
    shared: int,
) -> None:
    """Raise LaunchError for a launch that no GPU takes. `shared` is in bytes for a block."""
    limits = LaunchLimits(smem=TARGETS[SIM].smem_per_block)
    problem = launch_problem(limits, grid, block, cluster, shared)
    if problem is not None:
        raise LaunchError(problem.message, hint=problem.hint)


def resident_blocks(threads: int, shared: int) -> int:
    """Return how many blocks of `threads` threads and `shared` bytes run on a GPU at a time."""
    return MULTIPROCESSORS * TARGETS[SIM].resident_blocks(threads, shared)


class Launch:
    """State of one launch. `call` is the generated function for the chosen width."""

    def __init__(
        self,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        layout: Layout,
        dynamic_smem: int,
        memory: Memory,
        pointers: dict[int, int],
        options: SimOptions,
        cluster: tuple[int, int, int] = (1, 1, 1),
        cooperative: bool = False,
    ) -> None:
        self.grid = grid
        self.cooperative = cooperative
        self.cluster = cluster
        self.block = block
        self.threads = block[0] * block[1] * block[2]
        self.layout = layout
        self.dynamic_smem = dynamic_smem
        self.shared_size = layout.shared_size(dynamic_smem)
        self.memory = memory.copy()
        layout.add_constants(self.memory)
        self.options = options
        self.output = Output()
        self.waited = False  # for the grid before: griddepcontrol.wait
        self.clock = 0
        self.stores = 0
        self.recent: dict[Any, Segment] = {}
        self.roots: dict[int, Segment | None] = {}
        self.aliases: dict[int, list[Segment]] = {}
        for number, address in pointers.items():
            found = self.memory.containing(address)
            self.aliases[number] = found
            self.roots[number] = found[0] if found else None

    def variable(self, address: int) -> tuple[str, int, int]:
        return self.layout.variable(address, self.dynamic_smem)

    def run(self, width: Width, call: Any, args: tuple[Any, ...], waits: bool) -> None:
        """Run every block in order; `waits` says that `call` makes a generator."""
        try:
            with np.errstate(all="ignore"):
                if width == "warp":
                    self._by_warp(call, args, waits)
                else:
                    self._in_step(call, args, many=width == "grid")
        finally:
            self.output.flush()

    def _shared(self, blocks: int) -> Segment:
        track = self.options.check_uninitialized and self.shared_size > 0
        return private_segment(
            SHARED_BASE, self.shared_size, blocks, "shared memory", "shared", track
        )

    def _by_warp(self, call: Any, args: tuple[Any, ...], waits: bool) -> None:
        shapes = [
            Lanes(self.block, first, min(WARP_SIZE, self.threads - first), 1)
            for first in range(0, self.threads, WARP_SIZE)
        ]
        clusters = (self._started(members, shapes) for members in self._clusters())
        if self.cooperative:
            self._check_fits()
            self._run(
                [group for groups in clusters for group in groups], clusters, call, args, waits
            )
        for groups in clusters:
            self._run(groups, clusters, call, args, waits)

    def _check_fits(self) -> None:
        blocks, room = math.prod(self.grid), resident_blocks(self.threads, self.shared_size)
        if blocks > room:
            raise LaunchError(
                f"a cooperative launch of {blocks} blocks: a GPU runs {room} such blocks at a time"
            )

    def _started(self, members: list[tuple[int, int, int]], shapes: list[Lanes]) -> list[Group]:
        """The groups of the blocks of one cluster."""
        order = None
        if self.options.check_races and self.shared_size:
            order = Order(len(members) * len(shapes))
        blocks = [self._block(*place, len(shapes), order) for place in enumerate(members)]
        cluster = Cluster(blocks, len(blocks) * len(shapes))
        groups = []
        for block in blocks:
            block.cluster = cluster
            groups += [self._group(shape, block, warp) for warp, shape in enumerate(shapes)]
        return groups

    def _run(
        self,
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
            warps = -(-self.threads // WARP_SIZE)
            room = warps * resident_blocks(self.threads, self.shared_size)
            more_warps = warps * math.prod(self.cluster)

            def more() -> list[tuple[Group, Any]]:
                joined = next(later, []) if len(groups) + more_warps <= room else []
                groups.extend(joined)
                return [(group, call(group, *args)) for group in joined]

            tasks = [(group, call(group, *args)) for group in groups]
            run_together(tasks, self.options.max_spins, lambda: self.stores, more)
        check_together(groups)
        for group in groups:
            group.bulk.finish(group)
            if group.races is not None and group.first_warp == 0:
                group.races.check_visits()

    def _block(
        self, rank: int, index: tuple[int, int, int], warps: int, order: Order | None
    ) -> Block:
        races = None
        if order is not None:
            races = RaceDetector(order, rank, warps, self.shared_size)
        x, y, z = index
        linear = x + self.grid[0] * (y + self.grid[1] * z)
        return Block(index, linear, self.threads, self._shared(1), races, rank)

    def _clusters(self) -> Any:
        """The block indices of each cluster, by rank: x fastest."""
        cx, cy, cz = self.cluster
        inside = list(itertools.product(range(cz), range(cy), range(cx)))
        gx, gy, gz = self.grid
        for z, y, x in itertools.product(range(0, gz, cz), range(0, gy, cy), range(0, gx, cx)):
            yield [(x + dx, y + dy, z + dz) for dz, dy, dx in inside]

    def _in_step(self, call: Any, args: tuple[Any, ...], many: bool) -> None:
        total = self.grid[0] * self.grid[1] * self.grid[2]
        batch = 1
        if many:
            batch = max(1, min(total, self.options.batch_lanes // self.threads))
            batch = min(batch, max(1, (8 << 20) // max(self.shared_size, 1)))
        gx, gy, _ = self.grid
        shape = None
        for first in range(0, total, batch):
            blocks = min(batch, total - first)
            if shape is None or shape.blocks != blocks:
                shape = Lanes(self.block, 0, self.threads, blocks)
            numbers = np.arange(first, first + blocks, dtype=np.int64)
            axes = (numbers % gx, numbers // gx % gy, numbers // (gx * gy))
            index = tuple(a.astype(np.int32) if many else int(a[0]) for a in axes)
            block = Block(index, first, self.threads, self._shared(blocks))  # type: ignore[arg-type]
            call(self._group(shape, block, 0), *args)

    def _group(self, shape: Lanes, block: Block, warp: int) -> Group:
        return Group(self, shape, block, warp)


def with_width(options: SimOptions, width: Width) -> SimOptions:
    """The same options at another width."""
    return dataclasses.replace(options, width=width)
