"""`cute.testing`: timing, tuning, conversion, assertions in kernels."""

import ml_dtypes
import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLError
from basedsl.testing import TraceLog
from basedsl_cute import testing


@cute.kernel
def fill_kernel(x: cute.Tensor, value: cute.Float32, width: cute.Constexpr):
    i = cute.arch.block_idx()[0] * width + cute.arch.thread_idx()[0]
    if i < cute.size(x):
        x[i] = value


@cute.jit
def fill(x: cute.Tensor, value: cute.Float32, width: cute.Constexpr = 32):
    fill_kernel(x, value, width).launch(
        grid=(cute.ceil_div(cute.size(x), width), 1, 1), block=(width, 1, 1)
    )


def test_benchmark_calls_with_each_set_of_arguments_in_turn(sim):
    made = []

    def generate():
        made.append(np.zeros(8, np.float32))
        return testing.JitArguments(made[-1], 1.0)

    calls = []

    def run(x, value):
        calls.append(next(i for i, one in enumerate(made) if one is x))
        x[:] += value

    took = testing.benchmark(
        run, warmup_iterations=2, iterations=4, workspace_generator=generate, workspace_count=3
    )
    assert took > 0
    assert calls == [0, 1, 0, 1, 2, 0]


def test_benchmark_of_a_compiled_function(target):
    x = np.zeros(64, np.float32)
    compiled = cute.compile(fill, x, 1.0)
    took = testing.benchmark(
        compiled,
        warmup_iterations=1,
        iterations=2,
        kernel_arguments=testing.JitArguments(x, 3.0),
    )
    assert took > 0 and (x == 3).all()


def test_benchmark_refuses_what_it_cannot_time():
    with pytest.raises(DSLError, match="workspace_generator"):
        testing.benchmark(fill, workspace_count=2)
    with pytest.raises(DSLError, match="at least one iteration"):
        testing.benchmark(fill, iterations=0)
    with pytest.raises(DSLError, match="JitArguments"):
        testing.benchmark(fill, kernel_arguments=[1])


def test_workspaces_are_at_most_one_a_call(sim):
    assert testing.get_workspace_count(1 << 40, 1, 1) == 1
    assert testing.get_workspace_count(1, 3, 5) <= 8


def test_tune_finds_the_fastest_that_works(sim, monkeypatch):
    took = {8: 0.004, 16: 0.001, 32: 0.008}
    clock = [0.0]
    monkeypatch.setattr("basedsl_cute.interop.testing.perf_counter", lambda: clock[0])

    def make(width, kind):
        if kind == "other":
            raise testing.CantImplementError("not this one")

        def run():
            clock[0] += took[width]

        return run

    best = testing.tune(
        make,
        params_dict={"width": [8, 16, 32], "kind": ["other", "this"]},
        warmup_iterations=0,
        iterations=2,
    )
    assert best == {"width": 16, "kind": "this"}


def test_tune_raises_what_kept_every_configuration_from_working():
    def make(width):
        raise testing.CantImplementError(f"no width of {width}")

    with pytest.raises(testing.CantImplementError, match="no width of 4"):
        testing.tune(make, params_dict={"width": [4, 8]})


def test_autotune_times_again_when_a_named_argument_changes(sim):
    widths = TraceLog()

    @cute.kernel
    def kernel(x: cute.Tensor, value: cute.Float32, width: cute.Constexpr):
        x[cute.arch.thread_idx()[0]] = value

    @testing.autotune_jit(
        params_dict={"width": [16, 32]},
        update_on_change=["n"],
        warmup_iterations=0,
        iterations=1,
    )
    @cute.jit
    def tuned(x: cute.Tensor, value: cute.Float32, n: cute.Constexpr, width: cute.Constexpr = 1):
        widths.append(width)
        kernel(x, value, width).launch(grid=(1, 1, 1), block=(n, 1, 1))

    x = np.zeros(16, np.float32)
    tuned(x, 2.0, 8)
    assert (x[:8] == 2).all() and (x[8:] == 0).all()
    assert sorted(set(widths)) == [16, 32]
    traced = len(widths)
    tuned(x, 3.0, 8)
    assert len(widths) == traced and (x[:8] == 3).all()
    tuned(x, 4.0, 16)
    assert len(widths) > traced and (x == 4).all()
    tuned(x, 5.0, 16, width=4)
    assert widths[-1] == 4


@pytest.mark.parametrize(
    "dtype", [np.float16, ml_dtypes.bfloat16, ml_dtypes.float8_e4m3fn, np.int8, np.float64]
)
def test_convert_is_a_conversion_of_each_element(target, dtype):
    source = np.arange(-6, 6, dtype=np.float32).reshape(3, 4) / 2
    result = np.zeros((3, 4), dtype)
    testing.convert(source, result)
    assert (result.astype(np.float32) == source.astype(dtype).astype(np.float32)).all()


def test_convert_refuses_other_shapes():
    with pytest.raises(DSLError, match="shapes differ"):
        testing.convert(np.zeros(3, np.float32), np.zeros(4, np.float32))


@cute.kernel
def checked_kernel(x: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    testing.assert_(x[i] < 5.0, "too large")


@cute.jit
def checked(x: cute.Tensor):
    checked_kernel(x).launch(grid=(1, 1, 1), block=(8, 1, 1))


def test_assertions_in_kernels(sim):
    checked(np.arange(5, dtype=np.float32).repeat(2)[:8])
    with pytest.raises((AssertionError, DSLError), match="too large"):
        checked(np.arange(8, dtype=np.float32))


def test_assertions_of_what_is_known_are_pythons():
    testing.assert_(True, "fine")
    with pytest.raises(AssertionError, match="not so"):
        testing.assert_(1 > 2, "not so")
