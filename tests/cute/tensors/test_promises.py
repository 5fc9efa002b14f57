"""Promises that a program makes about its integers."""

import numpy as np
import pytest

import basedsl_cute as cute


@cute.kernel
def kernel(out: cute.Tensor, n: cute.Int32):
    out[0] = cute.assume(n, divby=8) % 8


@cute.jit
def in_kernel(out: cute.Tensor, n: cute.Int32):
    kernel(out, n).launch(grid=1, block=1)


@cute.jit
def on_host(n: cute.Int32):
    return cute.assume(n, divby=8) // 8


def test_a_promise_that_is_kept(sim):
    out = np.ones(1, np.int32)
    in_kernel(out, 24)
    assert out[0] == 0 and on_host(24) == 3


def test_a_broken_promise_is_an_error(sim):
    with pytest.raises(AssertionError, match=r"divby=8\): the number is no multiple of 8"):
        in_kernel(np.ones(1, np.int32), 12)
    with pytest.raises(AssertionError, match=r"divby=8\): the number is no multiple of 8"):
        on_host(12)


@cute.jit
def promised(n: cute.Int32, divby: cute.Constexpr):
    return cute.assume(n, divby=divby)


@pytest.mark.parametrize("divby", [0, -4, 1.5, None])
def test_a_promise_of_no_positive_int(sim, divby):
    with pytest.raises(cute.LayoutError, match="it is a positive int"):
        promised(8, divby)


def test_on_a_gpu_the_check_is_an_option(monkeypatch):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_90a")
    out = np.ones(1, np.int32)
    for options, checked in ((None, False), ("--enable-assertions", True)):
        text = cute.compile(in_kernel, out, 8, options=options).__ptx__
        assert ("__assertfail" in text) == checked
