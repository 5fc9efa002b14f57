"""Tensor maps that lie in memory: kernels read them and change their fields.

A block keeps a tensor map from its first use on, as the hardware's descriptor cache may, until the
kernel acquires it anew (PTX ISA, fence.proxy.tensormap), so that a missing fence shows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from basedsl_cute.device.tensor_map import TensorMap, TensorMapRecord, decode
from basedsl_cute.hardware.tensor_map_format import ALIGNMENT, BYTES
from basedsl_cute.sim.errors import MemoryAccessError, SimulationError
from basedsl_cute.sim.machine.barriers import require_whole_group
from basedsl_cute.sim.machine.memory import Segment
from basedsl_cute.sim.machine.state import Group, Mask
from basedsl_cute.sim.site import Site


def active_lanes(g: Group, m: Mask) -> Iterator[int]:
    """The numbers of the lanes in `m`."""
    yield from range(g.lanes) if m is None else np.flatnonzero(m).tolist()


def find_tensor_map(g: Group, address: int, lane: int, site: Site) -> TensorMap:
    """The tensor map at a generic address, as the block last acquired it. Raises SimulationError if
    there is none.
    """
    known = g.block.tensor_maps.get(address)
    if known is None:
        data = _bytes(g, address, lane, site, shared=False)
        known = g.block.tensor_maps[address] = _decoded(g, data.tobytes(), address, lane, site)
    return known


def acquire_tensor_map(g: Group, address: Any, m: Mask) -> None:
    """Forget the tensor maps at `address`, so that their next use reads memory again."""
    for lane in active_lanes(g, m):
        g.block.tensor_maps.pop(int(address[lane]), None)


def replace_field(
    g: Group, m: Mask, site: Site, shared: bool, at: Any, field: str, ordinal: int, value: Any
) -> None:
    """Set one field of a tensor map in shared or global memory (PTX ISA, tensormap.replace).
    `ordinal` counts modes; addresses and strides are in bytes. Raises SimulationError for a field
    that the map does not have, and for a value that is not aligned.
    """
    for lane in active_lanes(g, m):
        data = _bytes(g, int(at[lane]), lane, site, shared)
        _decoded(g, data.tobytes(), int(at[lane]), lane, site)
        record = TensorMapRecord.from_buffer(data)
        number = int(value[lane])
        if field == "global_dim":
            number &= 0xFFFF_FFFF
        elif number % 16:
            what = "address" if field == "global_address" else f"stride of mode {ordinal + 1}"
            raise SimulationError(
                f"a tensor map's {what} is {number} bytes: it must be a multiple of 16",
                site,
                g.thread(lane),
            )
        if field == "global_address":
            record.address = number
        elif ordinal >= record.rank - (field == "global_stride"):
            raise SimulationError(
                f"a tensor map of {record.rank} modes has no {field} {ordinal}",
                site,
                g.thread(lane),
            )
        elif field == "global_dim":
            record.extents[ordinal] = number
        else:
            record.strides[ordinal] = number


def release_tensor_map(
    g: Group, m: Mask, site: Site, branch: Site | None, target: Any, source: Any
) -> None:
    """Copy a tensor map from shared to global memory, by a whole warp (PTX ISA,
    tensormap.cp_fenceproxy).
    """
    require_whole_group(g, m, site, branch)
    to, at = int(np.ravel(target)[0]), int(np.ravel(source)[0])
    data = _bytes(g, at, 0, site, shared=True)
    _decoded(g, data.tobytes(), at, 0, site)
    _bytes(g, to, 0, site, shared=False, verb="write")[:] = data
    g.launch.stores += 1


def _bytes(g: Group, address: int, lane: int, site: Site, shared: bool, verb: str = "read") -> Any:
    """A view of the 128 bytes at an address. Raises if they are not where a tensor map may lie."""
    segment: Segment | None = g.shared if shared else g.memory.find(address)
    if segment is None or not segment.base <= address <= segment.end - BYTES:
        raise _no_tensor_map(g, address, lane, site)
    if address % ALIGNMENT:
        raise MemoryAccessError(
            f"a tensor map at {address:#x}: it must lie at a multiple of {ALIGNMENT} bytes",
            site,
            g.thread(lane),
        )
    if verb == "write" and not segment.writable:
        raise MemoryAccessError(
            f"write to `{segment.name}`, which is read-only", site, g.thread(lane)
        )
    start = address - segment.base
    return segment.raw[start : start + BYTES]


def _decoded(g: Group, data: bytes, address: int, lane: int, site: Site) -> TensorMap:
    found = decode(data)
    if found is None:
        raise _no_tensor_map(g, address, lane, site)
    return found


def _no_tensor_map(g: Group, address: int, lane: int, site: Site) -> SimulationError:
    return SimulationError(
        f"there is no tensor map at {address:#x}",
        site,
        g.thread(lane),
        hint="make it in host code with make_tiled_tma_atom and pass it to the kernel, or copy one "
        "there with copy_tensormap",
    )
