"""A convolution as a product of matrices: tiles of images by im2col TMA, multiplied by wgmma.

y[n, p, q, k] = sum of x[n, p * stride + r - padding, q * stride + s - padding, c] w[k, r, s, c].
One warp loads stages, a warpgroup multiplies tiles of 64 positions by all K filters.
"""

import basedsl_cute as cute
from basedsl_cute import arch, pipeline
from basedsl_cute.nvgpu import cpasync, warpgroup
from basedsl_cute.utils import hopper_helpers as sm90

STAGES, ROWS, CHANNELS = 3, 64, 32


@cute.kernel
def multiply(
    a_atom,
    a: cute.Tensor,
    b_atom,
    b: cute.Tensor,
    y: cute.Tensor,
    mma: cute.TiledMma,
    a_layout: cute.Constexpr,
    b_layout: cute.Constexpr,
):
    smem = cute.utils.SmemAllocator()
    barriers = smem.allocate_array(cute.Int64, 2 * STAGES)
    dtype = a_atom.value_type
    sa = smem.allocate_tensor(dtype, a_layout.outer, 1024, a_layout.inner)
    sb = smem.allocate_tensor(dtype, b_layout.outer, 1024, b_layout.inner)
    n = cute.size(b_layout, mode=[0])
    pipe = pipeline.PipelineTmaAsync.create(
        barrier_storage=barriers,
        num_stages=STAGES,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 4),
        tx_count=(ROWS + n) * CHANNELS * dtype.width // 8,
    )
    block, _, _ = arch.block_idx()
    ga = cute.local_tile(a, (ROWS, CHANNELS), (block, None))
    gb = cute.local_tile(b, (n, CHANNELS), (0, None))
    parts = [
        cpasync.tma_partition(
            atom,
            0,
            cute.make_layout(1),
            cute.group_modes(shared, 0, 2),
            cute.group_modes(tiles, 0, 2),
        )
        for atom, shared, tiles in ((a_atom, sa, ga), (b_atom, sb, gb))
    ]
    steps = cute.size(ga, mode=[2])
    thread, _, _ = arch.thread_idx()
    if arch.make_warp_uniform(arch.warp_idx()) == 4:
        state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, STAGES)
        for k in cute.range(steps):
            pipe.producer_acquire(state)
            barrier = pipe.producer_get_barrier(state)
            for atom, (shared, tiles) in zip((a_atom, b_atom), parts, strict=True):
                cute.copy(atom, tiles[None, k], shared[None, state.index], tma_bar_ptr=barrier)
            pipe.producer_commit(state)
            state.advance()
        pipe.producer_tail(state)
    else:
        mine = mma.get_slice(thread)
        ra = mma.make_fragment_A(mine.partition_A(sa))
        rb = mma.make_fragment_B(mine.partition_B(sb))
        acc = mma.make_fragment_C(mma.partition_shape_C((ROWS, n)))
        acc.fill(0)
        mma.set(warpgroup.Field.ACCUMULATE, True)
        state = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, STAGES)
        for _ in cute.range(steps):
            pipe.consumer_wait(state)
            warpgroup.fence()
            of_stage = (None, None, None, state.index)
            cute.gemm(mma, acc, ra[of_stage], rb[of_stage], acc)
            warpgroup.commit_group()
            warpgroup.wait_group(0)
            pipe.consumer_release(state)
            state.advance()
        at = mine.partition_C(cute.make_identity_tensor((ROWS, n)))
        for i in cute.range_constexpr(cute.size(acc)):
            row, column = at[i]
            if block * ROWS + row < cute.size(y, mode=[0]):
                y[block * ROWS + row, column] = acc[i].to(y.element_type)


@cute.jit
def convolve(
    x: cute.Tensor,
    w: cute.Tensor,
    y: cute.Tensor,
    padding: cute.Constexpr,
    stride: cute.Constexpr,
    dilation: cute.Constexpr,
):
    """x (N, H, W, C), w (K, R, S, C), y (N, P, Q, K)."""
    count, r, s, c = w.shape
    k_mode = warpgroup.OperandMajorMode.K
    dtype = x.element_type
    mma = sm90.make_trivial_tiled_mma(
        dtype, dtype, k_mode, k_mode, cute.Float32, (1, 1, 1), (ROWS, count)
    )
    layouts = []
    for rows in (ROWS, count):
        atom = warpgroup.make_smem_layout_atom("K_SW64", dtype)
        layouts.append(cute.tile_to_shape(atom, (rows, CHANNELS, STAGES), (0, 1, 2)))
    one_a, one_b = (cute.slice_(layout, (None, None, 0)) for layout in layouts)
    load = cpasync.CopyBulkTensorIm2ColG2SOp()
    a_atom, a = cpasync.make_im2col_tma_atom(
        load,
        x,
        one_a,
        (ROWS, CHANNELS),
        (r, s),
        padding=padding,
        stride=stride,
        dilation=dilation,
    )
    strides = w.stride[0], (w.stride[3], w.stride[2], w.stride[1])
    filters = cute.make_tensor(w.iterator, cute.make_layout((count, (c, s, r)), stride=strides))
    b_atom, b = cpasync.make_tiled_tma_atom(
        cpasync.CopyBulkTensorTileG2SOp(), filters, one_b, (count, CHANNELS)
    )
    rows = cute.size(y, mode=[0]) * cute.size(y, mode=[1]) * cute.size(y, mode=[2])
    out = cute.make_tensor(y.iterator, cute.make_layout((rows, count), stride=(count, 1)))
    multiply(a_atom, a, b_atom, b, out, mma, *layouts).launch(
        grid=cute.ceil_div(rows, ROWS), block=160
    )
