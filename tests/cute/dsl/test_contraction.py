"""Contraction: a * b + c in kernels rounds once, or twice with the option off, on every target."""

import math
from fractions import Fraction

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.runtime import from_dlpack, make_fake_compact_tensor

EXACT = "--contract=false"


@cute.kernel
def sums(x: cute.Tensor, out: cute.Tensor):
    i = arch.thread_idx()[0]
    a, b, c = x[i, 0], x[i, 1], x[i, 2]
    out[i, 0] = a * b + c
    out[i, 1] = c + a * b
    out[i, 2] = a * b - c
    out[i, 3] = c - a * b
    product = a * b
    out[i, 4] = product + c * a
    out[i, 5] = product
    v = x[i, None].load()
    out[i, 6] = (v * v + 1.5 * v)[1]
    pair = arch.add_packed_f32x2(arch.mul_packed_f32x2((a, b), (b, c)), (c, a))
    out[i, 7] = pair[0].to(x.element_type)
    out[i, 8] = arch.sub_packed_f32x2((a, b), (c, a))[0].to(x.element_type)


@cute.jit
def run(x: cute.Tensor, out: cute.Tensor):
    sums(x, out).launch(grid=1, block=32)


def expected(x, fused):
    """The columns of `sums`, in float64, from whose results the type of `x` rounds correctly."""
    kind, wide = x.dtype.type, np.float64

    def times(a, b):
        return (a * b).astype(kind)

    def fma(a, b, c):
        if not fused:
            return times(a, b) + c
        if kind is np.float64:
            return np.array([rounded_once(*map(float, row)) for row in zip(a, b, c, strict=True)])
        return (wide(a) * wide(b) + wide(c)).astype(kind)

    a, b, c = x.T
    return [
        fma(a, b, c),
        fma(a, b, c),
        fma(a, b, -c),
        fma(-a, b, c),
        fma(a, b, times(c, a)),
        times(a, b),
        fma(b, b, times(kind(1.5), b)),
        (np.float32(a) * np.float32(b) + np.float32(c)).astype(kind),
        (np.float32(a) - np.float32(c)).astype(kind),
    ]


def rounded_once(a, b, c):
    return float(Fraction(a) * Fraction(b) + Fraction(c))


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("options", ["", EXACT])
def test_the_simulator_follows_the_option(sim, kind, options):
    x = np.random.default_rng(7).standard_normal((32, 3)).astype(kind)
    out = np.zeros((32, 9), kind)
    cute.compile(run, from_dlpack(x), from_dlpack(out), options=options)(x, out)
    for column, want in enumerate(expected(x, fused=not options)):
        np.testing.assert_array_equal(out[:, column].astype(np.float32), np.float32(want))
    assert any((p != q).any() for p, q in zip(expected(x, True), expected(x, False), strict=True))


def ptx_of(options, dtype=cute.Float32):
    fake = make_fake_compact_tensor(dtype, (32, 9)), make_fake_compact_tensor(dtype, (32, 9))
    return cute.compile(run, *fake, options=f"--gpu-arch sm_90a {options}").__ptx__


@pytest.mark.parametrize("dtype", [cute.Float16, cute.BFloat16, cute.Float32, cute.Float64])
def test_ptx_follows_the_option(dtype):
    fused, exact = ptx_of("", dtype), ptx_of(EXACT, dtype)
    kind = {"Float16": "f16", "BFloat16": "bf16", "Float32": "f32", "Float64": "f64"}
    suffix = kind[dtype.__name__]
    assert fused.count(f"fma.rn.{suffix}") >= 5
    assert f"fma.rn.{suffix}" not in exact or suffix == "bf16"


def test_host_code_rounds_twice():
    @cute.jit
    def host(a: cute.Float64, b: cute.Float64, c: cute.Float64):
        return a * b + c

    a, b = 1 + 2.0**-30, 1 - 2.0**-30
    assert host(a, b, -1.0) == a * b - 1.0 == 0.0


def test_floor_division_of_a_product_takes_it_rounded(sim):
    @cute.kernel
    def quotients(out: cute.Tensor, a: cute.Float64, b: cute.Float64, c: cute.Float64):
        out[0], out[1] = (a * b) // c, (a * b) % c

    @cute.jit
    def host(out: cute.Tensor, a: cute.Float64, b: cute.Float64, c: cute.Float64):
        quotients(out, a, b, c).launch(grid=1, block=1)

    out = np.zeros(2)
    a, b, c = 3.3, 7.7, 0.1
    host(out, a, b, c)
    assert out.tolist() == [a * b // c, a * b % c] and not math.isnan(out[0])


@cute.jit
def decorated(a, b, c):
    return a * b + c


def undecorated(a, b, c):
    return a * b + c


@cute.kernel
def everywhere(x: cute.Tensor, out: cute.Tensor):
    i = arch.thread_idx()[0]
    a, b, c = x[i, 0], x[i, 1], x[i, 2]
    out[i, 0], out[i, 1] = decorated(a, b, c), undecorated(a, b, c)
    out[i, 2] = (lambda product: product + c)(a * b)
    total = cute.Float32(0.0)
    for k in range(3):
        total += x[i, k] * x[i, k]
    out[i, 3] = total
    registers = cute.make_rmem_tensor((3,), cute.Float32)
    registers.store(x[i, None].load())
    total = cute.Float32(0.0)
    for k in cute.range_constexpr(3):
        total = total + registers[k] * registers[(k + 1) % 3]
    out[i, 4] = total
    value = a * b
    if i > 3:
        value = value + c
    out[i, 5] = value


@cute.jit
def run_everywhere(x: cute.Tensor, out: cute.Tensor):
    everywhere(x, out).launch(grid=1, block=32)


def test_helpers_loops_and_branches_are_fused_alike(sim):
    x = np.random.default_rng(1).standard_normal((32, 3)).astype(np.float32)
    out = np.zeros((32, 6), np.float32)
    run_everywhere(from_dlpack(x), from_dlpack(out))

    def fma(a, b, c):
        return (a.astype(np.float64) * b + c).astype(np.float32)

    a, b, c = x.T
    squares = neighbours = np.zeros(32, np.float32)
    for k in range(3):
        squares = fma(x[:, k], x[:, k], squares)
        neighbours = fma(x[:, k], x[:, (k + 1) % 3], neighbours)
    once = fma(a, b, c)
    wanted = [once, once, once, squares, neighbours, np.where(np.arange(32) > 3, once, a * b)]
    np.testing.assert_array_equal(out, np.stack(wanted, 1))
