"""Views of `matmul`'s operands as matrices or batches of matrices, by extents and strides alone.

A `MatrixView` records how an array becomes the operand of a kernel: a matrix (rows, columns), or
(batches, rows, columns).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from basedsl_cute.ops.array_libraries import ArrayLibrary

ACCESS_BYTES = 16  # of the widest access of a thread

Extents = tuple[int, ...]


@dataclass(frozen=True)
class MatrixView:
    """A view of an array as a matrix.

    With `is_same`, the array is used as it is. With `copied=(extents, strides)` it is seen so and
    copied row-major first, with rows `pitch` elements apart if that is not 0. Then `shape` and
    `strides` (in elements) apply. `lead` is the mode of stride 1, counted from the end: -1 or -2.
    """

    shape: Extents
    strides: Extents
    lead: int = -1
    copied: tuple[Extents, Extents] | None = None
    is_same: bool = False
    pitch: int = 0

    def of(self, x: Any, library: ArrayLibrary) -> Any:
        """Apply the view to an array with the extents and strides that it was made for."""
        if self.is_same:
            return x
        if self.copied is not None:
            x = library.view(x, *self.copied)
            x = library.spaced(x, self.pitch) if self.pitch else library.compact(x)
        return library.view(x, self.shape, self.strides)

    def vector(self, address: int, size: int) -> int:
        """The widest access in elements of `size` bytes: the largest power of two, of at most
        16 bytes, that divides the address, the contiguous extent and the other strides.
        """
        vector = max(1, ACCESS_BYTES // size)
        while vector > 1 and (
            (0 if self.copied is not None else address) % (vector * size)
            or self.shape[self.lead] % vector
            or any(d % vector for d in self._others)
        ):
            vector //= 2
        return vector

    def suits_tma(self, address: int, size: int) -> bool:
        """True if TMA can load the matrix: address and strides are multiples of 16 bytes (CUDA
        driver API, cuTensorMapEncodeTiled), and no stride is 0 (kernels without TMA take those).
        """
        aligned = self.copied is not None or address % ACCESS_BYTES == 0
        return aligned and all(d > 0 and d * size % ACCESS_BYTES == 0 for d in self._others)

    def suits_tma_store(self, size: int) -> bool:
        """True if rows are whole 16 bytes: TMA writes these even beyond the end (seen on H200)."""
        return self.shape[self.lead] * size % ACCESS_BYTES == 0

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
    """The view of an array of `size`-byte elements, broadcast to `full` (..., rows, columns).

    All modes but the last become rows; with `batched`, all modes but the last two become one mode
    of batches. Where no single stride describes that mode, or neither rows nor columns are
    contiguous (which `strided` allows), the view copies the array, or all its repetitions,
    row-major. None if it needs a copy and not `may_copy`.
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
        if not strided and all(steps[i] == 1 and extents[i] > 1 for i in (-1, -2)):
            continue  # kernels know the contiguous mode of a matrix by its stride
        if lead is not None:
            steps = steps if strided else _tidied(extents, steps, lead, size)
            same = copied is None and (extents, steps) == (shape, strides)
            return MatrixView(extents, steps, lead, copied, same)
    return None


def spaced(view: MatrixView, size: int) -> MatrixView | None:
    """The view of a padded copy of the matrix, in the same order, that TMA can load.

    None for a view that is a copy already, or that repeats elements, which a copy would multiply.
    """
    if view.copied is not None or min(view.strides) < 1:
        return None
    order = [i for i in range(-len(view.shape), 0) if i != view.lead] + [view.lead]
    shape, strides = (tuple(x[i] for i in order) for x in (view.shape, view.strides))
    unit = ACCESS_BYTES // size
    pitch = -(-shape[-1] // unit) * unit
    steps = dict(zip(order, compact((*shape[:-1], pitch)), strict=True))
    walked = tuple(steps[i] for i in sorted(order))
    return MatrixView(view.shape, walked, view.lead, (shape, strides), pitch=pitch)


def compact(shape: Sequence[int]) -> Extents:
    """The strides of a row-major array, in elements."""
    strides, step = [], 1
    for extent in reversed(shape):
        strides.append(step)
        step *= max(extent, 1)
    return tuple(reversed(strides))


def _broadcast(shape: Sequence[int], strides: Sequence[int], full: Extents) -> Extents:
    """The strides of an array over the extents `full`: 0 where it repeats."""
    missing = len(full) - len(shape)
    shape, strides = (1,) * missing + tuple(shape), (0,) * missing + tuple(strides)
    return tuple(d if n == w else 0 for n, d, w in zip(shape, strides, full, strict=True))


def _merged(shape: Extents, strides: Extents, split: int) -> tuple[Extents, Extents] | None:
    """Extents and strides with the modes before `split` merged; None if no single stride fits."""
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
    """The contiguous one of the last two modes (-1 or -2), or one of extent 1; None without."""
    for mode in (-1, -2):
        if strides[mode] == 1 and shape[mode] > 1:
            return mode
    for mode in (-1, -2):
        if strides[mode] == 1 or shape[mode] == 1:
            return mode
    return None


def _tidied(shape: Extents, strides: Extents, lead: int, size: int) -> Extents:
    """Strides with those of extent-1 modes, which are never used, made multiples of 16 bytes."""
    unit = max(1, ACCESS_BYTES // size)
    reach = max((n * d for n, d in zip(shape, strides, strict=True) if n > 1), default=1)
    tidy = [-(-reach // unit) * unit if n == 1 else d for n, d in zip(shape, strides, strict=True)]
    tidy[lead] = 1
    return tuple(tidy)
