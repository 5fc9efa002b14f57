"""The driver module: without a driver, with a pretended one, and with a real one."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import threading
import types

import numpy as np
import pytest

from basedsl.errors import DSLRuntimeError, DSLTypeError
from basedsl_cute.device import driver


@pytest.fixture
def no_driver(monkeypatch):
    monkeypatch.setattr(driver, "_library", lambda: None)
    monkeypatch.setattr(driver, "_initialised", lambda: None)
    # Where there is a GPU, an earlier test may have given this thread a context.
    monkeypatch.setattr(driver, "_thread", threading.local())


class FakeLibrary:
    """libcuda with functions that all return one code."""

    def __init__(self, code):
        self.code = code

    def __getattr__(self, name):
        if name == "cuGetErrorName":
            return self._say(b"CUDA_ERROR_NO_DEVICE")
        if name == "cuGetErrorString":
            return self._say(b"no CUDA-capable device is detected")
        return lambda *_: self.code

    def _say(self, text):
        def function(code, out):
            ctypes.cast(out, ctypes.POINTER(ctypes.c_char_p))[0] = text
            return 0

        return function


def test_importing_needs_no_driver():
    program = "import basedsl_cute.device.driver, sys; sys.exit('cuda' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_asking_for_a_gpu_without_a_driver(no_driver):
    assert not driver.is_available()
    assert driver.capability_or_none() is None
    for ask in (driver.require, driver.ensure_context, driver.device_count, driver.synchronize):
        with pytest.raises(DSLRuntimeError, match="asking for a GPU target with no driver") as no:
            ask()
        assert "CUTE_DSL_ARCH=sim" in no.value.hint
    assert driver.describe_error(3) == ("", "error 3")


def test_a_driver_without_a_device(monkeypatch):
    monkeypatch.setattr(driver, "_library", lambda: FakeLibrary(100))
    monkeypatch.setattr(driver, "_initialised", lambda: 100)
    assert not driver.is_available()
    with pytest.raises(driver.DSLCudaRuntimeError, match="no CUDA-capable device") as no:
        driver.require()
    assert (no.value.error_code, no.value.error_name) == (100, "CUDA_ERROR_NO_DEVICE")


def test_errors_of_the_driver_carry_their_code(monkeypatch):
    monkeypatch.setattr(driver, "_library", lambda: FakeLibrary(100))
    monkeypatch.setattr(driver, "_initialised", lambda: 0)
    with pytest.raises(driver.DSLCudaRuntimeError, match="cuCtxSynchronize: CUDA_ERROR") as no:
        driver.call("cuCtxSynchronize")
    assert no.value.error_code == 100


@pytest.mark.parametrize(
    ("stream", "handle"),
    [
        (None, 0),
        (77, 77),
        (types.SimpleNamespace(__cuda_stream__=lambda: (0, 5)), 5),
        (types.SimpleNamespace(__cuda_stream__=(0, 6)), 6),
        (types.SimpleNamespace(cuda_stream=7), 7),
        (types.SimpleNamespace(ptr=8), 8),
        (np.uint64(9), 9),
    ],
)
def test_streams(stream, handle):
    assert driver.stream_handle(stream) == handle


def test_streams_of_cuda_bindings():
    bindings = pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")
    assert driver.stream_handle(bindings.CUstream(10)) == 10


@pytest.mark.parametrize(
    ("stream", "message"),
    [
        ("x", "a str is no CUDA stream"),
        (types.SimpleNamespace(__cuda_stream__=(9, 5)), "version 9"),
    ],
)
def test_what_is_no_stream(stream, message):
    with pytest.raises(DSLTypeError, match=message):
        driver.stream_handle(stream)


def test_numbers_agree_with_cuda_h():
    cuda = pytest.importorskip("cuda.bindings.driver", reason="cuda-bindings is not installed")
    of = cuda.CUdevice_attribute
    prefix = "CU_DEVICE_ATTRIBUTE_"
    for name, number in {
        "MAX_THREADS_PER_BLOCK": driver._MAX_THREADS_PER_BLOCK,
        "MAX_BLOCK_DIM_X": driver._MAX_BLOCK_DIM_X,
        "MAX_GRID_DIM_X": driver._MAX_GRID_DIM_X,
        "MULTIPROCESSOR_COUNT": driver._MULTIPROCESSOR_COUNT,
        "COMPUTE_CAPABILITY_MAJOR": driver._CAPABILITY_MAJOR,
        "COMPUTE_CAPABILITY_MINOR": driver._CAPABILITY_MINOR,
        "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN": driver._MAX_SMEM_PER_BLOCK_OPTIN,
        "MAX_SHARED_MEMORY_PER_MULTIPROCESSOR": driver._MAX_SMEM_PER_SM,
        "L2_CACHE_SIZE": driver._L2_CACHE_SIZE,
    }.items():
        assert int(getattr(of, prefix + name)) == number
    of, prefix = cuda.CUfunction_attribute, "CU_FUNC_ATTRIBUTE_"
    for name, number in {
        "MAX_DYNAMIC_SHARED_SIZE_BYTES": driver.MAX_DYNAMIC_SMEM,
        "NON_PORTABLE_CLUSTER_SIZE_ALLOWED": driver.NON_PORTABLE_CLUSTER,
        "MAX_THREADS_PER_BLOCK": driver._FUNCTION_ATTRIBUTES["max_threads"],
        "SHARED_SIZE_BYTES": driver._FUNCTION_ATTRIBUTES["static_smem"],
        "LOCAL_SIZE_BYTES": driver._FUNCTION_ATTRIBUTES["local_bytes"],
        "NUM_REGS": driver._FUNCTION_ATTRIBUTES["registers"],
    }.items():
        assert int(getattr(of, prefix + name)) == number
    assert int(cuda.CUjit_option.CU_JIT_ERROR_LOG_BUFFER) == driver._JIT_ERROR_LOG_BUFFER
    assert int(cuda.CUjit_option.CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES) == (
        driver._JIT_ERROR_LOG_BUFFER_SIZE
    )


@pytest.mark.gpu
def test_a_real_device():
    driver.ensure_context()
    here = driver.device(driver.current_device())
    assert here.capability >= (7, 5) and here.multiprocessors > 0
    assert here.smem_per_block >= 48 * 1024
    assert driver.capability_or_none() == here.capability


@pytest.mark.gpu
def test_memory_travels_there_and_back():
    source = np.arange(1000, dtype=np.float32)
    target = np.zeros_like(source)
    first, second = driver.allocate(source.nbytes), driver.allocate(source.nbytes)
    stream = driver.Stream()
    start, end = driver.Event(), driver.Event()
    try:
        driver.copy_to_device(first, source.ctypes.data, source.nbytes)
        start.record(stream)
        driver.copy_on_device(second, first, source.nbytes, stream)
        end.record(stream)
        stream.synchronize()
        assert end.milliseconds_since(start) >= 0
        driver.copy_to_host(target.ctypes.data, second, target.nbytes)
    finally:
        driver.free(first)
        driver.free(second)
        for one in (stream, start, end):
            one.destroy()
    np.testing.assert_array_equal(source, target)


@pytest.mark.gpu
def test_ptx_that_the_driver_refuses_is_quoted():
    with pytest.raises(driver.DSLCudaRuntimeError, match="loading a kernel"):
        ptx = ".version 8.3\n.target sm_75\n.address_size 64\n.visible .entry k() { wrong; }"
        driver.Library(ptx).kernel("k")  # drivers that load lazily look at it only now
