"""Two groups of warps that take turns at barriers where one arrives and does not wait."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute import utils
from basedsl_cute.sim import RaceError

THREADS, TURNS = 128, 4


@cute.kernel
def turns(out: cute.Tensor, passed_on_before_reading: cute.Constexpr):
    """Each group adds what both wrote, then writes anew. All warps read each word."""
    t = cute.arch.thread_idx()[0]
    group = cute.arch.make_warp_uniform(t // 64)
    s = utils.SmemAllocator().allocate_tensor(cute.Int32, cute.make_layout(2))
    if t < 2:
        s[t] = 0
    cute.arch.sync_threads()
    total = s[0] + s[1]
    if group == 1:
        cute.arch.barrier_arrive(1, THREADS)
    for n in cute.range(TURNS, unroll=1):
        cute.arch.barrier(barrier_id=1 + group, number_of_threads=THREADS)
        if t % 64 == 0:
            s[n % 2] = 10 * n + group
        cute.arch.barrier(barrier_id=3 + group, number_of_threads=64)
        if cute.const_expr(passed_on_before_reading):
            if group == 0 or n + 1 < TURNS:
                cute.arch.barrier_arrive(2 - group, THREADS)
        total += s[n % 2]
        if cute.const_expr(not passed_on_before_reading):
            if group == 0 or n + 1 < TURNS:
                cute.arch.barrier_arrive(2 - group, THREADS)
    out[t] = total


@cute.jit
def launch(out: cute.Tensor, passed_on_before_reading: cute.Constexpr):
    turns(out, passed_on_before_reading).launch(grid=1, block=THREADS)


def test_what_all_read_is_written_in_turn(monkeypatch):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sim")
    out = np.zeros(THREADS, np.int32)
    launch(out, False)
    np.testing.assert_array_equal(out, np.repeat([60, 64], 64))


def test_a_turn_passed_on_too_early_is_a_race(monkeypatch):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sim")
    with pytest.raises(RaceError, match="race on shared memory"):
        launch(np.zeros(THREADS, np.int32), True)
