"""Barriers, mbarriers, asynchronous copies: who waits for whom, and the errors when nobody can."""

from __future__ import annotations

import numpy as np
import pytest

from basedsl_cute.sim import (
    BarrierError,
    DeadlockError,
    RaceError,
    SimulationError,
    UninitializedReadError,
)

TID = "%tid = nvvm.read.ptx.sreg.tid.x : i32\n"
SHARED = (
    "llvm.mlir.global internal @s() {addr_space = 3 : i32, alignment = 16 : i64} "
    ": !llvm.array<64 x i32> "
    "llvm.mlir.global internal @bar() {addr_space = 3 : i32, alignment = 8 : i64} "
    ": !llvm.array<2 x i64>"
)
OUT = """
%o = llvm.getelementptr %out[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
llvm.store %r, %o : i32, !llvm.ptr<1>
"""
WARP = """
%c5 = arith.constant 5 : i32
%warp = arith.shrui %tid, %c5 : i32
%zero = arith.constant 0 : i32
%one = arith.constant 1 : i32
%is0 = arith.cmpi eq, %warp, %zero : i32
%first = arith.cmpi eq, %tid, %zero : i32
%s = llvm.mlir.addressof @s : !llvm.ptr<3>
%mine = llvm.getelementptr %s[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
%c63 = arith.constant 63 : i32
%mirror = arith.subi %c63, %tid : i32
%other = llvm.getelementptr %s[%mirror] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
%bar = llvm.mlir.addressof @bar : !llvm.ptr<3>
%n64 = arith.constant 64 : i32
"""


def make(kernel, body):
    return kernel("%out: !llvm.ptr<1>", TID + WARP + body, SHARED)


def test_named_barriers_pass_data_between_warps(kernel):
    body = """
    scf.if %is0 {
      llvm.store %tid, %mine : i32, !llvm.ptr<3>
      nvvm.barrier.arrive id = %one number_of_threads = %n64
    } else {
      nvvm.barrier id = %one number_of_threads = %n64
      %v = llvm.load %other : !llvm.ptr<3> -> i32
      %o = llvm.getelementptr %out[%mirror] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
      llvm.store %v, %o : i32, !llvm.ptr<1>
    }
    """
    k = make(kernel, body)
    assert k.sim.widths == ("warp",)
    (out,) = k(1, 64, np.zeros(64, np.int32), check_races=True)
    assert out.tolist() == [*range(32), *[0] * 32]


def test_barrier_votes(kernel):
    body = """
    %five = arith.constant 5 : i32
    %p = arith.cmpi ult, %tid, %five : i32
    %pi = arith.extui %p : i1 to i32
    %n = nvvm.barrier #nvvm.reduction<popc> %pi -> i32
    %any = nvvm.barrier #nvvm.reduction<or> %pi -> i32
    %all = nvvm.barrier #nvvm.reduction<and> %pi -> i32
    %k = arith.constant 100 : i32
    %x = arith.muli %any, %k : i32
    %y = arith.addi %n, %x : i32
    %r = arith.subi %y, %all : i32
    """
    k = make(kernel, body + OUT)
    (out,) = k(1, 64, np.zeros(64, np.int32))
    assert out.tolist() == [105] * 64


MBARRIER = """
scf.if %first {{
  nvvm.mbarrier.init %bar, %one : !llvm.ptr<3>, i32
}}
gpu.barrier
scf.if %is0 {{
  {produce}
  %lane = nvvm.elect.sync -> i1
  scf.if %lane {{
    {arrive}
  }}
  scf.yield
}} else {{
  {wait}
  %v = llvm.load %other : !llvm.ptr<3> -> i32
  %o = llvm.getelementptr %out[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
  llvm.store %v, %o : i32, !llvm.ptr<1>
}}
"""
STORE = "llvm.store %tid, %mine : i32, !llvm.ptr<3>"
ARRIVE = "%t = nvvm.mbarrier.arrive %bar : !llvm.ptr<3> -> i64"
PARITY = """
  %ticks = arith.constant 1000000 : i32
  nvvm.mbarrier.try_wait.parity %bar, %zero, %ticks : !llvm.ptr<3>, i32, i32
"""
LOOP = """
  scf.while : () -> () {
    %done = nvvm.mbarrier.test.wait %bar, %zero : !llvm.ptr<3>, i32 -> i1
    %true = arith.constant true
    %go = arith.xori %done, %true : i1
    scf.condition(%go)
  } do {
    scf.yield
  }
"""


@pytest.mark.parametrize("wait", [PARITY, LOOP, LOOP.replace("test.wait", "try_wait")])
def test_mbarriers_hand_over_from_producer_to_consumer(kernel, wait):
    k = make(kernel, MBARRIER.format(produce=STORE, arrive=ARRIVE, wait=wait))
    for races in (False, True):
        (out,) = k(1, 64, np.zeros(64, np.int32), check_races=races)
        assert out[32:].tolist() == list(range(31, -1, -1))


def test_an_mbarrier_waits_for_bytes_too(kernel):
    expect = """
    %bytes = arith.constant 128 : i32
    %t = nvvm.mbarrier.arrive.expect_tx %bar, %bytes : !llvm.ptr<3>, i32 -> i64
    """
    k = make(kernel, MBARRIER.format(produce=STORE, arrive=expect, wait=PARITY))
    pending = r"0 of 1 arrivals still to come; there were 1 at .*; 128 bytes still to come"
    with pytest.raises(DeadlockError, match=pending):
        k.once(1, 64, [np.zeros(64, np.int32)])
    done = expect + "nvvm.mbarrier.complete_tx %bar, %bytes : !llvm.ptr<3>, i32"
    k = make(kernel, MBARRIER.format(produce=STORE, arrive=done, wait=PARITY))
    k.once(1, 64, [np.zeros(64, np.int32)])


def test_using_an_mbarrier_that_was_not_initialised(kernel):
    k = make(kernel, ARRIVE)
    with pytest.raises(
        SimulationError, match="no mbarrier was initialised at byte offset 0 of `bar`"
    ):
        k.once(1, 32, [np.zeros(64, np.int32)])


# Asynchronous copies ---------------------------------------------------------------------------

COPY = """
%c4 = arith.constant 4 : i32
%e = arith.muli %tid, %c4 : i32
%to = llvm.getelementptr %s[%e] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
%from = llvm.getelementptr %in[%e] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
nvvm.cp.async.shared.global %to, %from, 16, cache = cg{size} : !llvm.ptr<3>, !llvm.ptr<1>{type}
nvvm.cp.async.commit.group
{wait}
gpu.barrier
{again}
%q = llvm.getelementptr %s[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
%r = llvm.load %q : !llvm.ptr<3> -> i32
"""


def copy(kernel, **parts):
    names = {"size": "", "type": "", "wait": "nvvm.cp.async.wait.group 0", "again": ""} | parts
    body = TID + WARP + COPY.format(**names) + OUT
    return kernel("%in: !llvm.ptr<1>, %out: !llvm.ptr<1>", body, SHARED)


def test_asynchronous_copies_arrive_when_waited_for(kernel):
    k = copy(kernel)
    assert k.sim.widths == ("warp", "block", "grid")
    data = np.arange(64, dtype=np.int32)
    _, out = k(2, 16, data, np.zeros(16, np.int32))
    assert out.tolist() == list(range(16))


@pytest.mark.parametrize("width", ["warp", "block", "grid"])
def test_a_missing_wait_shows(kernel, width):
    k = copy(kernel, wait="nvvm.cp.async.wait.group 1")
    with pytest.raises(UninitializedReadError, match="element 0"):
        k.once(1, 16, [np.arange(64, dtype=np.int32), np.zeros(16, np.int32)], width=width)


def test_zero_fill(kernel):
    body = (
        TID
        + WARP
        + "%c8 = arith.constant 8 : i32\n%valid = arith.select %first, %c8, %zero : i32\n"
        + COPY.format(size=", %valid", type=", i32", wait="nvvm.cp.async.wait.group 0", again="")
        + OUT
    )
    k = kernel("%in: !llvm.ptr<1>, %out: !llvm.ptr<1>", body, SHARED)
    # Only two elements are read, so an array of two elements is enough.
    _, out = k(1, 8, np.array([5, 6], np.int32), np.full(8, 9, np.int32))
    assert out.tolist() == [5, 6, 0, 0, 0, 0, 0, 0]


# Barriers that fail ----------------------------------------------------------------------------


def fails(kernel, error, body, threads=64, **options):
    k = make(kernel, body)
    with pytest.raises(error) as caught:
        k.once(1, threads, [np.zeros(64, np.int32)], **options)
    return str(caught.value)


def test_a_barrier_inside_a_diverging_branch(kernel):
    text = fails(
        kernel,
        BarrierError,
        """
        %small = arith.cmpi ult, %tid, %c5 : i32
        scf.if %small {
          gpu.barrier
        }
        """,
    )
    assert "a barrier in divergent control flow" in text
    assert "thread (0, 0, 0) of block (0, 0, 0) reaches it" in text
    assert "thread (5, 0, 0) of block (0, 0, 0) of the same warp does not" in text
    assert "gpu.barrier" in text and "note: threads part ways here" in text
    assert "scf.if %small" in text and "hint: move the barrier out of the branch" in text


def test_a_barrier_that_an_ended_warp_never_reaches(kernel):
    text = fails(kernel, BarrierError, "scf.if %is0 {\n  nvvm.barrier\n}")
    assert "a barrier that all threads of the block must reach waits for ever" in text
    assert "thread (32, 0, 0) of block (0, 0, 0) has ended without reaching it" in text


def test_two_barriers_in_two_branches(kernel):
    text = fails(kernel, BarrierError, "scf.if %is0 {\n  gpu.barrier\n} else {\n  nvvm.barrier\n}")
    assert "threads of one block wait at different barriers" in text
    assert text.count("--> ") == 2
    assert "waits at this one" in text


def test_barriers_with_different_counts(kernel):
    text = fails(
        kernel,
        BarrierError,
        """
        %n96 = arith.constant 96 : i32
        %n = arith.select %is0, %n96, %n64 : i32
        nvvm.barrier id = %one number_of_threads = %n
        """,
        96,
    )
    assert "barrier 1 is waited at for 64 threads here and for 96 elsewhere" in text


def test_a_barrier_of_an_impossible_number_or_count(kernel):
    bad = "%n33 = arith.constant 33 : i32\nnvvm.barrier id = %one number_of_threads = %n33"
    assert "a positive multiple of 32" in fails(kernel, BarrierError, bad)
    bad = "nvvm.barrier id = %n64 number_of_threads = %n64"
    assert "barrier 64 does not exist" in fails(kernel, SimulationError, bad)


def test_deadlock_lists_what_each_warp_waits_for(kernel):
    text = fails(
        kernel,
        DeadlockError,
        """
        scf.if %is0 {
          nvvm.barrier id = %one number_of_threads = %n64
        } else {
          %two = arith.constant 2 : i32
          nvvm.barrier id = %two number_of_threads = %n64
        }
        """,
    )
    assert "deadlock: no thread of the block can go on\n" in text and "in thread (0, 0, 0)" in text
    assert "note: warp 0 waits for barrier 1 of 64 threads" in text
    assert "note: warp 1 waits for barrier 2 of 64 threads" in text


def test_a_loop_that_polls_for_ever_is_a_deadlock(kernel):
    body = """
    scf.while : () -> () {
      %v = llvm.load volatile %out : !llvm.ptr<1> -> i32
      %go = arith.cmpi eq, %v, %zero : i32
      scf.condition(%go)
    } do {
      scf.yield
    }
    """
    text = fails(kernel, DeadlockError, body, max_spins=50)
    assert "every running warp polls memory, 51 times with no effect" in text


def test_warps_wait_for_each_other_through_memory(kernel):
    body = """
    scf.if %is0 {
      scf.while : () -> () {
        %v = llvm.load volatile %out : !llvm.ptr<1> -> i32
        %go = arith.cmpi eq, %v, %zero : i32
        scf.condition(%go)
      } do {
        scf.yield
      }
      %p = llvm.getelementptr %out[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
      llvm.store %one, %p : i32, !llvm.ptr<1>
    } else {
      llvm.store %one, %out : i32, !llvm.ptr<1>
    }
    """
    k = make(kernel, body)
    assert k.sim.widths == ("warp",)
    (out,) = k(2, 64, np.zeros(2, np.int32))
    assert out.tolist() == [1, 1]


def test_warps_may_take_turns_for_long(kernel):
    body = """
    %rounds = arith.constant 300 : i32
    scf.for %i = %zero to %rounds step %one : i32 {
      %two = arith.constant 2 : i32
      %j = arith.muli %i, %two : i32
      %turn = arith.addi %j, %warp : i32
      scf.while : () -> () {
        %v = llvm.load volatile %out : !llvm.ptr<1> -> i32
        %go = arith.cmpi ne, %v, %turn : i32
        scf.condition(%go)
      } do {
        scf.yield
      }
      %next = arith.addi %turn, %one : i32
      llvm.store %next, %out : i32, !llvm.ptr<1>
    }
    """
    (out,) = make(kernel, body)(1, 64, np.zeros(1, np.int32), max_spins=5)
    assert out[0] == 600


def test_a_lock_taken_lane_by_lane(kernel):
    body = """
    %true = arith.constant true
    %false = arith.constant false
    %p = llvm.getelementptr %out[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %d = scf.while (%done = %false) : (i1) -> i1 {
      %go = arith.xori %done, %true : i1
      scf.condition(%go) %done : i1
    } do {
    ^bb0(%done: i1):
      %r = llvm.cmpxchg %out, %zero, %one acq_rel monotonic : !llvm.ptr<1>, i32
      %got = llvm.extractvalue %r[1] : !llvm.struct<(i32, i1)>
      scf.if %got {
        %v = llvm.load %p : !llvm.ptr<1> -> i32
        %w = arith.addi %v, %tid : i32
        llvm.store %w, %p : i32, !llvm.ptr<1>
        %free = llvm.atomicrmw xchg %out, %zero acq_rel : !llvm.ptr<1>, i32
      }
      scf.yield %got : i1
    }
    """
    k = make(kernel, body)
    assert k.sim.widths == ("warp",)
    (out,) = k(2, 64, np.zeros(2, np.int32))
    assert out.tolist() == [0, 2 * sum(range(64))]


# Races -----------------------------------------------------------------------------------------

RACE = """
llvm.store %tid, %mine : i32, !llvm.ptr<3>
{first}
%r = llvm.load %other : !llvm.ptr<3> -> i32
{second}
llvm.store %r, %mine : i32, !llvm.ptr<3>
"""


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("second", [True, False])
def test_each_missing_barrier_is_a_race(kernel, first, second):
    body = RACE.format(first="gpu.barrier" * first, second="gpu.barrier" * second)
    k = make(kernel, body)
    run = [1, 64, [np.zeros(64, np.int32)]]
    if first and second:
        k.once(*run, check_races=True)
        return
    with pytest.raises((RaceError, UninitializedReadError)) as error:
        k.once(*run, check_races=True, check_uninitialized=False)
    text = str(error.value)
    assert "race on shared memory: this" in text and "of `s`\n" in text
    assert "note: the" in text and "hint: put a barrier between them" in text
    assert "by thread (" in text


def test_a_kernel_can_run_again_after_an_error(kernel):
    body = """
    %v = llvm.load %out : !llvm.ptr<1> -> i32
    %bad = arith.cmpi eq, %v, %one : i32
    %stop = arith.andi %bad, %is0 : i1
    scf.if %stop {
    } else {
      gpu.barrier
    }
    """
    k = make(kernel, body)
    with pytest.raises(BarrierError):
        k.once(1, 64, [np.ones(64, np.int32)])
    k.once(1, 64, [np.zeros(64, np.int32)])
