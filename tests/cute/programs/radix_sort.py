"""Radix sort of 32-bit keys, four bits a pass: histograms by atomics, a scan, ranks by ballots."""

import numpy as np

import basedsl_cute as cute
import basedsl_cute as cutlass
from basedsl_cute import Int32, Uint32, const_expr, range_constexpr
from basedsl_cute.runtime import from_dlpack

RADIX_BITS = 4
RADIX = 1 << RADIX_BITS
BLOCK = 64


@cute.kernel
def count_digits(keys: cute.Tensor, counts: cute.Tensor, shift: Uint32, n: Int32):
    tid, _, _ = cute.arch.thread_idx()
    bid, _, _ = cute.arch.block_idx()
    smem = cutlass.utils.SmemAllocator()
    hist = smem.allocate_array(Int32, num_elems=RADIX)
    s = cute.make_tensor(hist, cute.make_layout(RADIX))
    if tid < RADIX:
        s[tid] = 0
    cute.arch.barrier()
    i = bid * BLOCK + tid
    if i < n:
        digit = (keys[i] >> shift) & Uint32(RADIX - 1)
        cute.arch.atomic_add((hist + Int32(digit)).llvm_ptr, Int32(1), sem="relaxed", scope="cta")
    cute.arch.barrier()
    if tid < RADIX:
        counts[tid, bid] = s[tid]


@cute.kernel
def scan_counts(counts: cute.Tensor):
    """Exclusive scan in digit-major order by one warp."""
    lane = cute.arch.lane_idx()
    total = cute.size(counts)
    nblk = counts.shape[1]
    carry = Int32(0)
    base = Int32(0)
    while base < total:
        i = base + lane
        v = Int32(0)
        if i < total:
            v = counts[i // nblk, i % nblk]
        x = v
        for k in range_constexpr(5):
            d = 1 << k
            up = cute.arch.shuffle_sync_up(x, offset=d, mask_and_clamp=0)
            if lane >= d:
                x += up
        if i < total:
            counts[i // nblk, i % nblk] = carry + x - v
        carry = carry + cute.arch.shuffle_sync(x, offset=31)
        base += 32


@cute.kernel
def scatter(keys: cute.Tensor, out: cute.Tensor, counts: cute.Tensor, shift: Uint32, n: Int32):
    tid, _, _ = cute.arch.thread_idx()
    bid, _, _ = cute.arch.block_idx()
    warp = cute.arch.warp_idx()
    lane = cute.arch.lane_idx()
    smem = cutlass.utils.SmemAllocator()
    warp_hist = smem.allocate_tensor(Int32, cute.make_layout((BLOCK // 32, RADIX)), 16)
    for j in range(tid, cute.size(warp_hist), BLOCK):
        warp_hist[j] = 0
    cute.arch.barrier()
    i = bid * BLOCK + tid
    valid = i < n
    key = Uint32(0)
    if valid:
        key = keys[i]
    digit = Int32((key >> shift) & (RADIX - 1))
    # peers with the same digit, by ballots
    peers = cute.arch.vote_ballot_sync(valid)
    for b in range_constexpr(RADIX_BITS):
        bit = ((digit >> b) & 1) == 1
        votes = cute.arch.vote_ballot_sync(bit)
        peers = peers & (votes if bit else ~votes)
    rank = cute.arch.popc(peers & ((1 << lane) - 1))
    if valid and rank == 0:
        warp_hist[warp, digit] = cute.arch.popc(peers)
    cute.arch.barrier()
    if valid:
        pos = counts[digit, bid] + rank
        for w in range(warp):
            pos += warp_hist[w, digit]
        out[pos] = key


@cute.jit
def radix_sort(keys: cute.Tensor, tmp: cute.Tensor, counts: cute.Tensor):
    n = cute.size(keys)
    grid = [cute.ceil_div(n, BLOCK), 1, 1]
    for p in range_constexpr(32 // RADIX_BITS):
        shift = Uint32(p * RADIX_BITS)
        src, dst = (keys, tmp) if const_expr(p % 2 == 0) else (tmp, keys)
        count_digits(src, counts, shift, n).launch(grid=grid, block=[BLOCK, 1, 1])
        scan_counts(counts).launch(grid=[1, 1, 1], block=[32, 1, 1])
        scatter(src, dst, counts, shift, n).launch(grid=grid, block=[BLOCK, 1, 1])


def check(n=300):
    rng = np.random.default_rng(1)
    x = rng.integers(0, 2**32, n, dtype=np.uint32)
    t = np.zeros_like(x)
    c = np.zeros((RADIX, -(-n // BLOCK)), np.int32)
    want = np.sort(x)
    radix_sort(
        from_dlpack(x).mark_layout_dynamic(),
        from_dlpack(t).mark_layout_dynamic(),
        from_dlpack(c).mark_layout_dynamic(leading_dim=1),
    )
    np.testing.assert_array_equal(x, want)


def run():
    for n in (1, 64, 300):
        check(n)
