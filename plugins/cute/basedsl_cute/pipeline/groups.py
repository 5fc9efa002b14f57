"""Participants of pipelines: agents, groups of them, and hardware barriers among warps of a
block.
"""

from __future__ import annotations

import contextlib
import enum
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from basedsl import DSLTypeError, Integer
from basedsl_cute import algebra, arch
from basedsl_cute.algebra.ignored_location import takes_location


class Agent(enum.Enum):
    """The unit that arrives at a barrier: each thread by itself, or each warp once for its 32
    lanes; a block or a cluster for `agent_sync`.
    """

    Thread = "thread"
    Warp = "warp"
    ThreadBlock = "block"
    ThreadBlockCluster = "cluster"


@dataclass(frozen=True)
class CooperativeGroup:
    """A group of `size` threads or warps, each of which arrives once to complete a phase of a
    barrier.

    - `agent`: `Agent.Thread` or `Agent.Warp`; of a warp, one lane arrives for all.
    - `size`: a static number of agents, from 1.
    - `alignment`: accepted and not used.

    Raises DSLTypeError for another agent or size.
    """

    agent: Agent
    size: int = 1
    alignment: Any = None

    def __post_init__(self) -> None:
        if self.agent not in (Agent.Thread, Agent.Warp):
            raise DSLTypeError(f"a group is of Agent.Thread or Agent.Warp, not {self.agent!r}")
        if type(self.size) is float and self.size.is_integer():  # such as threads / 32
            object.__setattr__(self, "size", int(self.size))
        if type(self.size) is not int or self.size < 1:
            raise DSLTypeError(f"a group has a static size from 1, not {self.size!r}")

    @contextlib.contextmanager
    def arriving(self) -> Iterator[None]:
        """Return a context around an arrival of the group that all lanes of a warp execute."""
        if self.agent is Agent.Thread:
            yield
            return
        arch.sync_warp()  # what the other lanes did comes before it
        with arch.elect_one():
            yield


@dataclass(frozen=True)
class NamedBarrier:
    """A hardware barrier of the block among some of its warps (PTX `barrier.cta`).

    - `barrier_id`: 1 to 15 (0 is `sync_threads()`); may be dynamic, but the same in all threads of
      a warp.
    - `num_threads`: the number of threads that arrive, a multiple of 32.
    """

    barrier_id: Any
    num_threads: int

    @takes_location
    def arrive(self) -> None:
        """Arrive at the barrier and go on (PTX `barrier.cta.arrive`)."""
        arch.barrier_arrive(self.barrier_id, self.num_threads)

    @takes_location
    def arrive_and_wait(self) -> None:
        """Wait until all `num_threads` threads have arrived (PTX `barrier.cta.sync`)."""
        arch.barrier(self.barrier_id, self.num_threads)

    wait = arrive_and_wait


@takes_location
def sync(barrier_id: int = 0) -> None:
    """Wait until all threads of the block have arrived at the hardware barrier `barrier_id`."""
    arch.barrier(barrier_id or None)


@takes_location
def arrive_and_wait(barrier_id: int | Integer, num_threads: int | Integer) -> None:
    """Wait until `num_threads` threads have arrived at the hardware barrier `barrier_id`."""
    arch.barrier(barrier_id, num_threads)


def _is_cluster(shape: Any) -> bool:
    """Return True if a cluster's shape has more than one block, or is not known to have one."""
    if shape is None:
        return False
    if isinstance(shape, algebra.Layout):
        shape = algebra.size(shape)
    sizes = shape if isinstance(shape, Sequence) else (shape,)
    return any(type(n) is not int or n > 1 for n in sizes)


@takes_location
def pipeline_init_arrive(cluster_shape_mn: Any = None, is_relaxed: bool = True) -> None:
    """Arrive after making pipelines with `defer_sync=True`: release their initialised barriers.

    Every thread calls it once for all its pipelines, and `pipeline_init_wait` with the same
    cluster shape before it uses one. `cluster_shape_mn` is the launch's cluster, None for none;
    `is_relaxed` arrives at the cluster's barrier without ordering other memory.
    """
    arch.mbarrier_init_fence()
    if _is_cluster(cluster_shape_mn):
        if is_relaxed:
            arch.cluster_arrive_relaxed()
        else:
            arch.cluster_arrive()


@takes_location
def pipeline_init_wait(cluster_shape_mn: Any = None) -> None:
    """Wait until the barriers of all pipelines are initialised: see `pipeline_init_arrive`.

    `cluster_shape_mn` is the shape, or the layout, of the cluster's blocks; None for one block.
    """
    if _is_cluster(cluster_shape_mn):
        arch.cluster_wait()
    else:
        arch.sync_threads()
