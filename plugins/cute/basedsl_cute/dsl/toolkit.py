"""The CUDA version that compiles kernels here, by which programs decide on features."""

from __future__ import annotations

import functools
from typing import NamedTuple

from basedsl import DSLRuntimeError, DSLTypeError
from basedsl_cute.device import driver


class Version(NamedTuple):
    """A CUDA version, such as 12.9."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"


@functools.cache
def cuda_version() -> Version:
    """Return the CUDA version of ptxas; without ptxas, that of the driver, which compiles PTX then.
    Raises DSLRuntimeError without both.
    """
    from basedsl_cute.lowering.ptx.ptxas import toolkit_version

    found = toolkit_version()
    if found is None and driver.is_available():
        number = driver.driver_version()
        found = number // 1000, number % 1000 // 10
    if found is None:
        raise DSLRuntimeError(
            "no CUDA version: neither ptxas nor a CUDA driver was found",
            hint="pip install 'basedsl-cute[cuda]', or set CUDA_HOME to a CUDA toolkit",
        )
    return Version(*found)


def target_version(
    *,
    min_version: str | None = None,
    max_version: str | None = None,
    exact_version: str | None = None,
) -> bool:
    """Return True if `cuda_version()` is from `min_version` to `max_version` or, with
    `exact_version`, equal.

    Bounds are text such as "12.9" and are included. Raises DSLTypeError for other text.
    """
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
        raise DSLTypeError(f"{text!r} is not a CUDA version", hint='write it as "12.9"') from None


class CudaVersion:
    """The object `CUDA_VERSION`, which looks for the CUDA version at the first use of `major` or
    `minor`.
    """

    @property
    def major(self) -> int:
        return cuda_version().major

    @property
    def minor(self) -> int:
        return cuda_version().minor

    def __str__(self) -> str:
        return str(cuda_version())


CUDA_VERSION = CudaVersion()
