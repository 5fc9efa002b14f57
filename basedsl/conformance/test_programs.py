"""Every program of `programs`, on every DSL that was asked for."""

from __future__ import annotations

import pytest

from basedsl.conformance.cases import Case
from basedsl.conformance.compare import check
from basedsl.conformance.declaration import Conformance


def test_program(conformance: Conformance, case: Case) -> None:
    for tag in sorted(case.tags & conformance.differs.keys()):
        pytest.skip(f"{tag}: {conformance.differs[tag]}")
    check(conformance, case)
