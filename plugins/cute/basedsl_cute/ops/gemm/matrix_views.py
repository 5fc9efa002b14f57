"""Operands of `matmul` as matrices or batches of them: extents and strides alone.

A `MatrixView` says how an array becomes what a kernel takes: (rows, columns) or (batches, rows, columns).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from basedsl_cute.ops.gemm.array_libraries import ArrayLibrary

LINE = 16  # bytes of the widest access

Extents = tuple[int, ...]


@dataclass(frozen=True)
class MatrixView:
    """An array as a matrix: of itself (`is_same`: as it is), or of a row-major copy of the extents
    and strides `copied`, whose rows are `pitch` elements apart, if that is given. `lead` is the
    mode of stride 1, counted from the end.
    """

    shape: Extents
    strides: Extents
    lead: int = -1
    copied: tuple[Extents, Extents] | None = None
    is_same: bool = False
    pitch: int = 0

    def of(self, x: Any, library: ArrayLibrary) -> Any:
        """The view of an array like the one it was made for."""
        if self.is_same:
            return x
        if self.copied is not None:
            x = library.view(x, *self.copied)
            x = library.spaced(x, self.pitch) if self.pitch else library.compact(x)
        return library.view(x, self.shape, self.strides)

    def vector(self, address: int, size: int) -> int:
        """The most elements of `size` bytes, a power of two and at most 16 bytes, of which the
        address, the contiguous extent and the strides of other modes are multiples.
        """
        vector = max(1, LINE // size)
        while vector > 1 and (
            (0 if self.copied is not None else address) % (vector * size)
            or self.shape[self.lead] % vector
            or any(d % vector for d in self._others)
        ):
            vector //= 2
        return vector

    def suits_tma(self, address: int, size: int) -> bool:
        """CUDA driver API, cuTensorMapEncodeTiled: addresses and strides are multiples of 16 bytes;
        strides of 0 are left to other kernels.
        """
        aligned = self.copied is not None or address % LINE == 0
        return aligned and all(d > 0 and d * size % LINE == 0 for d in self._others)

    def suits_tma_store(self, size: int) -> bool:
        """TMA writes whole 16 bytes of a row, even beyond its end: seen on an H200."""
        return self.shape[self.lead] * size % LINE == 0

    @property
    def _others(self) -> list[int]:
        lead = len(self.strides) + self.lead
        return [d for i, d in enumerate(self.strides) if i != lead]


def view_of(
    shape: Sequence[int],
    strides: Sequence[int],
    full: Extents,
    size: int,
    *,
    batched: bool,
    may_copy: bool,
    strided: bool = False,
) -> MatrixView | None:
    """An array of elements of `size` bytes, broadcast to `full` (..., rows, columns), as a matrix
    whose rows are all modes but the last, or, if `batched`, with all modes but the last two as one.

    If those are no single mode, or neither rows nor columns are contiguous (which `strided`
    allows), a row-major copy is taken: of the array, or of all its repetitions. None if it may not.
    """
    shape, strides = tuple(shape), tuple(strides)
    repeated = full, _broadcast(shape, strides, full)
    for copied in (None, (shape, strides), repeated) if may_copy else (None,):
        walked = strides if copied is None else compact(copied[0])
        own = _broadcast(shape if copied is None else copied[0], walked, full)
        merged = _merged(full, own, len(full) - (2 if batched else 1))
        if merged is None or min(merged[1]) < 0:
            continue
        extents, steps = merged
        lead = -1 if strided else _lead(extents, steps)
        others = [d for i, d in enumerate(steps) if i - len(steps) != lead and extents[i] > 1]
        if not strided and 1 in others:
            continue  # kernels know the contiguous mode by its stride
        if lead is not None:
            steps = steps if strided else _tidied(extents, steps, lead, size)
            same = copied is None and (extents, steps) == (shape, strides)
            return MatrixView(extents, steps, lead, copied, same)
    return None


def spaced(view: MatrixView, size: int) -> MatrixView | None:
    """A copy of the matrix that TMA can load, in the same order; None for one that is a copy
    already or has repetitions, which it would multiply.
    """
    if view.copied is not None or min(view.strides) < 1:
        return None
    order = [i for i in range(-len(view.shape), 0) if i != view.lead] + [view.lead]
    shape, strides = (tuple(x[i] for i in order) for x in (view.shape, view.strides))
    unit = LINE // size
    pitch = -(-shape[-1] // unit) * unit
    steps = dict(zip(order, compact((*shape[:-1], pitch)), strict=True))
    walked = tuple(steps[i] for i in sorted(order))
    return MatrixView(view.shape, walked, view.lead, (shape, strides), pitch=pitch)


def compact(shape: Sequence[int]) -> Extents:
    """The strides of a row-major array."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def _broadcast(shape: Sequence[int], strides: Sequence[int], full: Extents) -> Extents:
    missing = len(full) - len(shape)
    shape, strides = (1,) * missing + tuple(shape), (0,) * missing + tuple(strides)
    return tuple(d if n == w else 0 for n, d, w in zip(shape, strides, full, strict=True))


def _merged(shape: Extents, strides: Extents, split: int) -> tuple[Extents, Extents] | None:
    """The modes before `split` as one, if a single stride walks them in order."""
    extent, step = 1, 0
    for n, d in zip(reversed(shape[:split]), reversed(strides[:split]), strict=True):
        if n == 1:
            continue
        if extent == 1:
            step = d
        elif d != step * extent:
            return None
        extent *= n
    return (extent, *shape[split:]), (step, *strides[split:])


def _lead(shape: Extents, strides: Extents) -> int | None:
    """Which of the last two modes is contiguous, or may be called so as it has one element."""
    for fits in (
        lambda i: strides[i] == 1 and shape[i] > 1,
        lambda i: strides[i] == 1 or shape[i] == 1,
    ):
        for i in (-1, -2):
            if fits(i):
                return i
    return None


def _tidied(shape: Extents, strides: Extents, lead: int, size: int) -> Extents:
    """Strides of modes of one element matter to nobody: they become multiples of 16 bytes."""
    unit = max(1, LINE // size)
    reach = max((n * d for n, d in zip(shape, strides, strict=True) if n > 1), default=1)
    tidy = [-(-reach // unit) * unit if n == 1 else d for n, d in zip(shape, strides, strict=True)]
    tidy[lead] = 1
    return tuple(tidy)
