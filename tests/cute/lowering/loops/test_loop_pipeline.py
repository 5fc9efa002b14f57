"""`range(prefetch_stages=n)`: the same results as without, and what cannot run ahead."""

import re

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLTypeError
from basedsl_cute import arch
from basedsl_cute.nvgpu import CopyUniversalOp, cpasync

WIDTH = 128  # elements of a tile; a thread copies 4


def copies(kind, thread):
    op = cpasync.CopyG2SOp() if kind == "cp.async" else CopyUniversalOp()
    atom = cute.make_copy_atom(op, cute.Float32, num_bits_per_copy=128)
    tiled = cute.make_tiled_copy_tv(atom, cute.make_layout((32,)), cute.make_layout((4,)))
    return tiled, tiled.get_slice(thread)


@cute.kernel
def mix(
    a: cute.Tensor,
    out: cute.Tensor,
    tiles: cute.Int32,
    start: cute.Int32,
    step: cute.Int32,
    stages: cute.Constexpr,
    kind: cute.Constexpr,
    rounds: cute.Constexpr,
):
    """A sum over tiles in which their order matters, `rounds` times over."""
    tile = cute.utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout((WIDTH,)), 128)
    t = arch.thread_idx()[0]
    tiled, mine = copies(kind, t)
    target = mine.partition_D(tile)
    by_tile = cute.zipped_divide(a, (WIDTH,))
    total = cute.Float32(0)
    for _ in cute.range(rounds, unroll=1):
        for i in cute.range(start, tiles, step, prefetch_stages=stages):
            if cute.const_expr(kind == "elements"):
                for j in cute.range_constexpr(4):
                    tile[t + 32 * j] = a[i * WIDTH + t + 32 * j]
            else:
                cute.copy(tiled, mine.partition_S(by_tile[None, i]), target)
            if cute.const_expr(kind == "cp.async"):
                arch.cp_async_commit_group()
                arch.cp_async_wait_group(0)
            arch.sync_threads()
            for j in cute.range_constexpr(4):
                total = total * 0.75 + tile[(t * 4 + j * 37) % WIDTH]
            if i % 2 == 1:
                total = total + 1.0
            arch.sync_threads()
    out[t] = total


@cute.jit
def mix_host(
    a: cute.Tensor,
    out: cute.Tensor,
    tiles: cute.Int32,
    start: cute.Int32,
    step: cute.Int32,
    stages: cute.Constexpr,
    kind: cute.Constexpr,
    rounds: cute.Constexpr = 1,
):
    mix(a, out, tiles, start, step, stages, kind, rounds).launch(grid=1, block=32)


def run_mix(tiles, stages, kind, start=0, step=1, rounds=1):
    a = np.random.default_rng(7).standard_normal(max(1, tiles) * WIDTH).astype(np.float32)
    out = np.full(32, np.nan, np.float32)
    mix_host(a, out, tiles, start, step, stages, kind, rounds)
    cute.synchronize()
    return out


@pytest.mark.parametrize("kind", ["cp.async", "plain", "elements"])
@pytest.mark.parametrize("stages", [1, 2, 4])
def test_the_same_as_without(target, kind, stages):
    for tiles in (0, 1, 2, 3, 9):
        np.testing.assert_array_equal(run_mix(tiles, stages, kind), run_mix(tiles, 0, kind))


@pytest.mark.parametrize("start, step", [(1, 1), (0, 3), (5, 2), (2, 100)])
def test_other_bounds_and_steps(target, start, step):
    for tiles in (0, 4, 11):
        plain = run_mix(tiles, 0, "plain", start, step)
        np.testing.assert_array_equal(run_mix(tiles, 2, "plain", start, step), plain)


def test_in_another_loop(target):
    plain = run_mix(5, 0, "cp.async", rounds=3)
    np.testing.assert_array_equal(run_mix(5, 3, "cp.async", rounds=3), plain)


def test_there_is_no_race(sim, monkeypatch):
    monkeypatch.setenv("CUTE_DSL_CHECK_RACES", "1")
    run_mix(9, 2, "plain")


def test_the_copies_are_groups_of_cp_async(monkeypatch):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_80")
    a, out = np.zeros(WIDTH, np.float32), np.zeros(32, np.float32)
    ptx = cute.compile(mix_host, a, out, 1, 0, 1, 3, "plain").stages.text("ptx")
    assert ptx.count("cp.async.cg.shared.global") == 4  # three before the loop, one inside
    assert ptx.count("cp.async.commit_group") == 4
    assert re.findall(r"cp.async.wait_group\s+(\d)", ptx) == ["2"]
    assert "st.shared" not in ptx
    # One in the loop, whose second one has nothing left to order; one before the copies, since the
    # loop is in another one.
    assert ptx.count("bar.sync") == 2


# A matrix product with ragged K, in two tiles ----------------------------------------------------

TILE = 16


@cute.kernel
def product(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, stages: cute.Constexpr):
    """C = A B by 256 threads, one element of C each; K in steps of 16, zeros beyond its end."""
    smem = cute.utils.SmemAllocator()
    sa = smem.allocate_tensor(cute.Float32, cute.make_layout((TILE, TILE)), 16)
    sb = smem.allocate_tensor(cute.Float32, cute.make_layout((TILE, TILE)), 16)
    x, y, _ = arch.thread_idx()
    row, column = arch.block_idx()[0] * TILE + y, arch.block_idx()[1] * TILE + x
    atom = cute.make_copy_atom(
        cpasync.CopyG2SOp(zero_fill=True), cute.Float32, num_bits_per_copy=32
    )
    m, k = a.shape
    n = b.shape[1]
    here = cute.make_rmem_tensor((1,), cute.Boolean)
    there = cute.make_rmem_tensor((1,), cute.Boolean)
    total = cute.Float32(0)
    for i in cute.range(cute.ceil_div(k, TILE), prefetch_stages=stages):
        here[0] = (row < m) & (i * TILE + x < k)
        there[0] = (column < n) & (i * TILE + y < k)
        one = cute.make_layout((1,))
        at_a = cute.make_tensor(a.iterator + (row * k + i * TILE + x), one)
        at_b = cute.make_tensor(b.iterator + ((i * TILE + y) * n + column), one)
        cute.copy(atom, at_a, cute.make_tensor(sa.iterator + (y * TILE + x), one), pred=here)
        cute.copy(atom, at_b, cute.make_tensor(sb.iterator + (y * TILE + x), one), pred=there)
        arch.cp_async_commit_group()
        arch.cp_async_wait_group(0)
        arch.sync_threads()
        for j in cute.range_constexpr(TILE):
            total += sa[j, y] * sb[x, j]
        arch.sync_threads()
    if row < m and column < n:
        c[row, column] = total


@cute.jit
def product_host(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, stages: cute.Constexpr):
    m, n = c.shape
    grid = (cute.ceil_div(m, TILE), cute.ceil_div(n, TILE), 1)
    product(a, b, c, stages).launch(grid=grid, block=(TILE, TILE, 1))


@pytest.mark.parametrize("shape", [(16, 16, 16), (20, 33, 7), (17, 16, 90)])
def test_two_tiles_with_zeros_beyond_the_edge(target, shape):
    m, n, k = shape
    rng = np.random.default_rng(8)
    a = rng.standard_normal((m, k)).astype(np.float32)
    b = rng.standard_normal((k, n)).astype(np.float32)
    results = []
    for stages in (0, 1, 3):
        c = np.full((m, n), np.nan, np.float32)
        product_host(a, b, c, stages)
        cute.synchronize()
        results.append(c)
    np.testing.assert_allclose(results[0], a.astype(np.float64) @ b, rtol=1e-4, atol=1e-5)
    for c in results[1:]:
        np.testing.assert_array_equal(c, results[0])


# What cannot run ahead ---------------------------------------------------------------------------


def refused(body, message, where, hint=None):
    body = cute.jit(body)

    @cute.kernel
    def kernel(a: cute.Tensor, out: cute.Tensor):
        tile = cute.utils.SmemAllocator().allocate_tensor(
            cute.Float32, cute.make_layout((WIDTH,)), 128
        )
        t = arch.thread_idx()[0]
        tiled, mine = copies("cp.async", t)
        body(a, out, tile, t, tiled, mine, cute.zipped_divide(a, (WIDTH,)))

    @cute.jit
    def host(a: cute.Tensor, out: cute.Tensor):
        kernel(a, out).launch(grid=1, block=32)

    with pytest.raises(DSLTypeError, match="this loop cannot run its copies ahead") as error:
        cute.compile(host, np.zeros(4 * WIDTH, np.float32), np.zeros(32, np.float32))
    text = str(error.value)
    assert message in text, text
    assert where in text.split("note: the loop")[0], text
    if hint is not None:
        assert f"hint: {hint}" in text, text


def test_a_loop_that_copies_nothing(sim):
    def body(a, out, tile, t, tiled, mine, tiles):
        total = cute.Float32(0)
        for i in cute.range(4, prefetch_stages=2):
            total += a[i]
        out[t] = total

    refused(body, "it copies nothing from global to shared memory", "prefetch_stages=2")


def test_no_barrier(sim):
    def body(a, out, tile, t, tiled, mine, tiles):
        total = cute.Float32(0)
        for i in cute.range(4, prefetch_stages=2):
            cute.copy(tiled, mine.partition_S(tiles[None, i]), mine.partition_D(tile))
            total += tile[t]
        out[t] = total

    refused(
        body, "there is no barrier of all threads", "for i in", "write cute.arch.sync_threads()"
    )


def test_results_written_to_global_memory(sim):
    def body(a, out, tile, t, tiled, mine, tiles):
        for i in cute.range(4, prefetch_stages=2):
            cute.copy(tiled, mine.partition_S(tiles[None, i]), mine.partition_D(tile))
            arch.sync_threads()
            a[t + i] = tile[t]

    refused(body, "it writes global memory", "a[t + i] = tile[t]", "write the results after")


def test_a_tile_used_outside(sim):
    def body(a, out, tile, t, tiled, mine, tiles):
        for i in cute.range(4, prefetch_stages=2):
            cute.copy(tiled, mine.partition_S(tiles[None, i]), mine.partition_D(tile))
            arch.sync_threads()
        out[t] = tile[t]

    refused(body, "is used outside of the loop too", "out[t] = tile[t]")


def test_a_tile_changed_by_the_loop(sim):
    def body(a, out, tile, t, tiled, mine, tiles):
        for i in cute.range(4, prefetch_stages=2):
            cute.copy(tiled, mine.partition_S(tiles[None, i]), mine.partition_D(tile))
            arch.sync_threads()
            tile[t] = 0.0

    refused(body, "it changes a tile that it copies into", "tile[t] = 0.0")


def test_a_tile_read_before_the_barrier(sim):
    def body(a, out, tile, t, tiled, mine, tiles):
        total = cute.Float32(0)
        for i in cute.range(4, prefetch_stages=2):
            total += tile[t]
            cute.copy(tiled, mine.partition_S(tiles[None, i]), mine.partition_D(tile))
            arch.sync_threads()
        out[t] = total

    refused(body, "it reads a tile before the barrier", "total += tile[t]")


def test_copies_to_a_place_that_moves(sim):
    def body(a, out, tile, t, tiled, mine, tiles):
        total = cute.Float32(0)
        for i in cute.range(4, prefetch_stages=2):
            tile[(t + i) % 32] = a[i * 32 + t]
            arch.sync_threads()
            total += tile[t]
        out[t] = total

    refused(body, "where it copies to depends on the iteration", "tile[(t + i) % 32] = ")


def test_copies_of_some_elements_in_some_iterations(sim):
    def body(a, out, tile, t, tiled, mine, tiles):
        total = cute.Float32(0)
        for i in cute.range(4, prefetch_stages=2):
            if i * 32 + t < 100:
                cute.copy(tiled, mine.partition_S(tiles[None, i]), mine.partition_D(tile))
            arch.sync_threads()
            total += tile[t]
        out[t] = total

    refused(body, "which parts are copied depends on the iteration", "if i * 32", "let cp.async")


def test_what_is_copied_follows_from_what_was_computed(sim):
    def body(a, out, tile, t, tiled, mine, tiles):
        at = cute.Int32(0)
        for _ in cute.range(4, prefetch_stages=2):
            cute.copy(tiled, mine.partition_S(tiles[None, at]), mine.partition_D(tile))
            arch.sync_threads()
            at = tile[0].to(cute.Int32)
        out[t] = at.to(cute.Float32)

    refused(body, "what it copies depends on what an iteration has computed", "cute.copy(tiled")


def test_registers_that_the_copies_and_the_rest_use(sim):
    def body(a, out, tile, t, tiled, mine, tiles):
        at = cute.make_rmem_tensor((1,), cute.Int32)
        at[0] = 0
        total = cute.Float32(0)
        for _ in cute.range(4, prefetch_stages=2):
            cute.copy(tiled, mine.partition_S(tiles[None, at[0]]), mine.partition_D(tile))
            arch.sync_threads()
            at[0] = at[0] + 1
            total += tile[at[0]]
        out[t] = total

    message = "registers that its copies depend on are used elsewhere"
    refused(body, message, "at[0]")


def test_a_loop_that_waits_for_others(sim):
    def body(a, out, tile, t, tiled, mine, tiles):
        total = cute.Float32(0)
        for i in cute.range(4, prefetch_stages=2):
            while arch.load(out.iterator + i, cute.Float32, sem="acquire", scope="gpu") == 0.0:
                total += 1.0
            cute.copy(tiled, mine.partition_S(tiles[None, i]), mine.partition_D(tile))
            arch.sync_threads()
            total += tile[t]
        a[t] = total

    refused(body, "it waits for what others write", "arch.load(out.iterator")


def test_elements_that_are_too_narrow(sim):
    @cute.kernel
    def kernel(a: cute.Tensor, out: cute.Tensor):
        tile = cute.utils.SmemAllocator().allocate_tensor(cute.Float16, cute.make_layout((32,)), 16)
        t = arch.thread_idx()[0]
        total = cute.Float16(0)
        for i in cute.range(4, prefetch_stages=1):
            tile[t] = a[i * 32 + t]
            arch.sync_threads()
            total = total + tile[31 - t]
            arch.sync_threads()
        out[t] = total

    @cute.jit
    def host(a: cute.Tensor, out: cute.Tensor):
        kernel(a, out).launch(grid=1, block=32)

    with pytest.raises(DSLTypeError, match="a copy of 16 bits cannot run ahead"):
        cute.compile(host, np.zeros(128, np.float16), np.zeros(32, np.float16))


def test_a_number_of_stages_that_is_none(sim):
    a, out = np.zeros(WIDTH, np.float32), np.zeros(32, np.float32)
    with pytest.raises(DSLTypeError, match="prefetch_stages is 99: it counts the iterations"):
        cute.compile(mix_host, a, out, 1, 0, 1, 99, "plain")
