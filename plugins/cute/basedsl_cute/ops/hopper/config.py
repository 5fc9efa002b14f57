"""The static configuration of the Hopper GEMM, and a model of which one is fastest."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import basedsl_cute as cute
from basedsl import DSLTypeError
from basedsl_cute.hardware.targets import REGISTERS_PER_SM, TARGETS

__all__ = [
    "CANDIDATES",
    "DEFAULT",
    "EXTRA_CANDIDATES",
    "SHARED_MEMORY",
    "Config",
    "HopperGemmKinds",
    "check_config",
    "choose_config",
    "every_config",
    "fastest_config",
    "modelled_cycles",
]

SHARED_MEMORY = TARGETS["sm_90a"].smem_per_block  # bytes


@dataclass(frozen=True)
class Config:
    """The static configuration of the kernel. It decides speed, and the order of additions only.

    Raises ValueError for a tile that the consumers' wgmma instructions do not divide.
    """

    tile: tuple[int, int, int] = (128, 256, 64)  # (M, N) of C and the step of K, in elements
    stages: int = 4  # tiles of A and B in shared memory
    consumers: int = 2  # warpgroups that multiply
    pingpong: bool = False  # each consumer has tiles of its own, and they multiply in turn
    cluster: tuple[int, int] = (1, 1)  # blocks along (M, N) that multicast B and A to each other
    swizzle: int = 8  # tiles in a band of the raster, see `utils.tile_scheduler`
    along_m: bool = True  # the direction of the raster within a band
    slots: int = 2  # pieces of C in shared memory, for each consumer
    deferred: bool = False  # store C while the next tile is multiplied, if registers hold both
    overlap: bool = True  # programmatic dependent launch: starts while the preceding kernel ends
    producer_registers: int = 24  # of each thread of the producer's warpgroup
    whole: bool = False  # wait once for all pieces of a tile, which have a slot each, not for each
    by_warps: bool = False  # each warp stores its rows of a row-major C itself, without TMA
    promotion: int = 256  # bytes that a load brings into L2 at least, or 0
    swap: bool = False  # C^T = B A^T: the tile's rows are columns of C
    apart: int = 1  # clusters that follow each other in the raster are so many apart in the grid

    def __post_init__(self) -> None:
        m, n, k = self.tile
        rows = self.rows_per_mma
        if m % rows or n % 8 or k % 8 or not (rows <= m <= 256 and 8 <= n <= 256 and 8 <= k):
            raise ValueError(
                f"no tile {self.tile}: M is a multiple of {rows}, N and K of 8, M and N at most 256"
            )
        if not 1 <= self.consumers <= 3 or self.stages < 2 or min(self.slots, self.apart) < 1:
            raise ValueError(f"{self}: 1 to 3 consumers, stages from 2, slots and apart from 1")
        if self.deferred and (self.whole or self.by_warps):
            raise ValueError(f"{self}: pieces that are stored later are not stored at once")

    @property
    def warpgroups_per_tile(self) -> int:
        """The number of consumers that work on one tile."""
        return 1 if self.pingpong else self.consumers

    @property
    def rows_per_mma(self) -> int:
        """Rows of C that all consumers of a tile multiply by one wgmma each."""
        return 64 * self.warpgroups_per_tile

    @property
    def threads(self) -> int:
        return 128 * (self.consumers + 1)

    @property
    def consumer_registers(self) -> int:
        """Registers of a consumer's thread: its share of the block's registers at launch, without
        the producer's (PTX ISA, "setmaxnreg": a multiple of 8; one thread can use 255).
        """
        launched = REGISTERS_PER_SM // self.threads // 8 * 8 * (self.consumers + 1)
        return min(240, (launched - self.producer_registers) // self.consumers // 8 * 8)

    def defers(self, bits: int) -> bool:
        """True if a tile of C, in elements of `bits` bits, stays in registers while the next tile
        is multiplied: if 40 registers of a consumer's thread are left beside both.
        """
        sums = self.tile[0] // self.rows_per_mma * self.tile[1] // 2
        elements = sums * bits // 32
        fits = sums + elements + 40 <= self.consumer_registers
        return self.deferred and not self.pingpong and fits

    def piece(self, dtype: Any) -> tuple[int, int]:
        """(M, N) of the piece of C that a consumer stores at once, in elements: 64 rows of 128
        bytes, or of the largest power of two columns, at least 8 and 16 bytes, that divides the
        tile's N.

        Raises DSLTypeError if none does.
        """
        unit = max(8, 128 // dtype.width)
        widths = (n for n in (8, 16, 32, 64, 128) if unit <= n <= 1024 // dtype.width)
        # Powers of two: ptxas serialises the wgmma of a thread with vectors of other lengths.
        fits = [n for n in widths if self.tile[1] % n == 0]
        if not fits:
            raise DSLTypeError(
                f"a tile of {self.tile[1]} columns cannot be stored as {dtype.__name__}",
                hint=f"take a tile whose N is a multiple of {unit}",
            )
        return 64, fits[-1]

    def pieces(self, dtype: Any) -> int:
        """The pieces of a tile that a consumer stores."""
        return self.tile[0] // self.rows_per_mma * (self.tile[1] // self.piece(dtype)[1])

    def smem_bytes(self, kinds: HopperGemmKinds) -> int:
        """Shared memory of a block, in bytes."""
        m, n, k = self.tile
        rows, columns = self.piece(kinds.c)
        loads = self.stages * (m * kinds.a.width + n * kinds.b.width) * k // 8
        stores = self.slots * self.consumers * rows * columns * kinds.c.width // 8
        return 2048 + int(loads + stores)


@dataclass(frozen=True)
class HopperGemmKinds:
    """Element types and contiguous modes (`LayoutEnum`) of A, B and C, and whether they have
    batches.
    """

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

# The configurations that `choose_config` compares; K of the tile follows from the element type.
CANDIDATES: tuple[dict[str, Any], ...] = (
    {"tile": (128, 128), "cluster": (2, 1), "stages": 6, "pingpong": True, "swizzle": 16},
    {"tile": (128, 256), "cluster": (2, 1), "stages": 4, "along_m": False, "deferred": True},
    {"tile": (128, 128), "stages": 6, "pingpong": True},
    {"tile": (64, 128), "cluster": (2, 1), "stages": 8, "pingpong": True},
    {"tile": (64, 128), "stages": 8, "pingpong": True},
    {"tile": (64, 64), "stages": 10, "pingpong": True},
)
# Worth being compiled where the tiles of `CANDIDATES` leave many multiprocessors idle.
EXTRA_CANDIDATES: tuple[dict[str, Any], ...] = (
    {"tile": (128, 192), "cluster": (2, 1), "stages": 5, "slots": 1, "along_m": False,
     "deferred": True},
)  # fmt: skip
# Bytes a cycle that each multiprocessor gets from L2 when all of them load: of operands that stay
# resident in L2, which half of an H200's 50 MB can, and of larger ones. Fitted to measurements.
_L2_BYTES_PER_CYCLE = (56, 44)
_L2_RESIDENT_BYTES = 25e6
_EPILOGUE_CYCLES = 1 / 16  # cycles of the epilogue for an element of C


def choose_config(m: int, n: int, k: int, bits: int, blocks: int, bits_of_c: int = 16) -> Config:
    """The fastest of `CANDIDATES` by the model of `fastest_config`, with the same parameters."""
    return fastest_config(m, n, k, bits, blocks, bits_of_c)[1]


def fastest_config(
    m: int,
    n: int,
    k: int,
    bits: int,
    blocks: int,
    bits_of_c: int = 16,
    candidates: tuple[dict[str, Any], ...] = CANDIDATES,
) -> tuple[float, Config]:
    """The cycles and the configuration of the fastest of `candidates`, by a model.

    (m, n, k) are the extents of the product of elements of `bits` bits into C of `bits_of_c`, and
    `blocks` the number of multiprocessors. The time is the number of rounds of tiles on each
    multiprocessor times the time of a tile. For each step of 128 bytes of K that is the longer of
    the multiplication (wgmma multiplies 64 x 256 x 32 bytes in 128 cycles) and the loads from L2.
    The epilogue is added for the last tile, or for all where nothing overlaps it.
    """
    made = (Config(**c | {"tile": (*c["tile"], 1024 // bits)}) for c in candidates)
    timed = ((modelled_cycles(cfg, m, n, k, bits, blocks, bits_of_c), cfg) for cfg in made)
    return min(timed, key=lambda found: found[0])


def modelled_cycles(
    cfg: Config,
    m: int,
    n: int,
    k: int,
    bits: int,
    blocks: int,
    bits_of_c: int = 16,
    loaded_columns: float = 0,
) -> float:
    """The cycles of a product by the model of `fastest_config`, with the same parameters. The loads
    of a tile of B take as long as those of `loaded_columns`, if given.
    """
    steps = -(-k * bits // 1024)
    from_l2 = _L2_BYTES_PER_CYCLE[(m + n) * k * bits / 8 > _L2_RESIDENT_BYTES]
    rows, columns, _ = cfg.tile
    cm, cn = cfg.cluster
    clusters = -(-m // (rows * cm)) * -(-n // (columns * cn))
    rounds = -(-clusters // max(1, blocks // (cm * cn)))
    loads = 128 * (rows / cn + (loaded_columns or columns) / cm) / from_l2
    tile = steps * max(rows * columns / 32, loads)
    # Narrow pieces of C are as many barriers as wide ones.
    width = min(64, columns & -columns)
    out = rows * columns * _EPILOGUE_CYCLES * 64 / width
    if cfg.pingpong or cfg.defers(bits_of_c):
        return rounds * max(tile, out) + out
    return rounds * (tile + out)


@functools.cache
def every_config(bits: int) -> tuple[Config, ...]:
    """All configurations worth measuring, for operands of `bits` bits into a C of 16: tiles of any
    width, with as many stages as fit, alone and in clusters of two.
    """
    return tuple(
        filled_config(rows, columns, bits, consumers, pingpong, cluster)
        for rows, consumers, pingpong, widest in _SHAPES
        for columns in range(64, widest + 1, 16)
        for cluster in ((1, 1), (2, 1), (1, 2))
    )


def filled_config(
    rows: int,
    columns: int,
    bits: int,
    consumers: int,
    pingpong: bool = False,
    cluster: tuple[int, int] = (1, 1),
) -> Config:
    """The configuration of a tile with as many stages as fit beside the slots of a C of 16 bits.

    Each consumer has two slots, or one where that makes room for one of four stages: pieces that
    are stored a step of K apart need no more. Where consumers take turns, as many stages as fit
    beside slots of 128 bytes a row: more were not faster.
    """
    room, stage = SHARED_MEMORY - 2048, (rows + columns) * 128
    slot = consumers * 64 * 2  # bytes of a slot of one column, of all consumers
    width = 64 if pingpong else min(64, columns & -columns)
    slots, stages = 2, (room - 2 * width * slot) // stage
    if not pingpong and (consumers == 3 or stages < 5) and (room - width * slot) // stage > stages:
        slots, stages = 1, stages + 1
    return Config(
        (rows, columns, 1024 // bits),
        min(stages, 10),
        consumers,
        pingpong,
        cluster,
        along_m=pingpong,
        slots=slots,
        deferred=not pingpong,
    )


# Rows of a tile, warpgroups that multiply, whether in turn, and the most columns: those whose sums
# stay in registers.
_SHAPES = ((64, 2, True, 256), (128, 2, True, 128), (128, 2, False, 256), (192, 3, False, 160),
           (256, 2, False, 128))  # fmt: skip


def check_config(kinds: HopperGemmKinds, cfg: Config) -> None:
    """Raise DSLTypeError for a configuration that exceeds a block's shared memory, whose slots are
    too few for `whole`, or that would still have to exchange A and B, as `gemm` alone does.
    """
    if cfg.swap:
        raise DSLTypeError(
            "this kernel does not compute C^T = B A^T", hint="pass a config with swap=False"
        )
    if cfg.whole and cfg.slots < cfg.pieces(kinds.c):
        raise DSLTypeError(
            f"a tile of {cfg.tile[:2]} has {cfg.pieces(kinds.c)} pieces, and {cfg.slots} slots",
            hint=f"slots={cfg.pieces(kinds.c)}",
        )
    wanted = cfg.smem_bytes(kinds)
    if wanted > SHARED_MEMORY:
        raise DSLTypeError(
            f"{cfg} takes {wanted} bytes of shared memory; a block has {SHARED_MEMORY}",
            hint="fewer stages, fewer slots, or a smaller tile",
        )
