"""The epilogue of `matmul`'s keywords (activation, alpha, bias, residual), its gradient, and the
activations.

A `FusedEpilogue` compares by value, so that calls with equal keywords share a compiled kernel.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import basedsl_cute as cute
from basedsl import DSLTypeError
from basedsl_cute.ops.derivative import derivative, opaque
from basedsl_cute.tensors.tensor_ssa import elementwise


def relu(x: Any) -> Any:
    """The rectifier max(x, 0) of a vector; NaN stays NaN."""
    return cute.where(x < 0.0, 0.0, x)


def gelu(x: Any) -> Any:
    """The Gaussian error linear unit: x times the standard normal distribution function at x."""
    return x * (cute.erf(x * math.sqrt(0.5)) + 1.0) * 0.5


def gelu_tanh(x: Any) -> Any:
    """The approximation of `gelu` by tanh."""
    inner = (x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)
    return x * (cute.tanh(inner) + 1.0) * 0.5


def sigmoid(x: Any) -> Any:
    """The logistic function 1 / (1 + exp(-x))."""
    return 1.0 / (cute.exp(0.0 - x) + 1.0)


def silu(x: Any) -> Any:
    """The sigmoid linear unit x * sigmoid(x)."""
    return x / (cute.exp(0.0 - x) + 1.0)


ACTIVATIONS = {
    "relu": relu,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "sigmoid": sigmoid,
    "silu": silu,
    "tanh": lambda x: cute.tanh(x),
}


def _sigmoid_slope(x: Any) -> Any:
    y = sigmoid(x)
    return y * (1.0 - y)


def _silu_slope(x: Any) -> Any:
    y = sigmoid(x)
    return y * (x * (1.0 - y) + 1.0)


# Slopes that differentiation would not find as PyTorch has them: that of the rectifier at 0 is 0,
# and quotients by exponentials that are infinite, of numbers below -88, are not numbers.
_SLOPES = {
    "relu": lambda x: cute.where(x <= 0.0, 0.0, cute.full_like(x, 1.0)),
    "sigmoid": _sigmoid_slope,
    "silu": _silu_slope,
}


@dataclass(frozen=True)
class FusedEpilogue:
    """The epilogue activation(alpha * x + bias) + residual, computed in Float32, or in Float64 for
    such accumulators.

    Calling it takes the accumulators and the operands that are present, in the order alpha, bias,
    residual. Raises DSLTypeError for an activation that is neither a known name nor a function.
    """

    activation: Any = None  # a name of ACTIVATIONS or a function of a vector
    alpha: bool = False
    bias: bool = False
    residual: bool = False

    def __post_init__(self) -> None:
        known = self.activation is None or callable(self.activation)
        if not known and self.activation not in ACTIVATIONS:
            raise DSLTypeError(
                f"activation={self.activation!r} is unknown",
                hint=f"{', '.join(ACTIVATIONS)}, or a function of a vector: "
                "lambda x: cute.where(x > 0.0, x, 0.0)",
            )

    def __call__(self, acc: Any, *operands: Any) -> Any:
        left = iter(operands)
        kind = _float_of(acc)
        x = self._linear(acc.to(kind), left)
        if self.activation is not None:
            x = self._activated(x)
        if self.residual:
            x = x + next(left).to(kind)
        return x

    def _linear(self, x: Any, operands: Iterator[Any]) -> Any:
        """alpha * x + bias."""
        if self.alpha:
            x = x * next(operands)
        if self.bias:
            x = x + next(operands).to(x.element_type)
        return x

    def _activated(self, x: Any) -> Any:
        return ACTIVATIONS.get(self.activation, self.activation)(x)

    def _slope(self, x: Any) -> Any:
        """The derivative of the activation at a vector."""
        known = _SLOPES.get(self.activation)
        return elementwise(self._slope_of_number, x) if known is None else known(x)

    def _slope_of_number(self, x: Any) -> Any:
        x = opaque(x)
        return derivative(self._activated(x), x)


@dataclass(frozen=True)
class ActivationGradient(FusedEpilogue):
    """The epilogue gradient * activation'(alpha * x + bias), where `gradient` is that of the
    activation's result. Its operands are alpha and bias if they are present, then the gradient.

    The derivative is that of the traced function (see `ops.derivative`), but for those of
    `_SLOPES`; DSLTypeError for one that is not known.
    """

    def __call__(self, acc: Any, *operands: Any) -> Any:
        *first, gradient = operands
        kind = _float_of(acc)
        return gradient.to(kind) * self._slope(self._linear(acc.to(kind), iter(first)))


@dataclass(frozen=True)
class Gate(FusedEpilogue):
    """The epilogue acc * activation(gate), whose operand is the gate."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.activation is None:
            raise DSLTypeError("a gate has an activation", hint=", ".join(ACTIVATIONS))

    def __call__(self, acc: Any, *operands: Any) -> Any:
        kind = _float_of(acc)
        (gate,) = operands
        return acc.to(kind) * self._activated(gate.to(kind))


@dataclass(frozen=True)
class GateGradient(FusedEpilogue):
    """The epilogue gradient * acc * activation'(gate), the gradient by the gate. Its operands are
    the gate and the gradient of the result of `Gate`.
    """

    def __call__(self, acc: Any, *operands: Any) -> Any:
        kind = _float_of(acc)
        gate, gradient = (x.to(kind) for x in operands)
        return gradient * acc.to(kind) * self._slope(gate)


def _float_of(acc: Any) -> Any:
    """The float class that an epilogue computes in."""
    return cute.Float64 if acc.element_type is cute.Float64 else cute.Float32
