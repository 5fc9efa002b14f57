"""The static configuration of the Blackwell GEMM, and a model of which one is fastest.

The model is on paper: rates that NVIDIA has published, no measurement. `bench/blackwell_model.py`
prints it for chosen problems.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from basedsl import DSLTypeError
from basedsl_cute import Int8
from basedsl_cute.hardware.targets import TARGETS
from basedsl_cute.hardware.tensor_memory import TMEM_COLUMNS

__all__ = [
    "CANDIDATES",
    "DEFAULT",
    "SCALED",
    "Config",
    "check_config",
    "choose_config",
    "tile_time",
]

SHARED_MEMORY = TARGETS["sm_100a"].smem_per_block  # bytes
_RESERVED = 2048  # bytes of barriers, the response, and alignment
K_BYTES = 128  # of a step of K: rows as wide as the widest swizzle


@dataclass(frozen=True)
class Config:
    """The static configuration of the kernel. It decides speed, and the order of additions only.

    Raises ValueError for tiles that two stages of accumulators do not fit in tensor memory with.
    """

    tile: tuple[int, int] = (256, 256)  # (M, N) of C that one tcgen05.mma multiplies
    pair: bool = True  # two blocks multiply a tile together
    cluster: tuple[int, int] = (2, 1)  # blocks along (M, N)
    stages: int = 0  # of A and B in shared memory; 0 for as many as there is room for
    acc_stages: int = 2  # of accumulators: the epilogue of a tile hides behind the next one
    c_stages: int = 2  # parts of C in shared memory
    dynamic: bool = True  # cluster launch control; else a static schedule of resident clusters
    swizzle: int = 1  # tiles in a band of the raster, see `utils.tile_scheduler`

    def __post_init__(self) -> None:
        m, n = self.tile
        rows = (128, 256) if self.pair else (64, 128)
        if m not in rows or n % 16 or not 16 <= n <= 256:
            raise ValueError(f"{self}: M of a tile is {rows[0]} or {rows[1]}, N 16 to 256 by 16")
        if self.pair and m == 128 and n & (n - 1):
            raise ValueError(f"{self}: pairs of 64 rows have N of 16, 32, 64, 128 or 256")
        if self.pair and self.cluster[0] % 2:
            raise ValueError(f"{self}: the cluster of pairs has an even number of blocks along M")
        if self.columns > TMEM_COLUMNS:
            raise ValueError(f"{self}: {self.columns} columns of tensor memory: {TMEM_COLUMNS}")

    @property
    def blocks(self) -> int:
        """The blocks of one MMA."""
        return 2 if self.pair else 1

    @property
    def columns(self) -> int:
        """The columns of tensor memory that all accumulators take."""
        each = self.tile[1] // 2 if self.pair and self.tile[0] == 128 else self.tile[1]
        return each * self.acc_stages

    @property
    def block_tile(self) -> tuple[int, int]:
        """The (M, N) of C that one block stores."""
        return self.tile[0] // self.blocks, self.tile[1]

    def factors(self, vector: int) -> tuple[int, int]:
        """The scale factors of a step of A and of B that a block has, one for `vector` elements; 0
        is without. Vectors of 16 are of 4-bit elements, those of 32 of at least 4 bits.
        """
        if not vector:
            return 0, 0
        of_row = 256 // vector  # that tensor memory has room for
        return self.block_tile[0] * of_row, -(-self.tile[1] // 128) * 128 * of_row

    def stage_bytes(self, vector: int = 0) -> int:
        """The bytes of a stage of A and B with their scale factors."""
        m, n = self.block_tile
        return (m + n // self.blocks) * K_BYTES + sum(self.factors(vector))

    def ab_stages(self, c_bytes: int, vector: int = 0) -> int:
        """The stages of A and B beside `c_bytes` of C, see `factors` for `vector`."""
        if self.stages:
            return self.stages
        room = SHARED_MEMORY - _RESERVED - c_bytes
        return min(12, room // (self.stage_bytes(vector) + 16))


class BlackwellGemmKinds(NamedTuple):
    """Element types and contiguous modes (`LayoutEnum`) of A, B and C, the accumulators, and the
    scale factors of A and B.
    """

    a: Any
    b: Any
    c: Any
    major_a: Any
    major_b: Any
    major_c: Any
    acc: Any
    scale: Any = None  # the type of scale factors, None without
    vector: int = 0  # elements of A or B that share one
    form: Any = None  # the block-scaled format of C, see `ops.blackwell.quantize`

    @property
    def stored(self) -> tuple[Any, Any]:
        """The types of A and B in shared memory: beside wider ones, 4-bit elements have a byte."""
        is_mixed = self.a.width != self.b.width
        made = tuple(Int8 if is_mixed and x.width < 8 else x for x in (self.a, self.b))
        return made[0], made[1]


DEFAULT = Config()
CANDIDATES = (
    Config((256, 256), True, (2, 1)),
    Config((256, 128), True, (2, 1)),
    Config((128, 128), False, (1, 1)),
    Config((128, 64), False, (1, 1)),
)


SCALED = (  # candidates with scale factors, which leave room for 384 columns of accumulators
    Config((256, 256), True, (2, 1), acc_stages=1),
    Config((256, 128), True, (2, 1)),
    Config((128, 128), False, (1, 1)),
)


def check_config(cfg: Config, c_bytes: int, vector: int = 0) -> None:
    """Raise DSLTypeError for a configuration that exceeds a block's shared memory, or with scale
    factors its tensor memory.
    """
    stages = cfg.ab_stages(c_bytes, vector)
    wanted = stages * cfg.stage_bytes(vector) + c_bytes + _RESERVED
    if vector:
        _check_scaled(cfg, vector)
    if wanted > SHARED_MEMORY or stages < 2:
        raise DSLTypeError(
            f"{cfg} takes {wanted} bytes of shared memory; a block has {SHARED_MEMORY}",
            hint="fewer stages, or a smaller tile",
        )


def _check_scaled(cfg: Config, vector: int) -> None:
    m, n = cfg.tile
    if m != 128 * cfg.blocks or n not in (128, 256):
        raise DSLTypeError(
            f"a tile of {m} x {n} has no scale factors",
            hint=f"with scale factors M is {128 * cfg.blocks}, and N is 128 or 256",
        )
    columns = cfg.columns + sum(cfg.factors(vector)) // 128
    if columns > TMEM_COLUMNS:
        raise DSLTypeError(
            f"{cfg} takes {columns} columns of tensor memory; there are {TMEM_COLUMNS}",
            hint="acc_stages=1, or a smaller tile",
        )


# The model ----------------------------------------------------------------------------------------

MULTIPROCESSORS = 148  # of a B200, whose numbers follow
CLOCK = 1.85e9  # cycles a second
# Multiply-adds of a multiprocessor a cycle, by the bits of an element: 2.25, 4.5 and 9 dense PFLOPS
# (NVIDIA, "DGX B200" data sheet) over 148 multiprocessors.
MACS_PER_CYCLE = {32: 2048, 16: 4096, 8: 8192, 4: 16384}
L2_BYTES_PER_CYCLE = 64  # that a multiprocessor loads from L2
MEMORY_BANDWIDTH = 8e12  # bytes a second (the same data sheet)
_EPILOGUE_ELEMENTS = 64  # elements that the epilogue of a block stores a cycle
LAUNCH_SECONDS = 3e-6


class TileTime(NamedTuple):
    """Cycles that a tile takes by each of what works on it at the same time, and which is most."""

    tensor_cores: float
    loads: float
    epilogue: float

    @property
    def bound(self) -> str:
        """The name of the slowest part."""
        return max(self._fields, key=lambda name: getattr(self, name))

    @property
    def cycles(self) -> float:
        """The cycles of a tile behind others."""
        return max(self)


def tile_time(
    cfg: Config, k: int, bits: int, bits_of_c: int = 16, vector: int = 0
) -> TileTime:  # fmt: skip
    """Return the cycles of one tile of the whole extent `k`, for elements of `bits`, of which each
    `vector` share a scale factor of a byte; 0 is without.
    """
    m, n = cfg.tile
    own_m, own_n = cfg.block_tile
    macs = m * n * k / cfg.blocks
    in_m, in_n = cfg.cluster[0] // cfg.blocks, cfg.cluster[1]
    # A comes once for the blocks along N of a cluster, B once for those along M.
    each = bits / 8 + (1 / vector if vector else 0)
    loaded = (own_m / in_n + own_n / cfg.blocks / in_m) * k * each
    stored = own_m * own_n / _EPILOGUE_ELEMENTS * max(1, bits_of_c / 16)
    return TileTime(macs / MACS_PER_CYCLE[bits], loaded / L2_BYTES_PER_CYCLE, stored)


def gemm_seconds(
    cfg: Config, m: int, n: int, k: int, bits: int, bits_of_c: int = 16, batches: int = 1,
    processors: int = MULTIPROCESSORS, vector: int = 0,
) -> float:  # fmt: skip
    """Return the seconds of a product by the model: rounds of tiles, the last epilogue, a launch;
    at least those of the memory's bytes.
    """
    one = tile_time(cfg, k, bits, bits_of_c, vector)
    rows, columns = cfg.tile
    tiles = -(-m // rows) * -(-n // columns) * batches
    rounds = -(-tiles // max(1, processors // cfg.blocks))
    # With one stage of accumulators an epilogue begins when nothing is multiplied.
    cycles = rounds * (one.cycles + (one.epilogue if cfg.acc_stages == 1 else 0)) + one.epilogue
    moved = batches * ((m + n) * k * bits + m * n * bits_of_c) / 8
    return max(cycles / CLOCK, moved / MEMORY_BANDWIDTH) + LAUNCH_SECONDS


def choose_config(
    m: int, n: int, k: int, bits: int, processors: int = MULTIPROCESSORS, batches: int = 1,
    bits_of_c: int = 16, candidates: Sequence[Config] = CANDIDATES, vector: int = 0,
) -> Config:  # fmt: skip
    """Return the fastest of the candidates by the model."""
    return min(
        candidates,
        key=lambda cfg: gemm_seconds(cfg, m, n, k, bits, bits_of_c, batches, processors, vector),
    )
