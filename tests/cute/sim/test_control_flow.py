"""Structured control flow where lanes agree and where they part."""

from __future__ import annotations

import numpy as np
import pytest


def test_nested_ifs_on_lane_varying_conditions(elementwise, rng):
    a = rng.integers(-20, 20, 300).astype(np.int32)
    lines = """
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c10 = arith.constant 10 : i32
    %pos = arith.cmpi sgt, %a, %c0 : i32
    %r:2 = scf.if %pos -> (i32, i32) {
      %big = arith.cmpi sgt, %a, %c10 : i32
      %x = scf.if %big -> i32 {
        %d = arith.subi %a, %c10 : i32
        scf.yield %d : i32
      } else {
        scf.yield %c10 : i32
      }
      scf.yield %x, %a : i32, i32
    } else {
      %odd = arith.andi %a, %c1 : i32
      %is = arith.cmpi ne, %odd, %c0 : i32
      %x = scf.if %is -> i32 {
        scf.yield %c1 : i32
      } else {
        %n = arith.subi %c0, %a : i32
        scf.yield %n : i32
      }
      scf.yield %x, %c0 : i32, i32
    }
    %u = arith.addi %r#0, %c0 : i32
    %v = arith.addi %r#1, %c0 : i32
    """
    got = elementwise(lines, {"u": np.int32, "v": np.int32}, a=a)
    u = np.where(a > 0, np.where(a > 10, a - 10, 10), np.where(a & 1, 1, -a))
    np.testing.assert_array_equal(got["u"], u)
    np.testing.assert_array_equal(got["v"], np.where(a > 0, a, 0))


def test_loop_bounds_that_differ_between_lanes(elementwise, rng):
    lo = rng.integers(-5, 5, 200).astype(np.int32)
    hi = rng.integers(-5, 15, 200).astype(np.int32)
    step = rng.integers(1, 4, 200).astype(np.int32)
    lines = """
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %r:2 = scf.for %j = %lo to %hi step %step iter_args(%s = %zero, %n = %zero)
        -> (i32, i32) : i32 {
      %t = arith.addi %s, %j : i32
      %m = arith.addi %n, %one : i32
      scf.yield %t, %m : i32, i32
    }
    %sum = arith.addi %r#0, %zero : i32
    %turns = arith.addi %r#1, %zero : i32
    """
    got = elementwise(lines, {"sum": np.int32, "turns": np.int32}, lo=lo, hi=hi, step=step)
    ranges = [range(*v) for v in zip(lo.tolist(), hi.tolist(), step.tolist(), strict=True)]
    assert got["sum"].tolist() == [sum(r) for r in ranges]
    assert got["turns"].tolist() == [len(r) for r in ranges]


def test_nested_loops_keep_the_values_of_lanes_that_left(elementwise):
    n = np.arange(64, dtype=np.int32) % 7
    lines = """
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %three = arith.constant 3 : i32
    %r = scf.for %j = %zero to %n step %one iter_args(%s = %zero) -> i32 : i32 {
      %inner = scf.for %k = %zero to %three step %one iter_args(%t = %s) -> i32 : i32 {
        %x = arith.addi %t, %j : i32
        scf.yield %x : i32
      }
      scf.yield %inner : i32
    }
    """
    got = elementwise(lines, {"r": np.int32}, n=n)["r"]
    assert got.tolist() == [3 * sum(range(v)) for v in n.tolist()]


@pytest.mark.parametrize("uniform", [True, False])
def test_a_while_body_gets_the_operands_of_its_condition(elementwise, uniform):
    start = np.full(70, 13, np.int32) if uniform else np.arange(1, 71, dtype=np.int32)
    first = "%seven = arith.constant 7 : i32" if uniform else ""
    source = "%seven" if uniform else "%start"
    lines = f"""
    {first}
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %half = arith.constant 0.5 : f32
    %two = arith.constant 2.0 : f32
    %r:2 = scf.while (%n = {source}) : (i32) -> (f32, i32) {{
      %go = arith.cmpi sgt, %n, %zero : i32
      %f = arith.sitofp %n : i32 to f32
      %g = arith.mulf %f, %half : f32
      scf.condition(%go) %g, %n : f32, i32
    }} do {{
    ^bb0(%g: f32, %n: i32):
      %h = arith.mulf %g, %two : f32
      %m = arith.fptosi %h : f32 to i32
      %less = arith.subi %m, %one : i32
      scf.yield %less : i32
    }}
    %left = arith.addi %r#1, %zero : i32
    %value = arith.addf %r#0, %half : f32
    """
    got = elementwise(lines, {"left": np.int32, "value": np.float32}, start=start)
    assert (got["left"] == 0).all() and (got["value"] == 0.5).all()


@pytest.mark.parametrize("uniform", [True, False])
def test_index_switch(elementwise, uniform):
    a = np.arange(50, dtype=np.int32) % 5
    selector = "%c = arith.constant 3 : index" if uniform else ""
    name = "%c" if uniform else "%s"
    lines = f"""
    {selector}
    %s = arith.index_cast %a : i32 to index
    %zero = arith.constant 0 : i32
    %r = scf.index_switch {name} -> i32
    case 1 {{
      %x = arith.constant 10 : i32
      scf.yield %x : i32
    }}
    case 3 {{
      %x = arith.addi %a, %a : i32
      scf.yield %x : i32
    }}
    default {{
      scf.yield %a : i32
    }}
    %got = arith.addi %r, %zero : i32
    """
    got = elementwise(lines, {"got": np.int32}, a=a)["got"]
    choose = {1: lambda x: 10, 3: lambda x: 2 * x}
    want = [choose.get(3 if uniform else x, lambda x: x)(x) for x in a.tolist()]
    assert got.tolist() == want


def test_a_branch_that_no_lane_takes_is_not_executed(elementwise):
    a = np.arange(40, dtype=np.int32)
    lines = """
    %zero = arith.constant 0 : i32
    %big = arith.constant 100 : i32
    %never = arith.cmpi sgt, %a, %big : i32
    %r = scf.if %never -> i32 {
      %bad = arith.divsi %a, %zero : i32
      scf.yield %bad : i32
    } else {
      scf.yield %a : i32
    }
    """
    assert elementwise(lines, {"r": np.int32}, a=a)["r"].tolist() == a.tolist()


def test_masked_lanes_neither_trap_nor_touch_memory(elementwise):
    a = np.arange(40, dtype=np.int32)
    lines = """
    %zero = arith.constant 0 : i32
    %far = arith.constant 1000000 : i32
    %ok = arith.cmpi ne, %a, %zero : i32
    %r = scf.if %ok -> i32 {
      %q = arith.divsi %far, %a : i32
      scf.yield %q : i32
    } else {
      scf.yield %zero : i32
    }
    """
    got = elementwise(lines, {"r": np.int32}, a=a)["r"]
    assert got.tolist() == [0] + [1000000 // x for x in range(1, 40)]


def test_loops_up_to_the_largest_integer_do_not_wrap(kernel):
    body = """
    %lo = arith.constant 2147483640 : i32
    %hi = arith.constant 2147483647 : i32
    %three = arith.constant 3 : i32
    %one = arith.constant 1 : i32
    %zero = arith.constant 0 : i32
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %mine = arith.addi %lo, %tid : i32
    %n = scf.for %i = %mine to %hi step %three iter_args(%s = %zero) -> i32 : i32 {
      %t = arith.addi %s, %one : i32
      scf.yield %t : i32
    }
    %p = llvm.getelementptr %out[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    llvm.store %n, %p : i32, !llvm.ptr<1>
    """
    k = kernel("%out: !llvm.ptr<1>", body)
    (got,) = k(1, 8, np.zeros(8, np.int32))
    assert got.tolist() == [len(range(2147483640 + t, 2147483647, 3)) for t in range(8)]


def test_unsigned_loop_bounds(kernel):
    body = """
    %lo = arith.constant 2147483646 : i32
    %hi = arith.constant -2147483646 : i32
    %one = arith.constant 1 : i32
    %zero = arith.constant 0 : i32
    %n = scf.for unsigned %i = %lo to %hi step %one iter_args(%s = %zero) -> i32 : i32 {
      %t = arith.addi %s, %one : i32
      llvm.store %i, %out : i32, !llvm.ptr<1>
      scf.yield %t : i32
    }
    %p = llvm.getelementptr %out[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    llvm.store %n, %p : i32, !llvm.ptr<1>
    """
    k = kernel("%out: !llvm.ptr<1>", body)
    (got,) = k(1, 4, np.zeros(2, np.int32))
    assert got.tolist() == [-2147483647, 4]


def test_an_empty_kernel_and_uniform_values_only(kernel):
    k = kernel("%out: !llvm.ptr<1>, %n: i64", "llvm.store %n, %out : i64, !llvm.ptr<1>")
    (got,) = k((2, 2, 2), (3, 3, 3), np.zeros(1, np.int64), -5)
    assert got.tolist() == [-5]
    assert kernel("", "").sim.widths == ("warp", "block", "grid")


def test_structs_through_branches_and_loops(kernel):
    body = """
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %u = llvm.mlir.undef : !llvm.struct<(i32, f32)>
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %half = arith.constant 0.5 : f32
    %a = llvm.insertvalue %zero, %u[0] : !llvm.struct<(i32, f32)>
    %b = llvm.insertvalue %half, %a[1] : !llvm.struct<(i32, f32)>
    %r = scf.for %i = %zero to %tid step %one iter_args(%s = %b) -> !llvm.struct<(i32, f32)> : i32 {
      %x = llvm.extractvalue %s[0] : !llvm.struct<(i32, f32)>
      %y = llvm.extractvalue %s[1] : !llvm.struct<(i32, f32)>
      %x1 = arith.addi %x, %i : i32
      %y1 = arith.addf %y, %y : f32
      %s1 = llvm.insertvalue %x1, %s[0] : !llvm.struct<(i32, f32)>
      %s2 = llvm.insertvalue %y1, %s1[1] : !llvm.struct<(i32, f32)>
      scf.yield %s2 : !llvm.struct<(i32, f32)>
    }
    %even = arith.andi %tid, %one : i32
    %c = arith.cmpi eq, %even, %zero : i32
    %z = arith.select %c, %r, %b : !llvm.struct<(i32, f32)>
    %x = llvm.extractvalue %z[0] : !llvm.struct<(i32, f32)>
    %y = llvm.extractvalue %z[1] : !llvm.struct<(i32, f32)>
    %p = llvm.getelementptr %ints[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %q = llvm.getelementptr %floats[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    llvm.store %x, %p : i32, !llvm.ptr<1>
    llvm.store %y, %q : f32, !llvm.ptr<1>
    """
    k = kernel("%ints: !llvm.ptr<1>, %floats: !llvm.ptr<1>", body)
    ints, floats = k(1, 10, np.zeros(10, np.int32), np.zeros(10, np.float32))
    assert ints.tolist() == [0 if t % 2 else sum(range(t)) for t in range(10)]
    assert floats.tolist() == [0.5 if t % 2 else 0.5 * 2.0**t for t in range(10)]
