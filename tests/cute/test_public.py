"""The public names, and what a type checker knows of them."""

from __future__ import annotations

import importlib.util
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import basedsl
import basedsl_cute
import basedsl_toy
from basedsl_cute import public

PROGRAMS = Path(__file__).parent / "typed_programs"


def test_all_names_every_public_name():
    names = {name for name in vars(public) if not name.startswith("_")}
    assert len(names) > 250
    assert sorted(names) == basedsl_cute.__all__


def test_each_public_name_is_found_without_the_others():
    for name in basedsl_cute.__all__:
        vars(basedsl_cute).pop(name, None)
        assert getattr(basedsl_cute, name) is getattr(public, name), name


NAMES_LOADED = """
import sys
import basedsl_cute as cute

cute.jit, cute.kernel, cute.Tensor, cute.size
rooms = {name.split(".")[1] for name in sys.modules if name.startswith("basedsl_cute.")}
print(*sorted(rooms & {"aot", "executors", "interop", "nvgpu", "ops", "pipeline", "sim", "utils"}))
"""


def test_a_name_loads_what_it_needs():
    command = [sys.executable, "-c", NAMES_LOADED]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == [], done.stdout


@pytest.mark.parametrize("name", ["arch", "nvgpu", "pipeline", "utils"])
def test_each_listed_name_is_there(name):
    """Names that are loaded by their first use are listed apart from where they are."""
    module = importlib.import_module(f"basedsl_cute.{name}")
    assert [one for one in module.__all__ if getattr(module, one, None) is None] == []


@pytest.mark.skipif(importlib.util.find_spec("mypy") is None, reason="mypy is not installed")
@pytest.mark.parametrize("options", [[], ["--strict"]], ids=["default", "strict"])
def test_a_type_checker_reports_mistakes_and_nothing_else(tmp_path, options):
    config = tmp_path / "mypy.ini"
    config.write_text("[mypy]\n", encoding="utf-8")
    roots = [Path(package.__file__).parent for package in (basedsl, basedsl_toy, basedsl_cute)]
    assert all((root / "py.typed").exists() for root in roots)
    done = subprocess.run(
        [
            *(sys.executable, "-m", "mypy", "--config-file", str(config), "--no-color-output"),
            *("--cache-dir", str(tmp_path / "cache"), "--follow-imports", "silent", *options),
            *map(str, sorted(PROGRAMS.glob("*.py"))),
        ],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": os.pathsep.join(str(root.parent) for root in roots)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    reported: dict[tuple[str, int], str] = {}
    for line in done.stdout.splitlines():
        if ": error:" in line:
            file, number, message = line.split(":", 2)
            place = Path(file).name, int(number)
            reported[place] = reported.get(place, "") + message
    expected = {
        (program.name, number): line.split("# reported: ")[1]
        for program in PROGRAMS.glob("*.py")
        for number, line in enumerate(program.read_text(encoding="utf-8").splitlines(), 1)
        if "# reported: " in line
    }
    assert len(expected) > 20
    assert reported.keys() == expected.keys(), done.stdout + done.stderr
    for place, name in expected.items():
        assert f'"{name}"' in reported[place]


def test_the_program_without_mistakes_runs():
    program = runpy.run_path(str(PROGRAMS / "clean.py"))
    total, number, source = program["main"]()
    assert (total, number) == (3.0, 14)
    assert "def dot" in source or ".visible .entry" in source
