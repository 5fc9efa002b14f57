"""Softmax of rows by a warp each, compiled from symbols: one executor for every shape."""

import numpy as np

import basedsl_cute as cute
import basedsl_cute as cutlass
from basedsl_cute.runtime import make_fake_compact_tensor, make_fake_stream

VECTOR = 4


@cute.jit
def warp_all(x: cutlass.Float32, op: cutlass.Constexpr):
    for i in cutlass.range_constexpr(5):
        x = op(x, cute.arch.shuffle_sync_bfly(x, offset=1 << i))
    return x


@cute.kernel
def softmax_kernel(x: cute.Tensor, out: cute.Tensor, warps: cutlass.Constexpr):
    lane = cute.arch.lane_idx()
    row = cute.arch.block_idx()[0] * warps + cute.arch.warp_idx()
    if row < x.shape[0]:
        # (VECTOR, pieces): each lane takes a piece at a time.
        pieces = cute.logical_divide(x[row, None], cute.make_layout(VECTOR))
        results = cute.logical_divide(out[row, None], cute.make_layout(VECTOR))
        count = cute.size(pieces, mode=[1])

        largest = -cutlass.Float32.inf
        total = cutlass.Float32(0.0)
        for i in cutlass.range(lane, count, 32):
            values = pieces[None, i].load().to(cutlass.Float32)
            now = values.reduce(cute.ReductionOp.MAX, largest, 0)
            grown = cute.math.exp(values - now, fastmath=True)
            total = total * cute.math.exp(largest - now, fastmath=True) + grown.reduce(
                cute.ReductionOp.ADD, cutlass.Float32(0.0), 0
            )
            largest = now
        maximum = warp_all(largest, lambda a, b: cute.arch.fmax(a, b))
        scale = cutlass.Float32(0.0)
        if largest > -cutlass.Float32.inf:
            scale = cute.math.exp(largest - maximum, fastmath=True)
        total = warp_all(total * scale, lambda a, b: a + b)
        for i in cutlass.range(lane, count, 32):
            values = pieces[None, i].load().to(cutlass.Float32)
            weights = cute.math.exp(values - maximum, fastmath=True) / total
            results[None, i] = weights.to(out.element_type)


@cute.jit
def softmax(x: cute.Tensor, out: cute.Tensor, stream, warps: cutlass.Constexpr = 2):
    softmax_kernel(x, out, warps).launch(
        grid=(cute.ceil_div(x.shape[0], warps), 1, 1), block=(32 * warps, 1, 1), stream=stream
    )


def run():
    rng = np.random.default_rng(8)
    rows, columns = cute.sym_int(), cute.sym_int(divisibility=VECTOR)
    fake = [
        make_fake_compact_tensor(
            cutlass.Float16, (rows, columns), stride_order=(1, 0), assumed_align=8
        )
        for _ in range(2)
    ]
    compiled = cute.compile(softmax, *fake, make_fake_stream())
    stream = cutlass.cuda.default_stream()
    for shape in ((1, 4), (3, 64), (5, 300)):
        x = (rng.standard_normal(shape) * 3).astype(np.float16)
        out = np.zeros_like(x)
        there, result = on_device(x), on_device(out)
        compiled(there, result, stream)
        cutlass.cuda.stream_sync(stream)
        out[:] = result if result is out else result.cpu().numpy()
        wide = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
        np.testing.assert_allclose(out, wide / wide.sum(axis=1, keepdims=True), atol=1e-3)
    out = on_device(np.zeros((2, 6), np.float16))
    try:
        compiled(out, out, stream)
    except TypeError as error:
        assert "no multiple of 4" in str(error)
    else:
        raise AssertionError("6 columns are no multiple of 4")


def on_device(x):
    """An array where kernels reach it."""
    if "simulator" in cute.target_description():
        return x
    import torch

    return torch.from_numpy(x).cuda()
