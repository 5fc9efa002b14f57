"""Each wrong program is a DSLError at the user's line; afterwards everything still works."""

import inspect

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLError

pytestmark = pytest.mark.usefixtures("sim")
DATA = np.ones(64, np.float32)


@cute.kernel
def copy_kernel(x: cute.Tensor, y: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    y[i] = x[i]


@cute.jit
def copy(x: cute.Tensor, y: cute.Tensor):
    copy_kernel(x, y).launch(grid=(1, 1, 1), block=(64, 1, 1))


@pytest.fixture(autouse=True)
def still_usable():
    yield
    y = np.zeros(64, np.float32)
    copy(DATA, y)
    np.testing.assert_array_equal(y, DATA)


def fails(call, *texts):
    """The error's text has all of `texts`; `marked` is the source line it points at."""
    with pytest.raises(DSLError) as caught:
        call()
    message = str(caught.value)
    for text in texts:
        assert text in message, message
    assert caught.value.span is not None
    assert caught.value.span.filename == __file__
    return caught.value


def marked(error):
    return error.span.source_line.strip()


def test_kernel_called_from_python():
    error = fails(
        lambda: copy_kernel(DATA, DATA), "Python calls the @kernel", "copy_kernel", "launch"
    )
    assert "copy_kernel(DATA, DATA)" in marked(error)


def test_kernel_called_from_kernel():
    @cute.kernel
    def outer(x: cute.Tensor):
        copy_kernel(x, x)  # wrong

    @cute.jit
    def host(x: cute.Tensor):
        outer(x).launch(grid=1, block=1)

    error = fails(lambda: host(DATA), "outer", "copy_kernel", "not allowed")
    assert marked(error) == "copy_kernel(x, x)  # wrong"


def test_float_array_where_int32_elements_were_declared():
    @cute.jit
    def host(x: cute.Tensor[cute.Int32, 1]):
        pass

    fails(lambda: host(DATA), "'x'", "Tensor[Int32, 1]", "Float32")


def test_wrong_rank():
    @cute.jit
    def host(x: cute.Tensor[cute.Float32, 2]):
        pass

    fails(lambda: host(DATA), "'x'", "Tensor[Float32, 2]", "1 mode")


def test_wrong_rank_of_a_coordinate():
    @cute.kernel
    def kernel(x: cute.Tensor):
        x[0, 0] = 1.0  # wrong

    @cute.jit
    def host(x: cute.Tensor):
        kernel(x).launch(grid=1, block=1)

    assert marked(fails(lambda: host(DATA), "1 mode")) == "x[0, 0] = 1.0  # wrong"


def test_argument_no_adapter_knows():
    @cute.jit
    def host(x):
        pass

    fails(lambda: host(object()), "'x'", "object", "Constexpr")


def test_not_a_tensor_where_one_is_declared():
    fails(lambda: copy(1, DATA), "'x'", "Tensor", "int")


@pytest.mark.parametrize("static", [cute.range_constexpr, cute.const_expr])
def test_dynamic_value_where_it_must_be_static(static):
    @cute.jit
    def host(n: cute.Int32):
        static(n)  # wrong

    assert marked(fails(lambda: host(3), static.__name__)) == "static(n)  # wrong"


def test_dynamic_condition_without_preprocessing():
    @cute.jit(preprocess=False)
    def host(n: cute.Int32):
        if n > 0:  # wrong
            pass

    assert marked(fails(lambda: host(3), "condition", "preprocess=True")) == "if n > 0:  # wrong"


def test_dynamic_bound_without_preprocessing():
    @cute.jit(preprocess=False)
    def host(n: cute.Int32):
        for _ in range(n):  # wrong
            pass

    error = fails(lambda: host(3), "dynamic", "preprocess=True")
    assert marked(error) == "for _ in range(n):  # wrong"


def test_name_not_bound_on_every_path():
    @cute.jit
    def host(n: cute.Int32):
        if n > 0:
            x = 1
        return x  # wrong

    error = fails(lambda: host(3), "'x'", "not bound on every path", "if n > 0:")
    assert marked(error) == "return x  # wrong"


def test_type_differs_between_branches():
    @cute.jit
    def host(n: cute.Int32, y: cute.Float32):
        x = n
        if n > 0:
            x = y  # wrong
        return x

    error = fails(lambda: host(3, 1.0), "'x'", "Float32", "Int32")
    assert marked(error) == "x = y  # wrong"


@pytest.mark.parametrize("extent", [0, -1, 2**31])
@pytest.mark.parametrize("what", ["grid", "block"])
@pytest.mark.parametrize("dynamic", [False, True])
def test_launch_with_a_bad_extent(extent, what, dynamic):
    @cute.kernel
    def kernel():
        pass

    @cute.jit
    def static_host():
        kernel().launch(**{"grid": 1, "block": 1, what: extent})  # wrong

    @cute.jit
    def dynamic_host(n: cute.Int64):
        kernel().launch(**{"grid": 1, "block": 1, what: n})  # wrong

    call = (lambda: dynamic_host(extent)) if dynamic else static_host
    error = fails(call, what, str(extent))
    assert marked(error).endswith("# wrong")


def test_block_of_too_many_threads():
    @cute.kernel
    def kernel():
        pass

    @cute.jit
    def host():
        kernel().launch(grid=1, block=(32, 32, 2))

    fails(host, "2048", "1024")


def test_gpu_target_without_a_driver(monkeypatch):
    from basedsl_cute.device import driver

    if driver.is_available():
        pytest.skip("there is a driver here")
    with monkeypatch.context() as patch:
        patch.setenv("CUTE_DSL_ARCH", "sm_90a")
        fails(
            lambda: copy(DATA, DATA.copy()), "target sm_90a needs a GPU driver", "CUTE_DSL_ARCH=sim"
        )


def test_unknown_target(monkeypatch):
    with monkeypatch.context() as patch:
        patch.setenv("CUTE_DSL_ARCH", "sm_12345")
        fails(lambda: copy(DATA, DATA.copy()), "sm_12345", "sm_90a")


def test_constructs_that_cannot_hold_dynamic_values():
    @cute.jit
    def in_try(n: cute.Int32):
        try:
            return n + 1  # wrong
        except ValueError:
            return n

    @cute.jit
    def in_with(n: cute.Int32):
        with open(__file__):
            return n + 1  # wrong

    @cute.jit
    def in_match(n: cute.Int32):
        match n:  # wrong
            case 1:
                return n

    @cute.jit
    def in_generator(n: cute.Int32):
        yield n  # wrong

    @cute.jit
    async def in_async(n: cute.Int32):  # wrong
        return n

    for function, word in (
        (in_try, "try"),
        (in_with, "with"),
        (in_match, "match"),
        (in_generator, "generator"),
        (in_async, "async"),
    ):
        error = fails(lambda f=function: f(1), word)
        assert error.span.line >= inspect.getsourcelines(in_try.fn)[1]


def test_store_of_another_type():
    @cute.kernel
    def kernel(x: cute.Tensor):
        x[0] = 1.5  # wrong

    @cute.jit
    def host(x: cute.Tensor):
        kernel(x).launch(grid=1, block=1)

    assert marked(fails(lambda: host(np.ones(4, np.int32)), "Int32")) == "x[0] = 1.5  # wrong"


def test_out_of_bounds_names_line_thread_and_index():
    y = np.zeros(60, np.float32)
    error = fails(lambda: copy(DATA, y), "thread", "(60, 0, 0)", "60", "`y`")
    assert marked(error) == "y[i] = x[i]"


def test_simulator_errors_also_name_the_launch():
    error = fails(lambda: copy(DATA, np.zeros(60, np.float32)), "the kernel was launched here")
    assert ".launch(" in error.notes[-1][1].source_line


def test_barrier_not_all_threads_reach():
    @cute.kernel
    def kernel(n: cute.Int32):
        if cute.arch.thread_idx()[0] < n:
            cute.arch.sync_threads()  # wrong

    @cute.jit
    def host(n: cute.Int32):
        kernel(n).launch(grid=1, block=64)

    assert marked(fails(lambda: host(32), "barrier")) == "cute.arch.sync_threads()  # wrong"


def test_return_from_a_kernel():
    @cute.kernel
    def kernel():
        return 1

    @cute.jit
    def host():
        kernel().launch(grid=1, block=1)

    fails(host, "kernel", "returns")


def test_thread_index_on_the_host():
    @cute.jit
    def host():
        cute.arch.thread_idx()  # wrong

    assert marked(fails(host, "thread_idx()", "host")) == "cute.arch.thread_idx()  # wrong"


def test_compiled_function_refuses_other_arguments():
    compiled = cute.compile(copy, DATA, DATA)
    fails(lambda: compiled(np.ones(64), DATA), "'x'", "Float32", "Float64")
    fails(lambda: compiled(np.ones((8, 8), np.float32), DATA), "'x'")
    fails(lambda: compiled(DATA), "'y'")
    fails(lambda: compiled(DATA, DATA, DATA), "2")
    y = np.zeros_like(DATA)
    compiled(DATA, y)
    np.testing.assert_array_equal(y, DATA)
