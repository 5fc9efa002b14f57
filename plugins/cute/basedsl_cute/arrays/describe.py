"""A native description of PyTorch tensors, by which calls for those of one kind are known again."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from basedsl import (
    DSLError,
    dlpack_exchange_function,
    load_llvmir,
    native_function,
)

Describe = Callable[[Sequence[Any]], tuple[bytes, list[int]] | None]


def tensor_describer(torch: Any, alignment: int) -> Describe | None:
    """Return a function of a tuple of tensors and None: bytes that tell their types, extents,
    strides, devices and addresses modulo `alignment` apart, and the addresses of those that are
    there. It returns None where something is no plain tensor, is negated when it is read, or needs
    a gradient that is recorded.

    None without native code, and for a PyTorch without DLPack's exchange API.
    """
    describe = dlpack_exchange_function(torch.Tensor)
    if describe is None:
        return None
    try:
        code = load_llvmir((Path(__file__).parent / "describe.ll").read_text())
    except (DSLError, OSError, AttributeError, KeyError):
        return None
    objects = (torch.Tensor, torch.nn.Parameter, "requires_grad", "is_neg", torch.is_grad_enabled)
    tensor, parameter, requires_grad, is_neg, records = map(id, objects)
    table = (ctypes.c_int64 * 7)(
        tensor, parameter, describe, requires_grad, is_neg, records, alignment - 1
    )
    address = code.address_of("basedsl_cute_describe")
    found: Describe | None = native_function(
        address, ctypes.addressof(table), (table, objects, code)
    )
    return found
