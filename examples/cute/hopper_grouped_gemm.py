"""Many matrix products of their own shapes in one launch on Hopper, as for a mixture of experts.

    python examples/cute/hopper_grouped_gemm.py

The kernel is `basedsl_cute.ops.hopper.grouped_gemm`. The host knows how many groups there are, and
what their elements are; their extents, strides and addresses are in device memory, where blocks
find their tiles and make the tensor maps that they copy by.
"""

import numpy as np

import basedsl_cute as cute
from basedsl_cute.ops.hopper.grouped_gemm import (
    Config,
    HopperGemmKinds,
    grouped_gemm,
    maps_of,
    tables,
)
from basedsl_cute.sim import reachable
from basedsl_cute.utils import LayoutEnum

ROW = LayoutEnum.ROW_MAJOR
KINDS = HopperGemmKinds(cute.Float16, cute.Float16, cute.Float16, ROW, ROW, ROW)
CONFIG = Config(tile=(128, 128, 64))


def aligned(shape, dtype, to=128):
    """A NumPy array of zeros at a multiple of `to` bytes."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.zeros(size + to, np.uint8)
    start = -raw.ctypes.data % to
    return raw[start : start + size].view(dtype).reshape(shape)


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    groups = [
        [rng.standard_normal(shape).astype(np.float16) for shape in ((m, k), (n, k))]
        for m, n, k in ((128, 64, 128), (40, 201, 72), (0, 64, 64), (256, 128, 64))
    ]
    expected = [a.astype(np.float32) @ b.astype(np.float32).T for a, b in groups]
    maps = aligned((3, maps_of(CONFIG), 16), np.int64)
    if "simulator" not in cute.target_description():
        import torch

        on_gpu = [[torch.from_numpy(x).cuda() for x in pair] for pair in groups]
        triples = [(a, b, a.new_zeros(a.shape[0], b.shape[0])) for a, b in on_gpu]
        described = [torch.from_numpy(x).cuda() for x in (*tables(triples), maps)]
        grouped_gemm(*described, KINDS, CONFIG)
        results = [c.cpu().numpy() for _, _, c in triples]
    else:
        triples = []
        for pair in groups:
            a, b = (aligned(x.shape, x.dtype) for x in pair)
            a[:], b[:] = pair
            triples.append((a, b, aligned((len(a), len(b)), np.float16)))
        with reachable(*(x for triple in triples for x in triple)):
            grouped_gemm(*tables(triples), maps, KINDS, CONFIG)
        results = [c for _, _, c in triples]
    errors = [np.abs(x - c).max(initial=0) for x, c in zip(expected, results, strict=True)]
    print("largest error:", max(errors))
