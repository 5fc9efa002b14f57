"""Two warps pass squares through a pipeline of two stages, with ranges for `record_events`."""

import numpy as np

import basedsl_cute as cute

ROUNDS = 6


@cute.struct
class Storage:
    barriers: cute.struct.MemRange[cute.Int64, 4]
    stages: cute.struct.MemRange[cute.Int32, 2]


@cute.kernel
def squares_kernel(y: cute.Tensor):
    storage = cute.utils.SmemAllocator().allocate(Storage)
    warp = cute.pipeline.CooperativeGroup(cute.pipeline.Agent.Warp)
    pipe = cute.pipeline.PipelineAsync.create(
        barrier_storage=storage.barriers.data_ptr(),
        num_stages=2,
        producer_group=warp,
        consumer_group=warp,
    )
    producer, consumer = pipe.make_participants()
    stages = storage.stages.get_tensor(cute.make_layout(2))
    if cute.arch.make_warp_uniform(cute.arch.warp_idx()) == 0:
        for i in range(ROUNDS):
            handle = producer.acquire_and_advance()
            with cute.trace("make"), cute.arch.elect_one():
                stages[handle.index] = i * i
            handle.commit()
        producer.tail()
    else:
        for i in range(ROUNDS):
            handle = consumer.wait_and_advance()
            with cute.trace("take"):
                y[i] = stages[handle.index]
            handle.release()


@cute.jit
def squares(y: cute.Tensor):
    squares_kernel(y).launch(grid=(1, 1, 1), block=(64, 1, 1))


def run():
    """Run it; return the events."""
    y = np.zeros(ROUNDS, np.int32)
    with cute.record_events() as events:
        squares(y)
    assert y.tolist() == [i * i for i in range(ROUNDS)], y
    return events


if __name__ == "__main__":
    print(run())
