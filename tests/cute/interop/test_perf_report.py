"""Quantiles of times, reports over sizes, and results of tuning that are kept on disk."""

from __future__ import annotations

import csv
import importlib.util
import json
import sys
import types

import numpy as np
import pytest

import basedsl_cute as cute
import basedsl_toy as toy
from basedsl import DSLCallError, DSLRuntimeError
from basedsl_cute import testing
from basedsl_cute.interop import tuned_results


def test_quantiles_are_of_single_calls(sim):
    found = testing.benchmark(lambda: None, iterations=20, quantiles=(0.5, 0.0, 1.0))
    assert len(found) == 3 and 0 <= found[1] <= found[0] <= found[2]
    calls = []
    sets = iter(range(9))
    testing.benchmark(
        calls.append,
        warmup_iterations=1,
        iterations=4,
        quantiles=(0.5,),
        workspace_generator=lambda: testing.JitArguments(next(sets)),
        workspace_count=2,
    )
    assert calls == [0, 0, 1, 0, 1]
    with pytest.raises(DSLCallError, match="quantiles are numbers from 0 to 1"):
        testing.benchmark(lambda: None, quantiles=(50,))


def report(**changes):
    about = {
        "x_names": ["n"],
        "x_vals": [1, 10],
        "line_arg": "which",
        "line_vals": ["a", "b"],
        "line_names": ["A", "B"],
        "plot_name": "made-up",
        "ylabel": "microseconds",
    }
    made = testing.Benchmark(**{**about, **changes})

    @testing.perf_report(made)
    def bench(n, which, factor=1):
        time = float(n * factor)
        return time if which == "a" else (time, time - 0.5, time + 0.5)

    return bench


def test_a_report_has_a_row_for_each_size(tmp_path, capsys):
    (found,) = report().run(print_data=True, save_path=tmp_path, factor=3)
    assert found.rows[1][:2] == [10, 30.0] and np.isnan(found.rows[1][2:4]).all()
    assert found.rows[1][4:] == [30.0, 29.5, 30.5]
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "made-up:" and shown[1].split() == ["n", "A", "B", "B", "least", "B", "most"]
    rows = list(csv.reader((tmp_path / "made-up.csv").read_text().splitlines()))
    assert rows[0][:2] == ["n", "A"] and rows[2][1] == "30.0"
    pictures = list(tmp_path.glob("*.png"))
    assert bool(pictures) == (importlib.util.find_spec("matplotlib") is not None)


def test_a_plot_over_sizes():
    pytest.importorskip("matplotlib")
    figure = report(x_log=True).run()[0].plot()
    (axes,) = figure.axes
    assert [line.get_label() for line in axes.lines] == ["A", "B"]
    assert list(axes.lines[1].get_ydata()) == [1.0, 10.0] and axes.get_xscale() == "log"


def test_the_plot_that_is_shown_is_that_of_the_report(monkeypatch):
    if importlib.util.find_spec("matplotlib") is None:
        with pytest.raises(DSLCallError, match="drawn by matplotlib") as caught:
            report().run(show_plots=True)
        assert caught.value.hint == "pip install matplotlib"
        return
    import matplotlib
    from matplotlib import pyplot

    matplotlib.use("Agg")
    shown = []
    monkeypatch.setattr(pyplot, "show", lambda: shown.append(pyplot.gcf().axes))
    report().run(show_plots=True)
    ((axes,),) = shown
    assert [line.get_label() for line in axes.lines] == ["A", "B"]
    pyplot.close("all")


def test_several_arguments_for_a_size():
    made = testing.Benchmark(["m", "n"], [4, (2, 3)], "which", [0], ["only"], "two")
    (found,) = testing.perf_report([made])(lambda m, n, which: m * 10 + n).run()
    assert [row[:3] for row in found.rows] == [[4, 4, 44.0], [2, 3, 23.0]]


def test_wrong_reports():
    with pytest.raises(DSLCallError, match="has 2 lines and 1 names"):
        report(line_names=["A"])
    with pytest.raises(DSLCallError, match="sets 2 arguments, and x_names has 1"):
        report(x_vals=[(1, 2)]).run()
    bench = testing.perf_report(report().benchmarks)(lambda n, which: (1, 2))
    with pytest.raises(DSLCallError, match=r"returns a time, or \(time, least, most\)"):
        bench.run()


# Tuning -----------------------------------------------------------------------------------------


@cute.kernel
def fill_kernel(x: cute.Tensor, width: cute.Constexpr):
    i = cute.arch.thread_idx()[0]
    if i < cute.size(x):
        x[i] = width


@cute.jit
def fill(x: cute.Tensor, width: cute.Constexpr = 32):
    fill_kernel(x, width).launch(grid=(1, 1, 1), block=(width, 1, 1))


@pytest.fixture
def kept(sim, monkeypatch, tmp_path):
    monkeypatch.setenv("CUTE_DSL_CACHE", "1")
    monkeypatch.setenv("CUTE_DSL_CACHE_DIR", str(tmp_path))
    return tmp_path / "tuning"


def tuned(**more):
    made = testing.autotune_jit(
        {"width": [32, 64]}, update_on_change=["x"], warmup_iterations=0, iterations=1
    )
    return made(fill)


def test_results_of_tuning_are_kept_for_other_processes(kept, monkeypatch):
    x = np.zeros(8, np.float32)
    tuned()(x)
    (file,) = kept.iterdir()
    found = json.loads(file.read_text())
    assert found["function"] == "fill" and found["best"]["width"] in (32, 64)
    file.write_text(json.dumps({**found, "best": {"width": 64}}))
    monkeypatch.setattr(testing, "_fastest", None)  # a new process need not tune
    tuned()(x)
    assert (x == 64).all()


@pytest.mark.parametrize("text", ["", "[]", '{"best": {"width": 128}}', '{"best": {}}'])
def test_kept_results_that_do_not_fit_are_found_anew(kept, text):
    x = np.zeros(8, np.float32)
    tuned()(x)
    (file,) = kept.iterdir()
    file.write_text(text)
    tuned()(x)
    assert json.loads(file.read_text())["best"]["width"] in (32, 64)


def test_keys_tell_apart_what_differs(kept, monkeypatch):
    key = tuned_results.key_of(fill, {"width": [32]}, 1)
    assert key is not None and key == tuned_results.key_of(fill, {"width": [32]}, 1)
    others = [
        tuned_results.key_of(fill, {"width": [64]}, 1),
        tuned_results.key_of(fill, {"width": [32]}, 2),
        tuned_results.key_of(tuned, {"width": [32]}, 1),
    ]
    assert len({key, *others}) == 4 and None not in others
    assert tuned_results.key_of(fill, {"width": [object()]}, 1) is None
    monkeypatch.setenv("CUTE_DSL_CACHE", "0")
    assert tuned_results.key_of(fill, {"width": [32]}, 1) is None


# NVTX -------------------------------------------------------------------------------------------


@toy.jit
def double(n):
    return 2 * n


def test_compilations_and_runs_are_nvtx_ranges(monkeypatch):
    ranges = []

    class Annotate:
        def __init__(self, name, domain):
            self.name = name

        def __enter__(self):
            ranges.append(self.name)

        def __exit__(self, *error):
            ranges.append(f"end {self.name}")

    fake = types.ModuleType("nvtx")
    fake.annotate = Annotate
    fake.__spec__ = importlib.util.spec_from_loader("nvtx", None)
    monkeypatch.setitem(sys.modules, "nvtx", fake)
    compiled = toy.compile(double, 21, options="--nvtx")
    assert [compiled(21), compiled(4)] == [42, 8]
    run = ["run toy_double", "end run toy_double"]
    assert ranges == ["compile toy_double", "end compile toy_double", *run, *run]


@pytest.mark.skipif(importlib.util.find_spec("nvtx") is not None, reason="nvtx is installed")
def test_without_nvtx_the_option_is_an_error():
    with pytest.raises(DSLRuntimeError, match="the option nvtx needs NVTX for Python"):
        toy.compile(double, 21, options="--nvtx")
