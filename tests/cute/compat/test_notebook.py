"""`install_as` in a notebook: cells of IPython, in a process of their own, import `cutlass`, define
kernels, define them again, and an error shows the cell's line.
"""

import subprocess
import sys

import pytest

pytest.importorskip("IPython", reason="IPython is not installed")

NOTEBOOK = '''
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance(colors="NoColor")


def cell(text, fails=False):
    result = shell.run_cell(text, store_history=True)
    error = result.error_before_exec or result.error_in_exec
    assert bool(error) == fails, error
    return error


cell("import numpy as np, basedsl_cute; basedsl_cute.install_as('cutlass')")
cell("""
import cutlass
import cutlass.cute as cute
from cutlass.cute.runtime import from_dlpack
assert cutlass.cute.arch is basedsl_cute.arch and cutlass.Float32 is basedsl_cute.Float32
""")
KERNEL = """
@cute.kernel
def kernel(x: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    if i < cute.size(x):
        x[i] = x[i] {how}

@cute.jit
def run(x: cute.Tensor):
    kernel(x).launch(grid=1, block=32)
"""
cell(KERNEL.format(how="* 2"))
cell("x = np.ones(20, np.float32); run(from_dlpack(x)); assert (x == 2).all()")
cell(KERNEL.format(how="+ 5"))
cell("run(from_dlpack(x)); assert (x == 7).all()")
cell("compiled = cute.compile(run, from_dlpack(x)); compiled(x); assert (x == 12).all()")
error = cell(KERNEL.format(how="+ missing") + "run(from_dlpack(x))", fails=True)
assert "x[i] = x[i] + missing" in str(error) or "missing" in str(error), error
print("all cells ran")
'''


def test_cells_under_the_other_name(tmp_path, monkeypatch):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sim")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    program = tmp_path / "notebook.py"
    program.write_text(NOTEBOOK)
    done = subprocess.run([sys.executable, program], capture_output=True, text=True)
    assert done.stdout.endswith("all cells ran\n"), done.stdout[-2000:] + done.stderr[-2000:]
