"""Translating and launching: what is refused, what is kept, what errors say."""

from __future__ import annotations

import re

import numpy as np
import pytest

from basedsl.errors import DSLError
from basedsl_cute.sim import (
    ArithmeticTrapError,
    AssertionFailedError,
    LaunchError,
    Memory,
    MissingRuleError,
    SimOptions,
    translate,
)
from basedsl_cute.sim.launch import _boxes

EMPTY = Memory()


def launch(k, grid=1, block=1, args=(), **more):
    k.sim.launch(grid, block, args, memory=EMPTY, **more)


BAD = [
    ({"grid": 0}, r"grid=\(0, 1, 1\) has 0 in x; it must be 1 to 2147483647"),
    ({"block": -1}, r"block=\(-1, 1, 1\) has -1 in x; it must be 1 to 1024"),
    ({"grid": (1, 2, 3, 4)}, r"grid takes one to three integers, got \(1, 2, 3, 4\)"),
    ({"block": 1.5}, "block x must be an integer, got float"),
    ({"block": 1025}, r"block=\(1025, 1, 1\) has 1025 in x; it must be 1 to 1024"),
    ({"block": (1, 1, 65)}, "has 65 in z; it must be 1 to 64"),
    ({"grid": (1, 65536)}, "has 65536 in y; it must be 1 to 65535"),
    ({"grid": 2**31}, "in x; it must be 1 to 2147483647"),
    ({"dynamic_smem": 232449}, "asks for 232449 bytes of shared memory; it can have 0 to 232448"),
    ({"dynamic_smem": -1}, "dynamic shared memory of -1 bytes"),
    ({"args": (1,)}, "kernel k takes 0 arguments, 1 were given"),
]


@pytest.mark.parametrize(("arguments", "text"), BAD, ids=[b[1][:20] for b in BAD])
def test_configurations_that_no_gpu_takes(kernel, arguments, text):
    k = kernel("", "")
    with pytest.raises(LaunchError, match=text):
        launch(k, **arguments)
    launch(k)


def test_numpy_integers_are_extents_and_arguments(kernel):
    launch(kernel("%n: i32", ""), np.int64(2), (np.int32(3), 2), [np.uint32(2**32 - 1)])


@pytest.mark.parametrize(
    ("type_", "value"), [("i32", 2**32), ("i8", -129), ("i32", 1.5), ("!llvm.ptr<1>", "x")]
)
def test_arguments_that_do_not_fit(kernel, type_, value):
    with pytest.raises(
        LaunchError, match=re.escape(f"argument 0 is {value!r}, not a value of type {type_}")
    ):
        launch(kernel(f"%n: {type_}", ""), args=[value])


def test_arguments_of_every_kind(kernel):
    body = """
    %a = arith.extf %h : f16 to f32
    %b = vector.extract %v[1] : f32 from vector<2xf32>
    %c = llvm.extractvalue %s[1] : !llvm.struct<(i32, f32)>
    %d = arith.addf %a, %b : f32
    %e = arith.addf %d, %c : f32
    %one = arith.constant 1.0 : f32
    %f = arith.addf %e, %one : f32
    %g = arith.select %t, %f, %e : f32
    llvm.store %g, %out : f32, !llvm.ptr<1>
    """
    params = "%out: !llvm.ptr<1>, %h: f16, %v: vector<2xf32>, %s: !llvm.struct<(i32, f32)>, %t: i1"
    # The harness reads parameter names by their percent signs.
    k = kernel(params, body)
    out = np.zeros(1, np.float32)
    k.once(1, 1, [out, 0.5, (1.0, 2.0), (3, 4.0), True])
    assert out[0] == 7.5


def test_an_operation_without_a_rule(kernel):
    with pytest.raises(MissingRuleError) as error:
        kernel("", '\n%x = "test.op"() : () -> i32' if False else "\nnvvm.exit")
    text = str(error.value)
    assert "the target `sim` has no rule for the operation nvvm.exit" in text
    assert "kernel.mlir:2" in text and "2 | nvvm.exit" in text
    assert isinstance(error.value, DSLError) and isinstance(error.value, NotImplementedError)


def test_a_type_that_no_lane_holds(kernel):
    with pytest.raises(MissingRuleError, match="i128 is wider than 64 bits"):
        kernel("%a: i128", "%b = arith.addi %a, %a : i128")


def test_a_kernel_that_is_not_there(ir):
    with ir.Context():
        module = ir.Module.parse("gpu.module @m { gpu.func @one() kernel { gpu.return } }")
        with pytest.raises(DSLError, match="no kernel 'two'; it has: one"):
            translate(module, "two")


def test_nothing_of_mlir_is_kept(ir):
    with ir.Context():
        module = ir.Module.parse("gpu.module @m { gpu.func @one(%n: i32) kernel { gpu.return } }")
        k = translate(module, "one")
    del module
    k.launch(1, 1, [3], memory=EMPTY)
    assert k.source.startswith("def kernel(g, v0):")


def test_source_shows_the_user_s_lines(kernel):
    k = kernel("%a: i32", "\n%b = arith.addi %a, %a : i32\n%c = arith.muli %b, %a : i32")
    source = k.sim.source
    assert re.search(r"v1 = v0 \+ v0 +# .*kernel.mlir:2\n", source)
    assert re.search(r"v2 = v1 \* v0 +# .*kernel.mlir:3\n", source)


def test_a_width_that_the_kernel_does_not_allow(kernel):
    body = "\n%n = arith.constant 32 : i32\nnvvm.barrier id = %n number_of_threads = %n"
    k = kernel("", body)
    with pytest.raises(LaunchError, match=r"k cannot run block-wide:(.|\n)*hint: run it warp-wide"):
        k.sim.launch(1, 1, [], memory=EMPTY, options=SimOptions(width="block"))


def test_division_by_zero_names_the_thread(kernel):
    body = """
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %three = arith.constant 3 : i32
    %d = arith.subi %tid, %three : i32
    %q = arith.floordivsi %tid, %d : i32
    %some = arith.cmpi eq, %q, %three : i32
    scf.if %some { gpu.printf "three" }
    """
    k = kernel("", body)
    for width in k.sim.widths:
        with pytest.raises(ArithmeticTrapError) as error:
            k.once(1, 5, [], width=width)
        text = str(error.value)
        assert "integer division by zero\n" in text
        assert "note: in thread (3, 0, 0) of block (0, 0, 0)" in text
        assert "arith.floordivsi" in text


def test_a_failed_assertion_names_the_thread(kernel):
    body = """
    %tid = nvvm.read.ptx.sreg.tid.x : i32
    %three = arith.constant 3 : i32
    %ok = arith.cmpi ult, %tid, %three : i32
    cf.assert %ok, "tid must be small"
    """
    k = kernel("", body)
    k.once(1, 3, [])
    with pytest.raises(AssertionFailedError, match="assertion failed: tid must be small") as error:
        k.once(1, 5, [])
    assert "note: in thread (3, 0, 0) of block (0, 0, 0)" in str(error.value)


def test_a_loop_with_a_step_that_goes_nowhere(kernel):
    body = """
    %zero = arith.constant 0 : i32
    scf.for %i = %zero to %n step %n : i32 {
    }
    """
    k = kernel("%n: i32", body)
    k.once(1, 1, [2])
    with pytest.raises(ArithmeticTrapError, match="a loop's step is 0: it must be at least 1"):
        k.once(1, 1, [0])


def test_inlined_functions_name_their_callers(ir):
    text = """
    gpu.module @m { gpu.func @k(%x: i32) kernel {
      %z = arith.constant 0 : i32
      %q = arith.divsi %x, %z : i32 loc(callsite("helper.py":3:5 at "kernel.py":9:1))
      %b = arith.cmpi eq, %q, %z : i32
      scf.if %b {}
      gpu.return
    } }
    """
    with ir.Context():
        k = translate(ir.Module.parse(text), "k")
    with pytest.raises(ArithmeticTrapError) as error:
        k.launch(1, 1, [1], memory=EMPTY)
    assert (error.value.span.filename, error.value.span.line) == ("helper.py", 3)
    assert "note: called from here\n  --> kernel.py:9" in str(error.value)


@pytest.mark.parametrize("most", [1, 2, 3, 5, 6, 7, 12, 100])
@pytest.mark.parametrize("grid", [(1, 1, 1), (5, 1, 1), (3, 2, 1), (2, 3, 4), (1, 1, 7)])
def test_boxes_are_the_blocks_of_a_grid_in_order(grid, most):
    gx, gy, gz = grid
    every = [(x, y, z) for z in range(gz) for y in range(gy) for x in range(gx)]
    for total in {1, len(every)}:
        found = []
        for (x, y, z), (bx, by, bz) in _boxes(grid, total, most):
            assert bx * by * bz <= most
            found += [
                (x + i, y + j, z + k) for k in range(bz) for j in range(by) for i in range(bx)
            ]
        assert found == every[:total]
