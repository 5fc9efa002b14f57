"""Schedules of warps and blocks: many are tried, and a seed repeats one."""

import os

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLCallError
from basedsl_cute import arch
from basedsl_cute.sim import DeadlockError, explore

pytestmark = pytest.mark.usefixtures("sim")


@cute.jit
def take(lock: cute.Pointer):
    while arch.atomic_cas(lock, 0, 1, sem="acquire") != 0:
        pass


@cute.kernel
def two_locks(c: cute.Tensor, crosswise: cute.Constexpr):
    if arch.thread_idx()[0] == 0:
        first = arch.block_idx()[0] if crosswise else cute.Int32(0)
        take(c.iterator + first)
        take(c.iterator + (1 - first))
        c[2] = c[2] + 1
        arch.atomic_exch(c.iterator + (1 - first), 0, sem="release")
        arch.atomic_exch(c.iterator + first, 0, sem="release")


@cute.jit
def host(c: cute.Tensor, crosswise: cute.Constexpr):
    two_locks(c, crosswise).launch(grid=2, block=32)


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    monkeypatch.setenv("CUTE_DSL_MAX_SPINS", "60")


def test_some_schedules_deadlock_and_their_seed_repeats_it(monkeypatch):
    c = np.zeros(3, np.int32)
    host(c, True)  # in their own order the blocks miss each other
    assert c[2] == 2
    failures = explore(host, (c, True), schedules=8)
    assert 0 < len(failures) < 8
    assert c[2] == 2, "the arguments are copied"
    seed, error = failures[0]
    assert isinstance(error, DeadlockError)
    assert f"CUTE_DSL_SCHEDULE_SEED={seed} repeats this schedule" in error.__notes__
    monkeypatch.setenv("CUTE_DSL_SCHEDULE_SEED", str(seed))
    with pytest.raises(DeadlockError):
        host(np.zeros(3, np.int32), True)


def test_a_correct_program_passes_under_all():
    assert explore(host, (np.zeros(3, np.int32), False), schedules=8) == []


def test_it_is_the_simulator_that_runs_where_calls_are_for_a_gpu(monkeypatch):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_90a")
    c = np.zeros(3, np.int32)
    assert explore(host, (c, False), schedules=2) == []
    assert cute.sim.profile(lambda x: host(x, False), c).kernel.name.startswith("two_locks")
    assert c[2] == 2
    assert os.environ["CUTE_DSL_ARCH"] == "sm_90a"


def test_arguments_that_try_nothing():
    c = np.zeros(3, np.int32)
    with pytest.raises(DSLCallError, match="takes the arguments as a tuple, got an ndarray"):
        explore(host, c)
    for schedules in (0, -3):
        with pytest.raises(DSLCallError, match=f"schedules is {schedules}"):
            explore(host, (c, False), schedules=schedules)
    for ask in (cute.sim.profile, cute.sim.predict):
        with pytest.raises(DSLCallError, match="first_blocks is 0"):
            ask(host, c, False, first_blocks=0)
