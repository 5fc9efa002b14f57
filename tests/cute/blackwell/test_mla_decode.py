"""Latent attention, decoding by pairs of blocks, against float64; its PTX through ptxas."""

import ml_dtypes
import numpy as np
import pytest

from tests.cute.blackwell.mla_decode import HEADS, LATENT, ROPE, MlaDecode
from tests.cute.blackwell.whole_programs import (
    check_resources,
    needs_ptxas,
    precision,
    simulate,
    tensors_of,
)

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
    tensors = tensors_of(arrays, (1, 1, 1, 1, 0, 0, 1, 0, 1, 0))
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
    simulate(decode, tensors)
    tolerance = precision(dtype)
    np.testing.assert_allclose(out.astype(float), exact, atol=tolerance, rtol=tolerance)
    np.testing.assert_allclose(lse, logs, atol=2e-3)


@pytest.mark.slow
@needs_ptxas
def test_ptxas_spills_nothing():
    decode, lengths, dtype = CASES["a tile and a part"]
    tensors, *_ = arguments(decode, lengths, dtype)
    check_resources(decode, tensors)
