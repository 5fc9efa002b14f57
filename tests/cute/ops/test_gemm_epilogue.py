"""Gradients of activations as epilogues of `ops.matmul`, against differences in float64."""

from __future__ import annotations

import math

import numpy as np
import pytest

from basedsl_cute.ops import matmul
from basedsl_cute.ops.gemm.epilogue import ActivationGradient

gelu = np.vectorize(lambda z: z * (math.erf(z * math.sqrt(0.5)) + 1) / 2)
FUNCTIONS = {"gelu": gelu, "silu": lambda z: z / (1 + np.exp(-z))}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_gradient_of_an_activation(name, monkeypatch):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sim")  # with Float64 the kernel spills on a GPU
    rng = np.random.default_rng(0)
    a, b, bias, grad = (rng.standard_normal(s) for s in ((5, 3), (3, 4), 4, (5, 4)))
    epilogue = ActivationGradient(name, bias=True)
    found = matmul(a, b, epilogue=epilogue, operands=(bias, grad))
    z, function, step = a @ b + bias, FUNCTIONS[name], 1e-5
    slope = (function(z + step) - function(z - step)) / (2 * step)
    np.testing.assert_allclose(found, grad * slope, atol=1e-8)


def test_gradients_of_equal_activations_share_a_kernel():
    assert ActivationGradient("silu") == ActivationGradient("silu")
    assert ActivationGradient("silu") != ActivationGradient("gelu")
