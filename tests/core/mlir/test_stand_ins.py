"""Loading MLIR bindings leaves their package usable for everybody else."""

import importlib.util
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from basedsl import DSLRuntimeError
from basedsl.mlir.bindings import load_bindings

PROGRAMS = {
    "a dialect is imported by its path": """
        load()
        import numba_cuda_mlir._mlir.dialects.arith
        assert numba_cuda_mlir._mlir.dialects.arith.AddIOp
        from numba_cuda_mlir._mlir.dialects import scf
        assert scf.ForOp
        from numba_cuda_mlir._mlir.dialects.math import *
        assert SqrtOp
    """,
    "a dialect is one module": """
        bindings = load()
        import numba_cuda_mlir._mlir.dialects.llvm as theirs
        assert bindings.llvm is theirs is sys.modules["numba_cuda_mlir._mlir.dialects.llvm"]
        assert bindings.llvm.LoadOp is theirs.LoadOp
        assert theirs.__spec__.name == theirs.__name__ and theirs.__file__
    """,
    "its spec is found": """
        load()
        import importlib.util
        assert importlib.util.find_spec("numba_cuda_mlir._mlir.dialects.arith").origin
        assert importlib.util.find_spec("numba_cuda_mlir").submodule_search_locations
    """,
    "a submodule of the parent is imported": """
        load()
        import numba_cuda_mlir
        before = numba_cuda_mlir
        import numba_cuda_mlir.types
        assert numba_cuda_mlir is before is sys.modules["numba_cuda_mlir"]
        assert numba_cuda_mlir.types is sys.modules["numba_cuda_mlir.types"]
        assert type(numba_cuda_mlir) is type(sys)
    """,
    "an attribute of the parent": """
        load()
        import numba_cuda_mlir
        assert numba_cuda_mlir.__version__
        assert numba_cuda_mlir._version is sys.modules["numba_cuda_mlir._version"]
    """,
    "reloading": """
        bindings = load()
        import importlib
        assert importlib.reload(bindings.arith).AddIOp
    """,
}
HEAD = """
import sys
from basedsl.mlir import load_bindings
def load():
    return load_bindings("numba_cuda_mlir._mlir")
"""


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_the_package_is_as_if_nobody_had_loaded_it(program):
    (folder,) = importlib.util.find_spec("numba_cuda_mlir").submodule_search_locations
    if not Path(folder, "types.py").exists():
        pytest.skip("only the bindings of numba-cuda-mlir are installed")
    text = HEAD + textwrap.dedent(program)
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_package_that_is_no_bindings():
    with pytest.raises(DSLRuntimeError, match="numpy: no MLIR bindings, which have a module 'ir'"):
        load_bindings("numpy")
    with pytest.raises(DSLRuntimeError, match="absent_bindings: not installed"):
        load_bindings("absent_bindings")
    with pytest.raises(DSLRuntimeError, match=r"numba_cuda_mlir\._mlir: lacks the dialects hw"):
        load_bindings("numba_cuda_mlir._mlir", ("hw", "func"))
