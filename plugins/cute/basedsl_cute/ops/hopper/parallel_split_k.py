"""C = A B^T on Hopper for a long K and a small C: parts of K as batches, then their sum.

Either of the other Hopper kernels multiplies the parts, which makes a matrix of sums for each, in a
workspace; a second kernel adds these up, always in the order of K, and passes them through the
epilogue. Unlike `hopper_split_gemm`, this has no bound on how many multiprocessors work on a tile,
and tiles are as large as for large products; but all parts go through memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import basedsl_cute as cute
from basedsl.errors import DSLTypeError
from basedsl_cute import arch
from basedsl_cute.ops.gemm.operands import Results, matrix, three_modes, transposed
from basedsl_cute.ops.hopper import gemm as hopper_gemm
from basedsl_cute.ops.hopper import split_k_gemm

__all__ = ["Config", "gemm"]

THREADS = 256
VECTOR = 4  # elements that a thread adds up: 16 bytes of the workspace


@dataclass(frozen=True)
class Config:
    """What is chosen at compile time."""

    parts: int  # of K, which they divide into multiples of 16 bytes
    gemm: Any  # of these: a Config of `hopper_gemm` or `hopper_split_gemm`

    def __post_init__(self) -> None:
        if self.parts < 2:
            raise ValueError(f"{self}: K in 2 parts or more")
        if not isinstance(self.gemm, hopper_gemm.Config | split_k_gemm.Config):
            raise ValueError(f"{self}: gemm is a Config of hopper_gemm or hopper_split_gemm")

    def check(self, k: int, bits: int) -> None:
        """DSLTypeError for a K that does not go in so many parts."""
        if k * bits % (128 * self.parts):
            raise DSLTypeError(
                f"K of {k} elements of {bits} bits is no {self.parts} parts of whole 16 bytes",
                hint="pass a config with another number of parts, or none",
            )

    def workspace(self, m: int, n: int, is_column_major: bool) -> tuple[int, int, int]:
        """Extents of the row-major workspace of 32-bit elements, for C (M, N)."""
        rows, columns = (n, m) if is_column_major else (m, n)
        return self.parts, rows, -(-columns // VECTOR) * VECTOR


@cute.kernel
def sum_kernel(
    parts: cute.Tensor,
    c: cute.Tensor,
    operands: tuple,
    count: cute.Constexpr,
    epilogue_op: cute.Constexpr,
    vector: cute.Constexpr,
    overlap: cute.Constexpr,
):
    """A vector of C for each thread, from `count` matrices of sums."""
    if cute.const_expr(overlap):
        arch.griddepcontrol_launch_dependents()
        arch.griddepcontrol_wait()
    of_a_line = cute.ceil_div(c.shape[1], vector)
    number = arch.block_idx()[0] * THREADS + arch.thread_idx()[0]
    line = number // of_a_line
    if line < c.shape[0]:
        at = (line, number % of_a_line)
        mine = cute.local_tile(parts, (1, vector, count), (*at, 0))
        total = cute.make_rmem_tensor((vector,), parts.element_type)
        total.store(mine[0, None, 0].load())
        for i in cute.range(1, count, unroll=16):
            total.store(total.load() + mine[0, None, i].load())
        results = Results(c, operands).of_batch(0)
        results = results.each(lambda x: cute.local_tile(x, (1, vector), at)[0, None])
        results.put(total, epilogue_op)


@cute.jit
def gemm(
    a: cute.Tensor,
    b: cute.Tensor,
    c: cute.Tensor,
    workspace: cute.Tensor,
    blocks: cute.Int32,
    cfg: cute.Constexpr,
    epilogue_op: cute.Constexpr = None,
    operands: tuple = (),
    vector: cute.Constexpr = 1,
    stream: cute.Constexpr = None,
):
    """C = A B^T for (M, K), (N, K), (M, N), with no batches but a mode of one; with `epilogue_op`,
    C = epilogue_op(A B^T, *operands), see `utils.epilogue`.

    `workspace` has the extents `cfg.workspace` and elements of the sums: Float32, or Int32 for
    integers. One access writes `vector` elements of C, which the caller promises to be possible:
    see `operands.matrix`.
    """
    c = matrix(c, vector)
    operands = tuple(map(three_modes, operands))
    if cute.const_expr(c.leading_dim == 0):  # C^T = B A^T has contiguous rows
        a, b, c = b, a, transposed(c)
        operands = tuple(map(transposed, operands))
    a, b = in_parts(a, cfg.parts), in_parts(b, cfg.parts)
    sums = matrix(cute.select(workspace, [1, 2, 0]), VECTOR, 1)
    if cute.const_expr(isinstance(cfg.gemm, hopper_gemm.Config)):
        hopper_gemm.gemm(a, b, sums, blocks, cfg.gemm, stream=stream, pads=True)
    else:
        split_k_gemm.gemm(a, b, sums, cfg.gemm, vector=VECTOR, stream=stream, pads=True)
    vectors = c.shape[0] * cute.ceil_div(c.shape[1], vector)
    sum_kernel(sums, c, operands, cfg.parts, epilogue_op, vector, cfg.gemm.overlap).launch(
        grid=(cute.ceil_div(vectors, THREADS), 1, 1),
        block=(THREADS, 1, 1),
        stream=stream,
        use_pdl=cfg.gemm.overlap,
    )


def in_parts(x: cute.Tensor, parts: int) -> cute.Tensor:
    """(rows, K of a part, parts) of (rows, K, 1)."""
    rows, k = x.shape[0], x.shape[1]
    each = cute.assume(k // parts, 128 // x.element_type.width)
    stride = (x.stride[0], x.stride[1])
    layout = cute.make_layout((rows, each, parts), stride=(*stride, each * stride[1]))
    return cute.make_tensor(x.iterator, layout)
