"""Products with communication as operations of PyTorch, `torch.ops.basedsl.*`, with gradients and
fake kernels: the matrices of tensor-parallel layers.
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

from basedsl import DSLTypeError
from basedsl_cute.ops.distributed.process_group import (
    constant_for_dynamo,
    group_named,
    name_of,
    product_workspace_of,
    workspace_of,
)
from basedsl_cute.ops.distributed.product_parts import VECTOR
from basedsl_cute.ops.distributed.torch_operations import operations as collectives


@functools.cache
def operations() -> dict[str, Any]:
    """Register the operations, once, and return them by name. Needs PyTorch."""
    torch: Any = importlib.import_module("torch")
    dist = torch.distributed
    plain = collectives()

    def define(name: str) -> Any:
        schema = "(Tensor x, Tensor weight, str group) -> Tensor"
        return torch.library.custom_op(f"basedsl::{name}", mutates_args=(), schema=schema)

    def size(group: str) -> int:
        return int(dist.get_world_size(group_named(group)))

    def space_of(x: Any, weight: Any, group: str, elements: int) -> Any:
        """The workspace where one kernel can multiply and communicate, else None."""
        ranks = group_named(group)
        if workspace_of(ranks, x) is None or not _fits(torch, x, weight):
            return None
        return product_workspace_of(ranks, x, 2 * elements * x.element_size())

    @define("all_gather_matmul")
    def gather(x: Any, weight: Any, group: str) -> Any:
        rows = x.shape[0] * size(group)
        space = space_of(x, weight, group, rows * x.shape[1])
        if space is None:
            return plain["all_gather"](x, group) @ weight.T
        result = x.new_empty((rows, weight.shape[0]))
        space.all_gather_matmul(x.contiguous(), weight.contiguous(), result)
        return result

    @define("matmul_reduce_scatter")
    def scatter(x: Any, weight: Any, group: str) -> Any:
        space = space_of(x, weight, group, x.shape[0] * weight.shape[0])
        if space is None:
            return plain["reduce_scatter"](x @ weight.T, group)
        result = x.new_empty((x.shape[0] // size(group), weight.shape[0]))
        space.matmul_reduce_scatter(x.contiguous(), weight.contiguous(), result)
        return result

    @define("matmul_all_reduce")
    def everywhere(x: Any, weight: Any, group: str) -> Any:
        space = None
        if x.shape[0] % size(group) == 0:
            space = space_of(x, weight, group, 2 * x.shape[0] * weight.shape[0])
        if space is None:
            return plain["all_reduce"](x @ weight.T, group)
        result = x.new_empty((x.shape[0], weight.shape[0]))
        space.matmul_all_reduce(x.contiguous(), weight.contiguous(), result)
        return result

    def rows(x: Any, weight: Any, count: int) -> Any:
        return x.new_empty((count, weight.shape[0]))

    gather.register_fake(lambda x, weight, group: rows(x, weight, x.shape[0] * size(group)))
    scatter.register_fake(lambda x, weight, group: rows(x, weight, x.shape[0] // size(group)))
    everywhere.register_fake(lambda x, weight, group: rows(x, weight, x.shape[0]))

    def keep(ctx: Any, inputs: Any, output: Any) -> None:
        x, weight, ctx.group = inputs
        ctx.save_for_backward(x, weight)

    # Y = G(X) W^T, where G gathers and its adjoint, a reduce-scatter, is R: dX = R(dY W), and
    # dW = dY^T G(X). Y = R(X W^T): dX = G(dY) W, and dW = G(dY)^T X.
    def gather_gradient(ctx: Any, grad: Any) -> Any:
        x, weight = ctx.saved_tensors
        dx = scatter(grad, weight.T.contiguous(), ctx.group)
        return dx, grad.T @ plain["all_gather"](x, ctx.group), None

    def scatter_gradient(ctx: Any, grad: Any) -> Any:
        x, weight = ctx.saved_tensors
        every = plain["all_gather"](grad, ctx.group)
        return every @ weight, every.T @ x, None

    def everywhere_gradient(ctx: Any, grad: Any) -> Any:
        x, weight = ctx.saved_tensors
        every = plain["all_reduce"](grad, ctx.group)
        return every @ weight, every.T @ x, None

    gather.register_autograd(gather_gradient, setup_context=keep)
    scatter.register_autograd(scatter_gradient, setup_context=keep)
    everywhere.register_autograd(everywhere_gradient, setup_context=keep)
    return {
        "all_gather_matmul": gather,
        "matmul_reduce_scatter": scatter,
        "matmul_all_reduce": everywhere,
    }


def _fits(torch: Any, x: Any, weight: Any) -> bool:
    """True for what the kernels multiply, on the GPUs that they are for."""
    return (
        x.dtype in (torch.float16, torch.bfloat16)
        and weight.dtype == x.dtype
        and x.shape[1] % VECTOR == 0
        and weight.shape[0] % VECTOR == 0
        and x.shape[0] > 0
        and x.shape[1] > 0
        and torch.cuda.get_device_capability(x.device) == (9, 0)
    )


@constant_for_dynamo
def register() -> bool:
    """Register the operations, if they are not."""
    return bool(operations())


def _check_matrices(name: str, x: Any, weight: Any) -> None:
    for what, one in (("x", x), ("weight", weight)):
        if hasattr(one, "dim") and one.dim() != 2:
            raise DSLTypeError(
                f"{name} takes two matrices, and {what} has {one.dim()} mode(s)",
                hint="x is (rows, k), weight (n, k): x.reshape(-1, x.shape[-1])",
            )


def all_gather_matmul(x: Any, weight: Any, group: Any = None) -> Any:
    """Return the product of all ranks' rows `x` with the transpose of `weight`, on every rank its
    own: what follows an all-gather in a tensor-parallel layer.

    `x` is (rows, k) and `weight` (n, k), torch tensors; the result has the rows of all ranks, n
    columns. On Hopper GPUs of one host, for Float16 and BFloat16 and multiples of 8 elements, it is
    one kernel whose communication is under the multiplication, else a collective and a product.
    `group` and gradients are as for `all_reduce`.
    """
    import torch

    register()
    _check_matrices("all_gather_matmul", x, weight)
    return torch.ops.basedsl.all_gather_matmul(x, weight, name_of(group))


def matmul_reduce_scatter(x: Any, weight: Any, group: Any = None) -> Any:
    """Return this rank's part of the rows of the sum of all ranks' products of `x` with the
    transpose of `weight`; the rest is that of `all_gather_matmul`. The rows are a multiple of the
    ranks.
    """
    import torch

    register()
    _check_matrices("matmul_reduce_scatter", x, weight)
    return torch.ops.basedsl.matmul_reduce_scatter(x, weight, name_of(group))


def matmul_all_reduce(x: Any, weight: Any, group: Any = None) -> Any:
    """Return the sum of all ranks' products of `x` with the transpose of `weight`, with the same
    bits on all ranks; the rest is that of `all_gather_matmul`.
    """
    import torch

    register()
    _check_matrices("matmul_all_reduce", x, weight)
    return torch.ops.basedsl.matmul_all_reduce(x, weight, name_of(group))
