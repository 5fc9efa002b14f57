"""Block-scaled matrices (mxfp8, mxfp4, nvfp4): `quantize` makes them, and `matmul` multiplies them
on data-center Blackwell.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import basedsl_cute as cute
from basedsl import ArrayRecord, DSLTypeError, from_dlpack, with_article
from basedsl_cute.dsl.hardware_info import HardwareInfo
from basedsl_cute.dsl.machine import current_target
from basedsl_cute.hardware.requirements import TCGEN05
from basedsl_cute.ops.array_libraries import ArrayLibrary, library
from basedsl_cute.ops.blackwell import block_scaled, config
from basedsl_cute.ops.blackwell import quantize as kernels
from basedsl_cute.ops.blackwell.quantize import FORMATS, scale_bytes
from basedsl_cute.ops.gemm.kernel_selection import (
    check_devices,
    check_operands,
    checked_out,
    element_type,
    operand_info,
)
from basedsl_cute.ops.gemm.matrix_views import ACCESS_BYTES, MatrixView, compact
from basedsl_cute.ops.gemm.operands import kernel_order, matrix, operands_of_kernel

__all__ = ["BlockScaled", "block_scaled_matmul", "quantize"]


# Of 4-bit elements that TMA widens (CUDA driver API, CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN16B).
_ALIGNMENT = 32


class BlockScaled:
    """A matrix (..., rows, columns) of one of the formats "mxfp8", "mxfp8_e5m2", "mxfp4", "nvfp4":
    elements of 8 or 4 bits of which each 32 (nvfp4: 16) of a row share a factor.

    `elements` is a row-major array of bytes, of 4-bit formats with half the columns, two elements
    in a byte. `factors` is an array of `scale_bytes` bytes for each matrix, in the order of
    `utils.blockscaled_layout.tile_atom_to_shape_SF`; factors behind the end of a row are finite.
    `T` is the transposed matrix, the second operand of `matmul`. Raises DSLTypeError for arrays
    that do not fit the format.
    """

    def __init__(self, elements: Any, factors: Any, form: str, *, is_turned: bool = False) -> None:
        _check_format(form)
        lib = library(elements, "BlockScaled")
        whole, scales = ArrayRecord.of(elements, "elements"), ArrayRecord.of(factors, "factors")
        if whole.dtype[1] != 8 or scales.dtype[1] != 8:
            raise DSLTypeError(
                "elements and factors are arrays of bytes", hint="view them as uint8: x.view(...)"
            )
        if len(whole.shape) < 2 or whole.strides != compact(whole.shape):
            raise DSLTypeError(f"elements are a row-major matrix or several, not {whole.shape}")
        self.elements, self.factors, self.form, self.is_turned = elements, factors, form, is_turned
        *batch, rows, width = whole.shape
        columns = width * 8 // FORMATS[form].element.width
        self._shape = (*batch, rows, columns)
        wanted = math.prod(batch) * scale_bytes(rows, columns, form)
        if math.prod(scales.shape) != wanted or library(factors, "BlockScaled") is not lib:
            raise DSLTypeError(
                f"factors has {math.prod(scales.shape)} bytes; {form} of {self._shape} has {wanted}"
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the matrix, in elements."""
        *batch, rows, columns = self._shape
        return (*batch, columns, rows) if self.is_turned else self._shape

    @property
    def T(self) -> BlockScaled:
        """The transposed matrix (of each batch), without a copy."""
        return BlockScaled(self.elements, self.factors, self.form, is_turned=not self.is_turned)

    def __repr__(self) -> str:
        return f"BlockScaled({self.form}, {self.shape})"


def _check_format(form: Any) -> None:
    if form not in FORMATS:
        raise DSLTypeError(f"{form!r} is no format: {', '.join(FORMATS)}")


def _allocated(
    lib: ArrayLibrary, shape: tuple[int, ...], form: str, like: Any
) -> tuple[Any, Any, tuple[int, int, int]]:
    """New elements and factors for a matrix of `shape`, and the shape of elements by batches."""
    *batch, rows, columns = shape
    width = columns * FORMATS[form].element.width // 8
    byte = lib.dtype(cute.Uint8)
    flat = (math.prod(batch), rows, width)
    elements = lib.empty((math.prod(flat) + _ALIGNMENT,), byte, like)
    elements = elements[-lib.address(elements) % _ALIGNMENT :]
    elements = lib.view(elements, (*batch, rows, width), compact((*batch, rows, width)))
    factors = lib.empty((flat[0] * scale_bytes(rows, columns, form),), byte, like)
    return elements, factors, flat


def quantize(x: Any, form: str) -> BlockScaled:
    """Return an array as a block-scaled matrix of the format `form`, rounded to nearest even.

    `x` is an array (..., M, K) of PyTorch, CuPy or NumPy, of Float32, Float16 or BFloat16, with K a
    multiple of the elements that share a factor. A factor is made of the largest magnitude of its
    elements, see `ops.blackwell.quantize`. Raises DSLTypeError for another format, array or K.

    >>> import numpy as np
    >>> from basedsl_cute.ops import matmul, quantize
    >>> x, w = np.ones((4, 64), np.float16), np.full((8, 64), 0.5, np.float16)
    >>> matmul(quantize(x, "mxfp8"), quantize(w, "mxfp8").T)[0, :3]
    array([32., 32., 32.], dtype=float32)
    """
    _check_format(form)
    lib = library(x, "quantize")
    host = ArrayRecord.of(x, "x")
    kind = from_dlpack(*host.dtype)
    vector = FORMATS[form].vector
    if 0 in host.shape:
        raise DSLTypeError(f"quantize takes no empty array, got {host.shape}")
    if len(host.shape) < 2 or host.shape[-1] % vector:
        raise DSLTypeError(
            f"{form} has no array of {host.shape}: {vector} elements of a row share a factor",
            hint=f"x is (..., M, K), with K a multiple of {vector}",
        )
    if kind not in (cute.Float32, cute.Float16, cute.BFloat16):
        raise DSLTypeError(f"quantize does not take {kind.__name__}", hint="convert to Float32")
    x = lib.compact(x)
    elements, factors, flat = _allocated(lib, tuple(host.shape), form, x)
    given = (*flat[:2], host.shape[-1])
    step = ACCESS_BYTES * 8 // kind.width
    _quantize(
        lib.view(x, given, compact(given)),
        lib.view(elements, flat, compact(flat)),
        factors,
        lib.stream(x),
        form,
        1 if lib.address(x) % ACCESS_BYTES else step,
    )
    return BlockScaled(elements, factors, form)


@cute.jit
def _quantize(
    x: cute.Tensor,
    elements: cute.Tensor,
    factors: cute.Tensor,
    stream: cute.Int64,
    form: cute.Constexpr,
    vector: cute.Constexpr,
):
    """Quantise arrays (batches, rows, columns); `vector` divides the addresses and K."""
    x = matrix(kernel_order(x), vector, 1)
    elements = matrix(kernel_order(elements), FORMATS[form].vector // 2, 1)
    kernels.quantize(x, elements, factors, form, cute.Stream(stream.ir_value()))


class BlockScaledProblem(NamedTuple):
    """The static part of a product: formats of A, B and of the result, if it is block-scaled; the
    configuration and the epilogue; which of its operands have an element for each column.
    """

    forms: tuple[str, str]
    out_form: str | None
    config: Any
    epilogue: Any
    columns: tuple[bool, ...]


def block_scaled_matmul(
    a: Any,
    b: Any,
    extras: tuple[Any, ...],
    epilogue: Any,
    out: Any = None,
    out_dtype: Any = None,
    out_format: str | None = None,
    cfg: Any = None,
) -> Any:
    """Return the product of block-scaled `a` (..., M, K) and `b` (..., K, N), which is a transposed
    one, with an epilogue and its operands `extras`.

    `out`, `out_dtype` (by default Float32) and `cfg` are those of `matmul`; with `out_format` the
    result is a `BlockScaled` of that format. Raises DSLTypeError for other operands, for extents
    that do not fit together or to 16 bytes, and for a target without such products.
    """
    _check_operands(a, b)
    if current_target().is_gpu and not TCGEN05.is_met_by(current_target()):
        raise TCGEN05.error(current_target(), None)
    lib = library(a.elements)
    *batch, m, k = a.shape
    n = b.shape[-1]
    shape = (*batch, m, n)
    made = None
    if out_format is not None:
        if out is not None or out_dtype is not None:
            raise DSLTypeError("out_format= makes a new BlockScaled: leave out and out_dtype away")
        _check_result(n, FORMATS[out_format].element.width, FORMATS[out_format].vector)
        result, made, flat = _allocated(lib, shape, out_format, a.elements)
    else:
        kind = element_type(lib, out_dtype, cute.Float32, a.elements)
        if out is not None:
            kind = checked_out(out, shape, kind if out_dtype is not None else None)
        _check_result(n, kind.width, 1)
        result = lib.empty(shape, lib.dtype(kind), a.elements) if out is None else out
        if operand_info(result, "out").strides != compact(shape):
            raise DSLTypeError("out is not row-major", hint="pass such an array, or none")
        flat = (math.prod(batch), m, n)
    infos = [operand_info(x, "an operand") if hasattr(x, "shape") else None for x in extras]
    check_operands(infos, shape)
    check_devices(*(operand_info(x, "an operand") for x in (a.elements, b.elements)), *infos)
    columns = tuple(x is not None and x.shape == (n,) for x in infos)
    views = [
        None if x is None or is_row else x.view(shape, True, strided=True)
        for x, is_row in zip(infos, columns, strict=True)
    ]
    processors = _processors(a.elements)
    if cfg is None:
        cfg = config.choose_config(
            m,
            n,
            k,
            FORMATS[a.form].element.width,
            processors,
            flat[0],
            16,
            config.SCALED,
            FORMATS[a.form].vector,
        )
    elif not isinstance(cfg, config.Config):
        raise DSLTypeError(f"config is {with_article(type(cfg))}, no Config of ops.blackwell")
    _product(
        *(_flat(lib, x.elements) for x in (a, b)),
        a.factors,
        b.factors,
        lib.view(result, flat, compact(flat)),
        tuple(_seen(x, view, lib) for x, view in zip(extras, views, strict=True)),
        () if made is None else (made,),
        processors,
        lib.stream(a.elements),
        BlockScaledProblem((a.form, b.form), out_format, cfg, epilogue, columns),
    )
    return result if made is None else BlockScaled(result, made, str(out_format))


def _seen(x: Any, view: MatrixView | None, lib: ArrayLibrary) -> Any:
    return x if view is None else view.of(x, lib)


def _flat(lib: ArrayLibrary, x: Any) -> Any:
    """The array with all leading modes as one."""
    shape = (math.prod(x.shape[:-2]), *x.shape[-2:])
    return lib.view(x, shape, compact(shape))


def _processors(x: Any) -> int:
    host = ArrayRecord.of(x)
    device = host.device[1] if host.is_on_gpu else None
    return HardwareInfo(device).get_device_multiprocessor_count()


def _check_operands(a: Any, b: Any) -> None:
    for x, name in ((a, "a"), (b, "b")):
        if not isinstance(x, BlockScaled):
            raise DSLTypeError(
                f"matmul: {name} is {with_article(type(x))}, and the other operand is block-scaled",
                hint="quantize both: matmul(quantize(x, 'mxfp8'), quantize(w, 'mxfp8').T)",
            )
    if a.is_turned or not b.is_turned:
        which = "a is transposed" if a.is_turned else "b is not transposed"
        raise DSLTypeError(
            f"matmul: {which}: factors must run along K",
            hint="quantize (M, K) and (N, K) arrays: matmul(quantize(x, f), quantize(w, f).T)",
        )
    if a.shape[-1] != b.shape[-2] or a.shape[:-2] != b.shape[:-2]:
        raise DSLTypeError(
            f"matmul: a block-scaled a of {a.shape} does not fit b of {b.shape}",
            hint="a is (..., M, K) and b (..., K, N), with the same leading modes; with one b, "
            "quantize x.reshape(-1, K)",
        )
    if library(a.elements) is not library(b.elements):
        raise DSLTypeError("matmul: b is of another library than a", hint="convert one of them")
    widths = [FORMATS[x.form].element.width for x in (a, b)]
    k = a.shape[-1]
    unit = 128 if widths[0] != widths[1] else ACCESS_BYTES * 8 // widths[0]
    if k % unit:
        raise DSLTypeError(
            f"matmul: K of {a.form} and {b.form} is a multiple of {unit}, not {k}",
            hint="pad the rows with zeros before quantize",
        )


def _check_result(n: int, width: int, vector: int) -> None:
    """Raise DSLTypeError unless rows of `n` elements are whole 16 bytes and vectors."""
    unit = max(ACCESS_BYTES * 8 // width, vector)
    if n % unit:
        raise DSLTypeError(
            f"matmul: rows of {n} results of {width} bits: they must be multiples of {unit}",
            hint="pad the rows of the second operand before quantize",
        )


@cute.jit
def _product(
    a: cute.Tensor,
    b: cute.Tensor,
    factors_a: cute.Tensor,
    factors_b: cute.Tensor,
    c: cute.Tensor,
    extras: tuple,
    factors_c: tuple,
    blocks: cute.Int32,
    stream: cute.Int64,
    problem: cute.Constexpr,
):
    """C = epilogue(A B^T) of arrays (batches, rows, bytes)."""
    a, b = (matrix(kernel_order(x), ACCESS_BYTES, 1) for x in (a, b))
    c = matrix(kernel_order(c), ACCESS_BYTES * 8 // c.element_type.width, 1)
    operands = operands_of_kernel(extras, problem.columns, c.shape)
    block_scaled.block_scaled_gemm(
        a, factors_a, b, factors_b, c, blocks, problem.forms, problem.config, problem.epilogue,
        operands, factors_c, problem.out_form, cute.Stream(stream.ir_value()),
    )  # fmt: skip
