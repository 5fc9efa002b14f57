"""`cute.arch.smem`: shared memory of the cluster."""

from basedsl_cute.arch.cluster import map_dsmem_ptr
from basedsl_cute.arch.memory import alloc_smem

__all__ = ["alloc_smem", "map_dsmem_ptr"]
