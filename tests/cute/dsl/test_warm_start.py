"""A second process of the simulator traces, compiles and translates nothing, loads no MLIR."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

PROGRAM = """
import json, sys
import numpy as np
import basedsl_cute as cute
from basedsl_cute.dsl.cute import CUTE

TABLE = (1.5, 2.5, 4.0, 8.0)

@cute.kernel
def scale(x: cute.Tensor, y: cute.Tensor):
    smem = cute.utils.SmemAllocator()
    s = smem.allocate_tensor(cute.Float32, cute.make_layout(32))
    t, _, _ = cute.arch.thread_idx()
    s[31 - t] = x[t]
    cute.arch.sync_threads()
    y[t] = s[t] * TABLE[3] + 1
    if t == 40:
        cute.printf("never {}", t)

@cute.jit
def host(x: cute.Tensor, y: cute.Tensor):
    scale(x, y).launch(grid=(1, 1, 1), block=(32, 1, 1))

x, y = np.arange(32, dtype=np.float32), np.zeros(32, np.float32)
host(x, y)
assert (y == x[::-1] * 8 + 1).all(), y
heavy = (
    "numba_cuda_mlir", "mlir", "llvmlite", "basedsl.prestage.rewriter",
    "basedsl_cute.sim.translate.rule_table", "basedsl_cute.sim.translate.emitter",
    "basedsl_cute.dsl.pipelines", "basedsl_cute.lowering.kernel.rules",
    "basedsl.objectstage.lowering",
)
classes = [name for name in sys.modules if name.endswith("_ops_gen")]
print(json.dumps([dict(CUTE.counts), [name for name in heavy if name in sys.modules], classes]))
"""


@pytest.mark.parametrize("races", ["0", "1"])
def test_a_warm_start_loads_no_compiler(tmp_path, races):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = {
        **os.environ,
        "CUTE_DSL_ARCH": "sim",
        "CUTE_DSL_CHECK_RACES": races,
        "BASEDSL_CACHE": "1",
        "BASEDSL_CACHE_DIR": str(tmp_path / "cache"),
    }
    found = []
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, str(program)], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
    assert found[0][0] == {"compiled": 1} and "llvmlite" in found[0][1]
    assert found[0][2] == []  # a cold start makes no classes for the ops of MLIR's dialects
    assert found[1] == [{"loaded": 1}, [], []]


def test_compiling_for_a_gpu_makes_no_classes_of_ops(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM.replace("\nhost(x, y)\nassert", "\ncute.compile(host, x, y)\n#"))
    environment = {**os.environ, "CUTE_DSL_ARCH": "sm_90a", "BASEDSL_CACHE": "0"}
    done = subprocess.run(
        [sys.executable, str(program)], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[2] == []
