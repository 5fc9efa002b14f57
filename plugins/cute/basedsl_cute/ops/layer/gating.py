"""The elementwise part of gated layers, y = activation(g) * u, and its gradients, a kernel each.

du = dy * activation(g)      dg = dy * u * activation'(g)
"""

from __future__ import annotations

from typing import Any

import basedsl_cute as cute
from basedsl_cute.ops.gemm.epilogue import Gate, GateGradient
from basedsl_cute.ops.layer.elementwise import THREADS, fill, load_vector, store_vector, this_item


def gated_values(gate: Any, up: Any, activation: Any) -> Any:
    """Return activation(gate) * up, for arrays of one shape and type."""
    return fill(_launch, (gate, up), 1, activation)[0]


def gate_gradients(gate: Any, up: Any, grad: Any, activation: Any) -> tuple[Any, Any]:
    """Return the gradients of `gated_values` by gate and up, from `grad`, that of its result."""
    of_gate, of_up = fill(_launch_gradients, (gate, up, grad), 2, activation)
    return of_gate, of_up


# Kernels -----------------------------------------------------------------------------------------


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
    item = this_item()
    if item < items:
        result = Gate(activation)(load_vector(up, item, vector), load_vector(gate, item, vector))
        store_vector(result, y, item, vector)


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
    item = this_item()
    if item < items:
        g, u, dy = (load_vector(x, item, vector) for x in (gate, up, grad))
        store_vector(GateGradient(activation)(u, g, dy), of_gate, item, vector)
        store_vector(Gate(activation)(dy, g), of_up, item, vector)


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
        grid=cute.ceil_div(items, THREADS).to(cute.Int32),
        block=THREADS,
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
        grid=cute.ceil_div(items, THREADS).to(cute.Int32),
        block=THREADS,
        stream=cute.Stream(stream.ir_value()),
    )
