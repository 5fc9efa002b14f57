"""Arrays of other libraries as records, with what `cute` offers for those that cannot be read."""

from __future__ import annotations

from typing import Any

from basedsl import ArrayRecord, UnreadableArray

_HINTS = {
    "torch": "pass x.detach(), call it under torch.no_grad(), or give the operation a gradient "
    "with cute.torch.custom_op",
    "jax": "make an operation of the @jit function: cute.jax.jax_callable(function)",
}


def record_of(value: Any, name: str = "") -> ArrayRecord:
    """Return `ArrayRecord.of(value, name)`; its errors say what `cute` has instead."""
    try:
        return ArrayRecord.of(value, name)
    except UnreadableArray as error:
        error.hint = _HINTS[error.library]
        raise
