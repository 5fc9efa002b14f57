"""Kernels of several ranks with one planted bug each, and their correct twins: every bug is found,
no twin alarms.
"""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute import arch, sim
from basedsl_cute.distributed import SymmetricTensor, simulated
from basedsl_cute.sim import DeadlockError, RaceError

pytestmark = pytest.mark.usefixtures("sim")

THREADS = 32


@cute.kernel
def no_first_barrier(x: SymmetricTensor, y: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    if not bug:
        x.signals.barrier()
    y[t] = x.peer((x.rank + 1) % x.num_ranks)[t]
    x.signals.barrier()


@cute.kernel
def no_last_barrier(x: SymmetricTensor, y: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    x.signals.barrier()
    y[t] = x.peer((x.rank + 1) % x.num_ranks)[t]
    if not bug:
        x.signals.barrier()


@cute.kernel
def narrow_scope(x: SymmetricTensor, y: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    flag = x.peer((x.rank + 1) % x.num_ranks).iterator
    if t == 0:
        arch.atomic_add(flag, 1, sem="release", scope="gpu" if bug else "sys")
    while arch.load(x.local.iterator, sem="acquire", scope="sys") < 1:
        pass
    y[t] = 1


@cute.kernel
def relaxed_signal(x: SymmetricTensor, y: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    after, before = (x.rank + 1) % x.num_ranks, (x.rank + x.num_ranks - 1) % x.num_ranks
    x.peer(after)[t] = 1
    arch.sync_threads()
    if t == 0:
        count = x.signals.counter() + 1
        x.signals.notify(after, count, sem="relaxed" if bug else "release")
        x.signals.wait(before, count)
        x.signals.set_counter(0, count)
    arch.sync_threads()
    y[t] = x.local[t]


@cute.kernel
def signal_of_one_thread(x: SymmetricTensor, y: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    after, before = (x.rank + 1) % x.num_ranks, (x.rank + x.num_ranks - 1) % x.num_ranks
    x.peer(after)[t] = 1
    if not bug:
        arch.sync_threads()
    if t == 0:
        x.signals.notify(after, 1)
        x.signals.wait(before, 1)
    arch.sync_threads()
    y[t] = x.local[t]


@cute.kernel
def a_rank_skips_the_barrier(x: SymmetricTensor, y: cute.Tensor, bug: cute.Constexpr):
    if not bug or x.rank != 1:
        x.signals.barrier()
    y[arch.thread_idx()[0]] = 1


@cute.kernel
def all_wait_first(x: SymmetricTensor, y: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    after, before = (x.rank + 1) % x.num_ranks, (x.rank + x.num_ranks - 1) % x.num_ranks
    if t == 0:
        if not bug:
            x.signals.notify(after, 1)
        x.signals.wait(before, 1)
        if bug:
            x.signals.notify(after, 1)
    y[t] = 1


@cute.kernel
def another_slot(x: SymmetricTensor, y: cute.Tensor, bug: cute.Constexpr):
    t = arch.thread_idx()[0]
    if t == 0:
        x.signals.notify((x.rank + 1) % x.num_ranks, 1, slot=2)
        x.signals.wait((x.rank + x.num_ranks - 1) % x.num_ranks, 1, slot=3 if bug else 2)
    y[t] = 1


@cute.kernel
def flag_reset(x: SymmetricTensor, y: cute.Tensor, bug: cute.Constexpr):
    """Two rounds: with the bug, a flag is set to 1 and back to 0, which the next one overtakes."""
    t = arch.thread_idx()[0]
    after, before = (x.rank + 1) % x.num_ranks, (x.rank + x.num_ranks - 1) % x.num_ranks
    if t == 0:
        for turn in range(1, 3):
            if bug:
                arch.store(x.peer(after).iterator, 1, sem="release", scope="sys")
                while arch.load(x.local.iterator, sem="acquire", scope="sys") != 1:
                    pass
                arch.store(x.local.iterator, 0, sem="release", scope="sys")
            else:
                x.signals.notify(after, turn)
                x.signals.wait(before, turn)
    y[t] = 1


@cute.kernel
def place_reused_too_early(x: SymmetricTensor, y: cute.Tensor, bug: cute.Constexpr):
    """Two messages through one place at the peer: the second one waits until the first is read."""
    t = arch.thread_idx()[0]
    after, before = (x.rank + 1) % x.num_ranks, (x.rank + x.num_ranks - 1) % x.num_ranks
    for turn in cute.range_constexpr(1, 3):
        if cute.const_expr(turn == 2 and not bug):
            if t == 0:
                x.signals.wait(after, 1, slot=1)  # it has read the first one
            arch.sync_threads()
        x.peer(after)[t] = turn
        arch.sync_threads()
        if t == 0:
            x.signals.notify(after, turn)
            x.signals.wait(before, turn)
        arch.sync_threads()
        y[t] = x.local[t] - (turn - 1)
        arch.sync_threads()
        if t == 0:
            x.signals.notify(before, turn, slot=1)


@cute.jit
def launch(kernel: cute.Constexpr, x, y: cute.Tensor, bug: cute.Constexpr):
    kernel(x, y, bug).launch(grid=1, block=THREADS)


def run(kernel, ranks, bug, seed=0, rounds=2):
    with sim.ranks(ranks, seed) as world:
        x = simulated(world, THREADS, np.int32)
        y = [np.zeros(THREADS, np.int32) for _ in x]

        def program(rank):
            for turn in range(rounds):
                if kernel in (no_first_barrier, no_last_barrier):
                    x[rank].local[:] = rank + 10 * (turn + 1)
                launch(kernel, x[rank], y[rank], bug)

        world.run(program)
    return y


CASES = [
    (no_first_barrier, RaceError, "host code of rank"),
    (no_last_barrier, RaceError, "host code of rank"),
    (narrow_scope, RaceError, "scope='sys' on both sides"),
    (relaxed_signal, RaceError, "of rank"),
    (signal_of_one_thread, RaceError, "of rank"),
    (a_rank_skips_the_barrier, DeadlockError, "rank 1 has ended"),
    (all_wait_first, DeadlockError, "waits for the signal of rank"),
    (another_slot, DeadlockError, "in slot 3 of rank"),
    (place_reused_too_early, RaceError, "of rank"),
]
ROUNDS = {narrow_scope: 1, signal_of_one_thread: 1, all_wait_first: 1, another_slot: 1}
ROUNDS |= {flag_reset: 1, relaxed_signal: 1, place_reused_too_early: 1}
NAMES = [kernel.__name__ for kernel, _, _ in CASES]


@pytest.mark.parametrize("kernel, error, text", CASES, ids=NAMES)
@pytest.mark.parametrize("ranks", [2, 4])
def test_the_bug_is_found(kernel, error, text, ranks):
    for seed in range(6):  # in one of few orders
        try:
            run(kernel, ranks, True, seed, ROUNDS.get(kernel, 2))
        except error as found:
            assert text in str(found)
            return
    raise AssertionError("no order showed the bug")


@pytest.mark.parametrize("kernel", [*(case[0] for case in CASES), flag_reset])
@pytest.mark.parametrize("ranks, seed", [(2, 0), (2, 7), (4, 3), (8, 1)])
def test_the_twin_is_clean(kernel, ranks, seed):
    y = run(kernel, ranks, False, seed, ROUNDS.get(kernel, 2))
    if kernel in (no_first_barrier, no_last_barrier):
        assert [int(each[0]) for each in y] == [(r + 1) % ranks + 20 for r in range(ranks)]
    else:
        assert all((each == 1).all() for each in y)


def test_a_flag_that_is_reset_is_overtaken_in_some_order():
    found = set()
    for seed in range(1, 12):
        try:
            run(flag_reset, 2, True, seed, 1)
        except DeadlockError as error:
            found.add(seed)
            assert "rank 0" in str(error) and "rank 1" in str(error)
    assert found


def test_a_seed_repeats_an_order():
    def outcome(seed):
        try:
            run(flag_reset, 2, True, seed, 1)
        except DeadlockError as error:
            return str(error)
        return "no error"

    assert [outcome(seed) for seed in range(1, 6)] == [outcome(seed) for seed in range(1, 6)]
