"""`matmul` of JAX arrays: an operation of JAX, with its rule of differentiation.

With z = alpha * a @ b + bias and y = activation(z) + residual, the rule multiplies by the same
kernels, and leaves the derivative of the activation, and sums, to XLA. This module imports JAX;
`matmul` imports it when it gets arrays of JAX.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from basedsl import DSLTypeError, Numeric
from basedsl_cute.interop.jax.operations import jax
from basedsl_cute.ops.gemm.epilogue import FusedEpilogue
from basedsl_cute.ops.gemm.matmul import matmul
from basedsl_cute.ops.jax_arrays import jax_operation

ACTIVATIONS = {
    "relu": lambda x: jax().nn.relu(x),
    "gelu": lambda x: jax().nn.gelu(x, approximate=False),
    "gelu_tanh": lambda x: jax().nn.gelu(x, approximate=True),
    "sigmoid": lambda x: jax().nn.sigmoid(x),
    "silu": lambda x: jax().nn.silu(x),
    "tanh": lambda x: jax().numpy.tanh(x),
}
"""The functions whose derivatives the rule takes, by the names of `matmul`'s activations."""


def jax_matmul(
    a: Any,
    b: Any,
    bias: Any = None,
    residual: Any = None,
    alpha: Any = None,
    activation: str | None = None,
    out_dtype: Any = None,
    tf32: bool = False,
    config: Any = None,
) -> Any:
    """Return the product; the arguments are those of `matmul`, but `alpha` is a number."""
    if alpha is not None and not isinstance(alpha, int | float):
        raise DSLTypeError(
            "matmul of JAX arrays takes a number as alpha", hint="multiply a or b by the array"
        )
    FusedEpilogue(activation)  # an error here, if its name is unknown
    dtype = _result_dtype(a, out_dtype)
    rows, columns = a if a.ndim > 1 else a[None], b if b.ndim > 1 else b[:, None]
    given = {"bias": bias, "residual": residual}
    given = {name: x for name, x in given.items() if x is not None}
    options = (
        ("alpha", None if alpha is None else float(alpha)),
        ("activation", activation),
        ("dtype", dtype),
        ("tf32", bool(tf32)),
        ("config", config),
        ("names", tuple(given)),
        ("turned", (False, False)),
    )
    made = jax_operation(_product, _shapes, options, _vjp)(rows, columns, *given.values())[0]
    made = made if a.ndim > 1 else made[..., 0, :]
    return made if b.ndim > 1 else made[..., 0]


def _result_dtype(a: Any, asked: Any) -> Any:
    """NumPy's dtype of the result: `asked`, a dtype or a numeric class, or the default for a."""
    if isinstance(asked, type) and issubclass(asked, Numeric):
        asked = asked.numpy_dtype
    if asked is not None:
        return np.dtype(asked)
    if a.dtype.itemsize > 1:
        return np.dtype(a.dtype)
    return np.dtype(np.int32 if a.dtype.kind in "iu" else np.float32)


def _product(
    outputs: Any, a: Any, b: Any, *more: Any, names: Any, turned: Any, dtype: Any, **options: Any
) -> None:
    a, b = (x.swapaxes(-1, -2) if turns else x for x, turns in zip((a, b), turned, strict=True))
    matmul(a, b, out=outputs[0], **dict(zip(names, more, strict=True)), **options)


def _shapes(a: Any, b: Any, *_: Any, turned: Any, dtype: Any, **__: Any) -> list[Any]:
    (m, k), (other, n) = (
        x.shape[-2:][::-1] if turns else x.shape[-2:]
        for x, turns in zip((a, b), turned, strict=True)
    )
    if k != other:
        raise DSLTypeError(f"a of {a.shape} times b of {b.shape}: {k} columns and {other} rows")
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return [jax().ShapeDtypeStruct((*batch, m, n), dtype)]


def _vjp(options: Any, inputs: Any, outputs: Any, cotangents: Any) -> Any:
    """The cotangents of a, b and what is added, from that of the result."""
    (a, b, *_), (grad,) = inputs, cotangents
    given = dict(zip(options["names"], inputs[2:], strict=True))
    slope = grad
    if options["activation"] is not None:
        slope = _slope(options, a, b, given.get("bias"), grad)
    found = []
    if "bias" in given:
        found.append(_summed(slope, given["bias"]))
    if "residual" in given:
        found.append(_summed(grad, given["residual"]))
    slope = slope.astype(a.dtype)
    rows = a
    if b.ndim == 2:  # batches with one b as one long matrix
        rows, slope = (x.reshape(math.prod(x.shape[:-1]), x.shape[-1]) for x in (a, slope))
    of_a = _summed(_turned(options, slope, b, (False, True), a).reshape(*slope.shape[:-1], -1), a)
    of_b = _summed(_turned(options, rows, slope, (True, False), b), b)
    return (of_a, of_b, *found)


def _turned(options: Any, x: Any, y: Any, turned: tuple[bool, bool], like: Any) -> Any:
    """alpha * x @ y, of which one is turned, in Float32 where it is to be summed."""
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    is_sum = batch != like.shape[:-2] and x.ndim == like.ndim
    dtype = np.dtype(np.float32 if is_sum else like.dtype)
    changed = {"activation": None, "dtype": dtype, "names": (), "turned": turned}
    static = tuple((options | changed).items())
    return jax_operation(_product, _shapes, static)(x, y)[0]


def _slope(options: Any, a: Any, b: Any, bias: Any, grad: Any) -> Any:
    """grad * activation'(z), in Float32."""
    f32 = np.dtype(np.float32)
    given = {} if bias is None else {"bias": bias}
    changed = {"activation": None, "dtype": f32, "names": tuple(given)}
    static = tuple((options | changed).items())
    z = jax_operation(_product, _shapes, static)(a, b, *given.values())[0]
    _, back = jax().vjp(ACTIVATIONS[options["activation"]], z)
    return back(grad.astype(f32))[0]


def _summed(x: Any, like: Any) -> Any:
    """`x` summed to the shape of `like`, over the modes that this has not, in its type."""
    if x.shape != like.shape and math.prod(x.shape) == math.prod(like.shape):
        return x.reshape(like.shape).astype(like.dtype)
    extra = x.ndim - like.ndim
    modes = [i for i in range(x.ndim) if i < extra or like.shape[i - extra] == 1 < x.shape[i]]
    return x.sum(tuple(modes)).reshape(like.shape).astype(like.dtype)
