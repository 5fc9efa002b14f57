"""Probes for hardware that tests need, without importing any plugin."""

from __future__ import annotations

import ctypes
import functools
import sys

_NO_ERROR = 0


@functools.cache
def why_no_gpu() -> str:
    """Return the reason why tests marked `gpu` cannot run here; "" if they can.

    Asks the CUDA driver library (`cuInit`, `cuDeviceGetCount` of the CUDA Driver API) by ctypes,
    because the core does not depend on CUDA's Python packages.
    """
    name = "nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1"
    try:
        driver = ctypes.CDLL(name)
    except OSError:
        return f"no NVIDIA driver ({name} is not installed)"
    status = driver.cuInit(0)
    if status != _NO_ERROR:
        return f"the NVIDIA driver does not start (cuInit returned {status})"
    count = ctypes.c_int(0)
    status = driver.cuDeviceGetCount(ctypes.byref(count))
    if status != _NO_ERROR or count.value == 0:
        return "the NVIDIA driver reports no device"
    return ""
