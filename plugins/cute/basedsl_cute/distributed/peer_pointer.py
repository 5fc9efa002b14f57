"""The pointer to the memory of one rank of a group, in a kernel."""

from __future__ import annotations

from typing import Any

from basedsl import DSLTypeError, Int64, current_trace, is_dynamic, select
from basedsl_cute.dialect.cute_trace import cute_trace
from basedsl_cute.tensors.bounds_checks import check_element
from basedsl_cute.tensors.make_tensor import make_ptr
from basedsl_cute.tensors.pointer import Pointer


def peer_pointer(peers: Any, count: Any, rank: Any, own: Pointer) -> Pointer:
    """Return the pointer to the memory of `rank`, of the type and alignment of this rank's `own`.

    `peers` are pointers to the memory of each of `count` ranks or, where that is dynamic, a tensor
    of their addresses; `rank` is static or dynamic. Raises DSLTypeError for a static rank that does
    not exist; the simulator reports a dynamic one.
    """
    trace = current_trace("the memory of a peer")
    known = isinstance(peers, tuple)
    if not is_dynamic(rank) and known:
        if not 0 <= int(rank) < count:
            raise DSLTypeError(f"there is no rank {int(rank)} in a group of {count}")
        found: Pointer = peers[int(rank)]
        return found
    if cute_trace(trace).checks_coordinates:
        check_element(trace, rank, count)
    if not known:
        return make_ptr(own.dtype, peers[rank], "gmem", assumed_align=own.alignment)
    address = peers[0].toint()
    for number, pointer in enumerate(peers[1:], 1):
        address = select(rank == number, pointer.toint(), address)
    return make_ptr(own.dtype, address.to(Int64), "gmem", assumed_align=own.alignment)
