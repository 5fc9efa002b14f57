"""Uniformity analysis: the values that vary, the branches that diverge, and the widest group."""

from __future__ import annotations

import pytest

from basedsl_cute.sim import MissingRuleError
from basedsl_cute.sim.rules import rules_of
from basedsl_cute.sim.translate.translation import widest_lockstep
from basedsl_cute.sim.translate.uniformity import UniformityAnalysis

HEAD = """
%tid = nvvm.read.ptx.sreg.tid.x : i32
%block = nvvm.read.ptx.sreg.ctaid.x : i32
%zero = arith.constant 0 : i32
%one = arith.constant 1 : i32
%is0 = arith.cmpi eq, %tid, %zero : i32
%first = arith.cmpi eq, %block, %zero : i32
"""
OUT = "%out: !llvm.ptr<1>, %n: i32"


def varies(kernel, many_blocks: bool, op) -> bool:
    return op.results[0] in UniformityAnalysis(kernel, many_blocks, rules_of(kernel)).varying


@pytest.mark.parametrize(
    ("line", "within", "across"),
    [
        ("%v = arith.addi %n, %one : i32", False, False),
        ("%v = arith.addi %block, %one : i32", False, True),
        ("%v = arith.addi %tid, %n : i32", True, True),
        ("%v = nvvm.read.ptx.sreg.laneid : i32", True, True),
        ("%v = nvvm.read.ptx.sreg.nctaid.x : i32", False, False),
    ],
)
def test_results_vary_as_their_operands_do(record, line, within, across):
    kernel = record(OUT, f"{HEAD}{line}")
    last = kernel.body.ops[-2]
    assert varies(kernel, False, last) == within
    assert varies(kernel, True, last) == across


@pytest.mark.parametrize(
    ("condition", "diverges", "varying"), [("%is0", True, True), ("%first", False, False)]
)
def test_a_diverging_branch_makes_its_results_vary(record, ops, condition, diverges, varying):
    body = f"""{HEAD}
    %r = scf.if {condition} -> (i32) {{
      scf.yield %zero : i32
    }} else {{
      scf.yield %one : i32
    }}"""
    kernel = record(OUT, body)
    (branch,) = ops(kernel, "scf.if")
    found = UniformityAnalysis(kernel, False, rules_of(kernel))
    assert (branch in found.diverging) == diverges
    assert (branch.results[0] in found.varying) == varying


def test_a_uniform_branch_passes_on_what_its_sides_yield(record, ops):
    body = f"""{HEAD}
    %r = scf.if %first -> (i32) {{
      scf.yield %zero : i32
    }} else {{
      scf.yield %tid : i32
    }}"""
    kernel = record(OUT, body)
    (branch,) = ops(kernel, "scf.if")
    found = UniformityAnalysis(kernel, False, rules_of(kernel))
    assert branch not in found.diverging
    assert branch.results[0] in found.varying


def test_variation_flows_around_a_loop_to_its_first_values(record, ops):
    """%a starts uniform, and gets %b of the turn before, which gets the thread index."""
    body = f"""{HEAD}
    %ra, %rb, %rc = scf.for %i = %zero to %n step %one
        iter_args(%a = %zero, %b = %zero, %c = %zero) -> (i32, i32, i32) : i32 {{
      %d = arith.addi %c, %one : i32
      scf.yield %b, %tid, %d : i32, i32, i32
    }}"""
    kernel = record(OUT, body)
    (loop,) = ops(kernel, "scf.for")
    found = UniformityAnalysis(kernel, False, rules_of(kernel))
    assert loop not in found.diverging
    assert [result in found.varying for result in loop.results] == [True, True, False]


def test_a_bound_that_varies_makes_the_loop_diverge(record, ops):
    body = f"""{HEAD}
    %r = scf.for %i = %zero to %tid step %one iter_args(%a = %zero) -> (i32) : i32 {{
      scf.yield %one : i32
    }}"""
    kernel = record(OUT, body)
    (loop,) = ops(kernel, "scf.for")
    found = UniformityAnalysis(kernel, False, rules_of(kernel))
    assert loop in found.diverging
    assert loop.results[0] in found.varying
    assert loop.regions[0].args[0] in found.varying


SHARED = "llvm.mlir.global internal @s() {addr_space = 3 : i32} : !llvm.array<8 x i32>"


def test_a_load_at_one_address_is_uniform_where_lanes_share_the_memory(record, ops):
    body = f"""{HEAD}
    %s = llvm.mlir.addressof @s : !llvm.ptr<3>
    %v = llvm.load %s : !llvm.ptr<3> -> i32
    %w = llvm.load %out : !llvm.ptr<1> -> i32
    """
    kernel = record(OUT, body, SHARED)
    shared, from_global = ops(kernel, "llvm.load")
    assert not varies(kernel, False, shared)
    assert varies(kernel, True, shared), "each block has its own shared memory"
    assert not varies(kernel, True, from_global)


def test_roots_of_pointers(record, ops):
    body = f"""{HEAD}
    %s = llvm.mlir.addressof @s : !llvm.ptr<3>
    %l = llvm.alloca %one x i32 : (i32) -> !llvm.ptr
    %a = llvm.getelementptr %out[%tid] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
    %b = llvm.getelementptr %s[%tid] : (!llvm.ptr<3>, i32) -> !llvm.ptr<3>, i32
    %c = llvm.getelementptr %l[%tid] : (!llvm.ptr, i32) -> !llvm.ptr, i32
    %d = llvm.load %out : !llvm.ptr<1> -> !llvm.ptr<1>
    """
    kernel = record(OUT, body, SHARED)
    found = UniformityAnalysis(kernel, False, rules_of(kernel))
    of_argument, of_shared, of_local = (
        found.root(op.results[0]) for op in ops(kernel, "llvm.getelementptr")
    )
    assert (of_argument.arg, of_argument.space) == (0, 1)
    assert (of_shared.variable.name, of_shared.space) == ("s", 3)
    assert (of_local.local.defining.name, of_local.space) == ("llvm.alloca", 5)
    assert found.root(ops(kernel, "llvm.load")[0].results[0]) is None


@pytest.mark.parametrize(
    ("body", "width"),
    [
        ("", "grid"),
        ("gpu.barrier", "grid"),
        ("scf.if %first {\n gpu.barrier\n }", "block"),
        ("scf.if %is0 {\n gpu.barrier\n }", "warp"),
        ("nvvm.cluster.arrive", "warp"),
    ],
)
def test_widest_lockstep(record, body, width):
    kernel = record(OUT, HEAD + body)
    assert widest_lockstep(kernel, rules_of(kernel)) == width


@pytest.mark.parametrize(("volatile", "width"), [("", "grid"), ("volatile ", "warp")])
def test_a_loop_on_what_others_may_change_runs_by_warp(record, volatile, width):
    body = f"""{HEAD}
    scf.while : () -> () {{
      %v = llvm.load {volatile}%out : !llvm.ptr<1> -> i32
      %go = arith.cmpi eq, %v, %zero : i32
      scf.condition(%go)
    }} do {{
      scf.yield
    }}"""
    kernel = record(OUT, body)
    assert widest_lockstep(kernel, rules_of(kernel)) == width


def test_an_op_without_a_rule(record):
    kernel = record(OUT, "%r = nvvm.read.ptx.sreg.envreg0 : i32")
    with pytest.raises(MissingRuleError, match="envreg0"):
        UniformityAnalysis(kernel, False, rules_of(kernel))
