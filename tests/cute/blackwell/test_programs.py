"""Programs with the imports and the anatomy of CuTe's DSL, each of which checks its own results."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import basedsl_cute as cutlass

HERE = Path(__file__).parent / "programs"


def run(name, *arguments):
    """Run a program as a user does, under the name that it imports."""
    command = ["-m", "basedsl", "run", "--as", "cutlass", str(HERE / f"{name}.py"), *arguments]
    return subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        env={**os.environ, "CUTE_DSL_ARCH": "sim"},
    )


def with_changed_imports(folder, monkeypatch):
    """The persistent GEMM with `basedsl_cute` in its import lines, imported from `folder`."""
    for name in ("blackwell_operands", "block_scaled_operands", "block_scaled_gemm_persistent"):
        text = (HERE / f"{name}.py").read_text()
        text = text.replace("import cutlass\n", "import basedsl_cute as cutlass\n")
        text = text.replace("import cutlass.", "import basedsl_cute.")
        text = text.replace("from cutlass.", "from basedsl_cute.")
        (folder / f"{name}.py").write_text(text)
        spec = importlib.util.spec_from_file_location(name, folder / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, name, module)
        spec.loader.exec_module(module)
    return module


def test_the_persistent_gemm_after_a_change_of_imports(sim, tmp_path, monkeypatch):
    """Two tiles of a block, the second of which begins at another stage of the ring."""
    program = with_changed_imports(tmp_path, monkeypatch)
    kinds = (cutlass.Float8E4M3FN, cutlass.Float8E8M0FNU, 32, cutlass.Float32)
    program.run((128, 64, 160, 2), *kinds, "kkn", (128, 64), (1, 1), 1)


MXFP8 = ("--ab_dtype", "Float8E4M3FN", "--sf_dtype", "Float8E8M0FNU", "--sf_vec_size", "32")
BLOCK_SCALED = {
    "nvfp4": (),
    "mxfp4, overlapping accumulators": (
        "--sf_dtype", "Float8E8M0FNU", "--sf_vec_size", "32", "--c_dtype", "Float16",
        "--mnkl", "256,512,512,1", "--mma_tiler_mn", "128,256",
    ),
    "mxfp8, N = 64, multicast, batches": (
        *MXFP8, "--c_dtype", "BFloat16", "--mnkl", "256,256,256,2", "--majors", "kkm",
        "--mma_tiler_mn", "128,64", "--cluster_shape_mn", "2,2",
    ),
    "mxfp8 of E5M2, pairs": (
        *MXFP8, "--ab_dtype", "Float8E5M2", "--mnkl", "512,256,256,1", "--majors", "mnn",
        "--mma_tiler_mn", "256,128", "--cluster_shape_mn", "2,1",
    ),
    "FP4 by 16 with E8M0, pairs, overlapping accumulators": (
        "--sf_dtype", "Float8E8M0FNU", "--c_dtype", "Float16", "--mnkl", "512,512,512,1",
        "--mma_tiler_mn", "256,256", "--cluster_shape_mn", "2,1",
    ),
    "mxfp8 to E4M3, N = 64, pairs with multicast": (
        *MXFP8, "--c_dtype", "Float8E4M3FN", "--mnkl", "512,256,256,1", "--majors", "knn",
        "--mma_tiler_mn", "256,64", "--cluster_shape_mn", "4,2",
    ),
    "mxfp8, tiles over the edge": (*MXFP8, "--mnkl", "200,320,288,1"),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("case", BLOCK_SCALED)
def test_the_persistent_block_scaled_gemm(case):
    done = run("block_scaled_gemm_persistent", *BLOCK_SCALED[case])
    assert done.stdout == "PASS\n", done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "preferred_cluster_gemm",
        "alpha_beta_gemm",
        "split_k_gemm",
        "sum_of_tensors",
    ],
)
def test_a_program(name):
    done = run(name)
    assert done.stdout == "PASS\n", done.stderr
