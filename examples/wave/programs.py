"""Programs in the DSL of waves.py, compared with NumPy: python programs.py"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))
import waves


@waves.kernel
def sums(x, out):
    """The sum of each 64 elements."""
    i = waves.block() * waves.block_size() + waves.thread()
    total = waves.wave_sum(x[i])
    if waves.thread() % waves.LANES == 0:
        out[i // waves.LANES] = total


@waves.kernel
def leaders(x):
    """Each wavefront's elements become its first one."""
    i = waves.block() * waves.block_size() + waves.thread()
    x[i] = waves.first_lane(x[i])


@waves.kernel
def collatz(x):
    """The number of steps to 1, in a loop that lanes leave one by one."""
    i = waves.block() * waves.block_size() + waves.thread()
    n, steps = x[i], 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    x[i] = steps


def main():
    x, out = np.arange(512, dtype=np.float32), np.zeros(8, np.float32)
    sums.launch(grid=2, block=256)(x, out)
    np.testing.assert_array_equal(out, x.reshape(8, 64).sum(axis=1))

    y = np.arange(512, dtype=np.int32)
    leaders.launch(grid=4, block=128)(y)
    np.testing.assert_array_equal(y, np.repeat(np.arange(8) * 64, 64))

    z = np.arange(1, 129, dtype=np.int32)
    collatz.launch(grid=1, block=128)(z)
    assert z[:7].tolist() == [0, 1, 7, 2, 5, 8, 16] and z[26] == 111
    print("sums, leaders, collatz agree with NumPy")


if __name__ == "__main__":
    main()
