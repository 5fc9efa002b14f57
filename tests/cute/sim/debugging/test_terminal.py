"""`breakpoint()` in kernels on the simulator: scripted sessions of the debugger."""

import bdb
import io
import sys

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute.sim.debugging import debugger
from tests.cute.sim.debugging import kernels


@pytest.fixture
def session(monkeypatch, capsys):
    """Call a function with these commands as input; returns what the debugger showed."""
    monkeypatch.setenv("CUTE_DSL_ARCH", "sim")
    monkeypatch.delenv("PYTHONBREAKPOINT", raising=False)

    def run(commands, function, *args):
        monkeypatch.setattr(debugger, "state", debugger.DebuggerState())
        monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(commands) + "\n"))
        function(*args)
        return capsys.readouterr().out

    return run


def line_of(text):
    with open(kernels.__file__) as source:
        return next(i for i, line in enumerate(source, 1) if text in line)


def prefix_arrays():
    return np.arange(64, dtype=np.float32), np.zeros(64, np.float32)


def squares(x):
    return np.cumsum(x) ** 2


def test_it_stops_while_the_kernel_runs(session):
    x, y = prefix_arrays()
    out = session(["p thread", "thread * 10 + 1", "x[:4]", "continue"], kernels.prefix, x, y)
    assert f"{kernels.__file__}:{line_of('breakpoint()')}, thread (3, 0, 0)" in out
    assert "-> breakpoint()" in out
    assert "(kernel) 3\n(kernel) 31\n(kernel) float32 (4,)\n[0. 1. 2. 3.]" in out
    assert np.array_equal(y, squares(x))


def test_steps_follow_one_thread(session):
    x, y = prefix_arrays()
    out = session([*["step"] * 7, "w", "next", "continue"], kernels.prefix, x, y)
    shown = [line.removeprefix("-> ") for line in out.splitlines() if line.startswith("-> ")]
    loop, body = "for i in range(thread + 1):", "total = total + x[i]"
    assert shown[0] == "breakpoint()"
    assert shown[1] == loop
    assert shown[2:6] == [body] * 4
    assert shown[6] == "s = square(total)"
    assert shown[7] == "w = v * v"
    assert "thread (3, 0, 0) of block (0, 0, 0) (step)" in out


def test_next_stays_in_the_function(session):
    x, y = prefix_arrays()
    out = session([*["next"] * 8, "s", "c"], kernels.prefix, x, y)
    shown = [line.removeprefix("-> ") for line in out.splitlines() if line.startswith("-> ")]
    assert "s = square(total)" in shown
    assert "w = v * v" not in shown
    assert "y[thread] = s" in shown


def test_conditions_choose_the_thread(session):
    x, y = prefix_arrays()
    number = line_of("total = total + x[i]")
    commands = [
        f"break {number} if thread == 37 and i > 4",
        "break",
        "c",
        "i",
        "total",
        "clear",
        "c",
    ]
    out = session(commands, kernels.prefix, x, y)
    assert f"line {number} if thread == 37 and i > 4" in out
    assert f":{number}, thread (37, 0, 0) of block (0, 0, 0) (breakpoint at line {number})" in out
    assert "(kernel) 5\n(kernel) 10\n" in out
    assert np.array_equal(y, squares(x))


def test_the_warp_side_by_side(session):
    out = session(["warp thread", "c"], kernels.prefix, *prefix_arrays())
    assert "lane  0:  - - - 3 - - - -" in out
    arrays = np.arange(64, dtype=np.float32).reshape(2, 4, 8), np.zeros((2, 32), np.int32)
    out = session(["warp held[1] + 1", "detach"], kernels.tables, *arrays)
    assert "lane  8:  17 19 21 23 25 27 29 31" in out


def test_watches(session):
    x, y = prefix_arrays()
    out = session(["watch total", "c", "c", "detach"], kernels.prefix, x, y)
    assert "(total was 0.0, is 1.0)" in out
    assert "(total was 1.0, is 3.0)" in out


def test_tensors_are_tables(session):
    x, y = np.arange(64, dtype=np.float32).reshape(2, 4, 8), np.zeros((2, 32), np.int32)
    commands = ["tile[:2]", "held", "thread 9", "held", "x.shape", "block 1", "tile[0, 0]", "vars"]
    out = session([*commands, "detach"], kernels.tables, x, y)
    assert "float16 (2, 8)\n[[ 0.  1.  2.  3.  4.  5.  6.  7.]\n [ 8.  9. 10." in out
    assert "(kernel) int32 (2,)\n[0 0]\n" in out
    assert "(kernel) int32 (2,)\n[ 9 18]\n" in out
    assert "(2, 4, 8)" in out
    assert "thread = 9" in out
    assert np.array_equal(y, np.tile(2 * np.arange(32), (2, 1)))


def test_variables_are_those_of_the_kernel(session):
    x = np.ones(32, np.float32)
    out = session(["vars", "c"], kernels.scaled, x, 3)
    assert "n = 6\n" in out
    assert "given" not in out and "number" not in out and "twice" not in out
    assert np.array_equal(x, np.full(32, 6, np.float32))


def test_the_end_of_the_input_and_quitting(session):
    x, y = prefix_arrays()
    session([], kernels.prefix, x, y)
    assert np.array_equal(y, squares(x))
    with pytest.raises(bdb.BdbQuit):
        session(["quit"], kernels.prefix, x, y)


def test_mistakes_are_answered(session):
    commands = ["p nothing", "break here", "watch 1 +", "thread x", "warp nothing", "c"]
    out = session(commands, kernels.prefix, *prefix_arrays())
    assert "*** NameError: name 'nothing' is not defined" in out
    assert "*** a line is a number, not 'here'" in out
    assert out.count("*** SyntaxError") == 2


def test_it_can_be_turned_off(session, monkeypatch):
    x, y = prefix_arrays()
    monkeypatch.setenv("PYTHONBREAKPOINT", "0")
    assert session(["p thread"], kernels.prefix, x, y) == ""
    assert np.array_equal(y, squares(x))


def test_for_a_gpu_it_stops_at_tracing(monkeypatch, capsys):
    stops = []
    monkeypatch.setattr(sys, "breakpointhook", lambda: stops.append(1))
    cute.compile(kernels.prefix, *prefix_arrays(), options="--arch sm_90a")
    assert stops == [1]
    assert "stopped while tracing it for a GPU" in capsys.readouterr().err
