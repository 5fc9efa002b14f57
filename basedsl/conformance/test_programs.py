"""Every program of `programs`, on every DSL that was asked for."""

from __future__ import annotations

from basedsl.conformance.adapter import Adapter
from basedsl.conformance.cases import Case
from basedsl.conformance.compare import check


def test_program(adapter: Adapter, case: Case) -> None:
    check(adapter, case)
