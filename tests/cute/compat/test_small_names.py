"""Small names that programs use and no other test does: what they are and do."""

from pathlib import Path

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLError, DSLTypeError
from basedsl_cute import arch, pipeline, runtime, testing, typing, utils
from basedsl_cute.nvgpu import CacheEvictionPriority, LoadCacheMode, MemoryOrder, cpasync
from basedsl_cute.nvgpu.warpgroup import OperandMajorMode, SmemLayoutAtomKind, make_smem_layout_atom
from basedsl_cute.runtime import from_dlpack, make_fake_compact_tensor


@pytest.mark.parametrize("kind", ["Shape", "Stride", "Coord", "Tile", "Tiler", "IntTuple", "Int"])
def test_annotations_of_tuples_make_dynamic_integers(sim, kind):
    annotation = getattr(cute, kind)
    assert getattr(typing, kind) is annotation

    @cute.kernel
    def kernel(out: cute.Tensor, given: annotation):
        first = given if cute.const_expr(kind == "Int") else given[0]
        assert not cute.is_static(first)
        out[0] = first

    @cute.jit
    def run(out: cute.Tensor, given: annotation):
        kernel(out, given).launch(grid=1, block=1)

    out = np.zeros(1, np.int32)
    run(out, 5 if kind == "Int" else (5, 6))
    assert out[0] == 5


def test_old_spellings_of_loops_and_conditions(sim):
    @cute.kernel
    def kernel(out: cute.Tensor, n: cute.Int32):
        total = cute.Int32(0)
        for i in cute.range_dynamic(n):
            if cute.dynamic_expr(i > 1):
                total += i
        out[0] = total
        out[1] = arch.get_dyn_smem_size()
        out[2] = cute.Int32(arch.vote_ballot_sync(True, arch.FULL_MASK) == -1)
        arch.fence_acq_rel_cta()
        arch.fence_acq_rel_sys()

    @cute.jit
    def run(out: cute.Tensor, n: cute.Int32):
        kernel(out, n).launch(grid=1, block=32, smem=512)

    out = np.zeros(3, np.int32)
    run(out, 5)
    assert out.tolist() == [9, 512, 1]


def test_symbols_of_32_bits_stand_for_extents():
    n = cute.sym_int32(divisibility=4)
    fake = make_fake_compact_tensor(cute.Float32, (n,))

    @cute.jit
    def host(x: cute.Tensor):
        assert x.shape[0].divby == 4 and x.shape[0].dtype is cute.Int32

    cute.compile(host, fake, options="--gpu-arch sim")


def test_an_llvm_pointer_is_the_address_of_any_space():
    seen = []

    @cute.kernel
    def kernel(x: cute.Tensor):
        seen.append(str(x.iterator.to_llvm_ptr(loc=None, ip=None).type))
        seen.append(str(arch.alloc_smem(cute.Int32, 4).to_llvm_ptr().type))

    @cute.jit
    def run(x: cute.Tensor):
        kernel(x).launch(grid=1, block=32)

    x = from_dlpack(np.zeros(4, np.float32))
    cute.compile(run, x, options="--gpu-arch sm_90a")
    assert seen == ["!llvm.ptr<1>", "!llvm.ptr<3>"]
    assert cute.AddressSpace.dsmem.value != cute.AddressSpace.smem.value


@pytest.mark.parametrize(
    "priority", [CacheEvictionPriority.EVICT_NORMAL, CacheEvictionPriority.EVICT_FIRST]
)
def test_eviction_priorities_reach_ptx(priority):
    ptx = ptx_of_copy(l1c_evict_priority=priority)
    assert f".{priority.value}" in ptx


def ptx_of_copy(**options):
    @cute.kernel
    def kernel(x: cute.Tensor, out: cute.Tensor):
        registers = cute.make_fragment_like(x)
        cute.autovec_copy(x, registers, **options)
        cute.autovec_copy(registers, out)

    @cute.jit
    def run(x: cute.Tensor, out: cute.Tensor):
        kernel(x, out).launch(grid=1, block=1)

    x = make_fake_compact_tensor(cute.Float32, (4,), assumed_align=16)
    return cute.compile(run, x, x, options="--gpu-arch sm_90a").__ptx__


@pytest.mark.parametrize(
    "mode, found", [(LoadCacheMode.ALWAYS, "cp.async.ca"), (LoadCacheMode.GLOBAL, "cp.async.cg")]
)
def test_cache_modes_of_cp_async_reach_ptx(mode, found):
    @cute.kernel
    def kernel(x: cute.Tensor):
        atom = cute.make_copy_atom(cpasync.CopyG2SOp(mode), cute.Float32, num_bits_per_copy=128)
        shared = utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout(4), 16)
        cute.copy(atom, x, shared)
        arch.cp_async_commit_group()
        arch.cp_async_wait_group(0)

    @cute.jit
    def run(x: cute.Tensor):
        kernel(x).launch(grid=1, block=1)

    x = make_fake_compact_tensor(cute.Float32, (4,), assumed_align=16)
    assert found in cute.compile(run, x, options="--gpu-arch sm_90a").__ptx__


@pytest.mark.parametrize("order", ["RELAXED", "RELEASE", "VOLATILE", "ACQ_REL", "CONSTANT", "MMIO"])
def test_memory_orders_of_a_store(order):
    @cute.kernel
    def kernel(x: cute.Tensor):
        registers = cute.make_rmem_tensor(1, cute.Float32)
        registers.fill(1.0)
        op = cute.nvgpu.CopyR2GOp()
        atom = cute.make_copy_atom(
            op, cute.Float32, num_bits_per_copy=32, memory_order=MemoryOrder[order]
        )
        cute.copy(atom, registers, x)

    @cute.jit
    def run(x: cute.Tensor):
        kernel(x).launch(grid=1, block=1)

    x = make_fake_compact_tensor(cute.Float32, (1,))
    if order in ("ACQ_REL", "CONSTANT", "MMIO"):
        with pytest.raises(DSLTypeError, match=order):
            cute.compile(run, x, options="--gpu-arch sm_90a")
    else:
        ptx = cute.compile(run, x, options="--gpu-arch sm_90a").__ptx__
        assert f"st.{order.lower()}" in ptx


def test_major_modes_by_layout():
    rows = from_dlpack(np.zeros((4, 6), np.float32))
    columns = from_dlpack(np.zeros((6, 4), np.float32).T)
    for tensor, is_row in ((rows, True), (columns, False)):
        major = utils.LayoutEnum.from_tensor(tensor)
        mode = OperandMajorMode.K if is_row else OperandMajorMode.MN
        assert major.mma_major_mode() is major.sm90_mma_major_mode() is mode
        assert major.is_k_major_a() == major.is_k_major_b() == major.is_n_major_c() == is_row
        assert major.is_m_major_a() == major.is_n_major_b() == major.is_m_major_c() != is_row


def test_a_layout_without_swizzle_has_whole_rows_of_16_bytes():
    plain = make_smem_layout_atom(SmemLayoutAtomKind.MN_INTER, cute.Float16)
    assert plain.outer.shape == (8, 8) and plain.outer.stride == (1, 8) and plain.inner.bits == 0


def test_mbarriers_of_a_program_of_its_own(sim):
    @cute.kernel
    def kernel(out: cute.Tensor):
        thread = arch.thread_idx()[0]
        storage = utils.SmemAllocator().allocate_array(cute.Int64, 2)
        group = pipeline.CooperativeGroup(pipeline.Agent.Thread, 32)
        bars = pipeline.MbarrierArray(storage, 2, (pipeline.PipelineOp.AsyncThread, group))
        shared = arch.alloc_smem(cute.Int32, 32)
        arch.mbarrier_init_fence()
        pipeline.agent_sync(pipeline.Agent.ThreadBlock)
        if thread < 32:
            (shared + thread).store(thread)
            bars.arrive(1)
        else:
            bars.wait(1, 0)
            out[thread - 32] = (shared + (63 - thread)).load()
        pipeline.agent_sync(pipeline.Agent.ThreadBlock)

    @cute.jit
    def run(out: cute.Tensor):
        kernel(out).launch(grid=1, block=64)

    out = np.zeros(32, np.int32)
    run(out)
    assert out.tolist() == list(range(31, -1, -1))
    assert pipeline.PipelineUserType.ProducerConsumer is not pipeline.PipelineUserType.Producer
    assert len(utils.SmemPartition) == 2


def test_work_tiles_are_carried_through_loops(sim):
    @cute.kernel
    def kernel(out: cute.Tensor, n: cute.Int32):
        tile = utils.WorkTileInfo((cute.Int32(0), cute.Int32(0), cute.Int32(0)), cute.Boolean(True))
        while tile.is_valid_tile:
            at = tile.tile_idx[0] + 1
            tile = utils.WorkTileInfo((at, at, at), at < n)
        out[0] = tile.tile_idx[2]

    @cute.jit
    def run(out: cute.Tensor, n: cute.Int32):
        kernel(out, n).launch(grid=1, block=1)

    out = np.zeros(1, np.int32)
    run(out, 4)
    assert out[0] == 4


def test_what_hosts_ask():
    assert all(Path(path).name for path in runtime.find_runtime_libraries())
    arguments = testing.JitArguments(1, n=2)
    arguments.add_to_scope([object()])
    assert (arguments.args, arguments.kwargs) == ((1,), {"n": 2})
    known = [cute.Float8E4M3FN, cute.Float8E5M2, cute.Float16, cute.Int8, float]
    assert list(map(utils.is_fp8_dtype, known)) == [True, True, False, False, False]
    assert isinstance(cute.Int32, typing.NumericMeta)
    assert arch.get_max_tmem_alloc_cols("sm_100") == 512
    assert arch.get_min_tmem_alloc_cols("sm_100") == 32


def test_the_place_of_a_tensor_map():
    seen = []

    @cute.kernel
    def kernel(maps: cute.Tensor):
        manager = utils.TensorMapManager(utils.TensorMapUpdateMode.GMEM, 128)
        place = manager.get_tensormap_ptr(maps.iterator)
        seen.append((place.space, place.alignment))
        with pytest.raises(DSLTypeError, match="a tensor map lies in global or shared memory"):
            manager.get_tensormap_ptr(cute.make_rmem_tensor(16, cute.Int64).iterator)

    @cute.jit
    def run(maps: cute.Tensor):
        kernel(maps).launch(grid=1, block=1)

    maps = make_fake_compact_tensor(cute.Int64, (16,), assumed_align=128)
    cute.compile(run, maps, options="--gpu-arch sm_90a")
    assert seen == [("gmem", 128)]


def test_loads_of_tensor_memory_are_waited_for():
    @cute.kernel
    def kernel():
        arch.fence_view_async_tmem_load()

    @cute.jit
    def run():
        kernel().launch(grid=1, block=32)

    assert "tcgen05.wait::ld" in cute.compile(run, options="--gpu-arch sm_100a").__ptx__


@cute.kernel
def one_instruction_each(x: cute.Tensor, words: cute.Tensor, wide: cute.Tensor):
    t = arch.thread_idx()[0]
    a, b = x[t, 0], x[t, 1]
    x[t, 2] = arch.fmax(a, b, abs=True, ftz=True)
    x[t, 3] = arch.fmin(a, b, abs=True)
    x[t, 4] = cute.math.sqrt(cute.math.abs(a), approx=True)
    x[t, 5] = cute.math.roundeven(cute.math.max(b, -3.0, ftz=True))
    x[t, 6], x[t, 7] = arch.exp_packed_f32x2((a, b))
    p, q, r = words[t, 0], words[t, 1], words[t, 2]
    words[t, 3] = arch.lop3(p, q, r, (0xF0 & 0xCC) | 0xAA)
    words[t, 4] = arch.lop3(p, q, r, 0x96)
    wide[t] = arch.mul_wide(p, q)


def test_single_instructions(sim):
    @cute.jit
    def run(x: cute.Tensor, words: cute.Tensor, wide: cute.Tensor):
        one_instruction_each(x, words, wide).launch(grid=1, block=32)

    rng = np.random.default_rng(0)
    x, words = rng.uniform(-3, 3, (32, 8)).astype("f4"), rng.integers(-(2**31), 2**31, (32, 5))
    words = words.astype(np.int32)
    wide = np.zeros(32, np.int64)
    run(x, words, wide)
    a, b = np.abs(x[:, :2].T)
    p, q, r, *found = words.T
    np.testing.assert_array_equal(x[:, 2:4].T, [np.maximum(a, b), np.minimum(a, b)])
    np.testing.assert_array_equal(x[:, 5], np.rint(x[:, 1]))
    np.testing.assert_allclose(x[:, 4], np.sqrt(a), rtol=1e-6)
    np.testing.assert_allclose(x[:, 6:], np.exp(x[:, :2]), rtol=1e-5)
    np.testing.assert_array_equal(found, [(p & q) | r, p ^ q ^ r])
    np.testing.assert_array_equal(wide, p.astype(np.int64) * q)


@pytest.mark.parametrize(
    "arguments, message",
    [((1, 2, 3, 256), "from 0 to 255"), ((1, cute.Int64(2), 3, 0), "takes 32-bit integers")],
)
def test_what_lop3_refuses(arguments, message):
    with pytest.raises(DSLTypeError, match=message):
        arch.lop3(*arguments)


def test_reductions_into_memory(sim):
    @cute.kernel
    def kernel(floats: cute.Tensor, integers: cute.Tensor):
        t = arch.thread_idx()[0]
        arch.red(floats.iterator, 0.5, op="add", dtype="f32", sem="relaxed", scope="gpu")
        values = cute.make_rmem_tensor(2, cute.Float32)
        values.fill(1.0)
        arch.red(floats.iterator + 1, values.load(), op="add")
        arch.red(floats.iterator + 1, values.load().ir_value(), op="add", dtype=cute.Float32)
        arch.red(integers.iterator, t - 8, op="min")
        arch.red(integers.iterator + 1, t - 8, op="max", dtype="u32")

    @cute.jit
    def run(floats: cute.Tensor, integers: cute.Tensor):
        kernel(floats, integers).launch(grid=1, block=32)

    floats, integers = np.zeros(3, np.float32), np.zeros(2, np.int32)
    run(floats, integers)
    assert floats.tolist() == [16, 64, 64] and integers.tolist() == [-8, -1]
    with pytest.raises(DSLTypeError, match="has no 'mul'"):
        arch.red(None, 1, op="mul")


def test_bounds_of_unrolled_loops_and_addresses_by_name(sim):
    @cute.kernel
    def kernel(out: cute.Tensor, address: cute.Int64):
        space = cute.AddressSpace.gmem
        there = cute.make_ptr(cute.Int32, value=address, mem_space=space, assumed_align=4)
        for i in cute.range_constexpr(2, unroll_full=True):
            out[i] = (there + i).load() + 1

    @cute.jit
    def run(out: cute.Tensor):
        kernel(out, out.iterator.toint()).launch(grid=1, block=1)

    out = np.array([3, 4], np.int32)
    run(out)
    assert out.tolist() == [4, 5]
    with pytest.raises(DSLError, match="always unrolled"):
        cute.range_constexpr(2, unroll_full=False)


def test_requests_of_launch_control_by_their_other_names():
    @cute.kernel
    def kernel(out: cute.Tensor):
        smem = utils.SmemAllocator()
        response = smem.allocate_array(cute.Int32, 4, byte_alignment=16)
        done = smem.allocate_array(cute.Int64, 1)
        with arch.elect_one():
            arch.mbarrier_init(done, 1)
            arch.mbarrier_init_fence()
        arch.sync_warp()
        x, _, _ = arch.block_idx()
        valid, phase = cute.Int32(1), cute.Int32(0)
        while valid != 0:
            if arch.thread_idx()[0] == 0:
                arch.atomic_add(out.iterator + x, 1)
            with arch.elect_one():
                arch.mbarrier_arrive_and_expect_tx(done, 16)
                arch.issue_clc_query(done, response, multicast=False)
            arch.mbarrier_wait(done, phase)
            x, _, _, valid = arch.clc_response(response)
            arch.fence_view_async_shared()
            arch.sync_warp()
            phase ^= 1

    @cute.jit
    def run(out: cute.Tensor):
        kernel(out).launch(grid=(cute.size(out), 1, 1), block=(32, 1, 1))

    out = np.zeros(300, np.int32)
    cute.compile(run, out, options="--arch sim")(out)
    assert (out == 1).all()


def test_import_paths_of_classes():
    from basedsl_cute import atom, base_dsl, core, cutlass_dsl

    assert (
        atom.CopyAtom is cute.CopyAtom is core.CopyAtom and core.make_swizzle is cute.make_swizzle
    )
    assert isinstance(cute.nvgpu.CopyUniversalOp(), atom.CopyOp)
    assert isinstance(cute.nvgpu.MmaUniversalOp(cute.Float32), atom.MmaOp)
    assert base_dsl.Arch is cutlass_dsl.Arch is arch.Arch
    assert base_dsl.extract_mlir_values is cute.extract_mlir_values

    @cute.jit
    def host(n: cute.Int32):
        return n + 1

    compiled = cute.compile(host, 1)
    assert isinstance(compiled, cutlass_dsl.JitCompiledFunction) and compiled(2) == 3


def test_a_slice_of_a_tiled_copy_has_its_attributes():
    copy = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32)
    tiled = cute.make_tiled_copy_tv(copy, cute.make_layout((4, 8)), cute.make_layout((1, 4)))
    part = tiled.get_slice(3)
    assert part.size == 32 and part.tiler_mn == tiled.tiler_mn
    assert part.get_slice(5) == tiled.get_slice(5)
    with pytest.raises(AttributeError, match="no attribute 'tiler'"):
        part.tiler  # noqa: B018


def test_keywords_of_functions(sim):
    nearest = cute.math.RoundingMode.NEAREST_EVEN

    @cute.kernel
    def kernel(x: cute.Tensor):
        x[1] = cute.math.exp2(x[0], approx=True, ftz=True)
        x[2] = cute.math.tanh(x[0], approx=False)
        x[3] = cute.math.fma(x[0], x[0], 1.0, rounding=nearest, ftz=False)

    @cute.jit
    def run(x: cute.Tensor):
        kernel(x).launch(grid=1, block=1)

    x = np.full(4, 1.5, np.float32)
    run(x)
    np.testing.assert_allclose(x[1:], [2**1.5, np.tanh(1.5), 3.25], rtol=1e-6)
    with pytest.raises(DSLTypeError, match="rounds to nearest even, not by rm"):
        cute.math.fma(1.0, 2.0, 3.0, rounding="rm")
