"""Conformance tests compile anew: code that an earlier run left on disk proves nothing."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="session")
def _no_disk_cache() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BASEDSL_CACHE", "0")
        yield


@pytest.fixture(autouse=True)
def _environment(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set the declaration's environment variables."""
    if "conformance" in request.fixturenames:
        for name, value in request.getfixturevalue("conformance").environment.items():
            monkeypatch.setenv(name, value)
