"""Workspaces of PyTorch's process groups, and the groups that kernels cannot serve."""

from __future__ import annotations

import functools
import importlib
import socket
import warnings
from collections.abc import Callable
from typing import Any

from basedsl import DSLCallError, DSLRuntimeError, DSLTypeError
from basedsl_cute.distributed import empty
from basedsl_cute.ops.distributed.lamport import EMPTY
from basedsl_cute.ops.distributed.products import SLOTS, ProductWorkspace
from basedsl_cute.ops.distributed.workspaces import Workspace, sizes

# Two blocks of each of an H200's multiprocessors: 10 % faster for large arrays than one of 512.
BLOCKS, THREADS = 264, 256
TIMEOUT = 30.0

_LEAST = 1 << 26  # bytes of a workspace for products
_products: dict[Any, ProductWorkspace] = {}  # by the name of a group and the number of a device
_on_forget: list[Callable[[str], None]] = []
_found: dict[Any, Workspace | None] = {}  # by the name of a group and the number of a device


def workspace(
    group: Any = None, *, blocks: int = BLOCKS, threads: int = THREADS, timeout: float = TIMEOUT
) -> Workspace:
    """Make a workspace of the process group `group` on this rank's current CUDA device: collective.

    `timeout` is the limit of each wait of a kernel in seconds. Raises DSLRuntimeError where the
    ranks' GPUs cannot reach each other.
    """
    torch: Any = importlib.import_module("torch")
    dist = torch.distributed
    group = _world() if group is None else group
    rings, buffers = sizes(dist.get_world_size(group), blocks, threads)
    first = empty((rings,), torch.uint8, group, slots=blocks, timeout=timeout)
    second = empty((buffers // 4,), torch.int32, group, slots=blocks, timeout=timeout)
    second.local.fill_(EMPTY - (1 << 32))
    torch.cuda.synchronize()
    dist.barrier(group)  # nobody pushes before all buffers are empty

    return Workspace(first, second, blocks, threads, _current_stream(torch))


def product_workspace(
    group: Any = None, nbytes: int = 1 << 29, *, timeout: float = TIMEOUT
) -> ProductWorkspace:
    """Make a workspace for the matrix products of the process group `group` on this rank's current
    CUDA device, of `nbytes` of memory: collective. The rest is that of `workspace`.
    """
    torch: Any = importlib.import_module("torch")
    memory = empty((nbytes,), torch.uint8, group, slots=SLOTS, timeout=timeout)
    blocks = torch.cuda.get_device_properties(memory.local.device).multi_processor_count
    return ProductWorkspace(memory, nbytes, blocks, _current_stream(torch))


def _current_stream(torch: Any) -> Callable[[], int]:
    """Return the function that finds the handle of the current stream of this device.

    PyTorch's object of a stream takes longer to make than a small collective.
    """
    device = torch.cuda.current_device()
    handle_of = getattr(torch._C, "_cuda_getCurrentRawStream", None)
    if handle_of is None:
        return lambda: int(torch.cuda.current_stream(device).cuda_stream)
    return functools.partial(handle_of, device)


def workspace_of(group: Any, tensor: Any) -> Workspace | None:
    """Return the workspace of a group for a tensor's device, made with the first call, which is
    collective; None for a group that NCCL or another backend serves, of which it warns once.
    """
    key = group.group_name, tensor.device
    if key not in _found:
        reason = _why_not(group, tensor)
        if reason is not None:
            warnings.warn(
                f"collectives of group {group.group_name!r} go through "
                f"{group._get_backend_name() if hasattr(group, '_get_backend_name') else 'PyTorch'}"
                f": {reason}",
                stacklevel=3,
            )
        _found[key] = None if reason is not None else workspace(group)
    return _found[key]


def product_workspace_of(group: Any, tensor: Any, nbytes: int) -> ProductWorkspace:
    """Return the workspace for products of a group on a tensor's device, of at least `nbytes`: made
    with the first call, and again for a larger product, which is collective.
    """
    torch: Any = importlib.import_module("torch")
    key = group.group_name, tensor.device
    found = _products.get(key)
    if found is not None and 2 * found.half_bytes >= nbytes:
        return found
    if found is not None:
        torch.cuda.synchronize(tensor.device)
        torch.distributed.barrier(group)  # no peer's kernel uses it any more
        found.memory.close()
    _products[key] = product_workspace(group, max(_LEAST, 1 << (nbytes - 1).bit_length()))
    return _products[key]


def on_forget(call: Callable[[str], None]) -> Callable[[str], None]:
    """Call a function with the name of each group that is forgotten, for memory of its own."""
    _on_forget.append(call)
    return call


def forget(group: Any) -> None:
    """Let go of a group's workspaces: all ranks call it after they have met, before the group is
    destroyed.
    """
    for call in _on_forget:
        call(group.group_name)
    for key in [key for key in _products if key[0] == group.group_name]:
        _products.pop(key).memory.close()
    for key in [key for key in _found if key[0] == group.group_name]:
        space = _found.pop(key)
        if space is not None:
            space.rings.close()
            space.buffers.close()


def _why_not(group: Any, tensor: Any) -> str | None:
    """The reason why kernels cannot serve the group, the same on all ranks; None if they can."""
    torch: Any = importlib.import_module("torch")
    if not tensor.is_cuda:
        return f"its tensors are on the {tensor.device.type}"
    dist = torch.distributed
    seen: list[Any] = [None] * dist.get_world_size(group)
    device = tensor.device.index
    visible = torch.cuda.device_count()
    apart = [n for n in range(visible) if n != device]
    reached = [n for n in apart if torch.cuda.can_device_access_peer(device, n)]
    dist.all_gather_object(seen, (socket.gethostname(), device, visible, reached), group)
    if len({host for host, *_ in seen}) > 1:
        return "its ranks are on several hosts"
    if len({number for _, number, *_ in seen}) < len(seen) and visible > 1:
        return "two of its ranks use one GPU"
    for _, number, count, peers in seen:
        if count > 1 and any(n != number and n not in peers for _, n, *_ in seen):
            return f"GPU {number} cannot reach all peers"
    return None


def constant_for_dynamo(function: Any) -> Any:
    """Have `torch.compile` call a function while it traces, and keep the result: what
    `torch.compiler.assume_constant_result` does, without an import of PyTorch.
    """
    function._dynamo_marked_constant = True
    return function


@constant_for_dynamo
def name_of(group: Any) -> str:
    """Return the name of a group: of a process group, of a `DeviceMesh` of one mode, or the name
    itself; None is the whole world. Raises DSLCallError for a mesh of several modes, DSLTypeError
    for what is no group, DSLRuntimeError before `init_process_group`.
    """
    if isinstance(group, str):
        return group
    if group is None:
        group = _world()
    if hasattr(group, "mesh_dim_names"):
        if group.ndim != 1:
            raise DSLCallError(
                f"a mesh of {group.ndim} modes is no group",
                hint="pass the mesh of one of its modes: mesh['tp']",
            )
        group = group.get_group()
    if not hasattr(group, "group_name"):
        raise DSLTypeError(
            f"an object of type {type(group).__name__} is no process group",
            hint="torch.distributed.new_group([0, 1]), its name, or a DeviceMesh of one mode",
        )
    return str(group.group_name)


def _world() -> Any:
    torch: Any = importlib.import_module("torch")
    if torch.distributed.group.WORLD is None:
        raise DSLRuntimeError(
            "there is no process group yet",
            hint='torch.distributed.init_process_group("nccl"), under torchrun',
        )
    return torch.distributed.group.WORLD


def group_named(name: str) -> Any:
    """Return the process group of a name. Raises DSLRuntimeError if there is none."""
    resolve: Any = importlib.import_module("torch._C._distributed_c10d")
    try:
        return resolve._resolve_process_group(name)
    except (RuntimeError, ValueError):
        raise DSLRuntimeError(f"there is no process group {name!r}") from None
