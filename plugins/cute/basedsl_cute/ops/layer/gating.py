"""The elementwise part of gated layers, y = activation(g) * u, and its gradients, a kernel each.

du = dy * activation(g)      dg = dy * u * activation'(g)
"""

from __future__ import annotations

from typing import Any

import basedsl_cute as cute
from basedsl import ArrayRecord, from_dlpack
from basedsl_cute import arch
from basedsl_cute.ops.array_libraries import library
from basedsl_cute.ops.gemm.epilogue import Gate, GateGradient
from basedsl_cute.ops.plan_cache import PlanCache, asked_target

_THREADS = 256

_compiled: PlanCache[Any] = PlanCache()


def gated_values(gate: Any, up: Any, activation: Any) -> Any:
    """Return activation(gate) * up, for arrays of one shape and type."""
    return _call(_launch, (gate, up), 1, activation)[0]


def gate_gradients(gate: Any, up: Any, grad: Any, activation: Any) -> tuple[Any, Any]:
    """Return the gradients of `gated_values` by gate and up, from `grad`, that of its result."""
    of_gate, of_up = _call(_launch_gradients, (gate, up, grad), 2, activation)
    return of_gate, of_up


def _call(launch: Any, given: tuple[Any, ...], results: int, activation: Any) -> list[Any]:
    """New arrays like the given ones, which `launch` fills."""
    lib = library(given[0], "gated_linear")
    given = tuple(map(lib.compact, given))
    found = [lib.empty(given[0].shape, given[0].dtype, given[0]) for _ in range(results)]
    record = ArrayRecord.of(given[0])
    count = 1
    for extent in record.shape:
        count *= extent
    if not count:
        return found
    width = from_dlpack(*record.dtype).width
    vector = 128 // width
    arrays = (*given, *found)
    while count % vector or any(lib.address(x) % (vector * width // 8) for x in arrays):
        vector //= 2
    items, stream = count // vector, lib.stream(given[0])
    key = (launch, activation, vector, asked_target(), *map(lib.key, arrays))
    compiled = _compiled.get(key)
    if compiled is None:
        made = cute.compile(launch, *arrays, items, activation, vector, stream)
        compiled = _compiled.keep(key, made)
    compiled(*arrays, items, stream)
    return found


# Kernels -----------------------------------------------------------------------------------------


def _vector_at(x: Any, item: Any, vector: int) -> Any:
    """The vector number `item` of a compact array."""
    size = vector * x.element_type.width // 8
    address = x.iterator.toint() + item * size
    pointer = cute.make_ptr(x.element_type, address, "gmem", assumed_align=size)
    return cute.make_tensor(pointer, cute.make_layout(vector))


def _load(x: Any, item: Any, vector: int) -> Any:
    fragment = cute.make_rmem_tensor((vector,), x.element_type)
    cute.autovec_copy(_vector_at(x, item, vector), fragment)
    return fragment.load()


def _store(values: Any, x: Any, item: Any, vector: int) -> None:
    fragment = cute.make_rmem_tensor((vector,), x.element_type)
    fragment.store(values.to(x.element_type))
    cute.autovec_copy(fragment, _vector_at(x, item, vector))


@cute.kernel
def gate_kernel(
    gate: cute.Tensor,
    up: cute.Tensor,
    y: cute.Tensor,
    items: cute.Int64,
    activation: cute.Constexpr,
    vector: cute.Constexpr,
):
    """Write one vector of activation(gate) * up."""
    item = cute.Int64(arch.block_idx()[0]) * _THREADS + arch.thread_idx()[0]
    if item < items:
        result = Gate(activation)(_load(up, item, vector), _load(gate, item, vector))
        _store(result, y, item, vector)


@cute.kernel
def gate_gradient_kernel(
    gate: cute.Tensor,
    up: cute.Tensor,
    grad: cute.Tensor,
    of_gate: cute.Tensor,
    of_up: cute.Tensor,
    items: cute.Int64,
    activation: cute.Constexpr,
    vector: cute.Constexpr,
):
    """Write one vector of each gradient."""
    item = cute.Int64(arch.block_idx()[0]) * _THREADS + arch.thread_idx()[0]
    if item < items:
        g, u, dy = (_load(x, item, vector) for x in (gate, up, grad))
        _store(GateGradient(activation)(u, g, dy), of_gate, item, vector)
        _store(Gate(activation)(dy, g), of_up, item, vector)


@cute.jit
def _launch(
    gate: cute.Tensor,
    up: cute.Tensor,
    y: cute.Tensor,
    items: cute.Int64,
    activation: cute.Constexpr,
    vector: cute.Constexpr,
    stream: cute.Int64,
):
    gate_kernel(gate, up, y, items, activation, vector).launch(
        grid=cute.ceil_div(items, _THREADS).to(cute.Int32),
        block=_THREADS,
        stream=cute.Stream(stream.ir_value()),
    )


@cute.jit
def _launch_gradients(
    gate: cute.Tensor,
    up: cute.Tensor,
    grad: cute.Tensor,
    of_gate: cute.Tensor,
    of_up: cute.Tensor,
    items: cute.Int64,
    activation: cute.Constexpr,
    vector: cute.Constexpr,
    stream: cute.Int64,
):
    gate_gradient_kernel(gate, up, grad, of_gate, of_up, items, activation, vector).launch(
        grid=cute.ceil_div(items, _THREADS).to(cute.Int32),
        block=_THREADS,
        stream=cute.Stream(stream.ir_value()),
    )
