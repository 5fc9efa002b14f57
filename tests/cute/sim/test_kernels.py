"""Whole kernels against NumPy: indices, divergence, shared memory, barriers, atomics."""

from __future__ import annotations

import numpy as np

INDEX = """
%tid = nvvm.read.ptx.sreg.tid.x : i32
%bid = nvvm.read.ptx.sreg.ctaid.x : i32
%bdim = nvvm.read.ptx.sreg.ntid.x : i32
%base = arith.muli %bid, %bdim : i32
%i = arith.addi %base, %tid : i32
"""

ADD = (
    INDEX
    + """
%in = arith.cmpi slt, %i, %n : i32
scf.if %in {
  %pa = llvm.getelementptr %a[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
  %pb = llvm.getelementptr %b[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
  %pc = llvm.getelementptr %c[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
  %x = llvm.load %pa : !llvm.ptr<1> -> f32
  %y = llvm.load %pb : !llvm.ptr<1> -> f32
  %s = arith.addf %x, %y : f32
  llvm.store %s, %pc : f32, !llvm.ptr<1>
}
"""
)
ABC = "%a: !llvm.ptr<1>, %b: !llvm.ptr<1>, %c: !llvm.ptr<1>, %n: i32"


def test_vector_add_with_a_ragged_end(kernel, rng):
    k = kernel(ABC, ADD)
    assert k.sim.widths == ("warp", "block", "grid")
    n = 1003
    a, b = rng.random((2, n), np.float32)
    _, _, c = k(-(-n // 100), 100, a, b, np.zeros(n, np.float32), n)
    np.testing.assert_array_equal(c, a + b)


SAXPY = (
    INDEX
    + """
%grid = nvvm.read.ptx.sreg.nctaid.x : i32
%step = arith.muli %bdim, %grid : i32
scf.for %j = %i to %n step %step : i32 {
  %px = llvm.getelementptr %x[%j] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
  %py = llvm.getelementptr %y[%j] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
  %u = llvm.load %px : !llvm.ptr<1> -> f32
  %v = llvm.load %py : !llvm.ptr<1> -> f32
  %au = arith.mulf %a, %u : f32
  %s = arith.addf %au, %v : f32
  llvm.store %s, %py : f32, !llvm.ptr<1>
}
"""
)


def test_saxpy_in_a_grid_stride_loop(kernel, rng):
    k = kernel("%a: f32, %x: !llvm.ptr<1>, %y: !llvm.ptr<1>, %n: i32", SAXPY)
    x, y = rng.random((2, 1000), np.float32)
    _, got = k(3, 64, 2.5, x, y, 1000)
    np.testing.assert_array_equal(got, np.float32(2.5) * x + y)


COLLATZ = (
    INDEX
    + """
%one = arith.constant 1 : i32
%two = arith.constant 2 : i32
%three = arith.constant 3 : i32
%zero = arith.constant 0 : i32
%start = arith.addi %i, %one : i32
%end:2 = scf.while (%v = %start, %steps = %zero) : (i32, i32) -> (i32, i32) {
  %more = arith.cmpi ne, %v, %one : i32
  scf.condition(%more) %v, %steps : i32, i32
} do {
^bb0(%v: i32, %steps: i32):
  %bit = arith.andi %v, %one : i32
  %odd = arith.cmpi eq, %bit, %one : i32
  %next = scf.if %odd -> i32 {
    %t = arith.muli %v, %three : i32
    %u = arith.addi %t, %one : i32
    scf.yield %u : i32
  } else {
    %h = arith.divsi %v, %two : i32
    scf.yield %h : i32
  }
  %more = arith.addi %steps, %one : i32
  scf.yield %next, %more : i32, i32
}
%p = llvm.getelementptr %out[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
llvm.store %end#1, %p : i32, !llvm.ptr<1>
"""
)


def collatz(n):
    steps = 0
    while n != 1:
        n = 3 * n + 1 if n % 2 else n // 2
        steps += 1
    return steps


def test_collatz_diverges_in_while_and_if(kernel):
    k = kernel("%out: !llvm.ptr<1>", COLLATZ)
    (got,) = k(2, 50, np.zeros(100, np.int32))
    assert got.tolist() == [collatz(i + 1) for i in range(100)]


SHARED = "llvm.mlir.global internal @tile() {addr_space = 3 : i32} : !llvm.array<256 x f32>"
REDUCE = (
    INDEX
    + """
%c0 = arith.constant 0 : i32
%tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
%mine = llvm.getelementptr %tile[0, %tid] : (!llvm.ptr<3>, i32)
    -> !llvm.ptr<3>, !llvm.array<256 x f32>
%p = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
%v = llvm.load %p : !llvm.ptr<1> -> f32
llvm.store %v, %mine : f32, !llvm.ptr<3>
nvvm.barrier
%one = arith.constant 1 : i32
%half = arith.shrui %bdim, %one : i32
%last = scf.while (%s = %half) : (i32) -> i32 {
  %go = arith.cmpi sgt, %s, %c0 : i32
  scf.condition(%go) %s : i32
} do {
^bb0(%s: i32):
  %low = arith.cmpi slt, %tid, %s : i32
  scf.if %low {
    %other = arith.addi %tid, %s : i32
    %q = llvm.getelementptr %tile[0, %other] : (!llvm.ptr<3>, i32)
    -> !llvm.ptr<3>, !llvm.array<256 x f32>
    %a = llvm.load %q : !llvm.ptr<3> -> f32
    %b = llvm.load %mine : !llvm.ptr<3> -> f32
    %sum = arith.addf %a, %b : f32
    llvm.store %sum, %mine : f32, !llvm.ptr<3>
  }
  gpu.barrier
  %next = arith.shrui %s, %one : i32
  scf.yield %next : i32
}
%first = arith.cmpi eq, %tid, %c0 : i32
scf.if %first {
  %total = llvm.load %tile : !llvm.ptr<3> -> f32
  %o = llvm.getelementptr %out[%bid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
  llvm.store %total, %o : f32, !llvm.ptr<1>
}
"""
)


def test_block_reduction_through_shared_memory(kernel, rng):
    k = kernel("%x: !llvm.ptr<1>, %out: !llvm.ptr<1>", REDUCE, SHARED)
    assert k.sim.widths == ("warp", "block", "grid")
    x = rng.integers(-50, 50, 5 * 128).astype(np.float32)
    _, got = k(5, 128, x, np.zeros(5, np.float32), check_races=False)
    np.testing.assert_array_equal(got, x.reshape(5, 128).sum(axis=1))
    k.once(5, 128, [x, got], check_races=True)


TILES = """
llvm.mlir.global internal @ta() {addr_space = 3 : i32} : !llvm.array<16 x array<16 x f32>>
llvm.mlir.global internal @tb() {addr_space = 3 : i32} : !llvm.array<16 x array<16 x f32>>
"""
MATMUL = """
%tx = gpu.thread_id x
%ty = gpu.thread_id y
%bx = gpu.block_id x
%by = gpu.block_id y
%c16 = arith.constant 16 : index
%c0 = arith.constant 0 : index
%c1 = arith.constant 1 : index
%zero = arith.constant 0.0 : f32
%n = arith.index_cast %n32 : i32 to index
%r0 = arith.muli %by, %c16 : index
%row = arith.addi %r0, %ty : index
%q0 = arith.muli %bx, %c16 : index
%col = arith.addi %q0, %tx : index
%ta = llvm.mlir.addressof @ta : !llvm.ptr<3>
%tb = llvm.mlir.addressof @tb : !llvm.ptr<3>
%tx64 = arith.index_cast %tx : index to i64
%ty64 = arith.index_cast %ty : index to i64
%sa = llvm.getelementptr %ta[0, %ty64, %tx64] : (!llvm.ptr<3>, i64, i64)
    -> !llvm.ptr<3>, !llvm.array<16 x array<16 x f32>>
%sb = llvm.getelementptr %tb[0, %ty64, %tx64] : (!llvm.ptr<3>, i64, i64)
    -> !llvm.ptr<3>, !llvm.array<16 x array<16 x f32>>
%rn = arith.muli %row, %n : index
%total = scf.for %k = %c0 to %n step %c16 iter_args(%acc = %zero) -> f32 {
  %ac = arith.addi %k, %tx : index
  %ai = arith.addi %rn, %ac : index
  %ai64 = arith.index_cast %ai : index to i64
  %pa = llvm.getelementptr %a[%ai64] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
  %va = llvm.load %pa : !llvm.ptr<1> -> f32
  llvm.store %va, %sa : f32, !llvm.ptr<3>
  %br = arith.addi %k, %ty : index
  %bn = arith.muli %br, %n : index
  %bi = arith.addi %bn, %col : index
  %bi64 = arith.index_cast %bi : index to i64
  %pb = llvm.getelementptr %b[%bi64] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
  %vb = llvm.load %pb : !llvm.ptr<1> -> f32
  llvm.store %vb, %sb : f32, !llvm.ptr<3>
  gpu.barrier
  %part = scf.for %j = %c0 to %c16 step %c1 iter_args(%s = %acc) -> f32 {
    %j64 = arith.index_cast %j : index to i64
    %la = llvm.getelementptr %ta[0, %ty64, %j64] : (!llvm.ptr<3>, i64, i64)
    -> !llvm.ptr<3>, !llvm.array<16 x array<16 x f32>>
    %lb = llvm.getelementptr %tb[0, %j64, %tx64] : (!llvm.ptr<3>, i64, i64)
    -> !llvm.ptr<3>, !llvm.array<16 x array<16 x f32>>
    %u = llvm.load %la : !llvm.ptr<3> -> f32
    %v = llvm.load %lb : !llvm.ptr<3> -> f32
    %w = math.fma %u, %v, %s : f32
    scf.yield %w : f32
  }
  gpu.barrier
  scf.yield %part : f32
}
%ci = arith.addi %rn, %col : index
%ci64 = arith.index_cast %ci : index to i64
%pc = llvm.getelementptr %c[%ci64] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f32
llvm.store %total, %pc : f32, !llvm.ptr<1>
"""


def test_tiled_matrix_product(kernel, rng):
    k = kernel("%a: !llvm.ptr<1>, %b: !llvm.ptr<1>, %c: !llvm.ptr<1>, %n32: i32", MATMUL, TILES)
    assert k.sim.widths == ("warp", "block", "grid")
    a, b = rng.integers(-4, 5, (2, 32, 32)).astype(np.float32)
    _, _, c = k((2, 2), (16, 16), a, b, np.zeros((32, 32), np.float32), 32)
    np.testing.assert_array_equal(c, a @ b)
    k.once((2, 2), (16, 16), [a, b, c, 32], check_races=True)


HISTOGRAM = (
    INDEX
    + """
%one = arith.constant 1 : i32
%p = llvm.getelementptr %x[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
%bin = llvm.load %p : !llvm.ptr<1> -> i32
%h = llvm.getelementptr %hist[%bin] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
%old = llvm.atomicrmw add %h, %one monotonic : !llvm.ptr<1>, i32
%r = llvm.getelementptr %rank[%i] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
llvm.store %old, %r : i32, !llvm.ptr<1>
"""
)


def test_histogram_by_atomics_returns_ranks(kernel, rng):
    k = kernel("%x: !llvm.ptr<1>, %hist: !llvm.ptr<1>, %rank: !llvm.ptr<1>", HISTOGRAM)
    x = rng.integers(0, 7, 640).astype(np.int32)
    _, hist, rank = k(5, 128, x, np.zeros(7, np.int32), np.zeros(640, np.int32))
    np.testing.assert_array_equal(hist, np.bincount(x, minlength=7))
    for i in range(7):
        assert rank[x == i].tolist() == list(range(hist[i]))
