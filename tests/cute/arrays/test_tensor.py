"""Promises of the caller about arrays: static and dynamic leaves, promises and their checks."""

import ctypes
import itertools
import math

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLError
from basedsl.testing import TraceLog
from basedsl_cute.runtime import from_dlpack

SEEN = TraceLog()


@cute.kernel
def look_kernel(a: cute.Tensor, b: cute.Tensor):
    SEEN.append(str(a))
    tid = cute.arch.thread_idx()[0]
    if tid < cute.size(a):
        b[tid] = a[tid] + 1


@cute.jit
def look(a: cute.Tensor, b: cute.Tensor):
    look_kernel(a, b).launch(grid=(1, 1, 1), block=(128, 1, 1))


def seen_by_the_kernel(a, shape, dtype="f4"):
    SEEN.clear()
    look.forget()
    array = np.arange(np.prod(shape), dtype=dtype).reshape(shape)
    out = np.zeros_like(array)
    look(a(array), from_dlpack(out))
    np.testing.assert_array_equal(out, array + 1)
    return SEEN[0].partition(" o ")[2][:-1]


def test_attributes():
    x = np.zeros((4, 8), "f2")
    t = from_dlpack(x)
    assert (t.shape, t.stride, str(t.layout)) == ((4, 8), (8, 1), "(4,8):(8,1)")
    assert (t.element_type, t.memspace, t.leading_dim) == (cute.Float16, cute.AddressSpace.gmem, 1)
    assert t.data_ptr == x.ctypes.data == int(t.iterator)
    assert str(t) == "Tensor<Float16, gmem, align<2>, (4,8):(8,1)>"
    np.testing.assert_array_equal(np.from_dlpack(t), x)
    assert str(from_dlpack(x.T).mark_layout_dynamic().layout) == "(?,?):(1,?)"


@pytest.mark.parametrize(
    "mark,layout",
    [
        (lambda t: t, "(4,8):(8,1)"),
        (lambda t: t.mark_layout_dynamic(), "(?,?):(?,1)"),
        (lambda t: t.mark_layout_dynamic(leading_dim=-1), "(?,?):(?,1)"),
        (lambda t: t.mark_compact_shape_dynamic(0), "(?,8):(8,1)"),
        (lambda t: t.mark_compact_shape_dynamic(1), "(4,?):(?,1)"),
        (lambda t: t.mark_compact_shape_dynamic(-1, divisibility=4), "(4,?{div=4}):(?{div=4},1)"),
        (
            lambda t: t.mark_compact_shape_dynamic(1, (0, 1), 8).mark_compact_shape_dynamic(0),
            "(?,?{div=8}):(?{div=8},1)",
        ),
    ],
)
def test_marks_decide_what_is_static(sim, mark, layout):
    assert seen_by_the_kernel(lambda x: mark(from_dlpack(x)), (4, 8)) == layout


def test_a_middle_mode(sim):
    def mark(x):
        return from_dlpack(x).mark_compact_shape_dynamic(1, divisibility=2)

    assert seen_by_the_kernel(mark, (2, 6, 5)) == "(2,?{div=2},5):(?{div=10},5,1)"


@pytest.mark.parametrize("modes", list(itertools.permutations(range(3))))
def test_marks_in_any_order(sim, modes):
    """Strides promise what the marked extents do, not what these were before they were marked."""

    def mark(x):
        t = from_dlpack(x)
        for mode in modes:
            t = t.mark_compact_shape_dynamic(mode, divisibility=(1, 2, 4)[mode])
        return t

    layout = "(?,?{div=2},?{div=4}):(?{div=8},?{div=4},1)"
    assert seen_by_the_kernel(mark, (2, 6, 4)) == layout


@pytest.mark.parametrize(
    "shape, layout",
    [
        ((4, 8), "(?,?):(?{div=4},1)"),
        ((4, 6), "(?,?):(?,1)"),
        ((1, 6), "(?,?):(?{div=4},1)"),  # the stride of an extent 1 does not matter
        ((2, 3, 8), "(?,?,?):(?{div=4},?{div=4},1)"),
        ((8,), "(?):(1)"),
    ],
)
def test_raw_arrays_are_dynamic_but_for_strides_of_16_bytes(sim, shape, layout):
    assert seen_by_the_kernel(lambda x: x, shape) == layout


def test_raw_arrays_are_compiled_at_most_twice_for_their_strides(sim):
    @cute.jit
    def host(x: cute.Tensor):
        pass

    for columns in (4, 5, 8, 9, 12, 7, 16):
        host(np.zeros((3, columns), np.float32))
    assert len(host.variants.by_key) == 2


def test_compiled_code_checks_the_strides_it_counts_on(sim):
    @cute.jit
    def host(x: cute.Tensor):
        pass

    compiled = cute.compile(host, np.zeros((4, 8), np.float32))
    compiled(np.zeros((3, 12), np.float32))
    with pytest.raises(DSLError, match="the stride 9 of mode 0 is no multiple of 4") as caught:
        compiled(np.zeros((4, 9), np.float32))
    assert "mark_layout_dynamic" in str(caught.value)
    general = cute.compile(host, from_dlpack(np.zeros((4, 8), np.float32)).mark_layout_dynamic())
    general(np.zeros((4, 9), np.float32))


def test_a_rank_1_and_a_rank_0_layout(sim):
    assert seen_by_the_kernel(from_dlpack, (5,)) == "(5):(1)"


def test_zero_strides_stay_static_under_marks():
    x = np.broadcast_to(np.zeros(4, "f4"), (3, 4))
    assert str(from_dlpack(x).mark_layout_dynamic().layout) == "(?,?):(0,1)"


ERRORS = {
    "leading mode .* is ambiguous": lambda: from_dlpack(np.zeros((1, 1))).mark_layout_dynamic(),
    "leading_dim=0 has stride 8": lambda: from_dlpack(np.zeros((4, 8))).mark_layout_dynamic(0),
    "leading_dim=2 is no mode": lambda: from_dlpack(np.zeros((4, 8))).mark_layout_dynamic(2),
    "mode=5 is no mode": lambda: from_dlpack(np.zeros((4, 8))).mark_compact_shape_dynamic(5),
    "no multiple of 3": lambda: from_dlpack(np.zeros((4, 8))).mark_compact_shape_dynamic(
        1, divisibility=3
    ),
    "is not compact in the order": lambda: from_dlpack(np.zeros((4, 8))).mark_compact_shape_dynamic(
        1, stride_order=(1, 0)
    ),
    "does not list the modes": lambda: from_dlpack(np.zeros((4, 8))).mark_compact_shape_dynamic(
        1, stride_order=(1, 1)
    ),
    "pass stride_order": lambda: from_dlpack(np.zeros((4, 1, 8))).mark_compact_shape_dynamic(1),
    "not compact": lambda: from_dlpack(np.zeros((4, 8))[:, ::2]).mark_compact_shape_dynamic(0),
    "only aligned to 4 bytes": lambda: from_dlpack(aligned(64)[1:], assumed_align=16),
    "power of two": lambda: from_dlpack(np.zeros(4), assumed_align=12),
    "take 32 bits": lambda: setattr(from_dlpack(np.zeros(4, "f4")), "element_type", cute.Int8),
    "not an array": lambda: from_dlpack([1, 2]),
}


def aligned(n):
    buffer = np.zeros(n + 16, "f4")
    return buffer[(-buffer.ctypes.data // 4) % 4 :][:n]


@pytest.mark.parametrize("which", ERRORS)
def test_errors(which):
    with pytest.raises(Exception, match=which):
        ERRORS[which]()


def test_tvm_ffi_changes_nothing(sim):
    def mark(x):
        return from_dlpack(x, enable_tvm_ffi=True).mark_layout_dynamic()

    assert seen_by_the_kernel(mark, (4, 8)) == "(?,?):(?,1)"


def test_stride_order_may_be_needed(sim):
    def mark(x):
        return from_dlpack(x).mark_compact_shape_dynamic(0, stride_order=(0, 1, 2))

    assert seen_by_the_kernel(mark, (4, 1, 8)) == "(?,1,8):(8,8,1)"


@cute.kernel
def decode_kernel(a: cute.Tensor, b: cute.Tensor):
    tid = cute.arch.thread_idx()[0]
    b[tid] = a[tid].to(cute.Float32)


@cute.jit
def decode(a: cute.Tensor, b: cute.Tensor):
    decode_kernel(a, b).launch(grid=(1, 1, 1), block=(4, 1, 1))


def test_element_type_of_stored_bytes(sim):
    import ml_dtypes

    x = np.array([1.5, -2, 0.25, 448], ml_dtypes.float8_e4m3fn)
    t = from_dlpack(x.view("u1"))
    t.element_type = cute.Float8E4M3FN
    out = np.zeros(4, "f4")
    decode(t, out)
    np.testing.assert_array_equal(out, x.astype("f4"))


def test_each_layout_is_compiled_apart_and_equal_ones_together(sim):
    SEEN.clear()
    for shape in [(2, 4), (2, 4), (4, 2)]:
        x = np.zeros(shape, "f4")
        look(from_dlpack(x), from_dlpack(x.copy()))
    assert len(SEEN) == 2


def test_compiled_code_takes_what_keeps_its_promises(sim):
    x, out = np.arange(32, dtype="f4").reshape(4, 8), np.zeros((4, 8), "f4")
    weak = from_dlpack(x).mark_compact_shape_dynamic(1, divisibility=4)
    compiled = cute.compile(look, weak, from_dlpack(out).mark_layout_dynamic())
    for columns in (4, 8):
        y = np.arange(4 * columns, dtype="f4").reshape(4, columns)
        result = np.zeros_like(y)
        compiled(y, result)
        np.testing.assert_array_equal(result, y + 1)
    wrong = {
        "extent 6 of mode 1 is no multiple of 4": np.zeros((4, 6), "f4"),
        "extent of mode 0 is 3, not 4": np.zeros((3, 8), "f4"),
        "stride 1 of mode 0 is no multiple of 4": np.zeros((8, 4), "f4").T,
        "elements are Float64": np.zeros((4, 8)),
        "it has 1 mode": np.zeros(8, "f4"),
    }
    for message, array in wrong.items():
        with pytest.raises(Exception, match=f"'a' was compiled as .*{message}"):
            compiled(array, out)
    frozen = x.copy()
    frozen.flags.writeable = False
    with pytest.raises(Exception, match=r"'b' was compiled as .*read-only"):
        compiled(x, frozen)


def test_the_size_of_arrays_whose_elements_share_memory():
    # 2^32 coordinates of one element: counted in 32 bits they are none, and nothing would run
    @cute.jit
    def sizes(a: cute.Tensor):
        return cute.size(a), cute.ceil_div(cute.size(a), 256), a.shape[0]

    for extents in [(65536, 65536), (46341, 46341), (46340, 46340), (3, 5)]:
        size = math.prod(extents)
        for _ in range(3):  # the third call is native
            found = sizes(np.broadcast_to(np.float32(2), extents))
            assert found == (size, -(-size // 256), extents[0])


def test_large_arrays_have_64_bit_layouts():
    buffer = (ctypes.c_float * 1)()
    view = np.lib.stride_tricks.as_strided(
        np.frombuffer(buffer, "f4"), (2, 1), (1 << 34, 4), writeable=False
    )
    from basedsl_cute.host.tensor_argument import tensor_argument

    assert tensor_argument(view, None, "a").wide
    assert not tensor_argument(np.zeros(4, "f4"), None, "a").wide
    with pytest.raises(Exception, match="do not fit 32 bits"):
        from_dlpack(view, use_32bit_stride=True)
