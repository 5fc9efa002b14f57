"""`cute.torch`: PyTorch tensors for programs and their tests. PyTorch is imported on first use.

On the simulator, the device is the CPU. Every function raises DSLRuntimeError where PyTorch is not
installed.
"""

from __future__ import annotations

import enum
import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from basedsl import Boolean, DSLRuntimeError, DSLTypeError, with_article
from basedsl_cute.algebra.explained_calls import explains_arguments
from basedsl_cute.arrays.tensor import HostTensor, from_dlpack
from basedsl_cute.dsl.machine import current_target
from basedsl_cute.interop.cuda import as_custream
from basedsl_cute.interop.cuda import default_stream as _default_stream
from basedsl_cute.interop.torch_operation import custom_op as custom_op
from basedsl_cute.tensors.numeric_kinds import is_fp8_dtype

# Element types -> names of torch's types; narrower ones are kept in bytes.
_DTYPES = {
    "Boolean": "bool", "Int8": "int8", "Int16": "int16", "Int32": "int32", "Int64": "int64",
    "Uint8": "uint8", "Uint16": "uint16", "Uint32": "uint32", "Uint64": "uint64",
    "Float16": "float16", "BFloat16": "bfloat16", "TFloat32": "float32", "Float32": "float32",
    "Float64": "float64", "Float8E5M2": "float8_e5m2", "Float8E4M3FN": "float8_e4m3fn",
    "Float8E4M3B11FNUZ": "float8_e4m3fnuz", "Float8E8M0FNU": "float8_e8m0fnu",
    "Float4E2M1FN": "float4_e2m1fn_x2", "Int4": "int8", "Uint4": "uint8",
    "Float8E4M3": "uint8", "Float6E3M2FN": "uint8", "Float6E2M3FN": "uint8",
}  # fmt: skip


def _torch() -> Any:
    try:
        return importlib.import_module("torch")
    except ImportError:
        raise DSLRuntimeError("PyTorch is not installed", hint="pip install torch") from None


def dtype(kind: Any) -> Any:
    """The torch dtype of `kind`, a numeric class, or the one in which torch stores its bytes.

    Raises DSLTypeError for what is no numeric class.
    """
    name = _DTYPES.get(getattr(kind, "__name__", ""))
    if name is None:
        raise DSLTypeError(f"{kind!r} is no numeric type that torch can store")
    torch = _torch()
    found = getattr(torch, name, None)
    return torch.uint8 if found is None else found


class TensorInitType(enum.Enum):
    """The initial contents of a new tensor: none, one value, or random numbers."""

    SKIP = "skip"
    SCALAR = "scalar"
    RANDOM = "random"
    GAUSSIAN = "gaussian"


@dataclass(frozen=True)
class RandomInitConfig:
    """Random whole numbers n, `min_val` <= n < `max_val`."""

    min_val: int = -2
    max_val: int = 2


@dataclass(frozen=True)
class ScalarInitConfig:
    """The value of all elements."""

    value: float = 0.0


@dataclass(frozen=True)
class GaussianInitConfig:
    """Normally distributed numbers with `mean` and `std`, times `scale`."""

    mean: float = 0.0
    std: float = 1.0
    scale: float = 1.0


_CONFIGS: dict[TensorInitType, Any] = {
    TensorInitType.SCALAR: ScalarInitConfig,
    TensorInitType.RANDOM: RandomInitConfig,
    TensorInitType.GAUSSIAN: GaussianInitConfig,
}


def create_and_permute_torch_tensor(
    shape: Sequence[int],
    dtype: Any,
    permute_order: Sequence[int] | None = None,
    init_type: TensorInitType = TensorInitType.RANDOM,
    init_config: Any = None,
    device: Any = None,
) -> Any:
    """Make a contiguous torch tensor of `shape`, with its modes permuted by `permute_order`.

    `dtype` is torch's, `device` too (by default the CPU). `init_type` says how it is filled, with
    the parameters `init_config`; by default with random whole numbers from -2 to 1. Raises
    DSLTypeError for a configuration of another `init_type`.
    """
    torch = _torch()
    wanted = _CONFIGS.get(init_type)
    if wanted is not None and init_config is None:
        init_config = wanted()
    if wanted is not None and not isinstance(init_config, wanted):
        raise DSLTypeError(f"{init_type} takes {with_article(wanted)}, not {init_config!r}")
    made = torch.empty(tuple(shape), dtype=torch.float32, device=device)
    if init_type is TensorInitType.SCALAR:
        made.fill_(init_config.value)
    elif init_type is TensorInitType.RANDOM:
        low, high = init_config.min_val, init_config.max_val
        made = torch.randint(low, high, tuple(shape), device=device).to(torch.float32)
    elif init_type is TensorInitType.GAUSSIAN:
        made.normal_(init_config.mean, init_config.std).mul_(init_config.scale)
    made = made.to(dtype)
    return made if permute_order is None else made.permute(*permute_order)


@explains_arguments
def matrix(
    l: int,
    mode0: int,
    mode1: int,
    is_mode0_major: bool,
    dtype: Any,
    init_type: TensorInitType = TensorInitType.RANDOM,
    init_config: Any = None,
) -> Any:
    """Make a float32 torch tensor of shape (mode0, mode1, l) on the CPU, with values that the
    numeric class `dtype` can hold.

    Mode 0 is contiguous if `is_mode0_major`, else mode 1. `init_type` and `init_config` are those
    of `create_and_permute_torch_tensor`; random numbers are at least 0 for an unsigned `dtype`.
    """
    if init_type is TensorInitType.RANDOM and init_config is None and not dtype.signed:
        init_config = RandomInitConfig(0, 4)
    order = ((l, mode1, mode0), (2, 1, 0)) if is_mode0_major else ((l, mode0, mode1), (1, 2, 0))
    return create_and_permute_torch_tensor(
        order[0],
        _torch().float32,
        permute_order=order[1],
        init_type=init_type,
        init_config=init_config,
    )


def device() -> str:
    """The torch device of kernels' tensors: "cuda", or "cpu" for the simulator."""
    return "cuda" if current_target().is_gpu else "cpu"


def cute_tensor_like(
    data_ref: Any, cutlass_dtype: Any, is_dynamic_layout: bool, assumed_align: int | None = None
) -> tuple[HostTensor, Any]:
    """Copy the torch tensor `data_ref` to the device, with its strides and with elements of
    `cutlass_dtype`.

    Returns a host tensor, the argument for `@jit` functions, and the torch tensor that owns its
    memory: of bytes for fp8 and narrower elements. Elements of less than a byte are packed at the
    start of it. With `is_dynamic_layout`, shape and strides are dynamic but for the leading stride
    1. `assumed_align` is in bytes.
    """
    torch = _torch()
    if cutlass_dtype.width < 8 and cutlass_dtype is not Boolean:
        made = _packed(data_ref, cutlass_dtype).to(device=device())
    else:
        made = data_ref.detach().to(device=device(), dtype=dtype(cutlass_dtype), copy=True)
        if is_fp8_dtype(cutlass_dtype):
            made = made.view(torch.uint8)
    tensor = from_dlpack(made, assumed_align=assumed_align)
    tensor.element_type = cutlass_dtype
    if is_dynamic_layout:
        tensor.mark_layout_dynamic(leading_dim=get_leading_dim(data_ref))
    return tensor, made


def _packed(data: Any, kind: Any) -> Any:
    """A torch tensor of bytes with the shape and strides of `data`, at whose start the elements of
    `data` are packed as `kind`, in the order of the memory and the lowest bits first.
    """
    torch = _torch()
    source = data.detach().cpu()
    made = torch.empty_strided(source.shape, source.stride(), dtype=torch.uint8).zero_()
    dense = torch.empty_strided(source.shape, source.stride(), dtype=torch.float32).zero_()
    dense.copy_(source)
    cells = dense.untyped_storage().nbytes() // 4
    values = dense.as_strided((cells,), (1,)).numpy()
    codes = _codes(values, kind).astype(np.uint8)
    bits = (codes[:, None] >> np.arange(kind.width, dtype=np.uint8)) & 1
    packed = np.packbits(bits.reshape(-1), bitorder="little")
    made.as_strided((len(packed),), (1,)).copy_(torch.from_numpy(packed))
    return made


def _codes(values: Any, kind: Any) -> Any:
    if kind.is_integer:
        return values.astype(np.int64) & (1 << kind.width) - 1
    most = float(kind.max)
    return np.clip(values, -most, most).astype(kind.numpy_dtype).view(np.uint8)


def convert_cute_tensor(
    f32_torch_tensor: Any, cute_tensor: HostTensor, dtype: Any, is_dynamic_layout: bool = True
) -> HostTensor:
    """Fill a host tensor with the converted values of `f32_torch_tensor`, of float32; returns it.

    `dtype` is the element type of `cute_tensor`, else DSLTypeError. With `is_dynamic_layout`, the
    converting kernel is compiled for dynamic shapes.
    """
    from basedsl_cute.interop.testing import convert

    if cute_tensor.element_type is not dtype:
        raise DSLTypeError(f"the tensor's elements are {cute_tensor.element_type}, not {dtype}")
    if dtype.width < 8 and dtype is not Boolean:  # threads of a kernel would share bytes
        owner = cute_tensor.host.owner
        owner.copy_(_packed(f32_torch_tensor, dtype).view(owner.dtype))
        return cute_tensor
    source = from_dlpack(f32_torch_tensor.to(device=device()))
    if is_dynamic_layout:
        source.mark_layout_dynamic(leading_dim=get_leading_dim(f32_torch_tensor))
    convert(source, cute_tensor)
    return cute_tensor


def get_leading_dim(tensor: Any) -> int | None:
    """The mode of a torch tensor with stride 1, preferably with an extent over 1; None without."""
    units = [i for i, d in enumerate(tensor.stride()) if d == 1]
    if len(units) > 1:
        units = [i for i in units if tensor.shape[i] > 1] or units[-1:]
    return units[0] if units else None


def default_stream() -> Any:
    """PyTorch's default stream, as an argument of `@jit` functions."""
    if not current_target().is_gpu:
        return _default_stream()
    return as_custream(_torch().cuda.default_stream().cuda_stream)


def current_stream() -> Any:
    """PyTorch's current stream, as an argument of `@jit` functions."""
    if not current_target().is_gpu:
        return _default_stream()
    return as_custream(_torch().cuda.current_stream().cuda_stream)


@explains_arguments
def as_tensor(pointer: Any, shape: Sequence[int], torch_type: Any) -> Any:
    """Make a torch tensor of `shape` and `torch_type` over device memory that it does not own.

    `pointer` is an address or a host pointer; the memory must outlive the tensor.
    """
    import ctypes
    import math

    torch = _torch()
    count = math.prod(shape) * torch_type.itemsize
    address = getattr(pointer, "address", None)
    address = int(pointer) if address is None else address
    if device() == "cpu":
        raw = torch.frombuffer((ctypes.c_uint8 * count).from_address(address), dtype=torch.uint8)
    else:
        raw = torch.as_tensor(_Memory(address, count), device="cuda")
    return raw.view(torch_type).reshape(tuple(shape))


class _Memory:
    """Bytes on a GPU, described by `__cuda_array_interface__`."""

    def __init__(self, address: int, count: int) -> None:
        self.__cuda_array_interface__ = {
            "shape": (count,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
        }
