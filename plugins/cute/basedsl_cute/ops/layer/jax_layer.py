"""Norms, softmax, top k, rotary embedding, gated layers and the loss, for arrays of JAX.

Each is an operation of JAX with its rule of differentiation, see `jax_arrays`. The functions of
`ops` import this module when they get arrays of JAX.
"""

from __future__ import annotations

import functools
from typing import Any

from basedsl import DSLTypeError
from basedsl_cute.interop.jax.operations import jax
from basedsl_cute.ops.gemm.jax_matmul import jax_matmul
from basedsl_cute.ops.jax_arrays import check_rows, jax_operation
from basedsl_cute.ops.layer.cross_entropy import check_extents, loss_and_gradients
from basedsl_cute.ops.layer.norm import norm_backward, norm_into
from basedsl_cute.ops.layer.rotary import rotary_into
from basedsl_cute.ops.layer.softmax import softmax_backward, softmax_into
from basedsl_cute.ops.layer.topk import TopK, check_k, topk_into


def _first(*inputs: Any, **_: Any) -> list[Any]:
    """The shape of one output, that of the first input."""
    return [inputs[0]]


# Softmax -----------------------------------------------------------------------------------------


def jax_softmax(x: Any) -> Any:
    """Return the softmax; the argument is that of `softmax`."""
    return jax_operation(_softmax, _softmax_shapes, (), _softmax_vjp)(x)[0]


def _softmax_shapes(x: Any) -> list[Any]:
    check_rows("softmax", "x", x)
    return [x]


def _softmax(outputs: Any, x: Any) -> None:
    softmax_into(outputs[0], x)


def _softmax_backward(outputs: Any, grad: Any, y: Any) -> None:
    softmax_backward(grad, y, outputs[0])


def _softmax_vjp(_: Any, inputs: Any, outputs: Any, cotangents: Any) -> Any:
    return jax_operation(_softmax_backward, _first, ())(cotangents[0], outputs[0])


# Top k -------------------------------------------------------------------------------------------


def jax_topk(x: Any, k: int, largest: bool) -> Any:
    """Return values and indices; the arguments are those of `topk`."""
    options = (("k", k), ("largest", bool(largest)))
    return jax_operation(_topk, _topk_shapes, options, _topk_vjp)(x)


def _topk(outputs: Any, x: Any, k: int, largest: bool) -> None:
    topk_into(TopK(*outputs), x, k, largest)


def _topk_shapes(x: Any, k: int, largest: bool) -> list[Any]:
    check_rows("topk", "x", x)
    check_k(k, x.shape[-1])
    shape = (*x.shape[:-1], k)
    integers = jax().numpy.arange(0).dtype
    return [jax().ShapeDtypeStruct(shape, kind) for kind in (x.dtype, integers)]


def _topk_vjp(_: Any, inputs: Any, outputs: Any, cotangents: Any) -> Any:
    (x,), (_, indices) = inputs, outputs
    zeros = jax().numpy.zeros(x.shape, cotangents[0].dtype)
    return (jax().numpy.put_along_axis(zeros, indices, cotangents[0], -1, inplace=False),)


# Norms -------------------------------------------------------------------------------------------

_NAMES = ("x", "weight", "bias", "residual")


def jax_norm(operation: str, x: Any, weight: Any, bias: Any, residual: Any, eps: float) -> Any:
    """Return the norm, with a residual also the sum; the arguments are those of `norm_into`."""
    every = dict(zip(_NAMES, (x, weight, bias, residual), strict=True))
    given = {name: array for name, array in every.items() if array is not None}
    options = (("operation", operation), ("eps", float(eps)), ("names", tuple(given)))
    found = jax_operation(_norm, _norm_shapes, options, _norm_vjp)(*given.values())
    return found[0] if residual is None else found


def _norm(outputs: Any, *arrays: Any, operation: str, eps: float, names: Any) -> None:
    given = dict.fromkeys(_NAMES) | dict(zip(names, arrays, strict=True))
    norm_into(outputs, operation, **given, eps=eps)


def _norm_shapes(x: Any, *others: Any, operation: str, names: Any, **__: Any) -> list[Any]:
    check_rows(operation, "x", x)
    for name, other in zip(names[1:], others, strict=True):
        check_rows(operation, name, other)
        wanted = tuple(x.shape if name == "residual" else x.shape[-1:])
        if tuple(other.shape) != wanted:
            raise DSLTypeError(f"{operation}: {name} is {tuple(other.shape)}, not {wanted}")
    return [x, x] if "residual" in names else [x]


def _norm_vjp(options: Any, inputs: Any, outputs: Any, cotangents: Any) -> Any:
    given = dict(zip(options["names"], inputs, strict=True))
    has_residual = "residual" in given
    z = outputs[1] if has_residual else given["x"]
    more = {name: given[name] for name in ("weight", "bias") if name in given}
    arrays = (cotangents[0], z, *more.values(), *cotangents[1:])
    names = ("grad", "z", *more, *(("grad_z",) if has_residual else ()))
    static = (*((n, options[n]) for n in ("operation", "eps")), ("names", names))
    of_z, *others = jax_operation(_norm_backward, _norm_backward_shapes, static)(*arrays)
    found = {"x": of_z, "residual": of_z} | dict(zip(more, others, strict=True))
    return tuple(found[name] for name in options["names"])


def _norm_backward(outputs: Any, *arrays: Any, operation: str, eps: float, names: Any) -> None:
    wanted = ("grad", "z", "weight", "bias", "grad_z")
    given = dict.fromkeys(wanted) | dict(zip(names, arrays, strict=True))
    found = norm_backward(operation, **given, eps=eps, out=outputs[0])
    for out, x in zip(outputs[1:], (x for x in found[1:] if x is not None), strict=True):
        out[...] = x


def _norm_backward_shapes(*arrays: Any, names: Any, **_: Any) -> list[Any]:
    given = dict(zip(names, arrays, strict=True))
    return [given[name] for name in ("z", "weight", "bias") if name in given]


# Rotary embedding --------------------------------------------------------------------------------


def jax_rotary(x: Any, cos: Any, sin: Any, interleaved: bool, inverse: bool) -> Any:
    """Return `x` turned; the arguments are those of `rotary`. The tables get no gradients."""
    options = (("interleaved", bool(interleaved)), ("inverse", bool(inverse)))
    cos, sin = (jax().lax.stop_gradient(table) for table in (cos, sin))
    return jax_operation(_rotary, _first, options, _rotary_vjp)(x, cos, sin)[0]


def _rotary(outputs: Any, x: Any, cos: Any, sin: Any, interleaved: bool, inverse: bool) -> None:
    rotary_into(outputs[0], x, cos, sin, interleaved, inverse)


def _rotary_vjp(options: Any, inputs: Any, outputs: Any, cotangents: Any) -> Any:
    _, cos, sin = inputs
    back = jax_rotary(cotangents[0], cos, sin, options["interleaved"], not options["inverse"])
    return back, jax().numpy.zeros_like(cos), jax().numpy.zeros_like(sin)


# Gated layers ------------------------------------------------------------------------------------


def jax_gated(x: Any, gate: Any, up: Any, activation: str) -> Any:
    """Return activation(x @ gate) * (x @ up): two products, and what XLA makes of the rest."""
    values = jax_matmul(x, gate, activation=activation, out_dtype=jax().numpy.float32)
    return (values * jax_matmul(x, up)).astype(x.dtype)


# The loss ----------------------------------------------------------------------------------------


def jax_cross_entropy(x: Any, weight: Any, targets: Any, ignore_index: int) -> Any:
    """Return the loss; the arguments are those of `linear_cross_entropy`."""
    return _cross_entropy(int(ignore_index))(x, weight, targets)


@functools.cache
def _cross_entropy(ignore_index: int) -> Any:
    """The differentiable function for an index that does not count."""
    alone, whole = (
        jax_operation(_loss, _loss_shapes, (("ignore_index", ignore_index), ("wants", wants)))
        for wants in (False, True)
    )

    def forward(x: Any, weight: Any, targets: Any) -> Any:
        loss, of_x, of_weight = whole(x, weight, targets)
        return loss, (of_x, of_weight.astype(weight.dtype))

    def backward(kept: Any, cotangent: Any) -> Any:
        return *((of * cotangent).astype(of.dtype) for of in kept), None

    function = jax().custom_vjp(lambda *inputs: alone(*inputs)[0])
    function.defvjp(forward, backward)
    return function


def _loss(outputs: Any, x: Any, weight: Any, targets: Any, ignore_index: int, wants: bool) -> None:
    found = loss_and_gradients(x, weight, targets, ignore_index, (wants, wants))
    outputs[0][...] = found.loss.reshape(())
    if wants:
        outputs[1][...] = found.x
        outputs[2][...] = found.weight


def _loss_shapes(x: Any, weight: Any, targets: Any, *, wants: bool, **__: Any) -> list[Any]:
    check_extents(*(tuple(one.shape) for one in (x, weight, targets)))
    if not jax().numpy.issubdtype(targets.dtype, jax().numpy.integer):
        raise DSLTypeError(
            f"linear_cross_entropy: targets are of {targets.dtype.name}", hint="integers"
        )
    f32 = jax().numpy.float32
    sums = jax().ShapeDtypeStruct(weight.shape, f32)
    loss = jax().ShapeDtypeStruct((), f32)
    return [loss, x, sums] if wants else [loss]
