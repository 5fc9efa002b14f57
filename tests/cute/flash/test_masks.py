"""Masks of the user's in whole kernels: tiles that are left out, hidden by spans, or by scores."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest

from basedsl import DSLTypeError
from basedsl.testing import slow_but
from basedsl_cute.ops import attention, attention_backward
from basedsl_cute.ops.ampere.attention import Config
from basedsl_cute.ops.hopper import attention as hopper

sys.path.insert(0, str(Path(__file__).parent))

from attention_reference import close, normal, reference

CONFIGS = {
    "chosen": None,
    "ring": Config((32, 32), 2, slack=8, stages=3),
    "hopper": hopper.Config((64, 32), persistent=True),
    "hopper, turns": hopper.Config((128, 32), query_stages=2, turns=True, ahead=True, stages=3),
    "hopper, overlaps": hopper.Config(
        (64, 48), query_stages=2, persistent=True, by_bits=True, overlaps=True
    ),
}
DOCUMENTS = np.repeat(np.arange(8), 27).astype(np.int32)
LENGTH = np.int64([120])

MASKS = {
    "window": lambda b, h, q, k: (k <= q) & (q - k < 40),
    "gap": lambda b, h, q, k: (k < 20) | (k >= 130),
    "sinks": lambda b, h, q, k: (k <= q) & ((q - k < 20) | (k < 4)),
    "documents": lambda b, h, q, k: (DOCUMENTS[q] == DOCUMENTS[k]) & (k <= q),
    "documents of the next key": lambda b, h, q, k: DOCUMENTS[q] >= DOCUMENTS[k // 2 + 1],
    "length": lambda b, h, q, k: (k < LENGTH[b]) & (abs(q - k) <= 50),
    "nothing for some": lambda b, h, q, k: (q % 50 < 3) & (k // 48 == 2),
}


# Each mask by two walks over the keys, one of them by all.
PAIRS = list(itertools.product(MASKS, CONFIGS))
QUICK = [(m, c) for m, c in PAIRS if m == "documents" or c in ("chosen", "hopper")]


@pytest.mark.parametrize(("name", "config"), slow_but(PAIRS, *QUICK))
def test_masks_show_what_they_are_true_for(name, config):
    mask = MASKS[name]
    q, k, v = normal(1, 100, 1, 32), normal(1, 170, 1, 32, seed=1), normal(1, 170, 1, 32, seed=2)
    out = np.full(q.shape, np.nan, np.float16)
    _, lse = attention(q, k, v, mask=mask, out=out, return_lse=True, config=CONFIGS[config])
    values, logs = reference(q, k, v, mask=mask)
    close(out, values)
    close(lse, logs)


def test_a_mask_within_a_window_of_packed_sequences():
    """One has no keys: functions get no place before the first."""
    lengths_q, lengths_k = [30, 20, 50], [45, 0, 70]
    starts_q, starts_k = (np.int32([0, *np.cumsum(x)]) for x in (lengths_q, lengths_k))
    q, k, v = normal(100, 1, 32), normal(115, 1, 32, seed=1), normal(115, 1, 32, seed=2)

    def mask(batch, head, q, k):
        return DOCUMENTS[q] >= DOCUMENTS[k]

    for config in (None, hopper.Config((64, 32), persistent=True, box=16)):
        options = {"cu_seqlens_q": starts_q, "cu_seqlens_k": starts_k, "window": (40, 40)}
        out = attention(q, k, v, mask=mask, config=config, **options)
        for a, b, c, d in zip(starts_q, starts_q[1:], starts_k, starts_k[1:], strict=False):
            one = q[None, a:b], k[None, c:d], v[None, c:d]
            if d > c:
                close(out[a:b], reference(*one, mask=mask, left=40, right=40)[0][0])
            else:
                assert not out[a:b].any()


def test_default_arguments_that_are_replaced():
    q, k, v = (normal(1, 40, 1, 32, seed=i) for i in range(3))

    def mask(batch, head, q, k, width=5, *, first=0):
        return (q - k < width) & (k >= first)

    for width, first in ((5, 0), (20, 0), (20, 3)):
        mask.__defaults__, mask.__kwdefaults__ = (width,), {"first": first}
        close(attention(q, k, v, mask=mask), reference(q, k, v, mask=mask)[0])


def test_truths_of_numpy():
    q, k, v = (normal(1, 40, 1, 32, seed=i) for i in range(3))
    close(
        attention(q, k, v, mask=lambda b, h, q, k: np.True_), attention(q, k, v).astype(np.float64)
    )
    assert not attention(q, k, v, mask=lambda b, h, q, k: np.False_).any()


def test_arrays_that_a_mask_does_not_capture_itself():
    q = normal(1, 40, 1, 32)
    kept = {"documents": DOCUMENTS}

    def helper(k):
        return DOCUMENTS[k]

    masks = (lambda b, h, q, k: kept["documents"][k] < 3, lambda b, h, q, k: helper(k) < 3)
    for mask in masks:
        with pytest.raises(DSLTypeError, match=r"<lambda>\(\) indexes an array .* capture itself"):
            attention(q, q, q, mask=mask)


def test_an_array_is_indexed_in_all_modes():
    q = normal(1, 40, 1, 32)
    pairs = np.ones((40, 40), np.int32)
    with pytest.raises(DSLTypeError, match=r"an array with 2 modes is indexed by one number"):
        attention(q, q, q, mask=lambda b, h, q, k: pairs[q] == 1)
    with pytest.raises(DSLTypeError, match="a tensor is indexed with a list"):
        attention(q, q, q, mask=lambda b, h, q, k: pairs[[q, k]] == 1)
    attention(q, q, q, mask=lambda b, h, q, k: pairs[q, k] == 1)


def test_lists_and_what_else_needs_a_place_inside():
    q, k, v = (normal(1, 40, 1, 32, seed=i) for i in range(3))
    shown = [i % 7 != 3 for i in range(40)]  # of no key behind the last
    found = attention(q, k, v, mask=lambda b, h, q, k: k <= q and shown[k])
    keys = np.array(shown)
    close(found, reference(q, k, v, mask=lambda b, h, q, k: (k <= q) & keys[k])[0])


@pytest.mark.parametrize("name", slow_but(MASKS, "documents"))
def test_gradients_of_masks_are_those_of_their_scores_as_a_bias(name):
    mask, n = MASKS[name], 100
    q, k, v, grad = (normal(1, n, 1, 64, seed=i) for i in range(4))
    hidden = np.where(mask(0, 0, *np.ogrid[:n, :n]), 0.0, -np.inf).astype(np.float32)
    wanted, found = [], []
    for made, options in ((wanted, {"bias": hidden[None, None]}), (found, {"mask": mask})):
        out, lse = attention(q, k, v, return_lse=True, **options)
        made += attention_backward(grad, q, k, v, out, lse, **options)[:3]
    for x, y in zip(found, wanted, strict=True):
        close(x, np.float64(y), 2e-3)


@pytest.mark.parametrize("kind", slow_but((np.int32, np.int64, bool), np.int32))
@pytest.mark.parametrize("config", slow_but(CONFIGS, *sorted(set(CONFIGS) - {"ring"})))
def test_tiles_of_other_documents_are_not_visited(config, kind):
    """Their values are not numbers: nothing that is multiplied with them is one."""
    q, k, v = (normal(1, 400, 1, 32, seed=i) for i in range(3))
    docs = np.int64([[0] * 192 + [1] * 208])
    v[:, :128] = np.nan
    if kind is bool:
        docs = docs == 1
        out = attention(q, k, v, mask=lambda b, h, q, k: docs[b, k], config=CONFIGS[config])
        wanted, _ = reference(q, k[:, 192:], v[:, 192:])
        close(out, wanted)
        return
    docs = docs.astype(kind)
    same = attention(
        q, k, v, mask=lambda b, h, q, k: docs[b, q] == docs[b, k], config=CONFIGS[config]
    )
    wanted, _ = reference(q, k[:, 192:], v[:, 192:])
    close(same[:, 256:], wanted[:, 256:])  # no tile of which begins before
    assert np.isnan(same[:, :192]).all()


@pytest.mark.parametrize("config", CONFIGS)
def test_tiles_behind_a_length_are_not_visited(config):
    """It is loaded behind `and`."""
    q, k, v = (normal(1, 300, 1, 32, seed=i) for i in range(3))
    v[:, 192:] = np.nan
    out = attention(
        q, k, v, mask=lambda b, h, q, k: k <= q and k < LENGTH[b], config=CONFIGS[config]
    )
    wanted = reference(q, k[:, :192], v[:, :192], mask=lambda b, h, q, k: (k <= q) & (k < 120))
    close(out, wanted[0])


def test_more_tiles_than_a_warp_looks_at():
    q = normal(1, 64, 1, 32)
    k, v = (normal(1, 2300, 1, 32, seed=i) for i in (1, 2))

    def mask(batch, head, q, k):
        return (k < 40) | ((k >= 1100) & (k < 1130)) | (k == 2170)

    for config in (hopper.Config((64, 32)), hopper.Config((64, 32), persistent=True)):
        close(attention(q, k, v, mask=mask, config=config), reference(q, k, v, mask=mask)[0])


# Each mask is about elements of which a tile has more than extremes are kept of, or whose
# difference or product may not fit: nothing may be concluded from them.
FAR = np.sort(np.random.default_rng(7).integers(0, 5, 6000)).astype(np.int32)
WIDE, KEPT = FAR.astype(np.int64), FAR % 2 == 0
LARGE = (WIDE * 900_000_000 - 1_800_000_000).astype(np.int32)
OF_STRIDES = {
    "differences": lambda b, h, q, k: FAR[q * 20] - FAR[k * 20] >= 0,
    "Int64": lambda b, h, q, k: WIDE[q * 20] - WIDE[k * 20] <= 0,
    "products": lambda b, h, q, k: FAR[q * 20] * FAR[k * 20] >= 6,
    "truths": lambda b, h, q, k: KEPT[k * 20],
    "choices": lambda b, h, q, k: (FAR[k * 20] if k > q else FAR[q * 20]) + 1 >= 3,
    "quotients": lambda b, h, q, k: FAR[k * 20] // 2 - 1 <= 0,
    "large numbers": lambda b, h, q, k: LARGE[q * 20] == LARGE[k * 20],
}


@pytest.mark.parametrize("kind", slow_but(OF_STRIDES, "differences", "truths"))
def test_nothing_is_concluded_from_extremes_that_are_not_known(kind):
    q, k, v = (normal(1, 300, 1, 32, seed=i) for i in range(3))
    mask = OF_STRIDES[kind]
    out = attention(q, k, v, mask=mask, config=CONFIGS["chosen"])
    seen = np.array([[bool(mask(0, 0, i, j)) for j in range(300)] for i in range(300)])
    wanted, _ = reference(q, k, v, mask=lambda b, h, q, k: seen[q, k])
    close(out, wanted)
