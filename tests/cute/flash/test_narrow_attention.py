"""`ops.attention` of Float8E4M3FN, with factors, against float64 on the same numbers."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from basedsl import DSLTypeError
from basedsl_cute.ops import attention
from basedsl_cute.ops.ampere.attention import Config
from basedsl_cute.ops.flash import attention as flash
from basedsl_cute.ops.hopper import attention as hopper

sys.path.insert(0, str(Path(__file__).parent))

from attention_reference import reference

ml_dtypes = pytest.importorskip("ml_dtypes")
FLOAT8 = ml_dtypes.float8_e4m3fn


def normal(*shape, seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(FLOAT8)


def check(q, k, v, wanted, factors=(1.0, 1.0, 1.0), most_of_logs=1e-7, **options):
    names = ("q_scale", "k_scale", "v_scale")
    given = dict(zip(names, factors, strict=True))
    out, lse = attention(q, k, v, return_lse=True, **given, **options)
    exact = []
    for x, factor in zip((q, k, v), factors, strict=True):
        whole = np.broadcast_to(np.float64(factor), (x.shape[0], x.shape[2]))
        exact.append(np.float64(x) * whole[:, None, :, None])
    values, logs = reference(*exact, **wanted)
    assert out.dtype == ml_dtypes.bfloat16
    # Weights have four significant bits, results eight.
    np.testing.assert_allclose(np.float64(out), values, atol=0.03 * abs(values).max())
    # Hopper's wgmma adds products of 8-bit floats with about 14 bits, the simulator with 24.
    is_coarse = getattr(options.get("config"), "by_products", False)  # sums of rounded weights
    atol = 3e-2 if is_coarse else 1e-3
    np.testing.assert_allclose(lse, logs, rtol=most_of_logs, atol=atol)


@pytest.mark.slow
@pytest.mark.parametrize("keys", [64, 96])
@pytest.mark.parametrize(
    "options",
    [
        {"query_stages": 2, "overlaps": True},
        {"late": 4, "ahead": True, "computed": 3},
        {"by_products": True, "late": 4, "by_bits": True, "early": True},
        {"slack": ((0, 3.0), (64, 1.0)), "by_products": True, "between": False},
        {"slack": ((0, 0.25),), "between": False, "from_end": True, "by_groups": True},
        {"slack": ((0, 1.0),), "by_products": True, "between": False, "late": 6, "in_halves": 6},
        {
            "slack": ((0, 1.0),),
            "by_products": True,
            "between": False,
            "late": 4,
            "in_halves": 4,
            "in_lines": 4,
        },
    ],
)
def test_a_causal_mask(keys, options):
    q, k, v = normal(1, 70, 2, 64), normal(1, 100, 1, 64, seed=1), normal(1, 100, 1, 64, seed=2)
    check(q, k, v, {"right": 0}, causal=True, config=hopper.Config((64, keys), **options))


@pytest.mark.parametrize("far", [200, 20])
def test_masks_of_the_users(far):
    """One shows nearly all before a query, the other has a gap, and tiles that it hides."""

    def mask(batch, head, q, k):
        return (k <= q + 10) & ((q - k < far) | (k < 3))

    q, k, v = normal(1, 150, 2, 64), normal(1, 170, 1, 64, seed=1), normal(1, 170, 1, 64, seed=2)
    options = {"persistent": True, "query_stages": 2, "overlaps": True, "by_bits": True}
    check(q, k, v, {"mask": mask}, mask=mask, config=hopper.Config((64, 64), **options))


@pytest.mark.slow
@pytest.mark.parametrize("lengths", [(300, 400), (64, 64), (400, 230)])
@pytest.mark.parametrize(
    "seen", [{}, {"causal": True}, {"causal": "top-left"}, {"window": (50, 10)}]
)
def test_where_tiles_end_and_who_passes_by_keys_changes_no_bit(lengths, seen, monkeypatch):
    """Blocks have several tasks, of more tiles of keys than there are stages."""
    monkeypatch.setattr(flash, "_multiprocessors", lambda q: 2)
    q, k, v = (normal(1, n, 3, 64, seed=i) for i, n in enumerate((lengths[0], *lengths[1:] * 2)))
    stays = hopper.Config((192, 64), stages=3, query_stages=2, persistent=True, by_bits=True)
    expected = attention(q, k, v, return_lse=True, config=stays, **seen)
    for changed in ({"overlaps": True}, {}):
        config = replace(stays, from_end=True, by_groups=True, **changed)
        found = attention(q, k, v, return_lse=True, config=config, **seen)
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("head", [64, 128, 256])
@pytest.mark.parametrize("is_bounded", [False, True])
def test_many_keys_allow_less_slack(head, is_bounded):
    """Weights that are lost for it, or for sums of rounded ones, weigh a sixth of the largest at
    most.
    """
    for keys in (1, 1024, 4096, 4097, 16384, 16385, 32768):
        lost, slack = 0.0, 0.0
        steps = dict(flash.narrow_config(head, keys, is_bounded, False).slack)
        for key in range(keys):
            slack = steps.get(key, slack)
            lost += 2.0 ** -(8 - slack + 10)
        assert lost <= 0.175
    for keys, has_logs in ((32769, False), (1, True)):
        config = flash.narrow_config(head, keys, is_bounded, has_logs)
        assert not config.slack and not config.by_products
    config = flash.narrow_config(head, 16384, is_bounded, False)
    assert bool(config.slack) == (head < 256 or not is_bounded)


@pytest.mark.slow
@pytest.mark.parametrize("head", [64, 128, 256])
@pytest.mark.parametrize("keys", [32, 96])
def test_values_in_blocks_change_no_bit(head, keys):
    q, k, v = (normal(2, n, 2, head, seed=i) for i, n in enumerate((70, 130, 130)))
    config = hopper.Config((64, keys))
    found = [
        attention(q, k, v, causal=True, config=replace(config, in_blocks=x)) for x in (False, True)
    ]
    np.testing.assert_array_equal(*found)


@pytest.mark.slow
@pytest.mark.parametrize("window", [None, (20, 0)])
@pytest.mark.parametrize("first", [0, 100])
def test_negative_scores(first, window):
    """The bits of the largest of negative scores are not the largest integer."""
    q, k, v = normal(1, 70, 2, 64), np.float32(normal(1, 200, 1, 64, seed=1)), normal(1, 200, 1, 64)
    k[:, first:] = -abs(k[:, first:])
    wanted = {} if window is None else {"right": 0, "left": window[0]}
    q, k = abs(np.float32(q)).astype(FLOAT8), k.astype(FLOAT8)
    # Products of one sign: what Hopper's wgmma cuts off is never made up for.
    for options in ({"by_bits": True}, {"slack": ((0, 1.0),), "between": False}):
        config = hopper.Config((64, 64), **options)
        check(q, k, v, wanted, (2.0, 2.0, 1.0), 5e-4, window=window, config=config)


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        {"by_bits": True},
        {"slack": ((0, 1.0),), "between": False},
        {"slack": ((0, 1.0),), "between": False, "by_products": True, "in_halves": 8},
        {"slack": ((0, 1.0),), "between": False, "by_products": True, "in_lines": 8},
    ],
)
def test_scores_that_are_not_numbers(options):
    q, k, v = normal(1, 70, 1, 64), normal(1, 200, 1, 64, seed=1), normal(1, 200, 1, 64, seed=2)
    q[0, 3], k[0, 150, 0, 0] = np.nan, np.nan
    config = hopper.Config((64, 64), **options)
    out = np.float64(attention(q, k[:, :150], v[:, :150], config=config))
    assert np.isnan(out[0, 3]).all() and not np.isnan(np.delete(out[0], 3, 0)).any()
    assert np.isnan(np.float64(attention(q, k, v, config=config))).all()


@pytest.mark.slow
@pytest.mark.parametrize("slack", [((0, 0.25),), ((0, 2.0),), ((0, 3.0), (96, 2.0), (130, 0.0))])
@pytest.mark.parametrize("step", [1, -1])
def test_bases_that_follow_from_afar(step, slack):
    """Scores rise along the keys by less than the slack for each tile, by more, or fall."""
    config = hopper.Config((64, 32), slack=slack, by_products=True, between=False, late=4)
    q = abs(np.float32(normal(1, 64, 1, 64))).astype(FLOAT8)
    v = np.float32(normal(1, 320, 1, 64, seed=1)) + np.arange(320)[:, None, None] // 32 * 0.4 + 1.0
    for rise in (0.1, 0.3, 3.0):  # of a tile's mean score, in units of 2^(1 / ln 2)
        means = np.arange(320)[::step] // 32 * rise * 8 / (64 * 0.8)
        k = np.float32(normal(1, 320, 1, 64, seed=2)) / 4 + means[:, None, None]
        check(q, k.astype(FLOAT8), v.astype(FLOAT8), {}, config=config)


@pytest.mark.parametrize("order", [(0, 2, 3, 1), (0, 2, 1, 3), (3, 1, 2, 0)])
def test_values_may_lie_in_any_order(order):
    q, k, v = (normal(1, n, 2, 64, seed=i) for i, n in enumerate((70, 100, 100)))
    back = np.argsort(order)
    moved = np.ascontiguousarray(v.transpose(order)).transpose(back)
    assert moved.strides != v.strides
    np.testing.assert_array_equal(attention(q, k, moved), attention(q, k, v))


@pytest.mark.slow
@pytest.mark.parametrize("head", [64, 128, 256])
@pytest.mark.parametrize("causal", [False, True])
def test_results_without_the_logarithms_of_sums(head, causal):
    """They may be summed otherwise then, and the largest weight may be rounded."""
    q, k, v = (normal(1, n, 1, head, seed=i) for i, n in enumerate((130, 300, 300)))
    wanted = {"right": 0} if causal else {}
    values, _ = reference(*(np.float64(x) for x in (q, k, v)), **wanted)
    errors = np.float64(attention(q, k, v, causal=causal)) - values
    # Heads of 128 with a causal mask have 0.041 and 0.027: half of their weights are by one line.
    assert abs(errors).max() < 0.045 * abs(values).max()
    assert np.sqrt((errors**2).mean()) < 0.028 * np.sqrt((values**2).mean())


@pytest.mark.slow
def test_factors_of_heads_and_batches():
    q, k, v = normal(2, 130, 2, 64), normal(2, 90, 1, 64, seed=1), normal(2, 90, 1, 128, seed=2)
    draw = np.random.default_rng(3).uniform
    check(q, k, v, {}, (np.float32(draw(0.5, 2, (2, 2))), 0.5, np.float32(draw(0.5, 2, (2, 1)))))


@pytest.mark.slow
def test_factors_of_zero_and_negative_ones():
    q, k, v = normal(1, 70, 3, 64), normal(1, 70, 3, 64, seed=1), normal(1, 70, 3, 64, seed=2)
    factors = np.float32([[0.0, -1.0, 1.0]])
    out = attention(q, k, v, causal=True, q_scale=factors)
    values, _ = reference(np.float64(q) * np.float64(factors)[:, None, :, None], k, v, right=0)
    assert np.isnan(np.float64(out[:, :, 1])).all()
    shown = [0, 2]
    np.testing.assert_allclose(np.float64(out[:, :, shown]), values[:, :, shown], atol=0.1)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::basedsl_cute.dsl.steps.SpillWarning")  # ptxas before 13.3
def test_a_score_and_rows_that_see_nothing():
    q, k, v = normal(1, 80, 1, 64), normal(1, 40, 1, 64, seed=1), normal(1, 40, 1, 64, seed=2)
    wanted = {"right": 0, "score": lambda s, *_: 2 * np.tanh(s / 2)}
    factor = np.float32([1.5])
    check(q, k, v, wanted, (factor, 1.0, 2.0), causal=True, softcap=2.0)


Q = np.zeros((1, 8, 4, 64), FLOAT8)
HALF = np.zeros((1, 8, 4, 64), np.float16)
SLACK = hopper.Config((64, 64), slack=((0, 1.0),), between=False)


@pytest.mark.parametrize(
    ("x", "options", "message"),
    [
        (HALF, {"q_scale": 2.0}, "q_scale goes with elements of 8 bits, not Float16"),
        (Q, {"q_scale": -2.0}, "q_scale is -2.0"),
        (Q, {"k_scale": float("nan")}, "k_scale is nan"),
        (Q, {"k_scale": np.ones(3, np.float32)}, r"k_scale is \(3,\) of float32, not Float32 that"),
        (Q, {"v_scale": np.ones(4)}, "v_scale is .* of float64, not Float32"),
        (Q, {"config": Config()}, "no kernel for packed or paged sequences, nor by mma.sync"),
        (Q, {"config": hopper.Config((64, 48))}, r"has no tile \(64, 48\)"),
        (Q, {"config": hopper.Config((64, 64), overlaps=True)}, "overlaps= needs query_stages=2"),
        (Q, {"config": replace(SLACK, between=True)}, "slack= needs between=False"),
        (Q, {"config": replace(SLACK, slack=((0, -1.0),))}, "from 0 to 8"),
        (Q, {"config": replace(SLACK, slack=((32, 1.0),))}, "the first one of key 0"),
        (
            HALF,
            {"config": hopper.Config(slack=((0, 1.0),), between=False)},
            "for elements of 8 bits",
        ),
        (HALF, {"config": hopper.Config(from_end=True), "softcap": 1.0}, "from_end= is for"),
        (Q, {"config": hopper.Config((64, 64), in_blocks=True)}, "tiles of 32, 96, 160 or 224"),
        (HALF, {"config": hopper.Config(by_groups=True, turns=True)}, "by_groups= is for"),
        (HALF, {"config": hopper.Config(early=True)}, "nor begins early with them"),
        (HALF, {"config": hopper.Config(computed=1)}, "sums no weights of Float16"),
        (Q, {"config": hopper.Config(in_halves=4)}, "makes no weights by straight lines"),
        (Q, {"seqused_k": np.int32([4])}, "no kernel for packed or paged"),
        (Q, {"out": HALF.copy()}, "out is .* of float16, not .* of bfloat16"),
    ],
)
def test_arguments_that_do_not_fit(x, options, message):
    with pytest.raises(DSLTypeError, match=message):
        attention(x, x, x, **options)
