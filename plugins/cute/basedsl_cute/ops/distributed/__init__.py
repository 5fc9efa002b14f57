"""`basedsl_cute.ops.distributed`: collectives of several GPUs of one host, ready to call.

`all_reduce`, `all_gather` and `reduce_scatter` take torch tensors and a process group, and so do
matrix products with one of them: `all_gather_matmul`, `matmul_reduce_scatter`, `matmul_all_reduce`.
A `Workspace` has collectives with outputs, and all-to-all and the all-reduce with RMSNorm; a
`ProductWorkspace` has the products with outputs.
"""

from basedsl_cute.ops.distributed.context_attention import context_attention
from basedsl_cute.ops.distributed.hierarchy import (
    hierarchical_all_gather,
    hierarchical_all_reduce,
)
from basedsl_cute.ops.distributed.process_group import forget, product_workspace, workspace
from basedsl_cute.ops.distributed.products import (
    ProductWorkspace,
    simulated_product_workspaces,
)
from basedsl_cute.ops.distributed.torch_operations import all_gather, all_reduce, reduce_scatter
from basedsl_cute.ops.distributed.torch_products import (
    all_gather_matmul,
    matmul_all_reduce,
    matmul_reduce_scatter,
)
from basedsl_cute.ops.distributed.workspaces import Workspace, simulated_workspaces

__all__ = [
    "ProductWorkspace",
    "Workspace",
    "all_gather",
    "all_gather_matmul",
    "all_reduce",
    "context_attention",
    "forget",
    "hierarchical_all_gather",
    "hierarchical_all_reduce",
    "matmul_all_reduce",
    "matmul_reduce_scatter",
    "product_workspace",
    "reduce_scatter",
    "simulated_product_workspaces",
    "simulated_workspaces",
    "workspace",
]
