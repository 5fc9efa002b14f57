"""What the Hopper GEMM chooses at compile time, and which of it is fast where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import basedsl_cute as cute
from basedsl.errors import DSLTypeError
from basedsl_cute.hardware.targets import REGISTERS_PER_SM, TARGETS

__all__ = [
    "CANDIDATES",
    "DEFAULT",
    "IN_BETWEEN",
    "SHARED_MEMORY",
    "Config",
    "Kinds",
    "check",
    "choose",
    "weighed",
]

SHARED_MEMORY = TARGETS["sm_90a"].smem_per_block  # bytes


@dataclass(frozen=True)
class Config:
    """What is chosen at compile time. Unequal ones compute the same, but for the order of sums."""

    tile: tuple[int, int, int] = (128, 256, 64)  # of C, and the step of K: (M, N, K) in elements
    stages: int = 4  # of A and B in shared memory
    consumers: int = 2  # warpgroups that multiply
    takes_turns: bool = False  # each consumer has tiles of its own
    cluster: tuple[int, int] = (1, 1)  # blocks along (M, N) that multicast B and A to each other
    swizzle: int = 8  # tiles in a band of the raster, see `utils.tile_scheduler`
    along_m: bool = True  # the direction of the raster within a band
    slots: int = 2  # pieces of C in shared memory, for each consumer
    deferred: bool = False  # C leaves while the next tile is multiplied, if registers hold both
    overlap: bool = True  # programmatic dependent launch: begins while its predecessor ends
    producer_registers: int = 24

    def __post_init__(self) -> None:
        m, n, k = self.tile
        rows = self.rows_of_a_step
        if m % rows or n % 8 or k % 8 or not (rows <= m <= 256 and 8 <= n <= 256 and 8 <= k):
            raise ValueError(
                f"no tile {self.tile} for {self.consumers} consumer(s): M is a multiple of "
                f"{rows} and N one of 8, both up to 256; K is one of 8"
            )
        if not 1 <= self.consumers <= 3 or self.stages < 2 or self.slots < 1:
            raise ValueError(f"{self}: 1 to 3 consumers, stages from 2, slots from 1")

    @property
    def sharers(self) -> int:
        """How many consumers work on one tile."""
        return 1 if self.takes_turns else self.consumers

    @property
    def rows_of_a_step(self) -> int:
        return 64 * self.sharers

    @property
    def threads(self) -> int:
        return 128 * (self.consumers + 1)

    @property
    def consumer_registers(self) -> int:
        """Registers of a consumer's thread: its share of what the block was launched with (PTX
        ISA, "setmaxnreg": a multiple of 8).
        """
        launched = REGISTERS_PER_SM // self.threads // 8 * 8 * (self.consumers + 1)
        return min(240, (launched - self.producer_registers) // self.consumers // 8 * 8)

    def defers(self, bits: int) -> bool:
        """Whether a tile of C, of elements of `bits`, waits in registers until the next is begun:
        beside it and the sums, a consumer's thread has 40 registers or more.
        """
        sums = self.tile[0] // self.rows_of_a_step * self.tile[1] // 2
        elements = sums * bits // 32
        fits = sums + elements + 40 <= self.consumer_registers
        return self.deferred and not self.takes_turns and fits

    def piece(self, dtype: Any) -> tuple[int, int]:
        """(M, N) of what a consumer stores at once: rows of 128 bytes, if the tile's N divides
        into such, or less, in whole instructions' columns and whole 16 bytes.
        """
        unit = max(8, 128 // dtype.width)
        fits = [n for n in range(unit, 1024 // dtype.width + 1, unit) if self.tile[1] % n == 0]
        if not fits:
            raise DSLTypeError(
                f"C of {dtype.__name__} goes by {unit} columns; a tile has {self.tile[1]}",
                hint=f"take a tile whose N is a multiple of {unit}",
            )
        return 64, fits[-1]

    def smem_bytes(self, kinds: Kinds) -> int:
        """Shared memory of a block."""
        m, n, k = self.tile
        rows, columns = self.piece(kinds.c)
        loads = self.stages * (m * kinds.a.width + n * kinds.b.width) * k // 8
        return 2048 + loads + self.slots * self.consumers * rows * columns * kinds.c.width // 8


@dataclass(frozen=True)
class Kinds:
    """What the operands are: element types, and which mode is contiguous."""

    a: Any
    b: Any
    c: Any
    major_a: Any
    major_b: Any
    major_c: Any
    is_batched: bool = False

    @property
    def acc(self) -> Any:
        return cute.Int32 if self.a.is_integer else cute.Float32


DEFAULT = Config()

# What `choose` weighs: tiles of C with clusters, stages and slots; whether consumers take turns.
CANDIDATES: tuple[dict[str, Any], ...] = (
    {"tile": (128, 128), "cluster": (2, 1), "stages": 6, "takes_turns": True, "swizzle": 16},
    {"tile": (128, 256), "cluster": (2, 1), "stages": 4, "along_m": False, "deferred": True},
    {"tile": (128, 128), "stages": 6, "takes_turns": True},
    {"tile": (64, 128), "cluster": (2, 1), "stages": 8, "takes_turns": True},
    {"tile": (64, 128), "stages": 8, "takes_turns": True},
    {"tile": (64, 64), "stages": 10, "takes_turns": True},
)
# Another, worth being compiled too where tiles of those leave many multiprocessors out.
IN_BETWEEN: tuple[dict[str, Any], ...] = (
    {"tile": (128, 192), "cluster": (2, 1), "stages": 4, "along_m": False, "deferred": True},
)
# Bytes a cycle that each multiprocessor gets from L2 when all of them load: of operands that stay
# there, which half of an H200's 50 MB can, and of others. Measured by what is fast where.
_FROM_L2 = (56, 44)
_KEPT_IN_L2 = 25e6
_EPILOGUE = 1 / 16  # cycles for an element of C


def choose(m: int, n: int, k: int, bits: int, blocks: int, bits_of_c: int = 16) -> Config:
    """A configuration for a product of elements of `bits` on a GPU of `blocks` multiprocessors."""
    return weighed(m, n, k, bits, blocks, bits_of_c)[1]


def weighed(
    m: int,
    n: int,
    k: int,
    bits: int,
    blocks: int,
    bits_of_c: int = 16,
    candidates: tuple[dict[str, Any], ...] = CANDIDATES,
) -> tuple[float, Config]:
    """The best of `candidates`, and the cycles that it takes.

    The one that takes the fewest cycles by a model: so many tiles in turn on each multiprocessor,
    and for each step of 128 bytes of K the multiplications (wgmma does 64 x 256 x 32 bytes in 128
    cycles) or the loads from L2, whichever take longer; and the epilogue of the last tile, or of
    all of them where none is multiplied meanwhile.
    """
    steps = -(-k * bits // 1024)
    from_l2 = _FROM_L2[(m + n) * k * bits / 8 > _KEPT_IN_L2]

    def cycles(cfg: Config) -> float:
        rows, columns, _ = cfg.tile
        cm, cn = cfg.cluster
        clusters = -(-m // (rows * cm)) * -(-n // (columns * cn))
        rounds = -(-clusters // max(1, blocks // (cm * cn)))
        loads = 128 * (rows / cn + columns / cm) / from_l2
        tile = steps * max(rows * columns / 32, loads)
        out = rows * columns * _EPILOGUE
        if cfg.takes_turns or cfg.defers(bits_of_c):
            return rounds * max(tile, out) + out
        return rounds * (tile + out)

    made = (Config(**c | {"tile": (*c["tile"], 1024 // bits)}) for c in candidates)
    return min(((cycles(cfg), cfg) for cfg in made), key=lambda found: found[0])


def check(kinds: Kinds, cfg: Config) -> None:
    """DSLTypeError where a block of this configuration does not fit."""
    wanted = cfg.smem_bytes(kinds)
    if wanted > SHARED_MEMORY:
        raise DSLTypeError(
            f"{cfg} takes {wanted} bytes of shared memory; a block has {SHARED_MEMORY}",
            hint="fewer stages, fewer slots, or a smaller tile",
        )
