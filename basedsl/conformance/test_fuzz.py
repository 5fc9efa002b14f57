"""Random structured programs give what Python gives. More of them: `--fuzz 10000`."""

from __future__ import annotations

from basedsl.conformance.adapter import Adapter
from basedsl.conformance.fuzz import check_seed


def test_random_programs(adapter: Adapter, seeds: range) -> None:
    reports = [report for seed in seeds if (report := check_seed(adapter, seed))]
    assert not reports, "\n\n".join(reports)
