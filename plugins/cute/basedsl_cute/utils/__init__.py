"""`cute.utils`: helpers above the hardware."""

from basedsl_cute.utils.smem_allocator import SmemAllocator
from basedsl_cute.utils.smem_report import SmemReport, smem_report
from basedsl_cute.utils.vector_width import common_vector

__all__ = ["SmemAllocator", "SmemReport", "common_vector", "smem_report"]
