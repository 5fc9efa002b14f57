"""C = epilogue(A B^T) in float32 on the CUDA cores: cp.async stages, fused multiply-adds.

A is (M, K, L), B is (N, K, L), C is (M, N, L), of any majors and any extents. In shared memory the
row mode of A and B is contiguous, so that a thread reads four rows at once; while it multiplies one
column of K it reads the next one, and copies a part of a later stage. The step of K has no branch,
and multiply-adds go down one column of the accumulators and up the next: most then share a source
register with the one before, and the others read two registers a cycle from two banks.
"""

from __future__ import annotations

from dataclasses import dataclass

import basedsl_cute as cute
from basedsl import DSLTypeError
from basedsl_cute import arch
from basedsl_cute.nvgpu import MmaUniversalOp, cpasync
from basedsl_cute.ops.gemm.operands import (
    OutputTile,
    check_extents,
    matrix,
    three_modes,
    transposed,
)
from basedsl_cute.utils.tile_scheduler import PersistentTileSchedulerParams

LANES = (4, 8)  # of a warp along M and N: it reads 16 and 32 consecutive rows of A and B
VECTOR = 4  # consecutive rows that a thread has


@dataclass(frozen=True)
class Config:
    """The static configuration: the tile (M, N, K) in elements, the warps along M and N that share
    it, and the number of stages. The other fields are those of `ops.ampere.gemm.Config`.
    """

    tile: tuple[int, int, int] = (128, 256, 8)
    warps: tuple[int, int] = (4, 2)
    stages: int = 3
    swizzle: int = 8
    along_m: bool = True
    blocks_per_sm: int = 1

    def __post_init__(self) -> None:
        if self.tile[2] < 2 or self.stages < 2:
            raise ValueError(f"{self}: a tile has two columns of K at least, and two stages")

    @property
    def threads(self) -> int:
        return arch.WARP_SIZE * self.warps[0] * self.warps[1]


# The tiles (M, N) that `choose_config` compares: warps, and their speed relative to the largest.
_TILES = {
    (128, 256): ((4, 2), 1.0),
    (128, 128): ((4, 2), 0.9),
    (64, 64): ((2, 1), 0.6),
}


def choose_config(
    m: int,
    n: int,
    processors: int,
    batches: int = 1,
    k_contiguous: tuple[bool, bool] = (False, False),
) -> Config:
    """The configuration with the fewest idle multiprocessors, of which there are `processors`.
    `k_contiguous` says for A and B whether their K mode is contiguous.
    """
    depth = 16 if any(k_contiguous) else 8  # measured on an H200
    best: tuple[float, Config] | None = None
    for (rows, columns), (warps, speed) in _TILES.items():
        tiles = -(-m // rows) * -(-n // columns) * batches
        rounds = -(-tiles // processors)
        cost = rounds * rows * columns / speed
        if best is None or cost < best[0]:
            best = cost, Config((rows, columns, depth), warps)
    assert best is not None
    return best[1]


def every_config() -> list[Config]:
    """Return the configurations worth measuring: each tile, with steps of K of two sizes."""
    return [Config((*tile, k), warps) for tile, (warps, _) in _TILES.items() for k in (8, 16)]


@cute.kernel
def sgemm_kernel(
    a: cute.Tensor,
    b: cute.Tensor,
    c: cute.Tensor,
    operands: tuple,
    schedule: PersistentTileSchedulerParams,
    epilogue: cute.Constexpr,
    vectors: cute.Constexpr,
    cfg: cute.Constexpr,
):
    bm, bn, bk = cfg.tile
    stages = cfg.stages
    dtype = a.element_type
    thread = arch.thread_idx()[0]
    m, n, batch = schedule.locate(arch.block_idx()[0])
    # Tiles are aligned to the end of K: only tile 0, which begins before 0, needs a check.
    k_tiles = cute.ceil_div(a.shape[1], bk)
    before = a.shape[1] - k_tiles * bk

    smem = cute.utils.SmemAllocator()
    sa = smem.allocate_tensor(dtype, padded((bm, bk, stages)), 16)
    sb = smem.allocate_tensor(dtype, padded((bn, bk, stages)), 16)
    load_a = TileLoader(a[None, None, batch], sa, (bm, bk), m, before, vectors[0], cfg, thread)
    load_b = TileLoader(b[None, None, batch], sb, (bn, bk), n, before, vectors[1], cfg, thread)

    mma = make_mma(dtype, cfg)
    own = mma.get_slice(thread)
    acc = mma.make_fragment_C(mma.partition_shape_C((bm, bn)))
    acc.fill(0)
    part_a, part_b = own.partition_A(sa), own.partition_B(sb)
    ra = mma.make_fragment_A(mma.partition_shape_A((bm, bk)))
    rb = mma.make_fragment_B(mma.partition_shape_B((bn, bk)))

    for s in cute.range_constexpr(stages - 1):
        if s < k_tiles:
            load_a.whole(s, s, first=s == 0)
            load_b.whole(s, s, first=s == 0)
        arch.cp_async_commit_group()
    arch.cp_async_wait_group(stages - 2)
    arch.sync_threads()
    cute.autovec_copy(part_a[None, None, 0, 0], ra[None, None, 0])
    cute.autovec_copy(part_b[None, None, 0, 0], rb[None, None, 0])

    load_a.only_if(k_tiles > 1)
    load_b.only_if(k_tiles > 1)
    read, write = cute.Int32(0), cute.Int32(stages - 1)
    for tile in cute.range(k_tiles, unroll=1):
        # Past the end, the last tile is copied and read again: cheaper than a branch.
        ahead = cute.Int32(tile + stages - 1)
        ahead = ahead if ahead < k_tiles else k_tiles - 1
        following = read + 1
        following = 0 if following == stages else following
        following = following if tile + 1 < k_tiles else read
        for k in cute.range_constexpr(bk):
            if cute.const_expr(k < bk - 1):
                load_a.part(ahead, write, k, bk - 1)
                load_b.part(ahead, write, k, bk - 1)
            if cute.const_expr(k == bk - 1):
                arch.cp_async_commit_group()
                arch.cp_async_wait_group(stages - 2)
                arch.sync_threads()
            source = following if k == bk - 1 else read
            after = (k + 1) % bk
            cute.autovec_copy(part_a[None, None, after, source], ra[None, None, after])
            cute.autovec_copy(part_b[None, None, after, source], rb[None, None, after])
            cute.gemm(mma, acc, ra[None, None, k], rb[None, None, k], acc)
        write = read
        read = following
    arch.cp_async_wait_group(0)

    results = OutputTile(c, operands).of_batch(batch)
    parts = results.each(lambda x: own.partition_C(cute.local_tile(x, (bm, bn), (m, n))))
    for i in cute.range_constexpr(cute.size(acc, mode=[1])):
        for j in cute.range_constexpr(cute.size(acc, mode=[2]) // VECTOR):
            sums = cute.local_tile(acc[0, i, None], (VECTOR,), (j,))
            piece = parts.each(lambda x, i=i, j=j: cute.local_tile(x[0, i, None], (VECTOR,), (j,)))
            piece.put(sums, epilogue)


def padded(shape):
    """A layout (rows, K, stages) with stride 1 along rows; padding spreads K over the banks."""
    rows, k, _ = shape
    return cute.make_layout(shape, stride=(1, rows + VECTOR, (rows + VECTOR) * k))


def make_mma(dtype, cfg):
    """The tiled MMA of one multiply-add a thread, over warps of `LANES` threads; a thread has
    `VECTOR` consecutive rows and columns.
    """
    (lm, ln), (wm, wn) = LANES, cfg.warps
    threads = cute.make_layout(
        ((lm, wm), (ln, wn), 1), stride=((1, lm * ln), (lm, lm * ln * wm), 0)
    )
    rows, columns = (
        cute.make_layout((extent, VECTOR), stride=(VECTOR, 1)) for extent in (lm * wm, ln * wn)
    )
    return cute.make_tiled_mma(MmaUniversalOp(dtype), threads, (rows, columns, None))


class TileLoader:
    """A thread's copies of tiles of an operand (rows, K) into the stages of shared memory."""

    __dsl_leaf__ = True

    def __init__(self, x, staged, tile, row, before, vector, cfg, thread):
        by_rows = type(x.stride[0]) is int and x.stride[0] == 1
        dtype = x.element_type
        rows, columns = tile
        if by_rows:
            along = min(rows // vector, cfg.threads)
            threads = cute.make_layout((along, cfg.threads // along))
        else:
            vector = 1  # K is contiguous: its elements are spread over shared memory
            threads = cute.make_layout((cfg.threads // columns, columns), stride=(columns, 1))
        if rows * columns % (cfg.threads * vector):
            raise DSLTypeError(
                f"{cfg.threads} threads cannot copy tiles of {rows} x {columns}, {vector} "
                "element(s) at a time",
                hint="take a larger tile, or fewer warps",
            )
        mode = cpasync.LoadCacheMode.GLOBAL if vector == 4 else cpasync.LoadCacheMode.ALWAYS
        op = cpasync.CopyG2SOp(mode, zero_fill=True)
        self.atom = cute.make_copy_atom(op, dtype, num_bits_per_copy=vector * dtype.width)
        tiled = cute.make_tiled_copy_tv(self.atom, threads, cute.make_layout((vector, 1)))
        own = tiled.get_slice(thread)
        coords = cute.domain_offset((0, before), cute.make_identity_tensor(x.shape))
        x = cute.domain_offset((0, before), x)
        at = own.partition_S(cute.local_tile(coords, tile, (row, None)))
        self.source = own.partition_S(cute.local_tile(x, tile, (row, None)))
        self.target = own.partition_D(staged)
        self.count = (cute.size(self.source, mode=[1]), cute.size(self.source, mode=[2]))
        self.inside = cute.make_rmem_tensor((self.count[0],), cute.Boolean)
        self.begun = cute.make_rmem_tensor((self.count[1],), cute.Boolean)
        for i in cute.range_constexpr(self.count[0]):
            self.inside[i] = at[0, i, 0, 0][0] < x.shape[0]
        for k in cute.range_constexpr(self.count[1]):
            self.begun[k] = at[0, 0, k, 0][1] >= 0

    def only_if(self, condition):
        """Make all further copies write zeros unless `condition` holds."""
        for i in cute.range_constexpr(self.count[0]):
            self.inside[i] = self.inside[i] & condition

    def whole(self, tile, stage, first):
        """Copy a whole tile; `first` is the ragged tile, which begins before K does."""
        self._copy(tile, stage, range(self.count[0] * self.count[1]), first)

    def part(self, tile, stage, k, parts):
        """Copy the k-th of `parts` parts of a tile."""
        count = self.count[0] * self.count[1]
        self._copy(tile, stage, range(count * k // parts, count * (k + 1) // parts), False)

    def _copy(self, tile, stage, pieces, first):
        for piece in pieces:
            i, k = piece % self.count[0], piece // self.count[0]
            inside = self.inside[i] & self.begun[k] if first else self.inside[i]
            source, target = self.source[None, i, k, tile], self.target[None, i, k, stage]
            cute.copy_atom_call(self.atom, source, target, pred=inside)


@cute.jit
def sgemm(
    a: cute.Tensor,
    b: cute.Tensor,
    c: cute.Tensor,
    cfg: cute.Constexpr = Config(),
    epilogue_op: cute.Constexpr = None,
    operands: tuple = (),
    vectors: cute.Constexpr = (1, 1, 1),
    stream: cute.Constexpr = None,
):
    """Compute C = A B^T, or with `epilogue_op` C = epilogue_op(A B^T, *operands), in Float32.

    `a` is (M, K), `b` (N, K), `c` (M, N), or all have a third mode of batches. `epilogue_op` is a
    function of vectors, see `utils.epilogue`; `vectors` are as for `ops.ampere.gemm.gemm`. Raises
    DSLTypeError for a tile that the threads do not divide.
    """
    a, b, c = (matrix(x, v) for x, v in zip((a, b, c), vectors, strict=True))
    check_extents(a, b, c)
    operands = tuple(map(three_modes, operands))
    if cute.const_expr(c.leading_dim == 0):  # C^T = B A^T has contiguous rows
        a, b, c = b, a, transposed(c)
        operands = tuple(map(transposed, operands))
        vectors = (vectors[1], vectors[0], vectors[2])
    m, n, batches = c.shape
    tiles = (cute.ceil_div(m, cfg.tile[0]), cute.ceil_div(n, cfg.tile[1]), batches)
    schedule = PersistentTileSchedulerParams(tiles, (1, 1, 1), cfg.swizzle, cfg.along_m)
    sgemm_kernel(a, b, c, operands, schedule, epilogue_op, vectors, cfg).launch(
        grid=(schedule.num_clusters, 1, 1),
        block=(cfg.threads, 1, 1),
        stream=stream,
        min_blocks_per_mp=cfg.blocks_per_sm,
    )
