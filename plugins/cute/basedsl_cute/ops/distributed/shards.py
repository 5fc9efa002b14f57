"""The shards of all ranks, one after another: each is pulled while the one before it is used."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

from basedsl_cute.distributed import SymmetricTensor, empty
from basedsl_cute.ops.distributed.process_group import on_forget, workspace_of
from basedsl_cute.ops.distributed.torch_operations import all_gather

_memory: dict[Any, SymmetricTensor] = {}  # by the name of a group and the number of a device
_LEAST = 1 << 22  # bytes


def shards(own: Any, group: Any) -> Iterator[tuple[int, Any]]:
    """Yield (rank, shard) for the contiguous tensor `own` of all ranks of a process group: this
    rank's first, then those of lower and lower ranks, around.

    On GPUs that reach each other the next one is copied from its peer's memory, on a stream of its
    own, while the caller works on this one; else all come by an all-gather. A shard is valid until
    the next but one.
    """
    torch: Any = importlib.import_module("torch")
    dist = torch.distributed
    rank, ranks = dist.get_rank(group), dist.get_world_size(group)
    space = workspace_of(group, own)
    if space is None:
        every = all_gather(own.unsqueeze(0), group)
        for step in range(ranks):
            yield (rank - step) % ranks, every[(rank - step) % ranks]
        return
    memory = _memory_of(torch, group, own)
    count = own.nbytes
    raw = own.view(-1).view(torch.uint8)
    memory.local[:count].copy_(raw)
    token = torch.zeros(4, device=own.device)
    space.all_reduce(token, token)  # all shards are there
    main, side = torch.cuda.current_stream(), torch.cuda.Stream()
    places = [torch.empty_like(own) for _ in range(min(2, ranks - 1))]
    ready, free = [None, None], [main.record_event(), main.record_event()]

    def pull(step: int) -> None:
        place = places[step % 2 - 1]
        peer = memory.keep[3].get_buffer((rank - step) % ranks, (count,), torch.uint8)
        with torch.cuda.stream(side):
            side.wait_event(free[step % 2])
            place.view(-1).view(torch.uint8).copy_(peer, non_blocking=True)
            place.record_stream(side)
            ready[step % 2] = side.record_event()

    for step in range(ranks):
        if step + 1 < ranks:
            pull(step + 1)
        if step:
            main.wait_event(ready[step % 2])
        yield (rank - step) % ranks, places[step % 2 - 1] if step else own
        free[step % 2] = main.record_event()
    space.all_reduce(token, token)  # all have what they need: the memory is free again


def _memory_of(torch: Any, group: Any, own: Any) -> SymmetricTensor:
    """This group's memory for a shard: made with the first call, and again for a larger one."""
    key = group.group_name, own.device
    found = _memory.get(key)
    if found is None or found.local.nbytes < own.nbytes:
        size = max(_LEAST, 1 << (own.nbytes - 1).bit_length())
        if found is not None:
            torch.cuda.synchronize(own.device)
            torch.distributed.barrier(group)
            found.close()
        found = _memory[key] = empty((size,), torch.uint8, group)
    return found


@on_forget
def _forget(name: str) -> None:
    for key in [key for key in _memory if key[0] == name]:
        _memory.pop(key).close()
