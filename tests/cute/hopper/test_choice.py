"""The choice of a kernel for products of 16-bit floats, by the model that is fitted to timings."""

import gzip
import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute.ops.hopper import candidates, heuristics, model, parallel_split_k, split_k_gemm
from basedsl_cute.ops.hopper import gemm as hopper_gemm
from basedsl_cute.ops.hopper.config import Config, HopperGemmKinds
from basedsl_cute.ops.hopper.problem import Problem
from basedsl_cute.utils.hopper_helpers import LayoutEnum

TIMINGS = Path(__file__).parents[3] / "bench" / "results" / "2026-11-23-choice.jsonl.gz"
ROW = LayoutEnum.ROW_MAJOR


def problem(m, n, k, k_in_a=True, k_in_b=True, batches=1, **more):
    contiguous = (k_in_a, k_in_b) if m > n else (k_in_b, k_in_a)
    longer, shorter = contiguous
    facts = {"balances": longer, "shorter_balances": shorter} | more
    return Problem(m, n, k, batches, 16, 16, 132, True, **facts)


SHAPES = [(1, 4096, 4096), (16, 14336, 4096), (96, 5120, 3392), (5120, 48, 512), (192, 8192, 1024),
          (320, 1024, 1024), (1000, 1000, 1000), (64, 64, 65536), (512, 512, 8192), (7, 9, 8),
          (2048, 7168, 4096), (8192, 128, 64)]  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("k_in_b", [True, False])
@pytest.mark.parametrize("batches", [1, 48])
def test_every_candidate_fits(shape, k_in_b, batches):
    p = problem(*shape, k_in_b=k_in_b, batches=batches)
    found = candidates.candidates(p)
    assert {len(column) for column in found.table.values()} == {len(found.table["rows"])}
    made = [found.at(row, p) for row in range(len(found.table["rows"]))]
    assert len(set(made)) > 20
    for cfg in made:
        c, inner = cute.Float16, cfg
        if isinstance(cfg, parallel_split_k.Config):
            c, inner = cute.Float32, cfg.gemm
            assert p.has_parts(cfg.parts) and batches == 1
        kinds = HopperGemmKinds(cute.Float16, cute.Float16, c, ROW, ROW, ROW)
        is_split = isinstance(inner, split_k_gemm.Config)
        if is_split:
            split_k_gemm.check_config(kinds, inner)
        else:
            hopper_gemm.check_config(kinds, replace(inner, swap=False))


@pytest.mark.parametrize("rows", [8, 96])
def test_a_table_has_the_numbers_of_its_configurations(rows):
    p = problem(rows, 1280, 8192)
    found = candidates.candidates(p)
    made = [found.at(row, p) for row in range(len(found.table["rows"]))]
    again = model.columns_of(made)
    for name in set(model.COLUMNS) - {"deferred"}:  # a tile that is stored at once has no next one
        assert (found.table[name] == again[name]).all(), name


def test_few_rows_whose_k_is_contiguous_have_longer_steps():
    for p, expected in ((problem(8, 4096, 4096), {64, 128}), (problem(96, 4096, 4096), {64})):
        found = candidates.candidates(p)
        made = [found.at(row, p) for row in range(len(found.table["rows"]))]
        steps = {cfg.tile[2] for cfg in made if isinstance(cfg, split_k_gemm.Config)}
        assert steps == expected
    found = candidates.candidates(problem(8, 4096, 4096, k_in_b=False))
    assert {cfg.tile[2] for configs, _ in found.sources for cfg in configs} == {64}


def test_terms_by_hand():
    pair = Config((128, 96, 64), 7, 2, True, (2, 1))
    slices = split_k_gemm.Config((64, 16, 64), 12, split=4, swap=True)
    table = model.columns_of([pair, slices, parallel_split_k.Config(8, pair, 2)])
    f = model.terms(table, model.Products(16, 5000, 4096, 1, 1, 0, 132))
    # 1 x 53 tiles in pairs; 79 x 1 tiles by clusters of 4 in 120 multiprocessors; 8 times the first
    assert f.blocks.tolist() == [106, 316, 848]
    assert f.rounds.tolist() == [1, 3, 7]
    assert f.steps.tolist() == [64, 16, 8]
    assert f.mma.tolist() == [128 * 96 / 32, 64 * 32 / 32, 128 * 96 / 32]
    # 16 rows of A, and half of the columns of B; the others have 64 rows of B, and 16 of A.
    assert f.from_l2.tolist() == [(16 + 48) * 128, (64 + 16) * 128, (16 + 48) * 128]
    # Where N is contiguous, 96 columns are loaded as rows of 32.
    assert f.turned.tolist() == [192 * 128, 64 * 128, 192 * 128]
    assert f.empty.tolist() == [112, 0, 112]
    assert f.partial.tolist() == [0, 0, 4 * 8 * 16 * 5000 / 1e6]
    assert math.isclose(f.once[0], 2 * (5016 * 4096 + 16 * 5000) / 1e6)


def test_each_gpc_has_whole_slices_of_a_long_k():
    """64 pairs of tiles of 128 x 128: eight of a slice, or four of each of two, in each GPC."""
    for m, n, parts, is_whole in ((512, 512, 8, True), (256, 512, 16, True), (512, 768, 5, False)):
        for k, is_long in ((4096 * parts, True), (2048 * parts, False)):
            pair = Config((128, 128, 64), cluster=(2, 1))
            row = model.columns_of([parallel_split_k.Config(parts, pair)])
            assert model.gpcs_have_parts(row, m, n, k).tolist() == [is_whole and is_long]
    for is_column_major in (False, True):
        long = problem(512, 512, 65536, is_column_major=is_column_major)
        chosen = heuristics.choose_hopper_kernel(long)[1]
        assert (chosen.parts, chosen.gemm.tile[:2], chosen.gemm.apart) == (8, (128, 128), 8)
    assert heuristics.choose_hopper_kernel(problem(512, 512, 8192))[1].gemm.apart == 1


def test_what_is_chosen_was_nearly_the_fastest():
    """The model is fitted to the same configurations."""
    with gzip.open(TIMINGS, "rt") as file:
        products = [json.loads(line) for line in file]
    assert len(products) > 500
    ratios, by_cublas = [], []
    for order, batches, m, n, k, cublas, rows in products:
        columns = np.array([row[:-1] for row in rows], dtype=np.int64).T
        table = dict(zip(model.COLUMNS, columns, strict=True))
        of_a, of_b = int(order[0] == "k"), int(order[1] == "k")
        times = model.modelled_time(table, model.Products(m, n, k, batches, of_a, of_b, 132))
        chosen = rows[int(times.argmin())][-1]
        ratios.append(min(row[-1] for row in rows) / chosen)
        by_cublas.append(cublas / chosen)
    assert math.exp(np.log(ratios).mean()) > 0.98
    assert math.exp(np.log(by_cublas).mean()) > 1.13
    assert np.mean(np.array(ratios) < 0.9) < 0.02


def test_which_products_are_fitted():
    whole = problem(512, 512, 512)
    assert heuristics.choose_hopper_kernel(whole) != heuristics.choose_by_rules(whole)
    for other in (
        Problem(512, 512, 512, 1, 8, 16, 132, True),
        Problem(512, 512, 512, 1, 16, 32, 132, True),
        Problem(512, 512, 512, 1, 16, 16, 132, False),
        problem(8192, 8192, 8192),
    ):
        assert heuristics.choose_hopper_kernel(other) == heuristics.choose_by_rules(other)


def test_tiles_of_few_rows_of_a_batch_are_not_shared_by_batches():
    """Rules took 32 rows of 32 batches for 1,024: pairs of tiles of 128 rows, 0.27 of cuBLAS."""
    for m, n in ((32, 1408), (1408, 32)):
        cfg = heuristics.choose_hopper_kernel(problem(m, n, 2048, True, False, batches=32))[1]
        short = cfg.tile[1] if cfg.swap == (m < n) else cfg.tile[0]
        assert short <= 64
    few = Problem(32, 1408, 2048, 32, 8, 16, 132, True)
    name, cfg = heuristics.choose_by_rules(few)
    assert name == "hopper split" or cfg.cluster[0] == 1


def test_rules_that_the_model_doubts_choose_no_large_product():
    """Rows of 32 bytes of B, of which columns are contiguous, load slowly: on an H200 rules chose
    tiles of 176 columns, 0.755 of cuBLAS.
    """
    large = Problem(2048, 7168, 25088, 1, 16, 16, 132, True, balances=False)
    assert heuristics.choose_by_rules(large)[1].tile[1] % 32
    assert heuristics.choose_hopper_kernel(large)[1].tile[1] % 32 == 0


def test_a_column_major_result_takes_as_long():
    for m, n, k in SHAPES:
        rows, columns = problem(m, n, k), problem(m, n, k, is_column_major=True)
        found = candidates.candidates(rows)
        turned = candidates.candidates(columns)
        whole = int((found.table["parts"] == 1).sum())
        assert whole == int((turned.table["parts"] == 1).sum())
        for row in range(0, whole, 7):
            assert found.at(row, rows) == turned.at(row, columns)


def test_clusters_that_follow_each_other_lie_across():
    """One tile a multiprocessor: bands along the clusters take up to 27 % longer."""
    p = problem(512, 1536, 3072)
    found = candidates.candidates(p)
    made = {found.at(row, p) for row in range(len(found.table["rows"]))}
    seen = set()
    for cfg in made:
        if isinstance(cfg, Config) and p.tiles(*cfg.tile[:2]) <= 132:
            across, along = cfg.cluster
            assert across == along or (cfg.along_m, cfg.swizzle) == (across < along, 1)
            assert cfg.promotion == 128
            seen.add(cfg.cluster)
    assert {(2, 1), (1, 2), (4, 1), (1, 4)} <= seen


def test_a_correction_by_hand():
    network = ((np.array([[1.0, 0.5]]), np.array([0.0, 1.0])), (np.array([[1.0], [2.0]]), [0.25]))
    zero = ((np.zeros((1, 2)), np.zeros(2)), (np.zeros((2, 1)), np.zeros(1)))
    one = model.Correction(np.array([3.0]), np.array([2.0]), (network,))

    def silu(x):
        return x / (1 + math.exp(-x))

    x = (2.0 - 3.0) / 2.0
    wanted = silu(x) + 2 * silu(0.5 * x + 1) + 0.25
    assert wanted > 0.5  # more than is believed
    assert np.allclose(one.factor(np.array([[2.0]])), math.exp(0.5))
    # Two that disagree: the mean, and half of the standard deviation on top of it.
    both = model.Correction(one.means, one.scales, (network, zero))
    small = ((network[0][0], network[0][1]), (network[1][0] / 10, np.array([0.0])))
    both = both._replace(networks=(small, zero))
    found = (silu(x) + 2 * silu(0.5 * x + 1)) / 10
    assert np.allclose(both.factor(np.array([[2.0]])), math.exp(found / 2 + found / 4))


def test_a_correction_is_read_as_it_was_written(tmp_path):
    stored = model.Correction.read(model.CORRECTION)
    stored.write(tmp_path / "again.npz")
    again = model.Correction.read(tmp_path / "again.npz")
    rows = np.random.default_rng(0).standard_normal((5, len(stored.means)))
    np.testing.assert_array_equal(again.factor(rows), stored.factor(rows))
