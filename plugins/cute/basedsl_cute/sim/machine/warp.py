"""Warp-wide operations: shuffles, votes, matches, reductions (PTX ISA, parallel synchronization and
communication instructions).

A group may hold many warps; lane arithmetic is per warp. A lane that an instruction's member mask
names must execute it, and a lane that executes it must be named. `members` is that mask, for all
lanes or one per lane; values and results are `(lanes,)`. Masks are int32, or int64 for warps of
more than 32 lanes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from basedsl_cute.sim.errors import WarpError
from basedsl_cute.sim.machine.reports import report
from basedsl_cute.sim.machine.state import Group, Mask
from basedsl_cute.sim.site import Site

FULL = -1


def _per_warp(g: Group, ufunc: Any, lanes: Any) -> Any:
    """Reduce over each warp and give every lane its warp's result."""
    reduced = ufunc.reduceat(lanes, g.shape.warp_starts, dtype=lanes.dtype)
    return np.repeat(reduced, g.shape.warp_sizes)


def ballot(g: Group, chosen: Any) -> Any:
    """The bits of each lane's warp in which `chosen` holds, uint32 or, for wide warps, uint64."""
    kind = np.uint32 if g.shape.of_warp <= 32 else np.uint64
    bits = np.where(chosen, kind(1) << g.shape.lane.astype(kind), kind(0))
    return _per_warp(g, np.bitwise_or, bits)


def check_members(g: Group, members: Any, m: Mask, site: Site, all_of_them: bool = True) -> None:
    """Raise WarpError unless exactly the lanes that `members` names (and that exist) are active;
    without `all_of_them`, unless it names the lanes that are active.
    """
    if m is None and np.ndim(members) == 0 and int(members) == FULL:
        return
    named = _named(g, members)
    exist = ballot(g, np.ones(g.lanes, np.bool_)).astype(np.uint64)
    active = np.ones(g.lanes, np.bool_) if m is None else m
    here = ballot(g, active).astype(np.uint64)
    unnamed = active & ((named >> g.shape.lane.astype(np.uint64)) & np.uint64(1) == 0)
    if unnamed.any():
        lane = int(unnamed.argmax())
        raise WarpError(
            f"lane {int(g.shape.lane[lane])} executes {site.op}, but the member mask "
            f"{int(named[lane]):#010x} does not name it",
            site,
            g.thread(lane),
            hint="name every lane that executes it in the mask, or let only those execute it",
        )
    absent = active & ((named & exist & ~here) != 0)
    if absent.any() and all_of_them:
        lane = int(absent.argmax())
        missing = int((named & exist & ~here)[lane])
        number = (missing & -missing).bit_length() - 1
        raise WarpError(
            f"the mask {int(named[lane]):#010x} names lane {number}, which does not execute it",
            site,
            g.thread(lane),
            hint="every lane that the mask names must reach the operation: move it out of the "
            "branch, or narrow the mask",
        )


def _named(g: Group, members: Any) -> Any:
    """The bits of the lanes that `members` names, uint64 per lane."""
    bits = np.broadcast_to(np.asarray(members), (g.lanes,)).astype(np.int64).view(np.uint64)
    return bits & np.uint64((1 << g.shape.of_warp) - 1)


def sync_warp(g: Group, members: Any, m: Mask, site: Site) -> None:
    """A barrier of the lanes that `members` names (PTX ISA, bar.warp.sync). Lanes run in step, so
    only the checks mind.
    """
    check_members(g, members, m, site)
    if g.known is not None:
        g.known.pass_warp_barrier(m, members)


def _teams(g: Group, members: Any, m: Mask) -> Iterator[tuple[Any, Any]]:
    """The active lanes, by distinct member mask."""
    active = np.ones(g.lanes, np.bool_) if m is None else m
    if np.ndim(members) == 0:
        yield members, active
        return
    for value in np.unique(members[active]):
        yield value, active & (members == value)


def _signed(g: Group, bits: Any) -> Any:
    """Bits of lanes as int32, or int64 for warps of more than 32 lanes."""
    if g.shape.of_warp <= 32:
        return bits.astype(np.uint32).view(np.int32)
    return bits.astype(np.uint64).view(np.int64)


# Shuffles --------------------------------------------------------------------------------------


def shuffle(
    g: Group, kind: str, members: Any, value: Any, b: Any, c: Any, m: Mask, site: Site
) -> tuple[Any, Any]:
    """The values of other lanes, and booleans that say where there was one (PTX ISA, shfl.sync).

    `kind` is up, down, bfly (or xor) or idx. Operand `b` is the lane or offset, `c` holds the clamp
    (bits 0-4) and segment mask (8-12). Raises WarpError.
    """
    check_members(g, members, m, site)
    whole = m is None and np.ndim(members) == 0 and int(members) == FULL
    if np.ndim(b) or np.ndim(c):
        at, valid, source, there = _sources(g, kind, b, c)
    else:
        key = kind, int(b), int(c)
        if key not in g.shape.sources:
            g.shape.sources[key] = _sources(g, kind, b, c)
        at, valid, source, there = g.shape.sources[key]
    if not whole:
        _check_sources(g, members, source, there, m, site)
    return _take(value, at), valid


def _sources(g: Group, kind: str, b: Any, c: Any) -> tuple[Any, Any, Any, Any]:
    """The place in the group that each lane of a shuffle reads, where PTX says that there is a
    value, the number in its warp of the lane asked for, and where that lane exists.
    """
    lane = g.shape.lane
    last = np.int32(g.shape.of_warp - 1)
    b = b & last
    clamp = c & last
    segment = (c >> np.int32(8)) & last
    highest = (lane & segment) | (clamp & ~segment)
    lowest = lane & segment
    if kind == "up":
        source = lane - b
        valid = source >= highest
    elif kind == "down":
        source = lane + b
        valid = source <= highest
    elif kind in ("bfly", "xor"):
        source = lane ^ b
        valid = source <= highest
    else:
        source = lowest | (b & ~segment)
        valid = source <= highest
    # A lane beyond a partial warp's end holds nothing: keep the own value, which PTX leaves open.
    there = valid & (source < g.shape.warp_size) & (source >= 0)
    at = g.shape.warp_start + np.where(there, source, lane)
    return at, np.broadcast_to(valid, (g.lanes,)), source, there


def _check_sources(g: Group, members: Any, source: Any, there: Any, m: Mask, site: Site) -> None:
    """Report a lane that reads what a lane holds which the member mask does not name."""
    named = _named(g, members)
    bit = np.where(there, source, 0).astype(np.uint64)
    wrong = there & ((named >> bit) & np.uint64(1) == 0)
    if m is not None:
        wrong &= m
    if wrong.any():
        at = int(wrong.argmax())
        error = WarpError(
            f"{site.op} reads lane {int(source[at])}, which the member mask {int(named[at]):#010x} "
            "does not name: the value is undefined",
            site,
            g.thread(at),
            hint="name all lanes that are read in the mask, or narrow what is read by "
            "mask_and_clamp",
        )
        report(g.launch, "uninitialized", error)


def _take(value: Any, at: Any) -> Any:
    if isinstance(value, tuple):
        return tuple(_take(item, at) for item in value)
    return value.take(at, axis=-1)


# Votes -----------------------------------------------------------------------------------------


def vote(g: Group, kind: str, members: Any, predicate: Any, m: Mask, site: Site) -> Any:
    """The outcome of a vote (PTX ISA, vote.sync): bits as int32 for the kind `ballot`, booleans for
    `any`, `all` and `uni`. Raises WarpError.
    """
    check_members(g, members, m, site)
    out = np.zeros(g.lanes, np.uint64)
    for _, team in _teams(g, members, m):
        yes, asked = ballot(g, team & predicate), ballot(g, team)
        if kind == "ballot":
            result = yes
        elif kind == "any":
            result = yes != 0
        elif kind == "all":
            result = yes == asked
        else:
            result = (yes == asked) | (yes == 0)
        out = np.where(team, result, out)
    return _signed(g, out) if kind == "ballot" else out != 0


def elect(g: Group, members: Any, m: Mask, site: Site) -> Any:
    """True in the lowest active lane of each warp (PTX ISA, elect.sync). Raises WarpError.

    The hardware waits for no lane: machine code is one ELECT, also in a branch of one thread (seen
    in what ptxas 13 makes of it for sm_90a), so that a lane which is not there is no error.
    """
    check_members(g, members, m, site, all_of_them=False)
    active = np.ones(g.lanes, np.bool_) if m is None else m
    lowest = _per_warp(g, np.minimum, np.where(active, g.shape.lane, g.shape.of_warp))
    return active & (g.shape.lane == lowest)


def match(g: Group, kind: str, members: Any, value: Any, m: Mask, site: Site) -> tuple[Any, Any]:
    """The lanes with the same value, as bits (`any`), or all or none of them (`all`), and where all
    agree (PTX ISA, match.sync). Raises WarpError.
    """
    check_members(g, members, m, site)
    out = np.zeros(g.lanes, np.uint64)
    agree = np.zeros(g.lanes, np.bool_)
    for _, team in _teams(g, members, m):
        asked = ballot(g, team)
        for lane in range(g.shape.of_warp):
            there = lane < g.shape.warp_size
            at = g.shape.warp_start + np.where(there, lane, 0)
            same = team & team[at] & there & (value == value[at])
            bits = ballot(g, same)
            mine = team & (g.shape.lane == lane)
            whole = bits == asked
            out = np.where(mine, bits if kind == "any" else np.where(whole, bits, 0), out)
            agree |= mine & whole
    return _signed(g, out), agree


# Reductions ------------------------------------------------------------------------------------


def redux(
    g: Group, kind: str, value: Any, members: Any, m: Mask, absolute: bool, nan: bool, site: Site
) -> Any:
    """A reduction over the lanes of each member mask, given to all of them (PTX ISA, redux.sync).

    `kind` is a key of the table below. `absolute` reduces absolute values; with `nan`, fmin and
    fmax give NaN if a value is NaN. Raises WarpError.
    """
    check_members(g, members, m, site)
    if absolute:
        value = np.abs(value)
    as_unsigned = kind in ("umin", "umax")
    x = value.view(np.uint32) if as_unsigned else value
    info = np.iinfo(x.dtype) if x.dtype.kind in "iu" else None
    low, high = (info.min, info.max) if info is not None else (-np.inf, np.inf)
    table = {
        "add": (np.add, 0),
        "and": (np.bitwise_and, -1),
        "or": (np.bitwise_or, 0),
        "xor": (np.bitwise_xor, 0),
        "min": (np.minimum, high),
        "umin": (np.minimum, high),
        "max": (np.maximum, low),
        "umax": (np.maximum, low),
        "fmin": (np.minimum if nan else np.fmin, np.inf),
        "fmax": (np.maximum if nan else np.fmax, -np.inf),
    }
    ufunc, identity = table[kind]
    out = np.zeros(g.lanes, x.dtype)
    for _, team in _teams(g, members, m):
        result = _per_warp(g, ufunc, np.where(team, x, x.dtype.type(identity)))
        out = np.where(team, result, out)
    return out.view(value.dtype)
