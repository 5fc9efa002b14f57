"""Workspace of a group's collectives: symmetric memory, and the kernel and sizes for each call."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import basedsl_cute as cute
from basedsl import DSLCallError, DSLTypeError
from basedsl_cute.distributed import SymmetricTensor, simulated
from basedsl_cute.distributed.signal_pad import FAILED
from basedsl_cute.ops.distributed import collectives, lamport, norm, to_all
from basedsl_cute.ops.distributed.exchange import ExchangePlan, ring_bytes
from basedsl_cute.ops.distributed.launches import Flat, Launch, Launches

_FLOATS = (cute.Float32, cute.Float16, cute.BFloat16)
_UNROLL = 4

ALGORITHMS = ("lamport", "one_shot", "two_shot")


class Workspace:
    """The memory that collectives of one group exchange chunks through, on one rank.

    Calls with one workspace are in the same order on all ranks, and on one stream: kernels that run
    at the same time need a workspace each. `blocks` of `threads` threads are the most that a call
    takes; every rank of the group has the same. Made by `workspace` and `simulated_workspaces`.
    """

    def __init__(
        self,
        rings: SymmetricTensor,
        buffers: SymmetricTensor,
        blocks: int,
        threads: int,
        stream: Callable[[], int] = lambda: 0,
    ) -> None:
        if blocks < 1 or threads not in range(32, 1025, 32):
            raise DSLCallError(
                f"a workspace of {blocks} blocks of {threads} threads",
                hint="one block or more; threads are a multiple of 32, at most 1024",
            )
        self.rings, self.buffers = rings, buffers
        self.blocks, self.threads = blocks, threads
        self.chunk_bytes = chunk_bytes(threads)
        self._launches = Launches(stream)
        self._reports = memoryview(rings.report), memoryview(buffers.report)

    @property
    def rank(self) -> int:
        """This rank's number in the group."""
        return int(self.rings.rank)

    @property
    def num_ranks(self) -> int:
        """The number of ranks of the group."""
        return self.rings.num_ranks

    def check(self) -> None:
        """Raise PeerTimeoutError if a call that has run waited for a peer beyond its limit."""
        rings, buffers = self._reports  # of small collectives each 0.1 us counts
        if rings[FAILED] or buffers[FAILED]:
            self.rings.check()
            self.buffers.check()

    # Collectives ---------------------------------------------------------------------------------

    def all_reduce(self, x: Any, y: Any, algorithm: str | None = None) -> None:
        """Write the sum of all ranks' `x` to `y`, which may be `x`: the same bits on all ranks.

        They are contiguous arrays of one size, of Float32, Float16 or BFloat16; sums are Float32.
        `algorithm` is "lamport" (at most a vector for each thread), "one_shot" or "two_shot", by
        default chosen by the size. Raises DSLTypeError for other arrays, DSLCallError for another
        algorithm.
        """
        self.check()
        self._launches.call(self._all_reduce, (x, y), algorithm)

    def _all_reduce(self, a: Flat, b: Flat, algorithm: str | None) -> Launch | None:
        _same(a, b, "x", "y", a.count, b.count)
        if a.dtype not in _FLOATS:
            raise DSLTypeError(f"all_reduce adds Float32, Float16 and BFloat16, not {a.dtype}")
        if not a.count:
            return None
        chosen = algorithm or self._algorithm(a, b)
        if chosen not in ALGORITHMS:
            raise DSLCallError(f"{chosen!r} is no algorithm: {', '.join(ALGORITHMS)}")
        if chosen == "lamport":
            plan = _plan(a.dtype, self.threads, 1, _vector(a, b), self.chunk_bytes)
            if plan.vector_bytes != 16 or a.nbytes > self._lamport_bytes:
                raise DSLCallError(
                    f"lamport takes whole vectors of 16 bytes, at most {self._lamport_bytes} bytes"
                )
            count = a.count // plan.vector
            blocks = -(-count // plan.threads)
            return Launch(lamport.lamport, self.buffers, (count, blocks), (plan,))
        ranks = self.num_ranks
        plan = self._plan(a.dtype, _vector(a, b), a.nbytes)
        count = a.count // plan.vector
        if chosen == "one_shot":
            numbers = count, self._blocks(count, plan.chunk)
            return Launch(collectives.exchange, self.rings, numbers, (False, True, plan))
        numbers = count, self._blocks(count, plan.chunk * ranks)
        return Launch(collectives.two_shot, self.rings, numbers, (plan,))

    def all_gather(self, x: Any, y: Any) -> None:
        """Write all ranks' `x` to `y`, one after the other in the order of ranks.

        They are contiguous arrays of one element type of 8 to 64 bits.
        """
        self.check()
        self._launches.call(self._exchange, (x, y), False, False)

    def reduce_scatter(self, x: Any, y: Any) -> None:
        """Write the sum of this rank's part of all ranks' `x` to `y`: rank r has the r-th part of
        as many equal parts as there are ranks. Types are those of `all_reduce`.
        """
        self.check()
        self._launches.call(self._exchange, (x, y), True, True)

    def all_to_all(self, x: Any, y: Any) -> None:
        """Write to `y` the part of `x` that each rank has for this one, in the order of ranks: `x`
        and `y` have as many equal parts as there are ranks.
        """
        self.check()
        self._launches.call(self._exchange, (x, y), True, False)

    def _exchange(self, a: Flat, b: Flat, parts: bool, sums: bool) -> Launch | None:
        ranks = self.num_ranks
        if sums and a.dtype not in _FLOATS:
            raise DSLTypeError(f"reduce_scatter adds Float32, Float16 and BFloat16, not {a.dtype}")
        each = a.count // ranks if parts else a.count
        sent = each * ranks if parts else each
        if sent != a.count:
            raise DSLCallError(f"{a.count} elements are no {ranks} equal parts")
        _same(a, b, "x", "y", each * (1 if sums else ranks), b.count)
        if not each:
            return None
        size = a.dtype.width // 8
        vector = _vector(a, b, each * size)
        plan = self._plan(a.dtype, vector, each * size)
        count = each // vector
        numbers = count, self._blocks(count, plan.chunk)
        return Launch(collectives.exchange, self.rings, numbers, (parts, sums, plan))

    def all_to_all_rows(self, x: Any, sizes: Any, y: Any, got: Any) -> None:
        """Send `sizes[p]` rows of `x` to each rank p, in the order of ranks, and write those that
        arrive to `y`, in the order of ranks; `got[p]` says how many rank p has sent.

        `x` and `y` are contiguous, (rows, ...), with rows of the same elements; `sizes` and `got`
        are of Int32, one for each rank, in the memory of the GPU: no host needs to know them. Rows
        that `y` has no room for are not written: compare the sum of `got` with its rows.
        """
        self.check()
        self._launches.call(self._all_to_all_rows, (x, sizes, y, got))

    def _all_to_all_rows(self, a: Flat, s: Flat, b: Flat, g: Flat) -> Launch:
        ranks = self.num_ranks
        _same(a, b, "a row of x", "one of y", a.row, b.row)
        if (s.dtype, g.dtype, s.count, g.count) != (cute.Int32, cute.Int32, ranks, ranks):
            raise DSLTypeError(f"sizes and got are {ranks} Int32 each, one for each rank")
        size = a.dtype.width // 8
        vector = _vector(a, b, a.row * size)
        plan = self._plan(a.dtype, vector, a.nbytes // ranks)
        blocks = self.blocks if a.nbytes > 1 << 16 else min(self.blocks, 8)
        return Launch(to_all.to_all, self.rings, (a.row // vector, b.rows, blocks), (plan,))

    def all_reduce_norm(
        self, x: Any, residual: Any, weight: Any, y: Any, epsilon: float = 1e-6
    ) -> None:
        """Add the sum of all ranks' `x` to `residual`, in place, and write its RMSNorm to `y`:

            residual += sum of x;  y = residual / sqrt(mean(residual**2) + epsilon) * weight

        `x`, `residual` and `y` are contiguous, (rows, columns); `weight` has the columns. A row is
        at most a chunk of the workspace: 128 bytes for each thread of its blocks, by default
        32 KiB. Raises DSLTypeError for arrays that differ, DSLCallError for longer rows.
        """
        self.check()
        self._launches.call(self._all_reduce_norm, (x, residual, weight, y), epsilon)

    def _all_reduce_norm(self, a: Flat, r: Flat, v: Flat, b: Flat, epsilon: float) -> Launch | None:
        _same(a, b, "x", "y", a.count, b.count)
        _same(a, r, "x", "residual", a.count, r.count)
        _same(a, v, "a row of x", "weight", a.row, v.count)
        if a.dtype not in _FLOATS:
            raise DSLTypeError(f"all_reduce_norm adds floats of 16 or 32 bits, not {a.dtype}")
        if not a.count:
            return None
        vector = min(_vector(one, b, a.row * a.dtype.width // 8) for one in (a, r, v))
        count = a.row // vector
        every = -(-count // self.threads)  # vectors of a thread, if all of a block share a row
        together = max(1, min(every, 1024 // self.threads))  # buffers that a block fills at once
        unroll = -(-every // together)
        fits = unroll <= 2 * _UNROLL and unroll * together * a.rows <= self.blocks
        if fits and vector * a.dtype.width == 128:
            plan = _plan(a.dtype, self.threads * together, unroll, vector, self.chunk_bytes)
            numbers = a.rows, count, epsilon, a.rows
            return Launch(norm.all_reduce_norm, self.buffers, numbers, (plan, self.threads))
        threads = min(self.threads, max(32, -(-count // 32) * 32))
        unroll = -(-count // threads)
        plan = _plan(a.dtype, threads, unroll, vector, self.chunk_bytes)
        if plan.chunk * plan.vector_bytes > self.chunk_bytes:
            raise DSLCallError(f"a row of {a.row} elements is more than {self.chunk_bytes} bytes")
        numbers = a.rows, count, epsilon, min(self.blocks, a.rows)
        return Launch(norm.all_reduce_norm, self.rings, numbers, (plan, None))

    # Choices -------------------------------------------------------------------------------------

    @property
    def _lamport_bytes(self) -> int:
        return self.blocks * self.threads * 16

    def _algorithm(self, a: Flat, b: Flat) -> str:
        ranks = self.num_ranks
        small = min(self._lamport_bytes, 1 << 20 if ranks == 2 else (1 << 20) // ranks)
        if a.nbytes <= small and _vector(a, b) * a.dtype.width == 128:
            return "lamport"
        return "one_shot" if ranks == 2 or a.nbytes * ranks <= 1 << 20 else "two_shot"

    def _plan(self, dtype: Any, vector: int, nbytes: int) -> ExchangePlan:
        once = self.blocks * self.threads * vector * dtype.width // 8
        return _plan(
            dtype, self.threads, 1 if nbytes <= once else _UNROLL, vector, self.chunk_bytes
        )

    def _blocks(self, count: int, chunk: int) -> int:
        return min(self.blocks, -(-count // chunk))


@functools.cache
def _plan(dtype: Any, threads: int, unroll: int, vector: int, chunk: int) -> ExchangePlan:
    """The plan, one object for equal ones: native calls compare static arguments by identity."""
    return ExchangePlan(dtype, threads, unroll, vector, chunk)


def _same(a: Flat, b: Flat, one: str, other: str, count: int, wanted: int) -> None:
    if a.dtype is not b.dtype:
        raise DSLTypeError(f"{one} is of {a.dtype.__name__}, {other} of {b.dtype.__name__}")
    if count != wanted:
        raise DSLTypeError(f"{other} has {wanted} elements, and {one} is for {count}")


def _vector(a: Flat, b: Flat, nbytes: int | None = None) -> int:
    """The elements of the widest vectors that addresses and sizes allow."""
    size = a.dtype.width // 8
    together = 16 | a.address | b.address | (a.nbytes if nbytes is None else nbytes)
    return max(1, (together & -together) // size)


def chunk_bytes(threads: int) -> int:
    """Return the bytes of a chunk of a workspace whose blocks have `threads` threads.

    It is twice what they exchange at once: a row of `all_reduce_norm` is one chunk.
    """
    return threads * 2 * _UNROLL * 16


def sizes(ranks: int, blocks: int, threads: int) -> tuple[int, int]:
    """Return the bytes of the rings and of the buffers of a workspace."""
    return (
        ring_bytes(blocks, ranks, chunk_bytes(threads)),
        lamport.buffer_bytes(blocks, ranks, threads),
    )


def simulated_workspaces(
    world: Any, blocks: int = 4, threads: int = 32, timeout: float = 30.0
) -> list[Workspace]:
    """Make a workspace for each simulated rank of `world`."""
    rings, buffers = sizes(world.count, blocks, threads)
    first = simulated(world, rings, np.uint8, slots=blocks, timeout=timeout)
    second = simulated(
        world,
        buffers // 4,
        np.uint32,
        slots=blocks,
        timeout=timeout,
        fill=lambda rank: lamport.EMPTY,
    )
    return [Workspace(a, b, blocks, threads) for a, b in zip(first, second, strict=True)]
