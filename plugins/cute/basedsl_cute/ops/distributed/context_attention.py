"""Attention of a sequence whose tokens are over ranks (context-parallel, ring attention).

Each rank has queries, keys and values of its part of the sequence. It computes attention with one
rank's keys after another, while the next ones are copied, and adds the results by their logarithms
of sums (H. Liu, M. Zaharia and P. Abbeel, "Ring attention with blockwise transformers").
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

from basedsl_cute.ops.distributed.process_group import constant_for_dynamo, group_named, name_of
from basedsl_cute.ops.distributed.shards import shards
from basedsl_cute.ops.distributed.torch_operations import operations as collectives
from basedsl_cute.ops.flash.attention import attention
from basedsl_cute.ops.flash.gradients import attention_backward

_SCHEMA = (
    "(Tensor q, Tensor k, Tensor v, str group, bool causal, bool balanced, float? scale) "
    "-> (Tensor, Tensor)"
)


def _places(rank: int, ranks: int, balanced: bool) -> list[int]:
    """The parts of the sequence that a rank has, in their order."""
    return [rank, 2 * ranks - 1 - rank] if balanced else [rank]


@functools.cache
def operations() -> dict[str, Any]:
    """Register the operation, once, and return it by name. Needs PyTorch."""
    torch: Any = importlib.import_module("torch")
    dist = torch.distributed

    def pairs(k: Any, v: Any, group: Any, balanced: bool) -> Any:
        """Yield (source, part j of its shard, place in the sequence, keys, values)."""
        ranks = dist.get_world_size(group)
        for source, both in shards(torch.stack([k, v]), group):
            places = _places(source, ranks, balanced)
            halves = zip(*(x.chunk(len(places), 1) for x in both), strict=True)
            for j, (place, (keys, values)) in enumerate(zip(places, halves, strict=True)):
                yield source, j, place, keys.contiguous(), values.contiguous()

    def queries(x: Any, group: Any, balanced: bool) -> Any:
        places = _places(dist.get_rank(group), dist.get_world_size(group), balanced)
        parts = [part.contiguous() for part in x.chunk(len(places), 1)]
        return list(zip(places, parts, strict=True))

    @torch.library.custom_op("basedsl::context_attention", mutates_args=(), schema=_SCHEMA)
    def forward(
        q: Any, k: Any, v: Any, group: str, causal: bool, balanced: bool, scale: Any
    ) -> Any:
        ranks = group_named(group)
        mine = queries(q, ranks, balanced)
        sums: list[Any] = [None] * len(mine)
        for _, _, key_place, keys, values in pairs(k, v, ranks, balanced):
            for i, (place, part) in enumerate(mine):
                if causal and key_place > place:
                    continue
                hides = causal and key_place == place
                out, lse = attention(part, keys, values, causal=hides, scale=scale, return_lse=True)
                sums[i] = _added(torch, sums[i], out.float(), lse)
        out = torch.cat([one[0] for one in sums], 1).to(q.dtype)
        return out, torch.cat([one[1] for one in sums], 2)

    @forward.register_fake
    def _(q: Any, k: Any, v: Any, group: str, causal: bool, balanced: bool, scale: Any) -> Any:
        batches, length, heads, _ = q.shape
        out = q.new_empty((batches, length, heads, v.shape[-1]))
        return out, q.new_empty((batches, heads, length), dtype=torch.float32)

    def keep(ctx: Any, inputs: Any, output: Any) -> None:
        *saved, ctx.group, ctx.causal, ctx.balanced, ctx.scale = inputs
        ctx.save_for_backward(*saved, *output)

    def backward(ctx: Any, grad: Any, _: Any) -> Any:
        q, k, v, out, lse = ctx.saved_tensors
        group, balanced = group_named(ctx.group), ctx.balanced
        ranks = dist.get_world_size(group)
        mine = queries(q, group, balanced)
        outs, grads = queries(out, group, balanced), queries(grad, group, balanced)
        sums = lse.chunk(len(mine), 2)
        dq = [torch.zeros_like(part, dtype=torch.float32) for _, part in mine]
        dkv = torch.zeros((ranks, 2, *k.shape), dtype=torch.float32, device=k.device)
        for source, j, key_place, keys, values in pairs(k, v, group, balanced):
            there = dkv[source].chunk(len(mine), 2)[j]
            for i, (place, part) in enumerate(mine):
                if ctx.causal and key_place > place:
                    continue
                found = attention_backward(
                    grads[i][1], part, keys, values, outs[i][1], sums[i].contiguous(),
                    causal=ctx.causal and key_place == place, scale=ctx.scale,
                )  # fmt: skip
                dq[i] += found[0]
                there[0] += found[1]
                there[1] += found[2]
        own = collectives()["reduce_scatter"](dkv, ctx.group)[0]
        return torch.cat(dq, 1).to(q.dtype), own[0].to(k.dtype), own[1].to(v.dtype), *[None] * 4

    forward.register_autograd(backward, setup_context=keep)
    return {"context_attention": forward}


def _added(torch: Any, before: Any, out: Any, lse: Any) -> Any:
    """The attention with two sets of keys: (out, logarithm of the sum) of each."""
    if before is None:
        return out, lse
    total = torch.logaddexp(before[1], lse)

    def weighted(x: Any, its: Any) -> Any:
        factor = torch.exp(its - total).nan_to_num(0.0)  # no key at all: -inf - -inf
        return x * factor.transpose(1, 2).unsqueeze(-1)

    return weighted(before[0], before[1]) + weighted(out, lse), total


@constant_for_dynamo
def _register() -> bool:
    return bool(operations())


def context_attention(
    q: Any,
    k: Any,
    v: Any,
    group: Any = None,
    *,
    causal: bool = False,
    balanced: bool = False,
    scale: float | None = None,
) -> Any:
    """Return this rank's part of softmax(scale q k^T) v of a sequence over the ranks of a group.

    `q`, `k` and `v` are torch tensors (batches, tokens of this rank, heads, head), as for
    `ops.attention`, of one head extent. Rank r has the r-th part of the tokens or, `balanced`, of
    twice as many parts the r-th and the r-th from the end, one after the other: with `causal` all
    ranks have equal work then. `group` is as for `all_reduce`. The result has gradients.
    """
    import torch

    _register()
    given = q, k, v, name_of(group), causal, balanced, scale
    return torch.ops.basedsl.context_attention(*given)[0]
