"""`attention` of JAX arrays: an operation of JAX with its rule of differentiation, see
`jax_arrays`. `attention` imports this module when it gets arrays of JAX.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from basedsl import DSLTypeError
from basedsl_cute.interop.jax.operations import jax
from basedsl_cute.ops.jax_arrays import jax_operation

TAKEN = ("scale", "causal", "window", "softcap", "layout")
"""The options that attention takes with arrays of JAX: numbers and names."""


class Functions(NamedTuple):
    """`attention` and `attention_backward`."""

    attention: Any
    backward: Any


def jax_attention(
    functions: Functions, q: Any, k: Any, v: Any, options: Mapping[str, Any], return_lse: bool
) -> Any:
    """Return what `attention` does, for its `options` by name.

    Raises DSLTypeError for an option that is neither None nor one of `TAKEN`, and for elements of 8
    bits.
    """
    for name, x in options.items():
        if name not in TAKEN and x is not None:
            raise DSLTypeError(
                f"attention takes no {name} with arrays of JAX",
                hint=f"it takes {', '.join(TAKEN)}",
            )
    if q.dtype.itemsize == 1:
        raise DSLTypeError(f"attention takes no {q.dtype} arrays of JAX", hint="16-bit elements")
    window = options["window"]
    static = {name: options[name] for name in TAKEN} | {
        "functions": functions,
        "window": None if window is None else tuple(window),
    }
    out, lse = jax_operation(_write, _shapes, tuple(static.items()), _vjp)(q, k, v)
    return (out, jax().lax.stop_gradient(lse)) if return_lse else out


def _batches(x: Any) -> Any:
    """An array whose leading modes, as `jax.vmap` adds them, are batches."""
    return x.reshape(-1, *x.shape[-3:])


def _write(outputs: Any, q: Any, k: Any, v: Any, functions: Functions, **options: Any) -> None:
    q, k, v = map(_batches, (q, k, v))
    out, lse = functions.attention(q, k, v, return_lse=True, **options)
    for output, found in zip(outputs, (out, lse), strict=True):
        output[...] = found.reshape(output.shape)


def _shapes(q: Any, k: Any, v: Any, layout: str, **_: Any) -> list[Any]:
    *batches, one, other, _ = q.shape
    rows = (other, one) if layout == "bshd" else (one, other)
    struct = jax().ShapeDtypeStruct
    return [
        struct((*q.shape[:-1], v.shape[-1]), q.dtype),
        struct((*batches, *rows), jax().numpy.float32),
    ]


def _vjp(options: Any, inputs: Any, outputs: Any, cotangents: Any) -> Any:
    static = tuple(options.items())
    operation = jax_operation(_write_backward, _shapes_backward, static)
    return operation(cotangents[0], *inputs, *outputs)


def _write_backward(
    outputs: Any, grad: Any, q: Any, k: Any, v: Any, out: Any, lse: Any,
    functions: Functions, **options: Any,
) -> None:  # fmt: skip
    given = map(_batches, (grad, q, k, v, out))
    found = functions.backward(*given, lse.reshape(-1, *lse.shape[-2:]), **options)
    for output, x in zip(outputs, found, strict=True):
        output[...] = x.reshape(output.shape)


def _shapes_backward(grad: Any, q: Any, k: Any, v: Any, *_: Any, **__: Any) -> list[Any]:
    return [q, k, v]
