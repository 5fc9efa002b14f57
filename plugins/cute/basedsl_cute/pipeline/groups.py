"""Who takes part: agents, groups of them, hardware barriers among some warps of a block."""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from basedsl.errors import DSLTypeError
from basedsl_cute import arch
from basedsl_cute.algebra.ignored_location import takes_location


class Agent(enum.Enum):
    """What one arrival stands for."""

    Thread = "thread"
    Warp = "warp"


@dataclass(frozen=True)
class CooperativeGroup:
    """`size` arrivals complete a phase, each of a thread or, once for all its lanes, of a warp."""

    agent: Agent
    size: int = 1
    alignment: Any = None

    def __post_init__(self) -> None:
        if not isinstance(self.agent, Agent):
            raise DSLTypeError(f"a group is of Agent.Thread or Agent.Warp, not {self.agent!r}")
        if type(self.size) is not int or self.size < 1:
            raise DSLTypeError(f"a group has a static size from 1, not {self.size!r}")

    @contextlib.contextmanager
    def arriving(self) -> Iterator[None]:
        """Around an arrival of the group that all lanes of a warp come to."""
        if self.agent is Agent.Thread:
            yield
            return
        arch.sync_warp()  # what the other lanes did comes before it
        with arch.elect_one():
            yield


@dataclass(frozen=True)
class NamedBarrier:
    """Hardware barrier `barrier_id` (1 to 15; 0 is the whole block's) among `num_threads`. The id
    may be dynamic, but the same in all threads of a warp.
    """

    barrier_id: Any
    num_threads: int

    @takes_location
    def arrive(self) -> None:
        """Count as arrived and go on."""
        arch.barrier_arrive(self.barrier_id, self.num_threads)

    @takes_location
    def arrive_and_wait(self) -> None:
        """Wait until all threads of the barrier are here."""
        arch.barrier(self.barrier_id, self.num_threads)

    wait = arrive_and_wait


@takes_location
def sync(barrier_id: int = 0) -> None:
    """Wait for all threads of the block."""
    arch.barrier(barrier_id or None)


@takes_location
def arrive_and_wait(barrier_id: int, num_threads: int) -> None:
    """Wait for `num_threads` threads at a hardware barrier."""
    arch.barrier(barrier_id, num_threads)


def _is_cluster(shape: Any) -> bool:
    if shape is None:
        return False
    sizes = shape if isinstance(shape, Sequence) else (shape,)
    return any(type(n) is not int or n > 1 for n in sizes)


@takes_location
def pipeline_init_arrive(cluster_shape_mn: Any = None, is_relaxed: bool = True) -> None:
    """After pipelines were made with `defer_sync=True`: their barriers are initialised."""
    arch.mbarrier_init_fence()
    if _is_cluster(cluster_shape_mn):
        if is_relaxed:
            arch.cluster_arrive_relaxed()
        else:
            arch.cluster_arrive()


@takes_location
def pipeline_init_wait(cluster_shape_mn: Any = None) -> None:
    """Wait until everyone who uses the pipelines knows their barriers."""
    if _is_cluster(cluster_shape_mn):
        arch.cluster_wait()
    else:
        arch.sync_threads()
