"""A program in one DSL imports no other DSL, and leaves Python's import system as it was."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
finders = list(sys.meta_path)
import basedsl_toy as toy

@toy.jit
def add(a: toy.Int64, b: toy.Int64):
    return a + b

assert add(1, 2) == 3 and add(2, 3) == 5
print(sorted(name for name in sys.modules if name.partition(".")[0] == "basedsl_cute"))
print([f for f in sys.meta_path if type(f).__module__.startswith("basedsl_cute.")])
"""


def test_a_toy_program_imports_nothing_of_cute(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.split() == ["[]", "[]"], done.stdout
