"""Every example runs on every target and computes what NumPy computes."""

import runpy
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.testing import filecheck

FOLDER = Path(__file__).parents[3] / "examples" / "cute"
sys.path.insert(0, str(FOLDER))

import block_reduce  # noqa: E402
import epilogue  # noqa: E402
import hello  # noqa: E402
import saxpy  # noqa: E402
import tiled_matmul  # noqa: E402
import vector_add  # noqa: E402
import vector_add_wide  # noqa: E402

RNG = np.random.default_rng(7)


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda p: p.stem)
def test_every_example_is_a_program(path, target, capfd):
    if target == "gpu":  # a kernel that crashes takes the whole process's context with it
        subprocess.run([sys.executable, str(path)], check=True, timeout=120)
    else:
        runpy.run_path(str(path), run_name="__main__")
    assert capfd.readouterr().out


def test_hello(target, capfd):
    hello.host()
    cute.synchronize()
    assert capfd.readouterr().out == "Hello world\n"


@pytest.mark.parametrize("n", [1, 3, 4, 1023, 4096, 100_001])
def test_vector_add_wide(target, n):
    a, b = (RNG.standard_normal(n, np.float32) for _ in range(2))
    c = np.full(n, np.nan, np.float32)
    vector_add_wide.vector_add_wide(a, b, c)
    np.testing.assert_array_equal(c, a + b)


def test_vector_add_wide_loads_16_bytes(monkeypatch):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_90a")
    a = np.zeros(1024 + 4, np.float32)
    a = a[-a.__array_interface__["data"][0] // 4 % 4 :][:1024]
    ptx = cute.compile(vector_add_wide.vector_add_wide, a, a, a).stages.text("ptx")
    assert "ld.global.v4" in ptx
    assert "st.global.v4" in ptx


@pytest.mark.parametrize("n", [1, 255, 256, 257, 100_000])
def test_vector_add(target, n):
    a, b = RNG.standard_normal((2, n), np.float32)
    c = np.full(n, np.nan, np.float32)
    vector_add.vector_add(a, b, c)
    np.testing.assert_array_equal(c, a + b)


def test_vector_add_of_strided_and_other_types(target):
    a = np.arange(300, dtype=np.int64)[::3]
    b = np.arange(100, dtype=np.int64)
    c = np.zeros(200, np.int64)[::2]
    vector_add.vector_add(a, b, c)
    np.testing.assert_array_equal(c, a + b)


@pytest.mark.parametrize("n", [0, 1, 1023, 50_001])
def test_saxpy(target, n):
    x, y = RNG.standard_normal((2, n), np.float32)
    expected = np.float32(2.5) * x.astype(np.float64) + y
    saxpy.saxpy(2.5, x, y)
    np.testing.assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n", [1, 4096, 100_003])
def test_block_reduce(target, n):
    x = RNG.random(n, np.float32)
    total = np.zeros(1, np.float32)
    block_reduce.block_sum(x, total)
    np.testing.assert_allclose(total[0], x.sum(dtype=np.float64), rtol=1e-5)


@pytest.mark.parametrize("m,n,k", [(96, 96, 96), (17, 33, 5), (1, 1, 1), (16, 16, 0)])
def test_tiled_matmul(target, m, n, k):
    a = RNG.standard_normal((m, k), np.float32)
    b = RNG.standard_normal((n, k), np.float32).T  # column-major
    c = np.full((m, n), np.nan, np.float32)
    tiled_matmul.matmul(a, b, c)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("columns", [None, 16])
@pytest.mark.parametrize("kind", [epilogue.Epilogue, epilogue.ReLU])
def test_epilogue(target, kind, columns):
    x = RNG.standard_normal((100, 16)).astype(np.float32)
    y = np.full(100, np.nan, np.float32)
    epilogue.row_sums(kind, x, y, columns)
    expected = x.sum(axis=1, dtype=np.float64)
    if kind is epilogue.ReLU:
        expected = np.maximum(expected, 0)
    np.testing.assert_allclose(y, expected, rtol=1e-4, atol=1e-5)


def test_epilogue_debug_is_a_guarded_global(sim, capfd, monkeypatch):
    x, y = np.ones((2, 16), np.float32), np.empty(2, np.float32)
    epilogue.row_sums(epilogue.ReLU, x, y)
    assert "ReLU" not in capfd.readouterr().out
    monkeypatch.setattr(epilogue, "DEBUG", True)
    epilogue.row_sums(epilogue.ReLU, x, y)
    assert capfd.readouterr().out == "ReLU epilogue\n" * 2


def test_epilogue_loop_is_captured_once_or_unrolled(sim):
    x, y = np.ones((4, 16), np.float32), np.ones(4, np.float32)
    captured = cute.compile(epilogue.row_sums, epilogue.ReLU, x, y).__mlir__
    assert captured.count("scf.for") == 1
    filecheck(
        captured,
        """
        CHECK: gpu.func @row_sums_kernel
        CHECK: scf.if
        CHECK: [[SUM:%.*]] = scf.for {{.*}} iter_args([[ACC:%.*]] = {{.*}}) -> (f32)
        CHECK: [[X:%.*]] = "cute.load"
        CHECK: arith.addf [[ACC]], [[X]]
        CHECK: scf.yield
        CHECK: arith.cmpf ogt, [[SUM]]
        CHECK: arith.select
        CHECK: "cute.store"
        """,
    )
    unrolled = cute.compile(epilogue.row_sums, epilogue.ReLU, x, y, 16).__mlir__
    assert "scf.for" not in unrolled
    assert unrolled.count("arith.addf") == 16
    identity = cute.compile(epilogue.row_sums, epilogue.Epilogue, x, y).__mlir__
    assert "arith.select" not in identity
