"""Eight threads that compile and call at once, on the simulator and in toy's native code."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest

import basedsl_cute as cute
import basedsl_toy as toy


@pytest.fixture
def eagerly():
    """Threads take turns as often as the interpreter can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def in_threads(work):
    errors = []
    gate = threading.Barrier(8)

    def run(number):
        try:
            gate.wait(timeout=60)
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []


@pytest.mark.parametrize("same", [True, False])
def test_the_simulator(eagerly, same):
    @cute.kernel
    def turn(x: cute.Tensor, y: cute.Tensor, by: cute.Constexpr):
        t = cute.arch.thread_idx()[0]
        tile = cute.utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout(32))
        tile[31 - t] = x[t]
        cute.arch.sync_threads()
        y[t] = tile[t] * by

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor, by: cute.Constexpr):
        turn(x, y, by).launch(grid=1, block=32)

    def work(number):
        by = 2 if same else number + 2
        for i in range(3):
            x, y = np.arange(32, dtype=np.float32) + i + number, np.zeros(32, np.float32)
            host(x, y, by)
            assert (y == x[::-1] * by).all()

    in_threads(work)


@pytest.mark.parametrize("same", [True, False])
def test_toy(eagerly, same):
    def function_of(n):
        @toy.jit
        def total(a, b):
            result = 0
            for i in range(a):
                result += b * n + i
            return result

        return total

    functions = [function_of(n) for n in range(8)]

    def work(number):
        n = 3 if same else number
        for i in range(40):
            assert functions[n](3, i) == 3 * i * n + 3

    in_threads(work)
