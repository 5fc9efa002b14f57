"""Prefix sums in one pass: blocks look back at what the blocks before them have published."""

import numpy as np

import basedsl_cute as cute
import basedsl_cute as cutlass
from basedsl_cute.runtime import from_dlpack

ITEMS = 4
THREADS = 64


@cute.jit
def warp_inclusive_scan(v: cutlass.Int64, lane: cutlass.Int32) -> cutlass.Int64:
    for k in cutlass.range_constexpr(5):
        up = cute.arch.shuffle_sync_up(v, offset=1 << k, mask_and_clamp=0)
        v = v + (up if lane >= (1 << k) else cutlass.Int64(0))
    return v


@cute.kernel
def scan_kernel(
    x: cute.Tensor,
    y: cute.Tensor,
    status: cute.Tensor,
    aggregate: cute.Tensor,
    prefix: cute.Tensor,
    ticket: cute.Pointer,
):
    tid = cute.arch.thread_idx()[0]
    lane = cute.arch.lane_idx()
    wid = cute.arch.warp_idx()
    smem = cutlass.utils.SmemAllocator()
    totals = smem.allocate_tensor(cutlass.Int64, cute.make_layout(THREADS // 32), byte_alignment=8)
    shared = smem.allocate_tensor(cutlass.Int64, cute.make_layout(2), byte_alignment=8)
    if tid == 0:
        shared[0] = cute.arch.atomic_add(ticket, cutlass.Int32(1)).to(cutlass.Int64)
    cute.arch.sync_threads()
    tile = shared[0].to(cutlass.Int32)
    n = cute.size(x)
    start = (tile * THREADS + tid) * ITEMS
    frag = cute.make_rmem_tensor((ITEMS,), cutlass.Int64)
    running = cutlass.Int64(0)
    for j in cutlass.range_constexpr(ITEMS):
        if start + j < n:
            running += x[start + j]
        frag[j] = running
    inclusive = warp_inclusive_scan(running, lane)
    if lane == 31:
        totals[wid] = inclusive
    cute.arch.sync_threads()
    before = cutlass.Int64(0)
    block_total = cutlass.Int64(0)
    for w in cutlass.range_constexpr(THREADS // 32):
        t = totals[w]
        if w < wid:
            before += t
        block_total += t
    if tid == 0:
        if tile == 0:
            prefix[0] = block_total
            cute.arch.fence_acq_rel_gpu()
            cute.arch.store(
                (status.iterator + 0).llvm_ptr, cutlass.Int32(2), sem="release", scope="gpu"
            )
            shared[1] = 0
        else:
            aggregate[tile] = block_total
            cute.arch.fence_acq_rel_gpu()
            cute.arch.store(
                (status.iterator + tile).llvm_ptr, cutlass.Int32(1), sem="release", scope="gpu"
            )
            exclusive = cutlass.Int64(0)
            p = tile - 1
            done = False
            while not done:
                s = cute.arch.load(
                    (status.iterator + p).llvm_ptr, cutlass.Int32, sem="acquire", scope="gpu"
                )
                if s == 2:
                    exclusive += prefix[p]
                    done = True
                elif s == 1:
                    exclusive += aggregate[p]
                    p -= 1
            shared[1] = exclusive
            prefix[tile] = exclusive + block_total
            cute.arch.fence_acq_rel_gpu()
            cute.arch.store(
                (status.iterator + tile).llvm_ptr, cutlass.Int32(2), sem="release", scope="gpu"
            )
    cute.arch.sync_threads()
    offset = shared[1] + before + inclusive - running
    for j in cutlass.range_constexpr(ITEMS):
        if start + j < n:
            y[start + j] = frag[j] + offset


@cute.jit
def scan(
    x: cute.Tensor,
    y: cute.Tensor,
    status: cute.Tensor,
    aggregate: cute.Tensor,
    prefix: cute.Tensor,
    ticket: cute.Tensor,
):
    blocks = cute.ceil_div(cute.size(x), ITEMS * THREADS)
    scan_kernel(x, y, status, aggregate, prefix, ticket.iterator).launch(
        grid=(blocks, 1, 1), block=(THREADS, 1, 1)
    )


def check(n=1500, dtype=np.int32):
    rng = np.random.default_rng(1)
    x = rng.integers(-100, 100, n).astype(dtype)
    y = np.zeros(n, np.int64)
    blocks = max(1, -(-n // (ITEMS * THREADS)))
    st, ag, pf, tk = (
        np.zeros(blocks, np.int32),
        np.zeros(blocks, np.int64),
        np.zeros(blocks, np.int64),
        np.zeros(1, np.int32),
    )
    scan(*(from_dlpack(a).mark_layout_dynamic() for a in (x, y, st, ag, pf, tk)))
    np.testing.assert_array_equal(y, np.cumsum(x.astype(np.int64)))


def run():
    for n in (1, 256, 1500):
        check(n)
    check(700, np.int8)
