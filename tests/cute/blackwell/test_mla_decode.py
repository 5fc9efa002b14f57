"""Latent attention, decoding by pairs of blocks, against float64; its PTX through ptxas."""

import ml_dtypes
import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute.lowering.ptx import ptxas
from basedsl_cute.runtime import from_dlpack
from tests.cute.blackwell.mla_decode import HEADS, LATENT, ROPE, MlaDecode

CASES = {
    "a tile and a part": (MlaDecode(1), (200,), np.float16),
    "splits, one without keys": (MlaDecode(3, page=128), (300, 64), ml_dtypes.bfloat16),
}


def arguments(decode, lengths, dtype, seed=0):
    """The tensors, what the program writes, and what is exact."""
    rng, batches = np.random.default_rng(seed), len(lengths)
    most = -(-max(lengths) // decode.page)
    pages = most * batches
    ql = rng.standard_normal((batches, HEADS, LATENT)).astype(dtype)
    qr = rng.standard_normal((batches, HEADS, ROPE)).astype(dtype)
    latent = rng.standard_normal((pages, decode.page, LATENT)).astype(dtype)
    rope = rng.standard_normal((pages, decode.page, ROPE)).astype(dtype)
    table = rng.permutation(pages).astype(np.int32).reshape(batches, most)
    out = np.full((batches, HEADS, LATENT), np.nan, dtype)
    lse = np.full((batches, HEADS), np.nan, np.float32)
    parts = np.full((batches, decode.splits, HEADS, LATENT), np.nan, np.float32)
    logs = np.full((batches, decode.splits, HEADS), np.nan, np.float32)
    exact, exact_logs = [], []
    for batch, length in enumerate(lengths):
        keys, turns = (x[table[batch]].reshape(-1, x.shape[2])[:length].astype(float)
                       for x in (latent, rope))  # fmt: skip
        scores = ql[batch].astype(float) @ keys.T + qr[batch].astype(float) @ turns.T
        scores *= decode.scale
        top = scores.max(1, keepdims=True)
        weights = np.exp(scores - top)
        total = weights.sum(1, keepdims=True)
        exact.append(weights / total @ keys)
        exact_logs.append((top + np.log(total))[:, 0])
    arrays = [
        *(x.transpose(1, 2, 0) for x in (ql, qr, latent, rope)), table.T,
        np.array(lengths, np.int32), out.transpose(1, 2, 0), lse.T,
        parts.transpose(2, 3, 1, 0), logs.transpose(2, 1, 0),
    ]  # fmt: skip
    leading = (1, 1, 1, 1, 0, 0, 1, 0, 1, 0)
    tensors = [
        from_dlpack(x, assumed_align=16).mark_layout_dynamic(leading_dim=d)
        for x, d in zip(arrays, leading, strict=True)
    ]
    return tensors, (out, lse), (np.array(exact), np.array(exact_logs))


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_against_float64(name):
    check(*CASES[name])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100))
def test_random_configurations(seed):
    rng = np.random.default_rng(seed)
    decode = MlaDecode(
        int(rng.integers(1, 5)), 64 * int(rng.integers(1, 4)), float(rng.uniform(0.01, 0.08))
    )
    lengths = tuple(int(n) for n in rng.integers(1, 500, rng.integers(1, 3)))
    check(decode, lengths, (np.float16, ml_dtypes.bfloat16)[rng.integers(2)], seed)


def check(decode, lengths, dtype, seed=0):
    tensors, (out, lse), (exact, logs) = arguments(decode, lengths, dtype, seed)
    cute.compile(decode, *tensors, options="--arch sim")(*tensors)
    tolerance = 2e-2 if dtype is ml_dtypes.bfloat16 else 3e-3
    np.testing.assert_allclose(out.astype(float), exact, atol=tolerance, rtol=tolerance)
    np.testing.assert_allclose(lse, logs, atol=2e-3)


@pytest.mark.slow
@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="there is no ptxas")
def test_ptxas_spills_nothing():
    decode, lengths, dtype = CASES["a tile and a part"]
    tensors, *_ = arguments(decode, lengths, dtype)
    compiled = cute.compile(decode, *tensors, options="--arch sm_100a")
    for kernel in compiled.resources.values():
        assert kernel.spills == kernel.local == 0
