"""Calls of host code that launches on a GPU, without Python: with a pretended driver, and a GPU."""

from __future__ import annotations

import ctypes
import gc
import threading

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.arrays.array_record import CUDA, ArrayRecord
from basedsl.errors import DSLCallError, DSLRuntimeError
from basedsl.native_call.runtime import runtime as native_runtime
from basedsl_cute import runtime
from basedsl_cute.arrays.tensor import HostPointer, HostTensor
from basedsl_cute.device import driver, gpu_launcher

N = 64


@cute.kernel
def add_kernel(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor):
    i, _, _ = cute.arch.thread_idx()
    c[i] = a[i] + b[i]


def add(a, b, c):
    add_kernel(a, b, c).launch(grid=[1, 1, 1], block=[N, 1, 1])


def add_blocks(a, b, c, blocks):
    add_kernel(a, b, c).launch(grid=[blocks, 1, 1], block=[N, 1, 1])


def add_on(a, b, c, stream):
    add_kernel(a, b, c).launch(grid=[1, 1, 1], block=[N, 1, 1], stream=stream)


@cute.kernel
def fill_kernel(p: cute.Pointer):
    i, _, _ = cute.arch.thread_idx()
    cute.make_tensor(p, cute.make_layout(N))[i] = 1.0


def fill(p):
    fill_kernel(p).launch(grid=[1, 1, 1], block=[N, 1, 1])


class PretendedDriver:
    """A driver whose launches run a Python function of the kernel's pointers."""

    def __init__(self, monkeypatch):
        self.launches, self.results, self.contexts = [], [], []
        kind = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)
        self.function = kind(self.launch)
        address = ctypes.cast(self.function, ctypes.c_void_p).value
        device = driver.Device(
            0, "pretended", (9, 0), 132, 1024, (1024, 1024, 64), (2**31 - 1, 65535, 65535),
            232448, 233472, 0,
        )  # fmt: skip
        replaced = {
            "require": lambda target: None,
            "ensure_context": lambda: None,
            "give_context": self.give_context,
            "Library": lambda image: self,
            "device": lambda number: device,
            "current_device": lambda: 0,
            "address_of": lambda name: address,
            "describe_error": lambda code: (f"CUDA_ERROR_{code}", "said"),
        }
        for name, value in replaced.items():
            monkeypatch.setattr(driver, name, value)
        monkeypatch.setattr(gpu_launcher, "_allowed", set())
        monkeypatch.setenv("CUTE_DSL_ARCH", "sm_90")

    def give_context(self):
        self.contexts.append(threading.get_ident())
        return len(self.contexts) == 1

    def kernel(self, name):
        return driver.Kernel(name, 0x100, self)

    def launch(self, config, function, args, extra):
        result = self.results.pop(0) if self.results else 0
        stream = ctypes.c_uint64.from_address(config + 32).value
        self.launches.append((result, ctypes.c_uint32.from_address(config).value, stream))
        return result


@pytest.fixture
def gpu(monkeypatch):
    monkeypatch.setattr(driver.Kernel, "attribute", lambda self, name: 0)
    monkeypatch.setattr(driver.Kernel, "set_attribute", lambda self, which, value, number: None)
    return PretendedDriver(monkeypatch)


def on_gpu(shape=(N,), number=0, dtype=(2, 32, 1), address=0x10000):
    """A tensor that says it is on a GPU; nothing reads what is there."""
    strides = tuple(np.cumprod([1, *shape[:0:-1]])[::-1].tolist())
    return HostTensor(ArrayRecord(address, dtype, shape, strides, (CUDA, number)), None, False)


@pytest.fixture
def python_calls(monkeypatch):
    """Counts calls of compiled objects and functions that go through Python."""
    from basedsl.compiled import Compiled
    from basedsl.function import DSLFunction

    if native_runtime() is None:
        pytest.skip("there are no native calls here")
    count = []
    for kind in (Compiled, DSLFunction):

        def counting(self, *args, _call=kind._call, **kwargs):
            count.append(self)
            return _call(self, *args, **kwargs)

        monkeypatch.setattr(kind, "_call", counting)
    return count


def test_a_compiled_object(gpu, python_calls):
    values = [on_gpu() for _ in range(3)]
    compiled = cute.compile(cute.jit(add), *values)
    for _ in range(5):
        compiled(*values)
    assert len(python_calls) == 1
    assert [grid for _, grid, _ in gpu.launches] == [1] * 5
    other = [on_gpu((N,), address=0x20000 + 16 * i) for i in range(3)]
    compiled(*other)
    assert len(python_calls) == 1
    with pytest.raises(DSLCallError, match="'b' was compiled as"):
        compiled(values[0], on_gpu((N + 1,)), values[2])
    with pytest.raises(DSLCallError, match=r"it is on cuda:1"):
        compiled(values[0], on_gpu(number=1), values[2])
    with pytest.raises(DSLCallError, match="the elements are Int32"):
        compiled(values[0], on_gpu(dtype=(0, 32, 1)), values[2])
    assert len(gpu.launches) == 6


def test_an_undeclared_call_finds_the_variant(gpu, python_calls):
    function = cute.jit(add)
    values = [on_gpu() for _ in range(3)]
    for _ in range(2):
        function(*values)
    before = len(python_calls)
    for _ in range(4):
        function(*values)
    assert len(python_calls) == before
    values[1].mark_layout_dynamic()
    function(*values)  # another type: compiled
    assert len(python_calls) == before + 1
    assert len(gpu.launches) == 7


def test_one_compiled_with_placeholders(gpu, python_calls):
    rows = runtime.make_fake_compact_tensor(cute.Float32, (cute.sym_int(divisibility=4),))
    compiled = cute.compile(cute.jit(add), rows, rows, rows)
    for size in (4, 64, 128):
        compiled(*[on_gpu((size,)) for _ in range(3)])
    compiled(*[on_gpu((64,), number=2) for _ in range(3)])
    assert len(python_calls) == 1
    with pytest.raises(DSLCallError, match="no multiple of 4"):
        compiled(*[on_gpu((66,)) for _ in range(3)])


def test_pointers_and_streams(gpu, python_calls):
    class Stream:
        def __cuda_stream__(self):
            return 0, 0x77

    pointers = [HostPointer(cute.Float32, 0x1000 * i, "gmem", 16) for i in (1, 2)]
    compiled = cute.compile(cute.jit(fill), pointers[0])
    for one in pointers * 2:
        compiled(one)
    assert len(python_calls) == 1
    values = [on_gpu() for _ in range(3)]
    compiled = cute.compile(cute.jit(add_on), *values, Stream())
    for _ in range(3):
        compiled(*values, Stream())
    assert len(python_calls) == 2
    assert [stream for *_, stream in gpu.launches[-3:]] == [0x77] * 3


def test_a_failed_launch_raises_at_its_line(gpu, python_calls):
    values = [on_gpu() for _ in range(3)]
    compiled = cute.compile(cute.jit(add), *values)
    compiled(*values)
    for _ in range(2):
        gpu.results = [719]
        with pytest.raises(driver.DSLCudaRuntimeError, match="CUDA_ERROR_719") as caught:
            compiled(*values)
        assert caught.value.span.filename == __file__
        assert caught.value.span.line == add.__code__.co_firstlineno + 1
        compiled(*values)
    assert len(python_calls) == 1
    assert [result for result, *_ in gpu.launches] == [0, 719, 0, 719, 0]


def test_an_impossible_launch_raises_at_its_line(gpu, python_calls):
    values = [on_gpu() for _ in range(3)]
    compiled = cute.compile(cute.jit(add_blocks), *values, 1)
    compiled(*values, 1)
    with pytest.raises(DSLRuntimeError, match=r"has 0 in x") as caught:
        compiled(*values, 0)
    assert caught.value.span.line == add_blocks.__code__.co_firstlineno + 1
    compiled(*values, 3)
    assert len(python_calls) == 1
    assert [grid for _, grid, _ in gpu.launches] == [1, 3]


def test_a_thread_without_a_context_gets_one(gpu, python_calls):
    values = [on_gpu() for _ in range(3)]
    compiled = cute.compile(cute.jit(add), *values)
    compiled(*values)
    gpu.results = [201]
    thread = threading.Thread(target=compiled, args=values)
    thread.start()
    thread.join()
    assert gpu.contexts == [thread.ident]
    assert [result for result, *_ in gpu.launches] == [0, 201, 0]
    gpu.results = [201]  # with a context it is an error
    with pytest.raises(driver.DSLCudaRuntimeError):
        compiled(*values)
    assert len(python_calls) == 1


def test_failures_in_many_threads_stay_in_theirs(gpu, python_calls):
    values = [on_gpu() for _ in range(3)]
    compiled = cute.compile(cute.jit(add_blocks), *values, 1)
    compiled(*values, 1)
    wrong = []

    def work(blocks):
        for _ in range(200):
            try:
                compiled(*values, blocks)
                failed = False
            except DSLRuntimeError:
                failed = True
            if failed != (blocks == 0):
                wrong.append(blocks)

    threads = [threading.Thread(target=work, args=(i % 2,)) for i in range(6)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert wrong == []


def test_arrays_of_the_host_stay_in_python(gpu):
    arrays = [np.zeros(N, np.float32) for _ in range(3)]
    compiled = cute.compile(cute.jit(add), *arrays)
    assert getattr(compiled._invoke, "native", None) is None


def test_the_loaded_code_lives_as_long_as_its_calls(gpu):
    values = [on_gpu() for _ in range(3)]
    compiled = cute.compile(cute.jit(add), *values)
    compiled(*values)
    call = compiled.__call__
    del compiled
    gc.collect()
    call(*values)
    assert len(gpu.launches) == 2


# On a GPU ----------------------------------------------------------------------------------------


@pytest.fixture
def torch(monkeypatch):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    monkeypatch.delenv("CUTE_DSL_ARCH", raising=False)
    return torch


@pytest.mark.gpu
def test_pytorch_tensors_on_a_gpu(torch, python_calls):
    values = [torch.ones(N, device="cuda") for _ in range(3)]
    compiled, function = cute.compile(cute.jit(add), *values), cute.jit(add)
    compiled(*values)
    function(*values), function(*values)
    before = len(python_calls)
    for _ in range(3):
        values[0] += 1
        values[2].zero_()
        compiled(*values)
        assert torch.equal(values[2], values[0] + values[1])
        values[2].zero_()
        function(*values)
        assert torch.equal(values[2], values[0] + values[1])
    assert len(python_calls) == before
    with pytest.raises(DSLCallError, match="'a' was compiled as"):
        compiled(values[0].double(), *values[1:])


@pytest.mark.gpu
def test_a_new_thread_on_a_gpu(torch, python_calls):
    values = [torch.ones(N, device="cuda") for _ in range(3)]
    compiled = cute.compile(cute.jit(add), *values)
    compiled(*values)
    failures = []

    def work():
        try:
            compiled(*values)
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    torch.cuda.synchronize()
    assert failures == []
    assert len(python_calls) == 1


@pytest.mark.gpu
def test_an_impossible_launch_on_a_gpu(torch, python_calls):
    values = [torch.ones(N, device="cuda") for _ in range(3)]
    compiled = cute.compile(cute.jit(add_blocks), *values, 1)
    compiled(*values, 1)
    with pytest.raises(DSLRuntimeError, match="has 0 in x") as caught:
        compiled(*values, 0)
    assert caught.value.span.line == add_blocks.__code__.co_firstlineno + 1
