"""C = epilogue(A B^T) by mma.sync (sm_80 and later): persistent, cp.async stages, ldmatrix.

A is (M, K, L), B is (N, K, L), C is (M, N, L), of any majors and any extents. Persistent blocks
copy tiles of A and B into a ring of swizzled stages, `stages` - 1 ahead of the multiplication and
across the ends of tiles of C. A warp has its part of the tile in registers; while it multiplies one
block of K (16 elements; 4 of 8 bytes, 8 of 4 bytes, 32 of 1 byte) it loads the fragments of the
next one. Its threads exchange results, so that the epilogue takes vectors of columns and warps need
not wait for each other.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import basedsl_cute as cute
from basedsl import DSLTypeError
from basedsl_cute import arch
from basedsl_cute.nvgpu import CopyUniversalOp, cpasync
from basedsl_cute.ops.ampere.mainloop import (
    FragmentLoader,
    WarpEpilogue,
    check_tile,
    for_fragments,
    instruction,
    make_mma,
)
from basedsl_cute.ops.gemm.operands import check_extents, matrix, three_modes, transposed
from basedsl_cute.utils import hopper_helpers as sm90
from basedsl_cute.utils.tile_scheduler import PersistentTileSchedulerParams


@dataclass(frozen=True)
class Config:
    """The static configuration of the kernel.

    `tile` is a block's (M, N, K) in elements, `warps` the numbers of warps along M and N of it,
    `stages` the number of tiles of A and B in shared memory. The raster of tiles goes in bands of
    `swizzle` rows of tiles (of columns, if not `along_m`), so that concurrent blocks share operands
    in the L2 cache. `blocks_per_sm` blocks are to be resident on each multiprocessor.
    """

    tile: tuple[int, int, int] = (128, 128, 32)
    warps: tuple[int, int] = (2, 2)
    stages: int = 3
    swizzle: int = 8
    along_m: bool = True
    blocks_per_sm: int = 1
    is_full: bool = False  # promises that M, N and K are multiples of the tile; `matmul` sets it

    @property
    def threads(self) -> int:
        return arch.WARP_SIZE * self.warps[0] * self.warps[1]

    def smem_bytes(self, width: int) -> int:
        """Shared memory of a block in bytes, for operands of `width` bits."""
        m, n, k = self.tile
        return self.stages * (m + n) * k * width // 8


# The tiles (M, N) that `choose_config` compares: warps, blocks of a multiprocessor, and the
# fraction of the tensor cores' speed that they reach.
_TILES = {
    (128, 256): ((2, 4), 1, 1.0),
    (256, 128): ((4, 2), 1, 1.0),
    (128, 128): ((2, 2), 2, 0.96),
    (64, 128): ((1, 4), 2, 0.75),
    (64, 64): ((2, 2), 3, 0.55),
}
# Of Float64, whose accumulators take twice the registers; speeds are not measured yet.
_TILES_64 = {
    (128, 128): ((2, 4), 1, 1.0),
    (64, 128): ((1, 4), 2, 0.9),
    (64, 64): ((2, 2), 3, 0.7),
}


def choose_config(
    m: int,
    n: int,
    k: int,
    width: int,
    processors: int,
    smem: int,
    batches: int = 1,
    config: type[Config] = Config,
) -> Config:
    """The fastest configuration by a model, for a product (M, N, K) of elements of `width` bits.

    `processors` is the number of multiprocessors, `smem` the most bytes of shared memory of a
    block, `config` the class of the result: this module's, or that of `ops.ampere.gemm_tma`. The
    model: rounds of tiles over the multiprocessors, each as long as its multiplications plus a
    constant for filling the stages. Raises DSLTypeError where no tile fits `smem`.
    """
    best: tuple[float, Config] | None = None
    for (rows, columns), (warps, together, speed) in (_TILES if width < 64 else _TILES_64).items():
        found = _fitting(config, (rows, columns), warps, together, width, smem)
        if found is None:
            continue
        step = found.tile[2]
        tiles = -(-m // rows) * -(-n // columns) * batches
        rounds = -(-tiles // (processors * found.blocks_per_sm))
        steps = max(2, -(-k // step)) + 2
        cost = rounds * found.blocks_per_sm * rows * columns * steps * step / speed
        if best is None or cost < best[0]:
            best = cost, found
    if best is None:
        raise DSLTypeError(f"no tile of this kernel fits into {smem} bytes of shared memory")
    return best[1]


def every_config(width: int, smem: int, config: type[Config] = Config) -> list[Config]:
    """Return the configurations worth measuring for operands of `width` bits: each tile with as
    many blocks on a multiprocessor as `choose_config` takes, and with one. The parameters are its.
    """
    found: dict[Config, None] = {}
    for tile, (warps, together, _) in (_TILES if width < 64 else _TILES_64).items():
        for blocks in {together, 1}:
            made = _fitting(config, tile, warps, blocks, width, smem)
            if made is not None:
                found[made] = None
    return list(found)


def _fitting(
    config: type[Config],
    tile: tuple[int, int],
    warps: tuple[int, int],
    together: int,
    width: int,
    smem: int,
) -> Config | None:
    """The first configuration that fits: most blocks, K steps of 128 or 64 bytes, 4 or 3 stages."""
    for blocks in range(together, 0, -1):
        for step in (1024 // width, 512 // width):
            for stages in (4, 3):
                made = config((*tile, step), warps, stages, blocks_per_sm=blocks)
                if made.smem_bytes(width) * blocks <= smem:
                    return made
    return None


@cute.kernel
def gemm_kernel(
    a: cute.Tensor,
    b: cute.Tensor,
    c: cute.Tensor,
    operands: tuple,
    schedule: PersistentTileSchedulerParams,
    op: cute.Constexpr,
    epilogue: cute.Constexpr,
    vectors: cute.Constexpr,
    cfg: cute.Constexpr,
):
    bm, bn, bk = cfg.tile
    stages = cfg.stages
    dtype = a.element_type
    thread = arch.thread_idx()[0]
    major_a, major_b = sm90.LayoutEnum.from_tensor(a), sm90.LayoutEnum.from_tensor(b)
    layout_a = for_fragments(sm90.make_smem_layout_a(major_a, cfg.tile, dtype, stages), dtype)
    layout_b = for_fragments(sm90.make_smem_layout_b(major_b, cfg.tile, dtype, stages), dtype)
    smem = cute.utils.SmemAllocator()
    sa = smem.allocate_tensor(dtype, layout_a, 1024)
    sb = smem.allocate_tensor(dtype, layout_b, 1024)

    mma = make_mma(op, cfg)
    acc = mma.make_fragment_C(mma.partition_shape_C((bm, bn)))
    ra = mma.make_fragment_A(mma.partition_shape_A((bm, bk)))
    rb = mma.make_fragment_B(mma.partition_shape_B((bn, bk)))
    blocks = cute.size(ra, mode=[2])
    read_a = FragmentLoader(cute.make_tiled_copy_A, major_a, mma, sa, ra, thread)
    read_b = FragmentLoader(cute.make_tiled_copy_B, major_b, mma, sb, rb, thread)
    warp_epilogue = WarpEpilogue(c, operands, op, epilogue, cfg, thread)

    # A step is one tile of K of one of this block's tiles of C; steps follow one another.
    k_tiles = cute.ceil_div(a.shape[1], bk)
    first, resident = arch.block_idx()[0], arch.grid_dim()[0]
    steps = cute.ceil_div(schedule.num_clusters - first, resident) * k_tiles
    work = KTileWalk(schedule, first, k_tiles)
    copies_a = TileCopier(a, sa, major_a, (bm, bk), vectors[0], cfg, thread)
    copies_b = TileCopier(b, sb, major_b, (bn, bk), vectors[1], cfg, thread)
    copies_a.at(work.m, work.batch)
    copies_b.at(work.n, work.batch)
    for s in cute.range_constexpr(stages - 1):
        if s < steps:
            copies_a.copy(work.k, s)
            copies_b.copy(work.k, s)
        arch.cp_async_commit_group()
        if work.next(resident):
            copies_a.at(work.m, work.batch)
            copies_b.at(work.n, work.batch)
    arch.cp_async_wait_group(stages - 2)
    arch.sync_threads()
    if steps > 0:
        read_a.load(0, 0)
        read_b.load(0, 0)

    step, read, write = cute.Int32(0), cute.Int32(0), cute.Int32(stages - 1)
    for number in cute.range(first, schedule.num_clusters, resident, unroll=1):
        acc.fill(0)
        for _ in cute.range(k_tiles, unroll=1):
            following = 0 if read + 1 == stages else read + 1
            following = following if step + 1 < steps else read  # none follows the last
            for k in cute.range_constexpr(blocks):
                if cute.const_expr(k == 0):
                    if step + stages - 1 < steps:
                        copies_a.copy(work.k, write)
                        copies_b.copy(work.k, write)
                if cute.const_expr(k == blocks - 1):
                    arch.cp_async_commit_group()
                    arch.cp_async_wait_group(stages - 2)
                    arch.sync_threads()
                source = following if k == blocks - 1 else read
                read_a.load((k + 1) % blocks, source)
                read_b.load((k + 1) % blocks, source)
                cute.gemm(mma, acc, ra[None, None, k], rb[None, None, k], acc)
            if work.next(resident):
                copies_a.at(work.m, work.batch)
                copies_b.at(work.n, work.batch)
            write = read
            read = following
            step += 1
        warp_epilogue.store(acc, schedule.locate(number))
    arch.cp_async_wait_group(0)


class KTileWalk:
    """The tile of K that is copied next: the tile of C that it belongs to, and its place in K."""

    def __init__(self, schedule, number, k_tiles):
        self.schedule, self.number, self.k_tiles = schedule, number, k_tiles
        self.k = cute.Int32(0)
        self.m, self.n, self.batch = schedule.locate(number)

    @cute.jit
    def next(self, resident):
        """Advance by one tile of K; True where another tile of C begins."""
        self.k += 1
        ended = self.k == self.k_tiles
        if ended:
            self.k = 0
            self.number += resident
            last = self.schedule.num_clusters - 1  # copies behind the last tile are predicated off
            self.m, self.n, self.batch = self.schedule.locate(min(self.number, last))
        return ended


class TileCopier:
    """A thread's copies of tiles of an operand (rows, K) into the stages of shared memory.

    The tiles are aligned to the end of K: the first tile, which begins before 0, is the ragged one.
    """

    def __init__(self, x, staged, major, tile, vector, cfg, thread):
        dtype, bits = x.element_type, vector * x.element_type.width
        op = CopyUniversalOp()
        if bits >= 32:
            mode = cpasync.LoadCacheMode.GLOBAL if bits == 128 else cpasync.LoadCacheMode.ALWAYS
            op = cpasync.CopyG2SOp(mode, zero_fill=True)
        self.bits = bits
        self.atom = cute.make_copy_atom(op, dtype, num_bits_per_copy=bits)
        layouts = contiguous_copy(major, tile, dtype, vector, cfg.threads)
        own = cute.make_tiled_copy_tv(self.atom, *layouts).get_slice(thread)
        rows, columns = x.shape[0], x.shape[1]
        self.rows = rows
        before = columns - cute.ceil_div(columns, tile[1]) * tile[1]
        coords = cute.domain_offset((0, before), cute.make_identity_tensor((rows, columns)))
        self.coords = own.partition_S(cute.local_tile(coords, tile, (None, None)))
        x = cute.domain_offset((0, before, 0), x)
        self.all = own.partition_S(cute.local_tile(x, tile, (None, None)))  # (V, M, K, m, k, batch)
        self.target = own.partition_D(staged)  # (V, M, K, stages)
        self.count = (cute.size(self.target, mode=[1]), cute.size(self.target, mode=[2]))
        self.is_full = cfg.is_full
        self.words = -(-self.count[0] // 32)
        self.inside = (
            cute.Uint32(0),
        ) * self.words  # a bit for each i of (V, i, K): is its row inside

    def at(self, row, batch):
        """Select a row of tiles, and compute which of its rows lie inside the operand."""
        self.source = self.all[None, None, None, row, None, batch]
        words = [cute.Uint32(0)] * self.words
        for i in range(0 if self.is_full else self.count[0]):
            inside = self.coords[0, i, 0, row, 0][0] < self.rows
            words[i // 32] |= cute.where(inside, cute.Uint32(1 << i % 32), cute.Uint32(0))
        self.inside = tuple(words)

    def copy(self, tile, stage):
        """Copy tile `tile` of K into a stage; what lies outside becomes zero."""
        for j in range(self.count[1]):
            begun = self.coords[0, 0, j, 0, tile][1] >= 0
            rows = [cute.where(begun, word, cute.Uint32(0)) for word in self.inside]
            for i in range(self.count[0]):
                source, target = self.source[None, i, j, tile], self.target[None, i, j, stage]
                if self.bits < 32:  # not a cp.async, which would write zeros
                    target.fill(0)
                inside = True if self.is_full else (rows[i // 32] & (1 << i % 32)) != 0
                cute.copy_atom_call(self.atom, source, target, pred=inside)


def contiguous_copy(major, tile, dtype, vector, threads):
    """Thread and value layouts of a copy whose neighbouring threads copy neighbouring vectors."""
    by_row = major is sm90.LayoutEnum.ROW_MAJOR
    lines, contiguous = tile if by_row else tile[::-1]
    along = lanes_of_a_line(contiguous, lines, dtype.width, vector, threads)
    across = threads // along
    if by_row:
        return cute.make_layout((across, along), stride=(along, 1)), cute.make_layout((1, vector))
    return cute.make_layout((along, across)), cute.make_layout((vector, 1))


def lanes_of_a_line(along: int, across: int, width: int, vector: int, threads: int) -> int:
    """The number of threads that copy one line of `along` contiguous elements, of `across` lines:
    enough for 128 bytes, and more where there are too few lines for all threads.
    """
    lanes = math.gcd(along, 1024 // width) // vector
    return max(1, min(lanes, threads), threads // across)


def copies_divide(along: int, across: int, width: int, vector: int, threads: int) -> bool:
    """True if what all threads copy at a time divides a tile of `across` lines of `along` elements:
    others would be written beside.
    """
    lanes = lanes_of_a_line(along, across, width, vector, threads)
    return not (along % (lanes * vector) or threads % lanes or across % (threads // lanes))


def check_config(cfg, op, vectors):
    """Raise DSLTypeError for a tile that warps and copies do not divide."""
    check_tile(cfg, op)
    tile_m, tile_n, tile_k = cfg.tile
    width = op.dtypes[1].width
    for name, rows, vector in (("A", tile_m, vectors[0]), ("B", tile_n, vectors[1])):
        for along, across in ((tile_k, rows), (rows, tile_k)):  # either mode may be contiguous
            if not copies_divide(along, across, width, vector, cfg.threads):
                raise DSLTypeError(
                    f"{cfg.threads} threads cannot copy tiles of {rows} x {tile_k} of {name}",
                    notes=((f"they copy {vector} elements at a time", None),),
                    hint="make the tile's extents powers of two, or take fewer warps",
                )


@cute.jit
def gemm(
    a: cute.Tensor,
    b: cute.Tensor,
    c: cute.Tensor,
    blocks: cute.Int32,
    cfg: cute.Constexpr = Config(),
    epilogue_op: cute.Constexpr = None,
    operands: tuple = (),
    vectors: cute.Constexpr = (1, 1, 1),
    acc_dtype: cute.Constexpr = None,
    stream: cute.Constexpr = None,
):
    """Compute C = A B^T, or with `epilogue_op` C = epilogue_op(A B^T, *operands), by mma.sync.

    `a` is (M, K), `b` (N, K), `c` (M, N), or all have a third mode of batches; extents and majors
    are any. Elements are Float16, BFloat16, Float8E4M3FN, Float8E5M2, Int8, Uint8, Float64 or
    Float32, of which the instruction takes the upper 19 bits (TFloat32). `acc_dtype` is the
    accumulator's type: Float32 (Int32 for integers, Float64 for its like) by default.

    `blocks` is the most resident blocks; `cfg` the static configuration; `epilogue_op` a function
    of vectors, see `utils.epilogue`; `vectors` the elements of A, B and C that one access moves:
    the caller promises that addresses and strides allow it, see `ops.gemm.operands.matrix`.

    Raises DSLTypeError for other element types and for tiles that the warps do not divide; asserts
    at run time that the extents fit together.
    """
    a, b, c = (matrix(x, v) for x, v in zip((a, b, c), vectors, strict=True))
    check_extents(a, b, c)
    operands = tuple(map(three_modes, operands))
    if cute.const_expr(c.leading_dim == 0):  # C^T = B A^T has contiguous rows
        a, b, c = b, a, transposed(c)
        operands = tuple(map(transposed, operands))
        vectors = (vectors[1], vectors[0], vectors[2])
    if cute.const_expr(a.element_type is cute.Float32):
        a, b = (cute.recast_tensor(x, cute.TFloat32) for x in (a, b))
    m, n, batches = c.shape
    tiles = (cute.ceil_div(m, cfg.tile[0]), cute.ceil_div(n, cfg.tile[1]), batches)
    schedule = PersistentTileSchedulerParams(tiles, (1, 1, 1), cfg.swizzle, cfg.along_m)
    op = instruction(a.element_type, acc_dtype)
    check_config(cfg, op, vectors)
    gemm_kernel(a, b, c, operands, schedule, op, epilogue_op, vectors, cfg).launch(
        grid=(min(schedule.num_clusters, blocks), 1, 1),
        block=(cfg.threads, 1, 1),
        stream=stream,
        min_blocks_per_mp=cfg.blocks_per_sm,
    )
