"""Every program of `programs`, on every DSL that was asked for."""

from __future__ import annotations

import pytest

from basedsl.conformance.cases import Case
from basedsl.conformance.compare import check
from basedsl.conformance.declaration import Conformance
from basedsl.conformance.features import FEATURES, skipped, why_skipped
from basedsl.conformance.programs import all_cases
from basedsl.conformance.time_limit import limited


def test_program(conformance: Conformance, name: str, case: Case) -> None:
    why = why_skipped(conformance, name, case)
    if why is not None:
        pytest.skip(why)
    with limited(name, conformance.time_limit):
        check(conformance, case)


def test_enough_programs_run(conformance: Conformance) -> None:
    """A DSL that leaves out most of the programs does not look like one that passes them."""
    names = {name for name, _ in all_cases()}
    unknown = sorted(set(conformance.without) - FEATURES.keys() - names)
    assert not unknown, f"no program needs {unknown[0]!r}; the features are {', '.join(FEATURES)}"
    run, left = skipped(conformance, all_cases())
    share = run / (run + sum(left.values()))
    reasons = "\n".join(f"  {count:4} {why}" for why, count in left.items())
    assert share >= conformance.least_share, (
        f"{conformance.name} runs {run} of {run + sum(left.values())} programs, and must run "
        f"{conformance.least_share:.0%}:\n{reasons}\n"
        "declare a smaller least_share if the DSL is to have no more features"
    )
