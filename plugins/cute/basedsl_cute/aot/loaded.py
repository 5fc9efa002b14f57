"""Exported functions with kernels in Python: the first call loads the kernels."""

from __future__ import annotations

import ctypes

from basedsl import LoadedFunction
from basedsl_cute.device import driver


class LoadedKernels(LoadedFunction):
    """An exported function that launches kernels. A failing CUDA call raises
    DSLCudaRuntimeError.
    """

    _library: ctypes.c_void_p | None = None

    def prepare(self) -> None:
        """Load the kernels, once."""
        driver.require()
        driver.ensure_context()
        if self._library is not None:
            return
        library = ctypes.c_void_p()
        load = self.function("Kernel_Module_Load", ctypes.c_int32, ctypes.c_void_p)
        code = load(ctypes.addressof(library))
        if code:
            raise _error(code, f"loading the kernels of {self.name} failed")
        self._library = library

    def failure(self, status: int) -> BaseException:
        """Return the error of a call that has failed."""
        return _error(status, f"{self.name} failed")


def _error(code: int, what: str) -> BaseException:
    name, meaning = driver.describe_error(code)
    error: BaseException = driver.DSLCudaRuntimeError(f"{what}: {name}, {meaning}", code, name)
    return error
