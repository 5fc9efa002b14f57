"""`cute.utils`: helpers above the hardware."""

from basedsl_cute.utils.smem_allocator import SmemAllocator
from basedsl_cute.utils.smem_report import SmemReport, smem_report

__all__ = ["SmemAllocator", "SmemReport", "smem_report"]
