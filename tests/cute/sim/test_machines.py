"""A machine of another plugin's: 64 lanes, and operations of its own beside MLIR's."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from basedsl_cute.hardware.launch_limits import LaunchLimits
from basedsl_cute.sim import (
    BarrierError,
    LaunchError,
    Machine,
    Memory,
    MemoryAccessError,
    MissingRuleError,
    RaceError,
    SimKernel,
    SimOptions,
    WarpError,
    translate,
)
from basedsl_cute.sim.rules import COMMON, Op, PythonEmitter, never, sim_rules
from basedsl_cute.sim.translate.records import read_kernel

LANES = 64
RULES = sim_rules("tiny", extends=COMMON)


@RULES.register("tiny.first_lane", uniform=never)
def first_lane(e: PythonEmitter, op: Op) -> None:
    """Broadcast the value of each wavefront's first lane."""
    e.let(op.results[0], f"{e.lanes(op.operands[0])}[g.shape.warp_start]")


def row_sums(value):
    """The sum of each row of 16 lanes, to all of them."""
    return np.repeat(value.reshape(-1, 16).sum(axis=1, dtype=value.dtype), 16)


@RULES.register("tiny.row_sum", uniform=never)
def row_sum(e: PythonEmitter, op: Op) -> None:
    e.globals["row_sums"] = row_sums
    e.let(op.results[0], f"row_sums({e.lanes(op.operands[0])})")


class Tiny(Machine):
    """A tiny machine."""

    name = "tiny"
    lanes = LANES
    limits = LaunchLimits(block=(256, 1, 1), threads=256, smem=1024, cluster=1)

    def rules(self, kernel):
        return RULES

    def resident_blocks(self, threads, shared):
        return 4


class Narrow(Tiny):
    """The same with 8 lanes."""

    lanes = 8


HEAD = """
%x = gpu.thread_id x
%at = arith.index_cast %x : index to i64
%p = llvm.getelementptr %out[%at] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32
%v = llvm.load %p : !llvm.ptr<1> -> i32
"""
TAIL = "llvm.store %r, %p : i32, !llvm.ptr<1>"
SHARED = "llvm.mlir.global internal @tile() {addr_space = 3 : i32} : !llvm.array<128 x i32>"


@pytest.fixture
def tiny(ir):
    """`tiny(body, outside="", machine=Tiny())`: a kernel of one pointer, `%out`, to int32."""

    def make(body: str, outside: str = "", machine: Machine | None = None) -> SimKernel:
        text = f"gpu.module @m {{ {outside}\ngpu.func @k(%out: !llvm.ptr<1>) kernel {{\n{body}\n"
        with ir.Context() as context:
            context.allow_unregistered_dialects = True
            module = ir.Module.parse(text + "gpu.return\n}}")
            return translate(module, "k", machine=machine or Tiny())

    return make


def run(kernel, values, block=128, grid=1, **options):
    """Launch at every width; demand equal results."""
    got = []
    for width in kernel.widths:
        memory, array = Memory(), np.array(values, np.int32)
        address = memory.add_array(array, "out")
        options_ = SimOptions(width=width, **options)
        kernel.launch(grid, block, [address], memory=memory, options=options_)
        got.append(array)
    for other in got[1:]:
        np.testing.assert_array_equal(got[0], other)
    return got[0]


VALUES = np.arange(128, dtype=np.int32) * 7 + 3


def test_own_operations_act_on_wavefronts_of_64(tiny):
    first = tiny(HEAD + '%r = "tiny.first_lane"(%v) : (i32) -> i32\n' + TAIL)
    assert run(first, VALUES).tolist() == [VALUES[0]] * 64 + [VALUES[64]] * 64
    rows = tiny(HEAD + '%r = "tiny.row_sum"(%v) : (i32) -> i32\n' + TAIL)
    np.testing.assert_array_equal(run(rows, VALUES), row_sums(VALUES))


def test_lane_count_is_the_machines(tiny):
    body = """
%size = gpu.subgroup_size : index
%lane = gpu.lane_id
%number = gpu.subgroup_id : index
%a = arith.muli %number, %size : index
%b = arith.addi %a, %lane : index
%r = arith.index_cast %b : index to i32
"""
    got = run(tiny(HEAD + body + TAIL), VALUES)
    assert got.tolist() == list(range(128))
    count = "%n = gpu.num_subgroups : index\n%r = arith.index_cast %n : index to i32\n"
    assert set(run(tiny(HEAD + count + TAIL), VALUES)) == {2}
    assert set(run(tiny(HEAD + count + TAIL, machine=Narrow()), VALUES)) == {16}


@pytest.mark.parametrize("machine", [Tiny(), Narrow()], ids=["64", "8"])
def test_shuffles_and_reductions_cross_the_whole_wavefront(tiny, machine):
    by = machine.lanes // 2
    shuffle = f"""
%by = arith.constant {by} : i32
%width = arith.constant {machine.lanes} : i32
%r, %valid = gpu.shuffle xor %v, %by, %width : i32
"""
    got = run(tiny(HEAD + shuffle + TAIL, machine=machine), VALUES)
    np.testing.assert_array_equal(got, VALUES[np.arange(128) ^ by])
    reduce = "%r = gpu.subgroup_reduce add %v : (i32) -> i32\n"
    got = run(tiny(HEAD + reduce + TAIL, machine=machine), VALUES)
    sums = VALUES.reshape(-1, machine.lanes).sum(axis=1)
    np.testing.assert_array_equal(got, np.repeat(sums, machine.lanes))


def test_shift_by_lanes_ends_at_the_wavefront(tiny):
    body = """
%by = arith.constant 40 : i32
%width = arith.constant 64 : i32
%s, %valid = gpu.shuffle up %v, %by, %width : i32
%zero = arith.constant 0 : i32
%r = arith.select %valid, %s, %zero : i32
"""
    got = run(tiny(HEAD + body + TAIL), VALUES)
    expected = [VALUES[i - 40] if i % 64 >= 40 else 0 for i in range(128)]
    assert got.tolist() == expected


def test_partial_wavefronts(tiny):
    body = "%r = gpu.subgroup_reduce add %v : (i32) -> i32\n"
    got = run(tiny(HEAD + body + TAIL), VALUES[:100], block=100)
    assert got[0] == VALUES[:64].sum() and got[99] == VALUES[64:100].sum()


def test_wavefronts_wait_for_each_other(tiny):
    body = """
%tile = llvm.mlir.addressof @tile : !llvm.ptr<3>
%own = llvm.getelementptr %tile[%at] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, i32
llvm.store %v, %own : i32, !llvm.ptr<3>
BARRIER
%last = arith.constant 127 : i64
%other = arith.subi %last, %at : i64
%from = llvm.getelementptr %tile[%other] : (!llvm.ptr<3>, i64) -> !llvm.ptr<3>, i32
%r = llvm.load %from : !llvm.ptr<3> -> i32
"""
    kernel = tiny(HEAD + body.replace("BARRIER", "gpu.barrier") + TAIL, SHARED)
    got = run(kernel, VALUES, check_races="error")
    np.testing.assert_array_equal(got, VALUES[::-1])
    bare = tiny(HEAD + body.replace("BARRIER", "") + TAIL, SHARED)
    with pytest.raises(RaceError):
        run(bare, VALUES, check_races="error", check_uninitialized="off")


def test_barrier_that_half_a_wavefront_reaches(tiny):
    body = """
%half = arith.constant 32 : i64
%in = arith.cmpi slt, %at, %half : i64
scf.if %in { gpu.barrier }
"""
    with pytest.raises(BarrierError, match="not all threads of the warp reach it"):
        run(tiny(HEAD + body), VALUES)


def test_shuffle_from_a_lane_that_does_not_take_part(tiny):
    body = """
%half = arith.constant 40 : i64
%in = arith.cmpi slt, %at, %half : i64
%by = arith.constant 32 : i32
%width = arith.constant 64 : i32
scf.if %in {
  %r, %valid = gpu.shuffle xor %v, %by, %width : i32
  llvm.store %r, %p : i32, !llvm.ptr<1>
}
"""
    with pytest.raises(WarpError, match="names lane 40, which does not execute it"):
        run(tiny(HEAD + body), VALUES)


def test_ballot_has_a_bit_for_each_lane(ir):
    from basedsl_cute.sim.machine.lanes import Lanes
    from basedsl_cute.sim.machine.memory import SHARED_BASE, private_segment
    from basedsl_cute.sim.machine.memory_map import MemoryMap
    from basedsl_cute.sim.machine.state import Block, Group, SimLaunch
    from basedsl_cute.sim.machine.warp import ballot

    launch = SimLaunch((1, 1, 1), (64, 1, 1), MemoryMap(), 0, Memory(), {}, SimOptions(), Tiny())
    shared = private_segment(SHARED_BASE, 0, 1, "shared memory", "shared", False)
    block = Block((0, 0, 0), 0, 64, 1, shared)
    g = Group(launch, Lanes((64, 1, 1), 0, 64, (1, 1, 1), LANES), block, 0)
    chosen = np.arange(64) % 2 == 1
    assert set(ballot(g, chosen).tolist()) == {0xAAAAAAAAAAAAAAAA}


def test_hints_name_nothing_of_cute(tiny, kernel):
    """A machine of another plugin has other functions to hint at."""

    class Said(Tiny):
        def hint(self, hint):
            return "write tiny.where"

    body = "%one = arith.constant 128 : i64\n%q = llvm.getelementptr %p[%one] : "
    body += "(!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32\nllvm.store %v, %q : i32, !llvm.ptr<1>\n"
    for machine, hint in ((Tiny(), None), (Said(), "write tiny.where")):
        with pytest.raises(MemoryAccessError) as caught:
            run(tiny(HEAD + body, machine=machine), VALUES)
        assert caught.value.hint == hint
    own = kernel("%out: !llvm.ptr<1>", HEAD + body)
    with pytest.raises(MemoryAccessError) as caught:
        own(1, 128, VALUES.copy())
    assert "cute.size(x)" in caught.value.hint


def test_limits_are_the_machines(tiny):
    kernel = tiny(HEAD)
    for block, smem, why in [(512, 0, "must be 1 to 256"), (64, 2048, "can have 0 to 1024")]:
        with pytest.raises(LaunchError, match=why):
            kernel.launch(1, block, [0], memory=Memory(), dynamic_smem=smem)
    with pytest.raises(LaunchError, match="cluster"):
        kernel.launch(2, 64, [0], memory=Memory(), cluster=2)


def test_no_rules_of_other_machines(tiny):
    with pytest.raises(MissingRuleError, match=r"nvvm\.read\.ptx\.sreg\.laneid"):
        tiny("%l = nvvm.read.ptx.sreg.laneid : i32")
    with pytest.raises(MissingRuleError, match=r"tiny\.unknown"):
        tiny('"tiny.unknown"() : () -> ()')


def test_number_of_lanes_is_a_power_of_two(tiny):
    class Odd(Tiny):
        lanes = 48

    with pytest.raises(ValueError, match="'tiny' has 48 lanes: it must be a power of two"):
        tiny(HEAD, machine=Odd())


def test_kept_kernel_runs_on_its_machine(tiny, ir):
    text = "gpu.module @m { gpu.func @k(%out: !llvm.ptr<1>) kernel {" + HEAD
    with ir.Context() as context:
        context.allow_unregistered_dialects = True
        body = '%r = "tiny.first_lane"(%v) : (i32) -> i32\n' + TAIL
        record = read_kernel(ir.Module.parse(text + body + "\ngpu.return\n}}"), "k")
    kept = SimKernel.unpack(SimKernel(record, Tiny()).pack(), lambda: record, Tiny())
    assert run(kept, VALUES).tolist() == [VALUES[0]] * 64 + [VALUES[64]] * 64


def test_simulator_loads_without_cuda():
    """A plugin for another machine needs neither CUDA's wheels nor cute's language."""
    code = (
        "import sys, basedsl_cute.sim, basedsl_cute.sim.rules\n"
        "print([m for m in sys.modules if m.startswith(('cuda', 'nvidia', 'basedsl_cute.dsl',"
        " 'basedsl_cute.public'))])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
