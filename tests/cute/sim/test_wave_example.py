"""The DSL of examples/wave: kernels of 64 lanes run on the simulator, and become AMDGPU code."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from basedsl import DSLCallError, DSLError

PROGRAMS = Path(__file__).parents[3] / "examples" / "wave" / "programs.py"


@pytest.fixture(scope="module")
def programs():
    """The module of programs; `programs.waves` is the DSL."""
    spec = importlib.util.spec_from_file_location("wave_programs", PROGRAMS)
    module = importlib.util.module_from_spec(spec)
    before = list(sys.path)
    spec.loader.exec_module(module)
    yield module
    sys.path[:] = before


def test_programs_agree_with_numpy(programs, capsys):
    programs.main()
    assert capsys.readouterr().out.endswith("agree with NumPy\n")


def test_kernels_become_amdgpu_code(programs):
    compiled = programs.waves.compile(programs.leaders, np.zeros(64, np.int32))
    text = compiled.stages.text("llvmir")
    assert "define amdgpu_kernel void @waves_leaders" in text
    assert "call i32 @llvm.amdgcn.readfirstlane" in text
    code = compiled.stages.binary("gcn")
    assert code[:4] == b"\x7fELF" and int.from_bytes(code[18:20], "little") == 224  # EM_AMDGPU


def test_errors_are_at_the_line_of_the_kernel(programs):
    waves = programs.waves

    @waves.kernel
    def beyond(x):
        x[waves.thread() + 1] = 0

    @waves.kernel
    def returns(x):
        return x[0]

    x = np.zeros(128, np.int32)
    with pytest.raises(DSLError, match="out-of-bounds") as caught:
        beyond.launch(1, 128)(x)
    assert caught.value.span.filename == __file__
    with pytest.raises(DSLCallError, match="a kernel returns nothing"):
        returns.launch(1, 64)(x)
    with pytest.raises(DSLCallError, match="a kernel is launched"):
        programs.leaders(x)
