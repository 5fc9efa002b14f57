"""Ctrl-C while a kernel runs on the simulator."""

import signal
from pathlib import Path

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute import arch

pytestmark = pytest.mark.usefixtures("sim")


@cute.kernel
def endless(x: cute.Tensor):
    value = x[arch.thread_idx()[0]]
    while value >= 0:
        value = value + 1  # stopped here
    x[0] = value


@cute.jit
def host(x: cute.Tensor):
    endless(x).launch(grid=1, block=32)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no timers here")
def test_the_note_has_the_line_of_the_kernel(monkeypatch):
    monkeypatch.setenv("CUTE_DSL_MAX_STEPS", "100000000")
    compiled = cute.compile(host, np.zeros(32, np.float32))

    def stop(number, frame):
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        with pytest.raises(KeyboardInterrupt) as caught:
            compiled(np.zeros(32, np.float32))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    (note,) = caught.value.__notes__
    lines = Path(__file__).read_text().splitlines()
    where, _, line = note.removeprefix("the kernel was at ").rpartition(":")
    assert where == __file__
    assert "value" in lines[int(line) - 1]
