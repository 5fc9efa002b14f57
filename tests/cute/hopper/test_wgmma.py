"""wgmma: every canonical layout of its operands, A in registers, and descriptors by hand."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLTypeError
from basedsl_cute import algebra, arch
from basedsl_cute.nvgpu import warpgroup
from basedsl_cute.nvgpu.matrix_descriptor import canonical


@cute.kernel
def multiply(
    a: cute.Tensor,
    b: cute.Tensor,
    c: cute.Tensor,
    kind_a: cute.Constexpr,
    kind_b: cute.Constexpr,
    source: cute.Constexpr,
    n: cute.Constexpr,
):
    major = warpgroup.OperandMajorMode
    major_a = major.MN if cute.const_expr(kind_a.startswith("MN")) else major.K
    major_b = major.MN if cute.const_expr(kind_b.startswith("MN")) else major.K
    op = warpgroup.MmaF16BF16Op(cute.Float16, cute.Float32, (64, n, 16), source, major_a, major_b)
    mma = warpgroup.WarpgroupMma(op)
    k = a.shape[1] if cute.const_expr(isinstance(a.shape[1], int)) else 64
    smem = cute.utils.SmemAllocator()
    tiles = []
    for kind, rows in ((kind_a, 64), (kind_b, n)):
        atom = warpgroup.make_smem_layout_atom(kind, cute.Float16)
        layout = cute.tile_to_shape(atom, (rows, k), (0, 1))
        swizzle = cute.recast_layout(8, 16, layout.inner)
        tiles.append(smem.allocate_tensor(cute.Float16, layout.outer, 1024, swizzle))
    sa, sb = tiles
    thread = arch.thread_idx()[0]
    for i in range(thread, 64 * k, 128):
        sa[i % 64, i // 64] = a[i % 64, i // 64]
    for i in range(thread, n * k, 128):
        sb[i % n, i // n] = b[i % n, i // n]
    arch.fence_view_async_shared()
    arch.sync_threads()
    mine = mma.get_slice(thread)
    ra = mma.make_fragment_A(mine.partition_A(sa))
    if cute.const_expr(source is warpgroup.OperandSource.RMEM):
        cute.autovec_copy(mine.partition_A(sa), ra)
    rb = mma.make_fragment_B(mine.partition_B(sb))
    acc = mma.make_fragment_C(mma.partition_shape_C((64, n)))
    acc.fill(1.0)
    warpgroup.fence()
    mma.gemm(acc, ra, rb, acc)
    warpgroup.commit_group()
    warpgroup.wait_group(0)
    tc = mine.partition_C(c)
    for i in cute.range_constexpr(cute.size(acc)):
        tc[i] = acc[i]


@cute.jit
def host(
    a: cute.Tensor,
    b: cute.Tensor,
    c: cute.Tensor,
    kind_a: cute.Constexpr,
    kind_b: cute.Constexpr,
    source: cute.Constexpr,
    n: cute.Constexpr,
):
    static = cute.make_tensor(c.iterator, cute.make_layout((64, n), stride=(n, 1)))
    multiply(a, b, static, kind_a, kind_b, source, n).launch(grid=1, block=128)


def check(kind_a, kind_b, source=warpgroup.OperandSource.SMEM, n=64):
    rng = np.random.default_rng(2)
    a = rng.standard_normal((64, 64)).astype(np.float16)
    b = rng.standard_normal((n, 64)).astype(np.float16)
    c = np.full((64, n), np.nan, np.float32)
    host(a, b, c, kind_a, kind_b, source, n)
    expected = a.astype(np.float32) @ b.astype(np.float32).T + 1
    np.testing.assert_allclose(c, expected, atol=1e-4)


@pytest.mark.parametrize("kind", algebra.SMEM_ATOM_KINDS)
def test_every_layout_of_a(hopper, kind):
    check(kind, "K_SW128")


@pytest.mark.parametrize("kind", algebra.SMEM_ATOM_KINDS)
def test_every_layout_of_b(hopper, kind):
    check("K_SW64", kind)


@pytest.mark.parametrize("n", [8, 24, 256])
def test_widths(hopper, n):
    check("K_SW128", "K_SW128", n=n)


def test_a_in_registers(hopper):
    check("K_SW128", "K_SW128", warpgroup.OperandSource.RMEM)


def test_descriptors_by_hand():
    """PTX ISA, "Strides": 8 rows of 128 bytes are 1024 bytes apart."""
    layout = algebra.tile_to_shape(algebra.gmma_smem_atom("K_SW128", 16), (64, 64), (0, 1)).outer
    found = canonical(algebra.composition(layout, ((64), (16))), 3, True, 16)
    assert (found.stride, found.swizzle_bits) == (1024, 3)
    assert found.constant_bits == 1 << 62 | 64 << 32 | 1 << 16


def test_a_layout_that_wgmma_cannot_read():
    plain = algebra.Layout((64, 16), (16, 1))
    with pytest.raises(DSLTypeError, match="cannot read a K-major operand"):
        canonical(plain, 3, True, 16)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((cute.Float32, cute.Float32, (64, 64, 16)), "takes Float16 or BFloat16"),
        ((cute.Float16, cute.Float16, (64, 64, 16)), "accumulates Float32"),
        ((cute.Float16, cute.Float32, (64, 12, 16)), "no wgmma of shape"),
        ((cute.Float16, cute.Float32, (128, 64, 16)), "no wgmma of shape"),
    ],
)
def test_operations_that_there_are_not(arguments, message):
    with pytest.raises(DSLTypeError, match=message):
        warpgroup.MmaF16BF16Op(*arguments)
