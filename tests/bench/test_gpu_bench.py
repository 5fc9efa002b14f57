"""`make gpu-bench`: one program's failure hides nothing of the others, and verdicts follow rows."""

import argparse
import importlib.util
import json
import sys
import time
from pathlib import Path

import pytest

BENCH = Path(__file__).resolve().parents[2] / "bench"


def load(path):
    spec = importlib.util.spec_from_file_location(f"bench_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their modules up
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    return load(BENCH / "gpu" / "run.py")


@pytest.fixture
def goals(run):
    return run.goals


def verdicts(goals, program, rows):
    return {g.text: g.verdict(rows) for g in goals.goals() if g.program == program}


PROGRAMS = {
    "good": "import json, sys\n"
    "json.dump([{'case': 'hopper_gemm', 'cold': 300.0, 'warm': 25.0}], open(sys.argv[2], 'w'))",
    "wrong": "import json, sys\n"
    "json.dump({'records': [{'kernel': 'softmax'}]}, open(sys.argv[2], 'w'))\n"
    "sys.exit(3)",
    "crash": "import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)",
    "silent": "",
}


def test_a_failing_program_hides_no_other(run, tmp_path, monkeypatch, capfd):
    for name, text in PROGRAMS.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setattr(run, "BENCH", tmp_path)
    programs = tuple(run.Program(f"{name}.py", 60) for name in ("wrong", "crash", "silent", "good"))
    monkeypatch.setattr(
        run.goals,
        "goals",
        lambda: [
            run.goals.Goal(
                "warm", "good.py", run.goals.milliseconds("hopper_gemm", "warm"), most=20
            ),
            run.goals.Goal(
                "cold", "good.py", run.goals.milliseconds("hopper_gemm", "cold"), most=665
            ),
            run.goals.Goal("copy", "crash.py", run.goals.to_copy("softmax"), least=1),
        ],
    )
    out = tmp_path / "all.json"
    options = argparse.Namespace(quick=False, only=(), out=out)
    assert run.run(programs, options, (9, 0)) == 1
    printed = capfd.readouterr().out
    assert [line.split() for line in printed.splitlines() if "<=" in line or ">=" in line] == [
        ["warm", "<=", "20", "25", "above"],
        ["cold", "<=", "665", "300", "kept"],
        ["copy", ">=", "1", "-", "not", "measured"],
    ]
    report = json.loads(out.read_text())
    assert report["rows"]["wrong.py"] == [{"kernel": "softmax"}]
    assert report["rows"]["good.py"][0]["cold"] == 300
    assert report["failures"] == {
        "wrong.py": "exit status 3",
        "crash.py": "ended by SIGSEGV",
        "silent.py": "it wrote no rows",
    }


def test_a_missed_goal_is_no_failure(run, tmp_path, monkeypatch):
    (tmp_path / "compile.py").write_text(PROGRAMS["good"])
    monkeypatch.setattr(run, "BENCH", tmp_path)
    options = argparse.Namespace(quick=True, only=("compile",), out=None)
    assert (
        run.run((run.Program("compile.py", 60), run.Program("other.py", 60)), options, (9, 0)) == 0
    )


CHOSEN = {
    (9, 0): {"gpu/gemm.py", "gpu/grouped_gemm.py"},
    (10, 0): {"gpu/blackwell.py"},
    (10, 3): {"gpu/blackwell.py"},
    (12, 0): {"gpu/blackwell.py"},
}
OF_GENERATIONS = set().union(*CHOSEN.values())


@pytest.mark.parametrize("capability", CHOSEN)
def test_programs_of_a_generation(run, tmp_path, monkeypatch, capfd, capability):
    """The choice of programs by a GPU of each generation; the programs do nothing here."""
    started = []

    def measured(program, quick):
        started.append((program.label or program.name, program.arguments))
        return [{}], ""

    monkeypatch.setattr(run, "measured", measured)
    monkeypatch.setattr(run.goals, "goals", list)
    out = tmp_path / "all.json"
    options = argparse.Namespace(quick=False, only=(), out=out)
    assert run.run(run.PROGRAMS, options, capability) == 0
    names = [name for name, _ in started]
    assert len(names) == len({*names})  # one of each
    assert {*names} & OF_GENERATIONS == CHOSEN[capability]
    assert {*names} | OF_GENERATIONS == {program.label or program.name for program in run.PROGRAMS}
    wholly = capability[0] == 9
    assert (("gpu/kernels.py", ()) in started, ("gpu/programs.py", ()) in started) == (wholly,) * 2
    printed = capfd.readouterr().out
    for name in OF_GENERATIONS - CHOSEN[capability]:
        assert f"bench/{name}: skipped, it is for compute capability" in printed
    assert "kernels.py: skipped" not in printed
    told = json.loads(out.read_text())["skipped"]
    assert OF_GENERATIONS - CHOSEN[capability] <= {*told}


def blackwell():
    sys.path.insert(0, str(BENCH / "gpu"))
    return load(BENCH / "gpu" / "blackwell.py")


def test_products_of_a_generation(run):
    cases = blackwell().cases
    names = {major: [name for name, _ in cases(None, major)] for major in (10, 12, None)}
    assert (
        "scaled nvfp4 8192x8192x8192" in names[10] and "dense float16 4096x4096x4096" in names[10]
    )
    assert not any("warps" in name for name in names[10])
    assert "scaled mxfp8 4096x4096x4096, warps in turns" in names[12]
    assert not any(name.startswith("grouped") for name in names[12])
    assert all(len(names[major]) == len({*names[major]}) for major in names)
    kinds = {name.split()[0] for name in names[None]}
    assert kinds == {"dense", "scaled", "grouped"}


def test_what_hangs_is_ended_with_its_children(run, tmp_path):
    alive = tmp_path / "alive"
    child = f"import time, pathlib\ntime.sleep(3)\npathlib.Path({str(alive)!r}).touch()"
    parent = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {child!r}])"
    assert run.outcome([sys.executable, "-c", parent], 1) == "not done after 1 s"
    time.sleep(3)
    assert not alive.exists()


def test_memory_bound_rows_of_an_h200_have_their_verdicts(goals):
    report = json.loads((BENCH / "results" / "2026-11-21-h200-gpu-bench.json").read_text())
    rows = report["rows"]["gpu/memory_bound.py"]
    found = verdicts(goals, "gpu/memory_bound.py", rows)
    assert {text: (v["missing"], v["kept"]) for text, v in found.items()} == {
        "rms_norm float16, GB/s": (0, True),
        "elementwise, of copy": (0, True),
        "softmax, of copy": (0, True),
        "layer_norm, of copy": (0, True),
        "transpose, of copy": (0, True),
    }
    assert found["layer_norm, of copy"]["on"] == "layer_norm float16"
    partly = [r for r in rows if r["dtype"] == "float16"]
    left = verdicts(goals, "gpu/memory_bound.py", partly)["softmax, of copy"]
    assert (left["missing"], left["kept"]) == (1, None)
    assert "1 not measured" in goals.line(left)


def test_the_worst_of_several_counts(goals):
    def row(dtype, shape, ours, cublas, triton):
        return {
            "dtype": dtype, "shape": list(shape), "ours": ours, "cublas": cublas, "triton": triton
        }  # fmt: skip

    rows = [
        row(dtype, shape, 106.0 if shape != (2048, 2048, 2048) else 107.0, 100.0, 99.0)
        for dtype in ("float16", "bfloat16", "float8_e4m3fn")
        for shape in goals.GEMM
    ]
    rows.append({"dtype": "float16", "shape": [128, 256, 64], "error": 0.5})  # checked only
    found = verdicts(goals, "gpu/gemm.py", rows)
    below = [text for text, v in found.items() if v["kept"] is False]
    assert below == ["float16 2048x2048x2048, of cuBLAS", "bfloat16 2048x2048x2048, of cuBLAS"]
    assert all(v["kept"] for text, v in found.items() if text not in below)
    rows[3] |= {"triton": 107.0, "ours_to_triton": 106.5}
    slower = verdicts(goals, "gpu/gemm.py", rows)["all of these, of Triton"]
    assert (slower["kept"], slower["on"]) == (False, "float16 8192x8192x1024")


@pytest.mark.slow
def test_readers_of_decoding_come_to_the_last_tile_of_each_block():
    load(BENCH / "gpu" / "decoding_bound.py").simulate()
