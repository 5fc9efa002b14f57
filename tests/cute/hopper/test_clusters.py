"""Blocks of a cluster that use each other's shared memory, and what the simulator finds there."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLError
from basedsl_cute import arch


def both_arrive_and_wait(relaxed=False):
    if relaxed:
        arch.cluster_arrive_relaxed()
    else:
        arch.cluster_arrive()
    arch.cluster_wait()


@cute.kernel
def exchange(x: cute.Tensor, out: cute.Tensor, relaxed: cute.Constexpr, ends: cute.Constexpr):
    """Each block reads what the other one wrote."""
    t, b, rank = arch.thread_idx()[0], arch.block_idx()[0], arch.block_idx_in_cluster()
    mine = cute.utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout((64,)), 16)
    mine[t] = x[b, t]
    both_arrive_and_wait(relaxed)
    value = arch.map_dsmem_ptr(mine.iterator + t, (rank + 1) % 2).load()
    if cute.const_expr(ends):
        both_arrive_and_wait()
    out[b, t] = value


def run(relaxed=False, ends=True):
    x = np.arange(128, dtype=np.float32).reshape(2, 64)
    out = np.full_like(x, np.nan)

    @cute.jit
    def host(x: cute.Tensor, out: cute.Tensor):
        exchange(x, out, relaxed, ends).launch(grid=2, block=64, cluster=(2, 1, 1))

    host(x, out)
    np.testing.assert_array_equal(out, x[::-1])


def test_what_another_block_wrote(sim, monkeypatch):
    monkeypatch.setenv("CUTE_DSL_CHECK_RACES", "1")
    run()


@pytest.mark.parametrize(
    "options, message",
    [
        ({"relaxed": True}, "this read and a write by warp . of block . touch byte"),
        ({"ends": False}, "this read is in the shared memory of another block"),
    ],
)
def test_races(sim, monkeypatch, options, message):
    monkeypatch.setenv("CUTE_DSL_CHECK_RACES", "1")
    with pytest.raises(DSLError, match=message):
        run(**options)


@cute.kernel
def histogram(x: cute.Tensor, counts: cute.Tensor, places: cute.Tensor):
    """Each block of the cluster has a part of the bins; `places` is which of its bin's an x is."""
    t, block, rank = arch.thread_idx()[0], arch.block_idx()[0], arch.block_idx_in_cluster()
    each = counts.shape[0] // 2
    bins = cute.utils.SmemAllocator().allocate_tensor(cute.Int32, cute.make_layout((8,)), 16)
    if t < each:
        bins[t] = 0
    both_arrive_and_wait()
    value = x[block, t]
    where = arch.map_dsmem_ptr(bins.iterator + value % each, value // each)
    places[block, t] = arch.atomic_add(ptr=where, val=cute.Int32(1))
    both_arrive_and_wait()
    if t < each:
        counts[rank * each + t] = bins[t]


def test_atomics_in_several_blocks(hopper, monkeypatch):
    """The lanes of one warp count in different blocks."""
    monkeypatch.setenv("CUTE_DSL_CHECK_RACES", "1")
    x = np.random.default_rng(0).integers(0, 16, (2, 64)).astype(np.int32)
    counts, places = np.full(16, -1, np.int32), np.full_like(x, -1)

    @cute.jit
    def host(x: cute.Tensor, counts: cute.Tensor, places: cute.Tensor):
        histogram(x, counts, places).launch(grid=2, block=64, cluster=(2, 1, 1))

    host(x, counts, places)
    cute.synchronize()
    np.testing.assert_array_equal(counts, np.bincount(x.ravel(), minlength=16))
    for value in range(16):
        assert sorted(places[x == value]) == list(range(counts[value]))


@cute.kernel
def wrong(which: cute.Constexpr):
    memory = cute.utils.SmemAllocator().allocate_tensor(cute.Int32, cute.make_layout((4,)), 16)
    if cute.const_expr(which == "waits"):
        arch.cluster_wait()
    if cute.const_expr(which == "arrives"):
        arch.cluster_arrive()
        arch.cluster_arrive()
    if cute.const_expr(which == "writes"):
        arch.map_dsmem_ptr(memory.iterator, 5).store(cute.Int32(1))


@pytest.mark.parametrize(
    "which, message",
    [
        ("waits", r"cluster_wait\(\) with no cluster_arrive\(\) before"),
        ("arrives", r"cluster_arrive\(\) for the second time with no cluster_wait\(\) between"),
        ("writes", "write of 4 bytes in shared memory of block 5 of 2 of the cluster"),
    ],
)
def test_no_such_thing(sim, which, message):
    @cute.jit
    def host():
        wrong(which).launch(grid=2, block=32, cluster=(2, 1, 1))

    with pytest.raises(DSLError, match=message):
        host()


def test_places_of_other_blocks_as_integers(hopper):
    """A mapped pointer keeps its block as an integer, for PTX text and as a pointer again."""

    @cute.kernel
    def kernel(out: cute.Tensor):
        t, rank = arch.thread_idx()[0], arch.block_idx_in_cluster()
        smem = cute.utils.SmemAllocator()
        got = smem.allocate_tensor(cute.Int64, cute.make_layout(4), 8)
        own = smem.allocate_tensor(cute.Int32, cute.make_layout(1), 8)
        barrier = smem.allocate_array(cute.Int64, num_elems=1)
        if t == 0:
            own[0] = 7 * rank
            arch.mbarrier_init(barrier, 1)
        arch.mbarrier_init_fence()
        both_arrive_and_wait()
        if t == 0:
            arch.mbarrier_arrive_and_expect_tx(barrier, 32)
        if t < 4:
            place = arch.map_dsmem_ptr(got.iterator + rank, t).toint()
            there = arch.map_dsmem_ptr(barrier, t).toint()
            arch.inline_ptx(
                "st.async.shared::cluster.mbarrier::complete_tx::bytes.s64 "
                "[{$r0}], {$r1}, [{$r2}];",
                read_only_args=[place, cute.Int64(100 * rank + t), there],
            )
            arch.mbarrier_wait(barrier, 0)
            number = arch.map_dsmem_ptr(own.iterator, t).toint()
            mapped = cute.make_ptr(cute.Int32, number, cute.AddressSpace.dsmem, assumed_align=4)
            out[rank, t] = got[t].to(cute.Int32) + 1000 * mapped.load()
        both_arrive_and_wait()

    @cute.jit
    def launch(out: cute.Tensor):
        kernel(out).launch(grid=4, block=32, cluster=4)

    out = np.zeros((4, 4), np.int32)
    launch(out)
    ranks = np.arange(4)
    assert (out == 7000 * ranks + 100 * ranks + ranks[:, None]).all()
