"""`cute.arch.smem`: allocation of shared memory, and that of other blocks of the cluster."""

from basedsl_cute.arch.cluster import map_dsmem_ptr
from basedsl_cute.arch.memory import alloc_smem

__all__ = ["alloc_smem", "map_dsmem_ptr"]
