"""Ctrl-C while the bindings are imported: what was begun is finished first."""

from __future__ import annotations

import os
import signal
import threading

import pytest

from basedsl.mlir.bindings import uninterrupted


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
