"""C = A B^T on Hopper by split-K through memory, for a long K and a small C.

One of the other Hopper kernels multiplies slices of K, of whole steps, into a workspace of partial
sums; a second kernel reduces these, always in the order of K, and applies the epilogue. Unlike
`ops.hopper.split_k_gemm`, this does not bound the number of multiprocessors that work on a tile,
and tiles are as large as for large products; but all partial sums go through memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import basedsl_cute as cute
from basedsl import DSLTypeError
from basedsl_cute import arch
from basedsl_cute.ops.gemm.operands import OutputTile, matrix, three_modes, transposed
from basedsl_cute.ops.hopper import gemm as hopper_gemm
from basedsl_cute.ops.hopper import split_k_gemm

__all__ = ["Config", "gemm"]

THREADS = 256
VECTOR = 4  # elements that a thread reduces at once: 16 bytes of the workspace


@dataclass(frozen=True)
class Config:
    """The static configuration: the number of slices of K, and the kernel that multiplies them.

    Raises ValueError for fewer than two slices, and for a `gemm` that is no Hopper configuration.
    """

    parts: int  # slices of K, each of whole steps
    gemm: Any  # a Config of `ops.hopper.gemm` or `ops.hopper.split_k_gemm`
    sharing: int = 1  # threads that reduce one vector of C together, for a small C

    def __post_init__(self) -> None:
        if self.parts < 2:
            raise ValueError(f"{self}: K must be cut into 2 parts or more")
        if not isinstance(self.gemm, hopper_gemm.Config | split_k_gemm.Config):
            raise ValueError(f"{self}: gemm must be a Config of hopper.gemm or hopper.split_k_gemm")
        if self.sharing not in (1, 2, 4, 8) or self.sharing > self.parts:
            raise ValueError(f"{self}: 1, 2, 4 or 8 threads share a vector, at most `parts`")

    def check_parts(self, k: int) -> None:
        """Raise DSLTypeError for more slices than K has steps."""
        steps = -(-k // self.gemm.tile[2])
        if steps < self.parts:
            raise DSLTypeError(
                f"K = {k} has {steps} steps of {self.gemm.tile[2]}, which do not make {self.parts} "
                "parts",
                hint="pass a config with fewer parts, or none",
            )

    def workspace(self, m: int, n: int, is_column_major: bool) -> tuple[int, int, int]:
        """The shape (parts, rows, columns) of the row-major workspace of 32-bit elements."""
        rows, columns = (n, m) if is_column_major else (m, n)
        return self.parts, rows, -(-columns // VECTOR) * VECTOR


@cute.kernel
def sum_kernel(
    parts: cute.Tensor,
    c: cute.Tensor,
    operands: tuple,
    cfg: cute.Constexpr,
    epilogue_op: cute.Constexpr,
    vector: cute.Constexpr,
):
    """Reduce the matrices of partial sums: a vector of C for each thread, or for several that
    `sharing` makes share it, each with the next slices of K.
    """
    if cute.const_expr(cfg.gemm.overlap):
        arch.griddepcontrol_launch_dependents()
        arch.griddepcontrol_wait()
    vectors = THREADS // cfg.sharing  # of a block
    of_a_line = cute.ceil_div(c.shape[1], vector)
    thread = arch.thread_idx()[0]
    number = arch.block_idx()[0] * vectors + thread % vectors
    share = thread // vectors
    line = number // of_a_line
    at = (line, number % of_a_line)
    inside = line < c.shape[0]
    total = cute.make_rmem_tensor((vector,), parts.element_type)
    total.fill(0)
    if inside:
        first, last = share * cfg.parts // cfg.sharing, (share + 1) * cfg.parts // cfg.sharing
        own_parts = cute.local_tile(parts, (1, vector, cfg.parts), (*at, 0))
        total.store(own_parts[0, None, first].load())
        for i in cute.range(first + 1, last, unroll=16):
            total.store(total.load() + own_parts[0, None, i].load())
    if cute.const_expr(cfg.sharing > 1):
        shared = arch.alloc_smem(parts.element_type, vector * THREADS)
        shared = cute.make_tensor(shared, cute.make_layout((vector, THREADS)))
        cute.autovec_copy(total, shared[None, thread])
        arch.sync_threads()
        for i in cute.range_constexpr(1, cfg.sharing):
            following = (thread + i * vectors) % THREADS
            total.store(total.load() + shared[None, following].load())
    if inside and share == 0:
        results = OutputTile(c, operands).of_batch(0)
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
    """Compute C = A B^T, or with `epilogue_op` C = epilogue_op(A B^T, *operands), on Hopper.

    `a` is (M, K), `b` (N, K), `c` (M, N), or all have a third mode of extent 1. `workspace` has the
    shape `cfg.workspace(...)` and elements of the accumulator: Float32, or Int32 for integers.
    `blocks` is the most resident blocks of the first kernel; `epilogue_op` a function of vectors,
    see `utils.epilogue`. One access writes `vector` elements of C: the caller promises that address
    and strides allow it, see `ops.gemm.operands.matrix`.
    """
    c = matrix(c, vector)
    operands = tuple(map(three_modes, operands))
    if cute.const_expr(c.leading_dim == 0):  # C^T = B A^T has contiguous rows
        a, b, c = b, a, transposed(c)
        operands = tuple(map(transposed, operands))
    a, b = three_modes(a), three_modes(b)
    sums = matrix(cute.select(workspace, [1, 2, 0]), VECTOR, 1)
    if cute.const_expr(isinstance(cfg.gemm, hopper_gemm.Config)):
        hopper_gemm.gemm(a, b, sums, blocks, cfg.gemm, stream=stream, parts=cfg.parts)
    else:
        split_k_gemm.gemm(a, b, sums, cfg.gemm, vector=VECTOR, stream=stream, parts=cfg.parts)
    vectors = c.shape[0] * cute.ceil_div(c.shape[1], vector)
    sum_kernel(sums, c, operands, cfg, epilogue_op, vector).launch(
        grid=(cute.ceil_div(vectors, THREADS // cfg.sharing), 1, 1),
        block=(THREADS, 1, 1),
        stream=stream,
        use_pdl=cfg.gemm.overlap,
    )
