"""Arithmetic on pairs of Float32: values, and one instruction of PTX where the target has it."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute import arch
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
