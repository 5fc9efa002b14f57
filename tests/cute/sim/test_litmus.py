"""Litmus tests of PTX's memory model: no schedule gives an outcome that the model forbids, and what
leaves an order out is a race (PTX ISA, "Memory Consistency Model").

Each test has the outcomes that the model allows. Of these the simulator gives those of some
interleaving, all of them within the schedules tried here; `WEAK` are those that no interleaving
gives, which it does not show.
"""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.sim import RaceError, explore

SCHEDULES = 24
X, Y, OUT = 0, 32, 64  # apart, as words of other cache lines


def read(m: cute.Tensor, at, sem, scope):
    return arch.load(m.iterator + at, cute.Int32, sem=sem, scope=scope)


def write(m: cute.Tensor, at, value, sem, scope):
    arch.store(m.iterator + at, cute.Int32(value), sem=sem, scope=scope)


def fence(name, scope):
    if name is not None:
        (arch.fence_acq_rel_cta if scope == "cta" else arch.fence_acq_rel_gpu)()


@cute.kernel
def message_passing(m: cute.Tensor, how: cute.Constexpr):
    data, flag, reads, scope, fences = how
    if arch.thread_idx()[0] == 0:
        if arch.block_idx()[0] == 0:
            if data == "plain":
                m[X] = 1
            else:
                write(m, X, 1, data, scope)
            fence(fences, scope)
            write(m, Y, 1, flag, scope)
        else:
            seen = read(m, Y, reads, scope)
            fence(fences, scope)
            if data == "plain":
                if seen == 1:
                    m[OUT + 1] = m[X]
            else:
                m[OUT + 1] = read(m, X, data, scope)
            m[OUT] = seen


@cute.kernel
def store_buffering(m: cute.Tensor, how: cute.Constexpr):
    sem, scope, fences = how
    if arch.thread_idx()[0] == 0:
        if arch.block_idx()[0] == 0:
            write(m, X, 1, sem, scope)
            fence(fences, scope)
            m[OUT] = read(m, Y, "relaxed", scope)
        else:
            write(m, Y, 1, sem, scope)
            fence(fences, scope)
            m[OUT + 1] = read(m, X, "relaxed", scope)


@cute.kernel
def load_buffering(m: cute.Tensor, how: cute.Constexpr):
    sem, scope = how
    if arch.thread_idx()[0] == 0:
        if arch.block_idx()[0] == 0:
            m[OUT] = read(m, Y, sem, scope)
            write(m, X, 1, "relaxed", scope)
        else:
            m[OUT + 1] = read(m, X, sem, scope)
            write(m, Y, 1, "relaxed", scope)


@cute.kernel
def coherence(m: cute.Tensor, how: cute.Constexpr):
    sem, scope = how
    if arch.thread_idx()[0] == 0:
        if arch.block_idx()[0] == 0:
            write(m, X, 1, "relaxed", scope)
            write(m, X, 2, "relaxed", scope)
        else:
            m[OUT] = read(m, X, sem, scope)
            m[OUT + 1] = read(m, X, sem, scope)


@cute.kernel
def independent_reads(m: cute.Tensor, how: cute.Constexpr):
    sem, scope = how
    block = arch.block_idx()[0]
    if arch.thread_idx()[0] == 0:
        if block == 0:
            write(m, X, 1, "relaxed", scope)
        if block == 1:
            write(m, Y, 1, "relaxed", scope)
        if block == 2:
            m[OUT] = read(m, X, sem, scope)
            m[OUT + 1] = read(m, Y, sem, scope)
        if block == 3:
            m[OUT + 2] = read(m, Y, sem, scope)
            m[OUT + 3] = read(m, X, sem, scope)


@cute.jit
def host(kernel: cute.Constexpr, m: cute.Tensor, how: cute.Constexpr, blocks: cute.Constexpr):
    kernel(m, how).launch(grid=blocks, block=32)


def outcomes(kernel, how, words=2, blocks=2):
    """The outcomes of many schedules, and the errors."""
    found = set()

    def run(m):
        host(kernel, m, how, blocks)
        found.add(tuple(m[OUT : OUT + words].tolist()))

    failures = explore(run, [np.zeros(96, np.int32)], SCHEDULES)
    return found, failures


pytestmark = pytest.mark.usefixtures("sim")

TWO = {(a, b) for a in (0, 1) for b in (0, 1)}
WEAK = {"message_passing": {(1, 0)}, "store_buffering": {(0, 0)}, "load_buffering": {(1, 1)}}


@pytest.mark.parametrize(
    ("how", "allowed"),
    [
        (("relaxed", "release", "acquire", "gpu", None), TWO - {(1, 0)}),
        (("relaxed", "relaxed", "relaxed", "gpu", "fence"), TWO - {(1, 0)}),
        (("relaxed", "release", "acquire", "sys", None), TWO - {(1, 0)}),
        (("relaxed", "relaxed", "relaxed", "gpu", None), TWO),
        (("relaxed", "release", "relaxed", "gpu", None), TWO),
    ],
    ids=["release-acquire", "fences", "system", "relaxed", "half"],
)
def test_message_passing(how, allowed):
    found, failures = outcomes(message_passing, how)
    assert not failures
    assert found <= allowed and found == allowed - WEAK["message_passing"]


@pytest.mark.parametrize(
    ("how", "ordered"),
    [
        (("plain", "release", "acquire", "gpu", None), True),
        (("plain", "relaxed", "relaxed", "gpu", "fence"), True),
        (("plain", "relaxed", "relaxed", "gpu", None), False),
        (("plain", "release", "relaxed", "gpu", None), False),
        (("plain", "relaxed", "acquire", "gpu", None), False),
        (("plain", "release", "acquire", "cta", None), False),
        (("plain", "relaxed", "relaxed", "cta", "fence"), False),
    ],
    ids=["release-acquire", "fences", "relaxed", "release", "acquire", "narrow", "narrow-fences"],
)
def test_a_plain_message_that_nothing_orders_is_a_race(how, ordered):
    found, failures = outcomes(message_passing, how)
    assert found <= TWO - {(1, 0)}  # the outcome of the race is not shown: it is reported
    assert all(isinstance(one.error, RaceError) for one in failures)
    assert bool(failures) is not ordered


@pytest.mark.parametrize("how", [("relaxed", "gpu", None), ("release", "gpu", "fence")])
def test_store_buffering(how):
    found, failures = outcomes(store_buffering, how)  # the model allows all four
    assert not failures and found == TWO - WEAK["store_buffering"]


@pytest.mark.parametrize("how", [("relaxed", "gpu"), ("acquire", "gpu")])
def test_load_buffering(how):
    found, failures = outcomes(load_buffering, how)
    assert not failures and found == TWO - WEAK["load_buffering"]


@pytest.mark.parametrize("how", [("relaxed", "gpu"), ("acquire", "gpu")])
def test_two_reads_of_one_place_never_go_back(how):
    found, failures = outcomes(coherence, how)
    forbidden = {(1, 0), (2, 0), (2, 1)}
    assert not failures and not found & forbidden and {(0, 0), (2, 2)} <= found


@pytest.mark.parametrize("how", [("relaxed", "gpu"), ("acquire", "gpu")])
def test_independent_reads_of_independent_writes(how):
    found, failures = outcomes(independent_reads, how, 4, 4)
    assert not failures and (1, 0, 1, 0) not in found and len(found) > 4
