"""Ctrl-C while bindings are imported or a pass runs: what was begun is finished first."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from basedsl.mlir.bindings import uninterrupted
from basedsl.objectstage import Pipeline, Step, run_pipeline


@pytest.fixture(autouse=True)
def _interrupts() -> Iterator[None]:
    """Ctrl-C is not ignored, as it is in what a shell runs in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_waits_for_the_end_of_the_block() -> None:
    before, steps = signal.getsignal(signal.SIGINT), []
    with pytest.raises(KeyboardInterrupt), uninterrupted():
        steps.append("begun")
        os.kill(os.getpid(), signal.SIGINT)
        signal.raise_signal(signal.SIGINT)
        steps.append("finished")
    assert steps == ["begun", "finished"]
    assert signal.getsignal(signal.SIGINT) is before


def test_an_error_of_the_block_comes_through() -> None:
    with pytest.raises(ZeroDivisionError), uninterrupted():
        raise ZeroDivisionError


def test_other_threads_have_no_signals_to_hold() -> None:
    seen = []

    def work() -> None:
        with uninterrupted():
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]


def test_an_interrupt_waits_for_the_end_of_a_step(mlir_context: Any) -> None:
    steps = []

    def interrupted(op: Any, context: Any) -> None:
        steps.append("begun")
        signal.raise_signal(signal.SIGINT)
        steps.append("finished")

    def later(op: Any, context: Any) -> None:
        steps.append("later")

    pipeline = Pipeline("test", [Step("one", interrupted), Step("two", later)])
    with mlir_context.entered():
        module = mlir_context.bindings.ir.Module.parse("module {}")
        with pytest.raises(KeyboardInterrupt):
            run_pipeline(pipeline, module, mlir_context)
    assert steps == ["begun", "finished"]
