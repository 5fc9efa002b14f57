"""The cute dialect in a context of its own."""

from __future__ import annotations

import pytest

from basedsl.mlir import MLIRContext, load_bindings
from basedsl_cute import dialect


@pytest.fixture(scope="session")
def cute_context():
    """An `MLIRContext` with the cute dialect loaded."""
    return MLIRContext(load_bindings(needs=("irdl",)), dialect.load)


@pytest.fixture
def cute(cute_context):
    """The dialect, with its context entered for the test."""
    with cute_context.entered():
        yield dialect.define(cute_context.bindings)
