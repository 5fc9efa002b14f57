"""What `matmul` decides: what a product is, how kernels see its operands, which kernel is taken.

Nothing here is compiled or run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

import basedsl_cute as cute
from basedsl.errors import DSLTypeError, with_article
from basedsl.numeric import Numeric, from_dlpack
from basedsl_cute.arrays.host_tensor import HostTensor
from basedsl_cute.dsl.machine import current_target
from basedsl_cute.hardware.requirements import SETMAXNREG, WGMMA, Requirement, mma_sync
from basedsl_cute.hardware.targets import Target
from basedsl_cute.ops.ampere import gemm as ampere_gemm
from basedsl_cute.ops.ampere import gemm_tma, sgemm
from basedsl_cute.ops.gemm.array_libraries import Library
from basedsl_cute.ops.gemm.matrix_views import View, spaced, view_of
from basedsl_cute.ops.hopper import gemm as hopper_gemm
from basedsl_cute.ops.hopper import heuristics, parallel_split_k, split_k_gemm

_FLOATS_16 = (cute.Float16, cute.BFloat16)
_FLOATS_8 = (cute.Float8E4M3FN, cute.Float8E5M2)
_INTEGERS = (cute.Int8, cute.Uint8)

Matrices = tuple[View, View, View]  # A (M, K), B (K, N), C (M, N), or with batches


@dataclass
class Facts:
    """An array that is given."""

    host: HostTensor
    dtype: Any
    shape: tuple[int, ...]  # with a mode of 1 for what a vector lacks
    strides: tuple[int, ...]

    @property
    def size(self) -> int:
        return int(self.dtype.width) // 8

    @property
    def filled(self) -> int:
        """Bytes of an array whose elements fill its memory without gaps, 0 of others."""
        end = 1
        for stride, extent in sorted(zip(self.strides, self.shape, strict=True)):
            if extent == 0 or (extent > 1 and stride != end):
                return 0
            end *= extent
        return end * self.size

    def view(self, full: tuple[int, ...], batched: bool, **options: Any) -> View | None:
        return view_of(
            self.shape, self.strides, full, self.size, batched=batched, may_copy=True, **options
        )


def facts(x: Any, name: str, new_mode: int | None = None) -> Facts:
    host = HostTensor.of(x, name)
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
    return Facts(host, from_dlpack(*host.dtype), tuple(shape), tuple(strides))


def views_of(
    a: Facts,
    b: Facts,
    c: Facts,
    given: list[Facts | None],
    batch: tuple[int, ...],
    extents: tuple[int, int, int],
) -> tuple[Matrices, tuple[View | None, ...], tuple[bool, ...]]:
    """The matrices A, B and C, the operands of the epilogue, and which of these are a row.

    With one B for all of A, all modes of A but the last are rows; else they are batches.
    """
    m, n, k = extents
    full = (*batch, m, n)
    columns = tuple(x is not None and x.shape == (n,) for x in given)
    of_a, of_b = a, b
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
        # Rows of all of A save B's repetitions, unless something must be copied for it.
        copied = any(v is not None and v.copied for v in (*matrices, *seen))
        cheap = batched or not batch or not copied
        if None not in matrices and all(needed) and cheap:
            as_given = [_as_given(v, x) for v, x in zip(matrices, (of_a, of_b, c), strict=True)]
            more = tuple(v and _as_given(v, x) for v, x in zip(seen, given, strict=True))
            return tuple(as_given), more, columns  # type: ignore[return-value]
    raise DSLTypeError(
        f"out, {c.host.shape} with strides {c.host.strides}, is no batches of one stride with "
        "contiguous rows or columns",
        hint="leave out= away and copy the result",
    )


# Copies -------------------------------------------------------------------------------------------

# What an aligned copy costs, and what the kernels without TMA take longer for: seconds and bytes or
# multiplications a second, measured on an H200.
_COPY = 5e-6
_COPIED = 1.2e12
_WITHOUT_TMA = 1 / (1 / 75e12 - 1 / 300e12)


def with_copies_for_tma(matrices: Matrices, a: Facts, b: Facts, k: int) -> Matrices:
    """The matrices, with copies instead of A and B that TMA cannot load, where that is faster."""
    if not _has_wgmma(current_target()):
        return matrices
    m, n, _, batches, *_ = walked(*matrices, k)
    gain = m * n * k * batches / _WITHOUT_TMA
    made = []
    for view, x in zip(matrices, (a, b), strict=False):
        if view.suits_tma(x.host.address, x.size):
            made.append(view)
            continue
        copy = spaced(view, x.size)
        if copy is None:
            return matrices
        made.append(copy)
        gain -= _COPY + math.prod(view.shape) * x.size / _COPIED
    return (made[0], made[1], matrices[2]) if gain > 0 else matrices


def check_operands(given: list[Facts | None], full: tuple[int, ...]) -> None:
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


def _as_given(view: View | None, x: Facts | None) -> View | None:
    """A vector is no matrix, even where its elements are walked like one."""
    if view is None or x is None or len(view.shape) == len(x.host.shape):
        return view
    return replace(view, is_same=False)


def _row(x: Facts) -> View:
    return View(x.shape, x.strides, is_same=True)


def choose(
    dtype: Any,
    dtype_b: Any,
    dtype_c: Any,
    walked: Walked,
    tf32: bool,
    tma: ByTma,
    config: Any,
    processors: int,
) -> tuple[str, Any]:
    """The kernel and its configuration."""
    m, n, k, batches, k_contiguous, is_turned = walked
    target = current_target()
    if isinstance(config, sgemm.Config) or (config is None and dtype is cute.Float32 and not tf32):
        if dtype is not cute.Float32:
            raise DSLTypeError(f"sgemm multiplies Float32, not {dtype.__name__}")
        return "simt", config or sgemm.choose(m, n, processors, batches, k_contiguous)
    if config is None and _has_wgmma(target) and tma.wgmma:
        bits = dtype.width
        rows, columns = (n, m) if is_turned else (m, n)
        return heuristics.choose(
            rows, columns, k, batches, bits, dtype_c.width, processors, tma.stores, is_turned
        )
    if type(config) in _HOPPER:
        _check_hopper(config, tma, k, batches, dtype.width)
        return _HOPPER[type(config)], config
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
    if config is None:
        problem = (m, n, k, dtype.width, processors, target.smem_per_block, batches)
        if tma.loads and target.is_gpu and SETMAXNREG.is_met_by(target):
            config = gemm_tma.choose(*problem, pairs=target.capability < (12, 0))
        else:
            config = ampere_gemm.choose(*problem)
    elif not isinstance(config, ampere_gemm.Config):
        raise DSLTypeError(f"config is {with_article(type(config))}, no Config of a kernel in ops")
    elif isinstance(config, gemm_tma.Config) and not tma.loads:
        raise DSLTypeError("TMA reads arrays whose addresses and strides are multiples of 16 bytes")
    by_tma = isinstance(config, gemm_tma.Config)
    extents = (m, n) if by_tma else (m, n, k)  # beyond K, TMA fills with zeros
    full = all(x % tile == 0 for x, tile in zip(extents, config.tile, strict=False))
    return "warp-tma" if by_tma else "warp", replace(config, is_full=full)


_HOPPER = {
    hopper_gemm.Config: "hopper",
    split_k_gemm.Config: "hopper split",
    parallel_split_k.Config: "hopper parts",
}


def _check_hopper(config: Any, tma: ByTma, k: int, batches: int, bits: int) -> None:
    """DSLTypeError for a configuration that was given for what its kernel does not do."""
    if not (tma.wgmma and (tma.stores or not isinstance(config, hopper_gemm.Config))):
        raise DSLTypeError(
            "the Hopper kernel takes arrays whose addresses and strides are multiples of 16 "
            "bytes, and of elements that are not 16-bit those with K contiguous"
        )
    if isinstance(config, parallel_split_k.Config):
        config.check(k, bits)
        if batches > 1:
            raise DSLTypeError(
                f"parts of K are batches, and there are {batches} already",
                hint="pass a Config of hopper_gemm or hopper_split_gemm",
            )


def _has_wgmma(target: Target) -> bool:
    """Tell whether a target is a GPU with wgmma, which the kernels of `ops.hopper` take."""
    return target.is_gpu and WGMMA.is_met_by(target)


class ByTma(NamedTuple):
    """What TMA can copy of a product's arrays."""

    loads: bool  # A and B
    wgmma: bool  # these, and wgmma has them: their types and orders of modes
    stores: bool  # C


class Walked(NamedTuple):
    """A product as kernels walk it, which compute C^T = B^T A^T where C is column-major."""

    m: int
    n: int
    k: int
    batches: int
    k_contiguous: tuple[bool, bool]  # in A, in B
    is_turned: bool  # C is column-major


def walked(a: View, b: View, c: View, k: int) -> Walked:
    """The product of views of (M, K) and (K, N)."""
    lines = (a.lead == -1, b.lead == -2)
    (m, n), batches = c.shape[-2:], c.shape[0] if len(c.shape) == 3 else 1
    if c.lead == -2:
        m, n, lines = n, m, lines[::-1]
    return Walked(m, n, k, batches, lines, c.lead == -2)


def check_types(a: Any, b: Any) -> None:
    known = (*_FLOATS_16, *_FLOATS_8, *_INTEGERS, cute.Float32)
    if a not in known or b not in known or (a is not b and not {a, b} <= set(_FLOATS_8)):
        raise DSLTypeError(
            f"matmul multiplies two arrays of {', '.join(t.__name__ for t in known)}, not "
            f"{a.__name__} and {b.__name__}",
            hint="convert one of them to the other's type" if a is not b else None,
        )


def element_type(lib: Library, asked: Any, dtype: Any, like: Any) -> Any:
    """The result's element type, from what the user said or from that of `a`."""
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
    return from_dlpack(*HostTensor.of(made).dtype)


def checked_out(out: Any, shape: tuple[int, ...], asked: Any) -> Any:
    """The element type of `out`."""
    host = HostTensor.of(out, "out")
    kind = from_dlpack(*host.dtype)
    if tuple(host.shape) != shape or (asked is not None and asked is not kind):
        raise DSLTypeError(
            f"out is {kind.__name__} of {tuple(host.shape)}; the result is "
            f"{(asked or kind).__name__} of {shape}"
        )
    if host.readonly:
        raise DSLTypeError("out is read-only", hint="pass another array, or none")
    end = 1
    for stride, extent in sorted(zip(map(abs, host.strides), host.shape, strict=True)):
        if extent > 1 and stride < end:
            raise DSLTypeError(
                f"out of {host.shape} with strides {host.strides} has elements that share memory",
                hint="pass another array, or none",
            )
        end += (extent - 1) * stride
    return kind


def check_devices(*arrays: Facts | None) -> None:
    names = {x.host.device_name for x in arrays if x is not None}
    if len(names) > 1:
        raise DSLTypeError(f"matmul takes arrays of one device, not of {', '.join(sorted(names))}")


def extents_of(a: Facts, b: Facts) -> tuple[tuple[int, ...], tuple[int, int, int]]:
    """The leading modes of the result, and (M, N, K)."""
    (m, k), (kb, n) = a.shape[-2:], b.shape[-2:]
    if k != kb:
        raise DSLTypeError(
            f"a of {a.host.shape} times b of {b.host.shape}: {k} columns and {kb} rows",
            hint="a is (..., M, K) and b is (..., K, N); for an (N, K) weight pass weight.T",
        )
    if k == 0:
        raise DSLTypeError(f"a of {a.host.shape} has no columns: there is nothing to add up")
    try:
        batch = tuple(np.broadcast_shapes(a.shape[:-2], b.shape[:-2]))
    except ValueError:
        raise DSLTypeError(
            f"the leading modes of {a.host.shape} and {b.host.shape} do not broadcast"
        ) from None
    return batch, (m, n, k)
