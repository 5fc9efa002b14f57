"""The schedule of a persistent Blackwell GEMM that bench/blackwell_model.py prints."""

import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"


@pytest.mark.slow
def test_the_epilogue_hides_behind_the_next_tile(monkeypatch, capsys):
    monkeypatch.setattr(sys, "path", [str(BENCH), *sys.path])
    import blackwell_model
    import blackwell_timeline as timeline

    model = blackwell_model.model
    cfg = replace(model.CANDIDATES[2], dynamic=False)
    function, (a, b, c, _, _) = blackwell_model.dense(cfg, 3 * cfg.tile[0], cfg.tile[1], 512)
    tiles = timeline.schedule(function, (a, b, c, 1, cfg), 3, cfg.tile[0] * cfg.tile[1] * 2)
    for tile in tiles:
        assert tile.loads[0] < tile.products[0] < tile.loads[1] < tile.products[1]
        assert tile.products[1] <= tile.committed <= tile.epilogue[0] < tile.stores[1]
    for one, following in pairwise(tiles):
        assert following.loads[0] < one.products[1]  # loads run ahead of the products
        assert timeline.shared(one.epilogue, following.products) > 0
    paper = model.tile_time(cfg, 512, 16)
    stores = cfg.tile[0] * cfg.tile[1] * 2 / model.L2_BYTES_PER_CYCLE
    assert paper.cycles <= timeline.step(tiles) <= 1.1 * (paper.cycles + stores)
    timeline.print_schedule("a product", tiles, paper, stores)
    assert capsys.readouterr().out.count("\n| ") == 4


@pytest.mark.slow
def test_products_take_the_time_of_their_kind(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(BENCH), *sys.path])
    import blackwell_model

    from basedsl_cute.sim import predict

    times = []
    for form in ("fp16", "nvfp4"):
        cfg = replace(blackwell_model.model.SCALED[2], dynamic=False)
        if form == "fp16":
            function, (*given, _, _) = blackwell_model.dense(cfg, 128, 128, 512)
            given += [1, cfg]
        else:
            function, (*given, _, forms, _) = blackwell_model.scaled(form, cfg, 128, 128, 512)
            given += [1, forms, cfg]
        (found,) = predict(function, *given, arch="sm_100a")
        times.append(found.bounds["tensor"])
    assert times[0] / times[1] == pytest.approx(4)
