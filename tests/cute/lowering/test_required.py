"""Instructions that a target does not have: told at the Python line, and LLVM never ends Python."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLError
from basedsl.errors import DSLTypeError
from basedsl.objectstage.fatal import LLVMFatalError, catching_fatal_errors
from basedsl_cute.hardware.requirements import INSTRUCTIONS, instruction_requirements
from basedsl_cute.hardware.targets import TARGETS
from basedsl_cute.lowering.ptx import ptxas

GPUS = [target for target in TARGETS.values() if target.is_gpu]
PREAMBLE = """
%c = arith.constant 1 : i32
%f = arith.constant 1.0 : f32
%b = llvm.mlir.zero : !llvm.ptr<3>
%d = llvm.mlir.zero : !llvm.ptr<7>
%g = llvm.mlir.zero : !llvm.ptr<1>
%p = llvm.mlir.zero : !llvm.ptr
%t = llvm.mlir.zero : !llvm.ptr<6>
%l = arith.constant 1 : i64
%o = arith.constant true
%h = arith.constant 0 : i16
"""
TCGEN05_MMA = (
    "nvvm.tcgen05.mma %t, %l, %l, %c, %o {{kind = #nvvm.tcgen05_mma_kind<{}>, "
    "ctaGroup = #nvvm.cta_group<cta_1>}} : (!llvm.ptr<6>, i64, i64, i32, i1)"
)
TCGEN05_SPARSE = (
    '"nvvm.tcgen05.mma.sp"(%t, %l, %l, %c, %o, %t) {{kind = #nvvm.tcgen05_mma_kind<{}>, '
    "ctaGroup = #nvvm.cta_group<cta_1>, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1, 0, 0>}} "
    ": (!llvm.ptr<6>, i64, i64, i32, i1, !llvm.ptr<6>) -> ()"
)
TCGEN05_BLOCK_SCALE = (
    '"nvvm.tcgen05.mma.block_scale"(%t, %l, %l, %c, %o, %t, %t) {{'
    "kind = #nvvm.tcgen05_mma_kind<mxf4nvf4>, ctaGroup = #nvvm.cta_group<cta_1>{}, "
    "blockScale = #nvvm.tcgen05_mma_block_scale<block16>}} "
    ": (!llvm.ptr<6>, i64, i64, i32, i1, !llvm.ptr<6>, !llvm.ptr<6>) -> ()"
)
MMA_BLOCK_SCALE = (  # registers of A, B and sums, factors with bytes and threads
    '%m = "nvvm.mma.block_scale"(%c, %c, %c, %c, %c, %c, %f, %f, %f, %f, %c, %h, %h, %c, %h, %h) {'
    "shape = #nvvm.shape<m = 16, n = 8, k = 32>, scaleVecSize = #nvvm.scale_vec_size<x1>, "
    "multiplicandAPtxType = #nvvm.mma_type<e4m3>, multiplicandBPtxType = #nvvm.mma_type<e4m3>, "
    "blockScaleFormat = #nvvm.block_scale_format<ue8m0>, "
    "kind = #nvvm.block_scale_kind<mxf8f6f4>, "
    "operandSegmentSizes = array<i32: 4, 2, 4, 1, 1, 1, 1, 1, 1>} : (i32, i32, i32, i32, i32, i32, "
    "f32, f32, f32, f32, i32, i16, i16, i32, i16, i16) -> !llvm.struct<(f32, f32, f32, f32)>"
)
# Op -> its text, for each row of the table in turn.
LAUNCH_CONTROL = (
    '"nvvm.clusterlaunchcontrol.try.cancel"(%b, %b) {} : (!llvm.ptr<3>, !llvm.ptr<3>) -> ()'
)
TEXTS = {
    "nvvm.cp.async.shared.global": [
        "nvvm.cp.async.shared.global %b, %g, 16, cache = cg : !llvm.ptr<3>, !llvm.ptr<1>"
    ],
    "nvvm.cp.async.commit.group": ["nvvm.cp.async.commit.group"],
    "nvvm.cp.async.wait.group": ["nvvm.cp.async.wait.group 0"],
    "nvvm.cp.async.mbarrier.arrive": [
        "nvvm.cp.async.mbarrier.arrive %b {noinc = true} : !llvm.ptr<3>"
    ],
    "nvvm.cp.async.bulk.commit.group": ["nvvm.cp.async.bulk.commit.group"],
    "nvvm.cp.async.bulk.wait_group": ["nvvm.cp.async.bulk.wait_group 0"],
    "nvvm.cp.async.bulk.shared.cluster.global": [
        "nvvm.cp.async.bulk.shared.cluster.global %d, %g, %b, %c : !llvm.ptr<7>, !llvm.ptr<1>"
    ],
    "nvvm.cp.async.bulk.global.shared.cta": [
        "nvvm.cp.async.bulk.global.shared.cta %g, %b, %c : !llvm.ptr<1>, !llvm.ptr<3>"
    ],
    "nvvm.cp.async.bulk.tensor.shared.cluster.global": [
        "nvvm.cp.async.bulk.tensor.shared.cluster.global %d, %p, %b, box[%c]"
        " {group = #nvvm.cta_group<cta_2>} : !llvm.ptr<7>, !llvm.ptr",
        "nvvm.cp.async.bulk.tensor.shared.cluster.global %d, %p, %b, box[%c, %c, %c, %c, %c]"
        " {isCTAOnly = false, mode = #nvvm.tma_load_mode<tile_gather4>} : !llvm.ptr<7>, !llvm.ptr",
        "nvvm.cp.async.bulk.tensor.shared.cluster.global %b, %p, %b, box[%c, %c, %c, %c, %c]"
        " {isCTAOnly = true, mode = #nvvm.tma_load_mode<tile_gather4>} : !llvm.ptr<3>, !llvm.ptr",
        "nvvm.cp.async.bulk.tensor.shared.cluster.global %d, %p, %b, box[%c]"
        " : !llvm.ptr<7>, !llvm.ptr",
    ],
    "nvvm.cp.async.bulk.tensor.global.shared.cta": [
        "nvvm.cp.async.bulk.tensor.global.shared.cta %p, %b, box[%c, %c, %c, %c, %c]"
        " {mode = #nvvm.tma_store_mode<tile_scatter4>} : !llvm.ptr, !llvm.ptr<3>",
        "nvvm.cp.async.bulk.tensor.global.shared.cta %p, %b, box[%c] : !llvm.ptr, !llvm.ptr<3>",
    ],
    "nvvm.cp.async.bulk.tensor.reduce": [
        "nvvm.cp.async.bulk.tensor.reduce %p, %b, box[%c]"
        " {redKind = #nvvm.tma_redux_kind<add>} : !llvm.ptr, !llvm.ptr<3>"
    ],
    "nvvm.mbarrier.init": ["nvvm.mbarrier.init %b, %c : !llvm.ptr<3>, i32"],
    "nvvm.mbarrier.arrive": [
        '"nvvm.mbarrier.arrive"(%d) {scope = #nvvm.mem_scope<cluster>} : (!llvm.ptr<7>) -> ()',
        "%a = nvvm.mbarrier.arrive %b : !llvm.ptr<3> -> i64",
    ],
    "nvvm.mbarrier.expect_tx": ['"nvvm.mbarrier.expect_tx"(%b, %c) : (!llvm.ptr<3>, i32) -> ()'],
    "nvvm.mbarrier.arrive.expect_tx": [
        '"nvvm.mbarrier.arrive.expect_tx"(%b, %c) : (!llvm.ptr<3>, i32) -> ()'
    ],
    "nvvm.mbarrier.try_wait": ['%w = "nvvm.mbarrier.try_wait"(%b, %c) : (!llvm.ptr<3>, i32) -> i1'],
    "nvvm.mbarrier.try_wait.parity": [
        '"nvvm.mbarrier.try_wait.parity"(%b, %c, %c) : (!llvm.ptr<3>, i32, i32) -> ()'
    ],
    "nvvm.fence.proxy": ["nvvm.fence.proxy {kind = #nvvm.proxy_kind<async>}"],
    "nvvm.memory.barrier": ["nvvm.memory.barrier #nvvm.mem_scope<cluster>"],
    "nvvm.cluster.arrive": ["nvvm.cluster.arrive {aligned}"],
    "nvvm.cluster.arrive.relaxed": ["nvvm.cluster.arrive.relaxed {aligned}"],
    "nvvm.cluster.wait": ["nvvm.cluster.wait {aligned}"],
    "nvvm.mapa": ["%q = nvvm.mapa %b, %c : !llvm.ptr<3> -> !llvm.ptr<7>"],
    "nvvm.griddepcontrol": ["nvvm.griddepcontrol wait"],
    "nvvm.setmaxregister": ["nvvm.setmaxregister increase 40"],
    "nvvm.clusterlaunchcontrol.try.cancel": [
        LAUNCH_CONTROL.format("{multicast}"),
        LAUNCH_CONTROL.format(""),
    ],
    "nvvm.prefetch": ["nvvm.prefetch tensormap, %p : !llvm.ptr"],
    "nvvm.redux.sync": [
        "%r = nvvm.redux.sync fmax %f, %c : f32 -> f32",
        "%r = nvvm.redux.sync add %c, %c : i32 -> i32",
    ],
    "nvvm.mma.block_scale": [MMA_BLOCK_SCALE],
    "nvvm.tcgen05.mma": [TCGEN05_MMA.format("i8"), TCGEN05_MMA.format("f16")],
    "nvvm.tcgen05.mma.block_scale": [
        TCGEN05_BLOCK_SCALE.format(", cute.k96"),
        TCGEN05_BLOCK_SCALE.format(""),
    ],
    "nvvm.tcgen05.mma.sp": [TCGEN05_SPARSE.format("i8"), TCGEN05_SPARSE.format("f16")],
    "nvvm.tcgen05.shift": ["nvvm.tcgen05.shift %t : !llvm.ptr<6>"],
    "nvvm.read.ptx.sreg.clusterid.x": ["%s = nvvm.read.ptx.sreg.clusterid.x : i32"],
    "nvvm.read.ptx.sreg.cluster.ctarank": ["%s = nvvm.read.ptx.sreg.cluster.ctarank : i32"],
}
ROWS = [(name, i) for name, texts in TEXTS.items() for i in range(len(texts))]


def test_every_row_has_a_text():
    assert {name: len(rows) for name, rows in INSTRUCTIONS.items()} == {
        name: len(texts) for name, texts in TEXTS.items() if name in INSTRUCTIONS
    }


@pytest.mark.parametrize(("name", "row"), ROWS)
def test_targets_without_it_say_so_and_those_with_it_compile(lowering, name, row):
    needs = instruction_requirements(name)[row]
    body = PREAMBLE + TEXTS[name][row]
    without = [target for target in GPUS if not needs.is_met_by(target)]
    assert without and len(without) < len(GPUS)
    for target in without:
        with pytest.raises(DSLTypeError, match=f"^{target.name} has no {needs.feature}: "):
            lowering.ptx(body, target.name, arguments="")
    for target in GPUS:
        if needs.is_met_by(target):
            assert ".entry k(" in lowering.ptx(body, target.name, arguments="")


MBARRIERS = """
%e = nvvm.elect.sync -> i1
scf.if %e {
  nvvm.mbarrier.init %b, %c : !llvm.ptr<3>, i32
}
nvvm.fence.mbarrier.init
nvvm.barrier
%w = "nvvm.mbarrier.try_wait"(%b, %c) : (!llvm.ptr<3>, i32) -> i1
scf.if %w {
  %a = nvvm.mbarrier.arrive %b : !llvm.ptr<3> -> i64
}
"nvvm.mbarrier.try_wait.parity"(%b, %c, %c) : (!llvm.ptr<3>, i32, i32) -> ()
"nvvm.mbarrier.try_wait.parity"(%b, %c, %c) : (!llvm.ptr<3>, i32, i32) -> ()
"""


def test_mbarriers_before_hopper(lowering):
    ours = ["mbarrier.try_wait", "elect.sync", "fence.mbarrier_init"]
    text = lowering.ptx(PREAMBLE + MBARRIERS, "sm_90", arguments="")
    assert all(name in text for name in ours)
    for target in ("sm_80", "sm_89"):
        text = lowering.ptx(PREAMBLE + MBARRIERS, target, arguments="")
        assert not any(name in text for name in ours)
        assert text.count("mbarrier.test_wait.parity.shared.b64") == 3 and "%laneid" in text
        if ptxas.find_ptxas() is not None:
            assert ptxas.start(text, target).finish().cubin


@cute.jit
def of_clusters(x: cute.Tensor, blocks: cute.Constexpr):
    in_a_cluster(x).launch(grid=4, block=32, cluster=(blocks, 1, 1))


@cute.kernel
def in_a_cluster(x: cute.Tensor):
    x[0] = 1.0


def test_a_cluster_of_several_blocks():
    x = np.zeros(4, np.float32)
    with pytest.raises(DSLTypeError, match="sm_80 has no cluster of several blocks: sm_90 and la"):
        cute.compile(of_clusters, x, 2, options="--arch sm_80")
    assert "sm_80" in cute.compile(of_clusters, x, 1, options="--arch sm_80").stages.text("ptx")
    text = cute.compile(of_clusters, x, 2, options="--arch sm_90").stages.text("ptx")
    assert ".reqnctapercluster 2" in text


@cute.kernel
def in_a_callee(x: cute.Tensor):
    helper()


def helper():
    cute.arch.cluster_arrive()


@cute.jit
def host(x: cute.Tensor):
    in_a_callee(x).launch(grid=1, block=32)


def test_the_message_is_at_the_line_and_has_the_calls():
    with pytest.raises(DSLTypeError) as caught:
        cute.compile(host, np.zeros(4, np.float32), options="--arch sm_80")
    error = caught.value
    assert error.span.source_line.strip() == "cute.arch.cluster_arrive()"
    assert [note for note, _ in error.calls] == ["called from in_a_callee()"]
    assert error.calls[0][1].source_line.strip() == "helper()"


UNKNOWN = 'llvm.call_intrinsic "llvm.nvvm.barrier.cluster.arrive"() : () -> ()'


def test_what_llvm_gives_up_on_is_an_error(lowering):
    for _ in range(2):
        with pytest.raises(
            DSLError, match="LLVM cannot compile this kernel for sm_80: Cannot select"
        ):
            lowering.ptx(UNKNOWN, "sm_80")
    assert "barrier.cluster.arrive" in lowering.ptx(UNKNOWN, "sm_90")


def test_python_ends_as_usual_after_llvm_gave_up():
    program = f"""
import sys
sys.path.insert(0, {str(__file__.rpartition("/")[0])!r})
from conftest import Lowering
from basedsl import DSLError
from basedsl.mlir import MLIRContext, load_bindings
from basedsl_cute import dialect
lowering = Lowering(MLIRContext(load_bindings(), dialect.load))
try:
    lowering.ptx({UNKNOWN!r}, "sm_80")
except DSLError as error:
    print("raised")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=100
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "raised\n", "")


def test_other_errors_and_results_of_the_thread_come_through(lowering):
    bindings = lowering.context.bindings
    assert catching_fatal_errors(bindings, lambda: 7) == 7
    assert (
        catching_fatal_errors(bindings, threading.current_thread) is not threading.current_thread()
    )
    with pytest.raises(ZeroDivisionError):
        catching_fatal_errors(bindings, lambda: 1 // 0)
    assert not issubclass(LLVMFatalError, DSLError)


def test_host_code_that_launches_nothing_compiles_for_a_gpu():
    @cute.jit
    def add(a: cute.Int32, b: cute.Int32):
        return a + b

    compiled = cute.compile(add, 1, 2, options="--arch sm_90a")
    assert compiled.stages.text("ptx") == ""
