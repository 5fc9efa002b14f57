"""The last tasks of attention on Hopper, cut along the keys into a piece for each block."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLTypeError
from basedsl_cute.ops import attention
from basedsl_cute.ops.flash import attention as flash
from basedsl_cute.ops.flash.variant import Sequence, Variant
from basedsl_cute.ops.hopper import attention as hopper
from basedsl_cute.ops.hopper.attention_shares import (
    ADDS,
    FINISHES,
    LEAST_PIECE,
    LEAVES,
    SharedWalk,
    with_shares,
)

sys.path.insert(0, str(Path(__file__).parent))

from attention_reference import close, normal, reference

FLOAT8 = pytest.importorskip("ml_dtypes").float8_e4m3fn
WIDE = hopper.Config((64, 64), persistent=True, shares_last=True)
THREE = hopper.Config(
    (192, 64),
    stages=3,
    query_stages=2,
    persistent=True,
    overlaps=True,
    from_end=True,
    by_groups=True,
    shares_last=True,
)


@cute.kernel
def list_kernel(parts: cute.Tensor, shape: tuple, blocks: cute.Int32, cfg: cute.Constexpr):
    queries, keys, heads, batches = shape
    extents = (queries, None, heads, batches)
    block, most = cute.arch.block_idx()[0], parts.shape[1]
    walk = SharedWalk(Variant(), Sequence(queries, keys), (None, None, ()), extents, blocks, cfg)
    walk.begin(block, cute.utils.SmemAllocator())
    work, i = walk.first(block), cute.Int32(0)
    while walk.has(work) and i < most:
        found = walk.task(work)
        for n in cute.range_constexpr(7):
            parts[n, i, block] = cute.Int32(found[n])
        work, i = walk.following(work), i + 1


@cute.jit
def list_parts(parts: cute.Tensor, shape: tuple, blocks: cute.Int32, cfg: cute.Constexpr):
    list_kernel(parts, shape, blocks, cfg).launch(grid=(blocks, 1, 1), block=(1, 1, 1))


SHAPES = [
    (4096, 4096, 16, 4, 132, replace(WIDE, tile=(128, 160))),
    (4096, 4096, 16, 4, 132, replace(THREE, tile=(192, 96))),
    (4100, 3000, 5, 1, 132, replace(THREE, tile=(192, 96))),
    (100, 4096, 1, 1, 132, THREE),  # one tile of less rows
    (320, 70, 3, 1, 7, THREE),  # pieces of many tasks
    (128, 40, 3, 1, 5, WIDE),  # one step a task
    (64 * 6, 700, 1, 1, 3, WIDE),  # nothing is left
    (64 * 5, 700, 1, 1, 4, WIDE),
]


@pytest.mark.parametrize(("queries", "keys", "heads", "batches", "blocks", "cfg"), SHAPES)
def test_each_tile_of_keys_of_each_task_has_one_block(queries, keys, heads, batches, blocks, cfg):
    parts = np.full((blocks, 200, 7), -9, np.int32).T
    list_parts(parts, (queries, keys, heads, batches), blocks, cfg)
    steps, seen, left, added, loads = -(-keys // cfg.tile[1]), {}, {}, {}, []
    for block in range(blocks):
        found = [x for x in parts[:, :, block].T.tolist() if x[0] != -9]
        loads.append(sum(last - low + 1 for _, _, _, low, last, _, _ in found))
        assert [x[5] for x in found if x[5] != FINISHES] in ([], [LEAVES], [ADDS], [LEAVES, ADDS])
        assert ADDS not in [x[5] for x in found[:-1]]
        for tile, head, batch, low, last, ending, first in found:
            assert 0 <= low <= last < steps
            task = tile, head, batch
            seen.setdefault(task, []).extend(range(low, last + 1))
            assert (ending == FINISHES) == (low == 0 and last == steps - 1)
            if ending == LEAVES:
                left.setdefault(task, []).append(block)
            if ending == ADDS:
                assert low == 0 and task not in added
                added[task] = list(range(first, block))
    assert len(seen) == -(-queries // cfg.tile[0]) * heads * batches
    assert all(sorted(own) == list(range(steps)) for own in seen.values())
    assert left == added
    if not cfg.by_groups and sum(loads) % (blocks * steps) >= blocks * LEAST_PIECE:
        assert max(loads) - min(loads) <= 1


@pytest.fixture
def five_processors(monkeypatch):
    monkeypatch.setattr(flash, "_multiprocessors", lambda q: 5)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({}, marks=pytest.mark.slow),
        pytest.param({"tile": (128, 64), "query_stages": 2, "turns": True}, marks=pytest.mark.slow),
        {"between": False, "ahead": True, "late": 3, "by_bits": True},
        pytest.param({"query_stages": 2, "overlaps": True}, marks=pytest.mark.slow),
    ],
)
def test_results_and_logarithms_of_sums(five_processors, monkeypatch, options):
    """Tasks of 10 tiles of keys, of which blocks have none, one, or parts of two."""
    monkeypatch.setenv("CUTE_DSL_CHECK_RACES", "1")
    q, k, v = normal(1, 200, 4, 64), normal(1, 630, 2, 64, seed=1), normal(1, 630, 2, 64, seed=2)
    sinks = np.float32([0.5, -1.0, 3.0, 0.0])
    config = replace(WIDE, **options)
    out = np.full_like(q, np.nan)
    out, lse = attention(q, k, v, out=out, return_lse=True, config=config)
    values, logs = reference(q, k, v)
    close(out, values)
    close(lse, logs, 2e-3)
    with_sinks, _ = attention(q, k, v, sinks=sinks, return_lse=True, config=config)
    weight = np.exp(logs) / (np.exp(logs) + np.exp(sinks)[None, :, None])
    close(with_sinks, values * weight.transpose(0, 2, 1)[..., None])


@pytest.mark.slow
@pytest.mark.parametrize("lengths", [(400, 500), (450, 330), (64, 2000), (190, 130)])
@pytest.mark.parametrize(
    "options", [{}, {"slack": ((0, 3.0), (128, 1.0)), "by_products": True, "between": False}]
)
def test_8_bits_with_factors_of_heads(five_processors, lengths, options):
    queries, keys = lengths
    shapes = ((queries, 4), (keys, 2), (keys, 2))
    q, k, v = (normal(1, *x, 64, seed=i).astype(FLOAT8) for i, x in enumerate(shapes))
    draw = np.random.default_rng(3).uniform
    factors = [np.float32(draw(0.5, 2, (1, x.shape[2]))) for x in (q, k, v)]
    given = dict(zip(("q_scale", "k_scale", "v_scale"), factors, strict=True))
    config = replace(THREE, by_bits=True, **options)
    found = attention(q, k, v, config=config, **given)
    exact = (np.float64(x) * y[:, None, :, None] for x, y in zip((q, k, v), factors, strict=True))
    values, _ = reference(*exact)
    np.testing.assert_allclose(np.float64(found), values, atol=0.03 * abs(values).max())
    again = attention(q, k, v, config=config, **given)
    np.testing.assert_array_equal(found, again)


@pytest.mark.slow
@pytest.mark.parametrize("is_narrow", [False, True])
def test_numbers_that_are_none_and_scores_far_apart(five_processors, is_narrow):
    """A part of a task may have all that counts, or what is not a number."""
    dtype = FLOAT8 if is_narrow else np.float16
    options = {"slack": ((0, 2.0),), "between": False} if is_narrow else {}
    config = replace(THREE if is_narrow else replace(WIDE, tile=(128, 64)), **options)
    q, k, v = (normal(1, n, 1, 64, seed=i) for i, n in enumerate((200, 900, 900)))
    for part in (slice(0, 60), slice(400, 460), slice(840, 900)):
        louder = k.copy()
        louder[:, part] *= 8
        given = [x.astype(dtype) for x in (q, louder, v)]
        found = np.float64(attention(*given, config=config))
        values, _ = reference(*(np.float64(x) for x in given))
        most = (0.04 if is_narrow else 2e-3) * abs(values).max()
        np.testing.assert_allclose(found, values, atol=most)
    q[0, 3] = np.nan
    found = np.float64(attention(*(x.astype(dtype) for x in (q, k, v)), config=config))
    assert np.isnan(found[0, 3]).all() and not np.isnan(np.delete(found[0], 3, 0)).any()
    k[0, 850, 0, 0] = np.nan
    found = attention(*(x.astype(dtype) for x in (q, k, v)), config=config)
    assert np.isnan(np.float64(found)).all()


@pytest.mark.parametrize("options", [{"causal": True}, {"window": (9, None)}, {"softcap": 2.0}])
def test_queries_that_see_some_keys_have_no_shares(options):
    x = normal(1, 70, 1, 64)
    with pytest.raises(DSLTypeError, match="shares no last tasks"):
        attention(x, x, x, config=WIDE, **options)
    with pytest.raises(DSLTypeError, match="shares_last= needs persistent="):
        attention(x, x, x, config=replace(WIDE, persistent=False))


def test_shares_are_chosen_where_they_save_a_part_of_the_time():
    wide, narrow = flash.HOPPER_CONFIGS[128][1], flash.narrow_config(128, 4096, False, False)
    bounded = with_shares(narrow, Variant(right=0), 4096, 4096, 64, 132)
    assert not bounded.shares_last  # 10.4 rounds of tasks of other lengths
    in_turns = flash.narrow_config(256, 4096, False, False)
    for config, length, heads, wanted in (
        (in_turns, 4096, 64, False),  # 15.5 rounds
        (narrow, 4096, 64, True),  # 10.2 rounds, and tiles of less rows
        (wide, 4096, 64, True),  # 15.5 rounds
        (wide, 8192, 10, False),  # 4.8 rounds
        (wide, 4096, 10, True),  # 2.4 rounds
        (wide, 4096, 66, False),  # 16 rounds
        (wide, 512, 10, False),  # short ones
    ):
        assert with_shares(config, Variant(), length, length, heads, 132).shares_last == wanted
