"""Names that `cute` puts on operations of any dialect, read by later steps and by the simulator."""

from __future__ import annotations

# On a wait of a producer for one of so many stages: it may happen in an earlier iteration.
ACQUIRES = "cute.acquires"

# On a TMA load without a barrier: the bytes of its box. The step `pipeline-loops` gives it one.
UNBOUND_BYTES = "cute.tma_bytes"

# On llvm.load and llvm.store: the cache operator that PTX writes ("cg", "L2::128B", ...).
CACHE_ATTRIBUTE = "cute.cache"

# On a load: its bytes are written back together with others, whether they were written or not.
KEEPS = "cute.keeps"

# On a gpu.printf that prints nothing: a debug point, its line and its variables, as JSON.
DEBUG_ATTRIBUTE = "cute.debug"

# On a struct in shared memory: the names of its fields, for the simulator's messages.
FIELDS_ATTRIBUTE = "cute.fields"

# On a kernel's parameter: its bytes are read in place and never change (CUDA's __grid_constant__).
# NVVM's own attribute is refused on a gpu.func, and `convert-gpu-to-nvvm` forgets `llvm.byval`; so
# parameters' attributes travel in PARAMETERS, and the step `ptx` puts them back.
GRID_CONSTANT = "cute.grid_constant"
PARAMETERS = "basedsl.parameters"
BYVAL = "byval "  # before the type of kernel arguments that are the bytes behind a pointer

# On a gpu.func, left by `lower-cute` for the launch and for reports: bytes of shared memory.
STATIC_SMEM_ATTRIBUTE = "cute.static_smem_bytes"
DYNAMIC_SMEM_ATTRIBUTE = "cute.dynamic_smem_bytes"
# What lies where in dynamic shared memory, "name:offset;...", for the simulator's messages.
DYNAMIC_SMEM_NAMES_ATTRIBUTE = "cute.dynamic_smem_names"
DYNAMIC_SMEM_SYMBOL = "cute_dynamic_smem"
# In bytes, of dynamic shared memory and of the first static allocation: what a TMA tile with a
# swizzle of 128 bytes asks for.
DYNAMIC_SMEM_ALIGNMENT = 1024
SMEM_ALIGNMENT = 16  # bytes: what every shared allocation gets at least, enough for any access

# On a gpu.launch_func, set by the front end.
COOPERATIVE_ATTRIBUTE = "cute.cooperative"
PDL_ATTRIBUTE = "cute.pdl"
# The flags of the events that the launch depends on as tokens, by their names in LaunchConfig.
EVENTS_ATTRIBUTE = "cute.events"
SMEM_IS_TOTAL_ATTRIBUTE = "cute.smem_is_total"  # it includes what the kernel allocates
CARVEOUT_ATTRIBUTE = "cute.smem_carveout"  # on a gpu.func: percent + 1
# On a gpu.func: the cluster that the launch had rather than its own smaller one.
PREFERRED_CLUSTER_ATTRIBUTE = "cute.preferred_cluster"
# On a gpu.func: shared memory of the branches of a condition lies in the same place.
MERGED_BRANCHES_ATTRIBUTE = "cute.merged_branches"
