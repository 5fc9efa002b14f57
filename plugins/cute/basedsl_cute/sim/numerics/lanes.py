"""Lanes and masks: values with an entry for each lane, and which lanes are active."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = Any  # a NumPy array, or a NumPy scalar for a uniform value
Mask = Any  # None: every lane; an array of booleans; False: no lane


def spread(x: Array, lanes: int) -> Array:
    """A uniform scalar as one entry per lane."""
    return np.full(lanes, x, x.dtype)


def spread_vector(x: Array, lanes: int) -> Array:
    """A uniform vector `(n, 1)` as `(n, lanes)`; not to be written into."""
    return np.broadcast_to(x, (*x.shape[:-1], lanes))


def spread_tuple(x: Any, lanes: int) -> Any:
    """The members of a tuple with one entry per lane, whether uniform or not."""
    if isinstance(x, tuple):
        return tuple(spread_tuple(item, lanes) for item in x)
    if np.ndim(x) == 0:
        return spread(x, lanes)
    return spread_vector(x, lanes) if x.shape[-1] == 1 else x


def spread_any(x: Array, lanes: int) -> Array:
    """An array with one entry per lane, whether `x` has that or is uniform."""
    return np.broadcast_to(x, (lanes,))


def everybody(lanes: int) -> Array:
    """The mask of all lanes, as an array."""
    return np.ones(lanes, np.bool_)


def nobody(lanes: int) -> Array:
    """The mask of no lane, as an array."""
    return np.zeros(lanes, np.bool_)


def select(c: Array, a: Any, b: Any) -> Any:
    """`a` where `c` holds, `b` elsewhere; of tuples, member by member."""
    if isinstance(a, tuple):
        return tuple(select(c, x, y) for x, y in zip(a, b, strict=True))
    return np.where(c, a, b)


def split(m: Mask, c: Array, lanes: int) -> tuple[Mask, Mask]:
    """The masks of the two sides of a branch on `c` taken by the lanes in `m`."""
    if m is None:
        n = np.count_nonzero(c)
        if n == lanes:
            return None, False
        return (c, ~c) if n else (False, None)
    then = m & c
    n = np.count_nonzero(then)
    if n == 0:
        return False, m
    other = m & ~c
    return then, (other if other.any() else False)


def narrow(m: Mask, c: Array, lanes: int) -> Mask:
    """The lanes of `m` where `c` holds."""
    if m is not None:
        c = m & c
    n = np.count_nonzero(c)
    return c if 0 < n < lanes else (None if n else False)


def keep(m: Mask, new: Any, old: Any) -> Any:
    """`new` in the lanes of `m`, `old` elsewhere; `old` is None before the first time."""
    return new if m is None or old is None else select(m, new, old)


def some(x: Array, m: Mask) -> bool:
    """True if `x` holds in any active lane."""
    if m is not None:
        x = x & m
    return bool(np.any(x))


def trips(lower: Array, upper: Array, step: Array) -> Array:
    """The number of turns of a loop with these bounds, int64 per lane."""
    span = np.subtract(upper, lower, dtype=np.int64)
    step = np.maximum(step, 1).astype(np.int64)
    return np.maximum(-(-span // step), 0)


def insert(container: Any, path: tuple[int, ...], value: Any) -> Any:
    """A tuple with the member at `path` replaced."""
    first, *rest = path
    if rest:
        value = insert(container[first], tuple(rest), value)
    return (*container[:first], value, *container[first + 1 :])
