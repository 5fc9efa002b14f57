"""Every program of `programs`, on every DSL that was asked for."""

from __future__ import annotations

import pytest

from basedsl.conformance.adapter import Adapter
from basedsl.conformance.cases import Case
from basedsl.conformance.compare import check


def test_program(adapter: Adapter, case: Case) -> None:
    for tag in sorted(case.tags & adapter.differs.keys()):
        pytest.skip(f"{tag}: {adapter.differs[tag]}")
    check(adapter, case)
