"""`basedsl_cute.ops.distributed`: collectives of several GPUs of one host, ready to call.

`all_reduce`, `all_gather` and `reduce_scatter` take torch tensors and a process group. A
`Workspace` has them with outputs, and all-to-all and the all-reduce with RMSNorm; a
`ProductWorkspace` has matrix products with an all-gather, a reduce-scatter or an all-reduce.
"""

from basedsl_cute.ops.distributed.process_group import forget, product_workspace, workspace
from basedsl_cute.ops.distributed.products import (
    ProductWorkspace,
    simulated_product_workspaces,
)
from basedsl_cute.ops.distributed.torch_operations import all_gather, all_reduce, reduce_scatter
from basedsl_cute.ops.distributed.workspaces import Workspace, simulated_workspaces

__all__ = [
    "ProductWorkspace",
    "Workspace",
    "all_gather",
    "all_reduce",
    "forget",
    "product_workspace",
    "reduce_scatter",
    "simulated_product_workspaces",
    "simulated_workspaces",
    "workspace",
]
