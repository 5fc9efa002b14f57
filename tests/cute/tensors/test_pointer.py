"""Facts known of an address: alignment through moves, slices and recasts."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute.runtime import from_dlpack, make_ptr

SEEN = {}


@cute.kernel
def alignment_kernel(a: cute.Tensor):
    tid = cute.arch.thread_idx()[0]
    p = a.iterator

    def see(name, x):
        SEEN[name] = x.alignment

    see("start", p)
    see("+1", p + 1)
    see("+2", p + 2)
    see("+4", p + 4)
    see("+0", p + 0)
    see("+3 aligned", (p + 3).align(16))
    see("+tid", p + tid)
    see("+8*tid", p + cute.assume(tid * 8, 8))
    see("row", a[tid, None].iterator)
    see("column", a[None, tid].iterator)
    see("tile", cute.local_tile(a, (1, 8), (tid, 1)).iterator)
    see("narrow tile", cute.local_tile(a, (1, 2), (tid, 1)).iterator)
    see("as bytes", cute.recast_ptr(p + 2, dtype=cute.Int8) + 8)
    SEEN["type"] = str(cute.recast_ptr(p, cute.make_swizzle(2, 4, 3)))
    SEEN["wide"] = p.toint().divby
    registers = cute.make_rmem_tensor(4, cute.Int64)
    see("registers", registers.iterator)
    SEEN["tensor"] = str(a)
    SEEN["facts"] = (a.element_type, a.memspace == cute.AddressSpace.gmem, a.leading_dim)


@cute.jit
def alignment(a: cute.Tensor):
    alignment_kernel(a).launch(grid=(1, 1, 1), block=(1, 1, 1))


def test_alignment_is_tracked(sim):
    SEEN.clear()
    a = np.zeros((16, 32), np.float32)
    cute.compile(alignment, from_dlpack(a, assumed_align=16))
    assert SEEN == {
        "start": 16,
        "+1": 4,
        "+2": 8,
        "+4": 16,
        "+0": 16,
        "+3 aligned": 16,
        "+tid": 4,
        "+8*tid": 16,
        "row": 16,
        "column": 4,
        "tile": 16,
        "narrow tile": 8,
        "as bytes": 8,
        "type": "ptr<Float32, gmem, align<16>, S<2,4,3>>",
        "wide": 16,
        "registers": 16,
        "tensor": "tensor<ptr<Float32, gmem, align<16>> o (16,32):(32,1)>",
        "facts": (cute.Float32, True, 1),
    }


@cute.kernel
def address_kernel(p: cute.Pointer, out: cute.Tensor):
    number = p.toint()
    again = cute.make_ptr(cute.Int32, number + 4, cute.AddressSpace.gmem, assumed_align=4)
    out[0] = again.load()
    same = cute.make_ptr(cute.Int32, p.llvm_ptr, p.memspace)
    out[1] = same.load()
    (p + 3).store(77)
    out[2] = (p + cute.arch.thread_idx()[0] + 2).load()
    t = cute.make_tensor(p, cute.make_layout((2, 2), stride=(1, 2)))
    out[3] = t[1, 1]


@cute.jit
def address(p: cute.Pointer, out: cute.Tensor):
    address_kernel(p, out).launch(grid=(1, 1, 1), block=(1, 1, 1))


def test_pointers_as_arguments(sim):
    x = np.array([10, 20, 30, 40], np.int32)
    out = np.zeros(4, np.int32)
    p = make_ptr(
        cute.Int32, x.ctypes.data, cute.AddressSpace.gmem, assumed_align=4, num_bytes=x.nbytes
    )
    address(p, out)
    np.testing.assert_array_equal(out, [20, 10, 30, 77])
    assert x[3] == 77
    compiled = cute.compile(address, p, out)
    compiled(p, out)
    with pytest.raises(Exception, match="'p' was compiled as Pointer"):
        compiled(make_ptr(cute.Int64, x.ctypes.data, num_bytes=x.nbytes), out)


def test_the_simulator_finds_the_array_behind_an_address(sim):
    out = np.zeros(4, np.int32)
    y = np.arange(10, 1010, dtype=np.int32)
    later = y[8:]
    for at, source in ((0, y), (8, later)):
        address(make_ptr(cute.Int32, source.ctypes.data, "gmem"), out)
        np.testing.assert_array_equal(out, [11 + at, 10 + at, 12 + at, 77])
        y[:] = np.arange(10, 1010)
    with pytest.raises(Exception, match="out-of-bounds read"):
        address(make_ptr(cute.Int32, y.ctypes.data, "gmem", num_bytes=4), out)
    with pytest.raises(Exception, match="out-of-bounds read"):
        address(make_ptr(cute.Int32, y[-1:].ctypes.data, "gmem"), out)
    address(make_ptr(cute.Int32, y.ctypes.data, "gmem"), out)  # the size was of one pointer only


def test_the_simulator_needs_the_size_of_memory_without_a_name(sim):
    holders = [{"deep": [[[np.zeros(1000, np.int32)]]]}]
    out = np.zeros(4, np.int32)
    pointer = make_ptr(cute.Int32, holders[0]["deep"][0][0][0].ctypes.data, "gmem")
    with pytest.raises(Exception, match="'p' points to memory of unknown size") as caught:
        address(pointer, out)
    assert "num_bytes" in str(caught.value)


def test_the_array_behind_an_address_may_be_in_a_container_or_an_object(sim):
    class Workspace:
        def __init__(self):
            self.array = np.arange(4, dtype=np.int32)

    space, held = Workspace(), [np.arange(4, dtype=np.int32)]
    for array in (space.array, held[0]):
        where = array.ctypes.data
        del array
        out = np.zeros(4, np.int32)
        address(make_ptr(cute.Int32, where, "gmem"), out)
        np.testing.assert_array_equal(out, [1, 0, 2, 77])


@cute.kernel
def only_if_there(p: cute.Pointer, out: cute.Tensor):
    if p.toint() != 0:
        out[0] = p.load()


@cute.jit
def optional(p: cute.Pointer, out: cute.Tensor):
    only_if_there(p, out).launch(grid=1, block=1)


def test_null_pointers(sim):
    x, out = np.array([5], np.int32), np.zeros(1, np.int32)
    compiled = cute.compile(optional, make_ptr(cute.Int32, 0, "gmem"), out)
    compiled(make_ptr(cute.Int32, 0, "gmem"), out)
    assert out[0] == 0
    compiled(make_ptr(cute.Int32, x.ctypes.data, "gmem"), out)
    assert out[0] == 5


def test_host_pointers_check_their_promise():
    assert str(make_ptr(cute.Float16, 0x1000, "gmem")) == "Ptr<0x1000, Float16, gmem, align<2>>"
    with pytest.raises(Exception, match="only aligned to 4 bytes"):
        make_ptr(cute.Float32, 0x1004, assumed_align=16)
    with pytest.raises(Exception, match="takes an address"):
        make_ptr(cute.Float32, "0x1004")
