"""Compiled kernels that nobody refers to give their memory back."""

import os
import subprocess
import sys

import pytest

PROGRAM = """
import ctypes, gc
import numpy as np
import basedsl_cute as cute

def private():  # MiB that are no file's: pages of libraries come and go
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/status") as file:
        (line,) = (line for line in file if line.startswith("RssAnon"))
    return int(line.split()[1]) / 1024

@cute.kernel
def fill(x: cute.Tensor, value: cute.Constexpr):
    x[cute.arch.thread_idx()[0]] = value

x = np.zeros(32, np.float32)

def use(first, number):
    for value in range(first, first + number):
        @cute.jit
        def host(x: cute.Tensor):
            fill(x, float(value)).launch(grid=1, block=32)

        cute.compile(host, x)(x)
        assert x[5] == value

use(0, 50)
before = private()
use(50, 500)
print(private() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc and malloc_trim")
def test_five_hundred_leave_under_ten_mebibytes(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(path)],
        env={**os.environ, "BASEDSL_CACHE": "0", "CUTE_DSL_ARCH": "sim"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert float(done.stdout) < 10
