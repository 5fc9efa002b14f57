"""Symmetric tensors: an array of each rank of a group as one argument of `@jit` functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from basedsl import ArrayRecord, Constexpr, DSLCallError, DSLError, Int32, from_dlpack
from basedsl_cute.algebra.explained_calls import explains_arguments
from basedsl_cute.arrays.tensor import HostPointer
from basedsl_cute.distributed.peer_pointer import peer_pointer
from basedsl_cute.distributed.signal_pad import (
    FAILED,
    REPORT_WORDS,
    SLOTS,
    WORD,
    PadLayout,
    PeerTimeoutError,
    checked_limit,
)
from basedsl_cute.distributed.signals import Signals
from basedsl_cute.sim import World
from basedsl_cute.sim.machine.ranks import current_rank
from basedsl_cute.tensors.make_tensor import make_tensor
from basedsl_cute.tensors.tensor import Tensor

DEFAULT_TIMEOUT = 30.0
"""Seconds that a kernel waits for a signal by default."""

_NO_MULTICAST = "this symmetric tensor has no multicast address"
_NO_MULTICAST_HINT = (
    "the system has no multicast between these GPUs, or it is off: loop over x.peer(rank)"
)
_UINT32 = from_dlpack(1, 32, 1)
_INT32 = from_dlpack(0, 32, 1)


@dataclass(frozen=True)
class RankedTensor:
    """A symmetric tensor in traced code: what `SymmetricTensor` documents."""

    local: Any
    peers: Any
    count: Any
    dynamic_rank: Int32 | None
    static_rank: Constexpr
    signals: Any
    multicast_pointer: Any = None

    @property
    def multicast(self) -> Tensor:
        if self.multicast_pointer is None:
            raise DSLError(_NO_MULTICAST, hint=_NO_MULTICAST_HINT)
        return make_tensor(self.multicast_pointer, self.local.layout)

    @property
    def rank(self) -> Any:
        return self.dynamic_rank if self.static_rank is None else self.static_rank

    @property
    def num_ranks(self) -> Any:
        return len(self.peers) if isinstance(self.peers, tuple) else self.count

    def peer(self, rank: Any) -> Tensor:
        pointer = peer_pointer(self.peers, self.num_ranks, rank, self.local.iterator)
        return make_tensor(pointer, self.local.layout)


class SymmetricTensor:
    """An array of each rank of a group: one argument, in whose place a kernel has

        x.local        this rank's array, a tensor
        x.peer(rank)   that of another rank, or of this one, with the same layout
        x.rank         this rank's number; `x.num_ranks`: how many there are, an int
        x.signals      flags and barriers, a `Signals`, if the memory has them
        x.multicast    the array at an address that stands for every rank's, where there is one: for
                       `utils.distributed.multimem_ld_reduce`, `multimem_st`, `multimem_red_add1`

    All ranks' arrays have one shape, one element type and the same strides. The object keeps this
    rank's memory alive; the peers' lives as long as their owners keep it, so ranks release theirs
    only after all have met. Made by `empty`, `from_torch`, `from_pointers` and `simulated`.
    """

    def __init__(
        self,
        local: Any,
        addresses: Sequence[int],
        rank: int,
        pads: Sequence[int] = (),
        report: Any = None,
        slots: int = SLOTS,
        timeout: float = DEFAULT_TIMEOUT,
        keep: Any = None,
        static_rank: bool = False,
        table: Any = None,
        pad_table: Any = None,
        multicast: int = 0,
    ) -> None:
        self.array = local
        self.addresses = tuple(addresses)
        self._rank = rank
        self.timeout = timeout
        self.report = report
        self.keep = keep
        self.closed = False
        self.world: World | None = None  # of simulated ranks
        self.dsl_kept: Any = None
        self.slots = slots
        record = ArrayRecord.of(local)
        ranks = len(self.addresses)
        _check_peer(record, self.addresses, rank)
        limit = checked_limit(timeout)
        align = _alignment([record.address, *self.addresses])
        nbytes = _span(record)
        dtype = from_dlpack(*record.dtype)
        pointers: Any = tuple(HostPointer(dtype, a, "gmem", align, nbytes) for a in self.addresses)
        signals = None
        if pads:
            words = PadLayout(ranks, slots).words * WORD
            places: Any = tuple(HostPointer(_UINT32, a, "gmem", WORD, words) for a in pads)
            address = ArrayRecord.of(report).address
            own = HostPointer(_INT32, address, "gmem", WORD, REPORT_WORDS * WORD)
            signals = Signals(
                pad=places[rank],
                peers=places if pad_table is None else pad_table,
                count=Int32(ranks),
                rank=Int32(rank),
                limit=limit,  # type: ignore[arg-type]
                report=own,
                slots=slots,
            )
        self.argument = RankedTensor(
            local=local,
            peers=pointers if table is None else table,
            count=Int32(ranks),
            dynamic_rank=None if static_rank else Int32(rank),
            static_rank=rank if static_rank else None,
            signals=signals,
            multicast_pointer=None
            if not multicast
            else HostPointer(dtype, multicast, "gmem", min(align, multicast & -multicast), nbytes),
        )

    # In a kernel, which has a `RankedTensor` in the place of this object -------------------------

    @property
    def local(self) -> Any:
        """This rank's array."""
        return self.array

    @property
    def rank(self) -> Any:
        """This rank's number in the group."""
        return self._rank

    @property
    def num_ranks(self) -> int:
        """The number of ranks of the group."""
        return len(self.addresses)

    @property
    def multicast(self) -> Any:
        """The array at the multicast address: in a kernel. Raises DSLError on the host."""
        raise DSLError("multicast memory is reached in kernels", hint="x.multicast in a kernel")

    @property
    def has_multicast(self) -> bool:
        """True if `x.multicast` is there."""
        return self.argument.multicast_pointer is not None

    def peer(self, rank: Any) -> Any:
        """The array of `rank`: in a kernel. Raises DSLError on the host, which may not reach it."""
        raise DSLError(
            "the memory of a peer is reached in kernels", hint="x.peer(rank) in a kernel"
        )

    @property
    def signals(self) -> Signals:
        """The signals, in a kernel. Raises DSLError for a tensor that has none."""
        if self.argument.signals is None:
            raise DSLError("this symmetric tensor has no signals", hint="pass pads= and report=")
        found: Signals = self.argument.signals
        return found

    # On the host ---------------------------------------------------------------------------------

    def dsl_form(self) -> RankedTensor:
        """Return what is passed in its place. Raises DSLCallError for a closed tensor."""
        if self.closed:
            raise DSLCallError(
                "this symmetric tensor is closed: its memory may be gone",
                hint="call the kernel before close(), which all ranks call after they have met",
            )
        if self.world is not None:
            self._check_simulated(self.world)
        return self.argument

    def _check_simulated(self, world: World) -> None:
        here = current_rank()
        if here is None:
            return
        if here.world is not world:
            raise DSLCallError(
                "this symmetric tensor is of another world of simulated ranks",
                hint="call the kernel in run() of the world that simulated() got",
            )
        if here.rank != self._rank:
            raise DSLCallError(
                f"simulated rank {here.rank} passes the symmetric tensor of rank {self._rank}",
                hint="simulated() gives one for each rank: x[rank]",
            )

    def check(self) -> None:
        """Raise PeerTimeoutError if a kernel that has run waited for a peer beyond its limit.

        It looks at what has been reported so far, and does not wait for the GPU.
        """
        if self.report is not None and int(self.report[FAILED]):
            raise PeerTimeoutError(self._rank, [int(x) for x in self.report], self.timeout)

    def close(self) -> None:
        """Let go of the memory; another call with this tensor is an error. All ranks close theirs
        after they have met, since peers may still read it.
        """
        self.closed = True
        self.array = self.keep = None

    def __repr__(self) -> str:
        shape = "closed" if self.closed else tuple(self.array.shape)
        return f"SymmetricTensor({shape}, rank {self._rank} of {self.num_ranks})"


def _check_peer(record: ArrayRecord, addresses: tuple[int, ...], rank: int) -> None:
    if not 0 <= rank < len(addresses):
        raise DSLCallError(f"rank {rank} of a group of {len(addresses)}: there is no such rank")
    if addresses[rank] != record.address:
        raise DSLCallError(
            f"the address of rank {rank} is not that of its own array",
            hint="addresses are in the order of ranks, each of the array's first element",
        )
    for other, address in enumerate(addresses):
        if not address:
            raise DSLCallError(
                f"rank {other} has no address: this rank cannot reach its memory",
                hint="the GPUs need peer access, and the process must have opened the memory",
            )
    if len(set(addresses)) != len(addresses):
        raise DSLCallError("two ranks have the same address: each has an array of its own")


def _alignment(addresses: list[int]) -> int:
    together = 16
    for address in addresses:
        together |= address
    return min(16, together & -together)


def _span(record: ArrayRecord) -> int:
    """The bytes from the first element to the end of the last one. Raises DSLCallError for
    negative strides.
    """
    if any(d < 0 for d in record.strides):
        raise DSLCallError("a symmetric tensor has no negative strides")
    if 0 in record.shape:
        return 0
    last = sum((n - 1) * d for n, d in zip(record.shape, record.strides, strict=True))
    return (last + 1) * record.dtype[1] // 8


@explains_arguments
def from_pointers(
    local: Any,
    addresses: Sequence[int],
    rank: int,
    *,
    pads: Sequence[int] = (),
    report: Any = None,
    slots: int = SLOTS,
    timeout: float = DEFAULT_TIMEOUT,
    static_rank: bool = False,
    multicast: int = 0,
) -> SymmetricTensor:
    """Make a symmetric tensor of `local`, this rank's array, and the addresses of all ranks' arrays
    as this process sees them (CUDA IPC, CuPy's `MemoryPointer`), in the order of ranks.

    `pads` are the addresses of the ranks' signal pads, zeroed, of `pad_bytes(ranks, slots)` bytes;
    `report` is an array of 8 Int32, zeroed, which this rank's GPU and its host reach (pinned
    memory). `timeout` is the limit of each wait in seconds. With `static_rank` the rank is known
    while compiling. `multicast` is the address that stands for all ranks' arrays, if the system has
    one. Raises DSLCallError for addresses that do not fit.
    """
    if pads and (len(pads) != len(addresses) or report is None):
        raise DSLCallError("signals take a pad of each rank, and a report")
    return SymmetricTensor(
        local,
        addresses,
        rank,
        pads,
        report,
        slots,
        timeout,
        static_rank=static_rank,
        multicast=multicast,
    )


def pad_bytes(ranks: int, slots: int = SLOTS) -> int:
    """Return the bytes of the signal pad of each of `ranks` ranks."""
    return PadLayout(ranks, slots).words * WORD


@explains_arguments
def simulated(
    world: World,
    shape: int | Sequence[int],
    dtype: Any = np.float32,
    *,
    slots: int = SLOTS,
    timeout: float = DEFAULT_TIMEOUT,
    static_rank: bool = False,
    static_num_ranks: bool = True,
    multicast: bool = False,
    fill: Callable[[int], Any] | None = None,
) -> list[SymmetricTensor]:
    """Allocate a symmetric tensor of zeros for the simulated ranks of `world`: one object for each
    rank, whose NumPy array is its `local`.

    `fill(rank)` gives the first content, which all ranks know to be there. With `static_rank` a
    rank knows its number while compiling; without `static_num_ranks` the number of ranks is known
    at run time only; with `multicast` it has a multicast address. The time limit counts the
    simulator's ticks as nanoseconds.
    """
    layout = PadLayout(world.count, slots)
    arrays, pads, reports = [], [], []
    for rank in range(world.count):
        array = _aligned(shape, np.dtype(dtype))
        if fill is not None:
            array[...] = fill(rank)
        arrays.append(array)
        pads.append(_aligned(layout.words, np.dtype(np.uint32)))
        reports.append(np.zeros(REPORT_WORDS, np.int32))
        raw = array.reshape(-1).view(np.uint8)
        if raw.size:
            world.add_memory(array.ctypes.data, raw, rank, _describer(array, rank))
        world.add_memory(
            pads[-1].ctypes.data, pads[-1].view(np.uint8), rank, _pad_describer(layout, rank)
        )
    addresses, places = ([x.ctypes.data for x in each] for each in (arrays, pads))
    window = _aligned(shape, np.dtype(dtype)) if multicast else None  # addresses, and no memory
    if window is not None:
        world.add_multicast(window.ctypes.data, window.nbytes, addresses)
    table = pad_table = None
    if not static_num_ranks:
        table, pad_table = np.array(addresses, np.int64), np.array(places, np.int64)
    made = [
        SymmetricTensor(
            arrays[rank],
            addresses,
            rank,
            places,
            reports[rank],
            slots,
            timeout,
            keep=(arrays, pads, window),
            static_rank=static_rank,
            multicast=0 if window is None else window.ctypes.data,
            table=table,
            pad_table=pad_table,
        )
        for rank in range(world.count)
    ]
    for one in made:
        one.world = world
    return made


def _describer(array: Any, rank: int) -> Callable[[int], str]:
    return lambda byte: f"a change of element {byte // array.itemsize} of rank {rank}"


def _pad_describer(layout: PadLayout, rank: int) -> Callable[[int], str]:
    return lambda byte: layout.describe(rank, byte)


def _aligned(shape: int | Sequence[int], dtype: Any) -> Any:
    """Zeros whose address is a multiple of 16 bytes; without elements, of an address of its own."""
    extents = (shape,) if isinstance(shape, int) else tuple(shape)
    count = int(np.prod(extents))
    raw = np.zeros(max(count, 1) * dtype.itemsize + 16, np.uint8)
    skip = -raw.ctypes.data % 16
    return raw[skip : skip + count * dtype.itemsize].view(dtype).reshape(extents)
