"""The choice of blocks, warps and splits for few queries."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from basedsl_cute.hardware.targets import target_of
from basedsl_cute.ops import attention
from basedsl_cute.ops.ampere import decoding
from basedsl_cute.ops.ampere.attention import Config
from basedsl_cute.ops.flash import attention as flash
from basedsl_cute.ops.flash.arguments import Extents
from basedsl_cute.ops.flash.few_queries import with_key_warps
from basedsl_cute.ops.flash.variant import Variant

sys.path.insert(0, str(Path(__file__).parent))

from attention_reference import reference

PROCESSORS = 132
BLOCK, PROCESSOR, RESERVED = 227 * 1024, 228 * 1024, 1024  # bytes of shared memory of an H200
START = Config((16, 64), 1, 4, overlap=True)


def chosen(batches, keys, head=128, key_heads=8, paged=False):
    return with_key_warps(START, batches * key_heads, keys, (head, head), PROCESSORS, paged)


@pytest.mark.parametrize(
    ("batches", "keys", "warps", "splits", "overlap"),
    [
        (1, 16384, 8, 16, True),
        (16, 8192, 8, 1, False),
        (128, 4096, 2, 1, True),
        (1, 131072, 8, 16, True),
        (1, 512, 8, 4, True),  # no more splits than warps have tiles
        (8, 2048, 8, 1, True),  # half of the multiprocessors
        (8, 8192, 8, 2, True),
        (64, 4096, 4, 1, True),
        (12, 1024, 2, 5, True),
        (12, 8192, 4, 1, False),  # 96 blocks, each alone
        (10, 4096, 4, 1, False),
    ],
)
def test_choices(batches, keys, warps, splits, overlap):
    found = chosen(batches, keys)
    assert (found.key_warps, found.splits, found.overlap) == (warps, splits, overlap)
    assert found.early and found.tile == (16, 16) and found.stages == 3


@pytest.mark.parametrize(
    ("batches", "keys", "warps", "splits", "overlap", "early"),
    [
        (1, 512, 8, 4, True, True),
        (16, 2048, 8, 1, False, True),
        (8, 2048, 8, 2, True, True),  # half of the multiprocessors would wait for their pages
        (1, 131072, 4, 33, True, False),
        (16, 8192, 4, 2, True, False),
        (20, 4096, 2, 3, True, False),
        (32, 4096, 4, 1, False, False),
        (128, 4096, 2, 1, True, True),
    ],
)
def test_choices_for_pages(batches, keys, warps, splits, overlap, early):
    found = chosen(batches, keys, paged=True)
    assert (found.key_warps, found.splits) == (warps, splits)
    assert (found.overlap, found.early) == (overlap, early)


@pytest.mark.parametrize(("batches", "keys"), [(9, 8192), (20, 2048)])
def test_uneven_blocks_of_long_caches_are_left_to_single_warps(batches, keys):
    assert chosen(batches, keys) is None


def test_uneven_blocks_of_pages_are_not_alone():
    assert chosen(12, 2048, paged=True) is None and chosen(12, 2048).key_warps == 4


def test_choices_fit_into_shared_memory_and_leave_no_split_without_keys():
    rng = np.random.default_rng()
    for _ in range(3000):
        widths = tuple(int(n) * 32 for n in rng.integers(1, 9, 2))
        blocks, keys = (int(2**x) for x in rng.uniform(0, (12, 18)))
        found = with_key_warps(START, blocks, keys, widths, PROCESSORS, bool(rng.integers(2)))
        if found is None:
            continue
        note = f"{blocks} blocks of {keys} keys, heads of {widths}: {found}"
        decoding.check(found, *widths)
        smem = found.smem_bytes(*widths)
        assert smem <= BLOCK, note
        warps = PROCESSOR // (smem + RESERVED) * found.key_warps
        assert warps >= (8 if sum(widths) <= 320 else 4), note
        steps = -(-keys // 16)
        assert (found.splits - 1) * -(-steps // found.splits) < steps, note


def test_hopper_takes_them_and_others_do_not(monkeypatch):
    extents = Extents(16, 1, 8192, 32, 8, 128, 128)
    q = SimpleNamespace(dtype=SimpleNamespace(width=16))
    monkeypatch.setattr(flash, "_multiprocessors", lambda q: PROCESSORS)
    for name, warps in (("sm_90a", 8), ("sm_80", 1), ("sm_120a", 1)):
        monkeypatch.setattr(flash, "current_target", lambda name=name: target_of(name))
        found = flash._chosen(extents, 1, q, Variant(), True)
        assert (found.key_warps, found.packed) == (warps, 4)
        assert found.overlap == (name == "sm_120a")
        paged = flash._chosen(extents, 1, q, Variant(), False, page=16)
        # 512 MB in pages: two blocks of each head for a multiprocessor.
        expected = (4, 2) if warps > 1 else (1, paged.splits)
        assert (paged.key_warps, paged.splits, paged.packed) == (*expected, 4)


def test_the_most_keys_of_windows():
    rng = np.random.default_rng()
    for _ in range(300):
        queries, keys = (int(n) for n in rng.integers(1, 40, 2))
        left, right = (None if n < 0 else int(n) for n in rng.integers(-5, 30, 2))
        variant = Variant(left=left, right=right, from_start=bool(rng.integers(2)))
        i, j = np.ogrid[:queries, :keys]
        diagonal = i + (0 if variant.from_start else keys - queries)
        seen = (j >= diagonal - (keys + queries if left is None else left)) & (
            j <= diagonal + (keys + queries if right is None else right)
        )
        places = np.flatnonzero(seen.any(0))
        count = places[-1] - places[0] + 1 if places.size else 0
        most = variant.most_keys(queries, keys)
        assert count <= most <= keys, f"{queries} queries, {keys} keys, {variant}"


@pytest.mark.parametrize(
    ("options", "most"),
    [
        ({}, 900),
        ({"right": 0}, 900),
        ({"left": 50}, 52),
        ({"left": 50, "right": 0}, 52),
        ({"left": 50, "right": 7}, 59),
        ({"left": 50, "from_start": True}, 900),
        ({"right": 7, "from_start": True}, 9),
    ],
)
def test_the_most_keys_of_two_queries(options, most):
    assert Variant(**options).most_keys(2, 900) == most


@pytest.mark.parametrize(
    "config", [Config((16, 16), 1, 2, 5), Config((16, 16), 1, 2, 5, key_warps=2, stages=2)]
)
def test_splits_share_the_keys_of_a_window(config):
    """Elements of other keys are no numbers."""
    q, k, v = (
        np.random.default_rng(i).standard_normal((1, rows, heads, 32)).astype(np.float16)
        for i, (rows, heads) in enumerate([(2, 2), (900, 1), (900, 1)])
    )
    k[:, :720] = v[:, :720] = np.nan
    out, lse = attention(q, k, v, window=(160, 0), config=config, return_lse=True)
    values, logs = reference(q, k[:, 720:], v[:, 720:], left=160, right=0)
    np.testing.assert_allclose(np.float64(out), values, atol=4e-3)
    np.testing.assert_allclose(lse, logs, atol=2e-3)
