"""`cute.jax`: `@jit` functions as operations of JAX, which is imported on first use.

An operation is a JAX callback: its arrays pass through host memory, even if JAX and the kernels
both use the GPU. To keep arrays on the GPU, call the `@jit` function with JAX arrays directly,
outside of `jax.jit`.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from basedsl import DSLCallError, DSLRuntimeError
from basedsl_cute.arrays.tensor import from_dlpack
from basedsl_cute.dsl.cute import CUTE
from basedsl_cute.interop.cuda import default_stream, stream_sync
from basedsl_cute.interop.jax import testing


def _jax() -> Any:
    try:
        return importlib.import_module("jax")
    except ImportError:
        raise DSLRuntimeError("JAX is not installed", hint="pip install jax") from None


@dataclass(frozen=True)
class TensorSpec:
    """The passing of one JAX array to the `@jit` function of `cutlass_call`.

    `mode` lists the array's axes in the order of the tensor's modes, by default their own order.
    `static` makes shape and strides static. `divisibility` is promised to divide the extent of the
    contiguous mode.
    """

    mode: tuple[int, ...] | None = None
    static: bool = False
    divisibility: int = 1


def cutlass_to_jax_dtype(dtype: Any) -> Any:
    """The JAX dtype for a numeric class; DSLRuntimeError where JAX is not installed."""
    return _jax().numpy.dtype(dtype.numpy_dtype)


def get_export_disabled_safety_checks() -> list[Any]:
    """The checks that `jax.export` may skip: none, since JAX cannot export callbacks."""
    return []


def cutlass_call(
    fn: Callable[..., Any],
    *,
    output_shape_dtype: Any,
    input_spec: Sequence[TensorSpec | None] | None = None,
    output_spec: Sequence[TensorSpec | None] | None = None,
    use_static_tensors: bool = False,
    input_output_aliases: Mapping[int, int] | None = None,
    **static_kwargs: Any,
) -> Callable[..., Any]:
    """Make a function of JAX arrays that calls a `@jit` function, also under `jax.jit`.

    The result calls `fn(stream, *inputs, *outputs, **static_kwargs)` and returns the outputs, new
    arrays as `output_shape_dtype` describes them: one `jax.ShapeDtypeStruct`, or a sequence for a
    tuple of results. `input_spec` and `output_spec` have a `TensorSpec` or None for each array;
    `use_static_tensors` makes all layouts static. `input_output_aliases` maps inputs to outputs
    that start as copies of them; `fn` then gets the output only.

    Raises DSLRuntimeError where JAX is not installed, DSLCallError for another number of specs than
    arrays.
    """
    single = hasattr(output_shape_dtype, "shape")
    shapes = (output_shape_dtype,) if single else tuple(output_shape_dtype)
    aliases = dict(input_output_aliases or {})
    compiled: dict[Any, Any] = {}

    def run(*inputs: Any) -> tuple[Any, ...]:
        arrays = [np.asarray(x) for x in inputs]
        outputs = [np.zeros(one.shape, one.dtype) for one in shapes]
        for i, o in aliases.items():
            outputs[o][...] = arrays[i]
        specs = _specs(input_spec, len(arrays)), _specs(output_spec, len(outputs))
        seen = [
            _tensor(x, spec, use_static_tensors)
            for i, (x, spec) in enumerate(zip(arrays, specs[0], strict=True))
            if i not in aliases
        ]
        seen += [
            _tensor(x, spec, use_static_tensors) for x, spec in zip(outputs, specs[1], strict=True)
        ]
        stream = default_stream()
        key = tuple((str(t), t.element_type) for t in seen)
        if key not in compiled:
            compiled[key] = CUTE.compile(fn, stream, *seen, **static_kwargs)
        compiled[key](stream, *seen)
        stream_sync(stream)
        return tuple(outputs)

    @functools.wraps(getattr(fn, "fn", fn))
    def call(*inputs: Any) -> Any:
        results = _jax().pure_callback(run, shapes, *inputs)
        return results[0] if single else results

    return call


def _specs(given: Sequence[TensorSpec | None] | None, count: int) -> list[TensorSpec]:
    specs = [None] * count if given is None else list(given)
    if len(specs) != count:
        raise DSLCallError(f"{len(specs)} specs are given for {count} arrays")
    return [spec or TensorSpec() for spec in specs]


def _tensor(array: Any, spec: TensorSpec, static: bool) -> Any:
    view = array if spec.mode is None else array.transpose(spec.mode)
    tensor = from_dlpack(view)
    if static or spec.static or view.ndim == 0:
        return tensor
    leading = view.ndim - 1 if spec.mode is None else spec.mode.index(view.ndim - 1)
    contiguous = view.strides[leading] == view.itemsize
    tensor.mark_layout_dynamic(leading_dim=leading if contiguous else None)
    if spec.divisibility > 1:
        order = sorted(range(view.ndim), key=lambda i: -view.strides[i])
        tensor.mark_compact_shape_dynamic(
            mode=leading, stride_order=tuple(order), divisibility=spec.divisibility
        )
    return tensor


__all__ = [
    "TensorSpec",
    "cutlass_call",
    "cutlass_to_jax_dtype",
    "get_export_disabled_safety_checks",
    "testing",
]
