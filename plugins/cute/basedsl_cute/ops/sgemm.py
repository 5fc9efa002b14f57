"""C = epilogue(A B^T) in float32 on the CUDA cores: cp.async stages, fused multiply-adds.

A is (M, K, L), B is (N, K, L), C is (M, N, L), of any majors and any extents. In shared memory
consecutive rows of A and B are contiguous, so a thread reads four of them at once; while it
multiplies by one column of K it reads the next one.
"""

from __future__ import annotations

from dataclasses import dataclass

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.nvgpu import CopyUniversalOp, MmaUniversalOp, cpasync
from basedsl_cute.ops.operands import Results, matrix, three_modes, transposed
from basedsl_cute.utils.tile_scheduler import PersistentTileSchedulerParams

LANES = (4, 8)  # of a warp along M and N: it reads 16 and 32 consecutive rows of A and B
VECTOR = 4  # consecutive rows that a thread has


@dataclass(frozen=True)
class Config:
    """What is chosen at compile time: the tile (M, N, K), and the warps along M and N that share
    it. `swizzle` and `along_m` are those of `ampere_gemm.Config`.
    """

    tile: tuple[int, int, int] = (128, 256, 8)
    warps: tuple[int, int] = (4, 2)
    stages: int = 3
    swizzle: int = 8
    along_m: bool = True
    blocks_per_sm: int = 1

    @property
    def threads(self) -> int:
        return 32 * self.warps[0] * self.warps[1]


# Tiles (M, N) that `choose` weighs: warps, and which part of the speed of the largest they reach.
_TILES = {
    (128, 256): ((4, 2), 1.0),
    (128, 128): ((4, 2), 0.9),
    (64, 64): ((2, 1), 0.6),
}


def choose(m: int, n: int, processors: int) -> Config:
    """The configuration that leaves the fewest multiprocessors idle, by their number."""
    best: tuple[float, Config] | None = None
    for (rows, columns), (warps, speed) in _TILES.items():
        rounds = -(-(-(-m // rows) * -(-n // columns)) // processors)
        cost = rounds * rows * columns / speed
        if best is None or cost < best[0]:
            best = cost, Config((rows, columns, 8), warps)
    assert best is not None
    return best[1]


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
    k_tiles = cute.ceil_div(a.shape[1], bk)

    smem = cute.utils.SmemAllocator()
    sa = smem.allocate_tensor(dtype, padded((bm, bk, stages)), 16)
    sb = smem.allocate_tensor(dtype, padded((bn, bk, stages)), 16)
    load_a = Loads(a[None, None, batch], sa, (bm, bk), m, vectors[0], cfg, thread)
    load_b = Loads(b[None, None, batch], sb, (bn, bk), n, vectors[1], cfg, thread)

    mma = make_mma(dtype, cfg)
    own = mma.get_slice(thread)
    acc = mma.make_fragment_C(mma.partition_shape_C((bm, bn)))
    acc.fill(0)
    part_a, part_b = own.partition_A(sa), own.partition_B(sb)
    ra = mma.make_fragment_A(mma.partition_shape_A((bm, bk)))
    rb = mma.make_fragment_B(mma.partition_shape_B((bn, bk)))

    for s in cute.range_constexpr(stages - 1):
        if s < k_tiles:
            load_a.fetch(s, s)
            load_b.fetch(s, s)
            load_a.put(s)
            load_b.put(s)
        arch.cp_async_commit_group()
    arch.cp_async_wait_group(stages - 2)
    arch.sync_threads()
    cute.autovec_copy(part_a[None, None, 0, 0], ra[None, None, 0])
    cute.autovec_copy(part_b[None, None, 0, 0], rb[None, None, 0])

    read, write = cute.Int32(0), cute.Int32(stages - 1)
    for tile in cute.range(k_tiles, unroll=1):
        ahead = tile + stages - 1
        following = read + 1
        following = 0 if following == stages else following
        following = following if tile + 1 < k_tiles else read  # there is nothing behind the last
        for k in cute.range_constexpr(bk):
            if cute.const_expr(k == 0):
                if ahead < k_tiles:
                    load_a.fetch(ahead, write)
                    load_b.fetch(ahead, write)
            if cute.const_expr(k == bk - 1):
                if ahead < k_tiles:
                    load_a.put(write)
                    load_b.put(write)
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

    results = Results(c, operands).of_batch(batch)
    parts = results.each(lambda x: own.partition_C(cute.local_tile(x, (bm, bn), (m, n))))
    for i in cute.range_constexpr(cute.size(acc, mode=[1])):
        for j in cute.range_constexpr(cute.size(acc, mode=[2]) // VECTOR):
            sums = cute.local_tile(acc[0, i, None], (VECTOR,), (j,))
            piece = parts.each(lambda x, i=i, j=j: cute.local_tile(x[0, i, None], (VECTOR,), (j,)))
            piece.put(sums, epilogue)


def padded(shape):
    """(rows, K, stages) with contiguous rows; the padding spreads a row of K over the banks."""
    rows, k, _ = shape
    return cute.make_layout(shape, stride=(1, rows + VECTOR, (rows + VECTOR) * k))


def make_mma(dtype, cfg):
    """One multiply-add a thread, over warps of `LANES`; a thread has `VECTOR` rows at a time."""
    (lm, ln), (wm, wn) = LANES, cfg.warps
    threads = cute.make_layout(
        ((lm, wm), (ln, wn), 1), stride=((1, lm * ln), (lm, lm * ln * wm), 0)
    )
    rows, columns = (
        cute.make_layout((extent, VECTOR), stride=(VECTOR, 1)) for extent in (lm * wm, ln * wn)
    )
    return cute.make_tiled_mma(MmaUniversalOp(dtype), threads, (rows, columns, None))


class Loads:
    """How a thread copies tiles of an operand (rows, K) into the stages of shared memory.

    Where rows are contiguous, by cp.async. Where K is, 16 bytes of a row come into registers and
    are put into shared memory one by one later; without wide accesses, cp.async of one element.
    K begins so far before 0 that the first tile of K is the one that is not full.
    """

    __dsl_leaf__ = True

    def __init__(self, x, staged, tile, row, vector, cfg, thread):
        rows, columns = tile
        by_rows = type(x.stride[0]) is int and x.stride[0] == 1
        self.through_registers = not by_rows and vector == VECTOR
        if by_rows:
            along = min(rows // vector, cfg.threads)
            threads, values = cute.make_layout((along, cfg.threads // along)), (vector, 1)
        elif self.through_registers:
            # Half a warp has consecutive rows, which are other banks of shared memory.
            across = columns // vector
            most = 32 // across
            shape = ((most, cfg.threads // 32), across)
            threads, values = cute.make_layout(shape, stride=((1, 32), most)), (1, vector)
        else:
            vector = 1
            shape = (cfg.threads // columns, columns)
            threads, values = cute.make_layout(shape, stride=(columns, 1)), (1, 1)
        bits = vector * x.element_type.width
        op = CopyUniversalOp()
        if not self.through_registers:
            mode = cpasync.LoadCacheMode.GLOBAL if bits == 128 else cpasync.LoadCacheMode.ALWAYS
            op = cpasync.CopyG2SOp(mode, zero_fill=True)
        self.atom = cute.make_copy_atom(op, x.element_type, num_bits_per_copy=bits)
        tiled = cute.make_tiled_copy_tv(self.atom, threads, cute.make_layout(values))
        own = tiled.get_slice(thread)
        before = x.shape[1] - cute.ceil_div(x.shape[1], columns) * columns
        coords = cute.domain_offset((0, before), cute.make_identity_tensor(x.shape))
        x, self.rows = cute.domain_offset((0, before), x), x.shape[0]
        self.at = own.partition_S(cute.local_tile(coords, tile, (row, None)))
        self.source = own.partition_S(cute.local_tile(x, tile, (row, None)))
        self.target = own.partition_D(staged)
        self.held = cute.make_rmem_tensor(self.target[None, None, None, 0].shape, x.element_type)

    def fetch(self, tile, stage):
        """Begin to copy tile `tile` of K."""
        for i in range(cute.size(self.target, mode=[1])):
            for k in range(cute.size(self.target, mode=[2])):
                row, column = self.at[0, i, k, tile]
                inside = (row < self.rows) & (column >= 0)
                source, target = self.source[None, i, k, tile], self.target[None, i, k, stage]
                if self.through_registers:
                    target = self.held[None, i, k]
                    target.fill(0)
                cute.copy_atom_call(self.atom, source, target, pred=inside)

    def put(self, stage):
        """Write what has been fetched into registers."""
        if self.through_registers:
            cute.autovec_copy(self.held, self.target[None, None, None, stage])


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
    """C = A B^T for (M, K), (N, K), (M, N), or with batches as a third mode. With `epilogue_op`,
    C = epilogue_op(A B^T, *operands), see `utils.epilogue`; `vectors` as for `ampere_gemm.gemm`.
    """
    a, b, c = (matrix(x, v) for x, v in zip((a, b, c), vectors, strict=True))
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
