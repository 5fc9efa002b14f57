"""Local arrays: kept as registers where possible, in local memory otherwise, same results."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from basedsl_cute.sim import Memory, MemoryAccessError, SimOptions
from basedsl_cute.sim.kernel import SimKernel
from basedsl_cute.sim.translate.records import read_kernel

BODY = """
%tid = nvvm.read.ptx.sreg.tid.x : i32
%zero = arith.constant 0 : i32
%one = arith.constant 1 : i32
%eight = arith.constant 8 : i32
%l = llvm.alloca %eight x f32 {{alignment = 16 : i64}} : (i32) -> !llvm.ptr
{escape}
scf.for %i = %zero to %eight step %one : i32 {{
  %p = llvm.getelementptr %l[%i] : (!llvm.ptr, i32) -> !llvm.ptr, f32
  %v = arith.muli %i, %tid : i32
  %f = arith.sitofp %v : i32 to f32
  llvm.store %f, %p : f32, !llvm.ptr
}}
%seven = arith.constant 7 : i32
%which = arith.andi %tid, %seven : i32
%q = llvm.getelementptr %l[%which] : (!llvm.ptr, i32) -> !llvm.ptr, f32
%half = arith.constant 0.5 : f32
%odd = arith.andi %tid, %one : i32
%is = arith.cmpi ne, %odd, %zero : i32
scf.if %is {{
  llvm.store %half, %q : f32, !llvm.ptr
  llvm.store %half, %l : f32, !llvm.ptr
}}
%r = llvm.getelementptr %l[4] : (!llvm.ptr) -> !llvm.ptr, f32
%v = llvm.load %r {{alignment = 16 : i64}} : !llvm.ptr -> vector<4xf32>
%w = llvm.load %l {{alignment = 16 : i64}} : !llvm.ptr -> vector<4xf32>
%s = arith.addf %v, %w : vector<4xf32>
llvm.store %s, %r {{alignment = 16 : i64}} : vector<4xf32>, !llvm.ptr
%x = llvm.load %q : !llvm.ptr -> f32
%b = llvm.load %r : !llvm.ptr -> i32
%y = arith.bitcast %b : i32 to f32
%z = arith.addf %x, %y : f32
%o = llvm.getelementptr %out[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
llvm.store %z, %o : f32, !llvm.ptr<1>
"""


def reference(t):
    array = [np.float32(i * t) for i in range(8)]
    if t % 2:
        array[t % 8] = array[0] = 0.5
    for i in range(4):
        array[4 + i] += array[i]
    return array[t % 8] + array[4]


@pytest.mark.parametrize("escape", ["", "llvm.store %l, %p64 : !llvm.ptr, !llvm.ptr<1>"])
def test_local_arrays_in_registers_and_in_memory(kernel, escape):
    k = kernel("%out: !llvm.ptr<1>, %p64: !llvm.ptr<1>", BODY.format(escape=escape))
    assert ("load_register" in k.sim.source) == (not escape)
    out, _ = k(1, 40, np.zeros(40, np.float32), np.zeros(1, np.int64))
    assert out.tolist() == [reference(t) for t in range(40)]


@pytest.mark.parametrize("index", ["%eight", "%far"])
def test_out_of_bounds_of_a_local_array(kernel, index):
    far = "%far = arith.addi %tid, %eight : i32" if index == "%far" else ""
    body = f"""
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %eight = arith.constant 8 : i32
    {far}
    %l = llvm.alloca %eight x f32 : (i32) -> !llvm.ptr
    %p = llvm.getelementptr %l[{index}] : (!llvm.ptr, i32) -> !llvm.ptr, f32
    %v = llvm.load %p : !llvm.ptr -> f32
    """
    text = r"read of 4 bytes at byte offset 32 \(element 8\) of a local array\n"
    with pytest.raises(MemoryAccessError, match=text):
        kernel("", body).once(1, 4, [])


def test_pickling_a_long_kernel_does_not_recurse(ir):
    lines = ["%v0 = arith.addi %n, %n : i32"]
    lines += [f"%v{i} = arith.addi %v{i - 1}, %n : i32" for i in range(1, 3000)]
    text = (
        "gpu.module @m { gpu.func @k(%out: !llvm.ptr<1>, %n: i32) kernel {\n"
        + "\n".join(lines)
        + "\nllvm.store %v2999, %out : i32, !llvm.ptr<1>\n gpu.return } }"
    )
    with ir.Context():
        record = read_kernel(ir.Module.parse(text), "k")
    k = SimKernel(pickle.loads(pickle.dumps(record)))
    memory, out = Memory(), np.zeros(1, np.int32)
    k.launch(1, 1, [memory.add_array(out), 3], memory=memory)
    assert out[0] == 3 * 3001


def test_an_unpacked_kernel_translates_another_width_once(kernel):
    k = kernel("%out: !llvm.ptr<1>", BODY.format(escape=""))
    record = k.sim._record()
    asked = []
    kept = SimKernel.unpack(SimKernel(record).pack(), lambda: asked.append(1) or record)
    out = np.zeros(64, np.float32)
    for options in (SimOptions(), SimOptions(width="warp"), SimOptions(width="warp")):
        memory = Memory()
        kept.launch(
            (1, 1, 1), (64, 1, 1), [memory.add_array(out, "out")], memory=memory, options=options
        )
        assert (out == [reference(t) for t in range(64)]).all()
    assert asked == [1]
