"""Fixtures for all tests: golden files, GPU tests skipped with a reason, one MLIR context."""

from __future__ import annotations

import gc
import os
from collections.abc import Generator, Iterator
from typing import Any

import pytest

from basedsl.testing import Golden, golden, why_no_gpu

# Where there is a GPU, JAX would put arrays on it, also for tests of the simulator, and take most
# of its memory in each of the processes that run tests.
os.environ.setdefault("JAX_DEFAULT_DEVICE", "cpu")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")


def pytest_addoption(parser: pytest.Parser) -> None:
    golden.add_option(parser)
    parser.addoption(
        "--require-gpu", action="store_true", default=False, help="fail where there is no GPU"
    )


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect the tests without looking for garbage among them, then or later: they are two million
    objects that stay, and each search of them takes a second.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(50_000, 20, 50)  # kernels that are traced are many objects: 5 % faster
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    marked = [item for item in items if item.get_closest_marker("gpu")]
    required = config.getoption("--require-gpu")
    reason = why_no_gpu() if marked or required else ""
    if reason and required:
        raise pytest.UsageError(f"--require-gpu: {reason}")
    if reason:
        for item in marked:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session", autouse=True)
def _no_disk_cache() -> Iterator[None]:
    """Tests compile: nothing comes from an earlier run, and nothing stays behind."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BASEDSL_CACHE", "0")
        yield


@pytest.fixture(name="golden")
def golden_fixture(request: pytest.FixtureRequest) -> Golden:
    return Golden.of_request(request)


@pytest.fixture(scope="session")
def mlir_context() -> Any:
    """A context with upstream dialects only, for tests that need no DSL."""
    from basedsl.mlir import MLIRContext, load_bindings

    return MLIRContext(load_bindings())
