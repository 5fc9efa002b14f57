"""`experimental.iket`: ranges of a profiler, as events."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLError, DSLTypeError
from basedsl_cute.cute.experimental import iket


@cute.kernel
def nested(x: cute.Tensor):
    iket.range_push("all")
    for i in range(2):
        iket.range_push("body")
        x[i] = x[i] + 1
        iket.range_pop()
    if cute.arch.warp_idx() == 1:
        iket.range_push("warp 1")
        x[2] = 7
        iket.range_pop()
    iket.range_pop()


@cute.jit
def launch_nested(x: cute.Tensor):
    nested(x).launch(grid=(1, 1, 1), block=(1, 1, 1))


@cute.kernel
def crossing(x: cute.Tensor):
    iket.range_push("all")
    if cute.arch.warp_idx() == 0:
        x[0] = 1
        iket.range_pop()


@cute.kernel
def unopened(x: cute.Tensor):
    iket.range_pop()


@cute.kernel
def nameless(x: cute.Tensor):
    iket.range_push("")


@cute.jit
def launch(kernel: cute.Constexpr, x: cute.Tensor):
    kernel(x).launch(grid=(1, 1, 1), block=(1, 1, 1))


def test_ranges_are_events(target):
    x = np.zeros(3, np.float32)
    with cute.record_events() as events:
        launch_nested(x)
    np.testing.assert_array_equal(x, [1, 1, 0])
    assert [e.name for e in events] == ["all", "body", "body"]
    whole, first, second = events
    assert whole.start <= first.start <= first.end <= second.start <= second.end <= whole.end


def test_without_a_recording_ranges_emit_nothing(sim):
    x = np.zeros(3, np.float32)
    launch_nested(x)
    launch(crossing, x)
    launch(unopened, x)
    np.testing.assert_array_equal(x, [1, 1, 0])


@pytest.mark.parametrize(
    "kernel, error, text",
    [
        (crossing, DSLError, "'all' began in another block than it ends in"),
        (unopened, DSLError, "none has begun"),
        (nameless, DSLTypeError, "text of 1 to 32 bytes"),
    ],
)
def test_ranges_that_are_no_pairs(sim, kernel, error, text):
    with pytest.raises(error, match=text), cute.record_events():
        launch(kernel, np.zeros(3, np.float32))
