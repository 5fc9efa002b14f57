"""`basedsl_cute.ops.distributed`: collectives of several GPUs of one host, ready to call.

`all_reduce`, `all_gather` and `reduce_scatter` take torch tensors and a process group. A
`Workspace` has them with outputs, and all-to-all and the all-reduce with RMSNorm.
"""

from basedsl_cute.ops.distributed.process_group import forget, workspace
from basedsl_cute.ops.distributed.torch_operations import all_gather, all_reduce, reduce_scatter
from basedsl_cute.ops.distributed.workspaces import Workspace, simulated_workspaces

__all__ = [
    "Workspace",
    "all_gather",
    "all_reduce",
    "forget",
    "reduce_scatter",
    "simulated_workspaces",
    "workspace",
]
