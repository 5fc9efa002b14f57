"""Races on tensor memory, each planted by leaving out one barrier of a kernel that is right."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.nvgpu import tcgen05
from basedsl_cute.sim import SimulationError
from tests.cute.blackwell.harness import smem_descriptor
from tests.cute.blackwell.test_mma_instructions import descriptor

M, N, A_AT = 128, 16, 32
IDESC = descriptor("f16", ("f16", "f16"), M, N)
SCALED = descriptor("mxf8f6f4", ("e4m3", "e4m3"), M, N, scale="ue8m0")


@cute.kernel
def kernel(out: cute.Tensor, program: cute.Constexpr, left_out: cute.Constexpr):
    """Warps 0 to 3 store and multiply, warps 4 to 7 load."""
    t, _, _ = arch.thread_idx()
    warp = arch.make_warp_uniform(arch.warp_idx())
    smem = cute.utils.SmemAllocator()
    data = smem.allocate_array(cute.Int32, 2048, byte_alignment=1024)
    holder, done = smem.allocate_array(cute.Int32), smem.allocate_array(cute.Int64)
    there = cute.make_tensor(data, cute.make_layout(2048))
    for i in cute.range_constexpr(8):
        there[256 * i + t] = 0
    if warp == 0:
        with arch.elect_one():
            arch.mbarrier_init(done, 1)
            arch.mbarrier_init_fence()
        arch.alloc_tmem(64, holder)
        arch.relinquish_tmem_alloc_permit()
    arch.fence_view_async_shared()
    arch.sync_threads()
    start = arch.retrieve_tmem_ptr(cute.Float32, 16, holder)
    tile = cute.make_tensor(start, cute.make_layout((M, N), stride=(65536, 1)))
    put = tcgen05.make_tmem_copy(
        cute.make_copy_atom(tcgen05.St32x32bOp(tcgen05.Repetition(N)), cute.Float32), tile
    )
    get = tcgen05.make_tmem_copy(
        cute.make_copy_atom(tcgen05.Ld32x32bOp(tcgen05.Repetition(N)), cute.Float32), tile
    )
    thread = t % 128
    registers = cute.make_rmem_tensor(get.get_slice(thread).partition_D(tile).shape, cute.Float32)
    registers.fill(1.0)
    operand = cute.make_tensor(start + A_AT, tile.layout)
    if warp < 4:
        cute.copy(put, registers, put.get_slice(thread).partition_D(tile))
        cute.copy(put, registers, put.get_slice(thread).partition_D(operand))
        arch.fence_view_async_tmem_store()
    arch.sync_threads()
    program(left_out, warp, thread, start, data, done, (put, get), tile, operand, registers)
    arch.sync_threads()
    if warp >= 4:
        for i in cute.range_constexpr(N):
            out[thread, i] = registers[i]
    if warp == 0:
        arch.dealloc_tmem(start, 64)


@cute.jit
def multiply(start, data, done, a_in_tmem: cute.Constexpr):
    a = smem_descriptor(data, 0, 2048, 128)
    if cute.const_expr(a_in_tmem):
        a = start + A_AT
    with arch.elect_one():
        b = smem_descriptor(data, 4096, 256, 128)
        arch.tcgen05_mma("f16", start, a, b, cute.Int32(IDESC), False)
        arch.tcgen05_commit(done)


@cute.jit
def multiply_scaled(start, data, done):
    """The columns of the operand are scale factors: four of A, one of B."""
    with arch.elect_one():
        a, b = smem_descriptor(data, 0, 2048, 128), smem_descriptor(data, 4096, 256, 128)
        scales = start + A_AT, start + A_AT + 4
        arch.tcgen05_mma_block_scale("mxf8f6f4", start, a, b, cute.Int32(SCALED), False, *scales)
        arch.tcgen05_commit(done)


@cute.jit
def store_then_load(
    left_out: cute.Constexpr, warp, thread, start, data, done, copies, tile, operand, registers
):
    put, get = copies
    if warp < 4:
        registers.fill(2.0)
        cute.copy(put, registers, put.get_slice(thread).partition_D(tile))
        arch.fence_view_async_tmem_store()
    if cute.const_expr(not left_out):
        arch.sync_threads()
    if warp >= 4:
        cute.copy(get, get.get_slice(thread).partition_S(tile), registers)


@cute.jit
def load_then_store(
    left_out: cute.Constexpr, warp, thread, start, data, done, copies, tile, operand, registers
):
    put, get = copies
    if warp >= 4:
        cute.copy(get, get.get_slice(thread).partition_S(tile), registers)
    if cute.const_expr(not left_out):
        arch.sync_threads()
    if warp < 4:
        registers.fill(2.0)
        cute.copy(put, registers, put.get_slice(thread).partition_D(tile))
        arch.fence_view_async_tmem_store()


@cute.jit
def load_then_multiply(
    left_out: cute.Constexpr, warp, thread, start, data, done, copies, tile, operand, registers
):
    _, get = copies
    if warp >= 4:
        cute.copy(get, get.get_slice(thread).partition_S(tile), registers)
    if cute.const_expr(not left_out):
        arch.sync_threads()
    if warp == 0:
        multiply(start, data, done, False)
    arch.mbarrier_wait(done, 0)


@cute.jit
def multiply_then_load(
    left_out: cute.Constexpr, warp, thread, start, data, done, copies, tile, operand, registers
):
    _, get = copies
    if warp == 0:
        multiply(start, data, done, False)
    if cute.const_expr(not left_out):
        arch.mbarrier_wait(done, 0)
        arch.tcgen05_after_thread_sync()
    if warp >= 4:
        cute.copy(get, get.get_slice(thread).partition_S(tile), registers)
    arch.mbarrier_wait(done, 0)


@cute.jit
def multiply_then_fence_and_load(
    left_out: cute.Constexpr, warp, thread, start, data, done, copies, tile, operand, registers
):
    _, get = copies
    if warp == 0:
        multiply(start, data, done, False)
    arch.mbarrier_wait(done, 0)
    if cute.const_expr(not left_out):
        arch.tcgen05_after_thread_sync()
    if warp >= 4:
        cute.copy(get, get.get_slice(thread).partition_S(tile), registers)


@cute.jit
def store_operand_then_multiply(
    left_out: cute.Constexpr, warp, thread, start, data, done, copies, tile, operand, registers
):
    put, _ = copies
    if warp < 4:
        registers.fill(0.0)
        cute.copy(put, registers, put.get_slice(thread).partition_D(operand))
        arch.fence_view_async_tmem_store()
    if cute.const_expr(not left_out):
        arch.sync_threads()
    if warp == 4:
        multiply(start, data, done, True)
    arch.mbarrier_wait(done, 0)


@cute.jit
def multiply_then_store_operand(
    left_out: cute.Constexpr, warp, thread, start, data, done, copies, tile, operand, registers
):
    put, _ = copies
    if warp == 4:
        multiply(start, data, done, True)
    if cute.const_expr(not left_out):
        arch.mbarrier_wait(done, 0)
    if warp < 4:
        cute.copy(put, registers, put.get_slice(thread).partition_D(operand))
        arch.fence_view_async_tmem_store()
    arch.mbarrier_wait(done, 0)


@cute.jit
def store_scales_then_multiply(
    left_out: cute.Constexpr, warp, thread, start, data, done, copies, tile, operand, registers
):
    put, _ = copies
    if warp < 4:
        cute.copy(put, registers, put.get_slice(thread).partition_D(operand))
        arch.fence_view_async_tmem_store()
    if cute.const_expr(not left_out):
        arch.sync_threads()
    if warp == 4:
        multiply_scaled(start, data, done)
    arch.mbarrier_wait(done, 0)


@cute.jit
def multiply_then_store_scales(
    left_out: cute.Constexpr, warp, thread, start, data, done, copies, tile, operand, registers
):
    put, _ = copies
    if warp == 4:
        multiply_scaled(start, data, done)
    if cute.const_expr(not left_out):
        arch.mbarrier_wait(done, 0)
    if warp < 4:
        cute.copy(put, registers, put.get_slice(thread).partition_D(operand))
        arch.fence_view_async_tmem_store()
    arch.mbarrier_wait(done, 0)


@cute.jit
def host(out: cute.Tensor, program: cute.Constexpr, left_out: cute.Constexpr):
    kernel(out, program, left_out).launch(grid=1, block=256)


_MMA = "race on tensor memory: this tcgen05.mma and a read by warp|may still write"
_OPERAND = "race on tensor memory: this tcgen05.(mma and a write|st and a)"
PROGRAMS = {
    store_then_load: "race on tensor memory: this tcgen05.(ld|st) and a (write|read) by warp",
    load_then_store: "race on tensor memory: this tcgen05.(ld|st) and a (write|read) by warp",
    load_then_multiply: _MMA,
    multiply_then_load: _MMA,
    store_operand_then_multiply: _OPERAND,
    multiply_then_fence_and_load: "a tcgen05.ld of another warp's data, without a tcgen05.fence",
    store_scales_then_multiply: _OPERAND,
    multiply_then_store_scales: _OPERAND,
    multiply_then_store_operand: _OPERAND,
}


def run(program, left_out):
    out = np.full((M, N), np.nan, np.float32)
    cute.compile(host, out, program, left_out, options="--arch sim")(out)
    return out


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_a_barrier_that_is_left_out(program):
    with pytest.raises(SimulationError, match=PROGRAMS[program]):
        run(program, True)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_the_twin_that_is_right(program):
    found = run(program, False)
    products = (multiply_then_load, multiply_then_fence_and_load)
    expected = {store_then_load: 2.0, **dict.fromkeys(products, 0.0)}.get(program, 1.0)
    np.testing.assert_array_equal(found, expected)
