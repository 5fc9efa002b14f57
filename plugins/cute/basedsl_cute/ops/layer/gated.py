"""Gated linear layers (SwiGLU, GeGLU): two products, of which the second takes the first's gate."""

from __future__ import annotations

from typing import Any

from basedsl import DSLTypeError
from basedsl_cute.algebra.explained_calls import explains_arguments
from basedsl_cute.ops.array_libraries import library
from basedsl_cute.ops.gemm.epilogue import Gate
from basedsl_cute.ops.gemm.matmul import matmul
from basedsl_cute.ops.jax_arrays import is_jax


@explains_arguments
def gated_linear(x: Any, gate: Any, up: Any, *, activation: str = "silu") -> Any:
    """Compute activation(x @ gate) * (x @ up): SwiGLU with "silu", GeGLU with "gelu".

    `x` is an array (..., K), `gate` and `up` are (K, N), with types and layouts as `matmul` takes
    them; `activation` is one of its names. The second product multiplies by the gate before it
    writes, so that x @ up never reaches memory.

    Returns an array (..., N) of the type of `x`; PyTorch and JAX compute gradients of all
    three. Raises DSLTypeError for a gate and up of different extents, and as `matmul` does.

    >>> import numpy as np
    >>> from basedsl_cute.ops import gated_linear
    >>> x, gate, up = np.ones((1, 8)), np.ones((8, 2)) / 4, np.ones((8, 2))
    >>> gated_linear(x, gate, up, activation="relu")
    array([[16., 16.]])
    """
    shapes = [tuple(w.shape) for w in (gate, up) if hasattr(w, "shape")]
    if len(set(shapes)) > 1:
        raise DSLTypeError(f"gated_linear: gate is {shapes[0]}, and up {shapes[1]}")
    if is_jax(x):
        from basedsl_cute.ops.layer.jax_layer import jax_gated  # it imports JAX

        return jax_gated(x, gate, up, activation)
    lib = library(x, "gated_linear")
    if lib.is_autocasting():
        from basedsl_cute.ops.torch_autocast import lowered  # it imports PyTorch

        x, gate, up = lowered(x, gate, up)
    if lib.records(x, gate, up):
        from basedsl_cute.ops.layer.torch_gated import torch_gated  # it imports PyTorch

        return torch_gated(x, gate, up, activation)
    return gated_products(x, gate, up, activation)[0]


def gated_products(x: Any, gate: Any, up: Any, activation: str) -> tuple[Any, Any]:
    """Return the result of `gated_linear`, and x @ gate."""
    values = matmul(x, gate)
    return matmul(x, up, epilogue=Gate(activation), operands=(values,), out_dtype=x.dtype), values
