"""Helpers of host code for tensors of PyTorch."""

from __future__ import annotations

from typing import Any

from basedsl import DSLTypeError, Numeric
from basedsl_cute.arrays.tensor import HostTensor, from_dlpack
from basedsl_cute.tensors.numeric_kinds import is_fp8_dtype


def create_cute_tensor_for_fp8(
    storage_tensor: Any, dtype: type[Numeric], leading_dim: int, source_f32_tensor: Any = None
) -> HostTensor:
    """Return a torch tensor as an argument with a dynamic layout and elements of `dtype`.

    For an fp8 `dtype`, `storage_tensor` is one of bytes, which `source_f32_tensor`, if given,
    fills. `leading_dim` is the mode of stride 1; the memory is aligned to 16 bytes. Raises
    DSLTypeError for fp8 in wider elements.
    """
    from basedsl_cute.interop.torch import convert_cute_tensor

    if is_fp8_dtype(dtype) and storage_tensor.element_size() != 1:
        raise DSLTypeError(f"{dtype.__name__} needs a tensor of bytes, not {storage_tensor.dtype}")
    seen = storage_tensor
    if is_fp8_dtype(dtype):
        import torch  # type: ignore[import-not-found, unused-ignore]

        seen = storage_tensor.view(torch.uint8)
    tensor = from_dlpack(seen, assumed_align=16)
    tensor.element_type = dtype
    tensor.mark_layout_dynamic(leading_dim=leading_dim)
    if is_fp8_dtype(dtype) and source_f32_tensor is not None:
        convert_cute_tensor(source_f32_tensor, tensor, dtype, is_dynamic_layout=True)
    return tensor


__all__ = ["create_cute_tensor_for_fp8", "is_fp8_dtype"]
