"""Attention by mma.sync of one stage and of rings, whose bases follow at once or from afar, against
float64.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLTypeError
from basedsl_cute.hardware.targets import target_of
from basedsl_cute.ops import attention
from basedsl_cute.ops.ampere.attention import Config, check_config
from basedsl_cute.ops.ampere.attention_rows import check_copies
from basedsl_cute.ops.flash import attention as flash
from basedsl_cute.ops.flash.arguments import Extents
from basedsl_cute.ops.flash.variant import Variant

sys.path.insert(0, str(Path(__file__).parent))

from attention_reference import reference

SLACK = Config((32, 32), 2, slack=8)
configs = pytest.mark.parametrize(
    "config",
    [
        SLACK,
        Config((32, 32), 2),
        Config((32, 32), 2, slack=8, stages=3),
        pytest.param(Config((32, 32), 2, stages=2), marks=pytest.mark.slow),
    ],
    ids=["slack", "without slack", "slack, three stages", "two stages"],
)


def normal(*shape, seed=0, size=1.0):
    x = np.random.default_rng(seed).standard_normal(shape)
    return (size * x).astype(np.float16)


def operands(keys, queries=40, head=64, head_v=64, size=1.0):
    q = normal(1, queries, 2, head, size=size)
    return q, normal(1, keys, 1, head, seed=1), normal(1, keys, 1, head_v, seed=2)


def check(qkv, config=SLACK, wanted=None, **options):
    q, _, v = qkv
    out = np.full((*q.shape[:3], v.shape[3]), np.nan, np.float16)
    _, lse = attention(*qkv, out=out, return_lse=True, config=config, **options)
    values, logs = reference(*qkv, **(wanted or {}))
    np.testing.assert_allclose(np.float64(out), values, atol=4e-3)
    np.testing.assert_allclose(lse, logs, atol=4e-3)


@configs
@pytest.mark.parametrize("keys", [1, 32, 33, 70, 96, 150])
def test_any_number_of_tiles(keys, config):
    """One tile, and an even and an odd number of them, of which the last is whole or not."""
    check(operands(keys), config)


@configs
@pytest.mark.parametrize("keys", [20, 64, 71, 130])
def test_a_diagonal_that_rows_without_keys_and_masked_tiles_come_before(keys, config):
    check(operands(keys, queries=70), config, causal=True, wanted={"right": 0})


@configs
def test_windows_and_masks_that_skip_tiles(config):
    qkv = operands(150)
    check(qkv, config, window=(40, 10), wanted={"left": 40, "right": 10})

    def far(batch, head, q, k):
        return (k < 20) | (k >= 100)

    check(qkv, config, mask=far, wanted={"mask": far})


@configs
def test_scores_that_are_changed(config):
    def nearer(s, batch, head, q, k):
        return s - 0.25 * (q - k)

    check(
        operands(100), config, score=nearer, causal=True, wanted={"score": nearer_exact, "right": 0}
    )


def nearer_exact(s, batch, head, q, k):
    return s - 0.25 * (q - k)


@configs
def test_bases_that_rise_in_most_tiles(config):
    check(operands(130, size=40.0), config)


def test_heads_of_more_columns():
    check(operands(100, head=96, head_v=128))


@configs
def test_a_hidden_score_raises_no_base(config):
    """A base from products that a mask hides would make all weights zeros."""
    q, k, v = operands(64, queries=32)
    k[:, 40:] = 30 * q[:, :1, :1]
    check((q, k, v), config, mask=nearest, wanted={"mask": nearest})


def nearest(batch, head, q, k):
    return k < 40


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (Config((128, 48), 4), "cannot copy 48 rows of 96 elements"),
        (Config((256, 80), 8), "cannot copy 80 rows of"),
    ],
)
def test_configurations_that_it_does_not_take(config, message):
    with pytest.raises(DSLTypeError, match=message):
        check_config(config, 128, 96)


@pytest.mark.parametrize(
    ("threads", "rows", "extent"), [(128, 16, 96), (256, 32, 96), (256, 32, 160), (96, 64, 64)]
)
def test_threads_whose_vectors_do_not_divide_a_tile(threads, rows, extent):
    """They wrote beside the tile: 8 lanes of a row of 12 vectors."""
    with pytest.raises(DSLTypeError, match=f"cannot copy {rows} rows of {extent} elements"):
        check_copies(threads, [(rows, extent)])


@pytest.mark.parametrize("right", [None, 0])
@pytest.mark.parametrize("heads", [(128, 128), (128, 96), (128, 64), (96, 128), (64, 128)])
@pytest.mark.parametrize("arch", ["sm_80", "sm_86", "sm_90", "sm_120a"])
def test_copies_take_whole_parts_of_the_tiles_that_are_chosen(arch, heads, right, monkeypatch):
    """Tiles of 48 keys were chosen for 96 elements, too, of which 32 rows are copied at a time."""
    extents, q = Extents(4, 4096, 4096, 16, 16, *heads), SimpleNamespace(dtype=cute.Float16)
    monkeypatch.setattr(flash, "_multiprocessors", lambda q: 132)
    monkeypatch.setattr(flash, "current_target", lambda: target_of(arch))
    found = flash._chosen(extents, 4096, q, Variant(right=right), True)
    check_config(found, *heads)
    assert found.slack > 0 or 96 in heads
