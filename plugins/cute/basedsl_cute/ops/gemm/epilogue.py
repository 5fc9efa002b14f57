"""The epilogue that `matmul` makes of its keywords: a value, so that equal ones share a kernel."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import basedsl_cute as cute
from basedsl.errors import DSLTypeError


def relu(x: Any) -> Any:
    """max(x, 0); NaN stays."""
    return cute.where(x < 0.0, 0.0, x)


def gelu(x: Any) -> Any:
    """x times the probability that a normal number is below it."""
    return x * (cute.erf(x * math.sqrt(0.5)) + 1.0) * 0.5


def gelu_tanh(x: Any) -> Any:
    """`gelu` with the usual approximation of the error function."""
    inner = (x + x * x * x * 0.044715) * math.sqrt(2 / math.pi)
    return x * (cute.tanh(inner) + 1.0) * 0.5


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x))"""
    return 1.0 / (cute.exp(0.0 - x) + 1.0)


def silu(x: Any) -> Any:
    """x * sigmoid(x)"""
    return x / (cute.exp(0.0 - x) + 1.0)


ACTIVATIONS = {
    "relu": relu,
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "sigmoid": sigmoid,
    "silu": silu,
    "tanh": lambda x: cute.tanh(x),
}


@dataclass(frozen=True)
class FusedEpilogue:
    """activation(alpha * x + bias) + residual, in float32. The operands that there are come in this
    order.
    """

    activation: Any = None  # a name of ACTIVATIONS or a function of a vector
    alpha: bool = False
    bias: bool = False
    residual: bool = False

    def __post_init__(self) -> None:
        known = self.activation is None or callable(self.activation)
        if not known and self.activation not in ACTIVATIONS:
            raise DSLTypeError(
                f"activation={self.activation!r} is none of {', '.join(ACTIVATIONS)}",
                hint="or pass a function of a vector: lambda x: cute.where(x > 0.0, x, 0.0)",
            )

    def __call__(self, acc: Any, *operands: Any) -> Any:
        left = iter(operands)
        x = acc.to(cute.Float32)
        if self.alpha:
            x = x * next(left)
        if self.bias:
            x = x + next(left).to(cute.Float32)
        if self.activation is not None:
            x = ACTIVATIONS.get(self.activation, self.activation)(x)
        if self.residual:
            x = x + next(left).to(cute.Float32)
        return x
