"""Random structured programs give what Python gives. More of them: `--basedsl-fuzz 10000`."""

from __future__ import annotations

import pytest

from basedsl.conformance.declaration import Conformance
from basedsl.conformance.features import FEATURES
from basedsl.conformance.fuzz import check_seed
from basedsl.conformance.sessions import check_session

SESSION_FEATURES = FEATURES.keys() - {"recursion", "negative-index", "tree-arguments"}


def test_random_programs(conformance: Conformance, seeds: range) -> None:
    reports = [report for seed in seeds if (report := check_seed(conformance, seed))]
    assert not reports, "\n\n".join(reports)


def test_random_sessions(conformance: Conformance, seeds: range) -> None:
    """Several calls with state between them: one session for every fifth program. They are made of
    everything at once.
    """
    for feature in sorted(SESSION_FEATURES & conformance.without.keys()):
        pytest.skip(f"{feature}: {conformance.without[feature]}")
    chosen = [seed for seed in seeds if seed % 5 == 0]
    reports = [found for seed in chosen if (found := check_session(conformance, seed).failure)]
    assert not reports, "\n\n".join(reports)
