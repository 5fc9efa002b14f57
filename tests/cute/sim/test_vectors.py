"""Vector operations against NumPy, with vectors that differ between lanes and uniform ones."""

from __future__ import annotations

import numpy as np
import pytest

HEAD = """
%tid = nvvm.read.ptx.sreg.tid.x : i32
%p = llvm.getelementptr %x[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, vector<8xi32>
%v = llvm.load %p : !llvm.ptr<1> -> vector<8xi32>
%u = arith.constant dense<[1, -2, 3, -4, 5, -6, 7, -8]> : vector<8xi32>
%zero = arith.constant 0 : i32
%three = arith.constant 3 : i32
"""
TAIL = """
%q = llvm.getelementptr %y[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, vector<8xi32>
llvm.store %r, %q : vector<8xi32>, !llvm.ptr<1>
"""
U = np.array([1, -2, 3, -4, 5, -6, 7, -8], np.int32)
THREADS = 40


def run(kernel, rng, body):
    k = kernel("%x: !llvm.ptr<1>, %y: !llvm.ptr<1>", HEAD + body + TAIL)
    x = rng.integers(-99, 99, (THREADS, 8)).astype(np.int32)
    _, y = k(1, THREADS, x, np.zeros_like(x))
    return x, y


def insert(v, s, i):
    out = np.broadcast_to(v, (THREADS, 8)).copy()
    out[:, i] = s
    return out


CASES = {
    "elementwise": ("%r = arith.addi %v, %u : vector<8xi32>", lambda x: x + U),
    "broadcast": (
        """%b = vector.broadcast %tid : i32 to vector<8xi32>
        %r = arith.muli %v, %b : vector<8xi32>""",
        lambda x: x * np.arange(THREADS)[:, None],
    ),
    "uniform broadcast": (
        """%b = vector.broadcast %three : i32 to vector<8xi32>
        %c = arith.muli %u, %b : vector<8xi32>
        %r = arith.addi %c, %v : vector<8xi32>""",
        lambda x: x + 3 * U,
    ),
    "extract and insert": (
        """%e = vector.extract %v[2] : i32 from vector<8xi32>
        %f = vector.extract %u[1] : i32 from vector<8xi32>
        %g = arith.addi %e, %f : i32
        %r = vector.insert %g, %u[5] : i32 into vector<8xi32>""",
        lambda x: insert(U, x[:, 2] - 2, 5),
    ),
    "dynamic positions": (
        """%seven = arith.constant 7 : i32
        %i = arith.andi %tid, %seven : i32
        %ix = arith.index_cast %i : i32 to index
        %e = vector.extract %v[%ix] : i32 from vector<8xi32>
        %j = arith.subi %seven, %i : i32
        %r = llvm.insertelement %e, %v[%j : i32] : vector<8xi32>""",
        lambda x: np.array(
            [
                [row[t % 8] if k == 7 - t % 8 else row[k] for k in range(8)]
                for t, row in enumerate(x)
            ]
        ),
    ),
    "shuffle": (
        "%r = vector.shuffle %v, %u [0, 8, 1, 9, 7, 15, 6, 14] : vector<8xi32>, vector<8xi32>",
        lambda x: np.concatenate([x, np.tile(U, (THREADS, 1))], 1)[:, [0, 8, 1, 9, 7, 15, 6, 14]],
    ),
    "reductions": (
        """%a = vector.reduction <add>, %v : vector<8xi32> into i32
        %b = vector.reduction <maxsi>, %v, %zero : vector<8xi32> into i32
        %c = vector.reduction <minui>, %v : vector<8xi32> into i32
        %d = vector.reduction <xor>, %u : vector<8xi32> into i32
        %r = vector.from_elements %a, %b, %c, %d, %tid, %zero, %three, %a : vector<8xi32>""",
        lambda x: np.stack(
            [
                x.sum(1),
                np.maximum(x.max(1), 0),
                x.view(np.uint32).min(1).view(np.int32),
                np.full(THREADS, np.bitwise_xor.reduce(U)),
                np.arange(THREADS),
                np.zeros(THREADS),
                np.full(THREADS, 3),
                x.sum(1),
            ],
            1,
        ),
    ),
    "shapes": (
        """%m = vector.shape_cast %v : vector<8xi32> to vector<2x4xi32>
        %t = vector.transpose %m, [1, 0] : vector<2x4xi32> to vector<4x2xi32>
        %s = vector.extract_strided_slice %t {offsets = [1], sizes = [2], strides = [1]}
          : vector<4x2xi32> to vector<2x2xi32>
        %w = vector.insert_strided_slice %s, %m {offsets = [0, 2], strides = [1, 1]}
          : vector<2x2xi32> into vector<2x4xi32>
        %row = vector.extract %w[1] : vector<4xi32> from vector<2x4xi32>
        %b = vector.broadcast %row : vector<4xi32> to vector<2x4xi32>
        %z = arith.addi %w, %b : vector<2x4xi32>
        %r = vector.shape_cast %z : vector<2x4xi32> to vector<8xi32>""",
        lambda x: np.array([shapes(row) for row in x]),
    ),
    "sum over a dimension": (
        """%m = vector.shape_cast %v : vector<8xi32> to vector<2x4xi32>
        %c = arith.constant dense<[10, 20, 30, 40]> : vector<4xi32>
        %s = vector.multi_reduction <add>, %m, %c [0] : vector<2x4xi32> to vector<4xi32>
        %k = arith.constant 5 : i32
        %t = vector.multi_reduction <maxsi>, %m, %k [0, 1] : vector<2x4xi32> to i32
        %b = vector.broadcast %t : i32 to vector<4xi32>
        %i = vector.interleave %s, %b : vector<4xi32> -> vector<8xi32>
        %even, %odd = vector.deinterleave %i : vector<8xi32> -> vector<4xi32>
        %z = arith.subi %even, %odd : vector<4xi32>
        %r = vector.interleave %z, %odd : vector<4xi32> -> vector<8xi32>""",
        lambda x: np.array([summed(row) for row in x]),
    ),
    "bit casts": (
        """%h = vector.bitcast %v : vector<8xi32> to vector<16xi16>
        %s = arith.addi %h, %h : vector<16xi16>
        %w = llvm.bitcast %s : vector<16xi16> to vector<4xi64>
        %r = vector.bitcast %w : vector<4xi64> to vector<8xi32>""",
        lambda x: (x.view(np.int16) * 2).astype(np.int16).view(np.int32),
    ),
    "masks": (
        """%c = arith.cmpi sgt, %v, %u : vector<8xi32>
        %s = arith.select %c, %v, %u : vector<8xi1>, vector<8xi32>
        %n = arith.constant 5 : index
        %m = vector.create_mask %n : vector<8xi1>
        %b = vector.broadcast %zero : i32 to vector<8xi32>
        %r = arith.select %m, %s, %b : vector<8xi1>, vector<8xi32>""",
        lambda x: np.where(np.arange(8) < 5, np.maximum(x, U), 0),
    ),
    "a branch between uniform vectors": (
        """%one = arith.constant 1 : i32
        %bit = arith.andi %tid, %one : i32
        %odd = arith.cmpi ne, %bit, %zero : i32
        %r = scf.if %odd -> vector<8xi32> {
          scf.yield %u : vector<8xi32>
        } else {
          %d = arith.addi %u, %u : vector<8xi32>
          scf.yield %d : vector<8xi32>
        }""",
        lambda x: np.where(np.arange(THREADS)[:, None] % 2, U, 2 * U),
    ),
    "an accumulator": (
        """%ten = arith.constant 10 : i32
        %one = arith.constant 1 : i32
        %r = scf.for %i = %zero to %ten step %one iter_args(%acc = %u) -> vector<8xi32> : i32 {
          %n = arith.addi %acc, %v : vector<8xi32>
          scf.yield %n : vector<8xi32>
        }""",
        lambda x: U + 10 * x,
    ),
    "a scalar from two halves": (
        """%lo = vector.extract_strided_slice %v {offsets = [0], sizes = [2], strides = [1]}
          : vector<8xi32> to vector<2xi32>
        %w = llvm.bitcast %lo : vector<2xi32> to i64
        %one = arith.constant 1 : i64
        %x1 = arith.addi %w, %one : i64
        %h = llvm.bitcast %x1 : i64 to vector<2xi32>
        %r = vector.insert_strided_slice %h, %v {offsets = [0], strides = [1]}
          : vector<2xi32> into vector<8xi32>""",
        lambda x: np.concatenate(
            [(x[:, :2].copy().view(np.int64) + 1).view(np.int32), x[:, 2:]], 1
        ),
    ),
}


def shapes(row):
    m = row.reshape(2, 4)
    w = m.copy()
    w[:, 2:] = m.T[1:3]
    return (w + w[1]).reshape(8)


def summed(row):
    m = row.reshape(2, 4)
    s = m.sum(0) + np.arange(10, 50, 10)
    t = max(5, m.max())
    return np.stack([s - t, np.full(4, t)], 1).reshape(8)


@pytest.mark.parametrize("case", CASES)
def test_vectors(kernel, rng, case):
    body, want = CASES[case]
    x, y = run(kernel, rng, body)
    np.testing.assert_array_equal(y, want(x))


def test_float_reductions_go_in_order(kernel):
    body = """
    %v = arith.constant dense<[1.0e8, 1.0, -1.0e8, 1.0]> : vector<4xf32>
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %f = arith.sitofp %t : i32 to f32
    %b = vector.broadcast %f : f32 to vector<4xf32>
    %w = arith.addf %v, %b : vector<4xf32>
    %s = vector.reduction <add>, %w : vector<4xf32> into f32
    %z = arith.constant 0.5 : f32
    %u = vector.reduction <add>, %v, %z : vector<4xf32> into f32
    %r = arith.addf %s, %u : f32
    %p = llvm.getelementptr %y[%t] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
    llvm.store %r, %p : f32, !llvm.ptr<1>
    """
    k = kernel("%y: !llvm.ptr<1>", body)
    (y,) = k(1, 1, np.zeros(1, np.float32))
    # (1e8 + 1) - 1e8 + 1 = 1 in float32, both times.
    assert y.tolist() == [2.0]


def test_fused_multiply_add_of_narrow_vectors(kernel):
    body = """
    %a = arith.constant dense<[1.5, 2.0]> : vector<2xbf16>
    %b = arith.constant dense<[3.0, -1.0]> : vector<2xbf16>
    %c = vector.fma %a, %b, %b : vector<2xbf16>
    llvm.store %c, %y : vector<2xbf16>, !llvm.ptr<1>
    """
    import ml_dtypes

    k = kernel("%y: !llvm.ptr<1>", body)
    (y,) = k(1, 1, np.zeros(2, ml_dtypes.bfloat16))
    assert y.astype(float).tolist() == [7.5, -3.0]
