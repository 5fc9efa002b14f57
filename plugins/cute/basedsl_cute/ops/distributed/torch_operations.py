"""Collectives as operations of PyTorch, `torch.ops.basedsl.*`: they return new tensors and take the
name of a group, as PyTorch's functional collectives do, and have gradients and fake kernels.
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
    workspace_of,
)


@functools.cache
def operations() -> dict[str, Any]:
    """Register the operations, once, and return them by name. Needs PyTorch."""
    torch: Any = importlib.import_module("torch")
    dist = torch.distributed
    define = torch.library.custom_op
    # The second names are those of PyTorch before 2.13.
    gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
    scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor

    @define("basedsl::all_reduce", mutates_args=(), schema="(Tensor x, str group) -> Tensor")
    def all_reduce(x: Any, group: str) -> Any:
        ranks = group_named(group)
        space = workspace_of(ranks, x)
        given = x.contiguous()
        if space is None:
            result = given.clone()
            dist.all_reduce(result, group=ranks)
            return result
        result = torch.empty_like(given)
        space.all_reduce(given, result)
        return result

    @define("basedsl::all_gather", mutates_args=(), schema="(Tensor x, str group) -> Tensor")
    def all_gather(x: Any, group: str) -> Any:
        ranks = group_named(group)
        space = workspace_of(ranks, x)
        given = x.contiguous()
        count = dist.get_world_size(ranks)
        result = given.new_empty((given.shape[0] * count, *given.shape[1:]))
        if space is None:
            gather(result, given, group=ranks)
        else:
            space.all_gather(given, result)
        return result

    @define("basedsl::reduce_scatter", mutates_args=(), schema="(Tensor x, str group) -> Tensor")
    def reduce_scatter(x: Any, group: str) -> Any:
        ranks = group_named(group)
        space = workspace_of(ranks, x)
        given = x.contiguous()
        count = dist.get_world_size(ranks)
        result = given.new_empty((given.shape[0] // count, *given.shape[1:]))
        if space is None:
            scatter(result, given, group=ranks)
        else:
            space.reduce_scatter(given, result)
        return result

    def size(group: str) -> int:
        return int(dist.get_world_size(group_named(group)))

    def rows(x: Any, count: int) -> Any:
        return x.new_empty((count, *x.shape[1:]))

    all_reduce.register_fake(lambda x, group: torch.empty_like(x, memory_format=_dense(torch)))
    all_gather.register_fake(lambda x, group: rows(x, x.shape[0] * size(group)))
    reduce_scatter.register_fake(lambda x, group: rows(x, x.shape[0] // size(group)))

    def keep_group(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.group = inputs[1]

    def gradient(of: Any) -> Any:
        return lambda ctx, grad: (of(grad, ctx.group), None)

    # Each rank's result is part of the loss of all ranks: the adjoint of a sum that all ranks get
    # is a sum that all ranks get, that of a gather is a scattered sum.
    all_reduce.register_autograd(gradient(all_reduce), setup_context=keep_group)
    all_gather.register_autograd(gradient(reduce_scatter), setup_context=keep_group)
    reduce_scatter.register_autograd(gradient(all_gather), setup_context=keep_group)
    return {
        "all_reduce": all_reduce,
        "all_gather": all_gather,
        "reduce_scatter": reduce_scatter,
    }


def _dense(torch: Any) -> Any:
    return torch.contiguous_format


@constant_for_dynamo
def register() -> bool:
    """Register the operations, if they are not."""
    return bool(operations())


def _check_rows(name: str, x: Any) -> None:
    if hasattr(x, "dim") and x.dim() == 0:
        raise DSLTypeError(f"{name} takes tensors with rows, not a scalar", hint="x.reshape(1)")


def all_reduce(x: Any, group: Any = None) -> Any:
    """Return the sum of all ranks' `x`, a torch tensor, with the same bits on all ranks.

    `group` is a process group of PyTorch, its name, or a `DeviceMesh` of one mode; by default the
    whole world. The first call of
    a group is collective beyond the data. On one host whose GPUs reach each other it is a kernel of
    this package, else the group's own backend, of which a warning says so once. The result has a
    gradient, that of PyTorch's functional all-reduce: the sum of all ranks' gradients.
    """
    import torch

    register()
    return torch.ops.basedsl.all_reduce(x, name_of(group))


def all_gather(x: Any, group: Any = None) -> Any:
    """Return all ranks' `x` along mode 0, in the order of ranks; the rest is that of `all_reduce`.

    Its gradient is a reduce-scatter.
    """
    import torch

    register()
    _check_rows("all_gather", x)
    return torch.ops.basedsl.all_gather(x, name_of(group))


def reduce_scatter(x: Any, group: Any = None) -> Any:
    """Return this rank's part along mode 0 of the sum of all ranks' `x`, whose rows are a multiple
    of the ranks; the rest is that of `all_reduce`. Its gradient is an all-gather.
    """
    import torch

    register()
    _check_rows("reduce_scatter", x)
    return torch.ops.basedsl.reduce_scatter(x, name_of(group))
