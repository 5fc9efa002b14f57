# ruff: noqa: E501 - lines of IR
"""Each memory-bound example in the IR that a person reads, and in PTX: the accesses with
their width and memory, exchanges and barriers in order, and no division where layouts are static.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.testing.filecheck import filecheck
from basedsl_cute.runtime import from_dlpack

sys.path.insert(0, str(Path(__file__).parents[3] / "examples" / "cute"))

import elementwise
import gather_scatter
import normalization
import row_reduction
import softmax
import transpose

F16, F32, I64 = np.float16, np.float32, np.int64


def static(shape, dtype=F32):
    return from_dlpack(np.zeros(shape, dtype), assumed_align=16)


def add_mul(a, b, c, d):
    elementwise.elementwise_apply(lambda x, y, z: x * y + z, (a, b, c), d)


# name -> function, arguments, checks of the `cute` stage, checks of the `ptx` stage, how often
# instructions occur in PTX.
KERNELS = {
    "elementwise_add": (
        elementwise.elementwise_add,
        [static((512, 1024))] * 3,
        """
        CHECK: gpu.func @elementwise_kernel(%arg0: !cute.memref<f32, "gmem align<16>", "((16,128),(32,8)):((1024,1),(16384,128))">
        CHECK-SAME: known_block_size = array<i32: 128, 1, 1>
        CHECK: "cute.view"(%arg0, %{{.*}}) : {{.*}} -> !cute.memref<f32, "gmem align<16>", "(16,128):(1024,1)">
        CHECK: "cute.alloc_rmem"() {bytes = 64 : i64} : () -> !cute.memref<f32, "rmem align<16>", "((1,(4,4)),1,1):((0,(1,4)),0,0)">
        CHECK: "cute.load"(%{{.*}}, %{{.*}}) {alignment = 16 : i64} : (!cute.memref<f32, "gmem align<16>", "((1,(4,4)),1,1):((0,(1,1024)),0,0)">, i32) -> vector<4xf32>
        CHECK: arith.addf %{{.*}}, %{{.*}} : vector<16xf32>
        CHECK: "cute.store"(%{{.*}}, %{{.*}}, %{{.*}}) {alignment = 16 : i64} : (vector<4xf32>, !cute.memref<f32, "gmem
        CHECK: gpu.launch_func @kernels::@elementwise_kernel
        """,
        """
        CHECK: .entry elementwise_kernel
        CHECK: .reqntid 128, 1, 1
        CHECK-COUNT-8: ld.global.v4.b32
        CHECK: add.rn.f32
        CHECK-COUNT-4: st.global.v4.b32
        CHECK-NEXT: ret;
        """,
        {"ld.": 3 + 8, "st.": 4, "bar.sync": 0},
    ),
    "elementwise_apply": (
        cute.jit(add_mul),
        [static((512, 1024))] * 4,
        """
        CHECK: gpu.func @elementwise_kernel
        CHECK: math.fma %{{.*}}, %{{.*}}, %{{.*}} : vector<16xf32>
        """,
        """
        CHECK-COUNT-12: ld.global.v4.b32
        CHECK: fma.rn.f32
        CHECK-COUNT-4: st.global.v4.b32
        """,
        {"ld.": 4 + 12, "st.": 4, "fma.rn.f32": 16, "mul.rn.f32": 0, "add.rn.f32": 0},
    ),
    "transpose": (
        transpose.transpose,
        [static((128, 256)), static((256, 128))],
        """
        CHECK: "cute.alloc_smem"() {bytes = 16384 : i64
        CHECK: "cute.copy"({{.*}}) {atom = "universal", bits = 128 : i64} : (!cute.memref<f32, "gmem align<16>", "4:1">, !cute.memref<f32, "rmem align<16>", "4:1">)
        CHECK: "cute.store"({{.*}}) {alignment = 16 : i64} : (vector<4xf32>, !cute.memref<f32, "smem align<
        CHECK: "cute.barrier"()
        CHECK: "cute.copy"({{.*}}) {atom = "universal", bits = 128 : i64} : (!cute.memref<f32, "smem align<16>", "4:1">, !cute.memref<f32, "rmem align<16>", "4:1">)
        CHECK: "cute.copy"({{.*}}) {atom = "universal", bits = 128 : i64} : (!cute.memref<f32, "rmem align<16>", "4:1">, !cute.memref<f32, "gmem align<16>", "4:1">)
        """,
        """
        CHECK-COUNT-4: ld.global.v4.b32
        CHECK: st.shared.v4.b32
        CHECK: bar.sync 0;
        CHECK-COUNT-4: ld.shared.v4.b32
        CHECK: st.global.v4.b32
        """,
        {"ld.global": 4, "st.shared": 4, "ld.shared": 4, "st.global": 4, "bar.sync": 1},
    ),
    "row_sum": (
        row_reduction.row_sum,
        [static((8, 1024)), static((8,))],
        """
        CHECK: "cute.copy"({{.*}}) {atom = "universal", bits = 128 : i64} : (!cute.memref<f32, "gmem align<16>"
        CHECK: vector.shuffle %{{.*}}, %{{.*}} [8, 9, 10, 11, 12, 13, 14, 15]
        CHECK-COUNT-5: nvvm.shfl.sync bfly
        CHECK: "cute.barrier"()
        CHECK: "cute.store"(%{{.*}}, %{{.*}}, %{{.*}}) : (f32, !cute.memref<f32, "gmem
        """,
        """
        CHECK-COUNT-4: ld.global.v4.b32
        CHECK-COUNT-5: shfl.sync.bfly.b32
        CHECK: st.shared.b32
        CHECK: bar.sync 0;
        CHECK: ld.shared.v2.b32
        CHECK: st.global.b32
        """,
        {"ld.global": 4, "st.global": 1, "shfl.sync": 5},
    ),
    "softmax": (
        softmax.softmax,
        [static((8, 1024)), static((8, 1024))],
        """
        CHECK: "cute.copy"({{.*}}) {atom = "universal", bits = 128 : i64}
        CHECK-COUNT-5: nvvm.shfl.sync bfly
        CHECK: "cute.barrier"()
        CHECK: math.exp2
        CHECK-COUNT-5: nvvm.shfl.sync bfly
        CHECK: "cute.barrier"()
        CHECK: "cute.copy"({{.*}}) {atom = "universal", bits = 128 : i64}
        """,
        """
        CHECK-COUNT-4: ld.global.v4.b32
        CHECK: max.f32
        CHECK-COUNT-5: shfl.sync.bfly.b32
        CHECK: bar.sync 0;
        CHECK-COUNT-16: ex2.approx.ftz.f32
        CHECK-COUNT-5: shfl.sync.bfly.b32
        CHECK: bar.sync 0;
        CHECK-COUNT-4: st.global.v4.b32
        """,
        {"ld.global": 4, "st.global": 4, "bar.sync": 2, "rcp.rn.f32": 1},
    ),
    "rms_norm": (
        normalization.rms_norm,
        [static((8, 1024), F16), static((1024,), F16), static((8, 1024), F16), 1e-5],
        """
        CHECK: "cute.copy"({{.*}}) {atom = "universal", bits = 128 : i64} : (!cute.memref<f16, "gmem align<16>", "8:1">
        CHECK: arith.extf %{{.*}} : vector<{{.*}}xf16> to vector<{{.*}}xf32>
        CHECK: nvvm.shfl.sync bfly
        CHECK: math.rsqrt
        CHECK: arith.truncf %{{.*}} : vector<{{.*}}xf32> to vector<{{.*}}xf16>
        """,
        """
        CHECK: ld.global.v4.b32
        CHECK: cvt.f32.f16
        CHECK-COUNT-5: shfl.sync.bfly.b32
        CHECK: rsqrt.approx.f32
        CHECK: cvt.rn.f16x2.f32
        CHECK: st.global.v4.b32
        """,
        {"ld.global": 8, "ld.global.v4.b32": 8, "st.global.v4.b32": 4, "rsqrt.approx": 1},
    ),
    "layer_norm": (
        normalization.layer_norm,
        [static((8, 1024)), static((1024,)), static((1024,)), static((8, 1024)), 1e-5],
        """
        CHECK: "cute.copy"({{.*}}) {atom = "universal", bits = 128 : i64}
        CHECK-COUNT-5: nvvm.shfl.sync bfly
        CHECK: "cute.barrier"()
        CHECK-COUNT-5: nvvm.shfl.sync bfly
        CHECK: "cute.barrier"()
        CHECK: math.rsqrt
        """,
        """
        CHECK: ld.global.v4.b32
        CHECK-COUNT-10: shfl.sync.bfly.b32
        CHECK: rsqrt.approx.f32
        CHECK-COUNT-4: st.global.v4.b32
        """,
        {"ld.global": 12, "st.global": 4, "bar.sync": 2, "rsqrt.approx": 1},
    ),
    "gather": (
        gather_scatter.gather,
        [static((64, 512), F16), static((64,), I64), static((64, 512), F16)],
        """
        CHECK: "cute.load"(%{{.*}}, %{{.*}}) : (!cute.memref<i64, "gmem align<16>", "(64):(1)">, i32) -> i64
        CHECK: arith.muli %{{.*}} : i64
        CHECK: "cute.copy"({{.*}}) {atom = "universal", bits = 128 : i64} : (!cute.memref<f16, "gmem align<16>", "8:1">
        """,
        """
        CHECK: ld.global.b64
        CHECK: ld.global.v4.b32
        CHECK: st.global.v4.b32
        """,
        {"ld.global.b64": 1},
    ),
    "scatter": (
        gather_scatter.scatter,
        [static((64, 512), F16), static((64,), I64), static((64, 512), F16)],
        """
        CHECK: "cute.load"(%{{.*}}, %{{.*}}) : (!cute.memref<i64, "gmem align<16>", "(64):(1)">, i32) -> i64
        CHECK: "cute.copy"({{.*}}) {atom = "universal", bits = 128 : i64} : (!cute.memref<f16, "rmem align<16>", "8:1">, !cute.memref<f16, "gmem align<16>", "8:1">
        """,
        """
        CHECK: ld.global.b64
        CHECK: ld.global.v4.b32
        CHECK: st.global.v4.b32
        """,
        {"ld.global.b64": 1},
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def compiled():
    kept = {}

    def get(name):
        if name not in kept:
            function, args, *_ = KERNELS[name]
            kept[name] = cute.compile(function, *args, options="--arch sm_90a")
        return kept[name]

    return get


@pytest.mark.parametrize("name", KERNELS)
def test_as_a_person_reads_it(compiled, name):
    filecheck(compiled(name).__mlir__, KERNELS[name][2])


@pytest.mark.parametrize("name", KERNELS)
def test_as_ptx(compiled, name):
    text = compiled(name).stages.text("ptx")
    filecheck(text, KERNELS[name][3])
    instructions = re.findall(r"^\s+(?:@!?%p\d+ )?([a-z][\w.:]+)", text, re.MULTILINE)
    for start, count in KERNELS[name][4].items():
        assert sum(i.startswith(start) for i in instructions) == count, (start, instructions)


@pytest.mark.parametrize("name", KERNELS)
def test_static_layouts_leave_no_division(compiled, name):
    text = compiled(name).stages.text("ptx")
    divisions = re.findall(r"\b(?:div|rem)\.[su]\d+", text)
    assert divisions == [] and ".local" not in text


def test_dynamic_extents_divide():  # what the test above would see
    x = np.zeros((100, 300), F32)
    text = cute.compile(elementwise.elementwise_add, x, x, x, options="--arch sm_90a")
    assert re.search(r"\b(?:div|rem)\.[su]\d+", text.stages.text("ptx"))
