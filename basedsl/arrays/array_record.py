"""Arrays of other libraries as plain records: address, element type, shape, strides, device.

`ArrayRecord.of(x)` reads NumPy, PyTorch and CuPy arrays through their own attributes, which is
fast, and everything else through `__dlpack__` (DLPack 1.1, dlpack.h). Nothing is copied and no
array library is imported. NumPy's own `__dlpack__` refuses read-only arrays and the element types
of ml_dtypes; the direct way takes both.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from basedsl.errors import DSLTypeError, with_article

# dlpack.h: DLDeviceType
CPU, CUDA, CUDA_HOST, CUDA_MANAGED = 1, 2, 3, 13
_DEVICE_NAMES = {CPU: "cpu", CUDA: "cuda", CUDA_HOST: "cpu", CUDA_MANAGED: "cuda", 10: "rocm"}

# dlpack.h: DLDataTypeCode
_CONVERT = "convert the array to a type with one, for instance x.astype(np.float32)"
_KIND_CODES = {"i": 0, "u": 1, "f": 2, "b": 6}
_NAMED_TYPES = {
    "bfloat16": (4, 16, 1),
    "float8_e3m4": (7, 8, 1),
    "float8_e4m3": (8, 8, 1),
    "float8_e4m3b11fnuz": (9, 8, 1),
    "float8_e4m3fn": (10, 8, 1),
    "float8_e4m3fnuz": (11, 8, 1),
    "float8_e5m2": (12, 8, 1),
    "float8_e5m2fnuz": (13, 8, 1),
    "float8_e8m0fnu": (14, 8, 1),
    # PyTorch's names.
    "float4_e2m1fn_x2": (17, 4, 1),
    "half": (2, 16, 1),
    "float": (2, 32, 1),
    "double": (2, 64, 1),
    "bool": (6, 8, 1),
}

DType = tuple[int, int, int]


class UnreadableArray(DSLTypeError):
    """Raised for an array without memory of its own: PyTorch differentiates it, or JAX traces it.
    `library` is "torch" or "jax". A DSL that makes operations of that library has a better hint.
    """

    def __init__(self, message: str, library: str, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.library = library


class ArrayRecord:
    """The description of an array of another library, which it keeps alive as `owner`.

    `address` is that of the first element; `dtype` is DLPack's (code, bits, lanes); `shape` has the
    extent of each mode; `strides` count elements; `device` is DLPack's (type, id); `readonly` is
    True if the memory may not be written.
    """

    __dsl_leaf__ = True
    CPU, CUDA = CPU, CUDA
    __slots__ = ("address", "device", "dtype", "owner", "readonly", "shape", "strides")

    def __init__(
        self,
        address: int,
        dtype: DType,
        shape: tuple[int, ...],
        strides: tuple[int, ...],
        device: tuple[int, int] = (CPU, 0),
        readonly: bool = False,
        owner: Any = None,
    ) -> None:
        self.address = address
        self.dtype = dtype
        self.shape = shape
        self.strides = strides
        self.device = device
        self.readonly = readonly
        self.owner = owner

    @property
    def device_name(self) -> str:
        """The name of the device, `cpu` or `cuda:0`; pinned host memory is `cpu`."""
        kind, number = self.device
        name = _DEVICE_NAMES.get(kind, f"device type {kind}")
        return name if name == "cpu" else f"{name}:{number}"

    @property
    def is_on_gpu(self) -> bool:
        """True for device and managed memory of CUDA."""
        return self.device[0] in (CUDA, CUDA_MANAGED)

    def data_address(self, name: str) -> int:
        """The address, of the argument `name`. Raises DSLTypeError for an array without memory: a
        placeholder, or one that was freed.
        """
        if self.address == 0 and 0 not in self.shape:
            raise DSLTypeError(
                f"{_called(name)}has no data: its address is 0",
                hint="pass an array with memory; placeholders are for compile()",
            )
        return self.address

    @staticmethod
    def can_read(value: Any) -> bool:
        """True if `value` is an array: NumPy's, or an object (no class) with `__dlpack__`."""
        kind: Any = type(value)
        return _reader(kind) is not None

    @staticmethod
    def of(value: Any, name: str = "") -> ArrayRecord:
        """The record of the array `value`. Raises DSLTypeError, which names the argument `name`,
        for what is no array and for arrays that shape, strides and a known element type do not
        describe.
        """
        kind: Any = type(value)
        read = _reader(kind)
        if read is None:
            raise DSLTypeError(
                f"{_called(name)}is {with_article(type(value))}, not an array",
                hint="pass a NumPy, PyTorch, CuPy or JAX array: anything with __dlpack__",
            )
        return read(value, name)

    def __repr__(self) -> str:
        shape, strides = self.shape, self.strides
        where = self.device_name
        return f"ArrayRecord({self.address:#x}, {self.dtype}, {shape}:{strides}, {where})"


Reader = Callable[[Any, str], ArrayRecord]


@functools.lru_cache(maxsize=256)
def _reader(kind: Any) -> Reader | None:
    """The function that reads arrays of a class; None for other classes."""
    masked = sys.modules.get("numpy.ma")  # importing it takes longer than a warm start
    if masked is not None and issubclass(kind, getattr(masked, "MaskedArray", ())):
        return _refuse_masked
    if issubclass(kind, np.ndarray):
        return _read_numpy
    torch = sys.modules.get("torch")
    if torch is not None and issubclass(kind, torch.Tensor):
        return _read_torch
    if kind.__name__ == "ndarray" and kind.__module__.split(".")[0] == "cupy":
        return _read_cupy
    jax = sys.modules.get("jax")
    if jax is not None and issubclass(kind, jax.core.Tracer):
        return _refuse_jax_tracer
    if jax is not None and issubclass(kind, jax.Array):
        return _read_jax
    if kind is ArrayRecord:
        return _itself
    return _read_capsule if hasattr(kind, "__dlpack__") else None


def _called(name: str) -> str:
    return f"'{name}' " if name else "the argument "


# NumPy, PyTorch, CuPy ----------------------------------------------------------------------------


@functools.lru_cache(maxsize=256)
def _numpy_type(dtype: np.dtype[Any]) -> tuple[DType, int]:
    """DLPack's type of a NumPy dtype, and the bytes of an element."""
    if not dtype.isnative:
        native = dtype.newbyteorder("=")
        raise DSLTypeError(
            f"the elements are {dtype}, whose bytes are in another order than this machine's",
            hint=f"convert the array: x.astype('{native}')",
        )
    found = _NAMED_TYPES.get(dtype.name)
    if found is None:
        code = _KIND_CODES.get(dtype.kind)
        if code is None or dtype.itemsize not in (1, 2, 4, 8):
            raise DSLTypeError(
                f"elements of type {dtype} have no counterpart in a tensor", hint=_CONVERT
            )
        found = (code, dtype.itemsize * 8, 1)
    return found, dtype.itemsize


def _numpy_address(array: np.ndarray[Any, Any]) -> int:
    # The public ways cost 1 us and more. The first field of a NumPy array is its data pointer
    # (ndarraytypes.h, PyArrayObject_fields), which `_address_field_works` has checked.
    return ctypes.c_void_p.from_address(id(array) + object.__basicsize__).value or 0


def _slow_numpy_address(array: np.ndarray[Any, Any]) -> int:
    return int(array.ctypes.data)


def _address_field_works() -> bool:
    if sys.implementation.name != "cpython":
        return False
    probe = np.arange(6, dtype=np.int16).reshape(2, 3)[1:, ::2]
    return _numpy_address(probe) == probe.ctypes.data


if not _address_field_works():  # pragma: no cover - another Python or another NumPy
    _numpy_address = _slow_numpy_address


def _read_numpy(array: np.ndarray[Any, Any], name: str) -> ArrayRecord:
    dtype, size = _numpy_type(array.dtype)
    strides = array.strides
    if size != 1:
        if any([stride % size for stride in strides]):  # noqa: C419 - a list is faster here
            raise DSLTypeError(
                f"{_called(name)}has strides {strides} in bytes, no multiples of its {size}-byte "
                "elements",
                hint="copy it: numpy.ascontiguousarray(x)",
            )
        strides = tuple([stride // size for stride in strides])
    if 0 in array.shape and not any(strides):  # NumPy's strides of arrays without elements
        strides = _row_major(array.shape)
    readonly = not array.flags.writeable
    return ArrayRecord(
        _numpy_address(array), dtype, array.shape, strides, (CPU, 0), readonly, array
    )


def _refuse_masked(array: Any, name: str) -> ArrayRecord:
    raise DSLTypeError(
        f"{_called(name)}is a masked array, and compiled code takes no masks",
        hint="pass x.filled(...), or x.data and x.mask",
    )


@functools.lru_cache(maxsize=256)
def _torch_type(dtype: Any) -> DType:
    name = str(dtype).rpartition(".")[2]
    if name in _NAMED_TYPES:
        return _NAMED_TYPES[name]
    kind, bits = name.rstrip("0123456789"), name[len(name.rstrip("0123456789")) :]
    code = {"int": 0, "uint": 1, "float": 2}.get(kind)
    if code is None or not bits:
        raise DSLTypeError(
            f"elements of type {dtype} have no counterpart in a tensor", hint=_CONVERT
        )
    return code, int(bits), 1


def _read_torch(tensor: Any, name: str) -> ArrayRecord:
    if tensor.requires_grad and sys.modules["torch"].is_grad_enabled():
        raise UnreadableArray(
            f"{_called(name)}requires grad, and compiled code takes no part in differentiation",
            "torch",
            hint="pass x.detach(), or call it under torch.no_grad()",
        )
    if tensor.is_nested or str(tensor.layout) != "torch.strided":
        fact = "is nested" if tensor.is_nested else f"has the layout {tensor.layout}"
        raise DSLTypeError(
            f"{_called(name)}{fact}; a tensor needs strides",
            hint="pass x.to_padded_tensor(0)" if tensor.is_nested else "pass x.to_dense()",
        )
    if tensor.is_neg():  # x.conj().imag: the memory holds the negated values
        raise DSLTypeError(
            f"{_called(name)}is a view that negates the values in its memory",
            hint="pass x.resolve_neg()",
        )
    device = tensor.device
    kind = {"cpu": CPU, "cuda": CUDA}.get(device.type)
    if kind is None:
        raise DSLTypeError(
            f"{_called(name)}is on device {device}, where compiled code cannot reach it",
            hint="move it: x.cuda() or x.cpu()",
        )
    fake = type(tensor).__module__ == "torch._subclasses.fake_tensor"
    return ArrayRecord(
        0 if fake else tensor.data_ptr(),
        _torch_type(tensor.dtype),
        *_torch_extents(tensor, name),
        (kind, device.index or 0),
        owner=tensor,
    )


def _torch_extents(tensor: Any, name: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The shape and the strides, in elements: a `float4_e2m1fn_x2` of PyTorch is two of them."""
    shape, strides = tuple(tensor.shape), tuple(tensor.stride())
    if not str(tensor.dtype).endswith("_x2"):
        return shape, strides
    units = [i for i, d in enumerate(strides) if d == 1]
    leading = ([i for i in units if shape[i] > 1] or units or [-1])[-1]
    if leading < 0:
        raise DSLTypeError(
            f"{_called(name)}has pairs of elements in bytes, and no mode of stride 1",
            hint="copy it: x.contiguous()",
        )
    return (
        tuple(2 * n if i == leading else n for i, n in enumerate(shape)),
        tuple(d if i == leading else 2 * d for i, d in enumerate(strides)),
    )


def _read_cupy(array: Any, name: str) -> ArrayRecord:
    dtype, size = _numpy_type(array.dtype)
    return ArrayRecord(
        array.data.ptr,
        dtype,
        array.shape,
        tuple([stride // size for stride in array.strides]),
        (CUDA, array.device.id),
        owner=array,
    )


def _read_jax(array: Any, name: str) -> ArrayRecord:
    """The record of a JAX array: read-only, because JAX shares and caches its memory."""
    record = _read_capsule(array, name)
    record.readonly = True
    return record


def _refuse_jax_tracer(tracer: Any, name: str) -> ArrayRecord:
    raise UnreadableArray(
        f"{_called(name)}is traced by JAX, and has no memory yet",
        "jax",
        hint="call the function outside of jax.jit and jax.grad",
    )


def _itself(record: Any, name: str) -> ArrayRecord:
    found: ArrayRecord = record
    return found


# DLPack capsules ---------------------------------------------------------------------------------


class DLTensor(ctypes.Structure):
    """dlpack.h: DLTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class _DLManagedTensorVersioned(ctypes.Structure):
    """dlpack.h: DLManagedTensorVersioned."""

    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("manager_ctx", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
        ("flags", ctypes.c_uint64),
        ("tensor", DLTensor),
    )


_READ_ONLY_FLAG = 1
_LEGACY_DEFAULT_STREAM = 1  # of the array API's __dlpack__: the producer's work precedes it

_pointer_of = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_of.restype = ctypes.c_void_p
_pointer_of.argtypes = [ctypes.py_object, ctypes.c_char_p]
_is_valid = ctypes.pythonapi.PyCapsule_IsValid
_is_valid.restype = ctypes.c_int
_is_valid.argtypes = [ctypes.py_object, ctypes.c_char_p]


def _read_capsule(value: Any, name: str) -> ArrayRecord:
    try:
        capsule = _capsule_of(value)
    except Exception as error:  # code of another library
        raise DSLTypeError(
            f"{_called(name)}cannot be read: {type(value).__name__}.__dlpack__ says {error}"
        ) from error
    readonly = False
    if _is_valid(capsule, b"dltensor_versioned"):
        address = _pointer_of(capsule, b"dltensor_versioned")
        managed = _DLManagedTensorVersioned.from_address(address)
        if managed.major != 1:
            raise DSLTypeError(
                f"{_called(name)}uses DLPack {managed.major}.{managed.minor}; 1.x is supported"
            )
        readonly = bool(managed.flags & _READ_ONLY_FLAG)
        tensor = managed.tensor
    elif _is_valid(capsule, b"dltensor"):
        tensor = DLTensor.from_address(_pointer_of(capsule, b"dltensor"))
    else:
        raise DSLTypeError(f"{_called(name)}gave no DLPack capsule: {capsule!r}")
    shape = tuple(tensor.shape[: tensor.ndim])
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else _row_major(shape)
    return ArrayRecord(
        (tensor.data or 0) + tensor.byte_offset,
        (tensor.code, tensor.bits, tensor.lanes),
        shape,
        strides,
        (tensor.device_type, tensor.device_id),
        readonly,
        (value, capsule),  # a capsule that was not renamed frees its tensor when it is deleted
    )


def _capsule_of(value: Any) -> Any:
    arguments: dict[str, Any] = {}
    if int(value.__dlpack_device__()[0]) == CUDA:
        arguments["stream"] = _LEGACY_DEFAULT_STREAM
    try:
        return value.__dlpack__(max_version=(1, 1), **arguments)
    except TypeError:  # a producer older than DLPack 1.0
        return value.__dlpack__(**arguments)


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))
