"""Shuffles, votes, matches and reductions within warps."""

from __future__ import annotations

import numpy as np
import pytest

from basedsl_cute.sim import WarpError

TID = "%tid = nvvm.read.ptx.sreg.tid.x : i32\n%full = arith.constant -1 : i32\n"
OUT = """
%o = llvm.getelementptr %out[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
llvm.store %r, %o : i32, !llvm.ptr<1>
"""


def run(kernel, body, threads=64, blocks=1):
    k = kernel("%out: !llvm.ptr<1>", TID + body + OUT)
    (out,) = k(blocks, threads, np.zeros(threads, np.int32))
    return out.tolist()


SHUFFLES = {
    "bfly": lambda lane, b: lane ^ b,
    "up": lambda lane, b: lane - b if lane >= b else lane,
    "down": lambda lane, b: lane + b if lane + b < 32 else lane,
    "idx": lambda lane, b: b,
}


@pytest.mark.parametrize("kind", SHUFFLES)
@pytest.mark.parametrize("b", [0, 1, 3, 16, 31])
def test_shuffle(kernel, kind, b):
    body = f"""
    %b = arith.constant {b} : i32
    %c = arith.constant {0 if kind == "up" else 31} : i32
    %r = nvvm.shfl.sync {kind} %full, %tid, %b, %c : i32 -> i32
    """
    want = [32 * (t // 32) + SHUFFLES[kind](t % 32, b) for t in range(64)]
    assert run(kernel, body) == want


def test_shuffle_in_segments_says_whether_a_lane_was_there(kernel):
    # Segments of 8 lanes: the segment mask is 0b11000 and the clamp 31 - bits of it, as CUDA's
    # __shfl_down_sync(mask, v, 3, 8) makes it.
    body = """
    %b = arith.constant 3 : i32
    %c = arith.constant 6175 : i32
    %s = nvvm.shfl.sync down %full, %tid, %b, %c {return_value_and_is_valid}
      : i32 -> !llvm.struct<(i32, i1)>
    %v = llvm.extractvalue %s[0] : !llvm.struct<(i32, i1)>
    %p = llvm.extractvalue %s[1] : !llvm.struct<(i32, i1)>
    %minus = arith.constant -1 : i32
    %r = arith.select %p, %v, %minus : i32
    """
    want = [t + 3 if t % 8 + 3 < 8 else -1 for t in range(64)]
    assert run(kernel, body) == want


@pytest.mark.parametrize("mode", ["xor", "up", "down", "idx"])
def test_gpu_shuffle(kernel, mode):
    body = f"""
    %b = arith.constant 5 : i32
    %w = arith.constant 32 : i32
    %v, %p = gpu.shuffle {mode} %tid, %b, %w : i32
    %minus = arith.constant -1 : i32
    %r = arith.select %p, %v, %minus : i32
    """
    valid = {"xor": lambda t: True, "up": lambda t: t >= 5, "down": lambda t: t + 5 < 32}
    table = SHUFFLES | {"xor": SHUFFLES["bfly"]}
    want = [
        32 * (t // 32) + table[mode](t % 32, 5) if valid.get(mode, lambda t: True)(t % 32) else -1
        for t in range(64)
    ]
    assert run(kernel, body) == want


def test_a_warp_reduction_by_shuffles_of_doubles(kernel):
    body = """
    %x0 = arith.sitofp %tid : i32 to f64
    %c31 = arith.constant 31 : i32
    %one = arith.constant 1 : i32
    %zero = arith.constant 0 : i32
    %s16 = arith.constant 16 : i32
    %sum:2 = scf.while (%x = %x0, %d = %s16) : (f64, i32) -> (f64, i32) {
      %go = arith.cmpi sgt, %d, %zero : i32
      scf.condition(%go) %x, %d : f64, i32
    } do {
    ^bb0(%x: f64, %d: i32):
      %b = arith.bitcast %x : f64 to i64
      %w = arith.constant 32 : i32
      %y, %p = gpu.shuffle xor %x, %d, %w : f64
      %z = arith.addf %x, %y : f64
      %h = arith.shrui %d, %one : i32
      scf.yield %z, %h : f64, i32
    }
    %r = arith.fptosi %sum#0 : f64 to i32
    """
    assert run(kernel, body) == [sum(range(32))] * 32 + [sum(range(32, 64))] * 32


def test_votes(kernel):
    body = """
    %five = arith.constant 5 : i32
    %p = arith.cmpi slt, %tid, %five : i32
    %b = nvvm.vote.sync ballot %full, %p -> i32
    %any = nvvm.vote.sync any %full, %p -> i1
    %all = nvvm.vote.sync all %full, %p -> i1
    %uni = nvvm.vote.sync uni %full, %p -> i1
    %c100 = arith.constant 100 : i32
    %c200 = arith.constant 200 : i32
    %c400 = arith.constant 400 : i32
    %zero = arith.constant 0 : i32
    %x = arith.select %any, %c100, %zero : i32
    %y = arith.select %all, %c200, %zero : i32
    %z = arith.select %uni, %c400, %zero : i32
    %s = arith.addi %b, %x : i32
    %t = arith.addi %s, %y : i32
    %r = arith.addi %t, %z : i32
    """
    assert run(kernel, body) == [31 + 100] * 32 + [400] * 32


@pytest.mark.parametrize("threads", [64, 40])
def test_votes_of_partial_warps_and_member_masks(kernel, threads):
    body = """
    %c16 = arith.constant 16 : i32
    %lane = nvvm.read.ptx.sreg.laneid : i32
    %low = arith.cmpi slt, %lane, %c16 : i32
    %lows = arith.constant 65535 : i32
    %highs = arith.constant -65536 : i32
    %r = scf.if %low -> i32 {
      %t = arith.constant true
      %x = nvvm.vote.sync ballot %lows, %t -> i32
      scf.yield %x : i32
    } else {
      %t = arith.constant true
      %x = nvvm.vote.sync ballot %highs, %t -> i32
      scf.yield %x : i32
    }
    """
    exist = [(1 << min(32, threads - 32 * w)) - 1 for w in range(2)]
    want = []
    for t in range(threads):
        bits = exist[t // 32] & (0xFFFF if t % 32 < 16 else 0xFFFF0000)
        want.append(bits - (1 << 32) if bits >> 31 else bits)
    assert run(kernel, body, threads) == want


REDUCTIONS = {
    "add": sum,
    "min": min,
    "max": max,
    "umin": lambda v: min(x % 2**32 for x in v),
    "umax": lambda v: max(x % 2**32 for x in v),
    "and": lambda v: np.bitwise_and.reduce(v),
    "or": lambda v: np.bitwise_or.reduce(v),
    "xor": lambda v: np.bitwise_xor.reduce(v),
}


@pytest.mark.parametrize("kind", REDUCTIONS)
def test_redux(kernel, kind):
    body = f"""
    %k = arith.constant 37 : i32
    %m = arith.constant 1000 : i32
    %a = arith.muli %tid, %k : i32
    %v = arith.subi %a, %m : i32
    %r = nvvm.redux.sync {kind} %v, %full : i32 -> i32
    """
    values = [t * 37 - 1000 for t in range(40)]
    want = []
    for part in (values[:32], values[32:]):
        total = int(REDUCTIONS[kind](part))
        want += [(total + 2**31) % 2**32 - 2**31] * len(part)
    assert run(kernel, body, 40) == want


def test_elect_and_lane_numbers(kernel):
    body = """
    %e = nvvm.elect.sync -> i1
    %lane = nvvm.read.ptx.sreg.laneid : i32
    %lt = nvvm.read.ptx.sreg.lanemask.lt : i32
    %n = math.ctpop %lt : i32
    %w = nvvm.read.ptx.sreg.warpid : i32
    %k = arith.constant 1000 : i32
    %wk = arith.muli %w, %k : i32
    %x = arith.select %e, %k, %n : i32
    %y = arith.addi %x, %wk : i32
    %g = gpu.lane_id
    %g32 = arith.index_cast %g : index to i32
    %z = arith.subi %lane, %g32 : i32
    %r = arith.addi %y, %z : i32
    """
    want = [1000 * (t // 32) + (1000 if t % 32 == 0 else t % 32) for t in range(64)]
    assert run(kernel, body) == want


def test_elect_among_the_lanes_of_a_branch(kernel):
    """The hardware waits for no lane: it elects among those that are there."""
    body = """
    %five = arith.constant 5 : i32
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %high = arith.cmpi sge, %tid, %five : i32
    %r = scf.if %high -> i32 {
      %e = nvvm.elect.sync -> i1
      %chosen = arith.select %e, %one, %zero : i32
      scf.yield %chosen : i32
    } else {
      scf.yield %zero : i32
    }
    """
    assert run(kernel, body, 40) == [int(t in (5, 32)) for t in range(40)]


def test_match(kernel):
    body = """
    %three = arith.constant 3 : i32
    %v = arith.remui %tid, %three : i32
    %m = nvvm.match.sync any %full, %v : i32 -> i32
    %r = math.ctpop %m : i32
    """
    want = [
        sum(u % 3 == t % 3 for u in range(32 * (t // 32), 32 * (t // 32) + 32)) for t in range(64)
    ]
    assert run(kernel, body) == want


def test_a_named_lane_that_does_not_arrive(kernel):
    body = """
    %five = arith.constant 5 : i32
    %zero = arith.constant 0 : i32
    %p = arith.cmpi sge, %tid, %five : i32
    %r = scf.if %p -> i32 {
      %x = nvvm.redux.sync add %tid, %full : i32 -> i32
      scf.yield %x : i32
    } else {
      scf.yield %zero : i32
    }
    """
    with pytest.raises(WarpError) as error:
        run(kernel, body)
    text = str(error.value)
    assert "mask 0xffffffff names lane 0, which does not execute it" in text
    assert "thread (5, 0, 0)" in text and "nvvm.redux.sync add" in text


def test_a_lane_that_is_not_named(kernel):
    body = """
    %m = arith.constant 15 : i32
    %t = arith.constant true
    %r = nvvm.vote.sync ballot %m, %t -> i32
    """
    with pytest.raises(
        WarpError, match=r"lane 4 executes nvvm\.vote\.sync, but the member mask 0x0000000f"
    ):
        run(kernel, body)
