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
    assert run.run(programs, options) == 1
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
    assert run.run((run.Program("compile.py", 60), run.Program("other.py", 60)), options) == 0


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
