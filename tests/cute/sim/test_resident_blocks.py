"""Blocks that wait for later blocks: on a GPU all of a small grid run at the same time."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.sim import DeadlockError


@cute.kernel
def backwards(flags: cute.Tensor, out: cute.Tensor):
    """Block i waits for block i + 1, and passes on a sum."""
    i, n, t = arch.block_idx()[0], arch.grid_dim()[0], arch.thread_idx()[0]
    if t == 0:
        total = cute.Int32(0)
        if i + 1 < n:
            while arch.load(flags.iterator + i + 1, cute.Int32, sem="acquire", scope="gpu") == 0:
                pass
            total = out[i + 1]
        out[i] = total + i
        arch.store(flags.iterator + i, cute.Int32(1), sem="release", scope="gpu")
    arch.sync_threads()
    if t == 40:
        out[n + i] = out[i] * 10


@cute.jit
def host(flags: cute.Tensor, out: cute.Tensor, cooperative: cute.Constexpr = False):
    blocks = flags.shape[0]
    backwards(flags, out).launch(grid=blocks, block=64, cooperative=cooperative)


@pytest.mark.parametrize("cooperative", [False, True])
@pytest.mark.parametrize("blocks", [1, 2, 9])
def test_a_block_waits_for_the_next(target, blocks, cooperative):
    flags, out = np.zeros(blocks, np.int32), np.zeros(2 * blocks, np.int32)
    host(flags, out, cooperative)
    sums = np.cumsum(np.arange(blocks)[::-1])[::-1]
    np.testing.assert_array_equal(out, [*sums, *sums * 10])


@cute.kernel
def rounds(counter: cute.Tensor, out: cute.Tensor, times: cute.Int32):
    """A barrier of the grid, of one atomic counter."""
    i, n = arch.block_idx()[0], arch.grid_dim()[0]
    if arch.thread_idx()[0] == 0:
        for r in range(times):
            out[r, i] = arch.load(counter.iterator, cute.Int32, sem="relaxed", scope="gpu") // n
            arch.atomic_add(counter.iterator, 1, sem="release", scope="gpu")
            while arch.load(counter.iterator, cute.Int32, sem="acquire", scope="gpu") < (r + 1) * n:
                arch.nanosleep(sleep_time=20)


def test_a_barrier_of_the_grid(target):
    @cute.jit
    def launch(counter: cute.Tensor, out: cute.Tensor, times: cute.Int32):
        rounds(counter, out, times).launch(grid=5, block=32)

    counter, out = np.zeros(1, np.int32), np.zeros((4, 5), np.int32)
    launch(counter, out, 4)
    np.testing.assert_array_equal(out, np.arange(4)[:, None] + np.zeros((1, 5)))


def test_waiting_for_a_flag_that_nobody_sets_is_a_deadlock(sim):
    @cute.kernel
    def waits(flags: cute.Tensor):
        i = arch.block_idx()[0]
        if i < 2:
            while arch.load(flags.iterator + i, sem="acquire", scope="gpu") == 0:
                pass

    @cute.jit
    def launch(flags: cute.Tensor):
        waits(flags).launch(grid=3, block=32)

    with pytest.raises(DeadlockError, match="every running warp polls memory") as caught:
        launch(np.zeros(3, np.int32))
    text = str(caught.value)
    assert "note: warp 0 of block 0 and warp 0 of block 1 wait for another turn" in text
    assert "note: warp 0 of block 2 ended" in text
