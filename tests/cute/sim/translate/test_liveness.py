"""Liveness: the operation after which nobody needs a value."""

from __future__ import annotations

from basedsl_cute.sim.translate.liveness import last_uses, steady_loads

BODY = """
%x = nvvm.read.ptx.sreg.tid.x : i32
%y = arith.addi %x, %x : i32
%z = arith.addi %y, %x : i32
%c = arith.cmpi slt, %z, %n : i32
%t = scf.if %c -> i32 {
  %u = arith.muli %y, %y : i32
  scf.yield %u : i32
} else {
  scf.yield %z : i32
}
%v = arith.cmpi slt, %t, %n : i32
cf.assert %v, "CoordinateError: mode 0: coordinate ?: extent ?"
"""


def test_values_end_with_their_last_use(record, ops):
    kernel = record("%n: i32", BODY)
    ends = last_uses(kernel.body)
    x, (y, z), (c, v) = (
        kernel.body.ops[0].results[0],
        (op.results[0] for op in ops(kernel, "arith.addi")),
        (op.results[0] for op in ops(kernel, "arith.cmpi")),
    )
    (choice,), (check,) = ops(kernel, "scf.if"), ops(kernel, "cf.assert")
    assert ends[ops(kernel, "arith.addi")[1]] == [x]
    assert set(ends[choice]) == {y, z, c}  # inside of it, too
    assert set(ends[check]) == {v, choice.results[0]}  # which the report shows
    then = choice.regions[0]
    assert last_uses(then) == {}  # what it yields is needed outside


MEMORY = """
%one = arith.constant 1 : i64
%a = llvm.alloca %one x i32 : (i64) -> !llvm.ptr
%x = llvm.load %a : !llvm.ptr -> i32
%y = arith.addi %x, %x : i32
llvm.store %y, %a : i32, !llvm.ptr
%u = llvm.load %a : !llvm.ptr -> i32
%w = llvm.load %a : !llvm.ptr -> i32
llvm.store %w, %a : i32, !llvm.ptr
%v = arith.addi %u, %u : i32
%s = llvm.load %a : !llvm.ptr -> i32
%t = arith.bitcast %s : i32 to f32
"""


def test_loads_are_steady_until_a_store(record, ops):
    kernel = record("", MEMORY)
    before, across, stored, renamed = ops(kernel, "llvm.load")
    assert steady_loads(kernel.body) == {before, stored}
    assert across.results and renamed.results  # used after a store; part of another value
