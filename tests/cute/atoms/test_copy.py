"""cute.copy, autovec_copy, basic_copy: what is moved, behind which predicates, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLError
from basedsl_cute import nvgpu
from basedsl_cute.nvgpu import (
    CopyG2ROp,
    CopyR2GOp,
    CopyUniversalOp,
    LoadCacheMode,
    MemoryOrder,
    MemoryScope,
    cpasync,
)
from basedsl_cute.runtime import from_dlpack

TV = (cute.make_ordered_layout((4, 32), order=(1, 0)), cute.make_layout((2, 4), stride=(4, 1)))


@cute.kernel
def tiled_kernel(x: cute.Tensor, y: cute.Tensor, tiled: cute.Constexpr):
    tile = ((None, None), cute.arch.block_idx()[0])
    thread = tiled.get_slice(cute.arch.thread_idx()[0])
    source, target = thread.partition_S(x[tile]), thread.partition_D(y[tile])
    fragment = cute.make_fragment_like(source)
    cute.copy(tiled, source, fragment)
    cute.copy(tiled, fragment, target)


@cute.jit
def tiled_copy(x: cute.Tensor, y: cute.Tensor, op: cute.Constexpr, bits: cute.Constexpr):
    atom = cute.make_copy_atom(op, x.element_type, num_bits_per_copy=bits)
    tiled = cute.make_tiled_copy_tv(atom, *TV)
    tiles = cute.zipped_divide(x, tiled.tiler_mn)
    tiled_kernel(tiles, cute.zipped_divide(y, tiled.tiler_mn), tiled).launch(
        grid=cute.size(tiles, mode=[1]), block=tiled.size
    )


def arrays(*shape, dtype=np.float32, align=16):
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    y = np.full_like(x, np.nan)
    return x, y, from_dlpack(x, assumed_align=align), from_dlpack(y, assumed_align=align)


@pytest.mark.parametrize("bits", [None, 32, 64, 128])
def test_a_tiled_copy_moves_everything(target, bits):
    x, y, a, b = arrays(16, 256)
    tiled_copy(a, b, CopyUniversalOp(), bits)
    np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize(
    ("bits", "instruction", "count"),
    [(128, "ld.global.v4.b32", 2), (64, "ld.global.v2.b32", 4), (32, "ld.global.b32", 8),
     (None, "ld.global.v4.b32", 2)],
)  # fmt: skip
def test_accesses_are_as_wide_as_asked(bits, instruction, count):
    _, _, a, b = arrays(16, 256)
    compiled = cute.compile(tiled_copy, a, b, CopyUniversalOp(), bits, options="--arch sm_90a")
    ptx = compiled.stages.text("ptx")
    # Neighbours of a tensor whose alignment is known may be joined.
    assert ptx.count(instruction) == count or 0 < ptx.count("ld.global.v4") < count
    assert 0 < ptx.count("st.global") <= count
    assert ".local" not in ptx and "div" not in ptx and "rem." not in ptx


def test_layouts_and_copies_show_in_the_ir():
    from basedsl.testing import filecheck

    _, _, a, b = arrays(16, 256)
    compiled = cute.compile(tiled_copy, a, b, CopyUniversalOp(), 128, options="--arch sm_90a")
    filecheck(
        compiled.__mlir__,
        """
        CHECK: gpu.func @tiled_kernel(%arg0: !cute.memref<f32, "gmem align<16>", "((8,128),(2,2)):((256,1),(2048,128))">
        CHECK: "cute.alloc_rmem"() {bytes = 32 : i64}
        CHECK: "cute.view"({{.*}}) : (!cute.memref<f32, "gmem align<16>", "((4,2),1,1):((1,256),0,0)">, i32) -> !cute.memref<f32, "gmem align<16>", "4:1">
        CHECK: "cute.copy"({{.*}}) {atom = "universal", bits = 128 : i64} : (!cute.memref<f32, "gmem align<16>", "4:1">, !cute.memref<f32, "rmem align<16>", "4:1">) -> ()
        CHECK: "cute.copy"({{.*}}) {atom = "universal", bits = 128 : i64} : (!cute.memref<f32, "rmem align<16>", "4:1">, !cute.memref<f32, "gmem align<16>", "4:1">) -> ()
        """,  # noqa: E501
    )
    filecheck(
        compiled.stages.text("lower-cute"),
        """
        CHECK-NOT: cute.copy
        CHECK: llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
        CHECK: llvm.store {{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr
        """,
    )


def test_a_cache_mode_is_the_instructions(target):
    x, y, a, b = arrays(8, 128)

    @cute.kernel
    def kernel(a: cute.Tensor, b: cute.Tensor, atom: cute.Constexpr):
        at = (cute.arch.thread_idx()[0], None)
        part = cute.local_tile(a[at], (4,), (cute.arch.block_idx()[0],))
        fragment = cute.make_fragment_like(part)
        cute.copy(atom, part, fragment)
        cute.autovec_copy(fragment, cute.local_tile(b[at], (4,), (cute.arch.block_idx()[0],)))

    @cute.jit
    def host(a: cute.Tensor, b: cute.Tensor):
        op = CopyG2ROp(LoadCacheMode.STREAMING)
        atom = cute.make_copy_atom(op, a.element_type, num_bits_per_copy=128)
        kernel(a, b, atom).launch(grid=32, block=8)

    host(a, b)
    np.testing.assert_array_equal(x, y)
    compiled = cute.compile(host, a, b, options="--arch sm_90a")
    assert "ld.global.cs.v2.b64" in compiled.stages.text("ptx")


def test_loads_and_stores_have_operations_of_their_own(target):
    x, y, a, b = arrays(8, 128)
    weak = {"memory_order": MemoryOrder.WEAK, "memory_scope": MemoryScope.CTA}

    @cute.kernel
    def kernel(a: cute.Tensor, b: cute.Tensor, load: cute.Constexpr, store: cute.Constexpr):
        at = (cute.arch.thread_idx()[0], None)
        part = cute.local_tile(a[at], (4,), (cute.arch.block_idx()[0],))
        fragment = cute.make_fragment_like(part)
        cute.copy(load, part, fragment)
        cute.copy(store, fragment, cute.local_tile(b[at], (4,), (cute.arch.block_idx()[0],)))

    @cute.jit
    def host(a: cute.Tensor, b: cute.Tensor, swapped: cute.Constexpr):
        load, store = (
            cute.make_copy_atom(op, a.element_type, num_bits_per_copy=128, **weak)
            for op in (CopyG2ROp(), CopyR2GOp())
        )
        if swapped:
            load, store = store, load
        kernel(a, b, load, store).launch(grid=32, block=8)

    host(a, b, False)
    np.testing.assert_array_equal(x, y)
    with pytest.raises(DSLError, match="CopyR2GOp copies rmem to gmem, not gmem to rmem"):
        cute.compile(host, a, b, True)


# What is refused ---------------------------------------------------------------------------------


def refused(function, *args):
    with pytest.raises(DSLError) as caught:
        cute.compile(function, *args)
    return str(caught.value)


def refused_without_excerpts(function, *args):
    with pytest.raises(DSLError) as caught:
        cute.compile(function, *args)
    error = caught.value
    return "\n".join([error.message, *(text for text, _ in error.notes), f"hint: {error.hint}"])


def test_an_unaligned_base_is_named(sim):
    x, y, _, _ = arrays(16, 256)
    message = refused(tiled_copy, from_dlpack(x), from_dlpack(y), CopyUniversalOp(), 128)
    assert "it moves 128 bits at once: 4 x Float32" in message
    needed = "needs memory known to be aligned to 16 bytes, not only to 4"
    assert message.startswith(f"CopyUniversalOp of 128 bits {needed}\n")
    assert "assumed_align" in message and "cute.copy(tiled, source, fragment)" in message


def test_an_indivisible_dynamic_stride_is_named(sim):
    x, y, _, _ = arrays(16, 254)  # raw: a stride of 16 bytes is not promised
    message = refused(tiled_copy, x, y, CopyUniversalOp(), 128)
    assert "needs an offset known to be divisible by 4 elements, not only by 2" in message
    assert "mark_compact_shape_dynamic(divisibility=)" in message


def test_divisibility_of_a_dynamic_stride_is_enough(target):
    x, y, a, b = arrays(16, 256)
    for t in (a, b):
        t.mark_compact_shape_dynamic(1, divisibility=128)
    compiled = cute.compile(tiled_copy, a, b, CopyUniversalOp(), 128)
    compiled(a, b)
    np.testing.assert_array_equal(x, y)


def test_elements_that_do_not_lie_together_are_named(sim):
    x = np.zeros((256, 16), np.float32).T
    message = refused(
        tiled_copy, from_dlpack(x, assumed_align=16), from_dlpack(x.copy("F"), assumed_align=16),
        CopyUniversalOp(), 128,
    )  # fmt: skip
    assert "needs 4 consecutive elements" in message


def test_a_swizzle_that_parts_them_is_named(sim):
    @cute.kernel
    def kernel():
        layout = cute.make_composed_layout(
            cute.make_swizzle(2, 1, 4), 0, cute.make_layout((8, 32), stride=(32, 1))
        )
        smem = cute.utils.SmemAllocator().allocate_tensor(cute.Float32, layout, byte_alignment=128)
        atom = cute.make_copy_atom(CopyUniversalOp(), cute.Float32, num_bits_per_copy=128)
        fragment = cute.make_rmem_tensor(4, cute.Float32)
        fragment.fill(0)
        cute.copy(atom, fragment, cute.local_tile(smem[0, None], (4,), (0,)))

    @cute.jit
    def host():
        kernel().launch(grid=1, block=1)

    message = refused(host)
    assert "swizzle" in message and "together" in message


def test_other_mistakes_say_what_is_wrong(sim):
    cases = {
        "cp.async copies 32, 64 or 128 bits, not 16": lambda a, r: cute.make_copy_atom(
            cpasync.CopyG2SOp(), cute.Float16
        ),
        "GLOBAL copies 128 bits, not 64": lambda a, r: cute.make_copy_atom(
            cpasync.CopyG2SOp(LoadCacheMode.GLOBAL), cute.Float32, num_bits_per_copy=64
        ),
        "power of two": lambda a, r: cute.make_copy_atom(
            CopyUniversalOp(), cute.Float32, num_bits_per_copy=96
        ),
        "takes a copy operation": lambda a, r: cute.make_copy_atom(cute.Float32, cute.Float32),
        "a copy converts nothing": lambda a, r: cute.autovec_copy(
            r, cute.make_rmem_tensor(8, cute.Int32)
        ),
        "the source has shape": lambda a, r: cute.autovec_copy(
            r, cute.make_rmem_tensor(4, cute.Float32)
        ),
        "a copy takes a copy atom": lambda a, r: cute.copy(CopyUniversalOp(), r, r),
        "has no memory": lambda a, r: cute.autovec_copy(r, cute.make_identity_tensor(8)),
        "6 element(s) of the source are no whole instructions of 4 each": lambda a, r: cute.copy(
            atom(128), cute.make_rmem_tensor(6, cute.Float32), r
        ),
        "a predicate for each of 8 elements": lambda a, r: cute.copy(
            atom(128), r, r, pred=cute.make_rmem_tensor(8, cute.Boolean)
        ),
        "3 predicates for 2 instruction": lambda a, r: cute.copy(
            atom(128), r, r, pred=cute.make_rmem_tensor(3, cute.Boolean)
        ),
        "copies gmem to smem, not rmem to rmem": lambda a, r: cute.copy(
            cute.make_copy_atom(cpasync.CopyG2SOp(), cute.Float32), r, r
        ),
        "the source has a dynamic shape": lambda a, r: cute.autovec_copy(a, r),
        "the destination does not split into instructions of 2 elements alike": lambda a, r: (
            cute.copy(atom(64), fragment((3, 4), (1, 3)), fragment((3, 4), (1, 4)))
        ),
        "the modes of source (2, 2, 2) and destination (4, 2) differ": lambda a, r: cute.copy(
            atom(64), fragment((2, 2, 2), (1, 2, 4)), fragment((4, 2), (1, 4))
        ),
        "threads (8,4):(8,1) is no order of the numbers from 0 to 31": lambda a, r: (
            cute.make_tiled_copy_tv(
                atom(32), cute.make_layout((8, 4), stride=(8, 1)), cute.make_layout((1, 2))
            )
        ),
        "values (2,2):(2,2) is no order": lambda a, r: cute.make_tiled_copy_tv(
            atom(32), cute.make_layout((8, 4)), cute.make_layout((2, 2), stride=(2, 2))
        ),
        "the layout of threads is a static layout, not (8, 4)": lambda a, r: (
            cute.make_tiled_copy_tv(atom(32), (8, 4), (1, 2))
        ),
        "num_bits_per_copy is a static number": lambda a, r: cute.make_copy_atom(
            CopyUniversalOp(), cute.Float32, num_bits_per_copy=cute.arch.thread_idx()[0]
        ),
        "hint: x.get_slice(tid).partition_S(tensor)": lambda a, r: cute.make_tiled_copy_tv(
            atom(32), cute.make_layout(32), cute.make_layout(1)
        ).partition_S(a),
    }

    def fragment(shape, stride):
        return cute.make_rmem_tensor(cute.make_layout(shape, stride=stride), cute.Float32)

    def atom(bits):
        return cute.make_copy_atom(CopyUniversalOp(), cute.Float32, num_bits_per_copy=bits)

    for text, wrong in cases.items():

        @cute.kernel
        def kernel(a: cute.Tensor, wrong: cute.Constexpr):
            wrong(a, cute.make_rmem_tensor(8, cute.Float32))

        @cute.jit
        def host(a: cute.Tensor, wrong: cute.Constexpr):
            kernel(a, wrong).launch(grid=1, block=1)

        # Not in the excerpt of this file, which has the text as well.
        assert text in refused_without_excerpts(host, np.zeros(8, np.float32), wrong)


# Predicates --------------------------------------------------------------------------------------


@cute.kernel
def predicated_kernel(
    x: cute.Tensor, y: cute.Tensor, n: cute.Int32, bits: cute.Constexpr, each: cute.Constexpr
):
    atom = cute.make_copy_atom(CopyUniversalOp(), x.element_type, num_bits_per_copy=bits)
    t = cute.arch.thread_idx()[0]
    layout = cute.make_layout((4, 2), stride=(1, 128))
    source = cute.make_tensor(x.iterator + 4 * t, layout)
    target = cute.make_tensor(y.iterator + 4 * t, layout)
    fragment = cute.make_rmem_tensor((4, 2), x.element_type)
    fragment.fill(-1.0)
    inside = cute.make_rmem_tensor((8 // each,), cute.Boolean)
    for i in cute.range_constexpr(8 // each):
        inside[i] = 4 * t + layout(i * each) < n
    cute.copy(atom, source, fragment, pred=inside)
    cute.copy(atom, fragment, target)


@cute.jit
def predicated(
    x: cute.Tensor, y: cute.Tensor, n: cute.Int32, bits: cute.Constexpr, each: cute.Constexpr
):
    predicated_kernel(x, y, n, bits, each).launch(grid=1, block=32)


@pytest.mark.parametrize(("bits", "each"), [(128, 4), (32, 1), (32, 4), (None, 1), (None, 4)])
@pytest.mark.parametrize("n", [0, 64, 101, 256])
def test_a_false_predicate_copies_nothing(target, bits, each, n):
    x, y, a, b = arrays(256)
    predicated(a, b, n, bits, each)
    known = n if each == 1 else -(-n // 4) * 4
    np.testing.assert_array_equal(y, np.where(np.arange(256) < known, x, -1))


@cute.kernel
def async_kernel(x: cute.Tensor, y: cute.Tensor, n: cute.Int32, zero_fill: cute.Constexpr):
    t = cute.arch.thread_idx()[0]
    smem = cute.utils.SmemAllocator().allocate_tensor(x.element_type, (256,))
    if t == 0:
        for i in cute.range_constexpr(8):
            cute.local_tile(smem, (32,), (i,)).fill(-1.0)
    cute.arch.sync_threads()
    op = cpasync.CopyG2SOp(LoadCacheMode.GLOBAL, zero_fill=zero_fill)
    atom = cute.make_copy_atom(op, x.element_type, num_bits_per_copy=128)
    inside = cute.make_rmem_tensor(1, cute.Boolean)
    inside[0] = 4 * t < n
    cute.copy(atom, cute.local_tile(x, (4,), (t,)), cute.local_tile(smem, (4,), (t,)), pred=inside)
    cute.arch.cp_async_commit_group()
    cute.arch.cp_async_wait_group(0)
    cute.arch.sync_threads()
    cute.autovec_copy(cute.local_tile(smem, (4,), (63 - t,)), cute.local_tile(y, (4,), (63 - t,)))


@cute.jit
def through_smem(x: cute.Tensor, y: cute.Tensor, n: cute.Int32, zero_fill: cute.Constexpr):
    async_kernel(x, y, n, zero_fill).launch(grid=1, block=64)


@pytest.mark.parametrize("zero_fill", [False, True])
@pytest.mark.parametrize("n", [0, 100, 256])
def test_cp_async_skips_or_fills_with_zeros(target, zero_fill, n):
    x, y, a, b = arrays(256)
    through_smem(a, b, n, zero_fill)
    np.testing.assert_array_equal(y, np.where(np.arange(256) < n, x, 0.0 if zero_fill else -1.0))


def test_cp_async_in_ptx():
    _, _, a, b = arrays(256)
    compiled = cute.compile(through_smem, a, b, 100, True, options="--arch sm_90a")
    assert "cp.async.cg.shared.global [" in compiled.stages.text("ptx")
    assert ", 16, " in compiled.stages.text("ptx")


# Element by element ------------------------------------------------------------------------------


def test_autovec_and_basic_copies_of_any_order(target):
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor, w: cute.Tensor):
        fragment = cute.make_rmem_tensor(cute.make_layout((8, 4), stride=(4, 1)), x.element_type)
        cute.autovec_copy(x, fragment)
        cute.autovec_copy(fragment, y)
        cute.basic_copy(fragment, z)
        even = cute.make_rmem_tensor((8, 4), cute.Boolean)
        for i in cute.range_constexpr(32):
            even[i] = x[i] > 0.0
        cute.basic_copy_if(even, x, w)

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor, w: cute.Tensor):
        kernel(x, y, z, w).launch(grid=1, block=1)

    x, y, _, _ = arrays(8, 4)
    z, w = np.zeros((4, 8), np.float32).T, np.full((8, 4), 5, np.float32)
    host(*map(from_dlpack, (x, y, z, w)))
    np.testing.assert_array_equal(x, y)
    np.testing.assert_array_equal(x, z)
    np.testing.assert_array_equal(w, np.where(x > 0, x, 5))


def test_one_instruction(target):
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        atom = cute.make_copy_atom(CopyUniversalOp(), x.element_type, num_bits_per_copy=128)
        fragment = cute.make_rmem_tensor(4, x.element_type)
        cute.copy_atom_call(atom, x, fragment)
        cute.copy_atom_call(atom, fragment, y, pred=x[0] > 1e9)
        cute.copy_atom_call(
            cute.make_copy_atom(CopyUniversalOp(), x.element_type),
            cute.local_tile(fragment, (2,), (0,)), cute.local_tile(y, (2,), (0,)),
        )  # fmt: skip

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor):
        kernel(x, y).launch(grid=1, block=1)

    x, y, a, b = arrays(4)
    host(a, b)
    np.testing.assert_array_equal(y, [x[0], x[1], np.nan, np.nan])


def test_tiled_copies_of_each_other_and_their_facts():
    atom = cute.make_copy_atom(CopyUniversalOp(), cute.Float16, num_bits_per_copy=128)
    one = cute.make_copy_atom(CopyUniversalOp(), cute.Float16)
    thr = cute.make_layout((16, 8), stride=(8, 1))
    tiled = cute.make_tiled_copy_tv(atom, thr, cute.make_layout((1, 8)))
    assert tiled.size == 128 and cute.size(tiled.tiler_mn) == 1024
    assert str(atom) == "CopyUniversalOp of Float16, 128 bits"
    assert tiled.layout_src_tv_tiled == tiled.layout_dst_tv_tiled
    for make in (cute.make_tiled_copy_S, cute.make_tiled_copy_D):
        made = make(one, tiled).layout_src_tv_tiled
        assert [made(i) for i in range(1024)] == [tiled.layout_src_tv_tiled(i) for i in range(1024)]
    again = cute.make_tiled_copy(atom, tiled.layout_tv_tiled, tiled.tiler_mn)
    assert again == tiled
    data = cute.make_layout((16, 64), stride=(64, 1))
    cotiled = cute.make_cotiled_copy(atom, cute.make_layout((128, 8), stride=(8, 1)), data)
    assert cotiled.size == 128


@pytest.mark.parametrize("priority", nvgpu.CacheEvictionPriority)
def test_an_eviction_priority_reaches_the_instructions(priority):
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        fragment = cute.make_rmem_tensor_like(x)
        cute.autovec_copy(x, fragment, l1c_evict_priority=priority)
        cute.autovec_copy(fragment, y, l1c_evict_priority=priority)

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor):
        kernel(x, y).launch(grid=(1, 1, 1), block=(1, 1, 1))

    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    pair = [from_dlpack(v, assumed_align=16) for v in (x, y)]
    ptx = cute.compile(host, *pair, options="--arch sm_80").stages.text("ptx")
    assert ptx.count(f"ld.global.{priority.value}.v2.b64") == 2
    assert ptx.count(f"st.global.{priority.value}.v2.b64") == 2
    host(*pair)
    np.testing.assert_array_equal(x, y)


def test_a_copy_of_nothing_is_nothing(target):
    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor):
        atom = cute.make_copy_atom(CopyUniversalOp(), x.element_type)
        cute.autovec_copy(x, y)
        cute.basic_copy(x, y)
        cute.copy(atom, x, y)

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor):
        kernel(x, y).launch(grid=(1, 1, 1), block=(1, 1, 1))

    host(*(from_dlpack(np.zeros(0, np.float32)) for _ in range(2)))


def test_what_is_no_eviction_priority_is_refused():
    @cute.kernel
    def kernel(x: cute.Tensor):
        cute.autovec_copy(x, cute.make_rmem_tensor_like(x), l1c_evict_priority="soon")

    @cute.jit
    def host(x: cute.Tensor):
        kernel(x).launch(grid=(1, 1, 1), block=(1, 1, 1))

    assert "l1c_evict_priority is one of" in refused(host, from_dlpack(np.zeros(8, np.float32)))
