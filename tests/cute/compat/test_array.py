"""`Array`, `Vector`, `GridConstant`, `inttoptr`, `Swizzle.from_name`: what programs of the
experimental primitives use.
"""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLTypeError
from basedsl_cute import arch
from basedsl_cute.algebra import LayoutError
from basedsl_cute.runtime import from_dlpack


def in_kernel(body, *arrays):
    @cute.kernel
    def kernel(tensors: tuple):
        body(*tensors)

    @cute.jit
    def run(tensors: tuple):
        kernel(tensors).launch(grid=1, block=1)

    run(tuple(map(from_dlpack, arrays)))


def test_the_last_index_is_the_fastest(sim):
    def body(out):
        a = cute.Array(None, cute.Int32, (2, 3), alignment=16)
        a.fill(0)
        for i in cute.range_constexpr(2):
            for j in cute.range_constexpr(3):
                a[i, j] = 10 * i + j
        out[0] = a[1][2]
        out[1] = (a.ptr + 4).load()
        a[1].store(a[0].load() + 100)
        out[2] = a[1, 2]
        assert (a.shape, len(a), a.dtype, a.alignment) == ((2, 3), 2, cute.Int32, 16)

    out = np.zeros(3, np.int32)
    in_kernel(body, out)
    assert out.tolist() == [12, 11, 102]


def test_an_array_at_a_pointer_and_a_view_of_a_tensor(sim):
    def body(x, out):
        flat = cute.Array(x.iterator, cute.Float32, (4, 6))
        view = cute.make_array_view(x)
        out[0], out[1] = flat[2, 5], view[2, 5]
        address = cute.inttoptr(x.iterator.toint() + 4 * 7, "gmem", cute.Float32)
        out[2] = address.load()
        view[3, 5] = -1.0

    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    transposed = np.arange(24, dtype=np.float32).reshape(6, 4).T
    for array, want in ((x, [17, 17, 7]), (transposed, [17, transposed[2, 5], 7])):
        out = np.zeros(3, np.float32)
        in_kernel(body, array, out)
        assert out.tolist() == want and array[3, 5] == -1


def test_shared_memory_is_one_for_the_block(sim):
    @cute.kernel
    def kernel(out: cute.Tensor):
        thread = arch.thread_idx()[0]
        shared = cute.Array(None, cute.Int32, 32, cute.AddressSpace.smem)
        shared[thread] = thread
        arch.sync_threads()
        out[thread] = shared[31 - thread]

    @cute.jit
    def run(out: cute.Tensor):
        kernel(out).launch(grid=1, block=32)

    out = np.zeros(32, np.int32)
    run(out)
    assert out.tolist() == list(range(31, -1, -1))


def test_vectors(sim, capsys):
    def body(out):
        n = out[0]
        v = cute.Vector.from_elements([n, 2.5, 3])
        w = cute.vector.from_elements([n, n + 1])
        products = cute.vector.outerproduct(v, w)
        summed = cute.vector.outerproduct(v, w, products)
        out[0], out[1], out[2] = products[1, 0], products[2, 1], summed[1, 1]
        out[3] = cute.Vector.from_elements([1.0, 2.0, 3.0, 4.0], (2, 2))[1, 0]
        cute.print_nd_vector(w)
        cute.vector.print_nd_vector(w)

    out = np.full(4, 2, np.float32)
    in_kernel(body, out)
    assert out.tolist() == [5, 9, 15, 2]
    assert capsys.readouterr().out.count("3.000000") == 2


def test_bits_of_two_floats_are_an_int64(sim):
    def body(out):
        pair = cute.Vector.from_elements((out[0], 2), cute.Float32)
        (bits,) = pair.bitcast(cute.Int64).to_elements()
        low, high = (
            cute.Vector.from_elements([bits], dtype=cute.Int64).bitcast(cute.Int32).to_elements()
        )
        out[1], out[2] = low.to(cute.Float32), high.to(cute.Float32)
        back = cute.Vector.from_elements((bits,), cute.Int64).bitcast(cute.Float32)
        out[3] = back[0] + back[1]

    out = np.full(4, 0.5, np.float32)
    in_kernel(body, out)
    assert out.tolist() == [0.5, 0x3F000000, 0x40000000, 2.5]


def test_a_grid_constant_is_its_type(sim):
    @cute.kernel
    def kernel(out: cute.Tensor, n: cute.GridConstant[cute.Int64]):
        out[0] = n

    @cute.jit
    def run(out: cute.Tensor):
        kernel(out, 7).launch(grid=1, block=1)

    out = np.zeros(1, np.int64)
    run(out)
    assert cute.GridConstant[cute.Int64] is cute.Int64 and out[0] == 7


@pytest.mark.parametrize(
    "name, text",
    [
        ("128B", "S<3,4,3>"), ("64B", "S<2,4,3>"), ("32B", "S<1,4,3>"), ("none", "S<0,4,3>"),
        ("SW128", "S<3,4,3>"), ("SWIZZLE_64B", "S<2,4,3>"), ("S<2,3,-3>", "S<2,3,-3>"),
    ],
)  # fmt: skip
def test_swizzles_by_name(name, text):
    assert str(cute.Swizzle.from_name(name)) == text
    with pytest.raises(LayoutError, match="no swizzle is called '256B'"):
        cute.Swizzle.from_name("256B")


@pytest.mark.parametrize(
    "body, message",
    [
        (lambda out: cute.Array(None, cute.Int32, (out.shape[0] + out[0],)), "static integers"),
        (lambda out: cute.Array(None, cute.Int32, (2,), "gmem"), "registers or shared memory"),
        (lambda out: cute.Array(None, cute.Int32, (2,))[0, 1], "2 indices for an Array"),
        (lambda out: cute.make_array_view(3), "takes a tensor, got int"),
        (lambda out: cute.vector.outerproduct(out.load(), 3), "two vectors with one mode"),
        (lambda out: cute.Vector.from_elements([]), "at least one element"),
        (lambda out: out.load().bitcast(cute.Int64), "bitcast of .*: the widths differ"),
    ],
)
def test_errors(sim, body, message):
    with pytest.raises(DSLTypeError, match=message):
        in_kernel(body, np.zeros(3, np.int32))
