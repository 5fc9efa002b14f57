"""Attention backward by roles of warps, against float64; its PTX through ptxas."""

import ml_dtypes
import numpy as np
import pytest

from tests.cute.blackwell.attention_backward import AttentionBackward
from tests.cute.blackwell.whole_programs import (
    check_resources,
    needs_ptxas,
    precision,
    simulate,
    tensors_of,
)

CASES = {
    "one tile": (AttentionBackward(64), (128, 1), np.float16),
    "three tiles": (AttentionBackward(64), (384, 1), np.float16),
    "causal, two heads": (AttentionBackward(64, causal=True), (256, 2), ml_dtypes.bfloat16),
    "128 wide": (AttentionBackward(128, scale=0.05), (256, 1), np.float16),
}


def arguments(attention, sizes, dtype, seed=0):
    """The tensors, the gradients that the program writes, and the exact ones."""
    rows, heads = sizes
    rng = np.random.default_rng(seed)
    shape = (heads, rows, attention.d)
    q, k, v, do = (rng.standard_normal(shape).astype(dtype) for _ in range(4))
    wide = [x.astype(float) for x in (q, k, v, do)]
    scores = wide[0] @ wide[1].transpose(0, 2, 1) * attention.scale
    if attention.causal:
        scores[:, np.arange(rows)[:, None] < np.arange(rows)] = -np.inf
    top = scores.max(2, keepdims=True)
    weights = np.exp(scores - top)
    lse = (top + np.log(weights.sum(2, keepdims=True)))[..., 0]
    weights = np.exp(scores - lse[..., None])
    o = (weights @ wide[2]).astype(dtype)
    grad = weights * (wide[3] @ wide[2].transpose(0, 2, 1)
                      - (o.astype(float) * wide[3]).sum(2, keepdims=True))  # fmt: skip
    exact = (
        grad @ wide[1] * attention.scale,
        grad.transpose(0, 2, 1) @ wide[0] * attention.scale,
        weights.transpose(0, 2, 1) @ wide[3],
    )
    found = [np.full(shape, np.nan, dtype) for _ in range(3)]
    sums, dq_sums = np.full((heads, rows), np.nan, np.float32), np.full(shape, np.nan, np.float32)
    arrays = [
        *(x.transpose(1, 2, 0) for x in (q, k, v, o, do)), lse.astype(np.float32).T,
        *(x.transpose(1, 2, 0) for x in found), sums.T, dq_sums.transpose(1, 2, 0),
    ]  # fmt: skip
    return tensors_of(arrays, [1 if x.ndim == 3 else 0 for x in arrays]), found, exact


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_against_float64(name):
    check(*CASES[name])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100))
def test_random_configurations(seed):
    rng = np.random.default_rng(seed)
    attention = AttentionBackward(
        int(rng.choice((64, 128))), bool(rng.integers(2)), float(rng.uniform(0.02, 0.3))
    )
    sizes = (128 * int(rng.integers(1, 4)), int(rng.integers(1, 3)))
    check(attention, sizes, (np.float16, ml_dtypes.bfloat16)[rng.integers(2)], seed)


def check(attention, sizes, dtype, seed=0):
    tensors, found, exact = arguments(attention, sizes, dtype, seed)
    simulate(attention, tensors)
    for one, wanted in zip(found, exact, strict=True):
        atol = precision(dtype) * abs(wanted).max()
        np.testing.assert_allclose(one.astype(float), wanted, atol=atol)


@pytest.mark.slow
@needs_ptxas
@pytest.mark.parametrize("name", ["causal, two heads", "128 wide"])
def test_ptxas_spills_nothing(name):
    attention, sizes, dtype = CASES[name]
    tensors, *_ = arguments(attention, sizes, dtype)
    check_resources(attention, tensors)
