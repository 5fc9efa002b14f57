"""Pipelines whose arrivals are those of warps, not of threads."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLTypeError
from basedsl_cute import arch, pipeline
from basedsl_cute.nvgpu import cpasync

WARP, THREAD = pipeline.Agent.Warp, pipeline.Agent.Thread
ITEMS = 5


@cute.kernel
def pass_on(x: cute.Tensor, out: cute.Tensor, by_cp_async: cute.Constexpr, agent: cute.Constexpr):
    """Warps 0 and 1 fill stages together, warps 2 and 3 read them crosswise."""
    smem = cute.utils.SmemAllocator()
    stages = smem.allocate_tensor(cute.Int32, cute.make_layout((64, 2)), 16)
    kind = pipeline.PipelineCpAsync if by_cp_async else pipeline.PipelineAsync
    group = pipeline.CooperativeGroup(agent, 2 if agent is WARP else 64)
    pipe = kind.create(
        barrier_storage=smem.allocate_array(cute.Int64, 4),
        num_stages=2,
        producer_group=group,
        consumer_group=group,
    )
    producer, consumer = pipe.make_participants()
    t = arch.thread_idx()[0] % 64
    if arch.warp_idx() < 2:
        atom = cute.make_copy_atom(cpasync.CopyG2SOp(), cute.Int32)
        for i in range(ITEMS):
            stage = producer.acquire_and_advance()
            if cute.const_expr(by_cp_async):
                one = cute.make_layout((1,))
                cute.copy(
                    atom,
                    cute.make_tensor(x.iterator + i * 64 + t, one),
                    cute.make_tensor(stages.iterator + stage.index * 64 + t, one),
                )
            else:
                stages[t, stage.index] = x[i, t]
            stage.commit()
        producer.tail()
    else:
        for i in range(ITEMS):
            stage = consumer.wait_and_advance()
            out[i, t] = stages[63 - t, stage.index]
            stage.release()


@cute.jit
def host(x: cute.Tensor, out: cute.Tensor, by_cp_async: cute.Constexpr, agent: cute.Constexpr):
    pass_on(x, out, by_cp_async, agent).launch(grid=1, block=128)


@pytest.mark.parametrize("agent", [WARP, THREAD])
@pytest.mark.parametrize("by_cp_async", [False, True])
def test_a_warp_arrives_once(hopper, monkeypatch, by_cp_async, agent):
    monkeypatch.setenv("CUTE_DSL_CHECK_RACES", "1")
    x = np.arange(ITEMS * 64, dtype=np.int32).reshape(ITEMS, 64)
    out = np.full_like(x, -1)
    host(x, out, by_cp_async, agent)
    cute.synchronize()
    np.testing.assert_array_equal(out, x[:, ::-1])


@cute.kernel
def take_turns(out: cute.Tensor):
    smem = cute.utils.SmemAllocator()
    count = smem.allocate_tensor(cute.Int32, cute.make_layout((1,)), 16)
    barriers = smem.allocate_array(cute.Int64, 2)
    if arch.thread_idx()[0] == 0:
        count[0] = 0
    group = arch.thread_idx()[0] // 64
    order = pipeline.PipelineOrder.create(
        barrier_storage=barriers,
        depth=1,
        length=2,
        group_id=group,
        producer_group=pipeline.CooperativeGroup(WARP, 2),
    )
    for i in range(ITEMS):
        order.wait()
        if arch.thread_idx()[0] % 64 == 0:
            out[group, i] = count[0]
            count[0] += 1
        pipeline.NamedBarrier(barrier_id=1 + group, num_threads=64).arrive_and_wait()
        order.arrive()


def test_warps_take_turns(hopper):
    out = np.full((2, ITEMS), -1, np.int32)

    @cute.jit
    def run(out: cute.Tensor):
        take_turns(out).launch(grid=1, block=128)

    run(out)
    cute.synchronize()
    np.testing.assert_array_equal(out, np.arange(2 * ITEMS).reshape(ITEMS, 2).T)


@cute.kernel
def one_after_another(out: cute.Tensor):
    """Two pipelines in the same memory, the second when the first is done with."""
    smem = cute.utils.SmemAllocator()
    barriers = smem.allocate_array(cute.Int64, 2)
    stage = smem.allocate_tensor(cute.Int32, cute.make_layout((1,)), 16)
    group = pipeline.CooperativeGroup(WARP, 1)
    first = pipeline.PipelineAsync.create(
        barrier_storage=barriers, num_stages=1, producer_group=group, consumer_group=group
    )
    hand_over(first, stage, out, 0)
    arch.sync_threads()
    second = pipeline.PipelineAsync.create(
        barrier_storage=barriers, num_stages=1, producer_group=group, consumer_group=group
    )
    hand_over(second, stage, out, 1)


@cute.jit
def hand_over(pipe, stage: cute.Tensor, out: cute.Tensor, at: cute.Constexpr):
    producer, consumer = pipe.make_participants()
    if arch.warp_idx() == 0:
        handle = producer.acquire()
        with arch.elect_one():
            stage[0] = at + 7
        handle.commit()
        producer.advance()
        producer.tail()
    else:
        handle = consumer.wait()
        out[at] = stage[0]
        handle.release()


def test_mbarriers_may_be_made_again(sim):
    out = np.zeros(2, np.int32)

    @cute.jit
    def run(out: cute.Tensor):
        one_after_another(out).launch(grid=1, block=64)

    run(out)
    np.testing.assert_array_equal(out, [7, 8])


@pytest.mark.parametrize(
    "group, message",
    [
        ((THREAD, 0), "a group has a static size from 1, not 0"),
        (("warp", 1), "a group is of Agent.Thread or Agent.Warp, not 'warp'"),
    ],
)
def test_groups_that_there_are_not(group, message):
    with pytest.raises(DSLTypeError, match=message):
        pipeline.CooperativeGroup(*group)


@pytest.mark.parametrize("stages", [0, 2.0])
def test_stages_that_there_are_not(stages):
    with pytest.raises(DSLTypeError, match="a pipeline has a static number of stages from 1, not"):
        pipeline.PipelineTmaStore.create(num_stages=stages)
    with pytest.raises(DSLTypeError, match="a pipeline has a static number of stages from 1, not"):
        pipeline.make_pipeline_state(pipeline.PipelineUserType.Consumer, stages)
