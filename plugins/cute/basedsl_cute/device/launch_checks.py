"""Launches from host code: their decoding, limits and failures, and the launcher in Python, which
the simulator uses.

The interface itself, which compiled host code is written against, is `lowering.host.launch_abi`.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from basedsl import DSLRuntimeError, Span, raise_failed_assertion
from basedsl_cute.device.tensor_map import simulated_encoders
from basedsl_cute.hardware.launch_limits import LaunchLimits, LaunchProblem, launch_problem
from basedsl_cute.lowering.host.launch_abi import (
    COOPERATIVE,
    LAUNCH_SYMBOL,
    LAUNCHER_SYMBOL,
    PDL,
    PREFERRED_CLUSTER,
    KernelEntry,
    LaunchConfig,
    LaunchTable,
    preferred_cluster,
)

__all__ = [
    "COOPERATIVE",
    "LAUNCHER_SYMBOL",
    "LAUNCH_SYMBOL",
    "PDL",
    "PREFERRED_CLUSTER",
    "KernelEntry",
    "LaunchConfig",
    "LaunchParameters",
    "LaunchTable",
    "Symbols",
    "preferred_cluster",
    "python_launcher",
    "raise_failed_launch",
    "report_failure",
    "unlaunchable",
]


_POINTER_BYTES = ctypes.sizeof(ctypes.c_void_p)


class LaunchParameters(NamedTuple):
    """The parameters of one launch, as Python values."""

    kernel: KernelEntry
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int] | None
    smem: int
    stream: int
    flags: int
    args: int  # the address of the array of pointers

    @staticmethod
    def read(config: LaunchConfig, args: int, table: LaunchTable) -> LaunchParameters:
        """Decode a launch from its C structures."""
        cluster = _three(config.cluster)
        return LaunchParameters(
            kernel=table.kernels[config.kernel],
            grid=_three(config.grid),
            block=_three(config.block),
            cluster=None if cluster == (0, 0, 0) else cluster,
            smem=config.smem,
            stream=config.stream,
            flags=config.flags,
            args=args,
        )

    def argument(self, index: int, kind: type[ctypes._SimpleCData]) -> int | float:  # type: ignore[type-arg]
        """The value of kernel argument `index`, read as a ctypes type."""
        return kind.from_address(self.argument_address(index)).value  # type: ignore[no-any-return]

    def argument_address(self, index: int) -> int:
        """The address of the bytes of kernel argument `index`."""
        return ctypes.c_void_p.from_address(self.args + index * _POINTER_BYTES).value or 0


def _three(values: ctypes.Array[ctypes.c_int64]) -> tuple[int, int, int]:
    return (values[0], values[1], values[2])


_launch_problem = functools.lru_cache(maxsize=256)(launch_problem)


def unlaunchable(launch: LaunchParameters, limits: LaunchLimits) -> DSLRuntimeError | None:
    """Return the error about a launch that a device of these limits cannot run, or None."""
    kernel = launch.kernel
    cluster = launch.cluster or kernel.cluster
    problem = _launch_problem(limits, launch.grid, launch.block, cluster, launch.smem)
    if problem is None and kernel.block is not None and launch.block != kernel.block:
        problem = LaunchProblem(
            f"block={launch.block}, but the kernel was compiled for {kernel.block}"
        )
    if problem is None:
        return None
    return DSLRuntimeError(f"launch of {kernel.name}: {problem.message}", hint=problem.hint)


# Failures ------------------------------------------------------------------------------------

_state = threading.local()


def report_failure(error: BaseException) -> None:
    """Remember why a launch in this thread failed, for `raise_failed_launch`."""
    if getattr(_state, "error", None) is None:
        _state.error = error


def raise_failed_launch() -> None:
    """Raise the error that `report_failure` remembered in this thread, at the user's launch line.

    Call it after native host code that can launch, before
    `objectstage.raise_failed_assertion`: the early return of a failed launch is an
    assertion for the native back end, which knows the line.
    """
    error = getattr(_state, "error", None)
    if error is None:
        return
    _state.error = None
    span: Span | None = None
    try:
        raise_failed_assertion()
    except DSLRuntimeError as stopped:
        span = stopped.span
    if isinstance(error, DSLRuntimeError) and span is not None:
        if getattr(error, "site", None) is None:
            error.span = span
        else:  # the simulator knows the line in the kernel
            error.notes = (*error.notes, ("the kernel was launched here", span))
    raise error


CallbackType = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, ctypes.POINTER(LaunchConfig), ctypes.c_void_p
)


def python_launcher(
    table: LaunchTable, limits: LaunchLimits, start: Callable[[LaunchParameters], None]
) -> dict[str, int]:
    """The symbols for `load_object` that make host code call `start(launch)` for each launch.

    Launches beyond the limits fail before `start`; an exception of `start` is raised in the thread
    that called the host code. Keep the returned mapping alive as long as the code.
    """

    def launch(launcher: int, config: ctypes._Pointer[LaunchConfig], args: int) -> int:
        try:
            asked = LaunchParameters.read(config.contents, args, table)
            wrong = unlaunchable(asked, limits)
            if wrong is not None:
                raise wrong
            start(asked)
        except BaseException as error:
            report_failure(error)
            return 1
        return 0

    callback = CallbackType(launch)
    address = _address(callback)
    encoders = simulated_encoders()
    symbols = Symbols({LAUNCH_SYMBOL: address, LAUNCHER_SYMBOL: address, **encoders})
    symbols.keep = (callback,)
    return symbols


class Symbols(dict[str, int]):
    """Addresses by symbol name; `keep` holds the objects that they point into."""

    keep: tuple[object, ...] = ()


def _address(callback: Any) -> int:
    return ctypes.cast(callback, ctypes.c_void_p).value or 0
