"""Signals between ranks, in kernels: flags that only count up, barriers, puts with a signal.

A flag is a word of 32 bits that one rank writes and one rank waits for. It counts up and is never
reset, so that a signal cannot be missed or taken for the next one; counts wrap around after 2^32.
Every wait has a time limit: beyond it the wait ends, the rank's report names what it waited for,
and all later waits of the rank end at once. Results are not valid then: `check()` raises.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from basedsl import (
    Boolean,
    Constexpr,
    Int32,
    Int64,
    Uint32,
    minimum,
    range_constexpr,
    user_span,
)
from basedsl_cute import algebra, arch
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.distributed.peer_pointer import peer_pointer
from basedsl_cute.distributed.signal_pad import (
    EXPECTED,
    FAILED,
    FILE,
    LINE,
    SEEN,
    SLOT,
    SOURCE,
    PeerTimeoutError,
    file_number,
)
from basedsl_cute.dsl.cute import CUTE
from basedsl_cute.tensors.pointer import Pointer

__all__ = ["PeerTimeoutError", "Signals"]

_TOGETHER = 8  # flags that a thread looks at together
_GRACE = 1 << 16  # nanoseconds that a wait goes on after another one of its rank took too long


@dataclass(frozen=True)
class Signals:
    """The signals of a symmetric tensor, in a kernel: `x.signals`.

    Each rank has a pad of `slots` slots with a flag of each rank. A slot serves one sequence of
    signals: the barriers of one block of each rank, or the signals of one rank to another.
    """

    pad: Any  # pointer to this rank's pad
    peers: Any  # to all ranks' pads: pointers, or a tensor of addresses
    count: Any  # of ranks
    rank: Any
    limit: Int64  # of a wait, in nanoseconds
    report: Any  # pointer to this rank's report
    slots: Constexpr[int]

    @property
    def num_ranks(self) -> Any:
        """The number of ranks: an int where `x.num_ranks` is one."""
        return len(self.peers) if isinstance(self.peers, tuple) else self.count

    def _flag(self, pad: Pointer, slot: Any, source: Any) -> Pointer:
        flag: Pointer = pad + (slot * self.num_ranks + source)
        return flag

    def _own(self, word: str, slot: Any = 0) -> Pointer:
        first = self.num_ranks * self.slots
        own: Pointer = self.pad + (first + (slot if word == "counter" else self.slots))
        return own

    @takes_location
    def notify(self, peer: Any, value: Any, slot: Any = 0, *, sem: str = "release") -> None:
        """Set this rank's flag in `slot` of rank `peer` to `value`, for one thread.

        All that the thread did before, and knows of, is over for whoever waits for the value (PTX
        `st.release.sys`); not so with `sem="relaxed"`. Values of one flag must count up.
        """
        pad = peer_pointer(self.peers, self.num_ranks, peer, self.pad)
        arch.store(self._flag(pad, slot, self.rank), Uint32(value), sem=sem, scope="sys")

    @takes_location
    def wait(self, source: Any, value: Any, slot: Any = 0) -> None:
        """Wait until the flag of rank `source` in `slot` is at least `value`, for one thread.

        What the source did before its signal is then visible to the thread (PTX `ld.acquire.sys`).
        The wait ends beyond the time limit too: see `Signals`.
        """
        span = user_span()
        line, file = (0, 0) if span is None else (span.line, file_number(span.filename))
        flag = self._flag(self.pad, slot, source)
        claim = self._own("claim")
        _wait(flag, Uint32(value), self.limit, claim, self.report, slot, source, line, file)

    @takes_location
    def wait_all(self, source: Any, value: Any, first: Any, last: Any) -> None:
        """Wait until the flags of rank `source` in the slots `first` to `last` - 1 are at least
        `value`, by all threads of a warp.

        The flags are looked at together, and one fence follows: many take about as long as one
        `wait`. The rest is that of `wait`.
        """
        span = user_span()
        line, file = (0, 0) if span is None else (span.line, file_number(span.filename))
        _wait_all(self, source, Uint32(value), Int32(first), Int32(last), line, file)

    def is_patient(self, begin: Any, source: Any, value: Any, seen: Any, slot: Any = 0) -> Any:
        """Return True if a wait of the kernel's own, which began at `begin`, is to go on.

        Beyond the time limit it is reported, as `wait` does it: for a word of `source` that is
        `seen` and not `value`.
        """
        span = user_span()
        line, file = (0, 0) if span is None else (span.line, file_number(span.filename))
        passed, claim = now() - begin, self._own("claim")
        value, seen = Uint32(value), Uint32(seen)
        return _patient(
            passed, self.limit, claim, self.report, slot, source, value, seen, line, file
        )

    def counter(self, slot: Any = 0) -> Uint32:
        """Return this rank's counter of `slot`: the value that its barriers there have come to."""
        value: Uint32 = arch.load(self._own("counter", slot))
        return value

    def set_counter(self, slot: Any, value: Any) -> None:
        """Set this rank's counter of `slot`, for one thread: the signals of a kernel's next launch
        go on from there.
        """
        arch.store(self._own("counter", slot), Uint32(value))

    def add_counter(self, slot: Any, value: Any) -> Uint32:
        """Add `value` to this rank's counter of `slot` and return what it was before, for one
        thread: blocks of one launch count together. What a block did before is visible to those
        that count after it.
        """
        before: Uint32 = arch.atomic_add(self._own("counter", slot), Uint32(value), sem="acq_rel")
        return before

    @takes_location
    def barrier(self, slot: Any = 0) -> None:
        """Wait until a block of every rank has come here: all threads of the block call it.

        What the blocks did before is visible to all of them after it. A slot serves one block of
        each rank in one kernel at a time: blocks that meet others' give their own number.
        """
        span = user_span()
        line, file = (0, 0) if span is None else (span.line, file_number(span.filename))
        _barrier(self, slot, line, file)

    @takes_location
    def put(self, target: Any, source: Any, peer: Any, value: Any, slot: Any = 0) -> None:
        """Copy the tensor `source` to `target`, memory of rank `peer`, by all threads of the block,
        then set this rank's flag there to `value`.

        The two have the same size; the block may go on to overwrite `source` afterwards.
        """
        _put(self, target, source, peer, value, slot)


def now() -> Any:
    """Return the time in nanoseconds, an Int64 that all SMs share (PTX `%globaltimer`)."""
    return arch.inline_ptx("mov.u64 $0, %globaltimer;", (), Int64)


def thread_number() -> Any:
    """Return the number of this thread in its block, x fastest."""
    x, y, z = arch.thread_idx()
    width, height, _ = arch.block_dim()
    return x + width * (y + height * z)


def block_size() -> Any:
    """Return the number of threads of the block."""
    x, y, z = arch.block_dim()
    return x * y * z


def _behind(seen: Any, value: Any) -> Any:
    """Return True if a count that wraps around has not come to `value`."""
    return (seen - value).to(Int32) < 0


@CUTE.jit
def _patient(
    passed: Any,
    limit: Any,
    claim: Any,
    report: Any,
    slot: Any,
    source: Any,
    value: Any,
    seen: Any,
    line: Any,
    file: Any,
) -> Any:
    """Return True if a wait goes on after `passed` nanoseconds; report it if it took too long."""
    goes_on = Boolean(True)
    if passed > limit:
        goes_on = Boolean(False)
        if arch.atomic_cas(claim, Uint32(0), Uint32(1)) == 0:
            arch.store(report + LINE, Int32(line))
            arch.store(report + FILE, Int32(file))
            arch.store(report + SLOT, Int32(slot))
            arch.store(report + SOURCE, Int32(source))
            arch.store(report + EXPECTED, value.to(Int32))
            arch.store(report + SEEN, seen.to(Int32))
            arch.store(report + FAILED, Int32(1), sem="release", scope="sys")
    elif passed > _GRACE:
        if arch.load(claim, sem="relaxed") != 0:
            goes_on = Boolean(False)
    return goes_on


@CUTE.jit
def _wait(
    flag: Any,
    value: Any,
    limit: Any,
    claim: Any,
    report: Any,
    slot: Any,
    source: Any,
    line: Any,
    file: Any,
) -> None:
    seen = arch.load(flag, sem="acquire", scope="sys")
    behind = Boolean(_behind(seen, value))
    if behind:
        begin = now()
        while behind:
            seen = arch.load(flag, sem="acquire", scope="sys")
            behind = Boolean(_behind(seen, value))
            if behind:
                passed = now() - begin
                behind = Boolean(
                    _patient(passed, limit, claim, report, slot, source, value, seen, line, file)
                )


@CUTE.jit
def _wait_all(
    signals: Any, source: Any, value: Any, first: Any, last: Any, line: Any, file: Any
) -> None:
    slot = first + arch.lane_idx()
    begin = now()
    goes_on = Boolean(slot < last)
    while goes_on:
        slots = [minimum(slot + n * arch.WARP_SIZE, last - 1) for n in range(_TOGETHER)]
        flags = [signals._flag(signals.pad, one, source) for one in slots]
        seen = [arch.load(flag, sem="relaxed", scope="sys") for flag in flags]
        late, at = seen[0], slots[0]
        for n in range_constexpr(1, _TOGETHER):
            if _behind(seen[n], late):
                late, at = seen[n], slots[n]
        if _behind(late, value):
            claim, limit, passed = signals._own("claim"), signals.limit, now() - begin
            report = signals.report
            goes_on = Boolean(
                _patient(passed, limit, claim, report, at, source, value, late, line, file)
            )
        else:
            slot += arch.WARP_SIZE * _TOGETHER
            goes_on = Boolean(slot < last)
    arch.fence_acq_rel_sys()
    arch.sync_warp()


@CUTE.jit
def _barrier(signals: Any, slot: Any, line: Any, file: Any) -> None:
    arch.sync_threads()
    me = thread_number()
    value = signals.counter(slot) + 1
    if me < signals.num_ranks:
        if me != signals.rank:
            signals.notify(me, value, slot)
            flag = signals._flag(signals.pad, slot, me)
            claim = signals._own("claim")
            _wait(flag, value, signals.limit, claim, signals.report, slot, me, line, file)
    arch.sync_threads()
    if me == 0:
        signals.set_counter(slot, value)


@CUTE.jit
def _put(signals: Any, target: Any, source: Any, peer: Any, value: Any, slot: Any) -> None:
    for i in range(thread_number(), algebra.size(source.layout), block_size()):
        target[i] = source[i]
    arch.sync_threads()
    if thread_number() == 0:
        signals.notify(peer, value, slot)
