"""The driver module: without a driver, with a pretended one, and with a real one."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
import threading
import types
from pathlib import Path

import numpy as np
import pytest
from cuda.bindings import driver as bindings

from basedsl.errors import DSLRuntimeError, DSLTypeError
from basedsl_cute.device import driver
from basedsl_cute.device.graph import Graph
from basedsl_cute.dsl import findings


@pytest.fixture
def no_driver(monkeypatch):
    monkeypatch.setattr(driver, "has_library", lambda: False)
    monkeypatch.setattr(driver, "_bindings", lambda: None)
    monkeypatch.setattr(driver, "_initialised", lambda: None)
    # Where there is a GPU, an earlier test may have given this thread a context.
    monkeypatch.setattr(driver, "_thread", threading.local())


class PretendedBindings:
    """`cuda.bindings.driver` with functions that all return one code; its types are the real ones.

    `said` is what a function raises instead, as the bindings do that do not fit the driver.
    """

    def __init__(self, code, said=None):
        self.code, self.said = bindings.CUresult(code), said

    def __getattr__(self, name):
        if not name.startswith("cu"):
            return getattr(bindings, name)
        return self._call

    def _call(self, *_):
        if self.said is not None:
            raise self.said
        return (self.code,)

    def cuGetErrorString(self, code):
        assert isinstance(code, bindings.CUresult)
        return bindings.CUresult.CUDA_SUCCESS, b"no CUDA-capable device is detected"


def pretend(monkeypatch, pretended, initialised):
    monkeypatch.setattr(driver, "_bindings", lambda: pretended)
    monkeypatch.setattr(driver, "_initialised", lambda: initialised)


def fails_without_cuda(program):
    """A process that fails if `program` imports anything of cuda-python."""
    program += "\nimport sys\nsys.exit(sorted(m for m in sys.modules if m.startswith('cuda')) or 0)"
    environment = {**os.environ, "CUTE_DSL_ARCH": "sim"}
    return subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )


def test_importing_imports_no_bindings():
    done = fails_without_cuda("import basedsl_cute, basedsl_cute.device.driver")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_simulator_imports_no_bindings(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(SIMULATED)
    done = fails_without_cuda(f"import runpy; runpy.run_path({str(file)!r})")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_machine_without_the_library_imports_no_bindings():
    program = "from basedsl_cute.device import driver\n"
    program += "driver._LIBRARY = 'no.such.library'\nassert not driver.is_available()"
    done = fails_without_cuda(program)
    assert (done.returncode, done.stderr) == (0, "")


SIMULATED = """
import numpy as np
import basedsl_cute as cute
from basedsl_cute.utils import HardwareInfo

@cute.kernel
def fill(x: cute.Tensor):
    x[cute.arch.thread_idx()[0]] = 1.0

@cute.jit
def host(x: cute.Tensor):
    fill(x).launch(grid=1, block=4)

x = np.zeros(4, np.float32)
host(x)
assert (x == 1).all() and HardwareInfo().get_device_multiprocessor_count() == 132
"""


def test_asking_for_a_gpu_without_a_driver(no_driver):
    assert not driver.is_available()
    assert driver.capability_or_none() is None
    wanted = "a GPU target needs a GPU driver, and (libcuda|nvcuda) was not found"
    for ask in (driver.require, driver.ensure_context, driver.device_count, driver.synchronize):
        with pytest.raises(DSLRuntimeError, match=wanted) as no:
            ask()
        assert "CUTE_DSL_ARCH=sim" in no.value.hint
    with pytest.raises(DSLRuntimeError, match=r"^target sm_90a needs a GPU driver, and"):
        driver.require("target sm_90a")
    assert driver.describe_error(3) == ("error 3", "error 3")


def test_a_driver_without_bindings(monkeypatch, caplog):
    monkeypatch.setattr(driver, "has_library", lambda: True)
    monkeypatch.setitem(sys.modules, "cuda.bindings", None)
    for name in ("_bindings", "_initialised"):
        monkeypatch.setattr(driver, name, getattr(driver, name).__wrapped__)
    assert not driver.is_available() and not driver.has_bindings()
    assert "no GPU is used: pip install 'basedsl-cute[cuda]'" in caplog.text
    with pytest.raises(DSLRuntimeError, match=r"needs cuda\.bindings") as no:
        driver.require("target sm_90a")
    assert no.value.hint.startswith("pip install 'basedsl-cute[cuda]'")
    gpu = next(finding for finding in findings._devices() if finding.name == "GPU")
    assert (gpu.state, gpu.todo) == ("optional", "pip install 'basedsl-cute[cuda]'")


def test_a_driver_without_a_device(monkeypatch):
    pretend(monkeypatch, PretendedBindings(100), 100)
    assert not driver.is_available()
    with pytest.raises(driver.DSLCudaRuntimeError, match="no CUDA-capable device") as no:
        driver.require()
    assert (no.value.error_code, no.value.error_name) == (100, "CUDA_ERROR_NO_DEVICE")


def test_errors_of_the_driver_carry_their_code(monkeypatch):
    pretend(monkeypatch, PretendedBindings(100), 0)
    with pytest.raises(driver.DSLCudaRuntimeError, match="cuCtxSynchronize: CUDA_ERROR") as no:
        driver.call("cuCtxSynchronize")
    assert no.value.error_code == 100
    assert driver.describe_error(123456) == ("error 123456", "error 123456")


@pytest.mark.parametrize("said", [RuntimeError("cuX_v2 is not found"), KeyError(123456)])
def test_bindings_that_do_not_fit_the_driver(monkeypatch, said):
    pretend(monkeypatch, PretendedBindings(0, said), 0)
    with pytest.raises(DSLRuntimeError, match="not fit the driver, in cuCtxSynchronize: ") as no:
        driver.call("cuCtxSynchronize")
    assert "update the driver" in no.value.hint


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
    of = bindings.CUfunction_attribute
    assert driver.MAX_DYNAMIC_SMEM == of.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    assert driver.SMEM_CARVEOUT == of.CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT
    assert driver.NON_PORTABLE_CLUSTER == of.CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED


# On a GPU ----------------------------------------------------------------------------------------

# Stores a number in device memory, by way of 64 bytes of static shared memory.
PUT = """
.version 8.0
.target sm_75
.address_size 64
.visible .entry put(.param .u64 address, .param .u32 value) {
  .reg .b64 %a;
  .reg .b32 %v;
  .shared .align 4 .b8 through[64];
  ld.param.u64 %a, [address];
  ld.param.u32 %v, [value];
  st.volatile.shared.u32 [through], %v;
  ld.volatile.shared.u32 %v, [through];
  cvta.to.global.u64 %a, %a;
  st.global.u32 [%a], %v;
  ret;
}
"""


@pytest.fixture
def put():
    library = driver.Library(PUT)
    yield library.kernel("put")
    library.unload()


@pytest.fixture
def stream():
    stream = driver.CudaStream()
    yield stream
    stream.destroy()


@pytest.fixture
def word():
    """The address of four bytes of device memory."""
    address = driver.allocate(4)
    yield address
    driver.free(address)


def in_a_new_thread(work):
    """The result of `work` in a thread that has no context yet."""
    found = []
    thread = threading.Thread(target=lambda: found.append(work()))
    thread.start()
    thread.join()
    return found[0]


def launch_put(kernel, word, value, stream):
    """Native code launches like this: a function of the driver called by its address."""
    kinds = [ctypes.c_void_p, *[ctypes.c_uint] * 7, *[ctypes.c_void_p] * 3]
    function = ctypes.CFUNCTYPE(ctypes.c_int, *kinds)(driver.address_of("cuLaunchKernel"))
    address, value = ctypes.c_uint64(word), ctypes.c_uint32(value)
    values = (ctypes.c_void_p * 2)(ctypes.addressof(address), ctypes.addressof(value))
    assert function(kernel.handle, 1, 1, 1, 1, 1, 1, 0, stream.handle, values, None) == 0


def read(word):
    value = np.zeros(1, np.uint32)
    driver.copy_to_host(value.ctypes.data, word, value.nbytes)
    return int(value[0])


@pytest.mark.gpu
def test_a_real_device():
    assert driver.is_available() and driver.driver_version() >= driver.MINIMUM_VERSION
    driver.set_device(0)
    assert driver.current_device() == 0
    here = driver.device(0)
    assert here.name and "\0" not in here.name
    assert here.capability >= (7, 5) and here.multiprocessors > 0
    assert here.max_threads_per_block == 1024 and here.max_block == (1024, 1024, 64)
    assert here.max_grid == (2**31 - 1, 65535, 65535)
    assert here.smem_per_multiprocessor > here.smem_per_block >= 48 * 1024
    assert here.l2_cache >= 2**20
    assert driver.capability_or_none() == here.capability
    driver.synchronize()


@pytest.mark.gpu
def test_a_new_thread_gets_a_context():
    driver.ensure_context()
    assert not driver.give_context()
    assert in_a_new_thread(driver.give_context)

    def work():
        driver.ensure_context()
        driver.synchronize()
        return driver.give_context()

    assert in_a_new_thread(work) is False


@pytest.mark.gpu
def test_errors_of_a_real_driver():
    assert driver.describe_error(719) == ("CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure")
    with pytest.raises(driver.DSLCudaRuntimeError, match="cuDeviceGet: CUDA_ERROR_INVALID_DEVICE"):
        driver.set_device(driver.device_count())
    with pytest.raises(DSLRuntimeError, match="the driver has no cuNothing"):
        driver.address_of("cuNothing")


@pytest.mark.gpu
def test_memory_travels_there_and_back(stream):
    source = np.arange(1000, dtype=np.float32)
    target = np.zeros_like(source)
    memory = driver.allocate(source.nbytes)
    start, end = driver.DriverEvent(), driver.DriverEvent()
    try:
        start.record(stream)
        driver.copy_to_device(memory, source.ctypes.data, source.nbytes)
        end.record(stream)
        end.synchronize()
        assert 0 <= end.milliseconds_since(start) < 1000
        stream.synchronize()
        driver.copy_to_host(target.ctypes.data, memory, target.nbytes)
    finally:
        driver.free(memory)
        start.destroy()
        end.destroy()
    np.testing.assert_array_equal(source, target)


@pytest.mark.gpu
def test_a_kernels_attributes(put):
    here = driver.device(driver.current_device())
    assert put.attribute("static_smem") >= 64
    assert 0 < put.attribute("registers") <= 255 and put.attribute("local_bytes") == 0
    assert 32 <= put.attribute("max_threads", here.number) <= here.max_threads_per_block
    put.set_attribute(driver.MAX_DYNAMIC_SMEM, 60 * 1024)
    put.set_attribute(driver.SMEM_CARVEOUT, 100, here.number)
    with pytest.raises(driver.DSLCudaRuntimeError, match="cuKernelSetAttribute: CUDA_ERROR"):
        put.set_attribute(driver.MAX_DYNAMIC_SMEM, here.smem_per_block + 1)
    if here.capability >= (9, 0):
        put.set_attribute(driver.NON_PORTABLE_CLUSTER, 1)
        assert 0 < put.active_clusters(2, 128, 60 * 1024) <= here.multiprocessors * 16


@pytest.mark.gpu
def test_native_code_launches_and_a_graph_repeats_it(put, word, stream):
    launch_put(put, word, 7, stream)
    stream.synchronize()
    assert read(word) == 7
    with Graph.capture(stream, lambda: launch_put(put, word, 8, stream)) as graph:
        driver.synchronize()
        assert read(word) == 7
        graph.launch(stream)
        stream.synchronize()
        assert read(word) == 8


@pytest.mark.gpu
def test_addresses_of_functions():
    driver.set_device(0)
    number = ctypes.c_int(-1)
    function = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)(driver.address_of("cuCtxGetDevice"))
    assert function(ctypes.addressof(number)) == 0 and number.value == 0
    for name in ("cuLaunchKernelEx", "cuTensorMapEncodeTiled", "cuLibraryLoadData"):
        assert driver.address_of(name) > 0


@pytest.mark.gpu
def test_ptx_that_the_driver_refuses_is_quoted():
    with pytest.raises(driver.DSLCudaRuntimeError, match="loading a kernel: cuLibrary") as no:
        ptx = ".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k() { wrong; }"
        driver.Library(ptx).kernel("k")  # drivers that load lazily look at it only now
    assert "ptxas" in no.value.message.partition("\n")[2]


def test_the_driver_is_called_through_its_bindings_alone():
    """Only the question whether its library is there is asked without them."""
    package = Path(driver.__file__).parents[1]
    opening = re.compile(r"\b(?:CDLL|WinDLL|LoadLibrary|dlopen|find_library)\(")
    found = [
        (path.relative_to(package).as_posix(), line.strip())
        for path in package.rglob("*.py")
        for line in path.read_text(encoding="utf-8").splitlines()
        if opening.search(line)
    ]
    assert found == [("device/driver.py", "ctypes.CDLL(_LIBRARY)")]
