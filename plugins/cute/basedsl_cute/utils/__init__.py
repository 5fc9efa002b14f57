"""`cute.utils`: allocators, tile schedulers, epilogues and choices that kernels share."""

from typing import TYPE_CHECKING

from basedsl_cute.algebra.draw import print_latex, print_latex_tv
from basedsl_cute.hardware.unsupported import unsupported_names
from basedsl_cute.tensors.numeric_kinds import is_fp8_dtype

if TYPE_CHECKING:
    from basedsl_cute.dsl.hardware_info import HardwareInfo, get_smem_capacity_in_bytes
    from basedsl_cute.utils import (
        blackwell_helpers,
        blockscaled_layout,
        distributed,
        epilogue,
        gemm,
        hardware_info,
        hopper_helpers,
        tensor_helpers,
    )
    from basedsl_cute.utils import blackwell_helpers as sm100
    from basedsl_cute.utils import hopper_helpers as sm90
    from basedsl_cute.utils import tile_scheduler as static_persistent_tile_scheduler
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
    __getattr__ = unsupported_names(
        __name__,
        later={
            "blackwell_helpers": "compute_epilogue_tile_shape",
            "blockscaled_layout": "",
            "distributed": "",
            "epilogue": "",
            "gemm": "",
            "group_scheduler": """GroupedGemmTileSchedulerHelper
                StaticPersistentGroupTileScheduler create_initial_search_state""",
            "hardware_info": "HardwareInfo get_smem_capacity_in_bytes",
            "hopper_helpers": "",
            "launch_scheduler": """ClcDynamicPersistentTileScheduler
                ClcDynamicPersistentTileSchedulerParams""",
            "layout_enum": "LayoutEnum",
            "shared_memory_report": "SmemReport smem_report",
            "sm90": "",
            "sm100": "",
            "smem_allocator": "SmemAllocator SmemPartition",
            "static_persistent_tile_scheduler": "",
            "tensor_helpers": "create_cute_tensor_for_fp8",
            "tensormap_manager": "TensorMapManager TensorMapUpdateMode",
            "tile_scheduler": """PersistentTileSchedulerParams StaticPersistentRuntimeTileScheduler
                StaticPersistentTileScheduler WorkTileInfo""",
            "tmem_allocator": "TmemAllocator get_num_tmem_alloc_cols",
            "vector_width": "common_vector",
        },
    )

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
