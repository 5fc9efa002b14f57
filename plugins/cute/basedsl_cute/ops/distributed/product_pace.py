"""Pace of the transfers of products that communicate.

Stores to a peer that come faster than the link takes them hold up the loads of the tensor cores, by
about half of the time that the link is busy. So a transfer whose data is not needed at once takes a
part of the time that it has.
"""

from __future__ import annotations

from dataclasses import dataclass

from basedsl_cute.ops.distributed.scatter_product import Exchange
from basedsl_cute.ops.hopper.config import Config, modelled_cycles

PACE = 1.0
"""The factor of the times that transfers take; with 0 they are as fast as they can be."""

# The parts of the time until data is needed (measured between two H200s).
_PUSHED, _STORED = 0.8, 0.6
_CYCLES = 1.7  # of a nanosecond, while tensor cores work
_BITS = 16


@dataclass(frozen=True)
class Rounds:
    """The rounds of tiles of a product of `ranks` shards of `rows` x `k` with `n` x `k`, on
    `blocks` multiprocessors.
    """

    cfg: Config
    rows: int
    n: int
    k: int
    ranks: int
    blocks: int

    @property
    def of_a_shard(self) -> int:
        """The clusters that the tiles of a shard take."""
        (m, n, _), (cm, cn) = self.cfg.tile, self.cfg.cluster
        return -(-self.rows // (m * cm)) * -(-self.n // (n * cn))

    @property
    def count(self) -> int:
        """The number of rounds."""
        cm, cn = self.cfg.cluster
        return -(-self.of_a_shard * self.ranks // max(1, self.blocks // (cm * cn)))

    @property
    def resident(self) -> int:
        """The clusters of a round."""
        return -(-self.of_a_shard * self.ranks // self.count)

    @property
    def nanoseconds(self) -> float:
        """The time of a round."""
        extents = self.rows * self.ranks, self.n, self.k
        cycles = modelled_cycles(self.cfg, *extents, _BITS, self.blocks, _BITS)
        return cycles / _CYCLES / self.count


def push_pace(rounds: Rounds, chunks: int, pace: float) -> int:
    """Return the nanoseconds from one of the `chunks` of a shard to the next one: the first peer's
    tiles come after the rounds of this rank's own, less half a round for what is on its way.
    """
    before = max(0.0, rounds.of_a_shard // rounds.resident - 0.5)
    return int(pace * _PUSHED * before * rounds.nanoseconds / chunks)


def store_pace(rounds: Rounds, pace: float) -> tuple[int, int]:
    """Return the nanoseconds, and the steps of K of a tile that stays in registers, from one stored
    piece of a tile to the next: 0 and 1 if some peer's tiles are in the last round.
    """
    peers = rounds.of_a_shard * (rounds.ranks - 1)
    if not pace or peers > (rounds.count - 1) * rounds.resident:
        return 0, 1
    cfg = rounds.cfg
    m, n, k = cfg.tile
    pieces = m // cfg.rows_per_mma * -(-n // 64)
    if not cfg.defers(_BITS):
        return int(pace * _STORED * rounds.nanoseconds / pieces), 1
    steps = int(pace * _STORED * (-(-rounds.k // k) - Exchange.delay)) // pieces
    return 0, max(1, 1 << max(0, steps.bit_length() - 1))
