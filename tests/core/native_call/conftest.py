"""A DSL over the core alone."""

from __future__ import annotations

from typing import Any

import pytest

from basedsl import DSL, Language


class Plain(Language):
    """Scalars on the CPU, as the core makes them."""

    name = "plain"


@pytest.fixture
def dsl() -> Any:
    return DSL(Plain())
