"""Attention and its gradients in float64 on a GPU, of some heads and queries, and errors."""

from __future__ import annotations

import random

is_asked = True  # else errors are not computed, and told as zero


def exact(q, k, v, batch, head, rows, causal, score=None, seen=None):
    """Float64 scores' weights and results of some queries of one head; the diagonal ends at the
    last query and key.
    """
    import torch

    group = q.shape[2] // k.shape[2]
    own_q, own_k, own_v = (
        x[batch, :, number].double()
        for x, number in ((q, head), (k, head // group), (v, head // group))
    )
    s = own_q[rows] @ own_k.T / q.shape[3] ** 0.5
    i = rows[:, None] + k.shape[1] - q.shape[1]
    j = torch.arange(k.shape[1], device="cuda")
    if score is not None:
        s = score(s, head, i, j)
    if causal:
        s = s.masked_fill(j > i, -torch.inf)
    if seen is not None:
        s = s.masked_fill(~seen(i, j), -torch.inf)
    weights = s.softmax(-1)
    return weights, weights @ own_v


def error_of(out, q, k, v, causal, score=None, seen=None):
    """The largest error of some rows and heads of a result (batches, length, heads, head)."""
    import torch

    if not is_asked:
        return 0.0
    count = min(q.shape[1], 512)
    worst = 0.0
    for _ in range(3):
        batch, head = random.randrange(q.shape[0]), random.randrange(q.shape[2])
        rows = torch.randperm(q.shape[1], device="cuda")[:count]
        wanted = exact(q, k, v, batch, head, rows, causal, score, seen)[1]
        found = (out[batch, rows, head].double() - wanted).abs().max() / wanted.abs().max()
        worst = max(worst, float(found.nan_to_num(torch.inf)))
    return worst


def gradients(grad, q, k, v, batch, key_head, causal):
    """The float64 gradients of one key head, and of its first query head."""
    import torch

    group = q.shape[2] // k.shape[2]
    rows = torch.arange(q.shape[1], device="cuda")
    grad_q, grad_k, grad_v = None, 0.0, 0.0
    for head in range(key_head * group, key_head * group + group):
        weights, out = exact(q, k, v, batch, head, rows, causal)
        own = grad[batch, :, head].double()
        change = own @ v[batch, :, key_head].double().T
        change -= (own * out).sum(-1, keepdim=True)
        change *= weights
        change *= q.shape[3] ** -0.5
        if grad_q is None:
            grad_q = change @ k[batch, :, key_head].double()
        grad_k = grad_k + change.T @ q[batch, :, head].double()
        grad_v = grad_v + weights.T @ own
    return grad_q, grad_k, grad_v
