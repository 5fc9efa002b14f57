"""Each wrapper of an instruction in `experimental.primitives` does on the simulator what PTX says,
and compiles for sm_90a.
"""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLError
from basedsl.errors import DSLTypeError
from basedsl_cute import arch
from basedsl_cute.experimental import primitives as p
from basedsl_cute.nvgpu import cpasync
from basedsl_cute.runtime import from_dlpack


@cute.kernel
def exchange(out: cute.Tensor):
    lane = arch.thread_idx()[0]
    out[0, lane] = p.shfl_sync(lane, 1, p.Shfl.BFLY)
    out[1, lane] = p.shfl_sync(lane, 1, p.Shfl.UP)
    out[2, lane] = p.shfl_sync(lane, 3, "down")
    out[3, lane] = p.shfl_sync(lane, 5)
    out[4, lane] = p.vote_sync(lane < 5, p.VoteSync.BALLOT)
    out[5, lane] = cute.Int32(p.vote_sync(lane == 7, p.VoteSync.ANY))
    out[6, lane] = cute.Int32(p.vote_sync(lane < 32, "all"))
    out[7, lane] = cute.Int32(p.vote_sync(lane == 7, p.VoteSync.UNI))
    out[8, lane] = p.redux_sync(lane, p.ReductionKind.ADD)
    p.red(out.iterator + 9 * 32, lane, "max", order=p.MemOrder.RELAXED, scope=p.MemScope.GPU)
    p.red(out.iterator + 9 * 32 + 1, cute.Int32(2))
    elected = cute.Int32(p.elect_sync())
    out[10, lane] = elected
    swapped = p.prmt(lane, 0x4012, p.PermuteMode.DEFAULT, hi=lane)
    out[11, lane] = swapped
    p.griddepcontrol(p.GridDepAction.WAIT)
    p.griddepcontrol("launch_dependents")
    p.fence(p.MemScope.GPU)
    p.fence("cta")


@cute.jit
def run_exchange(out: cute.Tensor):
    exchange(out).launch(grid=1, block=32)


def test_exchanges_votes_and_reductions(sim):
    out = np.zeros((12, 32), np.int32)
    run_exchange(from_dlpack(out))
    lane = np.arange(32)
    rows = [
        lane ^ 1,
        np.maximum(lane - 1, 0),
        np.where(lane + 3 < 32, lane + 3, lane),
        np.full(32, 5),
        np.full(32, 31),
        np.ones(32),
        np.ones(32),
        np.zeros(32),
        np.full(32, 496),
    ]
    np.testing.assert_array_equal(out[:9], rows)
    assert out[9, :2].tolist() == [31, 64] and out[10].sum() == 1
    np.testing.assert_array_equal(out[11], lane << 16 | lane << 24)


@cute.kernel
def matrices(x: cute.Tensor, out: cute.Tensor):
    """Each 8x8 quarter of a 16x16 matrix comes by ldmatrix and goes, transposed, by stmatrix."""
    lane = arch.thread_idx()[0]
    tile = cute.Array(None, cute.Float16, (16, 16), "smem", 16)
    turned = cute.Array(None, cute.Float16, (16, 16), "smem", 16)
    for i in cute.range_constexpr(8):
        tile[lane // 2, lane % 2 * 8 + i] = x[lane // 2, lane % 2 * 8 + i]
    p.barrier_cta_sync()
    row = lane % 16 * 16 + lane // 16 * 8
    words = p.ldmatrix(tile.ptr + row, 4)
    p.stmatrix(turned.ptr + row, *words, trans=True)
    p.barrier_cta_sync(1, 32)
    for i in cute.range_constexpr(8):
        out[lane // 2, lane % 2 * 8 + i] = turned[lane // 2, lane % 2 * 8 + i]


@cute.jit
def run_matrices(x: cute.Tensor, out: cute.Tensor):
    matrices(x, out).launch(grid=1, block=32)


def test_matrices(sim):
    x = np.arange(256, dtype=np.float16).reshape(16, 16)
    out = np.zeros_like(x)
    run_matrices(from_dlpack(x), from_dlpack(out))
    quarters = x.reshape(2, 8, 2, 8).transpose(0, 3, 2, 1).reshape(16, 16)
    np.testing.assert_array_equal(out, quarters)


@cute.kernel
def copies(x: cute.Tensor, out: cute.Tensor, load, store, reduction):
    thread = arch.thread_idx()[0]
    bars = cute.Array(None, cute.Int64, (2,), "smem", 8)
    line = cute.Array(None, cute.Float32, (64,), "smem", 128)
    box = cute.Array(None, cute.Float32, (8, 8), "smem", 128)
    if thread == 0:
        p.mbarrier_init(bars.ptr, 1)
        p.mbarrier_init(bars.ptr + 1, 1)
        p.fence_mbarrier_init()
    p.barrier_cta_sync()
    if thread == 0:
        p.mbarrier_arrive_expect_tx(bars.ptr, 256)
        p.cp_async_bulk_shared_cluster_global(line.ptr, x.iterator, 256, bars.ptr)
        p.mbarrier_expect_tx(bars.ptr + 1, 256)
        p.mbarrier_arrive(bars.ptr + 1)
        p.cp_async_bulk_tensor_shared_cluster_global(box.ptr, load.tensor_map, (8, 0), bars.ptr + 1)
    p.mbarrier_wait_parity(bars.ptr, 0)
    while not p.mbarrier_try_wait_parity(bars.ptr + 1, 0):
        pass
    while not p.mbarrier_wait_parity(bars.ptr + 1, 0, p.MBarrierWait.TEST):
        pass
    p.fence_proxy_async()
    p.barrier_cta_sync()
    if thread == 0:
        p.cp_async_bulk_global_shared_cta(out.iterator, line.ptr, 256)
        p.cp_async_bulk_tensor_global_shared_cta(store.tensor_map, (8, 8), box.ptr)
        p.cp_async_bulk_commit_group()
        p.cp_async_bulk_wait_group(0)
        p.cp_reduce_async_bulk_tensor_global_shared_cta(reduction.tensor_map, (8, 8), box.ptr)
        p.cp_async_bulk_commit_group()
        p.cp_async_bulk_wait_group(0, read=True)


@cute.jit
def run_copies(x: cute.Tensor, out: cute.Tensor):
    tile = cute.make_layout((8, 8), stride=(8, 1))
    load, _ = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileG2SOp(), x, tile, (8, 8))
    store, _ = cpasync.make_tiled_tma_atom(cpasync.CopyBulkTensorTileS2GOp(), out, tile, (8, 8))
    adding = cpasync.CopyReduceBulkTensorTileS2GOp()
    reduction, _ = cpasync.make_tiled_tma_atom(adding, out, tile, (8, 8))
    copies(x, out, load, store, reduction).launch(grid=1, block=32)


def test_bulk_copies_and_tma(sim):
    x = np.arange(512, dtype=np.float32).reshape(16, 32)
    out = np.zeros((16, 32), np.float32)
    run_copies(from_dlpack(x), from_dlpack(out))
    want = np.zeros_like(out)
    want.ravel()[:64] = x.ravel()[:64]
    want[8:, 8:16] = 2 * x[:8, 8:16]
    np.testing.assert_array_equal(out, want)


@cute.kernel
def cluster(out: cute.Tensor):
    shared = cute.Array(None, cute.Int32, (1,), "smem")
    rank = arch.block_idx_in_cluster()
    if arch.thread_idx()[0] == 0:
        shared[0] = rank + 10
    p.barrier_cluster_arrive(p.MemOrder.RELEASE)
    p.barrier_cluster_wait()
    other = arch.load(arch.map_dsmem_ptr(shared.ptr, rank ^ 1), cute.Int32)
    p.barrier_cluster_arrive("relaxed")
    p.barrier_cluster_wait()
    out[rank] = other


@cute.jit
def run_cluster(out: cute.Tensor):
    cluster(out).launch(grid=2, block=32, cluster=(2, 1, 1))


def test_barriers_of_a_cluster(sim):
    out = np.zeros(2, np.int32)
    run_cluster(out)
    assert out.tolist() == [11, 10]


def test_half_a_block_waits_for_the_other(sim, capsys):
    @cute.kernel
    def handing(out: cute.Tensor):
        shared = cute.Array(None, cute.Int32, (1,), "smem")
        thread = arch.thread_idx()[0]
        if thread < 32:
            if thread == 0:
                shared[0] = 42
            p.barrier_cta_arrive(3, 64)
        else:
            p.barrier_cta_sync(3, 64)
            out[thread - 32] = shared[0]
        if thread == 0:
            p.print_runtime("{} threads", 64)

    @cute.jit
    def run(out: cute.Tensor):
        handing(out).launch(grid=1, block=64)

    out = np.zeros(32, np.int32)
    run(out)
    assert (out == 42).all() and capsys.readouterr().out == "64 threads\n"


def test_exit_ends_a_thread_on_gpus_alone(monkeypatch):
    @cute.kernel
    def early(out: cute.Tensor):
        if arch.thread_idx()[0] > 3:
            p.exit()
        out[arch.thread_idx()[0]] = 1

    @cute.jit
    def run(out: cute.Tensor):
        early(out).launch(grid=1, block=32)

    out = from_dlpack(np.zeros(32, np.int32))
    assert "exit;" in cute.compile(run, out, options="--gpu-arch sm_90a").__ptx__
    monkeypatch.setenv("CUTE_DSL_ARCH", "sim")
    with pytest.raises(DSLError, match="exit"):
        run(np.zeros(32, np.int32))


@pytest.mark.parametrize("run", [run_exchange, run_matrices, run_cluster])
def test_they_compile_for_hopper(run):
    x = from_dlpack(np.zeros((16, 16), np.float16))
    arguments = {run_exchange: [from_dlpack(np.zeros((12, 32), np.int32))], run_matrices: [x, x]}
    given = arguments.get(run, [from_dlpack(np.zeros(2, np.int32))])
    assert cute.compile(run, *given, options="--gpu-arch sm_90a").__ptx__


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: p.fence("block"), "a fence: 'block' is none of cta, cluster, gpu, sys"),
        (lambda: p.fence("cta", "sc"), "a fence is acq_rel here, not sc"),
        (lambda: p.vote_sync(True, "most"), "a vote: 'most' is none of any, all, uni, ballot"),
        (lambda: p.setmaxregister(40, "keep"), "'keep' is none of increase, decrease"),
        (lambda: p.ldmatrix(None, 3), "1, 2 or 4 matrices, not 3"),
        (lambda: p.tensormap_replace(None, "box", 1), "'box' is none of global_address"),
    ],
)
def test_what_there_is_not_is_an_error(sim, call, message):
    @cute.kernel
    def wrong():
        call()

    @cute.jit
    def run():
        wrong().launch(grid=1, block=32)

    with pytest.raises(DSLTypeError, match=message):
        run()
