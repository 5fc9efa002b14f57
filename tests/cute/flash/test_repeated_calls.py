"""Later calls of a plan launch at other addresses: which ones, in which order."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path

import numpy as np
import pytest

from basedsl_cute.ops import attention, attention_backward, plan_cache
from basedsl_cute.ops.ampere.attention import Config
from basedsl_cute.ops.flash.gradient_plan import gradient_plans
from basedsl_cute.ops.flash.plan import plans

sys.path.insert(0, str(Path(__file__).parent))

from attention_reference import normal, pages_of

SMALL = Config(tile=(16, 16), warps=1)


def at_address(like, address):
    """An array with the extents and strides of another, at an address."""
    strides = [n * d for n, d in zip(np.array(like.shape) - 1, like.strides, strict=True)]
    size = int(sum(strides)) + like.itemsize
    memory = (ctypes.c_char * size).from_address(address)
    flat = np.frombuffer(memory, np.uint8)[: like.itemsize].view(like.dtype)
    return np.lib.stride_tricks.as_strided(flat, like.shape, like.strides)


@pytest.fixture
def repeats(monkeypatch):
    """The numbers of addresses of repeated calls, which build arrays at these and launch again: the
    simulator needs arrays.
    """
    made = []

    def repeated(function, given):
        def again(addresses):
            made.append(len(addresses))
            *left, stream = addresses

            def other(x):
                if isinstance(x, tuple) and not hasattr(x, "_fields"):
                    return tuple(other(one) for one in x)
                return at_address(x, left.pop(0)) if isinstance(x, np.ndarray) else x

            arguments = [other(x) for x in given]
            assert not left and stream == given[-1]
            function(*arguments)

        return again

    monkeypatch.setattr(plan_cache, "repeated", repeated)
    plans.clear()
    gradient_plans.clear()
    yield made
    plans.clear()
    gradient_plans.clear()


def aligned(x):
    """The same elements from a multiple of 64 bytes on, on which plans depend."""
    whole = np.empty(x.nbytes + 64, np.uint8)
    start = -whole.__array_interface__["data"][0] % 64
    found = whole[start : start + x.nbytes].view(x.dtype).reshape(x.shape)
    found[...] = x
    return found


def inputs(seed, head_v=32):
    q, k = normal(2, 20, 2, 32, seed=seed), normal(2, 24, 1, 32, seed=seed + 1)
    return [aligned(x) for x in (q, k, normal(2, 24, 1, head_v, seed=seed + 2))]


def copies(found):
    """The arrays that a call returned, as they are now."""
    return [x.copy() for x in (found if isinstance(found, tuple) else (found,))]


def other(x, seed):
    """An array of the same kind with other elements; integers stay."""
    if x.dtype.kind != "f":
        return aligned(x)
    return aligned(np.random.default_rng(seed).uniform(0.1, 1, x.shape).astype(x.dtype))


BIAS = np.zeros((2, 20, 24), np.float32)
HEADS = np.zeros(2, np.float32)
STARTS = np.array([0, 7, 40], np.int32)


@pytest.mark.parametrize(
    ("options", "count"),
    [
        ({}, 4),
        ({"return_lse": True}, 5),
        ({"bias": BIAS, "alibi": HEADS, "sinks": HEADS}, 7),
        ({"config": Config((16, 16), 1, splits=2), "return_lse": True}, 7),
        ({"seqused_k": np.array([24, 3], np.int32), "sinks": HEADS}, 6),
    ],
    ids=["plain", "logarithms", "arrays", "splits", "lengths"],
)
@pytest.mark.parametrize("given", [False, True], ids=["new", "out"])
def test_attention(repeats, options, count, given):
    options = {"config": SMALL, **options}
    fresh = []
    for seed in range(4):
        arrays = inputs(10 * seed)
        named = {
            name: other(x, seed) if isinstance(x, np.ndarray) else x for name, x in options.items()
        }
        if given:
            named["out"] = aligned(np.full((2, 20, 2, 32), np.nan, np.float16))
        fresh.append((arrays, named, copies(attention(*arrays, **named))))
    assert repeats == [count + 1] * 2
    plans.clear()
    for arrays, named, found in fresh:
        if given:
            named["out"][...] = np.nan
        np.testing.assert_equal(copies(attention(*arrays, **named)), found)


def test_packed_sequences_and_pages(repeats):
    used = np.array([20, 33], np.int32)
    table, caches, _ = pages_of(used, 8, 32)
    wanted = []
    for seed in range(4):
        q = aligned(normal(2, 3, 2, 32, seed=seed))
        caches = [other(x, seed) for x in caches]
        named = {"block_table": aligned(table), "seqused_k": aligned(used), "config": SMALL}
        wanted.append((q, caches, named, attention(q, *caches, **named)))
    for seed in range(4):
        q, k = aligned(normal(40, 2, 32, seed=seed)), aligned(normal(40, 2, 32, seed=seed + 1))
        named = {"cu_seqlens_q": aligned(STARTS), "cu_seqlens_k": aligned(STARTS), "config": SMALL}
        wanted.append((q, (k, k), named, attention(q, k, k, **named)))
    assert repeats == [4 + 2 + 1] * 4
    plans.clear()
    for q, operands, named, found in wanted:
        np.testing.assert_equal(attention(q, *operands, **named), found)


def test_padded_heads_of_results(repeats):
    found = []
    for seed in range(4):
        q, k, v = inputs(seed, head_v=32)
        v = aligned(np.concatenate([v, v], -1))[..., :40]
        found.append(((q, k, v), attention(q, k, v, config=SMALL)))
    plans.clear()
    for arrays, one in found:
        np.testing.assert_equal(attention(*arrays, config=SMALL), one)


@pytest.mark.parametrize(
    ("options", "count"),
    [({}, 10), ({"alibi": HEADS, "sinks": HEADS}, 12), ({"bias": BIAS, "grad_bias": BIAS}, 12)],
    ids=["plain", "heads", "bias"],
)
def test_gradients(repeats, options, count):
    kept = []
    for seed in range(4):
        q, k, v = inputs(10 * seed)
        named = {name: other(x, seed) for name, x in options.items()}
        if "grad_bias" in named:
            named["grad_bias"][...] = 0
        forward = {name: x for name, x in named.items() if name != "grad_bias"}
        out, lse = (aligned(x) for x in attention(q, k, v, return_lse=True, **forward))
        grad = aligned(normal(*out.shape, seed=seed))
        repeats.clear()
        found = attention_backward(grad, q, k, v, out, lse, **named)
        kept.append(((grad, q, k, v, out, lse), named, found, list(repeats)))
        assert repeats == ([count + 1] if seed > 1 else [])
    gradient_plans.clear()
    for arrays, named, found, _ in kept:
        of_bias = named.get("grad_bias")
        if of_bias is not None:
            named = {**named, "grad_bias": np.zeros_like(of_bias)}
        for one, wanted in zip(attention_backward(*arrays, **named), found, strict=True):
            np.testing.assert_equal(one, wanted)
        if of_bias is not None:
            np.testing.assert_equal(of_bias, named["grad_bias"])
