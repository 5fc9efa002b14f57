"""Symmetric tensors of PyTorch: memory of `torch.distributed._symmetric_memory`.

Every rank of the process group calls these functions in the same order: they are collective.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

from basedsl import DSLCallError, DSLRuntimeError
from basedsl_cute.algebra.explained_calls import explains_arguments
from basedsl_cute.distributed.signal_pad import REPORT_WORDS, SLOTS
from basedsl_cute.distributed.symmetric import DEFAULT_TIMEOUT, SymmetricTensor, pad_bytes


@explains_arguments
def empty(
    shape: Sequence[int],
    dtype: Any,
    group: Any = None,
    *,
    slots: int = SLOTS,
    timeout: float = DEFAULT_TIMEOUT,
    static_rank: bool = False,
) -> SymmetricTensor:
    """Allocate a symmetric tensor of the process group `group`, by default the whole world, on each
    rank's current CUDA device. Its array is a torch tensor, `x.local`, uninitialized.

    `slots` is how many slots its signals have, `timeout` the limit of each wait in seconds; with
    `static_rank` a rank compiles for its own number. Raises DSLRuntimeError without PyTorch, and
    where the ranks' GPUs cannot reach each other.
    """
    torch, memory = _modules()
    if not torch.cuda.is_available():
        raise DSLRuntimeError(
            "PyTorch finds no GPU here",
            hint="cute.distributed.simulated(world, shape) is memory of simulated ranks",
        )
    device = torch.device("cuda", torch.cuda.current_device())
    made = memory.empty(tuple(shape), dtype=dtype, device=device)
    return from_torch(made, group, slots=slots, timeout=timeout, static_rank=static_rank)


@explains_arguments
def from_torch(
    tensor: Any,
    group: Any = None,
    *,
    slots: int = SLOTS,
    timeout: float = DEFAULT_TIMEOUT,
    static_rank: bool = False,
) -> SymmetricTensor:
    """Make a symmetric tensor of a torch tensor that `torch.distributed._symmetric_memory.empty`
    allocated, whole, on every rank of `group`, by default the whole world.

    The signals are memory of its own: those of PyTorch's own operations stay as they are. The other
    parameters are those of `empty`. Raises DSLCallError for a tensor of other memory, a view, and a
    group that this process is not in; DSLRuntimeError where GPUs cannot reach each other.
    """
    torch, memory = _modules()
    dist = torch.distributed
    group = dist.group.WORLD if group is None else group
    if group is None or dist.get_rank(group) < 0:
        raise DSLCallError(
            "this process is not in the process group",
            hint="torch.distributed.init_process_group, and a group that has this rank",
        )
    if not tensor.is_cuda:
        raise DSLCallError(f"the tensor is on {tensor.device}, where no peer reaches it")
    rank, ranks = dist.get_rank(group), dist.get_world_size(group)
    data, addresses = _rendezvous(dist, memory, tensor, group, "the tensor")
    pad = memory.empty((pad_bytes(ranks, slots),), dtype=torch.uint8, device=tensor.device)
    handle, pads = _rendezvous(dist, memory, pad, group, "its signals")
    pad.zero_()
    torch.cuda.synchronize(tensor.device)
    dist.barrier(group)  # nobody signals before all pads are zero
    report = torch.zeros(REPORT_WORDS, dtype=torch.int32).pin_memory()
    return SymmetricTensor(
        tensor.detach(),
        addresses,
        rank,
        pads,
        report.numpy(),
        slots,
        timeout,
        keep=(tensor, pad, report, data, handle, group),
        static_rank=static_rank,
        multicast=_multicast(tensor, data),
    )


def _multicast(tensor: Any, handle: Any) -> int:
    """The address that stands for the tensor on all ranks; 0 where the system has none."""
    base = int(getattr(handle, "multicast_ptr", 0) or 0)
    return base and base + tensor.data_ptr() - int(handle.buffer_ptrs[handle.rank])


def _modules() -> tuple[Any, Any]:
    try:
        return importlib.import_module("torch"), importlib.import_module(
            "torch.distributed._symmetric_memory"
        )
    except ImportError:
        raise DSLRuntimeError(
            "PyTorch with symmetric memory is not installed", hint="pip install torch"
        ) from None


def _rendezvous(
    dist: Any, memory: Any, tensor: Any, group: Any, what: str
) -> tuple[Any, list[int]]:
    """Share a tensor: the handle, and the address of each rank's tensor as this process sees it."""
    try:
        handle = memory.rendezvous(tensor, group.group_name)
    except RuntimeError as error:
        raise DSLRuntimeError(
            f"the ranks cannot share {what}: {str(error).splitlines()[0]}",
            hint="all ranks are on one host with peer access, and all call this in the same order",
        ) from error
    bases = [] if handle is None else list(handle.buffer_ptrs)
    offset = tensor.data_ptr() - bases[handle.rank] if bases else -1
    if not 0 <= offset <= (handle.buffer_size if bases else 0) - tensor.nbytes:
        raise DSLCallError(
            f"{what} is no memory of torch.distributed._symmetric_memory",
            hint="x = cute.distributed.empty(shape, dtype, group), and x.local is the torch tensor",
        )
    offsets: list[Any] = [None] * len(bases)
    dist.all_gather_object(offsets, offset, group)
    return handle, [base + at for base, at in zip(bases, offsets, strict=True)]
