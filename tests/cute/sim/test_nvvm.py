"""NVVM's own arithmetic, and operations that only mean something to hardware."""

from __future__ import annotations

import numpy as np
import pytest

from basedsl_cute.sim import MissingRuleError

RN = "#nvvm.fp_rnd_mode<rn>"


def test_float_arithmetic_with_saturation_and_flushing(elementwise):
    a = np.array([0.25, 0.75, -3.0, 1e-40, np.nan], np.float32)
    lines = f"""
    %sum = "nvvm.addf"(%a, %a) <{{rnd = {RN}, sat = #nvvm.sat_mode<sat>, ftz = false}}>
      : (f32, f32) -> f32
    %ftz = "nvvm.addf"(%a, %a) <{{rnd = {RN}, sat = #nvvm.sat_mode<none>, ftz = true}}>
      : (f32, f32) -> f32
    %fma = "nvvm.fma"(%a, %a, %a) <{{rnd = {RN}, sat = #nvvm.sat_mode<none>, ftz = false,
      oob = false, relu = false}}> : (f32, f32, f32) -> f32
    %ex2 = "nvvm.ex2"(%a) <{{ftz = false}}> : (f32) -> f32
    %rcp = nvvm.rcp.approx.ftz.f %a : f32
    """
    got = elementwise(lines, dict.fromkeys(("sum", "ftz", "fma", "ex2", "rcp"), np.float32), a=a)
    assert got["sum"].tolist() == [0.5, 1.0, 0.0, float(2 * np.float32(1e-40)), 0.0]
    assert got["ftz"].tolist()[:4] == [0.5, 1.5, -6.0, 0.0]
    assert got["fma"].tolist()[:3] == [0.3125, 1.3125, 6.0]
    np.testing.assert_array_equal(got["ex2"], np.exp2(a))
    assert got["rcp"].tolist()[2:4] == [float(np.float32(-1 / 3)), np.inf]


def test_byte_permutation(elementwise, rng):
    a, b, s = rng.integers(-(2**31), 2**31, (3, 100)).astype(np.int32)
    lines = (
        '%r = "nvvm.prmt"(%a, %b, %s) <{mode = #nvvm.permute_mode<default>}> : '
        "(i32, i32, i32) -> i32"
    )
    got = elementwise(lines, {"r": np.int32}, a=a, b=b, s=s)["r"]
    for x, y, selector, z in zip(a, b, s, got, strict=True):
        pair = x.tobytes() + y.tobytes()
        out = bytearray()
        for i in range(4):
            nibble = (int(selector) >> (4 * i)) & 15
            byte = pair[nibble & 7]
            out.append((255 if byte & 128 else 0) if nibble & 8 else byte)
        assert z.tobytes() == bytes(out)


def test_hints_do_nothing(kernel):
    body = """
    %t = arith.constant 100 : i32
    "nvvm.nanosleep"(%t) : (i32) -> ()
    nvvm.memory.barrier #nvvm.mem_scope<gpu>
    nvvm.fence.mbarrier.init
    llvm.fence acq_rel
    %c = nvvm.read.ptx.sreg.clock64 : i64
    %d = nvvm.read.ptx.sreg.clock64 : i64
    %e = arith.subi %d, %c : i64
    llvm.store %e, %out : i64, !llvm.ptr<1>
    """
    (out,) = kernel("%out: !llvm.ptr<1>", body)(1, 1, np.zeros(1, np.int64))
    assert out[0] > 0


def test_dimensions_and_special_registers(kernel):
    names = {
        "nvvm.read.ptx.sreg.ntid.y : i32": 3,
        "nvvm.read.ptx.sreg.nctaid.x : i32": 4,
        "nvvm.read.ptx.sreg.warpsize : i32": 32,
        "nvvm.read.ptx.sreg.nwarpid : i32": 1,
        "nvvm.read.ptx.sreg.cluster.nctaid.x : i32": 1,
        "nvvm.read.ptx.sreg.dynamic.smem.size : i32": 48,
        "nvvm.read.ptx.sreg.total.smem.size : i32": 48,
    }
    body = ""
    for i, name in enumerate(names):
        body += f"\n%v{i} = {name}\n%p{i} = llvm.getelementptr %out[{i}] : (!llvm.ptr<1>) -> "
        body += f"!llvm.ptr<1>, i32\nllvm.store %v{i}, %p{i} : i32, !llvm.ptr<1>"
    indices = {"gpu.grid_dim z": 2, "gpu.block_dim x": 2, "gpu.num_subgroups : index": 1}
    for i, name in enumerate(indices, len(names)):
        body += f"\n%i{i} = {name}\n%v{i} = arith.index_cast %i{i} : index to i32"
        body += f"\n%p{i} = llvm.getelementptr %out[{i}] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32"
        body += f"\nllvm.store %v{i}, %p{i} : i32, !llvm.ptr<1>"
    outside = (
        "llvm.mlir.global external @dyn() {addr_space = 3 : i32, alignment = 16 : i64}"
        " : !llvm.array<0 x i8>"
    )
    k = kernel("%out: !llvm.ptr<1>", body, outside)
    (out,) = k((4, 5, 2), (2, 3), np.zeros(10, np.int32), smem=48)
    assert out.tolist() == [*names.values(), *indices.values()]


def test_global_ids_in_three_dimensions(kernel):
    body = """
    %x = gpu.global_id x
    %y = gpu.global_id y
    %z = gpu.global_id z
    %c6 = arith.constant 6 : index
    %c4 = arith.constant 4 : index
    %a = arith.muli %z, %c4 : index
    %b = arith.addi %a, %y : index
    %c = arith.muli %b, %c6 : index
    %d = arith.addi %c, %x : index
    %i = arith.index_cast %d : index to i64
    %p = llvm.getelementptr %out[%i] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i64
    llvm.store %i, %p : i64, !llvm.ptr<1>
    """
    k = kernel("%out: !llvm.ptr<1>", body)
    (out,) = k((2, 2, 3), (3, 2, 1), np.full(72, -1, np.int64))
    assert out.tolist() == list(range(72))


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (f'"nvvm.addf"(%f, %f) <{{rnd = {RN[:-3]}rp>}}> : (f32, f32) -> f32', "rounding mode rp"),
        ("llvm.call @other() : () -> ()", "to the external function 'other'"),
    ],
)
def test_errors_name_the_form_that_has_no_rule(kernel, line, what):
    body = f"\n%f = arith.constant 1.0 : f32\n{'%r = ' * ('nvvm' in line)}{line}"
    with pytest.raises(MissingRuleError, match=what):
        kernel("", body, "llvm.func @other()")
