"""Programmatic dependent launch: kernels that begin before the one in front of them has ended."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLError
from basedsl_cute import arch


@cute.kernel
def scale(x: cute.Tensor, y: cute.Tensor, factor: cute.Float32, waits: cute.Constexpr):
    i = arch.block_idx()[0] * 64 + arch.thread_idx()[0]
    if cute.const_expr(waits):
        arch.griddepcontrol_wait()
    arch.griddepcontrol_launch_dependents()
    if i < cute.size(x):
        y[i] = x[i] * factor


@cute.kernel
def add_up(x: cute.Tensor, weights: cute.Tensor, out: cute.Tensor):
    """`weights` is of no kernel in front of this, and read before the wait."""
    t = arch.thread_idx()[0]
    weight, total = weights[t], cute.Float32(0)
    arch.griddepcontrol_wait()
    for i in range(t, cute.size(x), 32):
        total += x[i] * weight
    arch.griddepcontrol_launch_dependents()
    out[t] = total


@cute.jit
def chain(
    x: cute.Tensor,
    y: cute.Tensor,
    weights: cute.Tensor,
    out: cute.Tensor,
    waits: cute.Constexpr,
    stream=None,
):
    blocks = cute.ceil_div(cute.size(x), 64)
    for _ in cute.range_constexpr(2):
        for a, b, factor in ((x, y, 2.0), (y, x, 1.0)):
            scale(a, b, factor, waits).launch(grid=blocks, block=64, use_pdl=True, stream=stream)
            add_up(b, weights, out).launch(grid=1, block=32, use_pdl=True, stream=stream)


def run(waits):
    x = np.arange(200, dtype=np.float32) % 7
    y, weights = np.full_like(x, np.nan), np.arange(32, dtype=np.float32) % 5
    out = np.full(32, np.nan, np.float32)
    expected = 4 * x
    chain(x, y, weights, out, waits)
    cute.synchronize()
    np.testing.assert_array_equal(x, expected)
    np.testing.assert_array_equal(out, [expected[t::32].sum() * weights[t] for t in range(32)])


def test_a_chain(hopper, monkeypatch):
    monkeypatch.setenv("CUTE_DSL_CHECK_RACES", "1")
    run(waits=True)


def test_a_kernel_that_does_not_wait(sim, monkeypatch):
    monkeypatch.setenv("CUTE_DSL_CHECK_RACES", "1")
    with pytest.raises(DSLError, match="scale was launched with use_pdl=True and never waits") as e:
        run(waits=False)
    assert "scale(a, b, factor, waits).launch" in str(e.value)
