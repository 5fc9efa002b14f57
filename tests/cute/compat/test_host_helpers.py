"""Small things that host code and helpers use: divisors, streams, hardware, user operations."""

import numpy as np
import pytest

import basedsl_cute as cute
import basedsl_cute as cutlass
from basedsl import DSLError
from basedsl_cute.cuda import StreamHandle
from basedsl_cute.cutlass_dsl import T, dsl_user_op, extract_mlir_values, new_from_mlir_values
from basedsl_cute.device.driver import CudaStream


@cute.kernel
def divide_kernel(x: cute.Tensor, out: cute.Tensor, divisor: cute.FastDivmodDivisor):
    i = cute.arch.thread_idx()[0]
    q, r = divmod(x[i], divisor)
    out[i, 0] = q
    out[i, 1] = r
    out[i, 2] = x[i] // divisor
    out[i, 3] = x[i] % divisor


@cute.jit
def divide(x: cute.Tensor, out: cute.Tensor, d: cutlass.Int32):
    divisor = cute.fast_divmod_create_divisor(d)
    divide_kernel(x, out, divisor).launch(grid=(1, 1, 1), block=(cute.size(x), 1, 1))


@cute.jit
def divide_by_known(x: cute.Tensor, out: cute.Tensor, d: cutlass.Constexpr):
    divide_kernel(x, out, cute.FastDivmodDivisor(d)).launch(
        grid=(1, 1, 1), block=(cute.size(x), 1, 1)
    )


@pytest.mark.parametrize("d", [1, 2, 3, 7, 10, 64, 641, 65535, 2**30 + 1, 2**31 - 1])
def test_fast_division_is_division(target, d):
    x = np.array([0, 1, 2, d - 1, d, 2**31 - 1, 2**31 - 2, 12345678], np.int64)
    x = np.minimum(x, 2**31 - 1).astype(np.int32)
    wanted = np.stack([x // d, x % d, x // d, x % d], axis=1)
    for run in (divide, divide_by_known):
        out = np.zeros((8, 4), np.int32)
        run(x, out, d)
        assert (out == wanted).all()


@cute.kernel
def floor_divide_kernel(x: cute.Tensor, out: cute.Tensor, divisor: cute.FastDivmodDivisorV2):
    i = cute.arch.thread_idx()[0]
    out[i, 0], out[i, 1] = divmod(x[i], divisor)


@cute.jit
def floor_divide(x: cute.Tensor, out: cute.Tensor, d: cutlass.Int32):
    floor_divide_kernel(x, out, cute.FastDivmodDivisorV2(d)).launch(
        grid=(1, 1, 1), block=(cute.size(x), 1, 1)
    )


@pytest.mark.parametrize("kind", [np.int32, np.uint32])
@pytest.mark.parametrize("d", [1, 3, 641, 2**31 - 1])
def test_fast_division_of_either_sign_rounds_down(target, d, kind):
    info = np.iinfo(kind)
    x = np.array([info.min, info.max, 0, 1, info.max // 2, d, d - 1, info.min + 5], kind)
    out = np.zeros((8, 2), kind)
    floor_divide(x, out, d)
    wide = x.astype(np.int64)
    assert (out == np.stack([wide // d, wide % d], axis=1)).all()


def test_a_divisor_is_positive():
    with pytest.raises(DSLError, match="at least 1"):
        cute.FastDivmodDivisor(0)
    with pytest.raises(DSLError, match="integer"):
        cute.FastDivmodDivisor(2.0)


@dsl_user_op
def plus(a, b, *, loc=None, ip=None):
    assert loc is not None
    kind = {cute.Float32: "float", cute.Int32: "int"}[type(a)]
    assert kind == "float"
    return cute.Float32(a.ir_value(loc=loc, ip=ip)) + b


@cute.kernel
def user_op_kernel(x: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    x[i] = plus(x[i], 1.0)


@cute.jit
def user_op(x: cute.Tensor):
    pair = (cute.Int32(3), "static", cute.Float32(1.5))
    values = extract_mlir_values(pair)
    assert [str(v.type) for v in values] == ["i32", "f32"]
    assert str(T.vector(4, T.f16())) == "vector<4xf16>"
    again = new_from_mlir_values(pair, values)
    assert again[1] == "static" and again[2].dtype is cute.Float32
    user_op_kernel(x).launch(grid=(1, 1, 1), block=(4, 1, 1))


def test_a_user_operation_gets_its_callers_location(sim):
    x = np.zeros(4, np.float32)
    user_op(x)
    assert (x == 1).all()


def test_the_simulator_as_hardware(sim):
    info = cutlass.utils.HardwareInfo()
    assert info.get_device_multiprocessor_count() == info.get_max_active_clusters(1) == 132
    assert info.get_max_active_clusters(4, loc=None) == 33
    assert cutlass.utils.get_smem_capacity_in_bytes("sm_80") == 163 * 1024
    assert cutlass.utils.get_smem_capacity_in_bytes() == 227 * 1024
    with pytest.raises(DSLError, match="1 to 16 blocks"):
        info.get_max_active_clusters(0)


@pytest.mark.gpu
def test_a_gpu_as_hardware(monkeypatch):
    monkeypatch.delenv("CUTE_DSL_ARCH", raising=False)
    info = cutlass.utils.HardwareInfo()
    count = info.get_device_multiprocessor_count()
    assert count > 1
    assert 1 <= info.get_max_active_clusters(2) <= count // 2
    assert info.get_max_active_clusters(1) <= count


@cute.kernel
def one_kernel(x: cute.Tensor):
    x[0] = x[0] + 1.0


@cute.jit
def on_stream(x: cute.Tensor, stream):
    one_kernel(x).launch(grid=(1, 1, 1), block=(1, 1, 1), stream=stream)


def test_the_default_stream(target):
    cutlass.cuda.initialize_cuda_context()
    stream = cutlass.cuda.default_stream()
    x = np.zeros(1, np.float32)
    on_stream(x, stream)
    cutlass.cuda.stream_sync(stream)
    assert x[0] == 1


def test_a_stream_waits_for_another(target):
    """Each launch adds to what the other stream has left there."""
    cutlass.cuda.initialize_cuda_context()
    one, two = (CudaStream(), CudaStream()) if target == "gpu" else map(StreamHandle, (11, 12))
    x = np.zeros(1, np.float32)
    for _ in range(20):
        on_stream(x, one)
        cutlass.cuda.wait_stream(two, one)
        on_stream(x, two)
        cutlass.cuda.wait_stream(one, two)
    cutlass.cuda.stream_sync(one)
    assert x[0] == 40


def test_cuda_errors_have_their_code():
    assert cutlass.cuda.checkCudaErrors((0, 5)) == 5
    assert cutlass.cuda.checkCudaErrors((0, 5, 6)) == (5, 6)
    with pytest.raises(cutlass.DSLCudaRuntimeError) as caught:
        cutlass.cuda.checkCudaErrors((700,))
    assert caught.value.error_code == 700


@cute.jit
def first_element(x: cute.Tensor, launches: cute.Constexpr):
    if launches:
        one_kernel(x).launch(grid=(1, 1, 1), block=(1, 1, 1))
    cute.printf("{}\n", x[0])
    return x[0]


def test_host_code_has_elements_only_where_no_gpu_reaches_them(monkeypatch):
    x = np.ones(1, np.float32)
    monkeypatch.setenv("CUTE_DSL_ARCH", "sim")
    assert first_element(x, True) == 2
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_90a")
    cute.compile(first_element, x, False)
    with pytest.raises(DSLError, match=r"read or written on the host; for the kernels"):
        cute.compile(first_element, x, True)
    fake = cute.runtime.make_fake_compact_tensor(cute.Float32, (4,))
    with pytest.raises(DSLError, match=r"the memory of 'x' is the GPU's"):
        cute.compile(first_element, fake, False)


@pytest.mark.gpu
def test_host_code_without_kernels_works_on_the_hosts_memory(monkeypatch):
    monkeypatch.delenv("CUTE_DSL_ARCH", raising=False)
    assert first_element(np.full(1, 3, np.float32), False) == 3
