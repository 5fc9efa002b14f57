"""Gated linear layers of `ops` against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from basedsl import DSLTypeError
from basedsl_cute.ops import gated_linear


def test_swiglu():
    rng = np.random.default_rng(0)
    x, gate, up = (rng.standard_normal(s).astype(np.float32) for s in ((2, 5, 8), (8, 6), (8, 6)))
    g = (x @ gate).astype(np.float64)
    wanted = g / (1 + np.exp(-g)) * (x @ up)
    np.testing.assert_allclose(gated_linear(x, gate, up), wanted, atol=1e-5)


def test_what_does_not_fit():
    x, gate = np.zeros((4, 8), np.float32), np.zeros((8, 6), np.float32)
    with pytest.raises(DSLTypeError, match="activation='swish' is unknown"):
        gated_linear(x, gate, gate, activation="swish")
    with pytest.raises(DSLTypeError, match=r"gate is \(8, 6\), and up \(8, 5\)"):
        gated_linear(x, gate, gate[:, :5])
