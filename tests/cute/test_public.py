"""The public names, and what a type checker knows of them."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import basedsl
import basedsl_cute
from basedsl_cute import public

PROGRAM = """\
import basedsl_cute as cute

layout = cute.make_layuot(3)
thread = cute.arch.thread_id()
right = cute.make_layout(3), cute.arch.thread_idx, cute.Float32, cute.nvgpu.warp.MmaF16BF16Op
wrong = cute.nvgpu.tcgen06
wrong = cute.nvgpu.warp.Mma
wrong = cute.pipeline.Pipe
wrong = cute.utils.Util
wrong = cute.cutlass_dsl.Dsl
"""


def test_all_names_every_public_name():
    names = {name for name in vars(public) if not name.startswith("_")}
    assert set(public.__all__) == names
    assert len(public.__all__) == len(names)


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
@pytest.mark.parametrize("options", [[], ["--strict"]], ids=["default", "strict"])
def test_a_type_checker_reports_names_that_do_not_exist(tmp_path, options):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM, encoding="utf-8")
    config = tmp_path / "mypy.ini"
    config.write_text("[mypy]\n", encoding="utf-8")
    roots = [Path(package.__file__).parent for package in (basedsl, basedsl_cute)]
    assert all((root / "py.typed").exists() for root in roots)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--config-file", str(config), "--no-color-output"),
            *("--cache-dir", str(tmp_path / "cache"), "--follow-imports", "silent", *options),
            str(program),
        ],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": os.pathsep.join(str(root.parent) for root in roots)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    errors = [line for line in done.stdout.splitlines() if ": error:" in line]
    found = sorted((int(e.split(":")[1]), e.split('attribute "')[1].split('"')[0]) for e in errors)
    assert found == [
        (3, "make_layuot"),
        (4, "thread_id"),
        (6, "tcgen06"),
        (7, "Mma"),
        (8, "Pipe"),
        (9, "Util"),
        (10, "Dsl"),
    ], done.stdout + done.stderr
