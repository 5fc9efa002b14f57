"""Gradients of `ops.attention` against their formulas in float64."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLTypeError
from basedsl_cute.ops import attention, attention_backward
from basedsl_cute.ops.ampere import attention_backward as ampere
from basedsl_cute.ops.ampere.attention import Config as Forward
from basedsl_cute.ops.hopper import attention_backward as hopper

sys.path.insert(0, str(Path(__file__).parent))

from attention_reference import gradients, normal


def check(q, k, v, wanted, seed=9, config=None, **options):
    """The gradients of a random gradient of the result, compared with those of the formulas."""
    out, lse = attention(q, k, v, return_lse=True, **options)
    grad = normal(*out.shape, seed=seed)
    found = attention_backward(grad, q, k, v, out, lse, config=config, **options)
    for name, one, other in zip("qkv", found, gradients(grad, q, k, v, **wanted), strict=True):
        assert one.shape == other.shape and one.dtype == q.dtype
        np.testing.assert_allclose(np.float64(one), other, atol=1.5e-2, err_msg=name)


@pytest.fixture(scope="module")
def qkv():
    return normal(2, 70, 4, 64), normal(2, 90, 2, 64, seed=1), normal(2, 90, 2, 96, seed=2)


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, {}),
        pytest.param({"causal": True}, {"right": 0}, marks=pytest.mark.slow),
        pytest.param({"window": (20, 3)}, {"left": 20, "right": 3}, marks=pytest.mark.slow),
    ],
    ids=["plain", "causal", "window"],
)
def test_options(qkv, options, wanted):
    check(*qkv, wanted, **options)


def test_heads_that_no_kernel_has_are_padded():
    q, k = normal(1, 20, 2, 40), normal(1, 24, 1, 40, seed=1)
    check(q, k, normal(1, 24, 1, 24, seed=2), {})


@pytest.mark.parametrize(
    "config",
    [
        ampere.Config((32, 32), (2, 2)),
        pytest.param(ampere.Config((64, 32)), marks=pytest.mark.slow),
        pytest.param(ampere.Config((64, 64), (4, 2)), marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_the_kernel_by_mma_sync(config):
    q, k, v = normal(1, 40, 2, 32), normal(1, 90, 1, 32, seed=1), normal(1, 90, 1, 64, seed=2)
    check(q, k, v, {"right": 0}, config=config, causal=True)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (ampere.Config((48, 32)), r"4 x 1 warps cannot share a tile \(48, 32\)"),
        (ampere.Config((64, 16)), "128 threads cannot copy 16 rows of 32 elements"),
        (ampere.Config((64, 64), (1, 8)), "1 x 8 warps cannot share a tile"),
        (ampere.Config((64, 64), (1, 4)), "4 warps cannot share heads of 32 elements"),
        (ampere.Config((16, 16), (1, 1)), None),
        (Forward(), "config is of <class 'basedsl_cute.ops.ampere.attention.Config'>"),
        (3, "config is of <class 'int'>"),
    ],
)
def test_configurations_for_the_kernel(config, said):
    q = normal(1, 16, 1, 32)
    if said is None:
        check(q, q, q, {}, config=config)
        return
    out, lse = attention(q, q, q, return_lse=True)
    with pytest.raises(DSLTypeError, match=said):
        attention_backward(out, q, q, q, out, lse, config=config)


@pytest.mark.parametrize("fields", [{"tile": (0, 64)}, {"tile": (64,)}, {"warps": (4, True)}])
def test_configurations_that_none_can_have(fields):
    with pytest.raises(ValueError, match="tile and warps are two integers from 1 each"):
        ampere.Config(**fields)


@pytest.mark.slow
@pytest.mark.parametrize("heads", [(256, 256), (192, 128)])
def test_heads_of_more_than_128(heads):
    q, k = normal(1, 40, 2, heads[0]), normal(1, 40, 1, heads[0], seed=1)
    v = normal(1, 40, 1, heads[1], seed=2)
    check(q, k, v, {"right": 0}, causal=True)


@pytest.mark.parametrize(
    ("config", "queries"),
    [
        (hopper.Config(), 70),
        pytest.param(hopper.Config(stages=1, by_threads=True), 70, marks=pytest.mark.slow),
        pytest.param(hopper.Config((128, 128)), 150, marks=pytest.mark.slow),
        pytest.param(hopper.Config((128, 128), by_threads=True), 150, marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_the_kernel_for_hopper(config, queries):
    q, k = normal(1, queries, 2, 64), normal(1, 130, 1, 64, seed=1)
    v = normal(1, 130, 1, 64, seed=2)
    check(q, k, v, {"right": 0}, config=config, causal=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, {}),
        ({"window": (20, 3)}, {"left": 20, "right": 3}),
        ({"mask": lambda b, h, q, k: k <= q + h}, {"mask": lambda b, h, q, k: k <= q + h}),
    ],
    ids=["plain", "window", "mask"],
)
def test_the_kernel_for_hopper_with_masks(qkv, options, wanted):
    check(*qkv, wanted, config=hopper.Config(), **options)


@pytest.mark.slow
def test_the_kernel_for_hopper_where_a_mask_hides_tiles_of_queries():
    q, k, v = normal(1, 200, 2, 64), normal(1, 130, 1, 64, seed=1), normal(1, 130, 1, 64, seed=2)
    options = {"mask": lambda b, h, q, k: k <= q + h and q // 64 != 1}
    wanted = {"mask": lambda b, h, q, k: (k <= q + h) & (q // 64 != 1)}
    check(q, k, v, wanted, config=hopper.Config(), **options)


@pytest.mark.slow
@pytest.mark.parametrize(("head", "head_v"), [(256, 256), (128, 256)])
def test_the_kernel_for_hopper_with_shared_keys(head, head_v):
    q, k = normal(1, 130, 1, head), normal(1, 70, 1, head, seed=1)
    v = normal(1, 70, 1, head_v, seed=2)
    check(q, k, v, {"right": 0}, config=hopper.Config((64, 64), by_threads=True), causal=True)


@pytest.mark.slow
def test_rows_of_few_keys_do_not_show_that_the_result_was_rounded():
    q, k = normal(1, 40, 2, 64), normal(1, 40, 1, 64, seed=1)
    v = normal(1, 40, 1, 64, seed=2) + np.float16(16)  # results of 16 are rounded by 2^-7
    out, lse = attention(q, k, v, return_lse=True, window=(5, 3))
    grad = normal(*out.shape, seed=9)
    options = {"window": (5, 3), "config": hopper.Config()}
    found = attention_backward(grad, q, k, v, out, lse, **options)
    for one, other in zip(found, gradients(grad, q, k, v, left=5, right=3), strict=True):
        np.testing.assert_allclose(np.float64(one), other, atol=3e-3)


def test_the_kernel_for_hopper_where_queries_see_nothing():
    q, k, v = normal(1, 70, 1, 64), normal(1, 40, 1, 64, seed=1), normal(1, 40, 1, 128, seed=2)
    check(q, k, v, {"right": 0}, config=hopper.Config(), causal=True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"softcap": 2.0}, "take no changed scores"),
        ({"config": hopper.Config((128, 64))}, r"have no tile \(128, 64\)"),
        ({"config": hopper.Config((64, 64))}, r"have no tile \(64, 64\) for heads of 64"),
    ],
)
def test_what_the_kernel_for_hopper_refuses(options, said):
    q = normal(1, 16, 1, 64)
    lse = np.zeros((1, 1, 16), np.float32)
    with pytest.raises(DSLTypeError, match=said):
        attention_backward(q, q, q, q, q, lse, **{"config": hopper.Config(), **options})


@pytest.mark.slow
def test_softcap():
    q, k, v = (normal(1, 33, 2, 32, seed=i) for i in range(3))
    check(
        q,
        k,
        v,
        {
            "score": lambda s, *_: 2 * np.tanh(s / 2),
            "slope": lambda s, *_: 1 - np.tanh(s / 2) ** 2,
        },
        softcap=2.0,
    )


def bent(s, batch, head, q, k):
    if q > k:
        return s * 0.5 + cute.math.tanh(s)
    return cute.math.exp(s * 0.25) - head


def test_a_function_is_differentiated():
    q, k, v = (normal(1, 40, 2, 32, seed=i) for i in range(3))

    def score(s, b, h, i, j):
        return np.where(i > j, s * 0.5 + np.tanh(s), np.exp(s * 0.25) - h)

    def slope(s, b, h, i, j):
        return np.where(i > j, 0.5 + 1 - np.tanh(s) ** 2, 0.25 * np.exp(s * 0.25))

    check(q, k, v, {"score": score, "slope": slope, "right": 5}, score=bent, window=(None, 5))


def shifted(s, batch, head, q, k):
    return s * 0.5 if q > k else s - 1.0


@pytest.mark.filterwarnings("ignore::basedsl_cute.dsl.steps.SpillWarning")
def test_a_score_that_is_contracted_with_the_scale():
    q, k, v = (normal(1, 24, 2, 32, seed=i) for i in range(3))

    def score(s, b, h, i, j):
        return np.where(i > j, s * 0.5, s - 1.0)

    def slope(s, b, h, i, j):
        return np.where(i > j, 0.5, 1.0)

    check(q, k, v, {"score": score, "slope": slope}, score=shifted)


def banded(batch, head, q, k):
    return (k <= q and q - k < 20) or (q // 64 == 1 and k < 3)


def test_a_mask_of_the_users_hides_tiles():
    q, k, v = normal(1, 150, 2, 32), normal(1, 150, 1, 32, seed=1), normal(1, 150, 1, 32, seed=2)

    def mask(batch, head, q, k):
        return (k <= q) & (q - k < 20) | (q // 64 == 1) & (k < 3)

    check(q, k, v, {"mask": mask}, mask=banded)


def test_the_gradient_of_a_bias():
    q, k, v = (normal(2, 20, 2, 32, seed=i) for i in range(3))
    bias = normal(2, 20, 20, seed=4).astype(np.float32)
    found = np.zeros_like(bias)
    out, lse = attention(q, k, v, bias=bias, return_lse=True)
    grad = normal(*out.shape, seed=5)
    attention_backward(grad, q, k, v, out, lse, bias=bias, grad_bias=found)
    wanted = gradients(grad, q, k, v, score=lambda s, *_: s + bias, of_scores=True)
    np.testing.assert_allclose(found, wanted.sum(0), atol=1e-2)


def test_packed_sequences():
    lengths = [(5, 9), (40, 40), (0, 7), (70, 33), (3, 0)]
    starts = [np.cumsum([0, *x]).astype(np.int32) for x in zip(*lengths, strict=True)]
    q, k, v = (normal(starts[i > 0][-1], heads, 32, seed=i) for i, heads in enumerate((4, 2, 2)))
    options = {"cu_seqlens_q": starts[0], "cu_seqlens_k": starts[1], "causal": True}
    out, lse = attention(q, k, v, return_lse=True, **options)
    grad = normal(*out.shape, seed=5)
    found = attention_backward(grad, q, k, v, out, lse, **options)
    for i in range(len(lengths)):
        own, keys = (slice(s[i], s[i + 1]) for s in starts)
        parts = (grad[None, own], q[None, own], k[None, keys], v[None, keys])
        wanted = gradients(*parts, right=0)
        for one, other, place in zip(found, wanted, (own, keys, keys), strict=True):
            np.testing.assert_allclose(np.float64(one[place]), other[0], atol=1.5e-2)


def test_runs_are_equal_to_the_bit(qkv):
    out, lse = attention(*qkv, return_lse=True)
    grad = normal(*out.shape)
    found = [attention_backward(grad, *qkv, out, lse, deterministic=True) for _ in range(2)]
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


def stepped(s, batch, head, q, k):
    return s % 2.0


def test_a_score_without_a_derivative():
    q = normal(1, 8, 1, 32)
    out, lse = attention(q, q, q, score=stepped, return_lse=True)
    with pytest.raises(DSLTypeError, match=r"the derivative of .* is not known"):
        attention_backward(q, q, q, q, out, lse, score=stepped)


def test_no_keys_give_no_gradient():
    q, k = normal(1, 8, 2, 32), normal(1, 0, 2, 32)
    out, lse = attention(q, k, k, return_lse=True)
    grads = attention_backward(normal(*out.shape), q, k, k, out, lse)
    assert (grads[0] == 0).all() and [x.shape for x in grads[1:]] == [k.shape, k.shape]


def test_logarithms_of_other_extents():
    q = normal(1, 8, 2, 32)
    with pytest.raises(DSLTypeError, match=r"lse is \(3,\) of float32, not \(1, 2, 8\)"):
        attention_backward(q, q, q, q, q, np.zeros(3, np.float32))
