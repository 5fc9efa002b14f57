"""Attention forward by roles of warps, against float64; its PTX through ptxas."""

import ml_dtypes
import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.testing import slow_but
from basedsl_cute.lowering.ptx import ptxas
from basedsl_cute.runtime import from_dlpack
from tests.cute.blackwell.attention_forward import AttentionForward

CASES = {
    "one tile": (AttentionForward(64), (128, 128, 1), np.float16),
    "three tiles": (AttentionForward(64), (128, 384, 1), np.float16),
    "causal": (AttentionForward(64, causal=True), (256, 256, 1), ml_dtypes.bfloat16),
    "two heads, 128 wide": (AttentionForward(128), (128, 256, 2), np.float16),
    "a load that reduces": (AttentionForward(64, reduced=True), (128, 256, 1), np.float16),
}


def arguments(attention, sizes, dtype):
    rows, keys, heads = sizes
    rng = np.random.default_rng(0)
    arrays = []
    for length in (rows, keys, keys):
        x = rng.standard_normal((heads, length, attention.d)).astype(dtype)
        arrays.append(x.transpose(1, 2, 0))
    q, k, v = arrays
    o = np.full((heads, rows, attention.d), np.nan, np.float32).transpose(1, 2, 0)
    scores = np.einsum("qdh,kdh->hqk", q.astype(float), k.astype(float)) * attention.scale
    if attention.causal:
        scores[:, np.arange(rows)[:, None] < np.arange(keys)[None, :]] = -np.inf
    weights = np.exp(scores - scores.max(2, keepdims=True))
    weights /= weights.sum(2, keepdims=True)
    exact = np.einsum("hqk,kdh->qdh", weights, v.astype(float))
    tensors = [
        from_dlpack(x, assumed_align=16).mark_layout_dynamic(leading_dim=1) for x in (q, k, v, o)
    ]
    return tensors, o, exact


QUICK = "a load that reduces"


@pytest.mark.parametrize("name", slow_but(CASES, QUICK))
def test_against_float64(name):
    attention, sizes, dtype = CASES[name]
    tensors, o, exact = arguments(attention, sizes, dtype)
    cute.compile(attention, *tensors, options="--arch sim")(*tensors)
    tolerance = 1e-2 if dtype is ml_dtypes.bfloat16 else 2e-3
    np.testing.assert_allclose(o, exact, atol=tolerance, rtol=0)


@pytest.mark.slow
@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="there is no ptxas")
@pytest.mark.parametrize(("name", "arch"), [
    ("causal", "sm_100a"), ("two heads, 128 wide", "sm_100a"), ("a load that reduces", "sm_103a"),
])  # fmt: skip
def test_ptxas_spills_nothing(name, arch):
    attention, sizes, dtype = CASES[name]
    tensors, *_ = arguments(attention, sizes, dtype)
    (resources,) = cute.compile(attention, *tensors, options=f"--arch {arch}").resources.values()
    assert resources.spills == resources.local == 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100))
def test_random_configurations(seed):
    rng = np.random.default_rng(seed)
    causal = bool(rng.integers(2))
    attention = AttentionForward(
        int(rng.choice((64, 128))),
        causal,
        not causal and bool(rng.integers(2)),
        float(rng.uniform(0.02, 0.3)),
    )
    keys = 128 * int(rng.integers(1, 4))
    rows = keys if causal else 128 * int(rng.integers(1, 3))
    dtype = (np.float16, ml_dtypes.bfloat16)[rng.integers(2)]
    tensors, o, exact = arguments(attention, (rows, keys, int(rng.integers(1, 3))), dtype)
    cute.compile(attention, *tensors, options="--arch sim")(*tensors)
    np.testing.assert_allclose(o, exact, rtol=2e-2, atol=2e-2)
