"""Shared memory: allocations do not overlap, static or dynamic, and a report shows them."""

import re

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLTypeError
from basedsl_cute.runtime import from_dlpack


@cute.kernel
def fill_kernel(out: cute.Tensor, count: cute.Constexpr, elements: cute.Constexpr):
    tid = cute.arch.thread_idx()[0]
    smem = cute.utils.SmemAllocator()
    tensors = [
        smem.allocate_tensor(cute.Int32, cute.make_layout(elements), 128) for _ in range(count)
    ]
    array = smem.allocate_array(cute.Int8, 3)
    scalar = smem.allocate(cute.Int64)
    raw = smem.allocate(100, byte_alignment=64)
    for n in cute.range_constexpr(count):
        for i in range(tid, elements, 32):
            tensors[n][i] = n * 100000 + i
    if tid == 0:
        (array + 2).store(7)
        scalar.store(1 << 40)
        (raw + 99).store(9)
    cute.arch.sync_threads()
    wrong = cute.Int32(0)
    for n in cute.range_constexpr(count):
        for i in range(tid, elements, 32):
            if tensors[n][i] != n * 100000 + i:
                wrong += 1
    if (array + 2).load() != 7 or scalar.load() != 1 << 40 or (raw + 99).load() != 9:
        wrong += 1
    out[tid] = wrong


@cute.jit
def fill(out: cute.Tensor, count: cute.Constexpr, elements: cute.Constexpr):
    fill_kernel(out, count, elements).launch(grid=(1, 1, 1), block=(32, 1, 1))


@pytest.mark.parametrize("count,elements", [(1, 33), (3, 1000), (3, 7000)])
def test_allocations_do_not_overlap(sim, count, elements):
    out = np.full(32, -1, "i4")
    compiled = cute.compile(fill, from_dlpack(out), count, elements)
    compiled(from_dlpack(out))
    np.testing.assert_array_equal(out, 0)
    plan = cute.smem_report(compiled)["fill_kernel"]
    assert plan.dynamic == (count * elements * 4 > 48 * 1024 - 200)
    assert len(plan.allocations) == count + 3
    ends = 0
    for allocation in plan.allocations:
        assert allocation.offset >= ends
        assert allocation.offset % allocation.alignment == 0
        ends = allocation.offset + allocation.bytes
    assert ends <= plan.bytes


def test_report_in_words(sim):
    text = str(cute.smem_report(cute.compile(fill, from_dlpack(np.zeros(32, "i4")), 1, 33)))
    assert "bytes of static shared memory" in text
    assert "i32 (33):(1), 132 bytes, align 128" in text or "i32 33:1, 132 bytes, align 128" in text


def test_dynamic_shared_memory_in_ptx_and_launch(monkeypatch):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_90a")
    out = from_dlpack(np.zeros(32, "i4"))
    small, large = (cute.compile(fill, out, 3, n) for n in (1000, 7000))
    assert re.search(r"\.shared .align 128 .b8 \S*\[4000\]", small.stages.text("ptx"))
    text = large.stages.text("ptx")
    assert re.search(r"\.extern .shared .align 1024 .b8 \S*\[\]", text)
    assert not re.search(r"^\.shared", text, re.MULTILINE)


@cute.kernel
def retried_kernel(out: cute.Tensor, n: cute.Int32):
    x = 0  # becomes a float in the loop, which is then traced again
    for _ in range(n):
        s = cute.utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout(4))
        s[0] = 1.5
        x = x + s[0]
    out[0] = x


@cute.jit
def retried(out: cute.Tensor, n: cute.Int32):
    retried_kernel(out, n).launch(grid=(1, 1, 1), block=(1, 1, 1))


def test_a_loop_traced_twice_allocates_once(sim):
    out = np.zeros(1, "f4")
    compiled = cute.compile(retried, from_dlpack(out), 3)
    assert len(cute.smem_report(compiled)["retried_kernel"].allocations) == 1
    compiled(from_dlpack(out), 3)
    assert out[0] == 4.5


ERRORS = {
    "takes a struct, a numeric type": lambda s: s.allocate("x"),
    "has 32 elements in 20 places": lambda s: s.allocate_tensor(
        cute.Int32, cute.make_layout((4, 8), stride=(4, 1))
    ),
    "static layout": lambda s: s.allocate_tensor(
        cute.Int32, cute.make_layout(cute.arch.thread_idx()[0])
    ),
    "power of two": lambda s: s.allocate(16, byte_alignment=24),
    "static count": lambda s: s.allocate_array(cute.Int32, -1),
}


@cute.kernel
def error_kernel(which: cute.Constexpr):
    ERRORS[which](cute.utils.SmemAllocator())


@cute.jit
def error(which: cute.Constexpr):
    error_kernel(which).launch(grid=(1, 1, 1), block=(1, 1, 1))


@pytest.mark.parametrize("align", [0, -16, 3, 1.5, "16", True])
@pytest.mark.parametrize("what", ["allocate", "allocate_array", "allocate_tensor"])
def test_an_alignment_is_a_power_of_two(sim, what, align):
    @cute.kernel
    def kernel(out: cute.Tensor):
        smem = cute.utils.SmemAllocator()
        if what == "allocate":
            smem.allocate(cute.Int32, align)
        elif what == "allocate_array":
            smem.allocate_array(cute.Int32, 4, align)
        else:
            smem.allocate_tensor(cute.Int32, 4, align)

    @cute.jit
    def host(out: cute.Tensor):
        kernel(out).launch(grid=1, block=1)

    with pytest.raises(DSLTypeError, match=rf"{what}\(\): an alignment is a power of two"):
        host(np.zeros(1, np.int32))


def test_register_tensors_without_elements_and_with_too_many(sim):
    @cute.kernel
    def kernel(out: cute.Tensor, n: cute.Constexpr):
        one, other = (cute.make_rmem_tensor((n, 2), cute.Float32) for _ in range(2))
        one.fill(1.0)
        cute.autovec_copy(one, other)
        out[0] = 1.0

    @cute.jit
    def host(out: cute.Tensor, n: cute.Constexpr):
        kernel(out, n).launch(grid=1, block=1)

    out = np.zeros(1, np.float32)
    host(out, 0)
    assert out[0] == 1
    with pytest.raises(DSLTypeError, match="takes 800000 bytes"):
        host(out, 100_000)


@pytest.mark.parametrize("which", ERRORS)
def test_errors(sim, which):
    with pytest.raises(Exception, match=which):
        error(which)


@cute.struct
class Storage:
    barriers: cute.struct.MemRange[cute.Int64, 4]
    tile: cute.struct.Align[cute.struct.MemRange[cute.Float16, 512], 128]
    count: cute.Int32


@pytest.mark.parametrize("elements", [64, 32768])  # static and dynamic shared memory
def test_the_report_shows_every_byte_with_the_fields_of_structs(sim, elements):
    @cute.kernel
    def kernel():
        smem = cute.utils.SmemAllocator()
        smem.allocate_tensor(cute.Float32, cute.make_layout(3))
        smem.allocate(Storage)
        smem.allocate_tensor(cute.Float16, cute.make_layout(elements), 1024)

    @cute.jit
    def host():
        kernel().launch(grid=(1, 1, 1), block=(1, 1, 1))

    (plan,) = cute.smem_report(cute.compile(host)).kernels
    first, storage, last = plan.allocations
    assert (first.offset, first.bytes, storage.offset, last.offset) == (0, 12, 128, 2048)
    assert storage.fields == (("barriers", 0), ("tile", 128), ("count", 1152))
    assert plan.dynamic == (elements > 64)
    assert "    256    .tile" in str(plan)


@pytest.mark.parametrize("dtype", [cute.Float16, cute.Float32, cute.Int8])
def test_a_composed_layout_is_a_swizzle_of_bytes_and_a_plain_layout(sim, dtype):
    """Pointer swizzles act on bits of the byte address, layouts on elements: one conversion."""
    from basedsl_cute.nvgpu import warpgroup

    atom = warpgroup.make_smem_layout_atom(warpgroup.SmemLayoutAtomKind.K_SW128, dtype)
    layout = cute.tile_to_shape(atom, (16, 8 * atom.outer.shape[1]), order=(0, 1))
    swizzle = cute.recast_layout(8, dtype.width, layout.inner)
    assert str(swizzle) == "S<3,4,3>"

    def texts(allocate):
        @cute.kernel
        def kernel():
            tile = allocate(cute.utils.SmemAllocator())
            i = cute.arch.thread_idx()[0]
            tile[i, 3] = tile[1, i]

        @cute.jit
        def host():
            kernel().launch(grid=(1, 1, 1), block=(8, 1, 1))

        return re.sub(r', name = "\w+"', "", cute.compile(host).__mlir__)

    Plan = cute.struct(
        type("Plan", (), {"__annotations__": {
            "tile": cute.struct.Align[cute.struct.MemRange[dtype, cute.cosize(layout)], 1024]
        }})
    )  # fmt: skip
    composed = texts(lambda smem: smem.allocate_tensor(dtype, layout, 1024))
    assert composed == texts(lambda smem: smem.allocate_tensor(dtype, layout.outer, 1024, swizzle))
    of_struct = texts(lambda smem: smem.allocate(Plan).tile.get_tensor(layout))
    assert of_struct == texts(
        lambda smem: smem.allocate(Plan).tile.get_tensor(layout.outer, swizzle=swizzle)
    )


@cute.kernel
def largest_kernel(out: cute.Tensor):
    smem = cute.utils.SmemAllocator()
    bytes_ = smem.allocate_tensor(cute.Int8, cute.make_layout(220 << 10), 16)
    bytes_[0] = cute.Int8(3)
    out[0] = cute.Int32(bytes_[0])


@cute.kernel
def other_kernel(out: cute.Tensor):
    start = cute.arch.alloc_smem(cute.Int32, 4096)
    words = cute.make_tensor(start, cute.make_layout(4096))
    words[5] = 4
    out[1] = words[5]


@cute.jit
def launch_both(out: cute.Tensor):
    largest_kernel(out).launch(grid=1, block=1)
    other_kernel(out).launch(grid=1, block=1)


def test_a_block_has_the_memory_of_its_own_kernel(sim):
    """Together both would ask for more than a block has."""
    out = np.zeros(2, np.int32)
    launch_both(out)
    np.testing.assert_array_equal(out, [3, 4])
