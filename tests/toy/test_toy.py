"""toy against Python and NumPy: the examples on random inputs, buffers of all shapes, its IR."""

from __future__ import annotations

import random

import numpy as np
import pytest

import basedsl_toy as toy
from basedsl import DSLCallError, DSLError, DSLTypeError
from basedsl.testing import filecheck


@toy.jit
def collatz_steps(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@toy.jit
def dot(a: toy.Buffer, b: toy.Buffer):
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@toy.jit
def stencil(source: toy.Buffer, target: toy.Buffer):
    n = len(source)
    for i in range(n):
        if 0 < i < n - 1:
            target[i] = (source[i - 1] + source[i] + source[i + 1]) / 3.0
        else:
            target[i] = source[i]


@toy.jit
def mandelbrot(counts: toy.Buffer[toy.Int64, 2], limit):
    height, width = counts.shape
    for row in range(height):
        for col in range(width):
            x0, y0 = 3.0 * col / width - 2.0, 2.0 * row / height - 1.0
            x = y = 0.0
            count = 0
            while count < limit and x * x + y * y <= 4.0:
                x, y = x * x - y * y + x0, 2.0 * x * y + y0
                count += 1
            counts[row, col] = count


def test_collatz() -> None:
    r = random.Random(1)
    for n in [1, 2, 27, *(r.randint(1, 10**6) for _ in range(30))]:
        assert collatz_steps(n) == collatz_steps.fn(n)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int16])
def test_dot(dtype: type) -> None:
    r = np.random.default_rng(2)
    for n in (0, 1, 5, 1000):
        a, b = (r.integers(-9, 9, n).astype(dtype) for _ in range(2))
        assert dot(a, b) == pytest.approx(float(np.dot(a.astype(float), b.astype(float))))


def test_stencil_also_with_strides() -> None:
    source = np.random.default_rng(3).random(200)
    for view in (source, source[::3], source[::-1], source[50:53], source[:1], source[:0]):
        target = np.full(len(view), -1.0)
        expected = target.copy()
        stencil(view, target)
        stencil.fn(view, expected)
        np.testing.assert_allclose(target, expected, rtol=1e-15)


def test_mandelbrot() -> None:
    counts = np.zeros((13, 21), np.int64)
    expected = counts.copy()
    mandelbrot(counts, 40)
    mandelbrot.fn(expected, 40)
    np.testing.assert_array_equal(counts, expected)


def test_negative_and_wrong_indices() -> None:
    @toy.jit
    def pick(a: toy.Buffer, i):
        return a[i]

    a = np.array([1, 2, 3])
    assert [pick(a, i) for i in (0, 2, -1, -3)] == [1, 3, 3, 1]
    for i in (3, -4, 2**40):
        with pytest.raises(IndexError, match="index out of range"):
            pick(a, i)
    assert pick(a, 1) == 2


def test_buffers_that_do_not_fit() -> None:
    @toy.jit
    def first(a: toy.Buffer[toy.Int64, 1]):
        return a[0]

    assert first(np.array([7])) == 7
    with pytest.raises(DSLCallError, match=r"Buffer\[Int64, 1\], got float64"):
        first(np.array([1.0]))
    with pytest.raises(DSLCallError, match="2 dimension"):
        first(np.ones((2, 2), np.int64))
    with pytest.raises(DSLCallError, match="declared a Buffer, got list"):
        first([1, 2])
    frozen = np.array([1])
    frozen.flags.writeable = False
    with pytest.raises(DSLCallError, match="read-only"):
        first(frozen)


def test_a_float_is_not_cut_to_fit() -> None:
    @toy.jit
    def store(a: toy.Buffer, x):
        a[0] = x

    target = np.zeros(2, np.int64)
    with pytest.raises(DSLTypeError, match="stored into a buffer of Int64"):
        store(target, 1.5)
    store(target, 3)
    assert target[0] == 3
    with pytest.raises(DSLError, match="1 dimension"):
        toy.jit(lambda a: a[0, 0])(target)


def test_control_flow_is_blocks() -> None:
    checks = """
        CHECK-LABEL: func.func @{{.*}}collatz_steps
        CHECK: cf.br ^[[HEAD:bb[0-9]+]]
        CHECK: ^[[HEAD]](
        CHECK: cf.cond_br
        CHECK-NOT: scf.
    """
    filecheck(collatz_steps.compile(27).__mlir__, checks)


def test_arrays_whose_memory_is_not_what_they_say():
    """A masked array sums without its masked elements; compiled code would take all."""

    @toy.jit
    def total(a):
        s = 0
        for i in range(len(a)):
            s += a[i]
        return s

    masked = np.ma.array([1, 2, 3], mask=[False, True, False])
    for _ in range(2):
        with pytest.raises(DSLError, match="'a' is a masked array"):
            total(masked)
        for _ in range(4):  # repeated calls are native
            assert total(np.array([1, 2, 3])) == 6
    with pytest.raises(DSLError, match=r"bytes are in another order(.|\n)*astype\('int64'\)"):
        total(np.arange(3).astype(">i8"))
