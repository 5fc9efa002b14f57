"""The loss of a classifier's last layer, without the array of all logits.

Logits of V classes are by far a language model's largest array. Here they exist for some rows at a
time, in Float32: a product writes them, one kernel makes losses and slopes of them, and two
products take the slopes to the gradients, all before the next rows.

    loss = log(sum of exp(logit)) - logit[target]      slope = (softmax(logit) - onehot) / count
    dx = slope @ weight                                dweight = sum over chunks of slope^T @ x
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import basedsl_cute as cute
from basedsl import ArrayRecord, DSLTypeError, from_dlpack
from basedsl_cute import arch
from basedsl_cute.algebra.explained_calls import explains_arguments
from basedsl_cute.ops.array_libraries import ArrayLibrary, library
from basedsl_cute.ops.gemm.matmul import matmul
from basedsl_cute.ops.jax_arrays import is_jax
from basedsl_cute.ops.layer.rows import element_type

CHUNK_BYTES = 2**30
"""The largest array of logits. Each chunk reads and writes the sums of weight's gradient."""

_LEAST_ROWS = 128  # and a multiple: whole tiles of products
_THREADS = 512
_VECTOR = 4


class LossGradients(NamedTuple):
    """The mean loss, an array of one element, and its gradients, None where not asked for."""

    loss: Any
    x: Any
    weight: Any


@explains_arguments
def linear_cross_entropy(x: Any, weight: Any, targets: Any, *, ignore_index: int = -100) -> Any:
    """Compute the mean of the cross-entropies of softmax(x @ weight^T) and `targets`.

    `x` is an array (rows, K) and `weight` (V, K), as a linear layer has it, of PyTorch, CuPy, JAX
    or NumPy, of Float16, BFloat16 or Float32; `targets` are the classes of the rows, integers. Rows
    whose target is `ignore_index` do not count; a target outside of 0 to V - 1 is not checked on a
    GPU: the loss is NaN, as are the gradients of its row and of `weight`.

    Returns an array without modes, of Float32: NaN if no row counts. PyTorch and JAX compute
    gradients of x and weight, which are made together with the loss. Raises DSLTypeError for other
    types and extents.

    >>> import numpy as np
    >>> from basedsl_cute.ops import linear_cross_entropy
    >>> x, weight = np.ones((2, 4), np.float32), np.zeros((8, 4), np.float32)
    >>> loss = linear_cross_entropy(x, weight, np.array([3, 5]))
    >>> print(round(float(loss), 4))  # the logarithm of 8
    2.0794
    """
    if is_jax(x):
        from basedsl_cute.ops.layer.jax_layer import jax_cross_entropy  # it imports JAX

        return jax_cross_entropy(x, weight, targets, ignore_index)
    lib = library(x, "linear_cross_entropy")
    if lib.is_autocasting():
        from basedsl_cute.ops.torch_autocast import lowered  # it imports PyTorch

        x, weight = lowered(x, weight)
    if lib.records(x, weight):
        from basedsl_cute.ops.layer.torch_cross_entropy import torch_cross_entropy

        return torch_cross_entropy(x, weight, targets, ignore_index)
    return loss_and_gradients(x, weight, targets, ignore_index).loss.reshape(())


def loss_and_gradients(
    x: Any,
    weight: Any,
    targets: Any,
    ignore_index: int,
    wants: tuple[bool, bool] = (False, False),
) -> LossGradients:
    """Return the mean loss of `linear_cross_entropy` and its gradients by x and weight, those that
    `wants` names.
    """
    lib = library(x, "linear_cross_entropy")
    rows, classes = _checked(lib, x, weight, targets)
    f32 = lib.dtype(cute.Float32)
    factor = lib.empty((1,), f32, x)
    with np.errstate(divide="ignore"):
        factor[...] = 1.0 / _counted(targets, ignore_index)
    losses = lib.empty((rows,), f32, x)
    of_x = lib.empty(tuple(x.shape), x.dtype, x) if wants[0] else None
    pitch = -(-classes // 8) * 8  # whole vectors, as TMA takes them
    step = _rows_of_a_chunk(rows, 4 * pitch)
    of_weight = lib.empty(tuple(weight.shape), weight.dtype, x) if wants[1] else None
    sums = of_weight  # of chunks
    if of_weight is not None and step < rows and weight.dtype != f32:
        sums = lib.empty(tuple(weight.shape), f32, x)
    if of_weight is not None and not rows:
        of_weight[...] = 0
    logits = lib.empty((step, pitch), f32, x)
    slopes = lib.empty((step, pitch), x.dtype, x) if any(wants) else None
    for begin in range(0, rows, step):
        part = slice(begin, min(begin + step, rows))
        count = part.stop - part.start
        matmul(x[part], weight.T, out=logits[:count, :classes])
        slope: Any = None if slopes is None else slopes[:count, :classes]
        _launch(
            logits,
            slopes,
            lib.compact(targets[part]),
            losses[part],
            factor,
            count,
            ignore_index,
            classes,
            lib.stream(x),
        )
        if of_x is not None:
            matmul(slope, weight, out=of_x[part])
        if of_weight is not None:
            residual = sums if begin else None
            out: Any = of_weight if part.stop == rows else sums
            matmul(slope.T, x[part], residual=residual, out=out, out_dtype=out.dtype)
    with np.errstate(invalid="ignore"):
        loss = losses.sum() * factor
    return LossGradients(loss, of_x, of_weight)


def _counted(targets: Any, ignore_index: int) -> Any:
    """The number of rows that count, an array of one element, or a number."""
    kind = from_dlpack(*ArrayRecord.of(targets, "targets").dtype)
    if not kind.min <= ignore_index <= kind.max:  # PyTorch would wrap it around to compare
        return np.float64(targets.shape[0])
    return (targets != ignore_index).sum()


def _rows_of_a_chunk(rows: int, row_bytes: int) -> int:
    """Return the rows of each chunk but the last: whole tiles, in chunks that are alike."""
    tiles = max(CHUNK_BYTES // row_bytes // _LEAST_ROWS, 1)
    chunks = -(-rows // (tiles * _LEAST_ROWS))
    return min(-(-rows // max(chunks * _LEAST_ROWS, 1)) * _LEAST_ROWS, rows) or 1


def _checked(lib: ArrayLibrary, x: Any, weight: Any, targets: Any) -> tuple[int, int]:
    """The rows and the classes; DSLTypeError for arrays that do not fit together."""
    name = "linear_cross_entropy"
    for word, array in (("weight", weight), ("targets", targets)):
        if library(array, f"{name} ({word})") is not lib:
            raise DSLTypeError(f"{name}: {word} and x are arrays of different libraries")
    if element_type(name, "weight", weight) is not element_type(name, "x", x):
        raise DSLTypeError(f"{name}: weight is of {weight.dtype}, and x of {x.dtype}")
    shapes = [tuple(ArrayRecord.of(a).shape) for a in (x, weight, targets)]
    check_extents(*shapes)
    if not from_dlpack(*ArrayRecord.of(targets, "targets").dtype).is_integer:
        raise DSLTypeError(f"{name}: targets are of {targets.dtype}", hint="integers")
    return shapes[0][0], shapes[1][0]


def check_extents(x: tuple[int, ...], weight: tuple[int, ...], targets: tuple[int, ...]) -> None:
    """Raise DSLTypeError for arrays whose extents do not fit together."""
    name = "linear_cross_entropy"
    if (len(x), len(weight), len(targets)) != (2, 2, 1) or x[1] != weight[1]:
        raise DSLTypeError(
            f"{name}: x is {x}, weight {weight} and targets {targets}",
            hint="they are (rows, K), (V, K) and (rows)",
        )
    if x[0] != targets[0]:
        raise DSLTypeError(f"{name}: {targets[0]} targets for {x[0]} rows")
    if not weight[0]:
        raise DSLTypeError(f"{name}: there are no classes")


@cute.jit
def _vector(logits: Any, row: Any, place: Any, classes: cute.Constexpr):
    """The logits of a row from vector number `place` on; -inf beyond the last class."""
    fragment = cute.make_rmem_tensor((_VECTOR,), cute.Float32)
    cute.autovec_copy(cute.local_tile(logits[row, None], (_VECTOR,), (place,)), fragment)
    if cute.const_expr(classes % _VECTOR):
        for i in cute.range_constexpr(_VECTOR):
            if place * _VECTOR + i >= classes:
                fragment[i] = -cute.Float32.inf
    return fragment.load()


@cute.kernel
def cross_entropy_kernel(
    logits: cute.Tensor,
    slopes,  # a tensor or None
    targets: cute.Tensor,
    losses: cute.Tensor,
    factor: cute.Tensor,
    ignore_index: cute.Int64,
    classes: cute.Constexpr,
):
    """Write the loss of a row, and the slopes of its logits: each thread keeps the largest of its
    logits, and the sum of their exponentials by it.
    """
    row, thread = arch.block_idx()[0], arch.thread_idx()[0]
    warps = _THREADS // arch.WARP_SIZE
    shared = cute.make_tensor(
        arch.alloc_smem(cute.Float32, 2 * warps), cute.make_layout((warps, 2))
    )
    vectors = cute.ceil_div(classes, _VECTOR)
    largest, total = -cute.Float32.inf, cute.Float32(0.0)
    for n in range(thread, vectors, _THREADS):
        values = _vector(logits, row, n, classes)
        now = arch.fmax(largest, values.reduce(cute.ReductionOp.MAX, -cute.Float32.inf, 0))
        base = cute.where(now == -cute.Float32.inf, 0.0, now)
        part = cute.math.exp(values - base).reduce(cute.ReductionOp.ADD, 0.0, 0)
        total = total * cute.math.exp(largest - base) + part
        largest = now
    top = arch.warp_reduction_max(largest)
    base = cute.where(top == -cute.Float32.inf, 0.0, top)
    total = arch.warp_reduction_sum(total * cute.math.exp(largest - base))
    if arch.lane_idx() == 0:
        shared[arch.warp_idx(), 0] = top
        shared[arch.warp_idx(), 1] = total
    arch.sync_threads()
    for n in cute.range_constexpr(warps):
        top = arch.fmax(top, shared[n, 0])
    base = cute.where(top == -cute.Float32.inf, 0.0, top)
    total = cute.Float32(0.0)
    for n in cute.range_constexpr(warps):
        total += shared[n, 1] * cute.math.exp(shared[n, 0] - base)
    log = base + cute.math.log(total)
    target = cute.Int64(targets[row])
    counts = target != ignore_index
    known = counts and target >= 0 and target < classes
    unknown = cute.where(counts, cute.Float32(float("nan")), 0.0)
    if thread == 0:
        loss = unknown
        if known:
            loss = log - logits[row, target.to(cute.Int32)]
        losses[row] = loss
    if cute.const_expr(slopes is not None):
        weight = cute.where(known, factor[0], unknown)
        for n in range(thread, vectors, _THREADS):
            fragment = cute.make_rmem_tensor((_VECTOR,), cute.Float32)
            fragment.store(cute.math.exp(_vector(logits, row, n, classes) - log))
            place = target.to(cute.Int32) - n * _VECTOR
            for i in cute.range_constexpr(_VECTOR):
                if place == i and known:
                    fragment[i] = fragment[i] - 1.0
            result = cute.make_rmem_tensor((_VECTOR,), slopes.element_type)
            result.store((fragment.load() * weight).to(slopes.element_type))
            cute.autovec_copy(result, cute.local_tile(slopes[row, None], (_VECTOR,), (n,)))


@cute.jit
def _launch(
    logits: cute.Tensor,
    slopes: cute.Tensor | None,
    targets: cute.Tensor,
    losses: cute.Tensor,
    factor: cute.Tensor,
    rows: cute.Int32,
    ignore_index: cute.Int64,
    classes: cute.Constexpr,
    stream: cute.Int64,
):
    logits = _aligned(logits, classes)
    if cute.const_expr(slopes is not None):
        slopes = _aligned(slopes, classes)
    cross_entropy_kernel(logits, slopes, targets, losses, factor, ignore_index, classes).launch(
        grid=rows, block=_THREADS, stream=cute.Stream(stream.ir_value())
    )


def _aligned(x: Any, classes: int) -> Any:
    """The rows of an array whose pitch is a multiple of 8 elements."""
    pitch = -(-classes // 8) * 8
    pointer = x.iterator.align(_VECTOR * x.element_type.width // 8)
    return cute.make_tensor(pointer, cute.make_layout((x.shape[0], pitch), stride=(pitch, 1)))
