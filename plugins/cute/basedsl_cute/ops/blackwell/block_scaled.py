"""C = A B^T of block-scaled matrices (mxfp8, mxfp4, nvfp4) on data-center Blackwell.

The kernel is that of `ops.blackwell.gemm`. Beside A and B, TMA loads their scale factors, which
tcgen05.cp copies to tensor memory before the products that read them. C may be quantised in the
epilogue, so that the next product reads it as it is.
"""

from __future__ import annotations

from typing import Any

import basedsl_cute as cute
from basedsl import DSLTypeError
from basedsl_cute import utils
from basedsl_cute.ops.blackwell.config import SCALED, BlackwellGemmKinds, Config
from basedsl_cute.ops.blackwell.gemm import launch_gemm, load_atoms
from basedsl_cute.ops.blackwell.quantize import FORMATS, scales_of
from basedsl_cute.ops.blackwell.shapes import scale_mma, shapes_of, tiled_mma
from basedsl_cute.utils import blackwell_helpers as sm100
from basedsl_cute.utils import blockscaled_layout

__all__ = ["SCALED", "Config", "block_scaled_gemm"]


def _kinds(c: Any, forms: tuple[str, str], out_form: str | None) -> BlackwellGemmKinds:
    """The element types; DSLTypeError for formats that no instruction multiplies."""
    for form in (*forms, *([] if out_form is None else [out_form])):
        if form not in FORMATS:
            raise DSLTypeError(f"{form!r} is no format: {', '.join(FORMATS)}")
    a, b = (FORMATS[form] for form in forms)
    if (a.scale, a.vector) != (b.scale, b.vector):
        raise DSLTypeError(
            f"{forms[0]} is not multiplied by {forms[1]}",
            hint="their factors must be of one type, for as many elements",
        )
    row = utils.LayoutEnum.ROW_MAJOR
    made = None if out_form is None else FORMATS[out_form]
    dtype = c.element_type if made is None else made.element
    major_c = utils.LayoutEnum.from_tensor(c)
    types = a.element, b.element, dtype
    return BlackwellGemmKinds(*types, row, row, major_c, cute.Float32, a.scale, a.vector, made)


def _scale_atoms(
    factors: Any, extents: Any, mma: Any, shapes: Any, kinds: BlackwellGemmKinds, cfg: Config
) -> tuple[Any, ...]:
    """The TMA atoms of the factors of A and B with their tensors of coordinates."""
    tensors = [
        cute.make_tensor(
            cute.recast_ptr(x.iterator, dtype=kinds.scale),
            blockscaled_layout.tile_atom_to_shape_SF(shape, kinds.vector),
        )
        for x, shape in zip(factors, extents, strict=True)
    ]
    one_a, one_b = (
        cute.slice_(x, (None, None, None, 0)) for x in (shapes.scales.a, shapes.scales.b)
    )
    of_a = cute.nvgpu.make_tiled_tma_atom_A(
        sm100.cluster_shape_to_tma_atom_A(cfg.cluster, mma.thr_id), tensors[0], one_a,
        shapes.tiler, mma, shapes.vmnk, internal_type=cute.Int16,
    )  # fmt: skip
    tile = (cfg.block_tile[0], shapes.scales.rows_b, shapes.tiler[2])
    of_b = cute.nvgpu.make_tiled_tma_atom_B(
        sm100.cluster_shape_to_tma_atom_SFB(cfg.cluster, mma.thr_id), tensors[1], one_b, tile,
        scale_mma(kinds, cfg), shapes.scales.vmnk, internal_type=cute.Int16,
    )  # fmt: skip
    return (of_a.atom, of_a.tma_tensor), (of_b.atom, of_b.tma_tensor)


@cute.jit
def block_scaled_gemm(
    a: cute.Tensor,
    factors_a: cute.Tensor,
    b: cute.Tensor,
    factors_b: cute.Tensor,
    c: cute.Tensor,
    blocks: cute.Int32,
    forms: cute.Constexpr,
    cfg: cute.Constexpr = SCALED[0],
    epilogue_op: cute.Constexpr = None,
    operands: tuple = (),
    factors_c: tuple = (),
    out_form: cute.Constexpr = None,
    stream: cute.Constexpr = None,
):
    """Compute C = A B^T, or C = epilogue_op(A B^T, *operands), of block-scaled matrices.

    `a` (M, K, L) and `b` (N, K, L), K contiguous, are the bytes of elements of the two formats
    `forms`, names of `quantize.FORMATS`; of 4-bit formats with K / 2 columns, two elements in a
    byte. `factors_a` and `factors_b` are their factors, as `quantize` writes them. K is a multiple
    of 16 bytes of A and of B; where one of the two has 4 bits and the other 8, of 128.

    C (M, N, L) has any type that Float32 converts to; the extent of its contiguous mode is a
    multiple of 16 bytes. With `out_form`, C is the bytes of that format, N contiguous, and the
    tensor in `factors_c` gets its factors: the epilogue quantises its Float32 results.

    `blocks`, `epilogue_op` and `operands` are those of `ops.blackwell.gemm.gemm`; the tile of `cfg`
    has 128 rows for each block and 128 or 256 columns. Raises DSLTypeError for formats that are not
    multiplied with each other and a `cfg` that exceeds shared or tensor memory; asserts at run time
    that the extents fit together.
    """
    kinds = _kinds(c, forms, out_form)
    a, b = (cute.recast_tensor(x, t) for x, t in ((a, kinds.a), (b, kinds.b)))
    if cute.const_expr(out_form is not None):
        c = cute.recast_tensor(c, kinds.c)
    m, n, batches = c.shape
    k = a.shape[1]
    assert b.shape[1] == k, "A is (M, K) and B (N, K): their K differ"
    assert a.shape[0] == m, "C is (M, N) and A (M, K): their M differ"
    assert b.shape[0] == n, "C is (M, N) and B (N, K): their N differ"
    assert a.shape[2] == batches, "A and C have different numbers of batches"
    assert b.shape[2] == batches, "B and C have different numbers of batches"
    mma = tiled_mma(kinds, cfg)
    shapes = shapes_of(mma, kinds, cfg)
    extents = ((m, k, batches), (n, k, batches))
    given = load_atoms(a, b, mma, shapes, kinds, cfg) + _scale_atoms(
        (factors_a, factors_b), extents, mma, shapes, kinds, cfg
    )
    made = ()
    if cute.const_expr(out_form is not None):
        vector = kinds.form.vector
        assert n % vector == 0, "N must be a multiple of the elements that share a factor"
        made = (scales_of(factors_c[0], m, n // vector, batches),)
    launch_gemm(mma, given, c, blocks, kinds, cfg, epilogue_op, operands, made, stream)
