"""PyTorch's autocast: the types in which it gives tensors to operations.

It looks at PyTorch's own operations only, so those of `ops` ask for the same here, before anything
records the call: a conversion has its gradient then, and a compiler sees it. This module imports
PyTorch; `ops` import it while autocast is enabled.
"""

from __future__ import annotations

from typing import Any

import torch

# Elements of 8 bits have scales beside them; Float64 is left alone by PyTorch, too.
_FLOATS = frozenset((torch.float16, torch.bfloat16, torch.float32))
_DEVICES = {"cpu": "AutocastCPU", "cuda": "AutocastCUDA"}  # kinds, and PyTorch's keys of dispatch


def _widening(operation: str) -> frozenset[str]:
    """The kinds of devices where autocast has PyTorch's operation compute in Float32. The lists
    differ from release to release: `rms_norm` is on them in PyTorch 2.13, and is not in 2.11.
    """
    is_listed = torch._C._dispatch_has_kernel_for_dispatch_key
    return frozenset(kind for kind, key in _DEVICES.items() if is_listed(f"aten::{operation}", key))


_WIDENS = {name: _widening(name) for name in ("layer_norm", "rms_norm", "softmax.int")}


def lowered(*tensors: Any) -> tuple[Any, ...]:
    """Return tensors as products get them: floats in the type that is set for their device."""
    return tuple(
        [x.to(torch.get_autocast_dtype(x.device.type)) if _is_cast(x) else x for x in tensors]
    )


def lowered_product(a: Any, b: Any, residual: Any, out_dtype: Any) -> tuple[Any, Any, Any]:
    """Return `a`, `b` and the `out_dtype` of a product with these arguments. Its `residual` is
    added, which autocast leaves alone: a wider one stays so.
    """
    a, b = lowered(a, b)
    if out_dtype is None and isinstance(residual, torch.Tensor) and _is_cast(a):
        out_dtype = torch.promote_types(a.dtype, residual.dtype)
    return a, b, out_dtype


def widened(operation: str, x: Any, residual: Any = None) -> tuple[Any, Any]:
    """Return the rows of a norm or a softmax, and what is added to them: as Float32 where PyTorch's
    own `operation` gets that, and where one of the two is wider, as in a sum.
    """
    rows = [t for t in (x, residual) if _is_cast(t)]
    if any(t.device.type in _WIDENS[operation] or t.dtype != x.dtype for t in rows):
        x, residual = (t.float() if _is_cast(t) else t for t in (x, residual))
    return x, residual


def _is_cast(x: Any) -> bool:
    if not isinstance(x, torch.Tensor) or x.dtype not in _FLOATS:
        return False
    kind = x.device.type
    return kind in _DEVICES and torch.is_autocast_enabled(kind)
