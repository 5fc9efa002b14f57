"""Warps that share the keys of a tile of queries, `ops.ampere.decoding`, against float64."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from basedsl import DSLTypeError
from basedsl_cute.ops import attention
from basedsl_cute.ops.ampere.attention import Config

sys.path.insert(0, str(Path(__file__).parent))

from attention_reference import close, normal, pages_of, reference

TWO = Config((16, 16), 1, packed=2, key_warps=2, stages=2)
THREE = Config((16, 32), 1, packed=2, key_warps=3, stages=3)
SLOPES = np.float32([0.1, 0.2, 0.3, 0.4])
BIAS = np.random.default_rng(7).standard_normal((4, 3, 130)).astype(np.float32)


@pytest.fixture(scope="module")
def qkv():
    return normal(2, 3, 4, 64), normal(2, 130, 2, 64, seed=1), normal(2, 130, 2, 96, seed=2)


def capped(s, *_):
    return 2 * np.tanh(s / 2)


def sloped(s, batch, head, q, k):
    return s - SLOPES[head] * abs(k - q - 127)


@pytest.mark.parametrize("config", [TWO, THREE], ids=["two", "three"])
@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({"causal": True}, {"right": 0}),
        ({"window": (50, 3), "scale": 0.5}, {"left": 50, "right": 3, "scale": 0.5}),
        ({"softcap": 2.0}, {"score": capped}),
        ({"bias": BIAS}, {"score": lambda s, *_: s + BIAS}),
        ({"alibi": SLOPES}, {"score": sloped}),
    ],
    ids=["causal", "window", "softcap", "bias", "alibi"],
)
def test_options(qkv, options, wanted, config):
    out, lse = attention(*qkv, return_lse=True, config=config, **options)
    values, logs = reference(*qkv, **wanted)
    close(out, values)
    close(lse, logs, 2e-3)


def test_functions_and_tiles_that_a_mask_hides():
    """Elements of hidden tiles are no numbers."""
    q, k, v = normal(1, 3, 2, 32), normal(1, 200, 1, 32, seed=1), normal(1, 200, 1, 32, seed=2)
    k[:, 32:80] = v[:, 32:80] = np.nan

    def score(s, batch, head, q, k):
        return s * 0.5 if q > 0 else s - head

    def mask(batch, head, q, k):
        return k >= 80 or k < 32

    def wanted(s, batch, head, q, k):
        return np.where(q > 0, s * 0.5, s - head)

    values, _ = reference(
        np.float64(q),
        np.nan_to_num(k),
        np.nan_to_num(v),
        score=wanted,
        mask=lambda b, h, q, k: ((k >= 80) | (k < 32)) & (q >= 0),
    )
    close(attention(q, k, v, score=score, mask=mask, config=TWO), values)


@pytest.mark.parametrize("splits", [1, 3])
def test_sinks_count_once(splits):
    q, k, v = normal(1, 2, 4, 32), normal(1, 300, 1, 32, seed=1), normal(1, 300, 1, 32, seed=2)
    sinks = np.float32([1, 2, 3, 4])
    config = Config((16, 16), 1, packed=4, key_warps=4, stages=2, splits=splits)
    out, lse = attention(q, k, v, sinks=sinks, config=config, causal=True, return_lse=True)
    values, logs = reference(q, k, v, right=0)
    total = np.logaddexp(logs, sinks[:, None])
    close(out, values * np.exp(logs - total).transpose(0, 2, 1)[..., None])
    close(lse, total, 2e-3)


@pytest.mark.parametrize(
    ("head", "head_v", "warps"), [(32, 64, 8), (96, 96, 4), (64, 256, 2), (256, 32, 6)]
)
def test_heads_of_many_extents(head, head_v, warps):
    q, k = normal(1, 20, 2, head), normal(1, 70, 2, head, seed=1)
    v = normal(1, 70, 2, head_v, seed=2)
    config = Config((16, 16), 1, key_warps=warps, stages=4)
    out, lse = attention(q, k, v, config=config, causal=True, return_lse=True)
    values, logs = reference(q, k, v, right=0)
    close(out, values)
    close(lse, logs, 2e-3)


def test_two_tiles_of_queries_in_a_warp(qkv):
    q = normal(2, 21, 4, 64)
    config = Config((32, 16), 1, packed=2, key_warps=2, stages=4)
    out, lse = attention(q, *qkv[1:], config=config, causal=True, return_lse=True)
    values, logs = reference(q, *qkv[1:], right=0)
    close(out, values)
    close(lse, logs, 2e-3)


def test_more_warps_and_splits_than_tiles_of_keys():
    q, k, v = normal(1, 1, 2, 32), normal(1, 40, 1, 32, seed=1), normal(1, 40, 1, 32, seed=2)
    config = Config((16, 16), 1, packed=2, key_warps=8, stages=2, splits=5)
    out, lse = attention(q, k, v, return_lse=True, config=config)
    values, logs = reference(q, k, v)
    close(out, values)
    close(lse, logs, 2e-3)


def test_rows_that_see_nothing_are_zeros_and_minus_infinity():
    q, k, v = normal(1, 12, 2, 32), normal(1, 4, 2, 32, seed=1), normal(1, 4, 2, 32, seed=2)
    config = Config((16, 16), 1, key_warps=2, stages=2)
    out, lse = attention(q, k, v, causal=True, return_lse=True, config=config)
    values, logs = reference(q, k, v, right=0)
    close(out, values)
    np.testing.assert_array_equal(np.isneginf(lse), np.isneginf(logs))
    assert (out[:, :8] == 0).all()


def test_no_keys():
    q, k = normal(1, 3, 2, 32), normal(1, 0, 2, 32)
    out, lse = attention(q, k, k, return_lse=True, config=TWO)
    assert (out == 0).all() and np.isneginf(lse).all()


def test_not_a_number_and_infinity_travel_along_their_rows(qkv):
    """NaN and infinity in a query, an infinite value: rows are as in PyTorch."""
    q, k, v = (x.copy() for x in qkv)
    q[0, 1, 1, 5] = np.nan
    q[0, 2, 3] = np.inf
    v[1, 70, 0, 7] = np.inf
    out, lse = attention(q, k, v, config=TWO, return_lse=True)
    assert np.isnan(out[0, 1, 1]).all() and np.isnan(out[0, 2, 3]).all()
    assert np.isposinf(out[1, :, :2, 7]).all()
    odd = ~np.isfinite(out)
    assert odd.sum() == 2 * out.shape[-1] + 6
    assert np.isnan(lse).sum() == 2


def test_packed_sequences():
    lengths = [(2, 9), (3, 40), (0, 7), (1, 133), (3, 0)]
    starts = [np.cumsum([0, *x]).astype(np.int32) for x in zip(*lengths, strict=True)]
    q, k, v = (normal(starts[i > 0][-1], heads, 64, seed=i) for i, heads in enumerate((4, 2, 2)))
    k, v = (np.concatenate([x, np.full_like(x[:9], np.nan)]) for x in (k, v))
    given = {"cu_seqlens_q": starts[0], "cu_seqlens_k": starts[1], "max_seqlen_q": 3}
    out, lse = attention(q, k, v, **given, causal=True, return_lse=True, config=TWO)
    for i in range(len(lengths)):
        own, keys = (slice(s[i], s[i + 1]) for s in starts)
        values, logs = reference(q[None, own], k[None, keys], v[None, keys], right=0)
        close(out[own], values[0])
        close(lse[:, own], logs[0], 2e-3)


@pytest.mark.parametrize("rows", [16, 12])
def test_a_cache_of_pages(rows):
    used = np.int32([37, 130])
    table, caches, sequences = pages_of(used, rows, 64)
    q = normal(2, 3, 4, 64)
    out = attention(q, *caches, block_table=table, seqused_k=used, causal=True, config=TWO)
    for i, (k, v) in enumerate(sequences):
        close(out[i : i + 1], reference(q[i : i + 1], k, v, right=0)[0])


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (Config((32, 16), 2, key_warps=2, stages=2), "2 warps cannot share keys"),
        (Config((16, 16), 1, key_warps=2), "two stages or more"),
        (Config((16, 16), 1, key_warps=2, stages=2, slack=8), "no slack"),
        (Config((64, 16), 1, key_warps=2, stages=2), "do not fit into 2 stages"),
        (Config((16, 24), 1, key_warps=2, stages=2), "keys of 16"),
    ],
)
def test_configurations_that_it_does_not_take(qkv, config, message):
    with pytest.raises(DSLTypeError, match=message):
        attention(*qkv, config=config)
