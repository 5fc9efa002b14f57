"""Arithmetic on pairs of Float32: values, and one instruction of PTX where the target has it."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLError, DSLTypeError
from basedsl_cute import arch
from basedsl_cute._mlir.dialects import nvvm
from basedsl_cute.lowering.ptx import ptxas
from basedsl_cute.runtime import from_dlpack


@cute.kernel
def each(x: cute.Tensor, y: cute.Tensor):
    t, _, _ = arch.thread_idx()
    a, b, c = ((x[t, 2 * i], x[t, 2 * i + 1]) for i in cute.range_constexpr(3))
    found = (
        arch.add_packed_f32x2(a, b),
        arch.sub_packed_f32x2(a, b),
        arch.mul_packed_f32x2(a, b),
        arch.fma_packed_f32x2(a, b, c),
    )
    for i in cute.range_constexpr(4):
        for j in cute.range_constexpr(2):
            y[t, 2 * i + j] = found[i][j]


def compile_each(target):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((32, 6)).astype(np.float32)
    y = np.zeros((32, 8), np.float32)

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor):
        each(x, y).launch(grid=(1, 1, 1), block=(32, 1, 1))

    args = [from_dlpack(a) for a in (x, y)]
    return cute.compile(host, *args, options=f"--arch {target}"), args, x, y


def test_values():
    compiled, args, x, y = compile_each("sim")
    compiled(*args)
    a, b, c = x[:, :2], x[:, 2:4], x[:, 4:]
    fused = (a.astype(float) * b.astype(float) + c.astype(float)).astype(np.float32)
    np.testing.assert_array_equal(y, np.concatenate([a + b, a - b, a * b, fused], 1))


@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="there is no ptxas")
@pytest.mark.parametrize(("target", "count"), [("sm_100a", 1), ("sm_120a", 1), ("sm_90a", 0)])
def test_one_instruction_where_there_is_one(target, count):
    compiled, *_ = compile_each(target)
    text = compiled.stages.text("ptx")
    assert text.count("fma.rn.f32x2") == count
    assert text.count("fma.rn.f32 ") == 2 * (1 - count)
    assert compiled.__cubin__


@cute.kernel
def directed(x: cute.Tensor, y: cute.Tensor, rnd: cute.Constexpr, ftz: cute.Constexpr):
    t, _, _ = arch.thread_idx()
    a, b, c = ((x[t, 2 * i], x[t, 2 * i + 1]) for i in cute.range_constexpr(3))
    y[t, 0], y[t, 1] = arch.add_packed_f32x2(a, b, rnd=rnd, ftz=ftz)
    y[t, 2], y[t, 3] = arch.sub_packed_f32x2(a, b, rnd=rnd, ftz=ftz)
    y[t, 4], y[t, 5] = arch.mul_packed_f32x2(a, b, rnd=rnd, ftz=ftz)
    y[t, 6], y[t, 7] = arch.fma_packed_f32x2(a, b, c, rnd=rnd, ftz=ftz)


def compile_directed(target, rnd, ftz=False):
    x = np.random.default_rng(0).standard_normal((32, 6)).astype(np.float32)
    y = np.zeros((32, 8), np.float32)

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor):
        directed(x, y, rnd, ftz).launch(grid=(1, 1, 1), block=(32, 1, 1))

    args = [from_dlpack(a) for a in (x, y)]
    return cute.compile(host, *args, options=f"--arch {target}"), args, x, y


@pytest.mark.parametrize(("rnd", "side"), [("rm", -1), (nvvm.RoundingModeKind.RP, 1)])
def test_rounding_in_a_direction(rnd, side):
    compiled, args, x, y = compile_directed("sim", rnd)
    compiled(*args)
    a, b, c = (x[:, i : i + 2].astype(float) for i in (0, 2, 4))
    exact = np.concatenate([a + b, a - b, a * b, a * b + c], 1)
    assert (side * (y - exact) >= -1e-12).all()  # float64 rounds, too
    np.testing.assert_array_less(np.abs(y - exact), np.spacing(np.abs(y)) + 1e-12)
    assert (y.astype(float) != exact.astype(np.float32)).any()


@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="there is no ptxas")
def test_ptxas_takes_directions():
    compiled, *_ = compile_directed("sm_100a", nvvm.FPRoundingMode.RZ, True)
    assert compiled.stages.text("ptx").count("fma.rz.ftz.f32 ") == 2
    assert compiled.__cubin__


def test_a_rounding_that_there_is_not():
    with pytest.raises(DSLTypeError, match=r"add_packed_f32x2.. rounds by .* not nearest"):
        compile_directed("sim", "nearest")


@cute.kernel
def built(y: cute.Tensor, rnd: cute.Constexpr):
    pair = cute.make_tensor(y.iterator, 2).load()
    sums = cute.TensorSSA(nvvm.add_packed_f32x2(pair, pair, rnd=rnd), 2, cute.Float32)
    cute.make_tensor(y.iterator, 2).store(sums)


def test_a_builder_of_mlir_does_not_drop_its_rounding():
    y = np.float32([1, 2])

    @cute.jit
    def host(y: cute.Tensor, rnd: cute.Constexpr):
        built(y, rnd).launch(grid=(1, 1, 1), block=(1, 1, 1))

    tensor = from_dlpack(y)
    cute.compile(host, tensor, nvvm.RoundingModeKind.RN, options="--arch sim")(tensor)
    np.testing.assert_array_equal(y, [2, 4])
    with pytest.raises(DSLError, match=r"nvvm.add_packed_f32x2.. rounds to nearest, not by rm"):
        cute.compile(host, tensor, nvvm.RoundingModeKind.RM, options="--arch sim")
