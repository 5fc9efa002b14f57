"""Pipelines and their states, named barriers, clusters, the persistent schedule."""

import itertools

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLError, DSLTypeError
from basedsl_cute import arch, pipeline
from basedsl_cute.lowering.ptx import ptxas
from basedsl_cute.nvgpu import cpasync
from basedsl_cute.sim import DeadlockError, UninitializedReadError

PRODUCER, CONSUMER = pipeline.PipelineUserType.Producer, pipeline.PipelineUserType.Consumer


def test_states_in_plain_python():
    state = pipeline.make_pipeline_state(PRODUCER, 3)
    seen = []
    for _ in range(7):
        seen.append((state.index, state.phase, state.count))
        state.advance()
    assert seen == [(i % 3, 1 - i // 3 % 2, i) for i in range(7)]
    other = state.clone()
    other.advance()
    assert (state.count, other.count) == (7, 8)
    with pytest.raises(DSLTypeError, match="static number of stages"):
        pipeline.make_pipeline_state(CONSUMER, 0)


@cute.kernel
def relay(a: cute.Tensor, b: cute.Tensor, stages: cute.Constexpr, releases: cute.Constexpr):
    """Warp 0 hands tiles of 32 numbers to warp 1, which writes their doubles."""
    smem = cute.utils.SmemAllocator()
    barriers = smem.allocate_array(cute.Int64, 2 * stages)
    ring = smem.allocate_tensor(cute.Float32, (32, stages))
    group = pipeline.CooperativeGroup(pipeline.Agent.Thread, 32)
    pipe = pipeline.PipelineAsync.create(
        barrier_storage=barriers, num_stages=stages, producer_group=group, consumer_group=group
    )
    lane = arch.lane_idx()
    tiles = cute.size(a) // 32
    if arch.warp_idx() == 0:
        state = pipeline.make_pipeline_state(PRODUCER, stages)
        for i in range(tiles):
            pipe.producer_acquire(state)
            ring[lane, state.index] = a[i * 32 + lane]
            pipe.producer_commit(state)
            state.advance()
        if cute.const_expr(releases):
            pipe.producer_tail(state)
    else:
        state = pipeline.make_pipeline_state(CONSUMER, stages)
        for i in range(tiles):
            pipe.consumer_wait(state, pipe.consumer_try_wait(state))
            b[i * 32 + lane] = 2 * ring[lane, state.index]
            if cute.const_expr(releases):
                pipe.consumer_release(state)
            state.advance()


@cute.jit
def relay_host(a: cute.Tensor, b: cute.Tensor, stages: cute.Constexpr, releases: cute.Constexpr):
    relay(a, b, stages, releases).launch(grid=1, block=64)


@pytest.mark.parametrize("stages", [1, 2, 3])
def test_threads_pass_stages(hopper, stages):
    a = np.arange(32 * 7, dtype=np.float32)
    b = np.zeros_like(a)
    relay_host(a, b, stages, True)
    np.testing.assert_array_equal(b, 2 * a)


def test_a_consumer_that_does_not_release(sim):
    a = np.zeros(32 * 7, np.float32)
    with pytest.raises(DeadlockError, match="no thread of the block can go on") as error:
        relay_host(a, a.copy(), 2, False)
    text = str(error.value)
    assert "note: warp 0 waits for phase parity 0 of the mbarrier at byte offset 16 of" in text
    assert "(32 of 32 arrivals still to come; initialised at" in text
    assert "note: warp 1 waits for phase parity 1 of the mbarrier at byte offset 0 of" in text
    assert "pipe.producer_acquire(state)" in text and "pipe.consumer_wait(state," in text


@cute.kernel
def relay_by_handles(a: cute.Tensor, b: cute.Tensor, stages: cute.Constexpr, size: cute.Constexpr):
    """The same with objects that own their states; warp 0 fills by cp.async."""
    smem = cute.utils.SmemAllocator()
    barriers = smem.allocate_array(cute.Int64, 2 * stages)
    ring = smem.allocate_tensor(cute.Float32, (32, stages))
    pipe = pipeline.PipelineCpAsync.create(
        barrier_storage=barriers,
        num_stages=stages,
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 32),
        consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, size),
    )
    producer, consumer = pipe.make_participants()
    lane = arch.lane_idx()
    tiles = cute.size(a) // 32
    atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cute.Float32, num_bits_per_copy=32)
    if arch.warp_idx() == 0:
        for i in range(tiles):
            handle = producer.acquire_and_advance()
            source = cute.local_tile(a, (1,), (i * 32 + lane,))
            cute.copy(atom, source, cute.local_tile(ring, (1, 1), (lane, handle.index))[None, 0])
            handle.commit()
        producer.tail()
    else:
        token = consumer.try_wait()
        for i in range(tiles):
            handle = consumer.wait_and_advance(token)
            if i + 1 < tiles:
                token = consumer.try_wait()
            b[i * 32 + lane] = 2 * ring[lane, handle.index] + handle.count
            handle.release()


@cute.jit
def relay_by_handles_host(
    a: cute.Tensor, b: cute.Tensor, stages: cute.Constexpr, size: cute.Constexpr = 32
):
    relay_by_handles(a, b, stages, size).launch(grid=1, block=64)


@pytest.mark.parametrize("stages", [1, 3])
@pytest.mark.parametrize("tiles", [1, 2, 7])
def test_participants_pass_stages_by_handles(hopper, stages, tiles):
    a = np.arange(32 * tiles, dtype=np.float32)
    b = np.zeros_like(a)
    relay_by_handles_host(a, b, stages)
    cute.synchronize()
    np.testing.assert_array_equal(b, 2 * a + np.repeat(np.arange(tiles), 32))


def test_a_barrier_for_more_arrivals_than_come(sim):
    a = np.zeros(32 * 7, np.float32)
    with pytest.raises(DeadlockError) as error:
        relay_by_handles_host(a, a.copy(), 2, 33)
    text = str(error.value)
    assert "(1 of 33 arrivals still to come; there were 32 at" in text
    assert "handle = producer.acquire_and_advance()" in text


def test_participants_in_plain_python():
    calls = []

    class Recorder:
        num_stages = 2

        def __getattr__(self, name):
            return lambda state, token=None: calls.append((name, int(state.index), token))

    pipe = Recorder()
    producer, consumer = pipeline.PipelineProducer(pipe), pipeline.PipelineConsumer(pipe)
    first = producer.acquire_and_advance()
    other = producer.clone()
    second = producer.acquire(True)
    first.commit()
    producer.commit()
    assert (first.index, first.phase, first.count) == (0, 1, 0)
    assert (second.index, second.phase, second.count) == (1, 1, 1)
    producer.advance()
    assert (other.state.count, producer.state.count, producer.state.phase) == (1, 2, 0)
    with pytest.raises(AttributeError):
        first.index = 1
    before = producer.state.index, producer.state.phase
    producer.advance()
    producer.advance()
    producer.reset()
    # The ring goes on where it was; a tile begins to count anew.
    assert (producer.state.index, producer.state.phase) == (before[0], 1 - before[1])
    assert producer.state.count == 0
    consumer.wait_and_advance().release()
    consumer.release()
    assert calls == [
        ("producer_acquire", 0, None),
        ("producer_acquire", 1, True),
        ("producer_commit", 0, None),
        ("producer_commit", 1, None),
        ("consumer_wait", 0, None),
        ("consumer_release", 0, None),
        ("consumer_release", 1, None),
    ]


@cute.kernel
def in_order(out: cute.Tensor, steps: cute.Constexpr, depth: cute.Constexpr):
    """Three warps append their number to the list of each step in turn."""
    smem = cute.utils.SmemAllocator()
    storage = smem.allocate_array(cute.Int64, depth * 3)
    length = smem.allocate_tensor(cute.Int32, steps)
    if arch.thread_idx()[0] < steps:
        length[arch.thread_idx()[0]] = 0
    warp = arch.make_warp_uniform(arch.warp_idx())
    order = pipeline.PipelineOrder.create(
        barrier_storage=storage,
        depth=depth,
        length=3,
        group_id=2 - warp,  # the last warp goes first
        producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, 32),
    )
    for step in range(steps):
        order.wait()
        if arch.lane_idx() == 0:
            out[3 * step + length[step]] = warp
            length[step] += 1
        order.arrive()


@pytest.mark.parametrize("depth", [1, 2])
def test_groups_take_turns(hopper, depth):
    @cute.jit
    def host(out: cute.Tensor):
        in_order(out, 5, depth).launch(grid=1, block=96)

    out = np.full(15, -1, np.int32)
    host(out)
    cute.synchronize()
    assert out.tolist() == [2, 1, 0] * 5


@cute.kernel
def wait_for_a_neighbour(out: cute.Tensor):
    barrier = cute.utils.SmemAllocator().allocate_array(cute.Int64, 1)
    if arch.thread_idx()[0] == 0:
        arch.mbarrier_init(barrier, 1)
    arch.mbarrier_init_fence()
    arch.cluster_arrive_relaxed()
    arch.cluster_wait()
    if arch.block_idx_in_cluster() == 0:
        arch.mbarrier_wait(barrier, 0)
    out[0] = 1


def test_a_deadlock_in_a_cluster_names_the_block(sim):
    @cute.jit
    def host(out: cute.Tensor):
        wait_for_a_neighbour(out).launch(grid=2, block=32, cluster=(2, 1, 1))

    with pytest.raises(DeadlockError, match="no thread of the cluster can go on") as error:
        host(np.zeros(1, np.int32))
    text = str(error.value)
    assert "note: warp 0 of block 0 waits for" in text and "note: warp 0 of block 1 ended" in text


@cute.kernel
def take_turns(out: cute.Tensor):
    scratch = cute.utils.SmemAllocator().allocate_tensor(cute.Int32, 32)
    barrier = pipeline.NamedBarrier(2, 64)
    lane = arch.lane_idx()
    warp = arch.warp_idx()
    if warp == 0:
        scratch[lane] = lane * 3
        barrier.arrive()
    if warp == 1:
        barrier.arrive_and_wait()
        out[lane] = scratch[lane]


def test_named_barriers_of_some_warps(hopper):
    @cute.jit
    def host(out: cute.Tensor):
        take_turns(out).launch(grid=1, block=96)

    out = np.zeros(32, np.int32)
    host(out)
    np.testing.assert_array_equal(out, 3 * np.arange(32))


@cute.kernel
def pairs_of_warps(out: cute.Tensor, count: cute.Int32):
    """Warps 2k and 2k + 1 share barrier 1 + k: a number that only the run knows."""
    scratch = cute.utils.SmemAllocator().allocate_tensor(cute.Int32, 128)
    pair, t = arch.warp_idx() // 2, arch.thread_idx()[0]
    if arch.warp_idx() % 2 == 0:
        scratch[t] = t * 3
        arch.barrier(barrier_id=1 + pair, number_of_threads=count)
        arch.barrier_arrive(barrier_id=1 + pair, number_of_threads=64)
    else:
        arch.barrier(barrier_id=1 + pair, number_of_threads=count)
        out[t - 32] = scratch[t - 32]
        arch.barrier(1 + pair, 64)
        out[t] = -1


def test_barriers_of_dynamic_numbers(hopper):
    @cute.jit
    def host(out: cute.Tensor, count: cute.Int32):
        pairs_of_warps(out, count).launch(grid=1, block=128)

    out = np.zeros(128, np.int32)
    host(out, 64)
    np.testing.assert_array_equal(out, np.where(np.arange(128) // 32 % 2, -1, 3 * np.arange(128)))


@cute.kernel
def where_am_i(out: cute.Tensor):
    x, y, _ = arch.block_idx()
    cx, cy, _ = arch.block_in_cluster_idx()
    barrier = cute.utils.SmemAllocator().allocate_array(cute.Int64, 1)
    if arch.thread_idx()[0] == 0:
        arch.mbarrier_init(barrier, arch.cluster_size())
    arch.mbarrier_init_fence()
    arch.cluster_arrive_relaxed()
    arch.cluster_wait()
    if arch.lane_idx() < arch.cluster_size():  # every block tells every block
        arch.mbarrier_arrive(barrier, arch.lane_idx())
    arch.mbarrier_wait(barrier, 0)
    if arch.thread_idx()[0] == 0:
        i = x + y * arch.grid_dim()[0]
        out[i, 0], out[i, 1] = arch.block_idx_in_cluster(), cx + 10 * cy
        out[i, 2] = arch.cluster_idx()[0] + 10 * arch.cluster_idx()[1]
        out[i, 3] = arch.cluster_dim()[0] + 10 * arch.cluster_dim()[1]
        out[i, 4] = arch.block_in_cluster_dim()[0] + 10 * arch.block_in_cluster_dim()[1]


def test_blocks_of_a_cluster_know_their_place_and_signal_each_other(hopper):
    @cute.jit
    def host(out: cute.Tensor):
        where_am_i(out).launch(grid=(4, 6, 1), block=32, cluster=(2, 3, 1))

    out = np.full((24, 5), -1, np.int32)
    host(out)
    for i, (y, x) in enumerate(itertools.product(range(6), range(4))):
        rank, place = x % 2 + 2 * (y % 3), x % 2 + 10 * (y % 3)
        assert out[i].tolist() == [rank, place, x // 2 + 10 * (y // 3), 22, 32]


@cute.kernel
def give_to_the_next(a: cute.Tensor, b: cute.Tensor, bits: cute.Constexpr, waits: cute.Constexpr):
    """Each block of a cluster stores its numbers into the shared memory of the next one."""
    smem = cute.utils.SmemAllocator()
    barrier = smem.allocate_array(cute.Int64, 1)
    count = bits // a.element_type.width  # a thread's elements
    tile = smem.allocate_tensor(a.element_type, cute.make_layout((32 * count,)), 128)
    t = arch.thread_idx()[0]
    block, blocks = arch.block_idx_in_cluster(), arch.cluster_size()
    if t == 0:
        arch.mbarrier_init(barrier, 1)
    arch.mbarrier_init_fence()
    arch.cluster_arrive()
    arch.cluster_wait()
    if t == 0:
        arch.mbarrier_arrive_and_expect_tx(barrier, 32 * bits // 8)
    mine = cute.make_rmem_tensor((count,), a.element_type)
    cute.autovec_copy(cute.local_tile(a, (count,), (block * 32 + t,)), mine)
    atom = cute.make_copy_atom(cpasync.CopyDsmemStoreOp(), a.element_type, num_bits_per_copy=bits)
    following = (block + 1) % blocks
    there = cute.make_tensor(arch.map_dsmem_ptr(tile.iterator, following), tile.layout)
    target = cute.local_tile(there, (count,), (t,))
    cute.copy(atom, mine, target, mbar_ptr=arch.map_dsmem_ptr(barrier, following))
    if cute.const_expr(waits):
        arch.mbarrier_wait(barrier, 0)
    for i in cute.range_constexpr(count):
        b[(block * 32 + t) * count + i] = tile[t * count + i]
    arch.cluster_arrive()
    arch.cluster_wait()


def run_give_to_the_next(bits, dtype, waits=True):
    @cute.jit
    def host(a: cute.Tensor, b: cute.Tensor):
        give_to_the_next(a, b, bits, waits).launch(grid=3, block=32, cluster=(3, 1, 1))

    a = np.arange(3 * 32 * bits // (8 * np.dtype(dtype).itemsize)).astype(dtype)
    b = np.full_like(a, -1)
    host(a, b)
    cute.synchronize()
    np.testing.assert_array_equal(b, np.roll(a, a.size // 3))


@pytest.mark.parametrize("bits, dtype", [(32, "int32"), (64, "float32"), (128, "float16")])
def test_stores_into_another_block_of_the_cluster(hopper, bits, dtype):
    run_give_to_the_next(bits, dtype)


def test_the_instruction_of_stores_between_blocks(monkeypatch):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_90a")

    @cute.jit
    def host(a: cute.Tensor, b: cute.Tensor, bits: cute.Constexpr):
        give_to_the_next(a, b, bits, True).launch(grid=3, block=32, cluster=(3, 1, 1))

    a = np.zeros(1024, np.int32)
    for bits, kind in ((32, "b32"), (64, "b64"), (128, "v4.b32")):
        ptx = cute.compile(host, a, a.copy(), bits).stages.text("ptx")
        assert f"st.async.shared::cluster.mbarrier::complete_tx::bytes.{kind}" in ptx
        ptxas.start(ptx, "sm_90a").finish()


def test_a_store_from_another_block_that_nobody_waits_for(sim):
    with pytest.raises(DSLError, match="read of shared memory that no thread has written"):
        run_give_to_the_next(32, "int32", waits=False)


def test_a_store_between_blocks_needs_a_mapped_barrier(sim):
    @cute.kernel
    def kernel(bits: cute.Constexpr):
        smem = cute.utils.SmemAllocator()
        barrier = smem.allocate_array(cute.Int64, 1)
        tile = smem.allocate_tensor(cute.Int32, cute.make_layout((1,)), 128)
        there = cute.make_tensor(arch.map_dsmem_ptr(tile.iterator, 0), tile.layout)
        atom = cute.make_copy_atom(cpasync.CopyDsmemStoreOp(), cute.Int32, num_bits_per_copy=bits)
        mine = cute.make_rmem_tensor((1,), cute.Int32)
        mine[0] = 1
        cute.copy(atom, mine, there, mbar_ptr=barrier)

    @cute.jit
    def host(bits: cute.Constexpr):
        kernel(bits).launch(grid=1, block=32, cluster=(1, 1, 1))

    with pytest.raises(DSLTypeError, match="needs an mbarrier of the block that it stores into"):
        host(32)
    with pytest.raises(DSLTypeError, match="stores 32, 64 or 128 bits, not 256"):
        host(256)


def tma_pipeline(arrivals, threads, cluster=None, **more):
    """Compile a kernel that makes a `PipelineTmaAsync` of this many arrivals."""

    @cute.kernel
    def kernel():
        smem = cute.utils.SmemAllocator()
        layout = None if cluster is None else cute.make_layout((1, *cluster[:2], 1))
        pipeline.PipelineTmaAsync.create(
            barrier_storage=smem.allocate_array(cute.Int64, 4),
            num_stages=2,
            producer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread),
            consumer_group=pipeline.CooperativeGroup(pipeline.Agent.Thread, arrivals),
            tx_count=128,
            cta_layout_vmnk=layout,
        )

    @cute.jit
    def host():
        kernel().launch(grid=cluster or 1, block=threads, cluster=cluster, **more)

    cute.compile(host)


def test_consumers_of_tma_are_counted_by_warps(sim):
    tma_pipeline(4, 128)
    tma_pipeline(8, 128, (2, 1, 1))
    for most in ({}, {"max_number_threads": (128, 1, 1)}):
        with pytest.raises(
            DSLError, match="released by 128 arrivals: more than there are warps"
        ) as error:
            tma_pipeline(128, 128, **most)
        assert "a block of 128 threads has 4 warp(s)" in str(error.value)
        assert "the number of consumer warps" in error.value.hint
    with pytest.raises(DSLError, match="and the cluster 2 blocks"):
        tma_pipeline(9, 128, (2, 1, 1))


# A try that nobody looks at ----------------------------------------------------------------------


@cute.kernel
def tried_kernel(out: cute.Tensor, waits: cute.Constexpr):
    smem = cute.utils.SmemAllocator()
    full = smem.allocate_array(cute.Int64, 1)
    values = smem.allocate_tensor(cute.Float32, cute.make_layout(32), 16)
    t = cute.arch.thread_idx()[0]
    if t == 0:
        cute.arch.mbarrier_init(full, 32)
    cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    if t < 32:
        values[t] = cute.Float32(t)
        cute.arch.mbarrier_arrive(full)
    else:  # runs first: who reaches a barrier last goes on at once
        done = cute.arch.mbarrier_try_wait(full, 0)
        if cute.const_expr(waits):
            if not done:
                cute.arch.mbarrier_wait(full, 0)
        out[t - 32] = values[t - 32]


@cute.jit
def tried(out: cute.Tensor, waits: cute.Constexpr):
    tried_kernel(out, waits).launch(grid=1, block=64)


def test_to_try_is_not_to_wait(sim):
    out = np.zeros(32, np.float32)
    tried(out, True)
    assert (out == np.arange(32)).all()
    with pytest.raises(UninitializedReadError):
        tried(out, False)
