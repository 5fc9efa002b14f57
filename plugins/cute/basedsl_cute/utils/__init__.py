"""`cute.utils`: helpers above the hardware."""

from basedsl_cute.utils import epilogue, hopper_helpers
from basedsl_cute.utils.layout_enum import LayoutEnum
from basedsl_cute.utils.smem_allocator import SmemAllocator
from basedsl_cute.utils.smem_report import SmemReport, smem_report
from basedsl_cute.utils.tile_scheduler import (
    PersistentTileSchedulerParams,
    StaticPersistentTileScheduler,
    WorkTileInfo,
)
from basedsl_cute.utils.vector_width import common_vector

sm90 = hopper_helpers

__all__ = [
    "LayoutEnum",
    "PersistentTileSchedulerParams",
    "SmemAllocator",
    "SmemReport",
    "StaticPersistentTileScheduler",
    "WorkTileInfo",
    "common_vector",
    "epilogue",
    "hopper_helpers",
    "sm90",
    "smem_report",
]
