"""`range(prefetch_stages=n)` over a producer and a consumer of the program's own pipeline."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLTypeError
from basedsl_cute import arch, pipeline
from basedsl_cute.nvgpu import tma

TILE = (8, 32)
STAGES = 3


@cute.kernel
def mix(load, source, out: cute.Tensor, tiles: cute.Int32, ahead: cute.Constexpr):
    """A sum over tiles in which their order matters, by two warps; the first one loads."""
    smem = cute.utils.SmemAllocator()
    ring = smem.allocate_tensor(
        cute.Float32, cute.make_layout((*TILE, STAGES), stride=(32, 1, 256)), 128
    )
    pipe = pipeline.PipelineTmaAsync.create(
        barrier_storage=smem.allocate_array(cute.Int64, 2 * STAGES),
        num_stages=STAGES,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Warp, 2),
        tx_count=4 * TILE[0] * TILE[1],
    )
    s, g = tma.tma_partition(load, 0, None, cute.group_modes(ring, 0, 2),
                             cute.zipped_divide(source, TILE))  # fmt: skip
    t = arch.thread_idx()[0]
    warp = arch.make_warp_uniform(arch.warp_idx())
    producer, consumer = pipe.make_participants()
    total = cute.Float32(0)
    for i in cute.range(tiles, prefetch_stages=ahead):
        held = cute.make_rmem_tensor(1, cute.Float32)
        held[0] = 0.75
        if warp == 0:
            empty = producer.acquire_and_advance()
            cute.copy(load, g[None, (i, 0)], s[None, empty.index], tma_bar_ptr=empty.barrier)
        full = consumer.wait_and_advance()
        for j in cute.range_constexpr(4):
            total = total * held[0] + ring[j * 2 + t // 32, (t + 7 * j) % 32, full.index]
        arch.sync_warp()
        full.release()
    if warp == 0:
        producer.tail()
    out[t] = total


def host_of(kernel, tiles, ahead, threads=64):
    @cute.jit
    def host(a: cute.Tensor, out: cute.Tensor, tiles: cute.Int32):
        layout = cute.make_layout(TILE, stride=(32, 1))
        load, source = tma.make_tiled_tma_atom(tma.CopyBulkTensorTileG2SOp(), a, layout, TILE)
        kernel(load, source, out, tiles, ahead).launch(grid=1, block=threads)

    a = np.random.default_rng(tiles).standard_normal((8 * max(1, tiles), 28)).astype(np.float32)
    return host, a, np.full(64, np.nan, np.float32), tiles


def run(kernel, tiles, ahead):
    host, a, out, tiles = host_of(kernel, tiles, ahead)
    host(a, out, tiles)
    cute.synchronize()
    padded = np.pad(a, ((0, 0), (0, 4)))
    t = np.arange(64)
    expected = np.zeros(64, np.float32)
    for i in range(tiles):
        for j in range(4):
            expected = expected * np.float32(0.75)
            expected += padded[8 * i + 2 * j + t // 32, (t + 7 * j) % 32]
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("ahead", [0, 1, 2])
def test_loads_run_ahead(hopper, ahead):
    for tiles in (0, 1, 2, 3, 4, 11):
        run(mix, tiles, ahead)


def test_there_is_no_race(sim, monkeypatch):
    monkeypatch.setenv("CUTE_DSL_CHECK_RACES", "1")
    run(mix, 7, 2)


def test_the_loads_are_there_twice(monkeypatch):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_90a")
    host, a, out, tiles = host_of(mix, 4, 1)
    ptx = cute.compile(host, a, out, tiles).stages.text("ptx")
    assert ptx.count("cp.async.bulk.tensor.2d.shared::cluster.global") == 2
    host, a, out, tiles = host_of(mix, 4, 0)
    ptx = cute.compile(host, a, out, tiles).stages.text("ptx")
    assert ptx.count("cp.async.bulk.tensor.2d.shared::cluster.global") == 1


@cute.kernel
def with_states(load, source, out: cute.Tensor, tiles: cute.Int32, ahead: cute.Constexpr):
    """States of its own, a token of the producer, two loads a stage, one warp."""
    smem = cute.utils.SmemAllocator()
    ring = smem.allocate_tensor(
        cute.Float32, cute.make_layout((*TILE, 2, STAGES), stride=(32, 1, 256, 512)), 128
    )
    pipe = pipeline.PipelineTmaAsync.create(
        barrier_storage=smem.allocate_array(cute.Int64, 2 * STAGES),
        num_stages=STAGES,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Warp),
        tx_count=2 * 4 * TILE[0] * TILE[1],
    )
    s, g = tma.tma_partition(load, 0, None, cute.group_modes(ring, 0, 2),
                             cute.zipped_divide(source, TILE))  # fmt: skip
    t = arch.thread_idx()[0]
    write = pipeline.make_pipeline_state(pipeline.PipelineUserType.Producer, STAGES)
    read = pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, STAGES)
    total = cute.Float32(0)
    for i in cute.range(0, tiles, 2, prefetch_stages=ahead):
        token = pipe.producer_try_acquire(write)
        pipe.producer_acquire(write, token)
        bar = pipe.producer_get_barrier(write)
        cute.copy(load, g[None, (i, 0)], s[None, 0, write.index], tma_bar_ptr=bar)
        cute.copy(load, g[None, (write.count * 2 + 1, 0)], s[None, 1, write.index], tma_bar_ptr=bar)
        pipe.producer_commit(write)
        write.advance()
        pipe.consumer_wait(read)
        for part in cute.range_constexpr(2):
            for j in cute.range_constexpr(8):
                total = total * 0.75 + ring[j, t, part, read.index]
        arch.sync_warp()
        pipe.consumer_release(read)
        read.advance()
    out[t] = total
    out[t + 32] = cute.Float32(write.count * 100 + read.count)


@pytest.mark.parametrize("ahead", [1, 2])
def test_states_and_tokens(hopper, ahead):
    for tiles in (2, 6, 14):
        host, a, out, tiles = host_of(with_states, tiles, ahead, 32)
        host(a, out, tiles)
        cute.synchronize()
        expected = np.zeros(32, np.float32)
        for row in np.pad(a, ((0, 0), (0, 4))):
            expected = expected * np.float32(0.75) + row
        np.testing.assert_allclose(out[:32], expected, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(out[32:], tiles // 2 * 101)


def refused(body, message, hint, ahead=2):
    body = cute.jit(body)

    @cute.kernel
    def kernel(load, source, out: cute.Tensor, tiles: cute.Int32, ahead: cute.Constexpr):
        smem = cute.utils.SmemAllocator()
        ring = smem.allocate_tensor(
            cute.Float32, cute.make_layout((*TILE, STAGES), stride=(32, 1, 256)), 128
        )
        pipe = pipeline.PipelineTmaAsync.create(
            barrier_storage=smem.allocate_array(cute.Int64, 2 * STAGES),
            num_stages=STAGES,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Warp),
            tx_count=4 * TILE[0] * TILE[1],
        )
        s, g = tma.tma_partition(load, 0, None, cute.group_modes(ring, 0, 2),
                                 cute.zipped_divide(source, TILE))  # fmt: skip
        body(load, g, s, ring, pipe, out, tiles, ahead)

    host, a, out, tiles = host_of(kernel, 4, ahead)
    with pytest.raises(DSLTypeError) as error:
        host(a, out, tiles)
    assert message in str(error.value)
    assert hint in error.value.hint
    assert error.value.span.filename == __file__


def test_too_few_stages(sim):
    def body(load, g, s, ring, pipe, out, tiles, ahead):
        producer, consumer = pipe.make_participants()
        for i in cute.range(tiles, prefetch_stages=ahead):
            empty = producer.acquire_and_advance()
            cute.copy(load, g[None, (i, 0)], s[None, empty.index], tma_bar_ptr=empty.barrier)
            consumer.wait_and_advance().release()

    refused(body, "the pipeline has 3", "at least 4 stages, or prefetch_stages=2", ahead=3)


def test_the_consumer_first(sim):
    def body(load, g, s, ring, pipe, out, tiles, ahead):
        producer, consumer = pipe.make_participants()
        for i in cute.range(tiles, prefetch_stages=ahead):
            consumer.wait_and_advance().release()
            empty = producer.acquire_and_advance()
            cute.copy(load, g[None, (i, 0)], s[None, empty.index], tma_bar_ptr=empty.barrier)

    refused(body, "not known to be an empty stage", "wait for full ones after the copies")


def test_work_before_the_loads(sim):
    def body(load, g, s, ring, pipe, out, tiles, ahead):
        producer, consumer = pipe.make_participants()
        for i in cute.range(tiles, prefetch_stages=ahead):
            ring[0, 0, 0] = 1.0
            empty = producer.acquire_and_advance()
            cute.copy(load, g[None, (i, 0)], s[None, empty.index], tma_bar_ptr=empty.barrier)
            consumer.wait_and_advance().release()

    refused(body, "does something else before its TMA loads", "begin the iteration with")


def test_a_load_that_depends_on_what_was_computed(sim):
    def body(load, g, s, ring, pipe, out, tiles, ahead):
        producer, consumer = pipe.make_participants()
        at = cute.Int32(0)
        for _ in cute.range(tiles, prefetch_stages=ahead):
            empty = producer.acquire_and_advance()
            cute.copy(load, g[None, (at, 0)], s[None, empty.index], tma_bar_ptr=empty.barrier)
            full = consumer.wait_and_advance()
            at = cute.Int32(ring[0, 0, full.index])
            full.release()

    refused(body, "what it copies depends on what an iteration has computed", "by hand")


def test_a_token_of_the_iteration_before(sim):
    def body(load, g, s, ring, pipe, out, tiles, ahead):
        producer, consumer = pipe.make_participants()
        token = producer.try_acquire()
        for i in cute.range(tiles, prefetch_stages=ahead):
            empty = producer.acquire_and_advance(token)
            cute.copy(load, g[None, (i, 0)], s[None, empty.index], tma_bar_ptr=empty.barrier)
            consumer.wait_and_advance().release()
            token = producer.try_acquire()

    refused(body, "depends on what an iteration has computed", "at the beginning of the iteration")


def test_a_result_of_the_producer(sim):
    def body(load, g, s, ring, pipe, out, tiles, ahead):
        producer, consumer = pipe.make_participants()
        total = cute.Int32(0)
        for i in cute.range(tiles, prefetch_stages=ahead):
            token = producer.try_acquire()
            empty = producer.acquire_and_advance(token)
            cute.copy(load, g[None, (i, 0)], s[None, empty.index], tma_bar_ptr=empty.barrier)
            consumer.wait_and_advance().release()
            if token:
                total += 1
        out[0] = cute.Float32(total)

    refused(body, "needs a result of the part that loads ahead", "the consumer's own state")


def test_results_in_global_memory(sim):
    def body(load, g, s, ring, pipe, out, tiles, ahead):
        producer, consumer = pipe.make_participants()
        for i in cute.range(tiles, prefetch_stages=ahead):
            empty = producer.acquire_and_advance()
            cute.copy(load, g[None, (i, 0)], s[None, empty.index], tma_bar_ptr=empty.barrier)
            full = consumer.wait_and_advance()
            out[i] = ring[0, 0, full.index]
            full.release()

    refused(body, "it writes global memory", "after the loop")
