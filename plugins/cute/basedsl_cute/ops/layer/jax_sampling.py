"""Sampling from JAX arrays: an operation of JAX that takes seed and offset as arrays.

`sample` imports this module when it gets arrays of JAX.
"""

from __future__ import annotations

import operator
from typing import Any

from basedsl import DSLTypeError
from basedsl_cute.interop.jax.operations import jax
from basedsl_cute.ops.array_libraries import library
from basedsl_cute.ops.jax_arrays import check_rows, is_jax, jax_operation
from basedsl_cute.ops.layer.sampling import NAMES, check_numbers, draw


def jax_sample(logits: Any, seed: Any, offset: Any, options: Any) -> Any:
    """Return the draws; the arguments are those of `sample`, the options in its order."""
    jnp = jax().numpy
    logits = jax().lax.stop_gradient(logits)
    arrays, numbers = {}, []
    for name, x in zip(NAMES, options, strict=True):
        is_array = is_jax(x) or bool(getattr(x, "shape", ()))
        numbers.append(0 if is_array else x)
        if is_array:
            arrays[name] = _of_rows(name, x, logits)
    fixed = [0 if is_jax(x) else x for x in (seed, offset)]
    check_numbers(numbers, *fixed)
    words = jnp.concatenate([_words(name, x) for name, x in (("seed", seed), ("offset", offset))])
    static = (("names", tuple(arrays)), ("numbers", tuple(numbers)))
    return jax_operation(_sample, _shapes, static)(logits, words, *arrays.values())[0]


def _of_rows(name: str, x: Any, logits: Any) -> Any:
    """An option as an array with one for each row; DSLTypeError for one that is none."""
    jnp = jax().numpy
    kind = jnp.int32 if name == "top_k" else jnp.float32
    rows = tuple(logits.shape[:-1])
    fits = not x.shape or (tuple(x.shape) == rows and x.dtype == kind)
    if not fits or (name == "top_k" and not jnp.issubdtype(x.dtype, jnp.integer)):
        raise DSLTypeError(
            f"sample: {name} is {x.dtype.name} of {tuple(x.shape)}",
            hint=f"a number, or {kind.dtype.name} of {rows}",
        )
    return jnp.broadcast_to(x, rows).astype(kind)


def _words(name: str, number: Any) -> Any:
    """The low and the high word of an integer of 64 bits."""
    jnp = jax().numpy
    if not is_jax(number):
        number = operator.index(number)
        return jnp.asarray([number & 0xFFFFFFFF, number >> 32], jnp.uint32)
    if number.ndim or not jnp.issubdtype(number.dtype, jnp.integer):
        raise DSLTypeError(
            f"sample: {name} is {number.dtype.name} of {tuple(number.shape)}",
            hint="an integer, or an array of one without modes",
        )
    is_wide = number.dtype.itemsize == 8
    high = number >> 32 if is_wide else jnp.zeros_like(number)
    return jnp.stack((number, high)).astype(jnp.uint32)


def _sample(outputs: Any, logits: Any, words: Any, *given: Any, names: Any, numbers: Any) -> None:
    arrays = dict(zip(names, given, strict=True))
    every = [arrays.get(name) for name in NAMES]
    draw(library(logits, "sample"), logits, 0, 0, every, list(numbers), outputs[0], words)


def _shapes(logits: Any, *_: Any, **__: Any) -> list[Any]:
    check_rows("sample", "logits", logits)
    return [jax().ShapeDtypeStruct(logits.shape[:-1], jax().numpy.arange(0).dtype)]
