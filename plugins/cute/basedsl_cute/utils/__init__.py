"""`cute.utils`: helpers above the hardware."""

from basedsl_cute.utils.smem_allocator import SmemAllocator

__all__ = ["SmemAllocator"]
