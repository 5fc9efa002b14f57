"""Loads and stores of whole tensors are wide, and registers stay registers."""

import re

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.testing import filecheck
from basedsl_cute.runtime import from_dlpack, make_fake_tensor


@cute.kernel
def copy_kernel(a: cute.Tensor, b: cute.Tensor, layout: cute.Constexpr):
    tid = cute.arch.thread_idx()[0]
    x = cute.make_tensor(a.iterator, layout) if layout is not None else a[tid, None]
    y = cute.make_tensor(b.iterator, layout) if layout is not None else b[tid, None]
    y.store(x.load())


@cute.jit
def copy(a: cute.Tensor, b: cute.Tensor, layout: cute.Constexpr):
    copy_kernel(a, b, layout).launch(grid=(1, 1, 1), block=(1, 1, 1))


def widths(text, op):
    """The elements of every access, from the IR."""
    types = re.findall(rf'"cute\.{op}"\(.*?(?:-> |: \()(vector<(\d+)x\w+>|\w+)', text)
    return [int(n or 1) for _, n in types]


L = cute.make_layout
CASES = {
    "contiguous": (L(16), 16, [4] * 4),
    "half": (L(6), 16, [2] * 3),
    "odd": (L(5), 16, [1] * 5),
    "weakly aligned": (L(16), 8, [2] * 8),
    "row-major": (L((2, 8), stride=(8, 1)), 16, [4] * 4),
    "padded rows": (L((2, 8), stride=(10, 1)), 16, [2] * 8),
    "strided": (L((4,), stride=(2,)), 16, [1] * 4),
    "broadcast": (L((3, 4), stride=(0, 1)), 16, [4]),
    "all one": (L((4,), stride=(0,)), 16, [1]),
    "nested": (L(((2, 2), 4), stride=((1, 8), 2)), 16, [4] * 4),
    "interleaved": (L((2, 4), stride=(4, 1)), 16, [4] * 2),
    "swizzled": (cute.make_composed_layout(cute.make_swizzle(2, 2, 3), 0, L(64)), 16, [4] * 16),
    "finely swizzled": (
        cute.make_composed_layout(cute.make_swizzle(2, 1, 3), 0, L(8)),
        16,
        [2] * 4,
    ),
    "function": (cute.make_composed_layout(lambda i: 7 - i, 0, L(8)), 16, [1] * 8),
}


@pytest.mark.parametrize("case", CASES)
def test_widths_and_values(sim, case):
    layout, align, expected = CASES[case]
    a, b = np.arange(64, dtype="f4"), np.zeros(64, "f4")
    x, y = from_dlpack(a, assumed_align=align), from_dlpack(b, assumed_align=align)
    compiled = cute.compile(copy, x, y, layout)
    assert widths(compiled.__mlir__, "load") == expected
    assert widths(compiled.__mlir__, "store") == expected
    compiled(x, y)
    reached = {layout(i) for i in range(cute.size(layout))}
    np.testing.assert_array_equal(b, [i if i in reached else 0 for i in range(64)])


@pytest.mark.parametrize(
    "divisibility,align,expected",
    [(4, 16, [4, 4]), (2, 16, [2] * 4), (1, 16, [1] * 8), (8, 8, [2] * 4), (8, 4, [1] * 8)],
)
def test_promises_about_dynamic_strides(sim, divisibility, align, expected):
    fake = make_fake_tensor(
        cute.Float32,
        (cute.sym_int(), 8),
        (cute.sym_int(divisibility), 1),
        assumed_align=align,
    )
    compiled = cute.compile(copy, fake, fake, None)
    assert widths(compiled.__mlir__, "load") == expected


@pytest.mark.parametrize("dtype,n", [("f2", 8), ("i1", 16), ("f8", 2), ("?", 16), ("f4", 4)])
def test_sixteen_bytes_of_every_type(sim, dtype, n):
    a, b = np.ones(32, dtype), np.zeros(32, dtype)
    x, y = from_dlpack(a, assumed_align=16), from_dlpack(b, assumed_align=16)
    compiled = cute.compile(copy, x, y, cute.make_layout(32))
    assert widths(compiled.__mlir__, "load") == [n] * (32 // n)
    compiled(x, y)
    np.testing.assert_array_equal(a, b)


# Machine code ------------------------------------------------------------------------------------


@pytest.fixture
def sm90(monkeypatch):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_90a")


def ptx(function, *args):
    return cute.compile(function, *args).stages.text("ptx")


@cute.kernel
def tile_kernel(a: cute.Tensor, b: cute.Tensor):
    tid = cute.arch.thread_idx()[0]
    bid = cute.arch.block_idx()[0]
    thr_layout, val_layout = (
        cute.make_layout((4, 32), stride=(32, 1)),
        cute.make_layout((4, 4), stride=(4, 1)),
    )
    tiler, tv = cute.make_layout_tv(thr_layout, val_layout)
    x = cute.composition(cute.zipped_divide(a, tiler)[(None, None), bid], tv)[tid, None]
    y = cute.composition(cute.zipped_divide(b, tiler)[(None, None), bid], tv)[tid, None]
    r = cute.make_fragment_like(x)
    r.store(x.load())
    for i in range(cute.size(r)):
        r[i] = r[i] * 2.0
    s = cute.make_rmem_tensor(cute.size(r), cute.Float32)
    for i in cute.range(cute.size(r), unroll_full=True):
        s[i] = r[i] + 1.0
    for i in cute.range_constexpr(cute.size(r)):
        r[i] = s[i]
    y.store(r.load())


@cute.jit
def tile(a: cute.Tensor, b: cute.Tensor):
    tile_kernel(a, b).launch(grid=(16, 1, 1), block=(128, 1, 1))


def test_static_layouts_need_no_division_and_no_local_memory(sm90):
    a = from_dlpack(np.zeros((64, 512), "f4"), assumed_align=16)
    text = ptx(tile, a, a)
    assert not re.search(r"\b(div|rem)\.", text)
    assert ".local" not in text
    assert text.count("ld.global.v4.b32") == 4
    assert text.count("st.global.v4.b32") == 4
    assert "bra" not in text  # the loops are unrolled


def test_the_same_on_the_simulator(sim):
    a = np.arange(64 * 512, dtype="f4").reshape(64, 512)
    b = np.zeros_like(a)
    tile(from_dlpack(a, assumed_align=16), from_dlpack(b, assumed_align=16))
    np.testing.assert_array_equal(b, a * 2 + 1)


def test_dynamic_coordinates_use_unsigned_arithmetic(sim, monkeypatch):
    monkeypatch.setenv("CUTE_DSL_CHECK_COORDINATES", "off")
    a = from_dlpack(np.zeros((64, 512), "f4"), assumed_align=16)
    text = cute.compile(tile, a, a).__mlir__
    assert not re.search(r"arith\.(floordivsi|divsi|remsi|ceildivsi|cmpi|select)\b", text)
    filecheck(
        text,
        """
        CHECK: gpu.func @tile_kernel
        CHECK-SAME: !cute.memref<f32, "gmem align<16>", "(64,512):(512,1)">
        CHECK: "cute.view"
        CHECK-SAME: -> !cute.memref<f32, "gmem align<16>", "(16,128):(512,1)">
        CHECK: "cute.view"
        CHECK-SAME: -> !cute.memref<f32, "gmem align<16>", "(
        CHECK: "cute.alloc_rmem"() {bytes = 64 : i64}
        CHECK: "cute.load"
        CHECK-SAME: {alignment = 16 : i64}
        CHECK-SAME: -> vector<4xf32>
        CHECK: scf.for
        CHECK: "cute.store"{{.*}} {alignment = 16 : i64} : (vector<4xf32>, !cute.memref<f32, "gmem
        """,
    )


@cute.kernel
def odd_kernel(a: cute.Tensor, b: cute.Tensor):
    tid = cute.arch.thread_idx()[0]
    b[tid] = a[tid]


@cute.jit
def odd(a: cute.Tensor, b: cute.Tensor):
    odd_kernel(a, b).launch(grid=(1, 1, 1), block=(90, 1, 1))


def test_linear_indices_by_odd_extents_multiply(sm90):
    a = from_dlpack(np.zeros((9, 10), "f4"))
    assert not re.search(r"\b(div|rem)\.", ptx(odd, a, a))


def test_linear_indices_by_odd_extents(sim):
    a, b = np.arange(90, dtype="f4").reshape(9, 10), np.zeros((9, 10), "f4")
    odd(from_dlpack(a), from_dlpack(b))
    np.testing.assert_array_equal(a, b)


@cute.kernel
def math_kernel(a: cute.Tensor, b: cute.Tensor):
    x = a.load()
    b.store(cute.math.exp2(x, fastmath=True) + cute.math.rsqrt(x, fastmath=True))


@cute.jit
def fast(a: cute.Tensor, b: cute.Tensor):
    math_kernel(a, b).launch(grid=(1, 1, 1), block=(1, 1, 1))


def test_fastmath_is_an_instruction(sm90):
    a = from_dlpack(np.zeros(4, "f4"), assumed_align=16)
    text = ptx(fast, a, a)
    assert text.count("ex2.approx") == 4
    assert text.count("rsqrt.approx") == 4


@cute.kernel
def reduce_kernel(a: cute.Tensor, b: cute.Tensor):
    x = a.load()
    for _ in range(3):
        x = x * 2.0
    b[0] = x.reduce(cute.ReductionOp.MAX, 0.0)
    b[1] = cute.where(x > 0, x, -x).reduce(cute.ReductionOp.ADD, 0.0)


@cute.jit
def reduced(a: cute.Tensor, b: cute.Tensor):
    reduce_kernel(a, b).launch(grid=(1, 1, 1), block=(1, 1, 1))


def test_vectors_live_in_registers(sm90):
    text = ptx(
        reduced, from_dlpack(np.zeros(32, "f4"), assumed_align=16), from_dlpack(np.zeros(2, "f4"))
    )
    assert ".local" not in text
    assert text.count("ld.global.v4.b32") == 8
    assert "max.f32" in text


@cute.kernel
def predicate_kernel(a: cute.Tensor, b: cute.Tensor, n: cute.Int32):
    tid = cute.arch.thread_idx()[0]
    x = cute.local_tile(a, (8,), (tid,))
    y = cute.local_tile(b, (8,), (tid,))
    where = cute.local_tile(cute.make_identity_tensor(a.shape), (8,), (tid,))
    inside = cute.make_rmem_tensor(8, cute.Boolean)
    r = cute.make_fragment_like(x)
    r.fill(0)
    for i in range(8):
        inside[i] = cute.elem_less(where[i], (n,))
    for i in range(8):
        if inside[i]:
            r[i] = x[i]
    y.store(cute.where(inside.load(), r.load(), 7))


@cute.jit
def predicated(a: cute.Tensor, b: cute.Tensor, n: cute.Int32):
    predicate_kernel(a, b, n).launch(grid=(1, 1, 1), block=(4, 1, 1))


def test_predicates_live_in_registers(sm90):
    x = from_dlpack(np.zeros(32, "f4"), assumed_align=16)
    text = ptx(predicated, x, x, 20)
    assert ".local" not in text
    assert text.count("st.global.v4.b32") == 2


def test_predicates(sim):
    x, y = np.arange(32, dtype="f4"), np.zeros(32, "f4")
    predicated(from_dlpack(x, assumed_align=16), from_dlpack(y, assumed_align=16), 20)
    np.testing.assert_array_equal(y, np.where(x < 20, x, 7))


@cute.kernel
def huge_kernel(a: cute.Tensor, b: cute.Tensor):
    bid = cute.arch.block_idx()[0]
    tid = cute.arch.thread_idx()[0]
    tile = cute.local_tile(a, (1, 128), (bid, tid))
    b[0] = tile[5] + a[(1 << 19) + 3, 7] + a[bid, 1]


@cute.jit
def huge(a: cute.Tensor, b: cute.Tensor):
    huge_kernel(a, b).launch(grid=(1, 1, 1), block=(1, 1, 1))


@pytest.mark.parametrize("shape", ["static", "dynamic"])
def test_offsets_beyond_31_bits(sim, shape):
    rows = 1 << 20 if shape == "static" else cute.sym_int64()
    a = make_fake_tensor(cute.Float32, (rows, 1 << 12), (1 << 12, 1))
    b = make_fake_tensor(cute.Float32, (1,), (1,))
    text = cute.compile(huge, a, b).__mlir__
    assert "arith.muli" in text
    assert not re.search(r"arith\.muli .* : i32", text)
    assert f"arith.constant {((1 << 19) + 3) * (1 << 12) + 7} : i64" in text


def test_small_tensors_have_32_bit_offsets(sim):
    a = make_fake_tensor(cute.Float32, (1 << 10, 1 << 12), (1 << 12, 1))
    b = make_fake_tensor(cute.Float32, (1,), (1,))
    assert "arith.extsi" not in cute.compile(odd, a, b).__mlir__
