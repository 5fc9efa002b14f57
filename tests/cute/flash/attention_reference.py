"""Attention in float64 with NumPy, written from its definition."""

from __future__ import annotations

import numpy as np


def normal(*shape, seed=0):
    """Random normal numbers of Float16."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float16)


def close(found, wanted, atol=4e-3):
    """Compare results with those in float64."""
    np.testing.assert_allclose(np.asarray(found, np.float64), wanted, atol=atol)


def pages_of(used, rows, head):
    """Two caches of pages of `rows` keys for sequences of `used` keys, whose rows behind the last
    key are not numbers: (the table, the two caches, keys and values of each sequence).
    """
    most = -(-max(used) // rows)
    given = [normal(len(used) * most, rows, 2, head, seed=i) for i in (1, 2)]
    order = np.random.default_rng(3).permutation(len(used) * most)
    table = np.int32(order.reshape(len(used), most))
    caches = []
    for x in given:
        caches.append(np.full_like(x, np.nan))
        for own, keys in zip(table, used, strict=True):
            for key in range(keys):
                at = own[key // rows], key % rows
                caches[-1][at] = x[at]
    sequences = [
        [x[own].reshape(1, -1, 2, head)[:, :keys] for x in given]
        for own, keys in zip(table, used, strict=True)
    ]
    return table, caches, sequences


def reference(q, k, v, *, scale=None, left=None, right=None, shift=None, score=None, mask=None):
    """Softmax(q k^T) v of (batches, length, heads, head) in float64, and the logarithms of sums
    (batches, heads, queries); rows that see no key are 0 and -inf.
    """
    (batches, queries, heads, head), keys = q.shape, k.shape[1]
    group = heads // k.shape[2]
    q, k, v = (np.asarray(x, np.float64).transpose(0, 2, 1, 3) for x in (q, k, v))
    k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    s = q @ k.transpose(0, 1, 3, 2) * (head**-0.5 if scale is None else scale)
    i, j = np.arange(queries)[:, None], np.arange(keys)
    place = (np.arange(batches)[:, None, None, None], np.arange(heads)[:, None, None], i, j)
    if score is not None:
        s = score(s, *place)
    diagonal = i + (keys - queries if shift is None else shift)
    seen = np.ones(s.shape, bool)
    if left is not None:
        seen &= j >= diagonal - left
    if right is not None:
        seen &= j <= diagonal + right
    if mask is not None:
        seen &= mask(*place)
    s = np.where(seen, s, -np.inf)
    largest = s.max(-1, keepdims=True, initial=-np.inf)
    largest = np.where(np.isneginf(largest), 0, largest)
    weights = np.exp(s - largest)
    total = weights.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        logs = (largest + np.log(total))[..., 0]
    return (weights / np.where(total == 0, 1, total) @ v).transpose(0, 2, 1, 3), logs


def gradients(
    grad,
    q,
    k,
    v,
    *,
    left=None,
    right=None,
    shift=None,
    score=None,
    slope=None,
    mask=None,
    of_scores=False,
):
    """The gradients of q, k and v in float64; with `of_scores`, that of the scores (batches, heads,
    queries, keys). `slope` is the derivative of `score`.
    """
    (batches, queries, heads, head), keys, key_heads = q.shape, k.shape[1], k.shape[2]
    group, scale = heads // key_heads, head**-0.5
    q, k, v, grad = (np.asarray(x, np.float64).transpose(0, 2, 1, 3) for x in (q, k, v, grad))
    k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    s = q @ k.transpose(0, 1, 3, 2) * scale
    i, j = np.arange(queries)[:, None], np.arange(keys)
    place = (np.arange(batches)[:, None, None, None], np.arange(heads)[:, None, None], i, j)
    change = 1.0 if slope is None else slope(s, *place)
    if score is not None:
        s = score(s, *place)
    diagonal = i + (keys - queries if shift is None else shift)
    seen = np.ones(s.shape, bool)
    if left is not None:
        seen &= j >= diagonal - left
    if right is not None:
        seen &= j <= diagonal + right
    if mask is not None:
        seen &= mask(*place)
    s = np.where(seen, s, -np.inf)
    largest = s.max(-1, keepdims=True, initial=-np.inf)
    weights = np.exp(s - np.where(np.isneginf(largest), 0, largest))
    total = weights.sum(-1, keepdims=True)
    weights = weights / np.where(total == 0, 1, total)
    products = grad @ v.transpose(0, 1, 3, 2)
    ds = weights * (products - (grad * (weights @ v)).sum(-1, keepdims=True))
    if of_scores:
        return ds
    ds = ds * change * scale

    def of_keys(x):
        return x.reshape(batches, key_heads, group, *x.shape[2:]).sum(2)

    found = (
        ds @ k,
        of_keys(ds.transpose(0, 1, 3, 2) @ q),
        of_keys(weights.transpose(0, 1, 3, 2) @ grad),
    )
    return tuple(x.transpose(0, 2, 1, 3) for x in found)
