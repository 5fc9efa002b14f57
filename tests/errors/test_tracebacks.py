"""A user's terminal shows no frame of the library, whichever call ended in an error."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from basedsl.errors import SHOW_INTERNAL_FRAMES

TOY = """
import basedsl_toy as toy

@toy.jit
def inner(a, b):
    for i in range(a):
        if b > i:
            {inside}
    return b

@toy.jit
def entry(a, b):
    return inner(a, b)
"""

CUTE = """
import numpy as np
import basedsl_cute as cute

@cute.jit
def inner(x, t):
    for i in range(2):
        if t > 0:
            {inside}

@cute.kernel
def kernel(x: cute.Tensor):
    inner(x, cute.arch.thread_idx()[0])

@cute.jit
def host(x: cute.Tensor{more}):
    kernel(x).launch(grid=1, block={block})

x = np.zeros(4, np.float32)
"""


def toy(call, inside="b += 1"):
    return TOY.format(inside=inside) + call


def cute(call, inside="x[0] = 1.0", block="32", more=""):
    return CUTE.format(inside=inside, block=block, more=more) + call


# Name -> program, and what the last line of its traceback says.
PROGRAMS = {
    "toy: call": (toy("entry(1)"), "missing a required argument"),
    "toy: argument": (toy("entry(object(), 1)"), "toy cannot pass"),
    "toy: traced": (toy("entry(1, 2)", "raise_ = [][1]"), "list index out of range"),
    "toy: DSL error": (toy("entry(1, 2)", "b = 'text' + b"), "text"),
    "toy: Python error": (toy("entry(1, 2)", "b.missing"), "has no attribute 'missing'"),
    "toy: recursion": (toy("entry(1, 2)", "entry(a, b)"), "calls itself without end"),
    "toy: assertion": (toy("entry(3, 2)", "assert b < i, 'too far'"), "too far"),
    "toy: later call": (
        toy("[entry(a, 2) for a in (0, 0, 0, 3)]", "assert b < i, 'too far'"),
        "too far",
    ),
    "toy: compile": (toy("toy.compile(entry, 1)"), "missing a required argument"),
    "toy: compile a number": (toy("toy.compile(3)"), "takes a @jit function"),
    "toy: compiled": (toy("toy.compile(entry, 1, 2)(1, 2.0)"), "was compiled as Int64"),
    "toy: compiled, native": (
        toy("c = toy.compile(entry, 1, 2)\nc(1, 2)\nc(1, 2)\nc(1, 2.0)"),
        "was compiled as Int64",
    ),
    "toy: decorator": (toy("toy.jit(3)"), "decorates Python functions"),
    "cute: call": (cute("host(3, 4)"), "too many positional arguments"),
    "cute: kernel from Python": (cute("kernel(x)"), "Python calls the @kernel"),
    "cute: launch": (cute("host(x)", block="0.5"), "block x must be an integer, got float"),
    "cute: launch, dynamic": (
        cute("host(x, 5000)", block="n", more=", n: cute.Int32"),
        "block=(5000, 1, 1)",
    ),
    "cute: traced": (cute("host(x)", "x.nothing"), "a tensor has no 'nothing'"),
    "cute: DSL error": (cute("host(x)", "x[0] = cute.Int32(1)"), "Int32"),
    "cute: simulator": (cute("host(x)", "x[t] = 1.0"), "out-of-bounds"),
    "cute: assertion": (cute("host(x)", "assert t < 7"), "assertion failed"),
    "cute: compile": (cute("cute.compile(host)"), "missing a required argument"),
    "cute: compile option": (
        cute('cute.compile(host, x, options="--arch sm_1")'),
        "'sm_1' is no target",
    ),
    "cute: instruction": (
        cute('cute.compile(host, x, options="--arch sm_75")', "cute.arch.cluster_arrive()"),
        "sm_75 has no barrier.cluster.arrive",
    ),
    "cute: ptxas": (
        cute(
            'cute.compile(host, x, options="--arch sm_90a")',
            'cute.arch.inline_ptx("no.such.instruction;")',
        ),
        "ptxas",
    ),
    "cute: compiled": (cute("cute.compile(host, x)(x.astype(np.int32))"), "'x' was compiled as"),
}


def run(program, folder, **variables):
    path = folder / "program.py"
    path.write_text(program)
    environment = {**os.environ, "CUTE_DSL_ARCH": "sim", "TMPDIR": str(folder), **variables}
    done = subprocess.run(
        [sys.executable, str(path)], env=environment, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 1, done.stdout + done.stderr
    return done.stderr, path


@pytest.mark.parametrize("name", PROGRAMS)
def test_only_users_frames(name, tmp_path):
    program, words = PROGRAMS[name]
    shown, path = run(program, tmp_path)
    files = re.findall(r'^  File "([^"]*)", line', shown, re.MULTILINE)
    assert set(files) == {str(path)}, shown
    assert "Traceback" in shown and "During handling" not in shown and "direct cause" not in shown
    assert words in shown, shown
    # The bodies of loops and branches are functions of the library's making.
    functions = set(re.findall(r'^  File ".*", line \d+, in (.*)$', shown, re.MULTILINE))
    assert functions <= {"<module>", "<listcomp>", "inner", "entry", "kernel", "host"}, shown


@pytest.mark.parametrize("name", ["toy: DSL error", "cute: simulator", "cute: ptxas"])
def test_the_variable_shows_all(name, tmp_path):
    program, words = PROGRAMS[name]
    shown, _ = run(program, tmp_path, **{SHOW_INTERNAL_FRAMES: "1"})
    files = {Path(name).name for name in re.findall(r'^  File "([^"]*)"', shown, re.MULTILINE)}
    assert {"function.py", "driver.py"} <= files or {"compile_options.py", "driver.py"} <= files, (
        shown
    )
    assert words in shown
