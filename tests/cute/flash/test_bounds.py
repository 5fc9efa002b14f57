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
    "distance": lambda b, h, q, k: abs(q - k) < 20,
    "blocks of three": lambda b, h, q, k: q // 3 <= k // 3,
    "64 bits": lambda b, h, q, k: q - k < 2**40 if cute.is_static(q) else cute.Int64(q) - k < 2**40,
    "everything": lambda b, h, q, k: True,
}
# Right, but not sharp: terms that depend on each other, and what is not walked.
LOOSE = {
    "sinks": lambda b, h, q, k: k <= q and (q - k < 20 or k < 4),
    "remainder": lambda b, h, q, k: (q + k) % 8 < 6,
    "itself": lambda b, h, q, k: k - k + q >= q,
    "bits": lambda b, h, q, k: q * 0 + (k & 3) == 1,
    "a bound and bits": lambda b, h, q, k: k <= q and (k & 3) == 1,
    "shifted by keys": lambda b, h, q, k: (q * 64) >> (k // 8) > 20,
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


@cute.kernel
def bounded_by_loads(x: cute.Tensor, flags: cute.Tensor, out: cute.Tensor, make: cute.Constexpr):
    i = cute.arch.thread_idx()[0]
    if i < x.shape[0]:
        truth = truth_of(cute.jit(make(flags)), 0, (0, 0), (x[i, 0], x[i, 1]), (x[i, 2], x[i, 3]))
        out[i, 0] = cute.Int32(truth.true)
        out[i, 1] = cute.Int32(truth.false)


@cute.jit
def bounds_by_loads(x: cute.Tensor, flags: cute.Tensor, out: cute.Tensor, make: cute.Constexpr):
    bounded_by_loads(x, flags, out, make).launch(grid=(1, 1, 1), block=(128, 1, 1))


def written(flags):
    def mask(b, h, q, k):
        kept = [0] if cute.is_static(k) else cute.make_rmem_tensor((1,), cute.Int32)
        kept[0] = k
        return kept[0] > 10

    return mask


LOADED = {
    "at a key": lambda flags: lambda b, h, q, k: flags[k] == 1,
    "behind a key": lambda flags: lambda b, h, q, k: flags[k + 1] == 1,
    "of half a key": lambda flags: lambda b, h, q, k: flags[k // 2] == 1,
    "of a number that was loaded": lambda flags: lambda b, h, q, k: flags[flags[k] * 9] == 1,
    "in a branch": lambda flags: lambda b, h, q, k: (flags[k + 1] if q > 20 else 1) == 1,
    "of a place that is fixed": lambda flags: lambda b, h, q, k: k < flags[b + 70],
    "written before": written,
}


@pytest.mark.parametrize("name", LOADED)
def test_bounds_hold_of_what_is_loaded_at_a_place_that_is_computed(name):
    """Numbers at `k + 1` were taken for the same in the whole tile."""
    x, flags = tiles(), np.int32(np.random.default_rng(0).random(80) < 0.5)
    flags[:20], flags[70] = 0, 40
    found = np.full((len(x), 2), -1, np.int32)
    bounds_by_loads(x, flags, found, LOADED[name])
    mask = LOADED[name](flags.tolist())
    for (q0, q1, k0, k1), (true, false) in zip(x.tolist(), found.tolist(), strict=True):
        places = itertools.product(range(q0, q1 + 1), range(k0, k1 + 1))
        seen = {bool(mask(0, 0, q, k)) for q, k in places}
        assert true >= (True in seen) and false >= (False in seen)
        if "fixed" in name:
            assert (true, false) == (True in seen, False in seen), (q0, k0)
