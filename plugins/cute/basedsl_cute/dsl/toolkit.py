"""Which CUDA toolkit compiles here: what programs ask to find out if a feature is there."""

from __future__ import annotations

import functools
from typing import NamedTuple

from basedsl.errors import DSLRuntimeError, DSLTypeError
from basedsl_cute.device import driver
from basedsl_cute.lowering.ptx.ptxas import toolkit_version


class Version(NamedTuple):
    """A version of CUDA."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


@functools.cache
def cuda_version() -> Version:
    """That of ptxas; without it the driver compiles PTX, and its version counts."""
    found = toolkit_version()
    if found is None and driver.is_available():
        number = driver.driver_version()
        found = number // 1000, number % 1000 // 10
    if found is None:
        raise DSLRuntimeError(
            "there is neither ptxas nor a driver, so no version of CUDA",
            hint="pip install nvidia-cuda-nvcc, or set CUDA_HOME to a CUDA toolkit",
        )
    return Version(*found)


def target_version(
    *,
    min_version: str | None = None,
    max_version: str | None = None,
    exact_version: str | None = None,
) -> bool:
    """Whether CUDA's version is in a range, bounds included; they are text such as "12.9"."""
    version = cuda_version()
    if exact_version is not None:
        return version == _parsed(exact_version)
    above = min_version is None or version >= _parsed(min_version)
    return above and (max_version is None or version <= _parsed(max_version))


def _parsed(text: str) -> Version:
    major, _, minor = text.partition(".")
    try:
        return Version(int(major), int(minor or 0))
    except ValueError:
        raise DSLTypeError(f"{text!r} is no version of CUDA", hint='write it as "12.9"') from None


class CudaVersion:
    """`CUDA_VERSION.major`, `.minor`: found when first asked for."""

    @property
    def major(self) -> int:
        return cuda_version().major

    @property
    def minor(self) -> int:
        return cuda_version().minor

    def __str__(self) -> str:
        return str(cuda_version())


CUDA_VERSION = CudaVersion()
