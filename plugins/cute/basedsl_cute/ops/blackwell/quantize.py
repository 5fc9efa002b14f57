"""Quantisation to block-scaled formats: mxfp8, mxfp4 and nvfp4, with factors where tcgen05.cp takes
them.

Each vector of 32 (nvfp4: 16) elements along K shares a factor. MX formats are those of the OCP
Microscaling Formats specification 1.0, section 6.3: the factor is a power of two, the largest
element's exponent less that of the format's largest number. In nvfp4 it is a Float8E4M3FN, the
largest magnitude over 6. Elements are rounded to nearest even, and saturate.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import basedsl_cute as cute
from basedsl import DSLTypeError
from basedsl_cute import algebra, arch

__all__ = [
    "FORMATS",
    "BlockScaledFormat",
    "factor_of",
    "quantize",
    "quantized",
    "scale_bytes",
    "scales_of",
]

_THREADS = 128
_EXPONENT = 23  # the first bit of a Float32's exponent, whose bias is 127
_LARGEST_E2M1 = 6.0


class BlockScaledFormat(NamedTuple):
    """A block-scaled format: elements, factors, the elements of a factor, and the exponent of the
    largest element.
    """

    element: Any
    scale: Any
    vector: int
    largest_exponent: int


FORMATS = {
    "mxfp8": BlockScaledFormat(cute.Float8E4M3FN, cute.Float8E8M0FNU, 32, 8),
    "mxfp8_e5m2": BlockScaledFormat(cute.Float8E5M2, cute.Float8E8M0FNU, 32, 15),
    "mxfp4": BlockScaledFormat(cute.Float4E2M1FN, cute.Float8E8M0FNU, 32, 2),
    "nvfp4": BlockScaledFormat(cute.Float4E2M1FN, cute.Float8E4M3FN, 16, 2),
}


def scale_bytes(rows: int, k: int, form: str) -> int:
    """Return the bytes of the factors of a matrix: rows in whole 128, factors of a row in whole 4.

    >>> scale_bytes(100, 64, "nvfp4")
    512
    """
    factors = -(-k // FORMATS[form].vector)
    return -(-rows // 128) * 128 * (-(-factors // 4) * 4)


def _reinterpreted(x: Any, dtype: Any) -> Any:
    """The bits of a number as one of another type."""
    cell = cute.make_rmem_tensor(1, type(x))
    cell[0] = x
    return cute.recast_tensor(cell, dtype)[0]


@cute.jit
def _power_of_two(largest, form: cute.Constexpr):
    """The byte of an MX factor, and what elements are multiplied by."""
    bits = _reinterpreted(largest, cute.Int32)
    byte = (bits >> _EXPONENT) - form.largest_exponent
    byte = cute.min(cute.max(byte, 0), 253)
    return byte.to(cute.Uint8), _reinterpreted((254 - byte) << _EXPONENT, cute.Float32)


@cute.jit
def factor_of(values, form: cute.Constexpr):
    """Return the byte of the factor of a vector of Float32, and what its elements are multiplied
    by.
    """
    sizes = cute.where(values < 0.0, values * -1.0, values)
    largest = sizes.reduce(cute.ReductionOp.MAX, cute.Float32(0.0), 0)
    if cute.const_expr(form.scale is cute.Float8E8M0FNU):
        byte, inverse = _power_of_two(largest, form)
    else:
        factor = (largest / _LARGEST_E2M1).to(form.scale)
        byte = _reinterpreted(factor, cute.Uint8)
        exact = factor.to(cute.Float32)
        inverse = cute.Float32(0.0)
        if exact > 0.0:
            inverse = 1.0 / exact
    return byte, inverse


@cute.jit
def quantized(values, coords, scales, shape, form: cute.Constexpr):
    """Return a thread's results, consecutive columns of a row, as elements of the format `form`,
    and write their factors to `scales`.

    `coords` are the coordinates of the results (row, column, batch) in a matrix of `shape`; columns
    beyond it have factors of 0, and are multiples of a vector's elements.
    """
    n = form.vector
    count = cute.size(coords) // n
    registers = cute.make_rmem_tensor((n, count), cute.Float32)
    registers.store(values.reshape((n, count)))
    for i in cute.range_constexpr(count):
        byte, inverse = factor_of(registers[None, i].load(), form)
        row, column, batch = coords[i * n]
        group = column // n
        if column >= shape[1]:
            byte = cute.Uint8(0)
        if row < shape[0] and group < cute.size(scales, mode=[1]):
            scales[row, group, batch] = byte
        registers[None, i].store(registers[None, i].load() * inverse)
    return registers.load().to(form.element)


def scales_of(scales: Any, rows: Any, groups: Any, batches: Any = 1) -> Any:
    """Return the factors in the memory of `scales` as a tensor (rows, factors of a row, batches) of
    bytes: rows in whole 128, factors of a row in whole 4.
    """
    # Chunks of 128 rows by 4 factors, along K first (`algebra.scale_atom`).
    down, across = cute.ceil_div(rows, algebra.SCALE_ROWS), cute.ceil_div(groups, 4)
    chunk = algebra.SCALE_ROWS * algebra.SCALE_COLUMNS
    return cute.make_tensor(
        cute.recast_ptr(scales.iterator, dtype=cute.Uint8),
        cute.make_layout(
            ((32, 4, down), (4, across), batches),
            stride=((16, 4, chunk * across), (1, chunk), chunk * across * down),
        ),
    )


@cute.kernel
def quantize_kernel(x: cute.Tensor, q: cute.Tensor, scales: cute.Tensor, form: cute.Constexpr):
    number = arch.block_idx()[0] * _THREADS + arch.thread_idx()[0]
    batch = arch.block_idx()[1]
    groups = cute.size(scales, mode=[1])
    row, group = number // groups, number % groups
    n = form.vector
    if row < x.shape[0] and group * n < x.shape[1]:
        registers = cute.make_rmem_tensor((1, n), x.element_type)
        cute.autovec_copy(cute.local_tile(x[None, None, batch], (1, n), (row, group)), registers)
        values: Any = registers.load().to(cute.Float32)
        byte, inverse = factor_of(values, form)
        scales[row, group, batch] = byte
        out = cute.make_rmem_tensor((1, n), form.element)
        out.store((values * inverse).to(form.element))
        cute.autovec_copy(out, cute.local_tile(q[None, None, batch], (1, n), (row, group)))
    elif row < cute.size(scales, mode=[0]):
        scales[row, group, batch] = cute.Uint8(0)


@cute.jit
def quantize(
    x: cute.Tensor,
    q: cute.Tensor,
    scales: cute.Tensor,
    form: cute.Constexpr,
    stream: cute.Constexpr = None,
):
    """Quantise `x` (M, K) or (M, K, L), K contiguous, to the format `form`, a name of `FORMATS`.

    `q` has the bytes of the elements: as `x`, or of 4-bit formats with K / 2 columns, two elements
    in a byte. `scales` is an array of L * `scale_bytes(M, K, form)` bytes, which gets the factors
    in the order of `utils.blockscaled_layout.tile_atom_to_shape_SF`; those of no elements are 0. K
    is a multiple of a vector's elements. Raises DSLTypeError for another format or type.
    """
    if form not in FORMATS:
        raise DSLTypeError(f"{form!r} is no format: {', '.join(FORMATS)}")
    found = FORMATS[form]
    if q.element_type.width != 8 or scales.element_type.width != 8:
        raise DSLTypeError("quantize writes bytes: q and scales are of Uint8")
    x, q = (cute.append_ones(t, up_to_rank=3) for t in (x, q))
    rows, k, batches = x.shape
    assert k % found.vector == 0, "K must be a multiple of the elements that share a factor"
    elements = cute.recast_tensor(q, found.element)
    factors = scales_of(scales, rows, k // found.vector, batches)
    whole = cute.size(factors, mode=[0]) * cute.size(factors, mode=[1])
    quantize_kernel(x, elements, factors, found).launch(
        grid=(cute.ceil_div(whole, _THREADS), batches, 1),
        block=(_THREADS, 1, 1),
        stream=stream,
    )
