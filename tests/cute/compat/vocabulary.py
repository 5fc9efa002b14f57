"""The names that programs written for CuTe's Python DSL use, by the place where they look for them.

Facts only: what the names do is documented where they are. `table` says which of them work; the
test beside it compares that with docs/from_cute_dsl.md, and writes it there with --update-golden.
"""

from __future__ import annotations

import importlib
import inspect
import operator
import textwrap
from typing import Any

import basedsl_cute
from basedsl_cute.dsl.function import CuteFunction
from basedsl_cute.hardware.unsupported import NotOffered

# By the module or class below `basedsl_cute` (or `cutlass`); "" is the package itself.
NAMES = {
    "": """Boolean Int4 Int8 Int16 Int32 Int64 Int128 Uint8 Uint16 Uint32 Uint64 Uint128 Float16
        BFloat16 TFloat32 Float32 Float64 Float8E5M2 Float8E4M3FN Float8E4M3 Float8E4M3B11FNUZ
        Float8E8M0FNU Float6E3M2FN Float6E2M3FN Float4E2M1FN Numeric Integer Float Constexpr
        const_expr range range_constexpr range_dynamic dynamic_expr min max dtype AddressSpace
        cuda torch utils pipeline runtime testing jax cute register_jit_arg_adapter CUDA_VERSION
        DSLRuntimeError DSLCudaRuntimeError target_version cutlass_dsl jit kernel compile struct
        union native_struct printf print_tensor GenerateLineInfo KeepPTX KeepCUBIN KeepSASS
        OptLevel EnableAssertions PtxasOptions NvdisasmOptions GPUArch FastDivmodDivisor
        fast_divmod_create_divisor Ratio ScaledBasis E Int typing core arch math nvgpu SymInt
        sym_int sym_int32 sym_int64 size cosize size_in_bytes rank depth shape get select
        group_modes flatten append prepend append_ones slice_ dice ceil_div round_up shape_div
        product_each product repeat_like repeat front is_major leading_dim find find_if
        transform_leaf flatten_to_tuple unflatten has_underscore product_like increment_coord
        repeat_as_tuple elem_less crd2idx idx2crd is_static is_congruent is_weakly_congruent
        assume make_layout make_ordered_layout make_identity_layout make_layout_tv
        make_composed_layout make_swizzle Swizzle recast_layout tile_to_shape
        make_layout_image_mask Layout ComposedLayout coalesce filter_zeros composition
        complement right_inverse left_inverse logical_divide zipped_divide tiled_divide
        flat_divide logical_product blocked_product raked_product zipped_product tiled_product
        flat_product domain_offset local_tile local_partition make_ptr recast_ptr recast_tensor
        make_tensor make_identity_tensor make_rmem_tensor make_fragment make_rmem_tensor_like
        make_fragment_like Tensor Pointer TensorSSA ReductionOp where full_like zeros_like all_
        any_ exp erf tanh rsqrt make_copy_atom make_tiled_copy_tv make_tiled_copy
        make_tiled_copy_A make_tiled_copy_B make_tiled_copy_C make_tiled_copy_C_atom
        make_tiled_copy_S make_tiled_copy_D make_cotiled_copy copy autovec_copy basic_copy
        basic_copy_if copy_atom_call mma_atom_call CopyAtom MmaAtom TiledCopy TiledMma ThrCopy
        ThrMma make_mma_atom make_tiled_mma gemm Shape Stride Coord Tile IntTuple Array
        GridConstant inttoptr make_array_view Vector vector print_nd_vector prefetch if_generate
        while_generate for_generate yield_out not_ and_ or_ select_ dsl_user_op extract_mlir_values
        new_from_mlir_values experimental FrontendNext FastDivmodDivisorV2 install_as Tiler""",
    "typing": """Boolean Int4 Int8 Int16 Int32 Int64 Int128 Uint8 Uint16 Uint32 Uint64 Uint128
        Float16 BFloat16 TFloat32 Float32 Float64 Float8E5M2 Float8E4M3FN Float8E4M3
        Float8E4M3B11FNUZ Float8E8M0FNU Float6E3M2FN Float6E2M3FN Float4E2M1FN Numeric Integer
        Float Pointer Tensor Shape Stride Coord Tile IntTuple Layout Int AddressSpace T
        JitArgument Vector NumericMeta SymInt Tiler""",
    "core": "make_ptr slice_ AddressSpace ThrMma ThrCopy TiledCopy",
    "struct": "MemRange Align",
    "runtime": """from_dlpack make_ptr make_fake_tensor make_fake_compact_tensor
        make_fake_stream load_module find_runtime_libraries""",
    "cuda": "initialize_cuda_context default_stream stream_sync",
    "torch": """dtype matrix cute_tensor_like create_and_permute_torch_tensor
        convert_cute_tensor TensorInitType RandomInitConfig ScalarInitConfig GaussianInitConfig
        default_stream current_stream as_tensor get_leading_dim""",
    "torch.TensorInitType": "SKIP SCALAR RANDOM GAUSSIAN",
    "testing": """benchmark JitArguments get_workspace_count autotune_jit tune convert assert_
        CantImplementError add_tensor_init_args""",
    "cutlass_dsl": """dsl_user_op T Boolean Int8 Int16 Int32 Int64 Uint32 Uint64 Float32 Integer
        Numeric min max const_expr extract_mlir_values new_from_mlir_values DSLCudaRuntimeError
        BaseDSL JitArgument NumericMeta if_generate while_generate not_ yield_out
        set_dynamic_debug debug_print_mlir_values""",
    "jax": "cutlass_call TensorSpec cutlass_to_jax_dtype get_export_disabled_safety_checks",
    "jax.testing": "create_tensor",
    "math": "exp exp2 log log2 log10 sqrt rsqrt sin cos tan tanh erf floor ceil max min rcp",
    "AddressSpace": "generic gmem smem rmem tmem dsmem",
    "Float32": """width is_integer is_float signed inf zero is_same_kind __name__ to mlir_type
        ir_value""",
    "Int32": """width is_integer is_float signed zero is_same_kind __name__ to ir_value
        mlir_type""",
    "ReductionOp": "ADD MUL MAX MIN",
    "arch": """thread_idx block_idx block_dim grid_dim warp_idx lane_idx make_warp_uniform
        cluster_idx cluster_dim cluster_size block_in_cluster_idx block_in_cluster_dim
        block_idx_in_cluster WARP_SIZE FULL_MASK dynamic_smem_size get_dyn_smem_size
        sync_threads sync_warp barrier barrier_arrive cluster_arrive cluster_arrive_relaxed
        cluster_wait elect_one setmaxregister_increase setmaxregister_decrease
        warpgroup_reg_alloc warpgroup_reg_dealloc griddepcontrol_wait
        griddepcontrol_launch_dependents nanosleep ProxyKind SharedSpace add_packed_f32x2
        sub_packed_f32x2 mul_packed_f32x2 fma_packed_f32x2 mbarrier_init mbarrier_init_fence
        mbarrier_arrive mbarrier_expect_tx mbarrier_arrive_and_expect_tx mbarrier_wait
        mbarrier_try_wait cp_async_commit_group cp_async_wait_group cp_async_bulk_commit_group
        cp_async_bulk_wait_group fence_proxy fence_view_async_shared fence_acq_rel_cta
        fence_acq_rel_cluster fence_acq_rel_gpu fence_acq_rel_sys shuffle_sync shuffle_sync_bfly
        shuffle_sync_up shuffle_sync_down shuffle_sync_op vote_any_sync vote_all_sync
        vote_uni_sync vote_ballot_sync warp_reduction warp_reduction_max warp_reduction_sum
        warp_redux_sync atomic_add atomic_fmax atomic_fmin load store alloc_smem smem fmax fmin
        rcp_approx exp2 exp log2 log prmt popc inline_ptx alloc_tmem dealloc_tmem
        retrieve_tmem_ptr relinquish_tmem_alloc_permit get_max_tmem_alloc_cols
        get_min_tmem_alloc_cols Arch fence_view_async_tmem_load fence_view_async_tmem_store
        nvvm_wrappers sext_unpacked_i4_i8_intrinsic elect_sync""",
    "arch.smem": "map_dsmem_ptr",
    "nvgpu": """warp warpgroup cpasync common CopyUniversalOp CopyG2ROp CopyR2GOp MmaUniversalOp
        CacheEvictionPriority LoadCacheMode OperandMajorMode MemoryOrder MemoryScope
        make_tiled_tma_atom_A make_tiled_tma_atom_B tcgen05""",
    "nvgpu.common": """CopyUniversalOp CopyG2ROp CopyR2GOp MmaUniversalOp CacheEvictionPriority
        LoadCacheMode MemoryOrder MemoryScope""",
    "nvgpu.MemoryOrder": "WEAK RELAXED ACQUIRE RELEASE ACQ_REL SC MMIO CONSTANT VOLATILE",
    "nvgpu.MemoryScope": "CTA CLUSTER GPU SYS",
    "nvgpu.LoadCacheMode": "ALWAYS GLOBAL",
    "nvgpu.CacheEvictionPriority": "EVICT_NORMAL EVICT_FIRST EVICT_LAST NO_ALLOCATE",
    "nvgpu.warp": """MmaF16BF16Op MmaFP8Op LdMatrix8x8x16bOp StMatrix8x8x16bOp LdMatrix8x16x8bOp
        LdMatrix16x16x8bOp MmaMXF4Op MmaMXF4NVF4Op MmaMXF8Op MmaMXF8F6F4Op Field
        StMatrix16x8x8bOp""",
    "nvgpu.warpgroup": """MmaF16BF16Op MmaF8Op MmaI8Op OperandSource OperandMajorMode Field
        fence commit_group wait_group make_smem_layout_atom SmemLayoutAtomKind""",
    "nvgpu.warpgroup.SmemLayoutAtomKind": """K_SW128 K_SW64 K_SW32 K_INTER MN_SW128 MN_SW64
        MN_SW32 MN_INTER""",
    "nvgpu.warpgroup.OperandSource": "SMEM RMEM",
    "nvgpu.warpgroup.OperandMajorMode": "K MN",
    "nvgpu.warpgroup.Field": "ACCUMULATE",
    "nvgpu.cpasync": """CopyBulkG2SOp CopyBulkS2GOp CopyG2SOp CopyBulkTensorTileG2SOp
        CopyBulkTensorTileG2SMulticastOp CopyBulkTensorTileS2GOp CopyReduceBulkTensorTileS2GOp
        make_tiled_tma_atom tma_partition create_tma_multicast_mask prefetch_descriptor
        copy_tensormap update_tma_descriptor fence_tma_desc_release cp_fence_tma_desc_release
        LoadCacheMode CopyDsmemStoreOp TmaInfo""",
    "utils": """SmemAllocator LayoutEnum PersistentTileSchedulerParams
        StaticPersistentTileScheduler WorkTileInfo StaticPersistentRuntimeTileScheduler
        StaticPersistentGroupTileScheduler create_initial_search_state
        GroupedGemmTileSchedulerHelper TensorMapManager TensorMapUpdateMode HardwareInfo
        get_smem_capacity_in_bytes create_cute_tensor_for_fp8 is_fp8_dtype print_latex
        print_latex_tv hopper_helpers sm90 tensor_helpers hardware_info
        static_persistent_tile_scheduler TmemAllocator get_num_tmem_alloc_cols
        ClcDynamicPersistentTileScheduler ClcDynamicPersistentTileSchedulerParams
        blackwell_helpers sm100 blockscaled_layout gemm distributed mixed_input_helpers
        SmemPartition compute_epilogue_tile_shape block_copy""",
    "utils.TmemAllocator": "allocate wait_for_alloc retrieve_ptr relinquish_alloc_permit free",
    "utils.blackwell_helpers": """make_trivial_tiled_mma make_smem_layout_a make_smem_layout_b
        make_smem_layout make_smem_layout_epi compute_epilogue_tile_shape
        compute_epilogue_tile_size get_tmem_load_op get_smem_store_op
        cluster_shape_to_tma_atom_A cluster_shape_to_tma_atom_B cluster_shape_to_tma_atom_SFB
        make_blockscaled_trivial_tiled_mma get_smem_layout_atom_ab sm120_get_smem_store_op
        get_permutation_mnk get_layoutSFA_TV get_layoutSFB_TV partition_fragment_SFA
        partition_fragment_SFB check_gemm_tma_alignment make_smem_layout_atom""",
    "utils.SmemAllocator": "allocate allocate_array allocate_tensor",
    "utils.LayoutEnum": """ROW_MAJOR COL_MAJOR from_tensor mma_major_mode sm90_mma_major_mode
        is_k_major_a is_k_major_b is_m_major_a is_m_major_c is_n_major_b is_n_major_c""",
    "utils.StaticPersistentTileScheduler": """create get_grid_shape initial_work_tile_info
        get_current_work advance_to_next_work num_tiles_executed""",
    "utils.HardwareInfo": "get_max_active_clusters get_device_multiprocessor_count",
    "utils.hopper_helpers": """make_trivial_tiled_mma make_smem_layout_a make_smem_layout_b
        make_smem_layout_epi get_smem_layout_atom compute_tile_shape_or_override
        sm90_get_smem_store_op""",
    "utils.TensorMapManager": """get_tensormap_ptr init_tensormap_from_atom
        fence_tensormap_initialization update_tensormap fence_tensormap_update""",
    "utils.TensorMapUpdateMode": "GMEM SMEM",
    "pipeline": """Agent CooperativeGroup NamedBarrier sync arrive_and_wait pipeline_init_arrive
        pipeline_init_wait PipelineUserType make_pipeline_state PipelineState PipelineAsync
        PipelineCpAsync PipelineTmaAsync PipelineTmaStore PipelineOrder PipelineTmaUmma
        PipelineUmmaAsync PipelineAsyncUmma PipelineTmaMultiConsumersAsync PipelineOp
        PipelineClcFetchAsync PipelineProducer PipelineConsumer MbarrierArray agent_sync
        ClcState""",
    "pipeline.Agent": "Thread Warp",
    "pipeline.PipelineUserType": "Producer Consumer ProducerConsumer",
    "pipeline.PipelineState": "advance reset_count clone index phase count",
    "pipeline.NamedBarrier": "arrive wait arrive_and_wait",
    "pipeline.PipelineOrder": "create wait arrive",
    "pipeline.PipelineAsync": """create producer_acquire producer_try_acquire producer_commit
        producer_get_barrier producer_tail consumer_wait consumer_try_wait consumer_release
        make_participants""",
    "pipeline.PipelineTmaAsync": """create producer_acquire producer_try_acquire producer_commit
        producer_get_barrier producer_tail consumer_wait consumer_try_wait consumer_release
        make_participants""",
    "pipeline.PipelineTmaStore": "create producer_acquire producer_commit producer_tail",
    "(a @jit or @kernel function)": "set_name_prefix",
    "cutlass_dsl.T": "f32 i32 i64 bool vector f16 bf16",
    "Swizzle": "from_name",
    "Vector": "from_elements",
    "vector": "outerproduct print_nd_vector from_elements",
    "Ratio": "reduced to",
    "ScaledBasis": "value mode is_static",
    "runtime.Tensor": """shape stride layout element_type memspace leading_dim iterator data_ptr
        mark_layout_dynamic mark_compact_shape_dynamic""",
    "Layout": "shape stride max_alignment get_flat_coord get_hier_coord is_normal",
    "ComposedLayout": "inner offset outer shape is_normal",
    "Pointer": "align alignment toint dtype value_type memspace load store llvm_ptr to_llvm_ptr",
    "Tensor": """shape stride layout iterator element_type memspace leading_dim type load store
        fill""",
    "TensorSSA": "shape dtype element_type to reduce broadcast_to",
    "TiledCopy": "tiler_mn layout_src_tv_tiled layout_dst_tv_tiled size get_slice retile",
    "ThrCopy": "partition_S partition_D retile",
    "TiledMma": """get_slice make_fragment_A make_fragment_B make_fragment_C partition_shape_A
        partition_shape_B partition_shape_C set get op shape_mnk thr_id thr_layout_vmnk
        permutation_mnk tv_layout_A tv_layout_B tv_layout_C tv_layout_A_tiled tv_layout_B_tiled
        tv_layout_C_tiled size""",
    "ThrMma": "partition_A partition_B partition_C",
    "MmaAtom": "shape_mnk thr_id tv_layout_A tv_layout_B tv_layout_C",
    "testing.JitArguments": "add_to_scope",
    "nvgpu.tcgen05": """MmaF16BF16Op MmaTF32Op MmaI8Op MmaF8F6F4Op MmaMXF8F6F4Op MmaMXF4Op
        MmaMXF4NVF4Op SM103MmaMXF4Op SM103MmaMXF4NVF4Op CtaGroup OperandSource OperandMajorMode
        Field Ld32x32bOp Ld16x256bOp St32x32bOp St16x256bOp St16x128bOp LdRed32x32bOp
        LdRed16x32bx2Op Repetition
        Pack Unpack Cp4x32x128bOp make_tmem_copy make_s2t_copy get_s2t_smem_desc_tensor
        make_smem_layout_atom tile_to_mma_shape make_umma_smem_desc find_tmem_tensor_col_offset
        get_tmem_copy_properties MmaFP8Op MmaMXF8Op Ld16x128bOp Ld16x64bOp Ld16x32bx2Op St16x64bOp
        St16x32bx2Op TmemLoadRedOp SmemLayoutAtomKind Cp128x256bOp Cp128x128bOp Cp4x256bOp
        Cp2x64x128b0213Op Cp2x64x128b0123Op is_tmem_load is_tmem_store commit copy mma""",
    "nvgpu.tcgen05.CtaGroup": "ONE TWO",
    "nvgpu.tcgen05.Pack": "NONE PACK_16b_IN_32b",
    "nvgpu.tcgen05.Unpack": "NONE UNPACK_32b_IN_16b",
    "nvgpu.tcgen05.TmemLoadRedOp": "MAX MIN MAXABS MINABS",
    "nvgpu.tcgen05.Repetition": "x1 x2 x4 x8 x16 x32 x64 x128",
    "nvgpu.tcgen05.SmemLayoutAtomKind": """K_SW128 K_SW64 K_SW32 K_INTER MN_SW128 MN_SW64 MN_SW32
        MN_INTER MN_SW128_32B""",
    "nvgpu.tcgen05.OperandSource": "SMEM TMEM",
    "nvgpu.tcgen05.OperandMajorMode": "K MN",
    "nvgpu.tcgen05.Field": "ACCUMULATE SFA SFB NEGATE_A NEGATE_B",
    "arch.Arch": "sm_100 sm_100f sm_101 sm_101f sm_103 sm_103f sm_110 sm_110f sm_90a sm_80",
    "base_dsl": "BaseDSL arch dsl typing runtime enums",
    "base_dsl.dsl": "BaseDSL set_dynamic_debug",
    "base_dsl.dsl.BaseDSL": "_get_dsl get_arch_enum",
    "base_dsl.runtime.cuda": "checkCudaErrors",
    "_mlir": "ir",
    "_mlir.dialects": "arith func gpu llvm math nvvm scf vector",
    "utils.GroupedGemmTileSchedulerHelper": "delinearize_z",
    "utils.ClcDynamicPersistentTileScheduler": """create get_grid_shape initial_work_tile_info
        advance_to_next_work get_current_work""",
    "pipeline.PipelineOp": "TCGen05Mma AsyncThread",
    "nvgpu.warp.mma": "MXF8F6F4_SUPPORTED_PAIRS",
    "nvgpu.cpasync.TmaInfo": "atom tma_tensor smem_layout",
    "utils.WorkTileInfo": "tile_idx is_valid_tile",
    "utils.blockscaled_layout": """tile_atom_to_shape_SF make_smem_layout_sfa
        make_smem_layout_sfb make_tmem_layout_sfa make_tmem_layout_sfb
        sm120_make_smem_layout_sfa sm120_make_smem_layout_sfb""",
    "utils.gemm": "sm100",
    "utils.distributed": """multimem_ld_reduce multimem_ld_reduce_4xf32 multimem_st
        multimem_st_4xb32 multimem_red_add1 red_add1 spin_lock_atom_cas_acquire_wait
        spin_lock_atom_cas_relaxed_wait spin_lock_ld_lt_relaxed_wait""",
    "utils.mixed_input_helpers": """TransformMode get_transform_a_source compute_smem_layout
        get_smem_layout_scale get_gmem_layout_scale get_tma_atom_kind get_copy_atom_a_transform
        transform_partition scale_partition scale_tma_partition cvt_tensor_a store_transformed_a
        epilog_tmem_copy_and_partition epilog_smem_copy_and_partition
        epilog_gmem_copy_and_partition is_valid_scale_granularity
        is_valid_mma_tiler_and_cluster_shape is_valid_tensor_alignment is_shuffle_a get_divisibility
        contiguous_group_search create_initial_contiguous_group_search_state
        make_contiguous_group_work_tile_info""",
    "utils.mixed_input_helpers.TransformMode": "ConvertOnly ConvertScale",
    "pipeline.PipelineProducer": """acquire acquire_and_advance try_acquire commit advance tail
        reset clone ImmutableResourceHandle""",
    "pipeline.PipelineConsumer": """wait wait_and_advance try_wait release advance reset clone
        ImmutableResourceHandle""",
    "experimental": """primitives cuda allocate copy dot dot_block_scaled partition_and_copy
        tma_load tma_load_multicast tma_store TMAToUMMAPipeline UMMAtoAsyncPipeline
        TMAStorePipeline iket""",
    "experimental.cuda": "create_tensor_map_tiled create_tensor_map_tiled_from_view",
    "experimental.iket": "range_push range_pop",
    "experimental.primitives": """ReductionKind MBarrierWait GridDepAction PermuteMode prmt
        griddepcontrol
        MemScope MemOrder Shfl VoteSync barrier_cta_sync
        barrier_cta_arrive barrier_cluster_arrive barrier_cluster_wait mbarrier_init
        mbarrier_arrive mbarrier_expect_tx mbarrier_arrive_expect_tx mbarrier_try_wait_parity
        mbarrier_wait_parity cp_async_commit_group cp_async_wait_group
        cp_async_bulk_commit_group cp_async_bulk_wait_group cp_async_bulk_shared_cluster_global
        cp_async_bulk_global_shared_cta cp_async_bulk_tensor_shared_cluster_global
        cp_async_bulk_tensor_global_shared_cta cp_reduce_async_bulk_tensor_global_shared_cta
        ldmatrix stmatrix shfl_sync vote_sync redux_sync red elect_sync setmaxregister fence
        fence_proxy_async fence_mbarrier_init tensormap_replace print_runtime exit""",
    "utils.gemm.sm100": """epilogue epilogue_tma_store epilogue_tmem_copy_and_partition
        epilogue_smem_copy_and_partition transform_partitioned_tensor_layout""",
}

# Arguments of `kernel(...).launch(...)`.
LAUNCH = """grid block cluster smem stream max_number_threads min_blocks_per_mp use_pdl cooperative
    preferred_smem_carveout hint_smem_base_uniform launch_completion_event
    launch_completion_event_flags programmatic_event programmatic_event_flags
    programmatic_event_trigger_at_block_start fallback_cluster smem_merge_branch_allocs"""
LAUNCH_ERRORS: frozenset[str] = frozenset()

# Options of `cute.compile(options=...)`, with a value for each.
OPTIONS = {
    "opt-level": "2", "enable-assertions": None, "keep-ptx": None, "keep-cubin": None,
    "keep-sass": None, "nvdisasm-options": "-c", "ptxas-options": "-O2",
    "generate-line-info": None, "gpu-arch": "sm_90a", "enable-tvm-ffi": None,
    "host-target": "linux-aarch64", "iket": None,
}  # fmt: skip
OPTION_ERRORS = frozenset(("host-target", "iket"))

# The command that prints what exported functions are linked with: its flags.
AOT_CONFIG = ("--libdir", "--ldflags", "--libs", "--target", "--with-tvm-ffi")

# Environment variables, without their prefix CUTE_DSL_, with a value for each.
VARIABLES = {
    "ARCH": "sim", "KEEP": "ir", "DUMP_DIR": "dumps", "PRINT_IR": "1", "LOG_TO_CONSOLE": "1",
    "LOG_TO_FILE": "1", "LOG_LEVEL": "10", "LOG_AUTOTUNE": "1", "LINEINFO": "1",
    "CACHE_DIR": "cache", "DISABLE_FILE_CACHING": "1", "ENABLE_TVM_FFI": "1", "KEEP_PTX": "1",
    "COMPILER_OPT": "--opt-level 2",
}  # fmt: skip

# What the simulator does not run, and says so.
GPU_ONLY = frozenset(("Int128", "Uint128", "typing.Int128", "typing.Uint128", "cutlass_dsl.Int128",
    "cutlass_dsl.Uint128", "experimental.primitives.exit"))  # fmt: skip

WORKS, ON_GPU, ERROR = "works on GPUs and the simulator", "works on GPUs", "an error that says why"
FUNCTION = "(a @jit or @kernel function)"


def place(path: str) -> Any:
    """The module or class at a path."""
    if path == FUNCTION:
        return CuteFunction
    if path.startswith("_mlir"):
        return importlib.import_module(f"basedsl_cute.{path}")
    return operator.attrgetter(path)(basedsl_cute) if path else basedsl_cute


def find(path: str, name: str) -> Any:
    """The object of that name; AttributeError if there is none."""
    where = place(path)
    if path.startswith("_mlir"):
        return importlib.import_module(f"basedsl_cute.{path}.{name}")
    if not inspect.isclass(where):
        return getattr(where, name)
    found = inspect.getattr_static(where, name, None)
    if found is not None or hasattr(type(where), name):  # of the class's class: mlir_type
        return found
    if f"self.{name}" in inspect.getsource(where):  # an attribute of its objects
        return None
    return getattr(where, name)


def mark(path: str, name: str) -> str:
    """The column of the table that a name belongs to."""
    if isinstance(find(path, name), NotOffered):
        return ERROR
    return ON_GPU if f"{path}.{name}".lstrip(".") in GPU_ONLY else WORKS


def rows() -> list[tuple[str, dict[str, list[str]]]]:
    """The places, in order, with their names by mark."""
    found = []
    for path, names in NAMES.items():
        shown = path if path == FUNCTION else f"cutlass.{path}".rstrip(".")
        marks: dict[str, list[str]] = {WORKS: [], ON_GPU: [], ERROR: []}
        for name in sorted(names.split(), key=str.lower):
            marks[mark(path, name)].append(name)
        found.append((shown, marks))
    for shown, names, errors in (
        ("kernel(...).launch(...)", LAUNCH.split(), LAUNCH_ERRORS),
        ("options of cute.compile", list(OPTIONS), OPTION_ERRORS),
        ("variables CUTE_DSL_...", list(VARIABLES), frozenset()),
        ("the command aot_config", list(AOT_CONFIG), frozenset()),
    ):
        marks = {WORKS: [n for n in names if n not in errors], ON_GPU: [], ERROR: sorted(errors)}
        found.append((shown, marks))
    return found


def table() -> str:
    """The table of docs/from_cute_dsl.md."""
    lines = [f"| where | {WORKS} | {ON_GPU} | {ERROR} |", "|---|---|---|---|"]
    for shown, marks in rows():
        cells = [" ".join(f"`{name}`" for name in names) for names in marks.values()]
        lines.append(f"| `{shown}` | " + " | ".join(cells) + " |")
    count = {key: sum(len(marks[key]) for _, marks in rows()) for key in (WORKS, ON_GPU, ERROR)}
    text = (
        f"Of {sum(count.values())} names that programs use, {count[WORKS]} work on GPUs and on the "
        f"simulator, {count[ON_GPU]} on GPUs only, and {count[ERROR]} can be imported or written "
        "and are errors that say why. A test makes this table."
    )
    return "\n".join(textwrap.wrap(text, 116)) + "\n\n" + "\n".join(lines) + "\n"
