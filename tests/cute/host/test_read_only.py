"""Nothing is written through an argument whose array is read-only; reading it is fine."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLTypeError


def frozen(*values):
    array = np.array(values, np.float32)
    array.flags.writeable = False
    return array


@cute.kernel
def add_kernel(x: cute.Tensor, y: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    y[i] = y[i] + x[i]


@cute.jit
def add(x: cute.Tensor, y: cute.Tensor):
    add_kernel(x, y).launch(grid=1, block=2)


@cute.jit
def add_twice(x: cute.Tensor, y: cute.Tensor):
    add_kernel(y, x).launch(grid=1, block=2)
    add_kernel(x, y).launch(grid=1, block=2)


@pytest.mark.parametrize("options", ["--arch sim", "--arch sm_90a"])
def test_a_write_is_an_error_on_every_target(options):
    with pytest.raises(DSLTypeError, match="'y' is written, and its array is read-only") as caught:
        cute.compile(add, np.ones(2, np.float32), frozen(1, 2), options=options)
    assert caught.value.span.source_line.strip() == "y[i] = y[i] + x[i]"


def test_the_argument_of_the_host_function_is_named(sim):
    with pytest.raises(DSLTypeError, match="'x' is written"):
        add_twice(frozen(1, 2), np.zeros(2, np.float32))


def test_reading_is_fine(sim):
    y = np.ones(2, np.float32)
    add(frozen(1, 2), y)
    np.testing.assert_array_equal(y, [2, 3])


def test_the_same_function_writes_an_array_that_may_be_written(sim):
    x, y = np.ones(2, np.float32), np.zeros(2, np.float32)
    for _ in range(3):
        add(x, y)
    with pytest.raises(DSLTypeError):
        add(x, frozen(0, 0))
    np.testing.assert_array_equal(y, 3)
