"""`cute.jax`: `@jit` functions and kernels as operations of JAX, which is imported on first use.

`jax_callable` and `jax_kernel` make operations, on GPUs through XLA's foreign function interface:
kernels run on JAX's stream and in its memory. `cutlass_call` is the same by the names of CuTe's
DSL. JAX arrays are immutable: a `@jit` function that is called with one directly may only read it,
unless it is given away by `donate`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from basedsl import ArrayRecord, DSLCallError
from basedsl_cute.arrays.tensor import HostTensor
from basedsl_cute.interop.jax import testing
from basedsl_cute.interop.jax.ffi import TARGET
from basedsl_cute.interop.jax.operations import (
    JaxOperation,
    donate,
    jax_callable,
    jax_kernel,
    register,
)
from basedsl_cute.interop.jax.operations import jax as _jax


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
    """The checks that `jax.export` must skip to export operations: XLA's of the custom call."""
    return [_jax().export.DisabledSafetyCheck.custom_call(TARGET)]


def cutlass_call(
    fn: Callable[..., Any],
    *,
    output_shape_dtype: Any,
    input_spec: Sequence[TensorSpec | None] | None = None,
    output_spec: Sequence[TensorSpec | None] | None = None,
    use_static_tensors: bool = False,
    input_output_aliases: Mapping[int, int] | None = None,
    **static_kwargs: Any,
) -> JaxOperation:
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
    results = [output_shape_dtype] if single else list(output_shape_dtype)
    outputs = _specs(output_spec, len(results))

    def shapes(*inputs: Any) -> list[Any]:
        _specs(input_spec, len(inputs))
        return results

    def convert(record: ArrayRecord, i: int, written: bool) -> Any:
        given = outputs[i] if written else (input_spec[i] if input_spec else None)
        return _tensor(record, given or TensorSpec(), use_static_tensors)

    return JaxOperation(
        fn,  # type: ignore[arg-type]
        shapes,
        single=single,
        stream=0,
        aliases=input_output_aliases or {},
        static=static_kwargs,
        vmap_method="broadcast_all",
        convert=convert,
    )


def _specs(given: Sequence[TensorSpec | None] | None, count: int) -> list[TensorSpec]:
    specs = [None] * count if given is None else list(given)
    if len(specs) != count:
        raise DSLCallError(f"{len(specs)} specs are given for {count} arrays")
    return [spec or TensorSpec() for spec in specs]


def _tensor(record: ArrayRecord, spec: TensorSpec, static: bool) -> HostTensor:
    order = tuple(range(len(record.shape))) if spec.mode is None else spec.mode
    view = ArrayRecord(
        record.address,
        record.dtype,
        tuple(record.shape[i] for i in order),
        tuple(record.strides[i] for i in order),
        record.device,
        record.readonly,
    )
    tensor = HostTensor(view, None, False)
    rank = len(view.shape)
    if static or spec.static or rank == 0:
        return tensor
    leading = order.index(rank - 1)  # XLA's arrays are row-major
    tensor.mark_layout_dynamic(leading_dim=leading)
    if spec.divisibility > 1:
        by_stride = sorted(range(rank), key=lambda i: -view.strides[i])
        tensor.mark_compact_shape_dynamic(
            mode=leading, stride_order=tuple(by_stride), divisibility=spec.divisibility
        )
    return tensor


__all__ = [
    "JaxOperation",
    "TensorSpec",
    "cutlass_call",
    "cutlass_to_jax_dtype",
    "donate",
    "get_export_disabled_safety_checks",
    "jax_callable",
    "jax_kernel",
    "register",
    "testing",
]
