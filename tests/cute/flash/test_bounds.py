"""Bounds of masks over tiles, against all their queries and keys."""

from __future__ import annotations

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute.ops.flash.bounds import truth_of
from basedsl_cute.ops.flash.extremes import find_extremes


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


@cute.kernel
def bounded_by_extremes(
    x: cute.Tensor, n: cute.Tensor, found: cute.Tensor, out: cute.Tensor, make: cute.Constexpr
):
    i = cute.arch.thread_idx()[0]
    if i < x.shape[0]:
        ranges = (0, 0), (x[i, 0], x[i, 1]), (x[i, 2], x[i, 3])
        truth = truth_of(cute.jit(make(n)), 0, *ranges, arrays=[(n, found)])
        out[i, 0] = cute.Int32(truth.true)
        out[i, 1] = cute.Int32(truth.false)


@cute.jit
def bounds_by_extremes(
    x: cute.Tensor, n: cute.Tensor, found: cute.Tensor, out: cute.Tensor, make: cute.Constexpr
):
    find_extremes((n, found), SimpleNamespace(mask=SimpleNamespace(offset=0, count=1)), None)
    bounded_by_extremes(x, n, found, out, make).launch(grid=(1, 1, 1), block=(128, 1, 1))


# Masks of captured numbers, and if their bounds are those of all places.
CAPTURED = {
    "documents": (lambda n: lambda b, h, q, k: n[q] == n[k], True),
    "documents behind a diagonal": (lambda n: lambda b, h, q, k: n[q] == n[k] and k <= q, False),
    "of a key": (lambda n: lambda b, h, q, k: n[k] > 3, True),
    "of half a key": (lambda n: lambda b, h, q, k: n[k // 2] != 2, False),
    "next to each other": (lambda n: lambda b, h, q, k: n[q + 1] - n[k] < 2, False),
    "in a branch": (lambda n: lambda b, h, q, k: (n[k] if q > 300 else 1) == 1, False),
    "of a number that was loaded": (lambda n: lambda b, h, q, k: n[n[k] * 60] == 1, False),
    "of many": (lambda n: lambda b, h, q, k: n[k * 4 % 600] == 1, False),
}


OF_TRUTHS = {
    "kept": (lambda n: lambda b, h, q, k: n[k], True),
    "not kept": (lambda n: lambda b, h, q, k: not n[k], True),
    "kept of those before": (lambda n: lambda b, h, q, k: k <= q and n[k], False),
}


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize("name", CAPTURED)
def test_bounds_of_captured_numbers_are_those_of_their_stretches(name, kind):
    n = documents().astype(kind)
    if name == "documents" and kind is np.int64:
        n *= 2**35
    elif "loaded" in name:
        n %= 10
    sure = check_bounds(n, *CAPTURED[name])
    assert sure or name in ("of a number that was loaded", "of many")


@pytest.mark.parametrize("name", OF_TRUTHS)
def test_bounds_of_captured_truths(name):
    assert check_bounds(documents() // 4 % 2 == 0, *OF_TRUTHS[name])


def documents():
    return np.repeat(np.arange(20), np.random.default_rng(4).integers(1, 90, 20))[:650]


def check_bounds(n, make, is_sharp):
    """The number of tiles of which something is known."""
    starts = itertools.product(range(0, 640, 128), range(0, 640, 64))
    x = np.int32([(q, min(q + 127, 648), k, k + 63) for q, k in starts])
    found = np.full((-(-len(n) // 32), 4, 2), 77, np.int64 if n.itemsize == 8 else np.int32)
    out = np.full((len(x), 2), -1, np.int32)
    bounds_by_extremes(x, n, found, out, make)
    mask, sure = make(n), 0
    for (q0, q1, k0, k1), (true, false) in zip(x.tolist(), out.tolist(), strict=True):
        queries, keys = range(q0, q1 + 1), range(k0, k1 + 1)
        seen = {bool(mask(0, 0, q, k)) for q in queries for k in keys}
        assert true >= (True in seen) and false >= (False in seen)
        sure += not (true and false)
        # Stretches are found in blocks of 32, as both tiles are.
        if is_sharp:
            assert (true, false) == (True in seen, False in seen), (q0, k0)
    return sure


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
