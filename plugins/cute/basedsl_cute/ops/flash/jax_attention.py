"""`attention` of JAX arrays: an operation of JAX with its rule of differentiation, see
`jax_arrays`. `attention` imports this module when it gets arrays of JAX.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from basedsl import DSLTypeError
from basedsl_cute.interop.jax.operations import jax
from basedsl_cute.ops.flash.arguments import LENGTHS
from basedsl_cute.ops.flash.captured import Captured
from basedsl_cute.ops.jax_arrays import jax_operation

STATIC = (
    "scale", "causal", "window", "softcap", "score", "mask",
    "max_seqlen_q", "max_seqlen_k", "layout",
)  # fmt: skip
"""The options that are no arrays."""

ARRAYS = ("bias", "alibi", "sinks", *LENGTHS)
"""The options that are arrays of JAX. Those of `bias` and `sinks` have gradients."""


class Functions(NamedTuple):
    """`attention` and `attention_backward`."""

    attention: Any
    backward: Any


def jax_attention(
    functions: Functions, q: Any, k: Any, v: Any, options: Mapping[str, Any], return_lse: bool
) -> Any:
    """Return what `attention` does, for its `options` by name.

    Raises DSLTypeError for an option that is neither None nor one of `STATIC` and `ARRAYS`, for
    functions that capture arrays, and for elements of 8 bits.
    """
    for name, x in options.items():
        if name not in (*STATIC, *ARRAYS) and x is not None:
            raise DSLTypeError(
                f"attention takes no {name} with arrays of JAX",
                hint=f"it takes {', '.join((*STATIC, *ARRAYS))}",
            )
    for name, x in (("q", q), ("k", k), ("v", v)):
        kind = getattr(getattr(x, "dtype", None), "name", None)
        if kind is not None and kind not in ("float16", "bfloat16"):
            raise DSLTypeError(
                f"attention takes no {kind} arrays of JAX ({name})", hint="float16 or bfloat16"
            )
    for name in ("score", "mask"):
        own = Captured.of(options[name], name)
        if own is not None and own.arrays:
            raise DSLTypeError(
                f"attention: {name} captures an array, which JAX would not see change",
                hint="pass what is added to scores as bias=",
            )
    window = options["window"]
    static = {name: options[name] for name in STATIC}
    for name in ("scale", "softcap"):
        static[name] = _number(name, static[name])
    static["window"] = tuple(window) if isinstance(window, list) else window
    given = {name: options[name] for name in ARRAYS if options[name] is not None}
    operation = jax_operation(_write, _shapes, _options(functions, tuple(given), static), _vjp)
    out, lse = operation(q, k, v, *given.values())
    return (out, jax().lax.stop_gradient(lse)) if return_lse else out


def _options(functions: Functions, names: tuple[str, ...], static: Mapping[str, Any]) -> Any:
    return (("functions", functions), ("names", names), *static.items())


def _number(name: str, x: Any) -> Any:
    """A number that is compiled in; DSLTypeError for one that JAX traces."""
    if isinstance(x, jax().core.Tracer):
        hint = "multiply q by it" if name == "scale" else "pass a number of Python"
        raise DSLTypeError(f"attention: {name} is traced by JAX, and is compiled in", hint=hint)
    return x.item() if getattr(x, "shape", None) == () else x


def _batches(x: Any, names: tuple[str, ...], modes: int = 3) -> Any:
    """An array whose leading modes, as `jax.vmap` adds them, are batches, before so many others."""
    return x if names else x.reshape(math.prod(x.shape[:-modes]), *x.shape[-modes:])


def _write(
    outputs: Any, q: Any, k: Any, v: Any, *arrays: Any,
    functions: Functions, names: Any, **static: Any,
) -> None:  # fmt: skip
    given = dict(zip(names, arrays, strict=True))
    q, k, v = (_batches(x, names) for x in (q, k, v))
    out, lse = functions.attention(q, k, v, return_lse=True, **given, **static)
    for output, found in zip(outputs, (out, lse), strict=True):
        output[...] = found.reshape(output.shape)


def _shapes(q: Any, k: Any, v: Any, *_: Any, names: Any, layout: str, **__: Any) -> list[Any]:
    *batches, one, other, _head = q.shape
    rows = (other, one) if layout == "bshd" else (one, other)
    struct = jax().ShapeDtypeStruct
    return [
        struct((*q.shape[:-1], v.shape[-1]), q.dtype),
        struct((*batches, *rows), jax().numpy.float32),
    ]


def _vjp(options: Any, inputs: Any, outputs: Any, cotangents: Any) -> Any:
    """The cotangents of q, k, v, and of the arrays by name: None but for the bias and the sinks."""
    names, (grad, _) = options["names"], cotangents
    given = dict(zip(names, inputs[3:], strict=True))
    for name in ("seqused_k", "block_table"):
        if name in given:
            raise DSLTypeError(
                f"attention computes no gradients with {name}", hint="pass packed sequences"
            )
    operation = jax_operation(_write_backward, _shapes_backward, tuple(options.items()))
    *found, of_bias = operation(grad, *inputs[:3], *outputs, *inputs[3:])
    others: dict[str, Any] = {}
    if "bias" in given:
        others["bias"] = of_bias.astype(given["bias"].dtype)
    if "sinks" in given:
        out, lse = outputs
        others["sinks"] = _of_sinks(grad, out, lse, given["sinks"], options["layout"])
    return (*found, *(others.get(name) for name in names))


def _of_sinks(grad: Any, out: Any, lse: Any, sinks: Any, layout: str) -> Any:
    """The gradient of the sinks, whose weights go to nothing: minus weight times delta."""
    f32 = jax().numpy.float32
    delta = (grad.astype(f32) * out.astype(f32)).sum(-1)
    heads = 1 if layout == "bhsd" and out.ndim == 4 else out.ndim - 2
    delta = jax().numpy.moveaxis(delta, heads, 0).reshape(len(sinks), -1)
    logs = jax().numpy.moveaxis(lse, lse.ndim - 2, 0).reshape(len(sinks), -1)
    weights = jax().numpy.exp(sinks.astype(f32)[:, None] - logs)
    weights = jax().numpy.where(jax().numpy.isneginf(logs), 0.0, weights)
    return -(weights * delta).sum(1).astype(sinks.dtype)


def _write_backward(
    outputs: Any, grad: Any, q: Any, k: Any, v: Any, out: Any, lse: Any, *arrays: Any,
    functions: Functions, names: Any, **static: Any,
) -> None:  # fmt: skip
    named = dict(zip(names, arrays, strict=True))
    given = [_batches(x, names) for x in (grad, q, k, v, out)]
    logs = _batches(lse, names, 2)
    if "bias" in named:
        outputs[3][...] = 0
        named["grad_bias"] = outputs[3]
    found = functions.backward(*given, logs, **named, **static)
    for output, x in zip(outputs, found, strict=False):
        output[...] = x.reshape(output.shape)


def _shapes_backward(
    grad: Any, q: Any, k: Any, v: Any, out: Any, lse: Any, *arrays: Any, names: Any, **_: Any
) -> list[Any]:
    bias = dict(zip(names, arrays, strict=True)).get("bias")
    shape = (0,) if bias is None else bias.shape
    return [q, k, v, jax().ShapeDtypeStruct(shape, jax().numpy.float32)]
