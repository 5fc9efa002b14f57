"""A persistent matrix product in Triton, the peer of `bench/gpu/gemm.py`: TMA descriptors made by
the host, one program for each multiprocessor, tiles in groups along M, configurations autotuned.
"""

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor


def set_blocks(arguments):
    """The boxes of the descriptors follow from the configuration that is tried."""
    m, n, k = (arguments[name] for name in ("BM", "BN", "BK"))
    arguments["a"].block_shape = [m, k]
    arguments["b"].block_shape = [n, k]
    arguments["c"].block_shape = [m, n // arguments["PARTS"]]


def configurations():
    tiles = [
        (128, 256, 64, 8, 3, 1),
        (128, 256, 64, 8, 3, 2),
        (128, 256, 64, 8, 4, 2),
        (128, 128, 64, 4, 4, 1),
        (128, 128, 64, 8, 4, 2),
        (256, 128, 64, 8, 3, 2),
    ]
    return [
        triton.Config(
            {"BM": m, "BN": n, "BK": k, "GROUP": 8, "PARTS": parts},
            num_warps=warps,
            num_stages=stages,
            pre_hook=set_blocks,
        )
        for m, n, k, warps, stages, parts in tiles
    ]


@triton.jit
def place(tile, tiles_m, tiles_n, GROUP: tl.constexpr):
    """(m, n) of a tile: groups of GROUP rows, in which M goes fastest."""
    in_group = GROUP * tiles_n
    first = tile // in_group * GROUP
    rows = min(tiles_m - first, GROUP)
    return first + tile % in_group % rows, tile % in_group // rows


@triton.autotune(configs=configurations(), key=["m", "n", "k"])
@triton.jit
def kernel(
    a, b, c, m, n, k,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, GROUP: tl.constexpr, PARTS: tl.constexpr,
    SMS: tl.constexpr,
):  # fmt: skip
    """C = A B^T, float32 inside."""
    tiles_m, tiles_n = tl.cdiv(m, BM), tl.cdiv(n, BN)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, SMS, flatten=True):
        i, j = place(tile, tiles_m, tiles_n, GROUP)
        acc = tl.zeros((BM, BN), tl.float32)
        for step in range(tl.cdiv(k, BK)):
            x = a.load([i * BM, step * BK])
            y = b.load([j * BN, step * BK])
            acc = tl.dot(x, y.T, acc)
        if PARTS == 1:
            c.store([i * BM, j * BN], acc.to(c.dtype))
        else:
            halves = tl.permute(tl.reshape(acc, (BM, 2, BN // 2)), (0, 2, 1))
            left, right = tl.split(halves)
            c.store([i * BM, j * BN], left.to(c.dtype))
            c.store([i * BM, j * BN + BN // 2], right.to(c.dtype))


def matmul(a, b, out):
    """out = a @ b.T on tensors whose last dimension is contiguous."""
    m, k = a.shape
    n = b.shape[0]
    sms = torch.cuda.get_device_properties(0).multi_processor_count
    descriptors = [TensorDescriptor.from_tensor(x, [1, 8]) for x in (a, b, out)]
    kernel[(sms,)](*descriptors, m, n, k, SMS=sms)
