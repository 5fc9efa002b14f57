"""A tutorial's persistent GEMM in its variants against float64; its PTX through ptxas."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLTypeError
from basedsl_cute.lowering.ptx import ptxas
from basedsl_cute.runtime import from_dlpack
from tests.cute.blackwell.persistent_gemm import PersistentGemm

CASES = {
    "static": (PersistentGemm(), (256, 128, 128, 1)),
    "static, 1 cluster": (PersistentGemm(active_clusters=1), (256, 192, 64, 2)),
    "pairs": (PersistentGemm((256, 64), (2, 1), True), (512, 128, 128, 1)),
    "pairs of 64 rows": (PersistentGemm((128, 64), (2, 1), True), (256, 128, 64, 1)),
    "pairs of 64 rows, warps of 48 columns": (
        PersistentGemm((128, 96), (2, 1), True),
        (256, 96, 64, 1),
    ),
    "pairs with multicast": (PersistentGemm((256, 64), (4, 2), True), (512, 128, 128, 2)),
    "64 rows": (PersistentGemm((64, 64)), (128, 128, 64, 1)),
    "clc": (PersistentGemm(scheduler="clc"), (384, 192, 64, 1)),
    "clc, multicast": (PersistentGemm((128, 64), (2, 2), scheduler="clc"), (512, 256, 64, 2)),
    "clc, pairs": (PersistentGemm((256, 64), (2, 1), True, "clc"), (1024, 128, 64, 1)),
    "beyond the edges": (PersistentGemm(), (200, 72, 40, 1)),
    "from registers": (PersistentGemm(tma_store=False), (200, 72, 72, 1)),
    "overlapping accumulators": (
        PersistentGemm((128, 128), tma_store=False, overlap=32, active_clusters=1),
        (256, 256, 64, 1),
    ),
    "pairs from registers": (
        PersistentGemm((256, 64), (2, 1), True, tma_store=False),
        (300, 72, 72, 1),
    ),
}


def arguments(mnkl, majors="kkn", c_dtype=np.float16):
    m, n, k, batches = mnkl
    rng = np.random.default_rng(0)

    def make(rows, columns, major, dtype):
        x = rng.standard_normal((batches, *((rows, columns) if major else (columns, rows))))
        x = np.ascontiguousarray(x.astype(dtype))
        return x.transpose(1, 2, 0) if major else x.transpose(2, 1, 0)

    a = make(m, k, majors[0] == "k", np.float16)
    b = make(n, k, majors[1] == "k", np.float16)
    c = make(m, n, majors[2] == "n", c_dtype)
    c[...] = np.nan
    tensors = []
    for x, lead in zip((a, b, c), ("k", "k", "n"), strict=True):
        mode = 1 if majors[len(tensors)] == lead else 0
        tensors.append(from_dlpack(x, assumed_align=16).mark_layout_dynamic(leading_dim=mode))
    return tensors, a, b, c


def check(gemm, mnkl, **kinds):
    tensors, a, b, c = arguments(mnkl, **kinds)
    cute.compile(gemm, *tensors, options="--arch sim")(*tensors)
    exact = np.einsum("mkl,nkl->mnl", a.astype(float), b.astype(float))
    is_exact = c.dtype == np.float32 and gemm.acc_dtype is cute.Float32
    tolerance = 1e-4 if is_exact else 4e-3
    np.testing.assert_allclose(c, exact, rtol=tolerance, atol=16 * tolerance)


@pytest.mark.parametrize("name", CASES)
def test_against_float64(name):
    check(*CASES[name])


@pytest.mark.parametrize("majors", ["mnn", "kkm", "mkm"])
@pytest.mark.parametrize("c_dtype", [np.float16, np.float32])
def test_major_modes(majors, c_dtype):
    check(PersistentGemm(), (256, 128, 64, 1), majors=majors, c_dtype=c_dtype)


@pytest.mark.parametrize("rows, c_dtype", [(128, np.float16), (128, np.float32), (64, np.float32)])
def test_an_accumulator_of_float16(rows, c_dtype):
    gemm = PersistentGemm((rows, 64), acc_dtype=cute.Float16)
    check(gemm, (128, 64, 64, 1), c_dtype=c_dtype)


def test_an_epilogue_that_returns_no_vector():
    tensors, *_ = arguments((128, 64, 64, 1))
    with pytest.raises(DSLTypeError, match="'<lambda>' returns tuple, not a TensorSSA"):
        cute.compile(PersistentGemm(), *tensors, lambda x: (x, x), options="--arch sim")


@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="there is no ptxas")
@pytest.mark.parametrize("arch", ["sm_100a", "sm_103a"])
@pytest.mark.parametrize("name", ["static", "pairs with multicast", "clc, multicast"])
def test_ptxas_takes_it(name, arch):
    gemm, mnkl = CASES[name]
    tensors, *_ = arguments(mnkl)
    compiled = cute.compile(gemm, *tensors, options=f"--arch {arch}")
    text = compiled.stages.text("ptx")
    assert ("clusterlaunchcontrol.try_cancel" in text) == gemm.is_dynamic
    assert compiled.__cubin__
