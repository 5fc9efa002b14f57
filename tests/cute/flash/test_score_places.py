"""Scores of the user's by their place: differences, tables, and tiles beyond the ends."""

from __future__ import annotations

import itertools
import sys
from pathlib import Path

import numpy as np
import pytest

from basedsl.testing import slow_but
from basedsl_cute.ops import attention
from basedsl_cute.ops.ampere.attention import Config
from basedsl_cute.ops.flash.variant import Place
from basedsl_cute.ops.hopper import attention as hopper

sys.path.insert(0, str(Path(__file__).parent))

from attention_reference import close, normal, reference

QUERIES, KEYS = 70, 100
CONFIGS = {
    "ring": Config((32, 32), 2, slack=8, stages=3),
    "hopper": hopper.Config((64, 48), persistent=True),
    "hopper, turns": hopper.Config((128, 32), query_stages=2, turns=True, ahead=True, late=3),
}
rng = np.random.default_rng(0)
APART = rng.standard_normal(QUERIES + KEYS - 1).astype(np.float32)  # exactly those that there are
OF_KEYS = rng.standard_normal(KEYS).astype(np.float32)

DIFFERENCES = {
    "bias": lambda s, b, h, q, k: s - 0.1 * (q - k),
    "turned": lambda s, b, h, q, k: s + (k - q) * (0.01 * (h + 1)),
    "distance": lambda s, b, h, q, k: s - abs(q - k) * 0.05,
    "both ways": lambda s, b, h, q, k: s - 0.01 * (q - k) * (k - q),
}
OTHERS = {
    "table of differences": lambda s, b, h, q, k: s + APART[q - k + KEYS - 1],
    "table of keys": lambda s, b, h, q, k: s * OF_KEYS[k],
    "difference and key": lambda s, b, h, q, k: s - 0.1 * (q - k) + 0.01 * k,
    "sum": lambda s, b, h, q, k: s + 0.01 * (q + k),
    "itself": lambda s, b, h, q, k: s + 0.01 * (q - q - k),
    "quotient": lambda s, b, h, q, k: s + (q // (KEYS - k)) * 0.1,
}


# Each by one walk over the keys, differences and quotients by all.
PAIRS = list(itertools.product([*DIFFERENCES, *OTHERS], CONFIGS))
QUICK = [(x, c) for x, c in PAIRS if x in ("bias", "quotient") or c == "hopper"]


@pytest.mark.parametrize(("name", "config"), slow_but(PAIRS, *QUICK))
def test_scores_of_places(name, config, monkeypatch):
    score, looked = {**DIFFERENCES, **OTHERS}[name], []
    look = Place.look

    def spy(place, *given):
        look(place, *given)
        looked.append((place.is_relative, place.score_inside))

    monkeypatch.setattr(Place, "look", spy)
    q, k, v = (normal(1, n, 2, 32, seed=i) for i, n in enumerate((QUERIES, KEYS, KEYS)))
    found = attention(q, k, v, score=score, causal=True, config=CONFIGS[config])
    close(found, reference(q, k, v, score=score, right=0)[0])
    reads = "table" in name or name == "quotient"
    assert set(looked) == {(name in DIFFERENCES or name == "table of differences", reads)}
