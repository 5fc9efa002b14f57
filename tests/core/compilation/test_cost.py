"""A first call pauses garbage collection, and leaves the collector as the program had it."""

from __future__ import annotations

import os
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


LOADED = """
import gc
import sys
from basedsl_toy import TOY

@TOY.jit
def f(x):
    return x + 1

language = type(TOY.driver.language)
executor = language.executor
asked = []

def loading(self, *args):
    asked.append(gc.isenabled())
    return executor(self, *args)

language.executor = loading
assert f(1) == 2 and asked == [False] and gc.isenabled()
print(*TOY.counts)
"""


def test_loading_from_the_disk_pauses_collection(tmp_path):
    """A full collection in the middle of a load can take as long as the load."""
    program = tmp_path / "program.py"
    program.write_text(LOADED)
    env = os.environ | {"BASEDSL_CACHE": "1", "BASEDSL_CACHE_DIR": str(tmp_path / "cache")}
    for expected in ("compiled", "loaded"):
        command = [sys.executable, str(program)]
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout.split() == [expected]
