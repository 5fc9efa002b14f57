"""Records of programs: compilations with the Python lines of each stage, errors, warnings."""

from __future__ import annotations

import json
import os
import sys

import pytest

from basedsl.cli import main
from basedsl.explorer.record import record
from basedsl.plugin import plugin_manager

PROGRAM = """import basedsl_toy as toy

@toy.jit
def clamp(n, low):
    if n < low:
        n = low
    return 3 * n

if __name__ == "__main__":
    print(clamp(5, 7))
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / f"prog_{os.urandom(4).hex()}.py"
    path.write_text(PROGRAM)
    return path


def lines_with(view, word):
    texts = view["text"].splitlines()
    assert len(texts) == len(view["lines"])
    return [view["lines"][i] for i, text in enumerate(texts) if word in text]


def test_a_program_is_run_and_its_compilations_are_kept(file):
    made = record(plugin_manager(), file, "", [], "")
    assert made["error"] == "" and made["output"] == "21\n" and made["source"] == PROGRAM
    (compiled,) = made["compilations"]
    assert (compiled["title"], compiled["dsl"]) == ("clamp", "toy")
    assert compiled["resources"][0]["name"] == "clamp" and compiled["seconds"]["trace"] > 0
    views = {view["name"]: view for view in compiled["views"]}
    assert {"python", "source", "input", "llvm", "llvmir", "assembly"} <= set(views)
    assert "object" not in views
    assert lines_with(views["python"], "if n < low") == [[5]]
    assert lines_with(views["source"], "__dsl__.if_") == [[5]]
    assert lines_with(views["input"], "arith.cmpi") == [[5]]
    assert [7] in lines_with(views["input"], "arith.muli")
    assert "loc(" not in views["llvm"]["text"] and lines_with(views["llvm"], "llvm.mul") == [[7]]


def test_a_function_is_compiled_and_nothing_runs(file):
    made = record(plugin_manager(), file, "clamp", ["1.5", "low=2.5"], "--opt-level 0")
    assert made["error"] == made["output"] == ""
    assert made["compilations"][0]["arguments"] == ["Float64", "Float64"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def f(:\n", "SyntaxError"),
        ("1 / 0\n", "ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)\n", "the program ends with status 3"),
        ("import basedsl_toy as toy\n@toy.jit\ndef f(n):\n    return n.nope\nf(1)\n", "nope"),
    ],
)
def test_errors_are_part_of_the_record(file, text, message):
    file.write_text(text)
    made = record(plugin_manager(), file, "", [], "")
    assert message in made["error"] and made["compilations"] == [] and made["source"] == text
    assert "basedsl/explorer" not in made["error"]


def test_what_was_compiled_before_an_error_is_kept(file):
    file.write_text(PROGRAM + "    1 / 0\n")
    made = record(plugin_manager(), file, "", [], "")
    assert "ZeroDivisionError" in made["error"] and len(made["compilations"]) == 1


def test_warnings_have_their_lines(file):
    file.write_text("import warnings\nwarnings.warn('careful')\n")
    (found,) = record(plugin_manager(), file, "", [], "")["warnings"]
    assert found == {"text": "UserWarning: careful", "line": 2}


def test_export_writes_one_file(file, tmp_path, capsys):
    target = tmp_path / "out.html"
    assert main(["explore", f"{file}::clamp", "--arg=1", "--arg=2", "--export", str(target)]) == 0
    text = target.read_text()
    assert '"follows": false' in text and "arith.cmpi" in text
    for outside in ("http://", "https://", "<link", "src="):
        assert outside not in text
    data = text.split("const DATA = ", 1)[1].split(";\nconst $")[0]
    assert json.loads(data.replace("<\\/", "</"))["versions"][0]["file"] == file.name


def test_export_of_an_error_says_so(file, tmp_path, capsys):
    file.write_text("1 / 0\n")
    assert main(["explore", str(file), "--export", str(tmp_path / "out.html")]) == 1
    assert "ZeroDivisionError" in capsys.readouterr().err


@pytest.mark.parametrize("place", ["missing.py", "{python}"])
def test_files_that_cannot_be_explored(place, capsys):
    assert main(["explore", place.format(python=os.path.realpath(sys.executable))]) == 1
    assert capsys.readouterr().err.startswith("error: ")
