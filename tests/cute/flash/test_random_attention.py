"""`ops.attention` and its gradients with options drawn at random, against float64.

On the simulator extents are small and draws few, on a GPU (with `-m slow` there) larger and many.
Results are poisoned before.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from basedsl_cute.dsl.machine import current_target
from basedsl_cute.ops import attention, attention_backward
from basedsl_cute.ops.ampere import attention as ampere
from basedsl_cute.ops.hopper import attention as hopper
from basedsl_cute.utils import SmemAllocator

sys.path.insert(0, str(Path(__file__).parent))

from attention_reference import gradients, reference

ml_dtypes = pytest.importorskip("ml_dtypes")
# Some draws take tiles that were not chosen for speed: what they spill is right all the same.
pytestmark = pytest.mark.filterwarnings("ignore::basedsl_cute.dsl.steps.SpillWarning")

IS_GPU = current_target().is_gpu
DRAWS, LONGEST = (16, 700) if IS_GPU else (3, 100)
HEADS = [(32, 64), (64, 64), (96, 96), (128, 128), (192, 128), (256, 256)]
# By mma.sync, with what else only many queries of wide heads have.
RING = ampere.Config((32, 32), 2, slack=8, stages=3)
FOLLOWS_FROM_AFAR = ampere.Config((32, 32), 2, slack=8, heads_first=True)


def of_warps_along_keys(draw):
    """A configuration in which warps share keys, for a draw's operands."""
    rng, group = draw.rng, draw.heads // draw.key_heads
    width = max(draw.head, draw.head_v)
    config = ampere.Config(
        (16, 16 if width > 96 else int(rng.choice([16, 32]))),
        1,
        packed=int(rng.choice([1, group])),
        splits=int(rng.choice([1, 3])),
        overlap=IS_GPU,
        early=IS_GPU,
        key_warps=int(rng.integers(2, 9)),
        stages=int(rng.integers(2, 4)) if draw.head >= draw.head_v else 4,
    )
    while config.smem_bytes(draw.head, draw.head_v) > SmemAllocator.capacity_in_bytes():
        config = replace(config, key_warps=config.key_warps - 1)
    return config


class Draw:
    """Operands, options, and what the reference needs to know of them."""

    def __init__(self, seed, most_queries=LONGEST):
        self.rng = rng = np.random.default_rng(seed)
        self.head, self.head_v = HEADS[rng.integers(len(HEADS) if IS_GPU else 3)]
        self.batches, self.key_heads = (int(n) for n in rng.integers(1, 3, 2))
        self.heads = self.key_heads * int(rng.integers(1, 4))
        self.queries, self.keys = (int(n) for n in rng.integers(1, LONGEST, 2))
        self.queries = min(self.queries, 1 + self.queries % most_queries)
        self.dtype = [np.float16, ml_dtypes.bfloat16][rng.integers(2)]
        self.options, self.wanted = {}, {"shift": self.keys - self.queries}
        self.diagonal()
        self.functions()

    def diagonal(self):
        rng = self.rng
        causal = [False, True, "top-left"][rng.integers(3)]
        self.options["causal"] = causal
        if causal == "top-left":
            self.wanted["shift"] = 0
        left, right = None, 0 if causal else None
        if rng.integers(3) == 0:
            left = int(rng.integers(0, 60))
            beyond = int(rng.integers(0, 30))
            self.options["window"] = (left, beyond)
            right = 0 if causal else beyond
        self.wanted |= {"left": left, "right": right}

    def functions(self):
        rng, kind = self.rng, self.rng.integers(6)
        shift = self.wanted["shift"]
        if kind == 0:
            self.options["softcap"] = cap = float(rng.uniform(1, 4))
            self.wanted["score"] = lambda s, *_: cap * np.tanh(s / cap)
            self.wanted["slope"] = lambda s, *_: 1 - np.tanh(s / cap) ** 2
        elif kind == 1:
            self.options["alibi"] = slopes = rng.uniform(0, 0.5, self.heads).astype(np.float32)
            own = slopes[:, None, None]
            self.wanted["score"] = lambda s, b, h, q, k: s - own * abs(k - q - shift)
        elif kind == 2:
            shape = (self.batches, 1, self.queries, self.keys)
            self.options["bias"] = bias = rng.standard_normal(shape).astype(np.float32)
            self.wanted["score"] = lambda s, *_: s + bias
        elif kind == 3:
            period = int(rng.integers(2, 40))
            self.options["mask"] = lambda b, h, q, k: k // period != q // period
            self.wanted["mask"] = lambda b, h, q, k: (k // period != q // period) & (h >= 0)

    def operand(self, rows, heads, head):
        return self.rng.standard_normal((self.batches, rows, heads, head)).astype(self.dtype)

    def operands(self):
        return (
            self.operand(self.queries, self.heads, self.head),
            self.operand(self.keys, self.key_heads, self.head),
            self.operand(self.keys, self.key_heads, self.head_v),
        )

    @property
    def coarse(self):
        """The error that results may have: bfloat16 has 8 significant bits, float16 11."""
        return 2e-2 if self.dtype is ml_dtypes.bfloat16 else 4e-3


def check(draw, found, lse, q, k, v):
    wanted = {name: x for name, x in draw.wanted.items() if name != "slope"}
    values, logs = reference(q, k, v, **wanted)
    np.testing.assert_allclose(
        np.float64(found), values, atol=draw.coarse * max(1, abs(values).max())
    )
    np.testing.assert_array_equal(np.isneginf(lse), np.isneginf(logs))
    np.testing.assert_allclose(lse, logs, atol=4e-3)
    assert (found[np.isneginf(logs).transpose(0, 2, 1)] == 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(DRAWS))
def test_a_random_attention(seed):
    draw, config = Draw(seed), None
    if not IS_GPU and seed % 2:
        stays = bool(seed % 4 == 1)
        config = hopper.Config((64, 48), persistent=stays, query_stages=2, overlaps=stays)
        config = replace(config, by_bits=stays)
    elif seed % 4 != 1:
        config = {0: RING, 2: FOLLOWS_FROM_AFAR}.get(seed % 8)
    check_attention(draw, config, seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(300, 300 + DRAWS))
def test_random_decoding(seed):
    draw = Draw(seed, most_queries=40)
    check_attention(draw, of_warps_along_keys(draw), seed)


def check_attention(draw, config, seed):
    q, k, v = draw.operands()
    out = np.full((*q.shape[:3], draw.head_v), np.nan, draw.dtype)
    if seed % 3 == 0:
        out = out.transpose(0, 2, 1, 3).copy()
        given = [x.transpose(0, 2, 1, 3).copy() for x in (q, k, v)]
        _, lse = attention(
            *given, out=out, return_lse=True, layout="bhsd", config=config, **draw.options
        )
        out = out.transpose(0, 2, 1, 3)
    else:
        _, lse = attention(q, k, v, out=out, return_lse=True, config=config, **draw.options)
    check(draw, out, lse, q, k, v)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 100 + DRAWS))
def test_random_sequences_and_pages(seed):
    draw = Draw(seed)
    for name in ("bias", "mask", "softcap", "alibi"):
        draw.options.pop(name, None)
    draw.wanted.pop("score", None)
    draw.wanted.pop("mask", None)
    rng = draw.rng
    rows, pages = 16, -(-draw.keys // 16)
    table = rng.permutation(draw.batches * pages).astype(np.int32).reshape(draw.batches, pages)
    used = rng.integers(1, draw.keys + 1, draw.batches).astype(np.int32)
    q, k, v = draw.operands()
    caches = []
    for x in (k, v):
        cache = np.full((table.size, rows, *x.shape[2:]), np.nan, x.dtype)
        for batch, count in enumerate(used):
            for row in range(count):
                cache[table[batch, row // rows], row % rows] = x[batch, row]
        caches.append(cache)
    out = np.full((*q.shape[:3], draw.head_v), np.nan, draw.dtype)
    paged = {"block_table": table, "seqused_k": used}
    if seed % 4:
        paged["config"] = FOLLOWS_FROM_AFAR if seed % 4 == 2 else of_warps_along_keys(draw)
    _, lse = attention(q, *caches, out=out, return_lse=True, **paged, **draw.options)
    for batch, count in enumerate(used):
        one = slice(batch, batch + 1)
        is_first = draw.options["causal"] == "top-left"
        draw.wanted["shift"] = 0 if is_first else int(count) - draw.queries
        check(draw, out[one], lse[one], q[one], k[one, :count], v[one, :count])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(200, 200 + DRAWS // 2))
def test_random_gradients(seed):
    draw = Draw(seed)
    q, k, v = draw.operands()
    out, lse = attention(q, k, v, return_lse=True, **draw.options)
    grad = draw.operand(draw.queries, draw.heads, draw.head_v)
    found = attention_backward(grad, q, k, v, out, lse, **draw.options)
    for one, other in zip(found, gradients(grad, q, k, v, **draw.wanted), strict=True):
        atol = 4 * draw.coarse * max(1, abs(other).max())
        np.testing.assert_allclose(np.float64(one), other, atol=atol)
