"""Programs that import this package under another name: `install_as` and `basedsl run --as`."""

import subprocess
import sys
import textwrap

import pytest

PROGRAM = """
import sys
import numpy as np
import cutlass
import cutlass.cute as cute
import cutlass.utils as utils
import cutlass.pipeline as pipeline
import cutlass.torch as cutlass_torch
from cutlass.cute.nvgpu import cpasync, warp
from cutlass.cute.nvgpu.cpasync.helpers import TmaInfo
from cutlass.cute.nvgpu.tcgen05.mma import CtaGroup
from cutlass.cutlass_dsl import T, dsl_user_op, if_generate
from cutlass.base_dsl.typing import JitArgument
from cutlass._mlir import ir
from cutlass._mlir.dialects import llvm

import basedsl_cute
assert cutlass is basedsl_cute and cute is basedsl_cute and cutlass.cute is cute
assert cpasync is basedsl_cute.nvgpu.cpasync and utils is basedsl_cute.utils
assert TmaInfo is cpasync.TmaInfo and sys.modules["cutlass.cute.nvgpu"] is cute.nvgpu
assert cute.nvgpu.__spec__.name == "basedsl_cute.nvgpu", cute.nvgpu.__spec__


@cute.kernel
def k(x: cute.Tensor):
    x[cute.arch.thread_idx()[0]] = cutlass.Float32(2.0)


@cute.jit
def f(x: cute.Tensor):
    k(x).launch(grid=(1, 1, 1), block=(4, 1, 1))


x = np.zeros(4, np.float32)
f(x)
print(x.sum(), sys.argv[1:], __name__)
"""


def run(*arguments, **options):
    return subprocess.run(
        [sys.executable, *arguments], capture_output=True, text=True, check=False, **options
    )


ASKING = """
import numpy as np
import cutlass
cute = cutlass
from cutlass.cute.runtime import from_dlpack

class Divisor:
    def __init__(self, n):
        self.kind = 7 if isinstance(n, int) else 5

@cute.kernel
def kernel(x: cute.Tensor, n: cutlass.Int32):
    x[0], x[1] = Divisor(n).kind, Divisor(3).kind
    x[2] = 2 if isinstance(n, cutlass.Int32) else 1
    x[3] = 2 if isinstance(n, int) else 1
    if cutlass.const_expr(x.shape[0] > 4):
        x[4] = cutlass.Int32(0xFFFFFFFE).to(cutlass.Float32)

@cute.jit
def launch(x: cute.Tensor, n: cutlass.Int32):
    kernel(x, n).launch(grid=1, block=1)

x = np.zeros(5, np.float32)
launch(from_dlpack(x), 3)
print(x.tolist())
"""


@pytest.fixture
def program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def test_a_program_runs_under_the_name_that_it_imports(sim, program):
    done = run("-m", "basedsl", "run", "--as", "cutlass", str(program), "--n", "3")
    assert done.stdout == "8.0 ['--n', '3'] __main__\n", done.stderr


def test_a_program_tells_dynamic_numbers_from_pythons(sim, tmp_path):
    """Programs for CuTe's DSL ask `isinstance(n, int)` for what is known while compiling."""
    path = tmp_path / "program.py"
    path.write_text(ASKING)
    done = run("-m", "basedsl", "run", "--as", "cutlass", str(path))
    assert done.stdout == "[5.0, 7.0, 2.0, 1.0, -2.0]\n", done.stderr
    ours = ASKING.replace("import cutlass\n", "import basedsl_cute as cutlass\n")
    path.write_text(ours.replace("cutlass.cute.", "basedsl_cute.").replace("zeros(5", "zeros(4"))
    done = run(str(path))
    assert done.stdout == "[7.0, 7.0, 2.0, 2.0]\n", done.stderr


SPAWNING = """
import multiprocessing
import cutlass
from basedsl.numeric.python_class import own_classes_only

def tell(queue):
    queue.put((cutlass.__name__, own_classes_only()))

if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    process = context.Process(target=tell, args=(queue,))
    process.start()
    process.join(60)
    print(queue.get() if process.exitcode == 0 else process.exitcode)
"""


def test_a_process_that_a_program_spawns_imports_the_name_too(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(SPAWNING)
    done = run("-m", "basedsl", "run", "--as", "cutlass", str(path))
    assert done.stdout == "('basedsl_cute', True)\n", done.stderr


def test_install_as_by_hand(sim, program):
    text = "import basedsl_cute; basedsl_cute.install_as('cutlass')"
    text += f"; exec(open({str(program)!r}).read())"
    program.write_text(PROGRAM.split("@cute.kernel")[0])
    done = run("-c", text)
    assert done.returncode == 0, done.stderr


def test_another_package_of_the_name_was_imported(tmp_path):
    (tmp_path / "cutlass.py").write_text("")
    text = """
        import cutlass, basedsl_cute
        try:
            basedsl_cute.install_as("cutlass")
        except basedsl_cute.DSLRuntimeError as error:
            print(error)
    """
    done = run("-c", textwrap.dedent(text), cwd=tmp_path)
    assert "another package 'cutlass' is imported already" in done.stdout, done.stderr


def test_a_missing_module_is_an_import_error():
    text = """
        import basedsl_cute
        basedsl_cute.install_as("cutlass")
        for name in ("cutlass.nonsense", "cutlass.utils.nonsense"):
            try:
                __import__(name)
            except ModuleNotFoundError as error:
                print(error)
    """
    done = run("-c", textwrap.dedent(text))
    assert done.stdout.splitlines() == [
        "No module named 'cutlass.nonsense'",
        "No module named 'cutlass.utils.nonsense'",
    ], done.stderr


def test_no_dsl_stands_for_a_package(tmp_path):
    done = run("-m", "basedsl", "run", "--as", "nonsense", str(tmp_path / "x.py"))
    assert done.returncode == 1
    assert "no installed DSL stands for 'nonsense'" in done.stderr
