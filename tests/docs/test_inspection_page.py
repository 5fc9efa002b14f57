"""docs/inspection.md: its commands print what it says, and its tables name what there is, section
by section of what programs for CuTe know.
"""

from __future__ import annotations

import doctest
import importlib
import re
import shlex
from pathlib import Path

import pytest

import basedsl
import basedsl_cute as cute
from basedsl import Options
from basedsl.cli import main
from basedsl_cute.dsl.compiled import CuteCompiled
from basedsl_cute.dsl.options import CuteOptions
from basedsl_cute.lowering.ptx import ptxas

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "inspection.md").read_text()
COMMANDS = [
    (found[1], found[2])
    for block in re.findall(r"^```console\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    for found in re.finditer(r"^\$ basedsl (.*)\n((?:(?!\$ ).*\n)*)", block, re.MULTILINE)
]


@pytest.mark.parametrize(("command", "printed"), COMMANDS, ids=[c for c, _ in COMMANDS])
def test_commands_print_what_the_page_says(command, printed, monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("CUTE_DSL_ARCH", "sim")
    assert main(shlex.split(command)) in (0, 1)
    out = capsys.readouterr().out
    checker = doctest.OutputChecker()
    assert checker.check_output(printed, out, doctest.ELLIPSIS), out


def rows(head):
    """The first and second column of the table below a head, names in backticks apart."""
    table = PAGE[PAGE.index(head) :].split("\n\n")[0].splitlines()[2:]
    return [
        (re.findall(r"`([\w.]+)`", row.split("|")[1]), row.split("|")[2].strip()) for row in table
    ]


VARIABLES = [name for names, _ in rows("| variable | what it does |") for name in names]
NAMES = [name for names, _ in rows("| name | here |") for name in names]


def test_the_tables_are_read():
    assert len(VARIABLES) > 18 and len(NAMES) > 18


@pytest.mark.parametrize("name", VARIABLES)
def test_variables(name):
    known = CuteOptions.environment_variables()
    assert f"CUTE_DSL_{name}" in known
    cutes_own = {"KEEP_PTX", "KEEP_CUBIN", "KEEP_SASS", "ARCH", "LINEINFO", "ENABLE_ASSERTIONS"}
    if name not in cutes_own | {"ENABLE_TVM_FFI"}:  # of every DSL
        assert f"BASEDSL_{name}" in Options.environment_variables()


@pytest.mark.parametrize("name", NAMES)
def test_names(name):
    modules = ["compiler", "cache_helpers", "typing", "utils.logger", "dsl"]
    places = [importlib.import_module(f"basedsl_cute.base_dsl.{one}") for one in modules]
    dsl = importlib.import_module("basedsl_cute.base_dsl.dsl").CuTeDSL._get_dsl()
    assert any(hasattr(place, name) for place in (*places, cute, basedsl, CuteCompiled, dsl))


def test_the_toolkit_variable():
    assert ptxas.TOOLKIT_VARIABLES[0] == "CUDA_TOOLKIT_PATH"


def test_pictures_are_there():
    for picture in re.findall(r"\]\((pictures/[^)]+)\)", PAGE):
        assert (ROOT / "docs" / picture).read_bytes().startswith(b"\x89PNG")
