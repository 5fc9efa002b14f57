"""Instructions of tensor memory on given bytes: shared memory, tensor memory before and after.

`run(body, smem, tmem)` has one thread of the even block call `body(smem pointer, tmem pointer)`,
and returns the words of tensor memory afterwards. Arrays have a first mode of blocks, 1 or 2:
`smem` bytes, `tmem` words (blocks, 128 lanes, columns).
"""

import numpy as np

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.nvgpu import tcgen05
from basedsl_cute.runtime import from_dlpack

COLUMNS = 256
STEP = 64  # columns that a thread moves at once


def row(x, block, thread, i):
    """The columns that a thread moves at once, the i-th of its lane."""
    at = (block * 128 + thread) * COLUMNS + i * STEP
    return cute.make_tensor(x.iterator + at, cute.make_layout(STEP))


@cute.kernel
def instruction(x: cute.Tensor, before: cute.Tensor, after: cute.Tensor, body: cute.Constexpr):
    t, _, _ = arch.thread_idx()
    b, _, _ = arch.block_idx()
    warp = arch.make_warp_uniform(arch.warp_idx())
    blocks = cute.size(x, mode=[0])
    pair = blocks == 2
    smem = cute.utils.SmemAllocator()
    data = smem.allocate_array(cute.Int32, cute.size(x, mode=[1]), byte_alignment=1024)
    holder = smem.allocate_array(cute.Int32, 1)
    done = smem.allocate_array(cute.Int64, 1)
    there = cute.make_tensor(data, cute.make_layout(cute.size(x, mode=[1])))
    for i in range(t, cute.size(x, mode=[1]), 128):
        there[i] = x[b, i]
    if warp == 0:
        with arch.elect_one():
            arch.mbarrier_init(done, 1)
            arch.mbarrier_init_fence()
        arch.alloc_tmem(COLUMNS, holder, pair)
        arch.relinquish_tmem_alloc_permit(pair)
    arch.fence_view_async_shared()
    arch.sync_threads()
    start = arch.retrieve_tmem_ptr(cute.Int32, 16, holder)
    tile = cute.make_tensor(start, cute.make_layout((128, STEP), stride=(65536, 1)))
    put = tcgen05.make_tmem_copy(cute.make_copy_atom(tcgen05.St32x32bOp(STEP), cute.Int32), tile)
    get = tcgen05.make_tmem_copy(cute.make_copy_atom(tcgen05.Ld32x32bOp(STEP), cute.Int32), tile)
    registers = cute.make_rmem_tensor(get.get_slice(t).partition_D(tile).shape, cute.Int32)
    flat = cute.make_tensor(registers.iterator, cute.make_layout(STEP))
    for i in cute.range_constexpr(COLUMNS // STEP):
        part = cute.make_tensor(start + i * STEP, tile.layout)
        cute.autovec_copy(row(before, b, t, i), flat)
        cute.copy(put, registers, put.get_slice(t).partition_D(part))
    arch.fence_view_async_tmem_store()
    arch.tcgen05_before_thread_sync()
    if cute.const_expr(pair):
        arch.cluster_arrive()
        arch.cluster_wait()
    else:
        arch.sync_threads()
    arch.tcgen05_after_thread_sync()
    if warp == 0 and b == 0:
        with arch.elect_one():
            body(data, start)
            arch.tcgen05_commit(done, 3 if cute.const_expr(pair) else None, blocks)
    arch.mbarrier_wait(done, 0)
    arch.tcgen05_after_thread_sync()
    for i in cute.range_constexpr(COLUMNS // STEP):
        part = cute.make_tensor(start + i * STEP, tile.layout)
        cute.copy(get, get.get_slice(t).partition_S(part), registers)
        cute.autovec_copy(flat, row(after, b, t, i))
    arch.sync_threads()
    if cute.const_expr(pair):
        arch.cluster_arrive()
        arch.cluster_wait()
    if warp == 0:
        arch.dealloc_tmem(start, COLUMNS, pair)


def compile_body(body, smem, tmem, target="sim"):
    blocks = len(smem)
    assert smem.dtype == np.uint8 and tmem.shape == (blocks, 128, COLUMNS)
    x = np.ascontiguousarray(smem).view(np.int32)
    before = np.ascontiguousarray(tmem).view(np.int32)
    after = np.full_like(before, -1)

    @cute.jit
    def host(x: cute.Tensor, before: cute.Tensor, after: cute.Tensor):
        instruction(x, before, after, body).launch(
            grid=(blocks, 1, 1), block=(128, 1, 1), cluster=(blocks, 1, 1)
        )

    args = [from_dlpack(array, assumed_align=16) for array in (x, before, after)]
    return cute.compile(host, *args, options=f"--arch {target}"), args, after


def run(body, smem, tmem):
    compiled, args, after = compile_body(body, smem, tmem)
    compiled(*args)
    return after.view(np.uint32)


def smem_descriptor(base, offset, lbo, sbo, swizzle=0):
    """The descriptor (PTX ISA, "Shared memory descriptor") of bytes `offset` behind `base`."""
    start = (base.toint() + offset >> 4 & 0x3FFF).to(cute.Int64)
    constant = (lbo >> 4) << 16 | (sbo >> 4) << 32 | 1 << 46 | swizzle << 61
    return start | cute.Int64(constant - (constant >> 63 << 64))


def core_matrices(rows, row_bytes, lbo, sbo):
    """The byte offset of each byte (rows, row_bytes) of a K-major operand without swizzle: core
    matrices of 8 rows by 16 bytes, `lbo` apart along K and `sbo` along the rows.
    """
    r, k = np.indices((rows, row_bytes))
    return r // 8 * sbo + r % 8 * 16 + k // 16 * lbo + k % 16
