"""Masks that are solved for the key, against themselves at all keys."""

from __future__ import annotations

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute.ops.flash.spans import span_of

QUERIES, KEYS = 40, 64
LARGEST, LENGTH = 2**31 - 1, 37


@cute.kernel
def solved(lengths: cute.Tensor, wide: cute.Tensor, out: cute.Tensor, make: cute.Constexpr):
    q = cute.arch.thread_idx()[0]
    if q < out.shape[0]:
        mask = cute.jit(make(lengths, wide))
        for head in cute.range_constexpr(2):
            place = cute.Int32(0), cute.Int32(head) + q * 0, q, cute.Int32(3)
            span = span_of(mask, *place, arrays=[(lengths, None), (wide, None)])
            out[q, head, 0] = cute.Int64(-1)
            if cute.const_expr(span is not None):
                out[q, head, 0] = cute.Int64(0 if span.low is None else span.low)
                out[q, head, 1] = cute.Int64(2**62 if span.high is None else span.high)


@cute.jit
def solve(lengths: cute.Tensor, wide: cute.Tensor, out: cute.Tensor, make: cute.Constexpr):
    solved(lengths, wide, out, make).launch(grid=(1, 1, 1), block=(64, 1, 1))


def chosen(lengths, wide):
    def mask(b, h, q, k):
        if h == 0:
            return k <= q
        if q > 20:
            return q - k < 9
        return k < 30

    return mask


# Functions of the two arrays that make a mask.
SPANS = {
    "causal": lambda n, w: lambda b, h, q, k: k <= q,
    "behind": lambda n, w: lambda b, h, q, k: q < k,
    "window": lambda n, w: lambda b, h, q, k: k <= q and q - k < 20,
    "window by &": lambda n, w: lambda b, h, q, k: (k <= q) & (q - k <= 20),
    "between": lambda n, w: lambda b, h, q, k: q - 5 <= k < q + 7,
    "distance": lambda n, w: lambda b, h, q, k: abs(q - k) <= 6,
    "distance, turned": lambda n, w: lambda b, h, q, k: abs(k + 2 - q) < 6,
    "minus": lambda n, w: lambda b, h, q, k: -k >= -q,
    "not": lambda n, w: lambda b, h, q, k: not k > q + 1,
    "blocks": lambda n, w: lambda b, h, q, k: q // 16 == k // 16,
    "blocks of seven": lambda n, w: lambda b, h, q, k: q // 7 >= (k + 3) // 7,
    "blocks ahead": lambda n, w: lambda b, h, q, k: k // 8 > q // 8,
    "prefix": lambda n, w: lambda b, h, q, k: k <= q or k < 10,
    "only itself": lambda n, w: lambda b, h, q, k: k == q,
    "length": lambda n, w: lambda b, h, q, k: (k < n[b]) & (k <= q),
    "length behind and": lambda n, w: lambda b, h, q, k: k <= q and k < n[b],
    "sum behind and": lambda n, w: lambda b, h, q, k: k <= q and (k < n[q] + 3 or k < w[b] - 9),
    "length that is guarded": lambda n, w: lambda b, h, q, k: q < 3 and k <= w[q],
    "choice of a length": lambda n, w: lambda b, h, q, k: k <= (n[q] if q > 10 else q),
    "length of 64 bits": lambda n, w: lambda b, h, q, k: (k < w[0]) & (k <= q),
    "no end": lambda n, w: lambda b, h, q, k: k <= w[1],
    "no beginning": lambda n, w: lambda b, h, q, k: k >= w[2],
    "largest number": lambda n, w: lambda b, h, q, k: k <= LARGEST,
    "everything": lambda n, w: lambda b, h, q, k: True,
    "nothing": lambda n, w: lambda b, h, q, k: False,
    "queries": lambda n, w: lambda b, h, q, k: q % 3 == 0,
    "heads": lambda n, w: lambda b, h, q, k: k <= q if h == 0 else q - k < 9,
    "one head": lambda n, w: lambda b, h, q, k: k <= q and (q - k < 9 or h == 1),
    "no head": lambda n, w: lambda b, h, q, k: (k <= q) ^ (h == 1),
    "first query": lambda n, w: lambda b, h, q, k: q == 0 or (k <= q and q - k < 20),
    "of itself": lambda n, w: lambda b, h, q, k: k - k + q >= 5 and k <= q,
    "branches": chosen,
}
OTHERS = {
    "two spans": lambda n, w: lambda b, h, q, k: k <= q and (q - k < 9 or k < 4),
    "outside": lambda n, w: lambda b, h, q, k: abs(q - k) > 6,
    "another": lambda n, w: lambda b, h, q, k: k != q,
    "remainder": lambda n, w: lambda b, h, q, k: (q + k) % 8 < 5,
    "twice": lambda n, w: lambda b, h, q, k: 2 * k <= q,
    "loaded": lambda n, w: lambda b, h, q, k: n[k // 2] < 30,
    "larger": lambda n, w: lambda b, h, q, k: max(k, 5) <= q,
    "numbers": lambda n, w: lambda b, h, q, k: (q - k) * 0.5 < 10.0,
    "sum of 64 bits": lambda n, w: lambda b, h, q, k: k + w[2] < w[2] + 9,
}


def of_arrays():
    lengths = np.int32([LENGTH, *range(40)])
    wide = np.int64([LENGTH, 2**63 - 1, -(2**63)])
    return lengths, wide


@pytest.mark.parametrize("name", [*SPANS, *OTHERS])
def test_spans_are_the_keys_that_masks_show(name):
    make, (lengths, wide) = {**SPANS, **OTHERS}[name], of_arrays()
    out = np.zeros((QUERIES, 2, 2), np.int64)
    solve(lengths, wide, out, make)
    mask = make(lengths.tolist(), wide.tolist())
    assert (out[..., 0] == -1).all() == (name in OTHERS)
    if name in SPANS:
        for q in range(QUERIES):
            for head in range(2):
                low, high = out[q, head]
                shown = [k for k in range(KEYS) if mask(0, head, q, k)]
                assert shown == [k for k in range(KEYS) if low <= k < high], (q, head)
