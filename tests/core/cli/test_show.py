"""`basedsl show`: stages of a function without running it, differences, JSON, watching, errors."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

from basedsl.cli import main

PROGRAM = """
import basedsl_toy as toy

@toy.jit
def double(n):
    return 2 * n

class Scaler:
    def __init__(self, by):
        self.by = by

    @toy.jit
    def __call__(self, x: toy.Buffer, n: toy.Constexpr):
        return x[0] * self.by * n

SCALER = Scaler(3)
"""


@pytest.fixture
def file(tmp_path):
    path = tmp_path / f"prog_{os.urandom(4).hex()}.py"
    path.write_text(PROGRAM)
    return path


def test_functions_are_listed(file, capsys):
    assert main(["show", str(file)]) == 0
    assert f"{file}::double(n)" in capsys.readouterr().out
    assert main(["show", str(file), "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [one["name"] for one in listed] == ["double", "Scaler.__call__"]
    assert listed[0]["parameters"] == ["n"]


def test_a_table_of_stages(file, capsys):
    assert main(["show", f"{file}::double", "--arg", "21"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[0].split()[0] == "input" and "llvmir" in out


def test_one_stage(file, capsys):
    assert main(["show", f"{file}::double", "--arg", "21", "--stage", "input"]) == 0
    assert "arith.muli" in capsys.readouterr().out
    assert main(["show", f"{file}::double", "--arg", "2.5", "--stage", "input"]) == 0
    assert "arith.mulf" in capsys.readouterr().out
    assert main(["show", f"{file}::double", "--arg", "21", "--stage", "source"]) == 0
    assert "return 2 * n" in capsys.readouterr().out


def test_arrays_names_and_objects(file, capsys):
    command = ["show", f"{file}::SCALER", "--arg", "float64[8]", "--arg", "n=4"]
    assert main([*command, "--stage", "input"]) == 0
    assert "f64" in capsys.readouterr().out


def test_every_pass_is_a_stage(file, capsys):
    assert main(["show", f"{file}::double", "--arg", "1", "--passes"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    assert "llvm.5.convert-to-llvm" in names and names.index("llvm") > names.index(
        "llvm.5.convert-to-llvm"
    )


def test_differences_between_passes(file, capsys):
    command = ["show", f"{file}::double", "--arg", "1", "--passes"]
    assert main([*command, "--diff", "previous", "--stage", "llvm.5.convert-to-llvm"]) == 1
    out = capsys.readouterr().out
    assert "-    %0 = arith.muli" in out.replace(
        "%1", "%0"
    ) and "+    %0 = llvm.mul" in out.replace("%1", "%0")
    assert main([*command, "--diff", "previous", "--stage", "bfloat16"]) == 0
    assert capsys.readouterr().out == ""


def test_differences_between_options_and_files(file, tmp_path, capsys):
    command = ["show", f"{file}::double", "--arg", "1", "--stage", "input"]
    assert main([*command, "--diff=--opt-level 0"]) == 0
    capsys.readouterr()
    other = tmp_path / f"other_{os.urandom(4).hex()}.py"
    other.write_text(PROGRAM.replace("2 * n", "2 + n"))
    assert main([*command, "--diff", str(other)]) == 1
    out = capsys.readouterr().out
    assert f"--- {file}::double" in out and f"+++ {other}::double" in out
    assert "arith.muli" in out and "arith.addi" in out
    assert main([*command, "--diff", "llvmir", "--json"]) == 1
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["old"], found["new"]) == ("input", "llvmir")


def test_json(file, capsys):
    assert main(["show", f"{file}::double", "--arg", "1", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["function"] == "double" and shown["arguments"] == ["Int64"]
    assert {"python", "source", "input", "llvmir"} <= {one["name"] for one in shown["stages"]}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["{file}::duble", "--arg", "1"], "has no function 'duble'"),
        (["{file}::double", "--arg", "1", "--stage", "lvm"], "has no stage 'lvm' here"),
        (["{file}::double", "--arg", "nope"], "the argument 'nope' cannot be read: NameError"),
        (["{file}::double", "--arg", "1", "--options=--nope"], "there is no option --nope"),
        (["{file}::double", "--arg", "float32[99999999999999]"], "]' cannot be made: Unable to"),
        (["{file}::SCALER.by"], "an int is not a function of a DSL"),
        (["{file}::double", "--arg", "1", "--diff", "llvm"], "--diff compares one stage"),
        (["missing.py"], "missing.py cannot be read: No such file"),
        (["{folder}"], "cannot be read: Is a directory"),
        (["{python}"], "is a binary file"),
        (["{syntax}"], "is not Python"),
        (["{raises}"], "raises ZeroDivisionError: division by zero"),
    ],
)
def test_errors_are_told_without_a_traceback(file, tmp_path, capsys, arguments, message):
    (tmp_path / "syntax.py").write_text("def f(:\n")
    (tmp_path / "raises.py").write_text("def f():\n    return 1 / 0\n\nf()\n")
    names = {
        "file": file,
        "folder": tmp_path,
        "python": os.path.realpath(sys.executable),
        "syntax": tmp_path / "syntax.py",
        "raises": tmp_path / "raises.py",
    }
    assert main(["show", *(one.format(**names) for one in arguments)]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith("error: ") and message in captured.err
    assert "Traceback" not in captured.err and captured.out == ""


def test_the_line_that_raises_is_shown(tmp_path, capsys):
    (tmp_path / "raises.py").write_text("def f():\n    return 1 / 0\n\nf()\n")
    assert main(["show", str(tmp_path / "raises.py")]) == 1
    assert "raises.py:2" in capsys.readouterr().err


def command(*arguments, **environment):
    return subprocess.Popen(
        [sys.executable, "-m", "basedsl", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )


def test_a_closed_pipe_is_no_error(file):
    process = command("show", f"{file}::double", "--arg", "1", "--stage", "all")
    process.stdout.close()
    with process.stderr:
        assert process.stderr.read() == ""
    assert process.wait(60) == 141


def test_a_closed_output_is_no_error(file):
    program = f'exec "$0" -m basedsl show {file}::double --arg 1 >&-'
    done = subprocess.run(["sh", "-c", program, sys.executable], capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_no_line_of_the_script_is_blamed(tmp_path):
    script = tmp_path / "basedsl"
    script.write_text("import sys\nfrom basedsl.cli import main\n\nsys.exit(main())\n")
    arguments = [sys.executable, script, "show", "missing.py"]
    done = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert done.stderr == "error: missing.py cannot be read: No such file or directory\n"


def test_colours_are_for_terminals_alone(file):
    process = command("show", f"{file}::double", "--arg", "1", "--diff", "previous")
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 1 and "\x1b[" not in out and "@@" in out


def test_watching_shows_again_what_was_saved(file):
    process = command("show", f"{file}::double", "--arg", "1", "--stage", "input", "--watch")
    try:
        assert "arith.muli" in read_until(process, "return")
        file.write_text(PROGRAM.replace("2 * n", "2 +"))
        assert "is not Python" in read_until(process, "is not Python", process.stderr)
        time.sleep(0.01)  # another time of change
        file.write_text(PROGRAM.replace("2 * n", "2 - n"))
        assert "arith.subi" in read_until(process, "return")
    finally:
        process.kill()
        process.communicate()


def read_until(process, word, stream=None):
    lines = []
    for line in stream or process.stdout:
        lines.append(line)
        if word in line:
            break
    return "".join(lines)
