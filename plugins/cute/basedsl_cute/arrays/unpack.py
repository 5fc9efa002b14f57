"""Native unpackers of array arguments: see `basedsl.native_call.unpackers`.

Native code, `unpack.c`, reads NumPy's arrays, and PyTorch's tensors where their class has DLPack's
exchange API. A Python callable reads other values, more slowly.
"""

from __future__ import annotations

import functools
import struct
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from basedsl import (
    ArrayRecord,
    DSLError,
    LoadedObject,
    Unpacker,
    arrays_supported,
    dlpack_exchange_function,
    from_dlpack,
    load_llvmir,
    python_unpacker,
    slot_format,
)

Pack = Callable[[Any], bytes | None]
_REQUIRES_GRAD = "requires_grad"
_READ_ONLY, _WRITABLE = 1, 2
_NARROW, _WIDE = 1, 2
_MAX_ALIGN = 16
_TYPE_BITS = 0xFFFF_FFFF
_MOST_MODES = 32


def as_bytes(formats: Sequence[str], values: Sequence[Any]) -> bytes:
    """Pack values into slots of these `struct` formats."""
    return _slots(tuple(formats)).pack(*values)


@functools.cache
def _slots(formats: tuple[str, ...]) -> struct.Struct:
    return struct.Struct(slot_format(formats))


def slots_unpacker(formats: Sequence[str], pack: Pack) -> Unpacker:
    """The unpacker that calls `pack(value)`: bytes of the slots, or None to decline."""
    return python_unpacker(pack, _slots(tuple(formats)).size)


@functools.cache
def _code() -> LoadedObject | None:
    try:
        return load_llvmir((Path(__file__).parent / "unpack.ll").read_text())
    except (DSLError, OSError, AttributeError, KeyError):
        return None


def tensor_unpacker(
    argument: Any,
    pack: Pack,
    *,
    exact: bool = False,
    leading: int | None = None,
    vector: int = 1,
) -> Unpacker | None:
    """The unpacker of arrays that code compiled for a `TensorArgument` takes; None without native
    code, and for more than 32 modes.

    With `exact` it takes only plain arrays whose argument type would be this one: `leading` is the
    mode with a static stride, `vector` the number that divides the other strides. `pack` gives the
    bytes of the slots for values of other classes, or None.
    """
    native, rank = _code(), len(argument.shape)
    if native is None or rank > _MOST_MODES:
        return None
    numpy_class, numpy_dtype, itemsize = _numpy(argument)
    torch_class, parameter_class, describe, records = _torch(argument)
    align = argument.align
    low, device_mask = _device(argument.device)
    code, bits, lanes = argument.dtype.dlpack
    # The type of a plain array has the array's own alignment, up to `_MAX_ALIGN`.
    mask = 2 * align - 1 if exact and align < _MAX_ALIGN else align - 1
    if exact:
        access = _WRITABLE if argument.writable else _READ_ONLY
        reach = _WIDE if argument.wide else _NARROW
    else:
        access = _WRITABLE | (0 if argument.writable else _READ_ONLY)
        reach = _NARROW | (_WIDE if argument.wide else 0)
    divisors = iter(argument.divisors)
    leaves: list[int] = []
    for known in (*argument.shape, *argument.stride):
        leaves += (0, next(divisors, 1)) if known is None else (1, known)
    data = (
        _address(numpy_class),
        id(numpy_dtype),
        itemsize,
        _address(torch_class),
        _address(parameter_class),
        describe,
        id(_REQUIRES_GRAD),
        _address(records),
        low,
        device_mask,
        lanes << 16 | bits << 8 | code,
        id(pack),
        rank,
        mask,
        align & mask,
        access,
        reach,
        8 if argument.wide else 4,
        int(exact),
        -1 if leading is None else leading,
        vector - 1,
        int(vector > 1 and not argument.divisors),
        *leaves,
    )
    keep = (numpy_class, numpy_dtype, torch_class, parameter_class, records, pack)
    return Unpacker(native.address_of("basedsl_cute_unpack_tensor"), data, keep)


def _device(name: str) -> tuple[int, int]:
    """DLPack's device as `unpack.c` compares it, and the mask of the compared bits."""
    kind, _, number = name.partition(":")
    word = int(number or 0) << 32 | {"cpu": ArrayRecord.CPU, "cuda": ArrayRecord.CUDA}.get(kind, 0)
    any_number = kind == "cuda" and not number
    return word, _TYPE_BITS if any_number else -1


def _numpy(argument: Any) -> tuple[Any, Any, int]:
    """NumPy's array class, the dtype and its size; None for a type that no array can have."""
    kind = argument.dtype.numpy_dtype
    if argument.device != "cpu" or kind is None or not arrays_supported():
        return None, None, 1
    dtype = np.dtype(kind)
    if not _stands_for(argument.dtype) or dtype.itemsize * 8 != argument.dtype.dlpack[1]:
        return None, None, 1
    return np.ndarray, dtype, dtype.itemsize


def _torch(argument: Any) -> tuple[Any, Any, int, Any]:
    """PyTorch's classes of tensors and of parameters, their exchange function, and the function
    that says whether gradients are recorded; None for a type that no tensor can have.
    """
    torch = sys.modules.get("torch")
    kind = getattr(torch, "Tensor", None)
    if torch is None or kind is None or not _stands_for(argument.dtype):
        return None, None, 0, None
    describe = dlpack_exchange_function(kind)
    if describe is None:
        return None, None, 0, None
    return kind, torch.nn.Parameter, describe, torch.is_grad_enabled


def _address(value: Any) -> int:
    return 0 if value is None else id(value)


def _stands_for(dtype: Any) -> bool:
    """True if arrays with the DLPack type of `dtype` are read as `dtype`."""
    try:
        return from_dlpack(*dtype.dlpack) is dtype
    except DSLError:
        return False
