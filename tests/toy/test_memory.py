"""A compiled function that nobody refers to gives its memory back."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import ctypes, gc
import basedsl_toy as toy

def private():  # MiB that are no file's: pages of libraries come and go
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/status") as file:
        (line,) = (line for line in file if line.startswith("RssAnon"))
    return int(line.split()[1]) / 1024

def make(factor):
    @toy.jit
    def total(n):
        result = 0
        for i in range(n):
            result += i * factor
        return result
    return total

def use(first, number):
    for factor in range(first, first + number):
        assert make(factor)(4) == 6 * factor

use(0, 20)
before = private()
use(20, 100)
print(private() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="/proc and malloc_trim")
def test_dropped_functions_leave_little(tmp_path: Path) -> None:
    """A hundred leave under 2 MiB, so that five hundred leave under 10."""
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(path)],
        env={**os.environ, "BASEDSL_CACHE": "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert float(done.stdout) < 2
