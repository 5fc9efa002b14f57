"""Kernels of quack-kernels 0.2.10, run as they are on the simulator, against PyTorch.

The client is no dependency: CLIENTS names a folder with its unpacked wheel (`pip download --no-deps
quack-kernels==0.2.10`), and PyTorch for the CPU is installed. Not run: its GEMM, which chooses
members of an IntEnum by run-time conditions and gives run-time values to Constexpr parameters of
inner functions; and later versions, which replace classes inside CuTe's own DSL.
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
    cross-entropy-backward top-k"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (Path(FOLDER) / "quack").is_dir() or find_spec("torch") is None,
        reason="CLIENTS names no folder with quack-kernels, or PyTorch is not installed",
    ),
]


@pytest.mark.parametrize("check", CHECKS.split())
def test_against_pytorch(check):
    command = [sys.executable, "-m", "basedsl", "run", "--as", "cutlass", str(PROGRAM), check]
    environment = os.environ | {"CUTE_DSL_ARCH": "sim"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and f"{check} ok" in done.stdout, done.stderr[-2000:]
