"""The k largest of each row in order, ties by index: histograms of the bits find the smallest."""

import numpy as np

import basedsl_cute as cute
import basedsl_cute as cutlass
import basedsl_cute.utils as utils
from basedsl_cute import Boolean, Float32, Int32, Uint32, Uint64


@cute.jit
def order_key(x: Float32) -> Uint32:
    """Bits of a float as an unsigned integer with the same order."""
    r = cute.make_rmem_tensor((1,), Float32)
    r[0] = x
    bits = cute.recast_tensor(r, Int32)[0]
    flip = Uint32(0xFFFFFFFF) if bits < 0 else Uint32(0x80000000)
    return Uint32(bits) ^ flip


@cute.kernel
def topk_kernel(mX: cute.Tensor, mV: cute.Tensor, mI: cute.Tensor, k: cutlass.Constexpr[int]):
    row = cute.arch.block_idx()[0]
    tid, lane, wid = cute.arch.thread_idx()[0], cute.arch.lane_idx(), cute.arch.warp_idx()
    n = mX.shape[1]
    smem = utils.SmemAllocator()
    hist = smem.allocate_tensor(Int32, cute.make_layout(256), byte_alignment=16)
    state = smem.allocate_tensor(
        Uint32, cute.make_layout(3), byte_alignment=16
    )  # prefix, remaining, count
    keys = smem.allocate_tensor(Uint64, cute.make_layout(k), byte_alignment=16)
    if tid == 0:
        state[0], state[1], state[2] = Uint32(0), Uint32(k), Uint32(0)
    for byte in cutlass.range_constexpr(3, -1, -1):
        for i in cutlass.range(tid, 256, 128):
            hist[i] = 0
        cute.arch.sync_threads()
        prefix = state[0]
        for j in cutlass.range(tid, n, 128):
            key = order_key(mX[row, j].to(Float32))
            match = Boolean(True)
            if cutlass.const_expr(byte < 3):
                match = (key >> Uint32(8 * (byte + 1))) == prefix
            if match:
                cute.arch.atomic_add(
                    hist.iterator + Int32((key >> Uint32(8 * byte)) & Uint32(255)),
                    Int32(1),
                    sem="relaxed",
                    scope="cta",
                )
        cute.arch.sync_threads()
        if tid == 0:
            need = Int32(state[1])
            digit = Int32(255)
            while hist[digit] < need:
                need -= hist[digit]
                digit -= 1
            state[0] = (prefix << Uint32(8)) | Uint32(digit)
            state[1] = Uint32(need)
        cute.arch.sync_threads()
    threshold = state[0]
    ties = state[1]
    # collect: all above, and the first `ties` equal ones by index (one warp keeps order)
    if wid == 0:
        taken = Int32(0)
        equal = Int32(0)
        for base in cutlass.range(0, n, 32):
            j = base + lane
            key = Uint32(0)
            if j < n:
                key = order_key(mX[row, j].to(Float32))
            above = j < n and key > threshold
            same = j < n and key == threshold
            same_mask = cute.arch.vote_ballot_sync(same)
            before = cute.arch.popc(same_mask & ((1 << lane) - 1))
            take = above or (same and equal + before < Int32(ties))
            mask = cute.arch.vote_ballot_sync(take)
            if take:
                pos = taken + cute.arch.popc(mask & ((1 << lane) - 1))
                keys[pos] = (Uint64(key) << 32) | Uint64(0xFFFFFFFF - Uint32(j))
            taken += cute.arch.popc(mask)
            equal += cute.arch.popc(same_mask)
    cute.arch.sync_threads()
    # rank sort of k
    for i in cutlass.range(tid, k, 128):
        mine = keys[i]
        rank = Int32(0)
        for j in cutlass.range_constexpr(k):
            rank += Int32(1) if keys[j] > mine else Int32(0)
        idx = Int32(Uint32(0xFFFFFFFF) - Uint32(mine & 0xFFFFFFFF))
        mI[row, rank] = idx
        mV[row, rank] = mX[row, idx]


@cute.jit
def topk(mX: cute.Tensor, mV: cute.Tensor, mI: cute.Tensor, k: cutlass.Constexpr[int]):
    topk_kernel(mX, mV, mI, k).launch(grid=(mX.shape[0], 1, 1), block=(128, 1, 1))


def check(rows=3, n=500, k=8, dt=np.float32, ties=False):
    rng = np.random.default_rng(0)
    x = (rng.integers(-5, 5, (rows, n)) if ties else rng.standard_normal((rows, n))).astype(dt)
    v, i = np.zeros((rows, k), dt), np.zeros((rows, k), np.int32)
    f = cute.compile(topk, x, v, i, k, options="--enable-tvm-ffi")
    f(x, v, i)
    order = np.argsort(-x.astype(np.float64), axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(i, order)
    np.testing.assert_array_equal(v, np.take_along_axis(x, order, 1))


def run():
    check()
    check(ties=True, n=40, dt=np.float16)
