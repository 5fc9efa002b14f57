"""`cute.utils`: helpers above the hardware."""

from basedsl_cute.algebra.draw import print_latex, print_latex_tv
from basedsl_cute.blackwell import absent
from basedsl_cute.numeric_kinds import is_fp8_dtype
from basedsl_cute.utils import epilogue, hardware_info, hopper_helpers, tensor_helpers
from basedsl_cute.utils.hardware_info import HardwareInfo, get_smem_capacity_in_bytes
from basedsl_cute.utils.layout_enum import LayoutEnum
from basedsl_cute.utils.smem_allocator import SmemAllocator
from basedsl_cute.utils.smem_report import SmemReport, smem_report
from basedsl_cute.utils.tensor_helpers import create_cute_tensor_for_fp8
from basedsl_cute.utils.tile_scheduler import (
    PersistentTileSchedulerParams,
    StaticPersistentTileScheduler,
    WorkTileInfo,
)
from basedsl_cute.utils.vector_width import common_vector

sm90 = hopper_helpers

__getattr__ = absent(__name__)

__all__ = [
    "HardwareInfo",
    "LayoutEnum",
    "PersistentTileSchedulerParams",
    "SmemAllocator",
    "SmemReport",
    "StaticPersistentTileScheduler",
    "WorkTileInfo",
    "common_vector",
    "create_cute_tensor_for_fp8",
    "epilogue",
    "get_smem_capacity_in_bytes",
    "hardware_info",
    "hopper_helpers",
    "is_fp8_dtype",
    "print_latex",
    "print_latex_tv",
    "sm90",
    "smem_report",
    "tensor_helpers",
]
