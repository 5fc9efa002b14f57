"""Symmetric tensors of NVSHMEM's symmetric heap, by `nvshmem4py`."""

from __future__ import annotations

import importlib
from typing import Any

from basedsl import ArrayRecord, DSLRuntimeError
from basedsl_cute.algebra.explained_calls import explains_arguments
from basedsl_cute.distributed.signal_pad import SLOTS
from basedsl_cute.distributed.symmetric import DEFAULT_TIMEOUT, SymmetricTensor, from_pointers


@explains_arguments
def from_nvshmem(
    local: Any,
    pad: Any = None,
    report: Any = None,
    *,
    slots: int = SLOTS,
    timeout: float = DEFAULT_TIMEOUT,
    static_rank: bool = False,
) -> SymmetricTensor:
    """Make a symmetric tensor of `local`, an array in NVSHMEM's symmetric heap, which every PE has
    allocated alike; a PE is a rank.

    `pad` is another array of the heap, zeroed on all PEs, of `pad_bytes(ranks, slots)` bytes: the
    memory of the signals; the rest is that of `from_pointers`. PEs are reached by loads and stores
    (`nvshmem_ptr`), which those of other hosts are not: DSLCallError. Raises DSLRuntimeError where
    nvshmem4py is not installed, does not find NVSHMEM's library, or is not initialized.
    """
    core, bindings = _modules()
    try:
        rank, ranks = int(core.my_pe()), int(core.n_pes())
    except RuntimeError as error:
        raise DSLRuntimeError(
            f"NVSHMEM does not load: {str(error).splitlines()[0]}",
            hint="pip install nvidia-nvshmem-cu13 (or -cu12), with its folder in LD_LIBRARY_PATH",
        ) from None
    if ranks < 1:  # what a PE that is not initialized is told
        raise DSLRuntimeError(
            "NVSHMEM is not initialized",
            hint="nvshmem.core.init(device=..., uid=..., rank=..., nranks=..., "
            'initializer_method="uid")',
        )

    def addresses(array: Any) -> list[int]:
        own = ArrayRecord.of(array).address
        return [own if pe == rank else int(bindings.ptr(own, pe)) for pe in range(ranks)]

    return from_pointers(
        local,
        addresses(local),
        rank,
        pads=() if pad is None else addresses(pad),
        report=report,
        slots=slots,
        timeout=timeout,
        static_rank=static_rank,
    )


def _modules() -> tuple[Any, Any]:
    try:
        return importlib.import_module("nvshmem.core"), importlib.import_module("nvshmem.bindings")
    except ImportError:
        raise DSLRuntimeError(
            "NVSHMEM's Python package is not installed",
            hint="pip install nvshmem4py-cu13 (or -cu12), or take cute.distributed.empty",
        ) from None
