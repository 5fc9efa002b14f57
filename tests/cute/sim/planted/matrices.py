"""Products by tensor cores and their operands: each with an order left out, or complete."""

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.nvgpu import warp, warpgroup
from basedsl_cute.sim import RaceError, SimulationError, UninitializedReadError

K = 16


@cute.jit
def operand(rows: cute.Constexpr):
    atom = warpgroup.make_smem_layout_atom(warpgroup.SmemLayoutAtomKind.K_SW32, cute.Float16)
    layout = cute.tile_to_shape(atom, (rows, K), (0, 1))
    swizzle = cute.recast_layout(8, 16, layout.inner)
    return cute.utils.SmemAllocator().allocate_tensor(cute.Float16, layout.outer, 1024, swizzle)


@cute.jit
def group_product():
    return cute.make_tiled_mma(
        warpgroup.MmaF16BF16Op(
            cute.Float16,
            cute.Float32,
            (64, 8, K),
            warpgroup.OperandSource.SMEM,
            warpgroup.OperandMajorMode.K,
            warpgroup.OperandMajorMode.K,
        )
    )


@cute.kernel
def wgmma_kernel(
    x: cute.Tensor,
    y: cute.Tensor,
    mma: cute.TiledMma,
    bug: cute.Constexpr,
):
    """`bug` names what is left out."""
    t = arch.thread_idx()[0]
    a, b = operand(64), operand(8)
    for i in range(t, 64 * K, 128):
        a[i % 64, i // 64] = x[i % 256].to(cute.Float16)
    b[t % 8, t // 8] = x[t].to(cute.Float16)
    if cute.const_expr(bug != "proxy"):
        arch.fence_view_async_shared()
    if cute.const_expr(bug != "barrier"):
        arch.sync_threads()
    mine = mma.get_slice(t)
    ra, rb = mma.make_fragment_A(mine.partition_A(a)), mma.make_fragment_B(mine.partition_B(b))
    acc = mma.make_fragment_C(mma.partition_shape_C((64, 8)))
    if cute.const_expr(bug != "zero"):
        acc.fill(0.0)
    if cute.const_expr(bug != "fence"):
        warpgroup.fence()
    cute.gemm(mma, acc, ra, rb, acc)
    if cute.const_expr(bug != "commit"):
        warpgroup.commit_group()
    if cute.const_expr(bug == "overwritten"):
        a[t % 64, t // 64] = cute.Float16(0)
    if cute.const_expr(bug != "wait"):
        warpgroup.wait_group(0)
    for i in cute.range_constexpr(4):
        y[t * 4 + i] = acc[i]
    if cute.const_expr(bug == "wait"):
        warpgroup.wait_group(0)


def left_out(what):
    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
        kind = cute.const_expr(what if bug else None)
        wgmma_kernel(x, y, group_product(), kind).launch(grid=1, block=128)

    host.__name__ = f"wgmma_without_{what}"
    return host


@cute.kernel
def small_product(
    x: cute.Tensor,
    y: cute.Tensor,
    mma: cute.TiledMma,
    bug: cute.Constexpr,
):
    """One mma.sync of 16 x 8 x 16, its operands by ldmatrix."""
    t = arch.thread_idx()[0]
    smem = cute.utils.SmemAllocator()
    a = smem.allocate_tensor(cute.Float16, cute.make_layout((16, K), stride=(K, 1)), 128)
    b = smem.allocate_tensor(cute.Float16, cute.make_layout((8, K), stride=(K, 1)), 128)
    for i in cute.range_constexpr(8):
        if cute.const_expr(bug != "rows" or i < 4):
            a[i * 2 + t // 16, t % 16] = x[t + i].to(cute.Float16)
    for i in cute.range_constexpr(4):
        b[i * 2 + t // 16, t % 16] = x[t + i].to(cute.Float16)
    if cute.const_expr(bug != "sync"):
        arch.sync_warp()
    total = cute.make_rmem_tensor(mma.partition_shape_C((16, 8)), cute.Float32)
    if cute.const_expr(bug != "sums"):
        total.fill(0)
    part_a = mma.make_fragment_A(mma.partition_shape_A((16, K)))
    part_b = mma.make_fragment_B(mma.partition_shape_B((8, K)))
    four = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(num_matrices=4), cute.Float16)
    two = cute.make_copy_atom(warp.LdMatrix8x8x16bOp(num_matrices=2), cute.Float16)
    load_a, load_b = cute.make_tiled_copy_A(four, mma), cute.make_tiled_copy_B(two, mma)
    cute.copy(load_a, load_a.get_slice(t).partition_S(a), load_a.retile(part_a))
    cute.copy(load_b, load_b.get_slice(t).partition_S(b), load_b.retile(part_b))
    cute.gemm(mma, total, part_a, part_b, total)
    if cute.const_expr(bug == "reused"):
        a[t // 16, t % 16] = cute.Float16(0)
        arch.sync_warp()
        cute.copy(load_a, load_a.get_slice(t).partition_S(a), load_a.retile(part_a))
        cute.gemm(mma, total, part_a, part_b, total)
    for i in cute.range_constexpr(4):
        y[t * 4 + i] = total[i]


def product_without(what):
    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor, c: cute.Tensor, bug: cute.Constexpr):
        op = warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16))
        mma = cute.make_tiled_mma(op)
        kind = cute.const_expr(what if bug else None)
        small_product(x, y, mma, kind).launch(grid=1, block=32)

    host.__name__ = f"product_without_{what}"
    return host


WHOLE = {"whole": True, "y": 512}
READ = "that no thread has written|nobody has written"
CASES = [
    (left_out("proxy"), RaceError, "missing proxy fence", WHOLE),
    (left_out("barrier"), SimulationError, "race on shared memory|" + READ, WHOLE),
    (left_out("zero"), UninitializedReadError, READ, WHOLE),
    (left_out("fence"), SimulationError, "fence", WHOLE),
    (left_out("commit"), SimulationError, "commit|wgmma", WHOLE),
    (left_out("overwritten"), RaceError, "race on shared memory", WHOLE),
    (left_out("wait"), SimulationError, "wgmma|wait", WHOLE),
    (product_without("rows"), UninitializedReadError, READ, WHOLE),
    (product_without("sync"), RaceError, "race on shared memory", WHOLE),
    (product_without("sums"), UninitializedReadError, READ, WHOLE),
    (product_without("reused"), RaceError, "race on shared memory", WHOLE),
]
