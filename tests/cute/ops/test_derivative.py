"""Derivatives of traced expressions against differences of the same functions in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLTypeError
from basedsl_cute.ops.derivative import derivative, opaque


@cute.jit
def differentiated(x: cute.Tensor, out: cute.Tensor, fn: cute.Constexpr):
    for i in range(cute.size(x)):
        s = opaque(x[i] * 1.0)
        value = fn(s)
        out[0, i] = value
        out[1, i] = derivative(value, s)


def branch(s):
    y = s * 3.0
    if s > 1.0:
        if y > 4.0:
            y = y * s
    else:
        return s * s
    return y - s


FUNCTIONS = {
    "linear": lambda s: 2.0 * s - 1.0,
    "product": lambda s: (s + 1.0) * (s - 3.0) * s,
    "quotient": lambda s: (s + 1.0) / (s * s + 2.0),
    "root": lambda s: cute.math.sqrt(s) + cute.math.rsqrt(s),
    "exponential": lambda s: cute.math.exp(s) * 0.1 + cute.math.exp2(-s),
    "logarithm": lambda s: cute.math.log(s) + cute.math.log2(s) + cute.math.log10(s),
    "waves": lambda s: cute.math.sin(s) * cute.math.cos(2.0 * s),
    "tanh": lambda s: 5.0 * cute.math.tanh(s / 5.0),
    "erf": lambda s: cute.math.erf(s),
    "power": lambda s: s**3 + s**s,
    "choice": lambda s: s * s if s > 1.3 else -s,
    "where": lambda s: cute.where(s > 1.3, s * s, 1.0),
    "larger": lambda s: max(s, 1.2) + min(s * s, 1.5),
    "absolute": lambda s: abs(s - 1.3),
    "branch": branch,
    "constant": lambda s: cute.Float32(3.0),
}


def plain(fn, x):
    """The function of a float64 in plain Python."""
    import types

    functions = types.SimpleNamespace(
        sqrt=math.sqrt,
        rsqrt=lambda v: 1 / math.sqrt(v),
        exp=math.exp,
        exp2=lambda v: 2.0**v,
        log=math.log,
        log2=math.log2,
        log10=math.log10,
        sin=math.sin,
        cos=math.cos,
        tanh=math.tanh,
        erf=math.erf,
    )
    space = types.SimpleNamespace(
        math=functions, where=lambda c, a, b: a if c else b, Float32=float
    )
    return types.FunctionType(fn.__code__, {**fn.__globals__, "cute": space})(x)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_slopes(name):
    fn = FUNCTIONS[name]
    x = np.float32([0.4, 0.9, 1.1, 1.6, 2.5])
    out = np.zeros((2, len(x)), np.float32)
    differentiated(x, out, cute.jit(fn))
    step = 1e-5
    values = [plain(fn, float(v)) for v in x]
    slopes = [(plain(fn, float(v) + step) - plain(fn, float(v) - step)) / (2 * step) for v in x]
    np.testing.assert_allclose(out[0], values, rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(out[1], slopes, rtol=2e-4, atol=1e-5)


def test_an_operation_without_a_known_derivative():
    with pytest.raises(DSLTypeError, match=r"the derivative of .* is not known"):
        differentiated(np.ones(2, np.float32), np.zeros((2, 2), np.float32), unknown)


def unknown(s):
    return s % 3.0
