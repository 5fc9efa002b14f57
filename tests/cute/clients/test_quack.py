"""Kernels of quack-kernels 0.2.10 and 0.6.5, run as they are on the simulator, against PyTorch.

The client is no dependency: CLIENTS names a folder with its unpacked wheel (`pip download --no-deps
quack-kernels==0.2.10`), PyTorch for the CPU is installed, and for 0.6.5 apache-tvm-ffi and Triton.
For some operands the GEMM of 0.6.5 takes from `cutlass._mlir.dialects.cute_nvgpu`, an MLIR dialect
of CuTe's own DSL in a closed library, what is an error here: TmaDataFormat, get_default_tma_format,
atom_make_non_exec_tiled_tma_load, -_store and -_reduce, atom_make_exec_tma, get_tma_desc_addr.
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

FOLDER = os.environ.get("CLIENTS", "")
PROGRAM = Path(__file__).with_name("quack_kernels.py")
CHECKS = """rmsnorm rmsnorm-bf16 rmsnorm-f32 rmsnorm-cluster rmsnorm-backward rmsnorm-backward-f32
    layernorm layernorm-f32 softmax softmax-f32 softmax-backward cross-entropy cross-entropy-wide
    cross-entropy-backward top-k gemm gemm-pingpong gemm-cluster gemm-grid"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (Path(FOLDER) / "quack").is_dir() or find_spec("torch") is None,
        reason="CLIENTS names no folder with quack-kernels, or PyTorch is not installed",
    ),
]


@pytest.mark.parametrize("check", CHECKS.split())
def test_against_pytorch(check):
    later = (Path(FOLDER) / "quack" / "gemm_runtime").is_dir()
    if check.startswith("gemm") and later and find_spec("triton") is None:
        pytest.skip("the GEMM of later versions imports Triton")
    command = [sys.executable, "-m", "basedsl", "run", "--as", "cutlass", str(PROGRAM), check]
    environment = os.environ | {"CUTE_DSL_ARCH": "sim", "QUACK_CACHE_ENABLED": "0"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and f"{check} ok" in done.stdout, done.stderr[-2000:]
