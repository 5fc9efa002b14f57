"""Vectors compute what NumPy computes, elementwise, for every type."""

import operator

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute.runtime import from_dlpack


@cute.kernel
def apply_kernel(f: cute.Constexpr, out: cute.Tensor, ins: tuple):
    results = f(*[x.load() for x in ins])
    out.store(results)


@cute.jit
def apply(f: cute.Constexpr, out: cute.Tensor, *ins):
    apply_kernel(f, out, ins).launch(grid=(1, 1, 1), block=(1, 1, 1))


def run(f, out, *ins):
    apply(f, from_dlpack(out), *map(from_dlpack, ins))
    return out


@pytest.fixture(autouse=True)
def fresh_numbers():
    global rng
    rng = np.random.default_rng(3)


def sample(dtype, shape=(3, 4)):
    if dtype == "?":
        return rng.integers(0, 2, shape).astype("?")
    if dtype.startswith("f"):
        return rng.standard_normal(shape).astype(dtype)
    return rng.integers(1, 50, shape).astype(dtype)


INTEGERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8"]
FLOATS = ["f2", "f4", "f8"]
ARITHMETIC = ["add", "sub", "mul"]


@pytest.mark.parametrize("dtype", INTEGERS + FLOATS)
def test_arithmetic(sim, monkeypatch, dtype):
    monkeypatch.setenv("CUTE_DSL_CONTRACT", "0")
    x, y = sample(dtype), sample(dtype)
    out = np.zeros((3, 4), dtype)

    def all_of(a, b):
        return (a + b) * a - b * 2 + (-a)

    np.testing.assert_array_equal(
        run(all_of, out, x, y), ((x + y) * x - y * x.dtype.type(2) + (-x)).astype(dtype)
    )


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integer_operators(sim, dtype):
    x, y = sample(dtype), sample(dtype)

    def all_of(a, b):
        return (a // b) ^ (a % b) | (a & b) + (a << 1) - (b >> 2) + ~a + a**2

    with np.errstate(over="ignore"):
        one, two = x.dtype.type(1), x.dtype.type(2)
        expected = (x // y) ^ (x % y) | (x & y) + (x << one) - (y >> two) + ~x + x * x
    np.testing.assert_array_equal(run(all_of, np.zeros((3, 4), dtype), x, y), expected)


@pytest.mark.parametrize("dtype", FLOATS)
def test_float_operators(sim, dtype):
    x, y = abs(sample(dtype)) + 1, sample(dtype)

    def all_of(a, b):
        return (b / a) + abs(b) + a**2.0

    expected = (y / x) + abs(y) + x * x
    np.testing.assert_allclose(
        run(all_of, np.zeros((3, 4), dtype), x, y), expected, rtol=2e-3 if dtype == "f2" else 1e-6
    )


@pytest.mark.parametrize("name", ["lt", "le", "gt", "ge", "eq", "ne"])
@pytest.mark.parametrize("dtype", ["i4", "u1", "f4", "f2"])
def test_comparisons(sim, name, dtype):
    compare = getattr(operator, name)
    x, y = sample(dtype), sample(dtype)
    y[0] = x[0]
    out = np.zeros((3, 4), "?")
    np.testing.assert_array_equal(run(compare, out, x, y), compare(x, y))


def test_promotion_and_conversion(sim):
    x, y = sample("i2"), sample("f4")
    out = run(lambda a, b: a + b, np.zeros((3, 4), "f4"), x, y)
    np.testing.assert_allclose(out, x + y)
    out = run(lambda a: a.to(cute.Int8), np.zeros((3, 4), "i1"), np.full((3, 4), 300, "i4"))
    np.testing.assert_array_equal(out, 44)
    out = run(lambda a: (a * 1.5).to(cute.Float16), np.zeros((3, 4), "f2"), x)
    np.testing.assert_array_equal(out, (x * 1.5).astype("f2"))


def test_bfloat16(sim):
    import ml_dtypes

    x = sample("f4").astype(ml_dtypes.bfloat16)
    out = run(lambda a: a + a, np.zeros_like(x), x)
    np.testing.assert_array_equal(out.view("u2"), (x + x).view("u2"))


BROADCASTS = [
    ((3, 4), (1, 4)),
    ((3, 4), (3, 1)),
    ((3, 1), (1, 4)),
    ((3, 4), (4,)),
    ((2, 3, 4), (3, 1)),
]


@pytest.mark.parametrize("a,b", BROADCASTS)
@pytest.mark.parametrize("order", ["C", "F"])
def test_broadcasting(sim, a, b, order):
    x, y = np.asarray(sample("f4", a), order=order), np.asarray(sample("f4", b), order=order)
    out = np.zeros(np.broadcast_shapes(a, b), "f4")
    np.testing.assert_array_equal(run(operator.add, out, x, y), x + y)
    np.testing.assert_array_equal(run(operator.sub, out, y, x), y - x)


def test_scalars_where_and_fills(sim):
    x = sample("f4")
    out = run(lambda a: cute.where(a > 0, a, 0.0), np.zeros_like(x), x)
    np.testing.assert_array_equal(out, np.where(x > 0, x, 0))
    out = run(lambda a: 1.0 - a + cute.full_like(a, 2) + cute.zeros_like(a), np.zeros_like(x), x)
    np.testing.assert_array_equal(out, (np.float32(1) - x) + 2)
    out = run(lambda a: a[None, 1].broadcast_to((5, 3)), np.zeros((5, 3), "f4"), x)
    np.testing.assert_array_equal(out, np.broadcast_to(x[:, 1], (5, 3)))
    out = run(lambda a: cute.full((2, 2), a[2, 3], cute.Float32), np.zeros((2, 2), "f4"), x)
    np.testing.assert_array_equal(out, x[2, 3])


def test_power_with_a_dynamic_integer_exponent(sim):
    x, y = sample("i4"), sample("i4") % 4
    np.testing.assert_array_equal(run(operator.pow, np.zeros((3, 4), "i4"), x, y), x**y)


@cute.kernel
def carried_kernel(x: cute.Tensor, out: cute.Tensor, n: cute.Int32):
    tid = cute.arch.thread_idx()[0]
    total = cute.zeros_like(x)
    for i in range(n):
        total = total + x.load() * i
    if tid == 1:
        total = -total
    while total[0] < -100:
        total = total * 0.5
    out[tid, None].store(total)


@cute.jit
def carried(x: cute.Tensor, out: cute.Tensor, n: cute.Int32):
    carried_kernel(x, out, n).launch(grid=(1, 1, 1), block=(2, 1, 1))


def test_vectors_through_control_flow(sim):
    x = np.array([10, 20, 30, 40], "f4")
    out = np.zeros((2, 4), "f4")
    carried(from_dlpack(x), from_dlpack(out), 7)
    np.testing.assert_array_equal(out, [x * 21, x * -21 / 4])


ERRORS = {
    "do not broadcast": lambda x: x + cute.full((5,), 1.0, cute.Float32),
    "no single truth": lambda x: bool(x > 0),
    "takes a Boolean condition": lambda x: cute.where(x, x, x),
    "takes a ReductionOp": lambda x: x.reduce("add", 0.0),
    "indexed with 3": lambda x: x[0, 0, 0],
    "indexed with a list": lambda x: x[[0, 0]],
    "coordinate 3 is out of range for an extent of 3": lambda x: x[3, 0],
    "coordinate -1 is out of range for an extent of 4": lambda x: x[None, -1],
    "coordinate 12 is out of range for an extent of 12": lambda x: x[12],
    "does not broadcast to": lambda x: x.broadcast_to((3,)),
    "a vector of Int32 is stored": lambda x: x.to(cute.Int32),
    "a vector of shape": lambda x: x[0, None],
    "not iterated": lambda x: list(x),
}


@pytest.mark.parametrize("which", ERRORS)
def test_errors(sim, which):
    with pytest.raises(Exception, match=which):
        run(ERRORS[which], np.zeros((3, 4), "f4"), np.zeros((3, 4), "f4"))


@cute.kernel
def bits_kernel(x: cute.Tensor, y: cute.Tensor):
    t = cute.arch.thread_idx()[0]
    y[t] = cute.TensorSSA.from_elements([x[t]]).bitcast(cute.Int32)[0]


@cute.jit
def bits(x: cute.Tensor, y: cute.Tensor):
    bits_kernel(x, y).launch(grid=1, block=4)


def test_the_bits_of_one_number():  # as the hint of `x.bitcast` says
    x, y = np.array([0.0, -0.0, 1.0, np.inf], np.float32), np.zeros(4, np.int32)
    bits(x, y)
    np.testing.assert_array_equal(y, x.view(np.int32))
