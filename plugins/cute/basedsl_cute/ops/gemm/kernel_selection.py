"""The decisions of `matmul`: the checks of its operands, their views as matrices, and the choice of
a kernel with its configuration. Nothing here is compiled or run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

import basedsl_cute as cute
from basedsl import ArrayRecord, DSLTypeError, Numeric, from_dlpack, with_article
from basedsl_cute.dsl.machine import current_target
from basedsl_cute.hardware.requirements import (
    SETMAXNREG,
    TCGEN05,
    TCGEN05_INTEGERS,
    WGMMA,
    Requirement,
    mma_sync,
)
from basedsl_cute.hardware.targets import Target
from basedsl_cute.ops.ampere import gemm as ampere_gemm
from basedsl_cute.ops.ampere import gemm_tma, sgemm
from basedsl_cute.ops.array_libraries import ArrayLibrary
from basedsl_cute.ops.blackwell import config as blackwell
from basedsl_cute.ops.gemm.footprint import Footprint, check_elements_apart
from basedsl_cute.ops.gemm.matrix_views import MatrixView, spaced, view_of
from basedsl_cute.ops.hopper import gemm as hopper_gemm
from basedsl_cute.ops.hopper import heuristics, parallel_split_k, split_k_gemm

_FLOATS_16 = (cute.Float16, cute.BFloat16)
_FLOATS_8 = (cute.Float8E4M3FN, cute.Float8E5M2)
_INTEGERS = (cute.Int8, cute.Uint8)

Matrices = tuple[
    MatrixView, MatrixView, MatrixView
]  # A (M, K), B (K, N), C (M, N), or with batches


@dataclass
class OperandInfo:
    """The properties of an operand that the choice of a kernel depends on."""

    host: ArrayRecord
    dtype: Any
    shape: tuple[int, ...]  # a vector's with a mode of extent 1 more
    strides: tuple[int, ...]

    @property
    def size(self) -> int:
        """Bytes of an element."""
        return int(self.dtype.width) // 8

    @property
    def footprint(self) -> Footprint:
        """The memory of the elements."""
        return Footprint(self.shape, self.strides, self.size)

    def view(self, full: tuple[int, ...], batched: bool, **options: Any) -> MatrixView | None:
        """The view as a matrix broadcast to `full`, see `view_of`; it may copy."""
        return view_of(
            self.shape, self.strides, full, self.size, batched=batched, may_copy=True, **options
        )


def operand_info(x: Any, name: str, new_mode: int | None = None) -> OperandInfo:
    """The facts of an array, with a mode of extent 1 inserted at `new_mode`.

    Raises DSLTypeError, naming the operand, for what is no array or not aligned to its elements.
    """
    host = ArrayRecord.of(x, name)
    size = host.dtype[1] // 8
    if size and host.address % size and not host.is_on_gpu:
        raise DSLTypeError(
            f"matmul: {name} starts {host.address % size} bytes after a multiple of its "
            f"{size}-byte elements",
            hint="copy it: numpy.array(x)",
        )
    shape, strides = list(host.shape), list(host.strides)
    if new_mode is not None and (new_mode >= 0 or len(shape) > 1):
        shape.insert(new_mode, 1)
        strides.insert(new_mode, 1)
    return OperandInfo(host, from_dlpack(*host.dtype), tuple(shape), tuple(strides))


def matrix_views(
    a: OperandInfo,
    b: OperandInfo,
    c: OperandInfo,
    given: list[OperandInfo | None],
    batch: tuple[int, ...],
    extents: tuple[int, int, int],
) -> tuple[Matrices, tuple[MatrixView | None, ...], tuple[bool, ...]]:
    """The views of A, B and C, those of the epilogue's operands `given`, and which of these are
    rows, with one element for each column.

    With one B for all of A, the leading modes of A are further rows; otherwise they are batches.
    Raises DSLTypeError where `c`, which is not copied, has no such view.
    """
    m, n, k = extents
    full = (*batch, m, n)
    columns = tuple(x is not None and x.shape == (n,) for x in given)
    info_a, info_b = a, b
    one_b = all(extent == 1 for extent in b.shape[:-2])
    for batched in (False, True) if one_b else (True,):
        if batched:
            full_b = (*batch, k, n)
        else:
            full_b, b = (k, n), replace(b, shape=b.shape[-2:], strides=b.strides[-2:])
        first = a.view((*batch, m, k), batched), b.view(full_b, batched)
        second = view_of(c.shape, c.strides, full, c.size, batched=batched, may_copy=False)
        seen = tuple(
            None if x is None else _row(x) if is_row else x.view(full, batched, strided=True)
            for x, is_row in zip(given, columns, strict=True)
        )
        matrices = (*first, second)
        needed = [x is None or v is not None for x, v in zip(given, seen, strict=True)]
        # Batches as rows save the repetitions of B, but are not worth a copy.
        copied = any(v is not None and v.copied for v in (*matrices, *seen))
        cheap = batched or not batch or not copied
        if None not in matrices and all(needed) and cheap:
            as_given = [_as_given(v, x) for v, x in zip(matrices, (info_a, info_b, c), strict=True)]
            more = tuple(v and _as_given(v, x) for v, x in zip(seen, given, strict=True))
            return tuple(as_given), more, columns  # type: ignore[return-value]
    raise DSLTypeError(
        f"matmul cannot write out of {c.host.shape} with strides {c.host.strides}",
        notes=(("it needs batches of one stride, with contiguous rows or columns", None),),
        hint="leave out= away and copy the result",
    )


# Copies -------------------------------------------------------------------------------------------

# The cost of an aligned copy (seconds, and bytes a second), and the multiplications a second whose
# time a kernel without TMA takes longer. Measured on an H200.
_COPY_SECONDS = 5e-6
_COPY_BANDWIDTH = 1.2e12
_TMA_GAIN = 1 / (1 / 75e12 - 1 / 300e12)


def with_copies_for_tma(matrices: Matrices, a: OperandInfo, b: OperandInfo, k: int) -> Matrices:
    """The views, with padded copies of an A or B that TMA cannot load, where that is faster."""
    if not _has_wgmma(current_target()) or a.dtype.width == 64:
        return matrices
    m, n, _, batches, *_ = problem_shape(*matrices, k)
    gain = m * n * k * batches / _TMA_GAIN
    made = []
    for view, x in zip(matrices, (a, b), strict=False):
        if view.suits_tma(x.host.address, x.size):
            made.append(view)
            continue
        copy = spaced(view, x.size)
        if copy is None:
            return matrices
        made.append(copy)
        gain -= _COPY_SECONDS + math.prod(view.shape) * x.size / _COPY_BANDWIDTH
    return (made[0], made[1], matrices[2]) if gain > 0 else matrices


def check_operands(given: list[OperandInfo | None], full: tuple[int, ...]) -> None:
    """Raise DSLTypeError for an epilogue operand that does not broadcast to the result."""
    for x in given:
        if x is not None and not _broadcasts(x.shape, full):
            raise DSLTypeError(
                f"an operand of {tuple(x.host.shape)} does not broadcast to a result of {full}"
            )


def _broadcasts(shape: tuple[int, ...], full: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, full) == full
    except ValueError:
        return False


def _as_given(view: MatrixView | None, x: OperandInfo | None) -> MatrixView | None:
    """The view, not marked `is_same` if the array is a vector: a vector is no matrix."""
    if view is None or x is None or len(view.shape) == len(x.host.shape):
        return view
    return replace(view, is_same=False)


def _row(x: OperandInfo) -> MatrixView:
    return MatrixView(x.shape, x.strides, is_same=True)


def choose_kernel(
    dtype: Any,
    dtype_b: Any,
    dtype_c: Any,
    shape: ProblemShape,
    tf32: bool,
    tma: TmaSupport,
    config: Any,
    processors: int,
) -> tuple[str, Any]:
    """The name of the kernel in `ops.gemm.matmul` and its configuration: `config`, if it is given.

    Element types are those of A, B and C; `tf32` allows Float32 on tensor cores; `processors` is
    the number of multiprocessors. Raises DSLTypeError for a `config` whose kernel does not take the
    product, and for element types that no kernel multiplies on the target.
    """
    if isinstance(config, sgemm.Config) or (config is None and dtype is cute.Float32 and not tf32):
        return "simt", _sgemm_config(dtype, shape, config, processors)
    if config is None and _takes_tcgen05(current_target(), dtype, dtype_b, tma):
        return "blackwell", blackwell.choose_config(
            shape.m, shape.n, shape.k, dtype.width, processors, shape.batches, dtype_c.width
        )
    if isinstance(config, blackwell.Config):
        if not (tma.loads and tma.stores):
            raise DSLTypeError(
                "the Blackwell kernel does not take these arrays",
                hint="addresses and strides must be multiples of 16 bytes",
            )
        return "blackwell", config
    if config is None and _has_wgmma(current_target()) and tma.wgmma and dtype.width < 64:
        problem = _hopper_problem(dtype, dtype_c, shape, tma, processors)
        return heuristics.choose_hopper_kernel(problem)
    if dtype is cute.Float64 and type(config) not in (type(None), ampere_gemm.Config):
        raise DSLTypeError("Float64 is multiplied by ops.ampere.gemm", hint="pass its Config")
    if type(config) in _HOPPER:
        _check_hopper(config, tma, shape.k, shape.batches)
        return _HOPPER[type(config)], config
    _check_mma_sync(dtype, dtype_b, current_target())
    return _mma_sync_kernel(dtype.width, shape, tma, config, processors)


def configs_to_measure(
    kernel: str, dtype: Any, dtype_c: Any, shape: ProblemShape, tma: TmaSupport, processors: int
) -> list[Any]:
    """The configurations among which tuning finds the fastest, where `choose_kernel` chose the
    kernel of this name for the product.
    """
    if kernel == "simt":
        return sgemm.every_config()
    if kernel == "blackwell":
        return list(blackwell.CANDIDATES)
    if kernel == "warp" or kernel == "warp-tma":
        made = gemm_tma.Config if kernel == "warp-tma" else ampere_gemm.Config
        return ampere_gemm.every_config(dtype.width, current_target().smem_per_block, made)
    return heuristics.ranked_hopper_kernels(_hopper_problem(dtype, dtype_c, shape, tma, processors))


def _hopper_problem(
    dtype: Any, dtype_c: Any, shape: ProblemShape, tma: TmaSupport, processors: int
) -> heuristics.Problem:
    """The product as the model of the Hopper kernels takes it."""
    m, n = (shape.n, shape.m) if shape.is_turned else (shape.m, shape.n)
    of_m, of_n = shape.k_contiguous[::-1] if shape.is_turned else shape.k_contiguous
    return heuristics.Problem(
        m,
        n,
        shape.k,
        shape.batches,
        dtype.width,
        dtype_c.width,
        processors,
        tma.stores,
        shape.is_turned,
        of_m if m > n else of_n,
        of_n if m > n else of_m,
    )


def _sgemm_config(dtype: Any, shape: ProblemShape, config: Any, processors: int) -> Any:
    if dtype is not cute.Float32:
        raise DSLTypeError(f"sgemm multiplies Float32, not {dtype.__name__}")
    return config or sgemm.choose_config(
        shape.m, shape.n, processors, shape.batches, shape.k_contiguous
    )


def _check_mma_sync(dtype: Any, dtype_b: Any, target: Target) -> None:
    """Raise DSLTypeError for elements that mma.sync does not multiply on the target."""
    if dtype is not dtype_b:
        raise DSLTypeError(
            f"operands of {dtype.__name__} and {dtype_b.__name__} do not mix here",
            hint="convert one of them",
        )
    if dtype in _FLOATS_8:
        float8 = mma_sync("16x8x32", "e4m3", "e4m3").architectures
        product = Requirement(f"matrix product of {dtype.__name__}", float8)
        if not product.is_met_by(target):
            raise product.error(target, None)


def _mma_sync_kernel(
    width: int, shape: ProblemShape, tma: TmaSupport, config: Any, processors: int
) -> tuple[str, Any]:
    """The kernel by mma.sync, with TMA loads where target and arrays have them."""
    m, n, k = shape.m, shape.n, shape.k
    if config is None:
        target = current_target()
        problem = (m, n, k, width, processors, target.smem_per_block, shape.batches)
        if width < 64 and tma.loads and target.is_gpu and SETMAXNREG.is_met_by(target):
            config = gemm_tma.choose_config(*problem, pairs=target.capability < (12, 0))
        else:
            config = ampere_gemm.choose_config(*problem)
    elif not isinstance(config, ampere_gemm.Config):
        raise DSLTypeError(f"config is {with_article(type(config))}, no Config of a kernel in ops")
    elif isinstance(config, gemm_tma.Config) and not tma.loads:
        raise DSLTypeError("TMA reads arrays whose addresses and strides are multiples of 16 bytes")
    by_tma = isinstance(config, gemm_tma.Config)
    extents = (m, n) if by_tma else (m, n, k)  # TMA fills with zeros beyond K
    full = all(x % tile == 0 for x, tile in zip(extents, config.tile, strict=False))
    return "warp-tma" if by_tma else "warp", replace(config, is_full=full)


_HOPPER = {
    hopper_gemm.Config: "hopper",
    split_k_gemm.Config: "hopper split",
    parallel_split_k.Config: "hopper parts",
}


def _check_hopper(config: Any, tma: TmaSupport, k: int, batches: int) -> None:
    """Raise DSLTypeError for a given configuration whose kernel does not take the product."""
    if not (tma.wgmma and (tma.stores or not isinstance(config, hopper_gemm.Config))):
        raise DSLTypeError(
            "the Hopper kernel does not take these arrays",
            hint="addresses and strides must be multiples of 16 bytes, and of elements that are "
            "not 16-bit K must be contiguous",
        )
    if isinstance(config, parallel_split_k.Config):
        config.check_parts(k)
        if batches > 1:
            raise DSLTypeError(
                f"slices of K take the place of batches, and there are {batches} batches",
                hint="pass a Config of ops.hopper.gemm or ops.hopper.split_k_gemm",
            )


def _takes_tcgen05(target: Target, a: Any, b: Any, tma: TmaSupport) -> bool:
    """Tell whether a target is a GPU whose tcgen05.mma multiplies these elements."""
    if not target.is_gpu or not TCGEN05.is_met_by(target) or not (tma.loads and tma.stores):
        return False
    if a in _INTEGERS:
        return a is b and TCGEN05_INTEGERS.is_met_by(target)
    return a is b or (a in _FLOATS_8 and b in _FLOATS_8)


def _has_wgmma(target: Target) -> bool:
    """Tell whether a target is a GPU with wgmma, which the kernels of `ops.hopper` take."""
    return target.is_gpu and WGMMA.is_met_by(target)


class TmaSupport(NamedTuple):
    """Which arrays of a product TMA can load and store, and wgmma read."""

    loads: bool  # TMA can load A and B
    wgmma: bool  # and wgmma reads them: element types and contiguous modes fit
    stores: bool  # TMA can store C


class ProblemShape(NamedTuple):
    """The extents of a product as the kernels compute it: C^T = B^T A^T if C is column-major."""

    m: int
    n: int
    k: int
    batches: int
    k_contiguous: tuple[bool, bool]  # of A, of B
    is_turned: bool  # C is column-major


def problem_shape(a: MatrixView, b: MatrixView, c: MatrixView, k: int) -> ProblemShape:
    """The problem of the views of A (M, K), B (K, N) and C (M, N), or with batches first."""
    lines = (a.lead == -1, b.lead == -2)
    (m, n), batches = c.shape[-2:], c.shape[0] if len(c.shape) == 3 else 1
    if c.lead == -2:
        m, n, lines = n, m, lines[::-1]
    return ProblemShape(m, n, k, batches, lines, c.lead == -2)


def check_types(a: Any, b: Any) -> None:
    """Raise DSLTypeError for element types that no kernel multiplies with each other."""
    known = (*_FLOATS_16, *_FLOATS_8, *_INTEGERS, cute.Float32, cute.Float64)
    if a not in known or b not in known or (a is not b and not {a, b} <= set(_FLOATS_8)):
        raise DSLTypeError(
            f"matmul does not multiply {a.__name__} and {b.__name__}",
            notes=((f"it multiplies two of {', '.join(t.__name__ for t in known)}", None),),
            hint="convert one of them to the other's type" if a is not b else None,
        )


def element_type(lib: ArrayLibrary, asked: Any, dtype: Any, like: Any) -> Any:
    """The result's element type: `asked` (a numeric class or a dtype of the library), or a default
    for operands of `dtype`.
    """
    if asked is None:
        if dtype in _FLOATS_8:
            return cute.Float32
        return cute.Int32 if dtype in _INTEGERS else dtype
    if isinstance(asked, type) and issubclass(asked, Numeric):
        return asked
    try:
        made = lib.empty((1,), asked, like)
    except (TypeError, RuntimeError):
        raise DSLTypeError(f"out_dtype={asked!r} is no element type") from None
    return from_dlpack(*ArrayRecord.of(made).dtype)


def check_result(dtype: Any) -> None:
    """Raise DSLTypeError for elements that no kernel writes."""
    if dtype is cute.Boolean or dtype.width < 8:
        raise DSLTypeError(
            f"matmul has no results of {dtype.__name__}", hint="compare the result: matmul(..) > 0"
        )


def missing_mode(ranks: tuple[int, int], rank: int) -> int | None:
    """The mode that a vector operand leaves out of results, as `operand_info` inserts it."""
    if ranks[0] == 1:
        return 0 if ranks[1] == 1 else -1
    return rank if ranks[1] == 1 else None


def check_conversion(given: Any, kind: Any) -> None:
    """Raise DSLTypeError where fractions would be lost that nobody asked to lose: `out` has the
    elements `given`, the product of its operands `kind`, and no `out_dtype` says otherwise.
    """
    if kind.is_float and not given.is_float:
        raise DSLTypeError(
            f"out is of {given.__name__}, and the result of {kind.__name__}, with fractions",
            hint=f"pass an out of {kind.__name__}, or say out_dtype= to have them cut off",
        )


def checked_out(out: Any, shape: tuple[int, ...], asked: Any) -> Any:
    """The element type of `out`; DSLTypeError unless it has the shape and type asked for, is
    writable, and no two elements share memory.
    """
    host = ArrayRecord.of(out, "out")
    kind = from_dlpack(*host.dtype)
    if tuple(host.shape) != shape or (asked is not None and asked is not kind):
        raise DSLTypeError(
            f"out is {kind.__name__} of {tuple(host.shape)}; the result is "
            f"{(asked or kind).__name__} of {shape}",
            hint="pass an array like the result, or none",
        )
    if host.readonly:
        raise DSLTypeError("out is read-only", hint="pass another array, or none")
    check_elements_apart(host)
    return kind


def check_devices(*arrays: OperandInfo | None) -> None:
    """Raise DSLTypeError for arrays on different devices."""
    names = {x.host.device_name for x in arrays if x is not None}
    if len(names) > 1:
        raise DSLTypeError(f"matmul takes arrays of one device, not of {', '.join(sorted(names))}")


def extents_of(a: OperandInfo, b: OperandInfo) -> tuple[tuple[int, ...], tuple[int, int, int]]:
    """The leading modes of the result, and (M, N, K); DSLTypeError where the extents do not fit."""
    (m, k), (kb, n) = a.shape[-2:], b.shape[-2:]
    if k != kb:
        raise DSLTypeError(
            f"a of {a.host.shape} times b of {b.host.shape}: {k} columns and {kb} rows",
            hint="a is (..., M, K) and b is (..., K, N); for an (N, K) weight pass weight.T",
        )
    try:
        batch = tuple(np.broadcast_shapes(a.shape[:-2], b.shape[:-2]))
    except ValueError:
        raise DSLTypeError(
            f"the leading modes of {a.host.shape} and {b.host.shape} do not broadcast"
        ) from None
    return batch, (m, n, k)
