"""Findings of `basedsl doctor` about kernels: tools of the CUDA toolkit, devices, packages."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

from basedsl import DSLError, Finding
from basedsl_cute.device import driver
from basedsl_cute.device.detect import detect
from basedsl_cute.hardware.targets import target_for_capability
from basedsl_cute.lowering.ptx import ptxas

_PACKAGES = {
    "torch": "tensors of PyTorch are not taken as arguments",
    "jax": "arrays of JAX are not taken as arguments",
    "nvtx": "profiles have no named ranges",
    "matplotlib": "measured times are not plotted",
}


def findings() -> Iterator[Finding]:
    """Yield what was looked for on this machine, and what was found."""
    yield from _toolkit()
    yield from _devices()
    for name, without in _PACKAGES.items():
        if importlib.util.find_spec(name) is None:
            yield Finding(name, "optional", f"not installed: {without}", f"pip install {name}")
        else:
            yield Finding(name, "ok", _version(name))


def _toolkit() -> Iterator[Finding]:
    named = os.environ.get(ptxas.TOOLKIT_VARIABLES[0])
    if named and not (Path(named) / "bin" / "ptxas").exists():
        yield Finding(
            ptxas.TOOLKIT_VARIABLES[0],
            "optional",
            f"{named} has no bin/ptxas",
            "name the folder of a CUDA toolkit, or unset it",
        )
    found = ptxas.find_ptxas()
    version = ptxas.toolkit_version()
    yield _tool(
        "ptxas",
        found,
        "" if version is None else f"CUDA {version[0]}.{version[1]}, ",
        "the driver compiles PTX, and nothing tells registers and spills",
        "nvidia-cuda-nvcc",
    )
    yield _tool("nvlink", ptxas.find_nvlink(), "", "no library is linked", "nvidia-cuda-nvcc")
    yield _tool(
        "nvdisasm", ptxas.find_nvdisasm(), "", "machine code is not shown", "nvidia-cuda-nvdisasm"
    )
    yield _tool(
        "libdevice", ptxas.find_libdevice(), "", "math functions do not compile", "nvidia-nvvm"
    )


def _tool(name: str, found: Path | None, version: str, without: str, package: str) -> Finding:
    if found is None:
        todo = f"pip install {package}, or set CUDA_TOOLKIT_PATH to a CUDA toolkit"
        return Finding(name, "optional", f"not found: {without}", todo)
    return Finding(name, "ok", f"{version}{found}")


def _devices() -> Iterator[Finding]:
    if driver.has_library() and not driver.has_bindings():
        without = "a driver, but no cuda.bindings: kernels run on the simulator"
        yield Finding("GPU", "optional", without, driver.INSTALL)
    elif not driver.is_available():
        yield Finding(
            "GPU",
            "optional",
            "no NVIDIA driver or device: kernels run on the simulator",
            "kernels compile for a GPU anyway: --gpu-arch sm_90a, or CUTE_DSL_ARCH=sm_90a",
        )
    else:
        version = driver.driver_version()
        for number in range(driver.device_count()):
            device = driver.device(number)
            arch = target_for_capability(*device.capability).name
            detail = f"{arch}, driver for CUDA {version // 1000}.{version % 1000 // 10}"
            yield Finding(f"GPU {number}", "ok", detail)
    try:
        yield Finding("target", "ok", detect().name)
    except DSLError as error:
        yield Finding("target", "missing", error.message, error.hint or "")


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "installed"
