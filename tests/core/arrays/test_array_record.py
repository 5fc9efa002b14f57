"""Arrays of other libraries, read without copying."""

from __future__ import annotations

import gc
import sys
import types
import weakref

import ml_dtypes
import numpy as np
import pytest

from basedsl.arrays import array_record
from basedsl.arrays.array_record import CPU, CUDA, CUDA_HOST, CUDA_MANAGED, ArrayRecord
from basedsl.errors import DSLTypeError
from basedsl.numeric import from_dlpack, from_numpy_dtype


class Producer:
    """Anything with `__dlpack__`; `calls` are the keyword arguments it got."""

    def __init__(self, array, device=(1, 0)):
        self.array = array
        self.device = device
        self.calls = []

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **arguments):
        self.calls.append(dict(arguments))
        arguments.pop("stream", None)
        return self.array.__dlpack__(**arguments)


class OldProducer(Producer):
    """A tensor of before DLPack 1.0: no `max_version`."""

    def __dlpack__(self, *, stream=None):
        self.calls.append({"stream": stream})
        return self.array.__dlpack__()


@pytest.mark.parametrize("wrap", [lambda a: a, Producer, OldProducer], ids=["numpy", "new", "old"])
@pytest.mark.parametrize(
    "make",
    [
        lambda: np.zeros((3, 4), np.float32),
        lambda: np.zeros((3, 4), np.float32, order="F"),
        lambda: np.zeros((6, 8), np.int16)[::2, 1::3],
        lambda: np.zeros((4, 4), np.float64)[::-1],
        lambda: np.zeros((0, 4), np.uint8),
        lambda: np.array(3, np.int64),
        lambda: np.zeros(5, bool),
        lambda: np.broadcast_to(np.zeros(1, np.float32), (7,)).copy()[:0],
    ],
)
def test_memory_layout(make, wrap):
    array = make()
    tensor = ArrayRecord.of(wrap(array))
    assert tensor.address == array.ctypes.data or array.size == 0
    assert tensor.shape == array.shape
    if array.size:
        assert tensor.strides == tuple(s // array.itemsize for s in array.strides)
    assert from_dlpack(*tensor.dtype) is from_numpy_dtype(array.dtype)
    assert (tensor.device, tensor.device_name, tensor.is_on_gpu) == ((CPU, 0), "cpu", False)


@pytest.mark.parametrize(
    "dtype",
    [
        *[np.dtype(t) for t in "bhilqBHILQefd?"],
        np.dtype(ml_dtypes.bfloat16),
        np.dtype(ml_dtypes.float8_e4m3fn),
        np.dtype(ml_dtypes.float8_e5m2),
        np.dtype(ml_dtypes.float8_e8m0fnu),
    ],
    ids=str,
)
def test_element_types(dtype):
    assert from_dlpack(*ArrayRecord.of(np.zeros(3, dtype)).dtype) is from_numpy_dtype(dtype)


def test_read_only_arrays_are_marked():
    array = np.zeros(4, np.float32)
    assert not ArrayRecord.of(array).readonly
    array.flags.writeable = False
    assert ArrayRecord.of(array).readonly
    assert ArrayRecord.of(Producer(array)).readonly


def test_broadcast_strides_are_zero():
    tensor = ArrayRecord.of(np.broadcast_to(np.zeros(3, np.float32), (5, 3)))
    assert tensor.strides == (0, 1) and tensor.readonly


@pytest.mark.parametrize("wrap", [lambda a: a, Producer], ids=["numpy", "dlpack"])
def test_the_array_lives_as_long_as_the_record(wrap):
    class Array(np.ndarray):
        pass

    array = np.zeros(4, np.float32).view(Array)
    gone = weakref.ref(array)
    tensor = ArrayRecord.of(wrap(array))
    del array
    gc.collect()
    assert gone() is not None
    del tensor
    gc.collect()
    assert gone() is None


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.zeros(3, ">f4"), "in another order"),
        (np.zeros(3, "U4"), "no counterpart"),
        (np.zeros(3, object), "no counterpart"),
        (np.zeros(4, [("a", "u1"), ("b", "<f4")])["b"], "no multiples of its 4-byte elements"),
    ],
)
def test_arrays_that_no_tensor_describes(value, message):
    with pytest.raises(DSLTypeError, match=message):
        ArrayRecord.of(value, "a")


@pytest.mark.parametrize("value", [3, "x", [1, 2], np.float32(1), None, np.ndarray, Producer])
def test_what_is_no_array(value):
    assert not ArrayRecord.can_read(value)
    with pytest.raises(DSLTypeError, match=r"'a' is an? .*, not an array") as refused:
        ArrayRecord.of(value, "a")
    assert "__dlpack__" in refused.value.hint


def test_a_producer_that_fails_is_quoted():
    class Refuses(Producer):
        def __dlpack__(self, **_):
            raise BufferError("not while it is mapped")

    assert ArrayRecord.can_read(Refuses(None))
    with pytest.raises(DSLTypeError, match=r"'a' cannot be read: .* not while it is mapped"):
        ArrayRecord.of(Refuses(None), "a")


def test_a_producer_of_something_else():
    class Odd(Producer):
        def __dlpack__(self, **_):
            return 42

    with pytest.raises(DSLTypeError, match="no DLPack capsule"):
        ArrayRecord.of(Odd(None))


def test_the_newest_version_is_asked_for():
    producer = Producer(np.zeros(3))
    ArrayRecord.of(producer)
    assert producer.calls == [{"max_version": (1, 1)}]


def test_devices_order_their_work_before_the_default_stream():
    producer = Producer(np.zeros(3), device=(CUDA, 2))
    ArrayRecord.of(producer)
    assert producer.calls[0]["stream"] == 1


def test_many_records_leak_nothing():
    array = np.zeros(1000, np.float32)
    before = sys.getrefcount(array)
    for _ in range(100):
        ArrayRecord.of(Producer(array))
    gc.collect()
    assert sys.getrefcount(array) == before


@pytest.mark.parametrize(
    ("device", "name", "is_on_gpu"),
    [
        ((CPU, 0), "cpu", False),
        ((CUDA, 1), "cuda:1", True),
        ((CUDA_HOST, 0), "cpu", False),
        ((CUDA_MANAGED, 0), "cuda:0", True),
        ((10, 3), "rocm:3", False),
        ((99, 0), "device type 99:0", False),
    ],
)
def test_device_names(device, name, is_on_gpu):
    tensor = ArrayRecord(0, (2, 32, 1), (), (), device)
    assert (tensor.device_name, tensor.is_on_gpu) == (name, is_on_gpu)


def test_numpy_addresses_the_slow_way():
    array = np.zeros((3, 4))[1:, 2:]
    assert array_record._slow_numpy_address(array) == ArrayRecord.of(array).address


# PyTorch and CuPy --------------------------------------------------------------------------------


class FakeDevice:
    def __init__(self, type, index=None):
        self.type, self.index = type, index

    def __str__(self):
        return self.type


class FakeTensor:
    """The attributes that are read of a torch.Tensor."""

    requires_grad = False
    layout = "torch.strided"
    is_nested = False
    dtype = "torch.bfloat16"
    shape = (2, 3)

    def __init__(self, device):
        self.device = device

    def data_ptr(self):
        return 0x1000

    def stride(self):
        return (3, 1)

    def is_neg(self):
        return False


@pytest.fixture
def fake_torch(monkeypatch):
    module = types.ModuleType("torch")
    module.Tensor = FakeTensor
    module.is_grad_enabled = lambda: True
    monkeypatch.setitem(sys.modules, "torch", module)
    array_record._reader.cache_clear()
    yield
    array_record._reader.cache_clear()


def test_torch_tensors_are_read_through_their_attributes(fake_torch):
    tensor = ArrayRecord.of(FakeTensor(FakeDevice("cuda", 1)))
    assert (tensor.address, tensor.dtype) == (0x1000, (4, 16, 1))
    assert (tensor.shape, tensor.strides) == ((2, 3), (3, 1))
    assert tensor.device_name == "cuda:1"


@pytest.mark.parametrize(
    ("attribute", "value", "message"),
    [
        ("requires_grad", True, "'a' requires grad"),
        ("is_nested", True, "'a' is nested"),
        ("layout", "torch.sparse_coo", "'a' has the layout torch.sparse_coo"),
        ("device", FakeDevice("meta"), "'a' is on device meta"),
        ("dtype", "torch.quint8", "no counterpart"),
        ("dtype", "torch.complex64", "no counterpart"),
        ("is_neg", lambda: True, "a view that negates"),
    ],
)
def test_torch_tensors_that_kernels_cannot_take(fake_torch, attribute, value, message):
    tensor = FakeTensor(FakeDevice("cpu"))
    setattr(tensor, attribute, value)
    with pytest.raises(DSLTypeError, match=message):
        ArrayRecord.of(tensor, "a")


def test_real_torch_tensors():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    tensor = torch.zeros((4, 6), dtype=torch.bfloat16)[::2, 1:]
    read = ArrayRecord.of(tensor)
    assert (read.address, read.shape, read.strides) == (tensor.data_ptr(), (2, 5), (12, 1))
    assert read.dtype == (4, 16, 1)
    with pytest.raises(DSLTypeError, match="requires grad"):
        ArrayRecord.of(torch.zeros(3, requires_grad=True))
    with pytest.raises(DSLTypeError, match="a view that negates"):
        ArrayRecord.of(torch.ones(3, dtype=torch.complex64).conj().imag)


def test_cupy_arrays_are_read_through_their_attributes():
    array = types.SimpleNamespace(
        data=types.SimpleNamespace(ptr=0x2000),
        dtype=np.dtype(np.float16),
        shape=(4, 2),
        strides=(16, 2),
        device=types.SimpleNamespace(id=3),
    )
    kind = type("ndarray", (), {"__module__": "cupy._core.core"})
    assert array_record._reader(kind) is array_record._read_cupy
    read = array_record._read_cupy(array, "")
    assert (read.address, read.strides, read.device_name) == (0x2000, (8, 1), "cuda:3")
