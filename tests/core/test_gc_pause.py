"""Compiling holds the garbage collector still, and leaves it as the program had it."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import gc
from basedsl_toy import TOY

@TOY.jit
def f(x):
    assert not gc.isenabled()
    return x + 1

{setting}
before = gc.isenabled(), gc.get_freeze_count() > 0
assert f(1) == 2
assert (gc.isenabled(), gc.get_freeze_count() > 0) == before, gc.get_freeze_count()
"""


@pytest.mark.parametrize("setting", ["", "gc.disable()", "gc.freeze()"])
def test_collector_is_as_before(tmp_path, setting):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.format(setting=setting))
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
