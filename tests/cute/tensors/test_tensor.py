"""Views of tensors (tiles, partitions, slices) address what NumPy's indexing does."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLTypeError
from basedsl_cute.runtime import from_dlpack

DTYPES = ["f4", "f2", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "?"]


def values(shape, dtype):
    flat = np.arange(np.prod(shape)) % 101
    return (flat % 2 == 0 if dtype == "?" else flat).reshape(shape).astype(dtype)


def as_argument(array, kind):
    if kind == "raw":
        return array
    tensor = from_dlpack(array)
    return tensor.mark_layout_dynamic() if kind == "dynamic" else tensor


@cute.kernel
def copy_tiles_kernel(a: cute.Tensor, b: cute.Tensor):
    tid = cute.arch.thread_idx()[0]
    bid = cute.arch.block_idx()[0]
    threads = cute.make_layout((4, 8), stride=(8, 1))
    tiled_a = cute.zipped_divide(a, (8, 16))
    tiled_b = cute.zipped_divide(b, (8, 16))
    coords = cute.zipped_divide(cute.make_identity_tensor(a.shape), (8, 16))
    mine = cute.local_partition(tiled_a[(None, None), bid], threads, tid)
    theirs = cute.local_partition(tiled_b[(None, None), bid], threads, tid)
    where = cute.local_partition(coords[(None, None), bid], threads, tid)
    registers = cute.make_fragment_like(mine)
    inside = cute.make_rmem_tensor(mine.shape, cute.Boolean)
    for i in range(cute.size(mine)):
        inside[i] = cute.elem_less(where[i], a.shape)
    for i in range(cute.size(mine)):
        if inside[i]:
            registers[i] = mine[i]
    for i in range(cute.size(mine)):
        if inside[i]:
            theirs[i] = registers[i]


@cute.jit
def copy_tiles(a: cute.Tensor, b: cute.Tensor):
    blocks = cute.size(cute.zipped_divide(a, (8, 16)), mode=[1])
    copy_tiles_kernel(a, b).launch(grid=(blocks, 1, 1), block=(32, 1, 1))


@pytest.mark.parametrize("dtype", DTYPES)
def test_predicated_partition_of_every_type(sim, dtype):
    a = values((13, 21), dtype)
    b = np.zeros_like(a)
    copy_tiles(a, b)
    np.testing.assert_array_equal(a, b)


def test_bfloat16(sim):
    import ml_dtypes

    a = values((13, 21), "f4").astype(ml_dtypes.bfloat16)
    b = np.zeros_like(a)
    copy_tiles(a, b)
    np.testing.assert_array_equal(a.view("u2"), b.view("u2"))


@pytest.mark.parametrize("kind", ["raw", "static", "dynamic"])
@pytest.mark.parametrize("major", ["row", "column", "strided"])
@pytest.mark.parametrize("shape", [(8, 16), (16, 48), (1, 1), (9, 33)])
def test_layouts_of_the_caller(sim, kind, major, shape):
    def laid_out(x):
        if major == "row":
            return x
        if major == "column":
            return np.asfortranarray(x)
        wide = np.zeros((shape[0] * 2, shape[1] * 3), x.dtype)
        wide[::2, ::3] = x
        return wide[::2, ::3]

    if shape == (1, 1) and kind == "dynamic":
        pytest.skip("which mode leads is ambiguous")
    a, b = laid_out(values(shape, "f4")), laid_out(np.zeros(shape, "f4"))
    copy_tiles(as_argument(a, kind), as_argument(b, kind))
    np.testing.assert_array_equal(a, b)


@cute.kernel
def views_kernel(a: cute.Tensor, out: cute.Tensor):
    out[0] = a[5]  # linear, first mode fastest
    out[1] = a[1, 2]
    out[2] = a[None, 2][3]
    grouped = cute.group_modes(a, 0, 2)
    out[3] = grouped[((1, 2),)]
    nested = cute.logical_divide(a, (2, 3))
    out[4] = nested[(1, 0), (2, 1)]
    out[5] = nested[1, 5]
    out[6] = cute.flatten(nested)[1, 0, 2, 1]
    out[7] = cute.select(a, mode=[1, 0])[2, 1]
    out[8] = cute.coalesce(grouped)[7]
    out[9] = cute.domain_offset((1, 1), a)[1, 2]
    out[10] = cute.local_tile(a, (2, 3), (1, 1))[0, 1]
    out[11] = cute.composition(a, (cute.make_layout(2, 2), cute.make_layout(3, 2)))[1, 2]
    out[12] = cute.slice_(a, (2, None))[4]
    out[13] = cute.get(cute.domain_offset((0, 3), a), mode=[0])[2]
    out[14] = cute.tiled_divide(a, (2, 3))[(1, 2), 1, 1]
    out[15] = cute.flat_divide(a, (2, 3))[1, 2, 1, 1]
    gathered = cute.make_tensor(
        a.iterator, cute.make_composed_layout(lambda i: (i * 5) % 24, 0, cute.make_layout(24))
    )
    out[16] = gathered[7]
    tid = cute.arch.thread_idx()[0]
    out[17] = gathered[tid + 9]
    out[18] = cute.make_tensor(a.iterator + 4, cute.make_layout((2, 2), stride=(6, 2)))[1, 1]
    broadcast = cute.make_tensor(a.iterator, cute.make_layout((4, 3), stride=(0, 1)))
    out[19] = broadcast[3, 2]
    out[20] = cute.filter_zeros(broadcast)[2]


@cute.jit
def views(a: cute.Tensor, out: cute.Tensor):
    views_kernel(a, out).launch(grid=(1, 1, 1), block=(1, 1, 1))


@pytest.mark.parametrize("kind", ["raw", "static", "dynamic"])
def test_each_view(sim, kind):
    a = np.arange(24, dtype=np.int32).reshape(4, 6)
    out = np.full(21, -1, np.int32)
    views(as_argument(a, kind), out)
    column = a.T.ravel()  # linear indices: first mode fastest
    expected = [
        column[5], a[1, 2], a[3, 2], a[1, 2],
        a[1, 5], a[1, 5], a[1, 5], a[1, 2],
        column[7], a[2, 3], a[2, 4], a[2, 4],
        a[2, 4], a[2, 3], a[3, 5], a[3, 5],
        (7 * 5) % 24, (9 * 5) % 24, 4 + 6 + 2, 2, 2,
    ]  # fmt: skip
    np.testing.assert_array_equal(out, expected)


@cute.kernel
def carried_kernel(a: cute.Tensor, out: cute.Tensor, steps: cute.Int32):
    tid = cute.arch.thread_idx()[0]
    row = a[0, None]
    p = a.iterator
    for i in range(steps):
        row = a[i, None]
        p = p + a.shape[1]
    if tid == 1:
        row = a[0, None]
    tile = cute.local_tile(a, (2, 2), (0, 0))
    while tile[0, 0] < 6:
        tile = cute.domain_offset((1, 0), tile)
    out[tid, 0] = row[1]
    out[tid, 1] = p.load()
    out[tid, 2] = tile[0, 1]


@cute.jit
def carried(a: cute.Tensor, out: cute.Tensor, steps: cute.Int32):
    carried_kernel(a, out, steps).launch(grid=(1, 1, 1), block=(2, 1, 1))


def test_tensors_and_pointers_through_control_flow(sim):
    a = np.arange(12, dtype=np.int32).reshape(4, 3)
    out = np.zeros((2, 3), np.int32)
    carried(a, out, 3)
    np.testing.assert_array_equal(out, [[7, 9, 7], [1, 9, 7]])


@cute.kernel
def swizzle_kernel(a: cute.Tensor, b: cute.Tensor, composed: cute.Constexpr, align: cute.Constexpr):
    tid = cute.arch.thread_idx()[0]
    layout = cute.make_layout((32, 64), stride=(64, 1))
    smem = cute.utils.SmemAllocator()
    if composed == "layout":
        inner = cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, layout)
        s = smem.allocate_tensor(a.element_type, inner, align)
    elif composed == "function":  # the swizzle stays in the layout
        inner = cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, layout)
        s = smem.allocate_tensor(a.element_type, layout, align).with_layout(inner)
    else:
        s = smem.allocate_tensor(a.element_type, layout, align, swizzle=cute.make_swizzle(3, 4, 3))
    s[tid, None].store(a[tid, None].load())
    cute.arch.sync_threads()
    for i in range(64):
        b[i, tid] = s[tid, i]
    tile = cute.local_tile(s, (8, 16), (tid // 8, 2))
    b[64, tid] = tile[tid % 8, 3]


@cute.jit
def through_swizzle(
    a: cute.Tensor, b: cute.Tensor, composed: cute.Constexpr, align: cute.Constexpr
):
    swizzle_kernel(a, b, composed, align).launch(grid=(1, 1, 1), block=(32, 1, 1))


@pytest.mark.parametrize("align", [16, 1024])
@pytest.mark.parametrize("composed", ["layout", "function", "pointer"])
def test_swizzled_shared_memory(sim, composed, align):
    a = np.arange(32 * 64, dtype=np.float32).reshape(32, 64).astype(np.float16)
    b = np.zeros((65, 32), np.float16)
    through_swizzle(from_dlpack(a, assumed_align=16), b, composed, align)
    np.testing.assert_array_equal(b[:64], a.T)
    np.testing.assert_array_equal(b[64], a[:, 35])


def test_a_swizzle_on_the_pointer_means_the_same_as_on_elements(sim):
    a = from_dlpack(np.zeros((32, 64), "f2"))
    b = from_dlpack(np.zeros((65, 32), "f2"))
    texts = [
        cute.compile(through_swizzle, a, b, composed, 1024).__mlir__
        for composed in ("layout", "pointer")
    ]
    assert texts[0] == texts[1]
    assert '"smem align<1024>", "S<3,3,3> o 0 o (32,64):(64,1)"' in texts[0]


@cute.kernel
def recast_kernel(a: cute.Tensor, b: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    words = cute.recast_tensor(a, cute.Int32)
    b[i] = words[i]


@cute.jit
def recast(a: cute.Tensor, b: cute.Tensor):
    recast_kernel(a, b).launch(grid=(1, 1, 1), block=(8, 1, 1))


@pytest.mark.parametrize("dtype", ["i2", "i1", "i8"])
def test_recast(sim, dtype):
    words = np.arange(8, dtype=np.int32) * 70_001
    b = np.zeros(8, np.int32)
    recast(from_dlpack(words.view(dtype), assumed_align=8 if dtype == "i8" else 4), b)
    np.testing.assert_array_equal(b, words)


ERRORS = {
    "indexed with a Float32": lambda a: a[cute.Float32(1.0), 0],
    "indexed with a bool": lambda a: a[True, 0],
    "indexed with a list": lambda a: a[[0, 0]],
    "indexed with 3 coordinates": lambda a: a[0, 0, 0],
    "Float32 is stored into a tensor of Int32": lambda a: a.__setitem__((0, 0), cute.Float32(1)),
    "cannot be assigned a scalar": lambda a: a.__setitem__((0, None), 1),
    r"of dynamic shape, \(\?,\?\):\(\?.*,1\), is no vector": lambda a: a.load(),
    "static layout": lambda a: cute.make_rmem_tensor(a.shape, cute.Int32),
    "takes an element type": lambda a: cute.make_rmem_tensor(4, 32),
    "power of two": lambda a: a.iterator.align(12),
    "no memory space": lambda a: cute.make_ptr(cute.Int32, 0, "nowhere"),
    "takes a pointer or a coordinate": lambda a: cute.make_tensor("a", 4),
    "no len": lambda a: len(a),
    "vector of shape": lambda a: cute.local_tile(a, (2, 2), (0, 0)).store(
        cute.full((4,), 0, cute.Int32)
    ),
    "moves by a number": lambda a: a.iterator + 1.5,
    "has no memory": lambda a: cute.make_identity_tensor((2, 2)).load(),
    "permutes bytes": lambda a: cute.make_tensor(
        cute.recast_ptr(a.iterator, cute.make_swizzle(2, 0, 3)), cute.make_layout(4)
    ),
}


@cute.kernel
def error_kernel(a: cute.Tensor, which: cute.Constexpr):
    ERRORS[which](a)


@cute.jit
def error(a: cute.Tensor, which: cute.Constexpr):
    error_kernel(a, which).launch(grid=(1, 1, 1), block=(1, 1, 1))


@pytest.mark.parametrize("which", ERRORS)
def test_errors(sim, which):
    with pytest.raises(Exception, match=which):
        error(np.zeros((4, 4), np.int32), which)


def test_nested_coordinates_of_host_code_fit_the_shape(sim):
    @cute.jit
    def host(a: cute.Tensor):
        return cute.zipped_divide(a, (2, 2))[0, (None, None, None)]

    with pytest.raises(Exception, match=r"coordinate \(None, None, None\) does not fit the shape"):
        cute.compile(host, np.zeros((4, 4), np.int32))


@cute.kernel
def rebound_kernel(a: cute.Tensor, b: cute.Tensor, n: cute.Int32):
    tid = cute.arch.thread_idx()[0]
    coords = cute.make_identity_tensor((16, 32))
    where = cute.local_tile(coords, (1, 8), (tid, 0))
    layout = cute.make_layout((16, 32), stride=(32, 1))
    swizzle = cute.make_swizzle(3, 4, 3)
    s = cute.utils.SmemAllocator().allocate_tensor(cute.Float32, layout, 1024, swizzle)
    s[tid, None].store(a[tid, None].load())
    cute.arch.sync_threads()
    tile = cute.local_tile(s, (1, 8), (tid, 0))
    for i in range(n):
        tile = cute.local_tile(s, (1, 8), (tid, i))
        where = cute.local_tile(coords, (1, 8), (tid, i))
        column = where[0][1].to(cute.Float32)
        cute.local_tile(b, (1, 8), (tid, i)).store(tile.load() + column)
    if tid == 3:
        where = cute.local_tile(coords, (1, 8), (0, 0))
        tile = cute.local_tile(s, (1, 8), (0, 0))
    b[tid, 0] = tile[0]
    b[tid, 1] = where[1][1].to(cute.Float32)


@cute.jit
def rebound(a: cute.Tensor, b: cute.Tensor, n: cute.Int32):
    rebound_kernel(a, b, n).launch(grid=(1, 1, 1), block=(16, 1, 1))


def test_swizzled_and_coordinate_tensors_through_control_flow(sim):
    a = np.arange(16 * 32, dtype="f4").reshape(16, 32)
    b = np.zeros_like(a)
    rebound(from_dlpack(a, assumed_align=16), from_dlpack(b, assumed_align=16), 4)
    expected = a + np.arange(32, dtype="f4") // 8 * 8
    expected[:, 0], expected[:, 1] = a[:, 24], 25
    expected[3, :2] = 0, 1
    np.testing.assert_array_equal(b, expected)


@cute.kernel
def linear_kernel(y: cute.Tensor, v: cute.Tensor):
    t = cute.arch.thread_idx()[0]
    y[t] = 1.0
    v[t] = y[t]


@cute.jit
def linear(y: cute.Tensor, v: cute.Tensor):
    linear_kernel(y, v).launch(grid=1, block=4)


def test_one_number_for_several_modes_is_an_error_on_request(sim):
    y, v = np.zeros((2, 2), np.float32), np.zeros(4, np.float32)
    linear(y, v)
    assert (y == 1).all() and (v == 1).all()
    with pytest.raises(DSLTypeError, match="with 2 modes is indexed by one number") as caught:
        cute.compile(linear, y, v, options="--check-linear-index")
    assert caught.value.span.source_line.strip() == "y[t] = 1.0"
    assert caught.value.hint.startswith("write x[i, j]")
    with pytest.raises(DSLTypeError, match="indexed by one number") as caught:
        cute.compile(linear, v, y, options="--check-linear-index")
    assert caught.value.span.source_line.strip() == "v[t] = y[t]"
    cute.compile(linear, v, v.copy(), options="--check-linear-index")(v, v.copy())


@cute.kernel
def linear_read_kernel(y: cute.Tensor, v: cute.Tensor):
    v[0] = y[3]


@cute.jit
def linear_read(y: cute.Tensor, v: cute.Tensor):
    linear_read_kernel(y, v).launch(grid=1, block=1)


def test_reading_by_one_number_is_an_error_on_request():
    y, v = np.zeros((2, 2), np.float32), np.zeros(4, np.float32)
    with pytest.raises(DSLTypeError, match="indexed by one number"):
        cute.compile(linear_read, y, v, options="--check-linear-index --arch sim")


def test_the_leading_mode_among_dynamic_extents(sim):
    seen = []

    @cute.jit
    def look(x: cute.Tensor, n: cute.Int32):
        for shape in ((n, n), (1, n), (n, 1)):
            layout = cute.make_layout(shape, stride=(1, 1))
            seen.append(cute.make_tensor(x.iterator, layout).leading_dim)

    look(np.zeros(9, np.float32), 3)
    assert seen == [None, 1, 0]
