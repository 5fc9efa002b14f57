"""`cute.utils`: allocators, tile schedulers, epilogues and choices that kernels share."""

from typing import TYPE_CHECKING

from basedsl import imported_later
from basedsl_cute.algebra.draw import print_latex, print_latex_tv
from basedsl_cute.hardware.unsupported import unsupported_names
from basedsl_cute.tensors.numeric_kinds import is_fp8_dtype

if TYPE_CHECKING:
    from basedsl_cute.dsl.hardware_info import HardwareInfo, get_smem_capacity_in_bytes
    from basedsl_cute.utils import (  # noqa: F401
        blackwell_helpers,
        blockscaled_layout,
        distributed,
        epilogue,
        gemm,
        group_scheduler,
        hardware_info,
        hopper_helpers,
        launch_scheduler,
        layout_enum,
        mixed_input_helpers,
        shared_memory_report,
        sm90,
        sm100,
        smem_allocator,
        static_persistent_tile_scheduler,
        tensor_helpers,
        tensormap_manager,
        tile_copy,
        tile_scheduler,
        tmem_allocator,
        vector_width,
    )
    from basedsl_cute.utils.blackwell_helpers import compute_epilogue_tile_shape
    from basedsl_cute.utils.group_scheduler import (
        GroupedGemmTileSchedulerHelper,
        StaticPersistentGroupTileScheduler,
        create_initial_search_state,
    )
    from basedsl_cute.utils.launch_scheduler import (
        ClcDynamicPersistentTileScheduler,
        ClcDynamicPersistentTileSchedulerParams,
    )
    from basedsl_cute.utils.layout_enum import LayoutEnum
    from basedsl_cute.utils.shared_memory_report import SmemReport, smem_report
    from basedsl_cute.utils.smem_allocator import SmemAllocator, SmemPartition
    from basedsl_cute.utils.tensor_helpers import create_cute_tensor_for_fp8
    from basedsl_cute.utils.tensormap_manager import TensorMapManager, TensorMapUpdateMode
    from basedsl_cute.utils.tile_copy import block_copy
    from basedsl_cute.utils.tile_scheduler import (
        PersistentTileSchedulerParams,
        StaticPersistentRuntimeTileScheduler,
        StaticPersistentTileScheduler,
        WorkTileInfo,
    )
    from basedsl_cute.utils.tmem_allocator import TmemAllocator, get_num_tmem_alloc_cols
    from basedsl_cute.utils.vector_width import common_vector
else:  # a type checker reports names that do not exist
    # A kernel uses few of these, and importing all of them takes time in every program.
    __getattr__ = imported_later(__name__, unsupported_names(__name__))

__all__ = [
    "ClcDynamicPersistentTileScheduler",
    "ClcDynamicPersistentTileSchedulerParams",
    "GroupedGemmTileSchedulerHelper",
    "HardwareInfo",
    "LayoutEnum",
    "PersistentTileSchedulerParams",
    "SmemAllocator",
    "SmemPartition",
    "SmemReport",
    "StaticPersistentGroupTileScheduler",
    "StaticPersistentRuntimeTileScheduler",
    "StaticPersistentTileScheduler",
    "TensorMapManager",
    "TensorMapUpdateMode",
    "TmemAllocator",
    "WorkTileInfo",
    "blackwell_helpers",
    "block_copy",
    "blockscaled_layout",
    "common_vector",
    "compute_epilogue_tile_shape",
    "create_cute_tensor_for_fp8",
    "create_initial_search_state",
    "distributed",
    "epilogue",
    "gemm",
    "get_num_tmem_alloc_cols",
    "get_smem_capacity_in_bytes",
    "hardware_info",
    "hopper_helpers",
    "is_fp8_dtype",
    "mixed_input_helpers",
    "print_latex",
    "print_latex_tv",
    "sm90",
    "sm100",
    "smem_report",
    "static_persistent_tile_scheduler",
    "tensor_helpers",
]


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
