"""Bounds of masks over tiles, against all their queries and keys."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute.ops.flash.bounds import truth_of


@cute.kernel
def bounded(x: cute.Tensor, out: cute.Tensor, mask: cute.Constexpr):
    i = cute.arch.thread_idx()[0]
    if i < x.shape[0]:
        head = x[i, 0] * 0 + 2
        ranges = (head, head), (x[i, 0], x[i, 1]), (x[i, 2], x[i, 3])
        truth = truth_of(mask, cute.Int32(1), *ranges)
        out[i, 0] = cute.Int32(truth.true)
        out[i, 1] = cute.Int32(truth.false)


@cute.jit
def bounds(x: cute.Tensor, out: cute.Tensor, mask: cute.Constexpr):
    bounded(x, out, mask).launch(grid=(1, 1, 1), block=(128, 1, 1))


MASKS = {
    "causal": lambda b, h, q, k: k <= q,
    "window": lambda b, h, q, k: k <= q and q - k < 20,
    "blocks": lambda b, h, q, k: q // 16 == k // 16,
    "not the same": lambda b, h, q, k: not (q == k) and q != k + 1,
    "larger": lambda b, h, q, k: max(q, k) * 2 - min(q, 5) > 60,
    "of heads": lambda b, h, q, k: q * h - k > b + 10,
    "choice": lambda b, h, q, k: (k if q > 30 else q + 3) < 25,
    "everything": lambda b, h, q, k: True,
}
# Right, but not sharp: terms that depend on each other, and what is not walked.
LOOSE = {
    "sinks": lambda b, h, q, k: k <= q and (q - k < 20 or k < 4),
    "remainder": lambda b, h, q, k: (q + k) % 8 < 6,
    "itself": lambda b, h, q, k: k - k + q >= q,
    "loaded": lambda b, h, q, k: q * 0 + (k & 3) == 1,
}


def tiles():
    starts = [(a, b) for a, b in itertools.product(range(0, 64, 8), range(0, 64, 8))]
    return np.int32([(a, a + 7, b, b + 7) for a, b in starts])


@pytest.mark.parametrize("name", [*MASKS, *LOOSE])
def test_bounds_hold_and_are_sharp(name):
    mask = {**MASKS, **LOOSE}[name]
    x = tiles()
    found = np.full((len(x), 2), -1, np.int32)
    bounds(x, found, cute.jit(mask))
    for (q0, q1, k0, k1), (true, false) in zip(x.tolist(), found.tolist(), strict=True):
        places = itertools.product(range(q0, q1 + 1), range(k0, k1 + 1))
        seen = {bool(mask(1, 2, q, k)) for q, k in places}
        assert true >= (True in seen) and false >= (False in seen)
        if name in MASKS:
            assert (true, false) == (True in seen, False in seen), (q0, k0)
