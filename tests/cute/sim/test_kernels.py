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
