"""Compilation of a program's kernels before it measures, by processes that share the disk cache."""

from __future__ import annotations

import subprocess
import sys
import time


def compile_all(workers: int, most: float) -> None:
    """Compile all kernels by `workers` processes for `most` seconds: those that are not ready then
    are left out. Each runs this program with `--compile I WORKERS`, for the I-th share.
    """
    parts = [
        subprocess.Popen([sys.executable, *sys.argv, "--compile", str(i), str(workers)])
        for i in range(workers)
    ]
    end = time.time() + most
    for part in parts:
        try:
            part.wait(max(end - time.time(), 0.1))
        except subprocess.TimeoutExpired:
            part.kill()
