"""The names that programs written for CuTe's Python DSL use are where they look for them.

`NAMES` has a row for each place: the module (or the class in it) below `basedsl_cute`, and what
must be there. What belongs to data-center Blackwell is not offered, and says so.
"""

import importlib
import inspect
import operator

import pytest

import basedsl_cute
from basedsl import DSLError

NUMERICS = """Boolean Int4 Int8 Int16 Int32 Int64 Int128 Uint8 Uint16 Uint32 Uint64 Uint128
    Float16 BFloat16 TFloat32 Float32 Float64 Float8E5M2 Float8E4M3FN Float8E4M3 Float8E4M3B11FNUZ
    Float8E8M0FNU Float6E3M2FN Float6E2M3FN Float4E2M1FN Numeric Integer Float"""

NAMES = {
    # `import basedsl_cute as cutlass`
    "": f"""{NUMERICS} Constexpr const_expr range range_constexpr range_dynamic dynamic_expr min max
        dtype AddressSpace cuda torch utils pipeline runtime testing jax cute
        register_jit_arg_adapter
        CUDA_VERSION DSLRuntimeError DSLCudaRuntimeError target_version cutlass_dsl
        jit kernel compile struct union native_struct printf print_tensor
        GenerateLineInfo KeepPTX KeepCUBIN KeepSASS OptLevel EnableAssertions PtxasOptions
        NvdisasmOptions GPUArch FastDivmodDivisor fast_divmod_create_divisor Ratio ScaledBasis E Int
        typing core arch math nvgpu
        SymInt sym_int sym_int32 sym_int64
        size cosize size_in_bytes rank depth shape get select group_modes flatten append prepend
        append_ones slice_ dice ceil_div round_up shape_div product_each product repeat_like repeat
        front is_major leading_dim find find_if transform_leaf flatten_to_tuple unflatten
        has_underscore product_like increment_coord
        repeat_as_tuple elem_less crd2idx idx2crd is_static is_congruent is_weakly_congruent assume
        make_layout make_ordered_layout make_identity_layout make_layout_tv make_composed_layout
        make_swizzle Swizzle recast_layout tile_to_shape make_layout_image_mask Layout
        ComposedLayout
        coalesce filter_zeros composition complement right_inverse left_inverse logical_divide
        zipped_divide tiled_divide flat_divide logical_product blocked_product raked_product
        zipped_product tiled_product flat_product domain_offset local_tile local_partition
        make_ptr recast_ptr recast_tensor make_tensor make_identity_tensor make_rmem_tensor
        make_fragment make_rmem_tensor_like make_fragment_like Tensor Pointer
        TensorSSA ReductionOp where full_like zeros_like all_ any_ exp erf tanh rsqrt
        make_copy_atom make_tiled_copy_tv make_tiled_copy make_tiled_copy_A make_tiled_copy_B
        make_tiled_copy_C make_tiled_copy_C_atom make_tiled_copy_S make_tiled_copy_D
        make_cotiled_copy copy autovec_copy basic_copy basic_copy_if copy_atom_call mma_atom_call
        CopyAtom MmaAtom TiledCopy TiledMma ThrCopy ThrMma make_mma_atom make_tiled_mma gemm
        Shape Stride Coord Tile IntTuple""",
    "typing": f"{NUMERICS} Pointer Tensor Shape Stride Coord Tile IntTuple Layout Int AddressSpace",
    "core": "make_ptr slice_ AddressSpace ThrMma ThrCopy TiledCopy",
    "struct": "MemRange Align",
    "runtime": """from_dlpack make_ptr make_fake_tensor make_fake_compact_tensor make_fake_stream
        load_module find_runtime_libraries""",
    "cuda": "initialize_cuda_context default_stream stream_sync",
    "torch": """dtype matrix cute_tensor_like create_and_permute_torch_tensor convert_cute_tensor
        TensorInitType RandomInitConfig ScalarInitConfig GaussianInitConfig default_stream
        current_stream as_tensor get_leading_dim""",
    "torch.TensorInitType": "SKIP SCALAR RANDOM GAUSSIAN",
    "testing": """benchmark JitArguments get_workspace_count autotune_jit tune convert assert_
        CantImplementError""",
    "cutlass_dsl": """dsl_user_op T Boolean Int8 Int16 Int32 Int64 Uint32 Uint64 Float32 Integer
        Numeric min max const_expr extract_mlir_values new_from_mlir_values DSLCudaRuntimeError""",
    "jax": "cutlass_call TensorSpec cutlass_to_jax_dtype get_export_disabled_safety_checks",
    "jax.testing": "create_tensor",
    "math": "exp exp2 log log2 log10 sqrt rsqrt sin cos tan tanh erf floor ceil max min rcp",
    "AddressSpace": "generic gmem smem rmem tmem dsmem",
    "Float32": "width is_integer is_float signed inf zero is_same_kind __name__ to",
    "Int32": "width is_integer is_float signed zero is_same_kind __name__ to ir_value",
    "ReductionOp": "ADD MUL MAX MIN",
    "arch": """thread_idx block_idx block_dim grid_dim warp_idx lane_idx make_warp_uniform
        cluster_idx cluster_dim cluster_size block_in_cluster_idx block_in_cluster_dim
        block_idx_in_cluster WARP_SIZE FULL_MASK dynamic_smem_size get_dyn_smem_size
        sync_threads sync_warp barrier barrier_arrive
        cluster_arrive cluster_arrive_relaxed cluster_wait elect_one
        setmaxregister_increase setmaxregister_decrease warpgroup_reg_alloc warpgroup_reg_dealloc
        griddepcontrol_wait griddepcontrol_launch_dependents nanosleep ProxyKind SharedSpace
        add_packed_f32x2 sub_packed_f32x2 mul_packed_f32x2 fma_packed_f32x2
        mbarrier_init mbarrier_init_fence mbarrier_arrive mbarrier_expect_tx
        mbarrier_arrive_and_expect_tx mbarrier_wait mbarrier_try_wait
        cp_async_commit_group cp_async_wait_group cp_async_bulk_commit_group
        cp_async_bulk_wait_group fence_proxy fence_view_async_shared fence_acq_rel_cta
        fence_acq_rel_cluster fence_acq_rel_gpu fence_acq_rel_sys
        shuffle_sync shuffle_sync_bfly shuffle_sync_up shuffle_sync_down shuffle_sync_op
        vote_any_sync vote_all_sync vote_uni_sync vote_ballot_sync warp_reduction
        warp_reduction_max warp_reduction_sum warp_redux_sync
        atomic_add atomic_fmax atomic_fmin load store alloc_smem smem fmax fmin rcp_approx exp2 exp
        log2 log prmt popc inline_ptx""",
    "arch.smem": "map_dsmem_ptr",
    "nvgpu": """warp warpgroup cpasync common CopyUniversalOp CopyG2ROp CopyR2GOp MmaUniversalOp
        CacheEvictionPriority LoadCacheMode OperandMajorMode MemoryOrder MemoryScope""",
    "nvgpu.common": """CopyUniversalOp CopyG2ROp CopyR2GOp MmaUniversalOp CacheEvictionPriority
        LoadCacheMode MemoryOrder MemoryScope""",
    "nvgpu.MemoryOrder": "WEAK RELAXED ACQUIRE RELEASE ACQ_REL SC MMIO CONSTANT VOLATILE",
    "nvgpu.MemoryScope": "CTA CLUSTER GPU SYS",
    "nvgpu.LoadCacheMode": "ALWAYS GLOBAL",
    "nvgpu.CacheEvictionPriority": "EVICT_NORMAL EVICT_FIRST EVICT_LAST NO_ALLOCATE",
    "nvgpu.warp": """MmaF16BF16Op MmaFP8Op LdMatrix8x8x16bOp StMatrix8x8x16bOp LdMatrix8x16x8bOp
        LdMatrix16x16x8bOp""",
    "nvgpu.warpgroup": """MmaF16BF16Op MmaF8Op MmaI8Op OperandSource OperandMajorMode Field fence
        commit_group wait_group make_smem_layout_atom SmemLayoutAtomKind""",
    "nvgpu.warpgroup.SmemLayoutAtomKind": """K_SW128 K_SW64 K_SW32 K_INTER MN_SW128 MN_SW64 MN_SW32
        MN_INTER""",
    "nvgpu.warpgroup.OperandSource": "SMEM RMEM",
    "nvgpu.warpgroup.OperandMajorMode": "K MN",
    "nvgpu.warpgroup.Field": "ACCUMULATE",
    "nvgpu.cpasync": """CopyBulkG2SOp CopyBulkS2GOp
        CopyG2SOp CopyBulkTensorTileG2SOp CopyBulkTensorTileG2SMulticastOp
        CopyBulkTensorTileS2GOp CopyReduceBulkTensorTileS2GOp
        make_tiled_tma_atom tma_partition create_tma_multicast_mask prefetch_descriptor
        copy_tensormap update_tma_descriptor fence_tma_desc_release cp_fence_tma_desc_release
        LoadCacheMode""",
    "utils": """SmemAllocator LayoutEnum PersistentTileSchedulerParams StaticPersistentTileScheduler
        WorkTileInfo StaticPersistentRuntimeTileScheduler StaticPersistentGroupTileScheduler
        create_initial_search_state
        GroupedGemmTileSchedulerHelper TensorMapManager TensorMapUpdateMode HardwareInfo
        get_smem_capacity_in_bytes create_cute_tensor_for_fp8 is_fp8_dtype print_latex
        print_latex_tv hopper_helpers sm90 tensor_helpers hardware_info
        static_persistent_tile_scheduler TmemAllocator get_num_tmem_alloc_cols
        ClcDynamicPersistentTileScheduler ClcDynamicPersistentTileSchedulerParams""",
    "utils.TmemAllocator": """allocate wait_for_alloc retrieve_ptr relinquish_alloc_permit free""",
    "utils.blackwell_helpers": """make_trivial_tiled_mma make_smem_layout_a make_smem_layout_b
        make_smem_layout make_smem_layout_epi compute_epilogue_tile_shape
        compute_epilogue_tile_size get_tmem_load_op get_smem_store_op cluster_shape_to_tma_atom_A
        cluster_shape_to_tma_atom_B cluster_shape_to_tma_atom_SFB""",
    "utils.gemm.sm100": """epilogue epilogue_tma_store epilogue_tmem_copy_and_partition
        epilogue_smem_copy_and_partition transform_partitioned_tensor_layout""",
    "utils.SmemAllocator": "allocate allocate_array allocate_tensor",
    "utils.LayoutEnum": """ROW_MAJOR COL_MAJOR from_tensor mma_major_mode sm90_mma_major_mode
        is_k_major_a is_k_major_b is_m_major_a is_m_major_c is_n_major_b is_n_major_c""",
    "utils.StaticPersistentTileScheduler": """create get_grid_shape initial_work_tile_info
        get_current_work advance_to_next_work""",
    "utils.HardwareInfo": "get_max_active_clusters get_device_multiprocessor_count",
    "utils.hopper_helpers": """make_trivial_tiled_mma make_smem_layout_a make_smem_layout_b
        make_smem_layout_epi get_smem_layout_atom compute_tile_shape_or_override
        sm90_get_smem_store_op""",
    "utils.TensorMapManager": """get_tensormap_ptr init_tensormap_from_atom
        fence_tensormap_initialization update_tensormap fence_tensormap_update""",
    "utils.TensorMapUpdateMode": "GMEM SMEM",
    "pipeline": """Agent CooperativeGroup NamedBarrier sync
        arrive_and_wait pipeline_init_arrive
        pipeline_init_wait PipelineUserType make_pipeline_state PipelineState PipelineAsync
        PipelineCpAsync PipelineTmaAsync PipelineTmaStore PipelineOrder PipelineTmaUmma
        PipelineUmmaAsync PipelineAsyncUmma PipelineTmaMultiConsumersAsync PipelineOp
        PipelineClcFetchAsync""",
    "pipeline.Agent": "Thread Warp",
    "pipeline.PipelineUserType": "Producer Consumer ProducerConsumer",
    "pipeline.PipelineState": "advance reset_count clone",
    "pipeline.NamedBarrier": "arrive wait arrive_and_wait",
    "pipeline.PipelineOrder": "create wait arrive",
    "pipeline.PipelineAsync": """create producer_acquire producer_try_acquire producer_commit
        producer_get_barrier producer_tail consumer_wait consumer_try_wait consumer_release
        make_participants""",
    "pipeline.PipelineTmaAsync": """create producer_acquire producer_try_acquire producer_commit
        producer_get_barrier producer_tail consumer_wait consumer_try_wait consumer_release
        make_participants""",
    "pipeline.PipelineTmaStore": "create producer_acquire producer_commit producer_tail",
}

# Modules that programs import by their path, not only as attributes.
MODULES = """typing core runtime testing math arch nvgpu nvgpu.warp nvgpu.warpgroup nvgpu.cpasync
    nvgpu.common nvgpu.tcgen05 pipeline utils utils.hopper_helpers utils.blackwell_helpers
    utils.sm90 utils.sm100 utils.blockscaled_layout utils.tensor_helpers utils.hardware_info
    utils.gemm utils.gemm.sm100 utils.distributed utils.mixed_input_helpers
    utils.static_persistent_tile_scheduler
    torch jax jax.testing cuda cutlass_dsl cute cute.nvgpu cute.nvgpu.warp cute.runtime cute.testing
    cute.typing cute.math cute.arch
    base_dsl.typing base_dsl.arch base_dsl.dsl base_dsl.runtime.cuda"""

INTERNAL = """FrontendNext arch.nvvm_wrappers arch.sext_unpacked_i4_i8_intrinsic
    base_dsl.dsl.set_dynamic_debug"""

BLACKWELL = {
    "nvgpu.tcgen05": "MmaMXF4NVF4Op LdRed32x32bOp Cp4x32x128bOp make_s2t_copy",
    "nvgpu.warp": "MmaMXF4Op MmaMXF4NVF4Op MmaMXF8Op MmaMXF8F6F4Op Field",
    "pipeline": "ClcState",
    "utils.blackwell_helpers": "make_blockscaled_trivial_tiled_mma",
    "utils.blockscaled_layout": "sm120_make_smem_layout_sfa",
    "utils.distributed": "spin_lock_multimem_arrive",
    "utils.mixed_input_helpers": "transform",
}


def place(path):
    return operator.attrgetter(path)(basedsl_cute) if path else basedsl_cute


@pytest.mark.parametrize("path", NAMES)
def test_names_are_there(path):
    missing = [name for name in NAMES[path].split() if not hasattr(place(path), name)]
    assert not missing


@pytest.mark.parametrize("name", MODULES.split())
def test_modules_can_be_imported_by_path(name):
    importlib.import_module(f"basedsl_cute.{name}")


@pytest.mark.parametrize(
    ("path", "name"), [(path, name) for path, names in BLACKWELL.items() for name in names.split()]
)
def test_what_is_for_blackwell_says_so(path, name):
    stand_in = getattr(place(path), name)
    with pytest.raises(DSLError, match=rf"{name}.*sm_1[02]0"):
        stand_in()


@pytest.mark.parametrize("path", INTERNAL.split())
def test_what_is_internal_elsewhere_says_what_to_write(path):
    module, _, name = path.rpartition(".")
    where = importlib.import_module(f"basedsl_cute.{module}".rstrip("."))
    stand_in = getattr(where, name)
    with pytest.raises(DSLError, match=rf"{name} is internal to CuTe's own DSL") as error:
        stand_in()
    assert error.value.hint


@pytest.mark.parametrize("path", ["experimental", "cute.experimental"])
def test_modules_that_are_not_offered_say_what_there_is(path):
    with pytest.raises(ModuleNotFoundError, match=r"not offered; .*cute\.arch"):
        importlib.import_module(f"basedsl_cute.{path}")


def test_an_alias_is_the_module_itself():
    alias = importlib.import_module("basedsl_cute.cute.nvgpu.warp")
    assert alias is basedsl_cute.nvgpu.warp
    assert importlib.import_module("basedsl_cute.utils.sm90") is basedsl_cute.utils.hopper_helpers
    assert basedsl_cute.cute is basedsl_cute


def test_other_unknown_names_are_plain_attribute_errors():
    for module in (basedsl_cute.arch, basedsl_cute.nvgpu, basedsl_cute.utils):
        with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
            _ = module.nonsense


OPERATIONS = """arch math pipeline nvgpu.cpasync nvgpu.warpgroup utils.hopper_helpers
    pipeline.PipelineAsync pipeline.PipelineTmaAsync pipeline.PipelineTmaStore
    pipeline.PipelineCpAsync pipeline.PipelineState pipeline.PipelineOrder pipeline.NamedBarrier
    pipeline.PipelineProducer pipeline.PipelineConsumer utils.StaticPersistentTileScheduler
    utils.TensorMapManager utils.SmemAllocator"""


def is_operation(f):
    """Not what a module imports for itself."""
    helpers = (
        "basedsl_cute.algebra.ignored_location",
        "basedsl_cute.tensors.tensor_ssa",
        "basedsl_cute.tensors.vector_ops",
    )
    name = getattr(f, "__module__", None) or ""
    return inspect.isfunction(f) and name.startswith("basedsl_cute") and name not in helpers


@pytest.mark.parametrize("path", OPERATIONS.split())
def test_operations_take_a_location(path):
    where = place(path)
    names = getattr(where, "__all__", None) or [n for n in dir(where) if not n.startswith("_")]
    functions = {n: getattr(getattr(where, n), "__func__", getattr(where, n)) for n in names}
    without = [
        name
        for name, f in functions.items()
        if is_operation(f)
        and not {"loc", "ip"} <= {*(f.__kwdefaults__ or ()), *inspect.signature(f).parameters}
    ]
    assert not without
    assert sum(map(is_operation, functions.values())) > 1


def test_operations_on_layouts_take_a_location():
    layout = basedsl_cute.make_layout((4, 8), loc=None, ip=None)
    assert basedsl_cute.size(layout, mode=[1], loc=None, ip=None) == 8
    assert basedsl_cute.crd2idx((1, 2), layout, loc=None, ip=None) == 9
