"""Reductions and mathematical functions of vectors and numbers."""

import math

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute.runtime import from_dlpack

OPS = {
    "ADD": (cute.ReductionOp.ADD, np.sum, 0),
    "MUL": (cute.ReductionOp.MUL, np.prod, 1),
    "MAX": (cute.ReductionOp.MAX, np.max, -100),
    "MIN": (cute.ReductionOp.MIN, np.min, 100),
}


@cute.kernel
def reduce_kernel(op: cute.Constexpr, init: cute.Constexpr, x: cute.Tensor, outs: tuple):
    v = x.load()
    outs[0][0] = v.reduce(op, init, 0)
    outs[1].store(v.reduce(op, init, reduction_profile=(None, 1)))
    outs[2].store(v.reduce(op, init, reduction_profile=(1, None)))


@cute.jit
def reduce(op: cute.Constexpr, init: cute.Constexpr, x: cute.Tensor, *outs):
    reduce_kernel(op, init, x, outs).launch(grid=(1, 1, 1), block=(1, 1, 1))


@pytest.mark.parametrize("name", OPS)
@pytest.mark.parametrize("dtype", ["i4", "u1", "f4", "f8", "f2"])
def test_reductions(sim, name, dtype):
    op, function, init = OPS[name]
    if dtype == "u1":
        init = max(init, 0)
    x = np.random.default_rng(4).integers(1, 3, (3, 7)).astype(dtype)
    outs = [np.zeros(n, dtype) for n in (1, 3, 7)]
    reduce(op, init, from_dlpack(x), *map(from_dlpack, outs))
    for out, axis in zip(outs, (None, 1, 0), strict=True):
        np.testing.assert_array_equal(out, function(x, axis=axis).astype(dtype))


@cute.kernel
def logic_kernel(x: cute.Tensor, out: cute.Tensor):
    v = x.load()
    out[0] = cute.all_(v > 0)
    out[1] = cute.any_(v > 0)
    out[2] = cute.all_(v > -10)
    out[3] = cute.any_(v > 10)


@cute.jit
def logic(x: cute.Tensor, out: cute.Tensor):
    logic_kernel(x, out).launch(grid=(1, 1, 1), block=(1, 1, 1))


def test_all_and_any(sim):
    out = np.zeros(4, "?")
    logic(from_dlpack(np.array([1, -1, 2], "f4")), from_dlpack(out))
    np.testing.assert_array_equal(out, [False, True, True, False])


@cute.kernel
def math_kernel(f: cute.Constexpr, x: cute.Tensor, out: cute.Tensor, scalar: cute.Tensor):
    out.store(f(x.load()).to(out.element_type))
    scalar[0] = f(x[0]).to(out.element_type)


@cute.jit
def apply_math(f: cute.Constexpr, x: cute.Tensor, out: cute.Tensor, scalar: cute.Tensor):
    math_kernel(f, x, out, scalar).launch(grid=(1, 1, 1), block=(1, 1, 1))


FUNCTIONS = [
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "sin", "cos", "tan", "asin",
    "acos", "atan", "sinh", "cosh", "tanh", "erf", "erfc", "floor", "ceil", "trunc", "cbrt",
]  # fmt: skip
REFERENCE = {
    "cbrt": np.cbrt,
    "exp2": np.exp2,
    "floor": np.floor,
    "ceil": np.ceil,
    "trunc": np.trunc,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function(sim, name):
    x = np.array([0.25, 0.5, 0.75, 0.9], "f4")
    out, scalar = np.zeros(4, "f4"), np.zeros(1, "f4")
    apply_math(getattr(cute.math, name), from_dlpack(x), from_dlpack(out), from_dlpack(scalar))
    reference = REFERENCE.get(name) or np.vectorize(getattr(math, name))
    np.testing.assert_allclose(out, reference(x.astype("f8")), rtol=1e-5, atol=1e-7)
    assert scalar[0] == out[0]


@pytest.mark.parametrize("dtype", ["f2", "f4", "f8"])
def test_types_and_fastmath(sim, dtype):
    x = np.array([0.25, 0.5, 1.5, 2.0], dtype)
    out, scalar = np.zeros(4, dtype), np.zeros(1, dtype)

    def f(v):
        return (
            cute.math.exp(v, fastmath=True)
            + cute.math.rsqrt(v)
            + cute.math.max(v, 1.0)
            + cute.math.min(v, 1.0)
            + cute.math.rcp(v)
            + cute.math.rcp(v, approx=True)
            + cute.math.fma(v, v, v)
            + cute.math.absf(-v)
            + cute.math.pow(v, 2.0)
            + cute.math.atan2(v, v)
            + cute.math.copysign(v, -v)
        )

    apply_math(f, from_dlpack(x), from_dlpack(out), from_dlpack(scalar))
    y = x.astype("f8")
    expected = (
        np.exp(y) + 1 / np.sqrt(y) + np.maximum(y, 1) + np.minimum(y, 1) + 2 / y
        + y * y + y + y + y * y + np.pi / 4 - y
    )  # fmt: skip
    np.testing.assert_allclose(out, expected, rtol=4e-3 if dtype == "f2" else 1e-5)


def test_maximum_of_a_nan_is_the_number(sim):
    x = np.array([np.nan, 1], "f4")
    out, scalar = np.zeros(2, "f4"), np.zeros(1, "f4")
    apply_math(
        lambda v: cute.math.max(v, -5.0), from_dlpack(x), from_dlpack(out), from_dlpack(scalar)
    )
    np.testing.assert_array_equal(out, [-5, 1])


@pytest.mark.parametrize("function, scale", [("exp2", 1.0), ("exp", np.log(2.0))])
def test_fast_exponentials_flush_what_is_below_the_normal_floats(sim, function, scale):
    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor):
        i = cute.arch.thread_idx()[0]
        call = getattr(cute.math, function)
        out[i, 0] = call(x[i], fastmath=True)
        out[i, 1] = call(x[i])
        out[i, 2] = call(x[i].to(cute.Float64), fastmath=True).to(cute.Float32)

    @cute.jit
    def run(x: cute.Tensor, out: cute.Tensor):
        kernel(x, out).launch(grid=1, block=4)

    x = np.array([-125.5, -126.5, -140.0, 0.0], np.float32) * np.float32(scale)
    out = np.zeros((4, 3), np.float32)
    run(x, out)
    assert (out[:, 0] > 0).tolist() == [True, False, False, True]
    assert (out[:, 1:] > 0).all()
