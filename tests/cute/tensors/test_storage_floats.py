"""Kernels that convert to Float8 and narrower floats and back: every code, every tie."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.numeric.formats import FORMATS, round_float
from basedsl_cute.runtime import from_dlpack

NAMES = [name for name, row in FORMATS.items() if row.saturates]
THREADS = 128


def ties(dtype):
    """Float32: all values of a format, the middles of two, what is next to those, and edges."""
    bits = 2 ** FORMATS[dtype.__name__].width
    codes = np.arange(bits, dtype=np.uint8).view(dtype.numpy_dtype)
    with np.errstate(all="ignore"):
        values = np.unique(codes.astype(np.float32))
    values = values[np.isfinite(values)]
    middle = ((values[1:].astype(np.float64) + values[:-1]) / 2).astype(np.float32)
    near = [np.nextafter(middle, np.float32(side)) for side in (-np.inf, np.inf)]
    edges = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 3e38, -3e38], np.float32)
    found = np.concatenate([values, middle, *near, edges])
    return np.concatenate([found, np.zeros(-found.size % THREADS, np.float32)])


@pytest.mark.parametrize("name", NAMES)
def test_there_and_back(target, name):
    kind = getattr(cute, name)
    values = ties(kind)
    out = np.zeros((2, values.size), np.float32)

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        i = cute.arch.thread_idx()[0] + cute.arch.block_idx()[0] * THREADS
        y[0, i] = x[i].to(kind).to(cute.Float32)
        four = cute.make_rmem_tensor(4, cute.Float32)
        for j in cute.range_constexpr(4):
            four[j] = x[i]
        y[1, i] = four.load().to(kind).to(cute.Float32)[3]

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor):
        kernel(x, y).launch(grid=(values.size // THREADS, 1, 1), block=(THREADS, 1, 1))

    host(from_dlpack(values), from_dlpack(out))
    expected = np.array([round_float(float(v), kind.format) for v in values], np.float32)
    np.testing.assert_array_equal(out[0], expected)
    np.testing.assert_array_equal(out[1], expected)
    zero = expected == 0
    np.testing.assert_array_equal(np.signbit(out[0][zero]), np.signbit(expected[zero]))
