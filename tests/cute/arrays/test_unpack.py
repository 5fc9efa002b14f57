"""Native unpackers of tensors take what the argument type takes, and store what `pack` does."""

from __future__ import annotations

import ctypes
import itertools
import struct
import threading

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLError
from basedsl.numeric import Float32, Int8
from basedsl_cute import runtime
from basedsl_cute.arrays import placeholders, unpack
from basedsl_cute.device import driver
from basedsl_cute.host.stream import StreamArgument
from basedsl_cute.host.tensor_argument import TensorArgument, pointer_argument, tensor_argument

_FUNCTION = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p)


def taken(unpacker, value, size):
    """The slots after unpacking, as bytes, or None if the value was declined."""
    stored = ctypes.create_string_buffer(size)
    data = (ctypes.c_int64 * len(unpacker.data))(*unpacker.data)
    ok = _FUNCTION(unpacker.address)(value, ctypes.addressof(stored), ctypes.addressof(data))
    return stored.raw if ok else None


def packed(argument, value):
    """The slots that Python makes; None where a number does not fit the other type's layout."""
    try:
        return unpack.as_bytes(argument.storage, argument.pack(value))
    except struct.error:
        return None


def accepts(argument, value):
    try:
        return argument.accepts(value, "a")
    except DSLError:
        return False


def check(argument, value):
    """Both unpackers of a type on a value, against Python."""
    size = 8 * len(argument.storage)
    exact = taken(argument.unpacker(), value, size)
    same = type_of(value) == argument
    assert (exact is not None) == same, (str(argument), type_of(value))
    found = taken(argument.accepting_unpacker(), value, size)
    fits = accepts(argument, value) and packed(argument, value) is not None
    assert (found is not None) == fits, (str(argument), type_of(value))
    for slots in (exact, found):
        assert slots is None or slots == packed(argument, value)


def type_of(value):
    try:
        return tensor_argument(value, None, "a")
    except DSLError:
        return None


def read_only(array):
    array.flags.writeable = False
    return array


def numpy_arrays():
    base = np.zeros(64, np.float32)
    start = -(base.ctypes.data // 4) % 4  # 16-byte aligned from here on
    plain = base[start:]
    strided = np.lib.stride_tricks.as_strided
    huge = np.lib.stride_tricks.as_strided(plain, (65536, 65536), (65536 * 4, 4))
    return [
        plain[:12],
        plain[1:12],
        plain[2:12],
        plain[4:12],
        plain[:0],
        plain[:12:2],
        plain[11::-1],
        plain[:12].view(np.int32),
        plain[:12].view(np.int8),
        plain[:12].view(np.float64),
        plain[:12].view(">f4"),
        read_only(plain[:12].copy()),
        plain[0].reshape(()),
        *(plain[:12].reshape(shape) for shape in ((3, 4), (12, 1), (1, 12), (2, 3, 2), (1, 1, 12))),
        plain[:12].reshape(3, 4).T,
        plain[:12].reshape(3, 4)[:, ::2],
        plain[:12].reshape(3, 4)[:, :1],
        plain[:1].reshape(1, 1),
        strided(plain, (3, 4), (4, 4)),
        strided(plain, (3, 4), (0, 0)),
        strided(plain, (3, 4), (0, 4)),
        strided(plain, (1, 4), (2**40, 4)),
        strided(plain.view(np.int8), (3,), (1,))[1:].view(np.int8),
        strided(plain, (3,), (6,)),
        huge,
        huge[:, :16384],
        huge[:8193, :],
        strided(plain, (2**31, 1), (4, 4)),
        strided(plain, (0, 2**31), (4, 4)),
        strided(plain, (2**31 - 1,), (4,)),
        strided(plain, (2**16, 2**15), (0, 4)),  # one coordinate more than 31 bits count
        strided(plain, (2**16, 2**15 - 1), (0, 4)),
        strided(plain, (2**16, 0, 2**16), (0, 4, 0)),
    ]


def test_every_array_against_the_type_of_every_other():
    arrays = numpy_arrays()
    types = [one for one in map(type_of, arrays) if one is not None]
    assert len(types) > 25
    for argument, value in itertools.product(types, arrays):
        check(argument, value)


def from_dlpack_tensors():
    plain = np.zeros(16, np.float32)
    matrix = plain.reshape(4, 4)
    recast = runtime.from_dlpack(plain)
    recast.element_type = runtime.from_dlpack(plain.view(np.int32)).element_type
    return [
        runtime.from_dlpack(plain),
        runtime.from_dlpack(plain, assumed_align=4),
        runtime.from_dlpack(plain[:8]),
        runtime.from_dlpack(plain).mark_layout_dynamic(),
        runtime.from_dlpack(matrix).mark_layout_dynamic(),
        runtime.from_dlpack(matrix).mark_compact_shape_dynamic(0, divisibility=4),
        runtime.from_dlpack(matrix[:2]).mark_compact_shape_dynamic(0, divisibility=2),
        runtime.from_dlpack(matrix[:3]).mark_compact_shape_dynamic(0),
        recast,
    ]


def test_tensors_with_promises_against_the_types_of_all():
    values = [*from_dlpack_tensors(), *numpy_arrays()[:4], np.zeros((4, 4), np.float32)]
    for argument, value in itertools.product(map(type_of, values), values):
        check(argument, value)
        check(argument, value)  # what was kept of the first time


def test_a_mark_after_a_call_counts():
    value = runtime.from_dlpack(np.zeros((4, 4), np.float32))
    argument = type_of(value)
    unpacker = argument.unpacker()
    assert taken(unpacker, value, 8) == packed(argument, value)
    value.mark_layout_dynamic()
    assert taken(unpacker, value, 8) is None


def test_a_placeholder_takes_what_it_promises(monkeypatch):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sim")
    rows = runtime.make_fake_compact_tensor
    fake = rows(Float32, (placeholders.SymInt(divisibility=4), 4), stride_order=(1, 0))
    argument = type_of(fake)
    for value in (np.zeros((8, 4), np.float32), np.zeros((6, 4), np.float32), *numpy_arrays()):
        found = taken(argument.accepting_unpacker(), value, 64)
        assert (found is not None) == accepts(argument, value)


@pytest.mark.parametrize("value", [None, 1, "text", (), object(), np.float32(1)])
def test_other_values_are_declined(value):
    argument = type_of(np.zeros(4, np.float32))
    for unpacker in (argument.unpacker(), argument.accepting_unpacker()):
        assert taken(unpacker, value, 24) is None


def test_a_subclass_of_arrays_goes_through_python():
    class Sub(np.ndarray):
        pass

    value = np.zeros((3, 4), np.float32).view(Sub)
    check(type_of(value), value)


def test_any_gpu_is_any_of_the_gpus():
    assert unpack._device("cpu") == (1, -1)
    assert unpack._device("cuda:3") == (3 << 32 | 2, -1)
    assert unpack._device("cuda") == (2, 0xFFFFFFFF)


# PyTorch -----------------------------------------------------------------------------------------


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="PyTorch is not installed")


def test_pytorch_tensors_against_the_types_of_all(torch):
    base = torch.zeros(64)
    tensors = [
        base[:12],
        base[1:12],
        base[2:12],
        base[:0],
        base[:12:2],
        base[:12].reshape(3, 4),
        base[:12].reshape(3, 4).T,
        base[:12].reshape(12, 1),
        base[:12].reshape(1, 12),
        base[0],
        base[:1].expand(3, 4),
        base.as_strided((4, 4), (1, 1)),
        torch.zeros(12, requires_grad=True),
        torch.eye(3).to_sparse(),
        torch.nn.Parameter(torch.zeros(12)),
        torch.nn.Parameter(torch.zeros(12), requires_grad=False),
    ]
    names = ["float16", "bfloat16", "float64", "int8", "uint8", "int32", "int64", "bool"]
    names += ["float8_e4m3fn", "float8_e5m2", "uint32"]
    tensors += [torch.zeros(12, dtype=getattr(torch, name)) for name in names]
    values = [*tensors, *numpy_arrays()]
    types = [one for one in map(type_of, values) if one is not None]
    for argument, value in itertools.product(types, values):
        check(argument, value)


def test_pytorch_tensors_that_require_gradients_while_none_are_recorded(torch):
    tensors = [torch.zeros(12, requires_grad=True), torch.nn.Parameter(torch.zeros(12))]
    for value in tensors:
        with torch.no_grad():
            argument = type_of(value)
            check(argument, value)
            assert taken(argument.accepting_unpacker(), value, 24) is not None
        assert taken(argument.accepting_unpacker(), value, 24) is None
        with torch.inference_mode():
            check(argument, value)


def test_pytorch_without_the_exchange_api_goes_through_python(torch, monkeypatch):
    monkeypatch.setattr(unpack, "dlpack_exchange_function", lambda kind: None)
    value = torch.zeros(3, 4)
    check(type_of(value), value)


# Pointers, streams -------------------------------------------------------------------------------


def test_pointers():
    data = np.zeros(64, np.float32)
    address = data.ctypes.data // 16 * 16 + 16
    pointers = [
        runtime.make_ptr(Float32, address, "gmem"),
        runtime.make_ptr(Float32, address + 16, "gmem"),
        runtime.make_ptr(Float32, address, "gmem", assumed_align=16),
        runtime.make_ptr(Float32, address),
        runtime.make_ptr(Int8, address, "gmem", assumed_align=4),
    ]
    for one, value in itertools.product(pointers, pointers):
        argument = pointer_argument(one, "p")
        exact = taken(argument.unpacker(), value, 8)
        assert (exact is not None) == (pointer_argument(value, "p") == argument)
        found = taken(argument.accepting_unpacker(), value, 8)
        assert (found is not None) == accepts(argument, value)
        assert {exact, found} <= {None, value.address.to_bytes(8, "little")}
    assert taken(pointer_argument(pointers[0], "p").unpacker(), data, 8) is None


def test_streams():
    class Stream:
        def __cuda_stream__(self):
            return 0, 0x1234

    unpacker = StreamArgument().unpacker()
    assert taken(unpacker, Stream(), 8) == (0x1234).to_bytes(8, "little")
    assert taken(unpacker, 5, 8) is None
    assert taken(unpacker, None, 8) is None


def test_without_native_code_there_is_no_unpacker(monkeypatch):
    monkeypatch.setattr(unpack, "_code", lambda: None)
    argument = type_of(np.zeros(4, np.float32))
    assert isinstance(argument, TensorArgument)
    assert argument.unpacker() is None


def test_a_context_is_given_once(monkeypatch):
    contexts = []
    monkeypatch.setattr(driver, "_thread", threading.local())
    monkeypatch.setattr(driver, "_current_context", lambda: len(contexts))
    monkeypatch.setattr(driver, "_primary_context", lambda number: 7)
    monkeypatch.setattr(driver, "call", lambda name, context: contexts.append((name, context)))
    assert driver.give_context()
    assert not driver.give_context()
    assert contexts[0][0] == "cuCtxSetCurrent"


@cute.kernel
def fill(x: cute.Tensor):
    x[0, cute.arch.thread_idx()[0]] = 1.0


@cute.jit
def fill_row(x: cute.Tensor):
    fill(x).launch(grid=1, block=4)


def test_the_stride_of_one_row_may_be_of_any_size():
    for stride in (2**34, 16, -(2**40), 2**34, 2**31 * 4, 16):
        row = np.zeros(4, np.float32)
        fill_row(np.lib.stride_tricks.as_strided(row, (1, 4), (stride, 4)))
        assert (row == 1).all(), stride
