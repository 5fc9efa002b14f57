"""Memory plans: offsets as in C, fields in shared memory."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute.runtime import from_dlpack


@cute.struct
class Inner:
    a: cute.Int8
    b: cute.Float64


@cute.struct
class Storage:
    barriers: cute.struct.MemRange[cute.Int64, 3]
    flag: cute.Int32
    tile: cute.struct.Align[cute.struct.MemRange[cute.Float16, 8 * 64], 1024]
    inner: Inner
    empty: cute.struct.MemRange[cute.Int8, 0]
    last: cute.Boolean


@cute.union
class Either:
    words: cute.struct.MemRange[cute.Int32, 4]
    halves: cute.struct.MemRange[cute.Float16, 16]
    number: cute.Float64


def test_offsets_are_those_of_c():
    import ctypes

    class CInner(ctypes.Structure):
        _fields_ = (("a", ctypes.c_int8), ("b", ctypes.c_double))

    offsets = {name: Storage.offset_of(name) for name, _, _ in Storage.fields}
    assert offsets == {
        "barriers": 0, "flag": 24, "tile": 1024, "inner": 2048, "empty": 2064, "last": 2064,
    }  # fmt: skip
    assert (Inner.size_in_bytes(), Inner.__alignof__()) == (ctypes.sizeof(CInner), 8)
    assert (Storage.size_in_bytes(), Storage.__sizeof__(), Storage.__alignof__()) == (
        3072,
        3072,
        1024,
    )
    assert (Either.size_in_bytes(), Either.__alignof__()) == (32, 8)
    assert {Either.offset_of(name) for name, _, _ in Either.fields} == {0}
    assert "tile at 1024" in str(Storage)


def test_declared_inside_a_function_and_as_text():
    n = 4
    kind = cute.Float32

    @cute.struct
    class Local:
        x: "cute.struct.MemRange[kind, n]"

    assert Local.size_in_bytes() == 16


@pytest.mark.parametrize(
    "make,message",
    [
        (lambda: cute.struct.MemRange[cute.Int32, -1], "static count"),
        (lambda: cute.struct.Align[cute.Int32, 12], "power of two"),
        (lambda: cute.struct(type("S", (), {"__annotations__": {"x": int}})), "no field type"),
        (lambda: Storage.offset_of("nothing"), "no field 'nothing'"),
    ],
)
def test_wrong_declarations(make, message):
    with pytest.raises(Exception, match=message):
        make()


@cute.kernel
def fields_kernel(out: cute.Tensor):
    tid = cute.arch.thread_idx()[0]
    s = cute.utils.SmemAllocator().allocate(Storage)
    if tid == 0:
        s.flag = 5
        s.inner.b = 2.5
        s.inner.a = -3
        s.last = True
        s.barriers[1] = 7
        s.barriers[tid + 2] = 11
    tile = s.tile.get_tensor(
        cute.make_layout((8, 64), stride=(64, 1)), swizzle=cute.make_swizzle(3, 4, 3)
    )
    tile[tid, None].fill(tid.to(cute.Float16))
    cute.arch.sync_threads()
    for _ in range(1):
        s.flag = s.flag + 1  # the struct is carried
        cute.arch.sync_threads()
    out[0] = s.flag.to(cute.Float64)
    out[1] = s.inner.b + s.inner.a.to(cute.Float64)
    out[2] = cute.where(s.last, 1.0, 0.0)
    out[3] = (s.barriers[1] + s.barriers[2]).to(cute.Float64)
    out[4] = tile[7, 9].to(cute.Float64)
    out[5] = s.flag.ptr.load().to(cute.Float64)
    again = s.tile.get_tensor(cute.make_layout((8, 64), stride=(64, 1)))
    out[6] = again[6, 0].to(cute.Float64)  # the first swizzled word of row 6 is of row 6
    ints = s.tile.get_tensor(cute.make_layout(4), dtype=cute.Int32)
    out[7] = ints[3].to(cute.Float64)


@cute.jit
def fields(out: cute.Tensor):
    fields_kernel(out).launch(grid=(1, 1, 1), block=(8, 1, 1))


def test_fields(sim, monkeypatch):
    monkeypatch.setenv("CUTE_DSL_CHECK_RACES", "0")
    out = np.zeros(8)
    fields(from_dlpack(out))
    flag = out[0]
    assert 6 <= flag <= 13
    np.testing.assert_array_equal(out, [flag, -0.5, 1, 18, 7, flag, 6, 0])


@cute.kernel
def union_kernel(out: cute.Tensor):
    u = cute.utils.SmemAllocator().allocate(Either)
    u.words[0] = 0x3C00 + 0x4000 * 65536
    out[0] = u.halves[0].to(cute.Int32)
    out[1] = u.halves[1].to(cute.Int32)
    u.number = 1.0
    out[2] = u.words[1]


@cute.jit
def through_union(out: cute.Tensor):
    union_kernel(out).launch(grid=(1, 1, 1), block=(1, 1, 1))


def test_union(sim):
    out = np.zeros(3, "i4")
    through_union(out)
    np.testing.assert_array_equal(out, [1, 2, 0x3FF00000])


ERRORS = {
    "has no field 'x'": lambda s: s.x,
    "is no number": lambda s: setattr(s, "tile", 1),
    "element 3 of 3": lambda s: s.barriers[3],
    "takes 2048 bytes; there are 1024": lambda s: s.tile.get_tensor(cute.make_layout(1024)),
    "has a swizzle": lambda s: s.tile.get_tensor(
        cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, cute.make_layout(64)),
        swizzle=cute.make_swizzle(3, 4, 3),
    ),
    "is aligned to 1024 bytes": lambda s: Storage(s.flag.ptr),
    "takes a pointer": lambda s: Storage(1),
}


@cute.kernel
def error_kernel(which: cute.Constexpr):
    ERRORS[which](cute.utils.SmemAllocator().allocate(Storage))


@cute.jit
def error(which: cute.Constexpr):
    error_kernel(which).launch(grid=(1, 1, 1), block=(1, 1, 1))


@pytest.mark.parametrize("which", ERRORS)
def test_errors(sim, which):
    with pytest.raises(Exception, match=which):
        error(which)
