"""A tutorial's first GEMM, of one block and of pairs, against float64; its PTX through ptxas."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute.lowering.ptx import ptxas
from basedsl_cute.nvgpu import tcgen05
from basedsl_cute.runtime import from_dlpack
from tests.cute.blackwell.first_gemm import FirstGemm

TWO = tcgen05.CtaGroup.TWO
CASES = {
    "one block": (FirstGemm(), (128, 64, 192)),
    "more tiles than stages": (FirstGemm(ab_stages=2), (128, 64, 320)),
    "several blocks": (FirstGemm((128, 32, 32)), (256, 96, 64)),
    "MN-major": (FirstGemm((128, 64, 32), majors=("mn", "mn")), (128, 64, 96)),
    "multicast": (FirstGemm((128, 64, 32), cluster=(2, 2)), (256, 128, 96)),
    "a pair": (FirstGemm((256, 64, 32), 3, TWO, (2, 1)), (256, 64, 128)),
    "pairs with multicast": (FirstGemm((256, 64, 32), 2, TWO, (4, 2)), (512, 128, 160)),
    "a pair, MN-major": (
        FirstGemm((256, 64, 32), 3, TWO, (2, 1), ("mn", "mn")),
        (256, 64, 64),
    ),
}


def arguments(gemm, mnk):
    m, n, k = mnk
    rng = np.random.default_rng(0)
    a = rng.standard_normal((m, k)).astype(np.float16)
    b = rng.standard_normal((n, k)).astype(np.float16)
    if gemm.majors[0].value == "mn":
        a, b = np.asfortranarray(a), np.asfortranarray(b)
    c = np.full((m, n), np.nan, np.float32)
    tensors = [from_dlpack(x, assumed_align=16) for x in (a, b, c)]
    return tensors, a, b, c


@pytest.mark.parametrize("name", CASES)
def test_against_float64(name):
    gemm, mnk = CASES[name]
    tensors, a, b, c = arguments(gemm, mnk)
    cute.compile(gemm, *tensors, options="--arch sim")(*tensors)
    np.testing.assert_allclose(c, a.astype(float) @ b.astype(float).T, rtol=1e-4, atol=1e-4)


def test_a_right_program_has_no_race(monkeypatch):
    monkeypatch.setenv("CUTE_DSL_CHECK_RACES", "1")
    test_against_float64("pairs with multicast")


@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="there is no ptxas")
@pytest.mark.parametrize("arch", ["sm_100a", "sm_103a"])
@pytest.mark.parametrize("name", ["one block", "pairs with multicast"])
def test_ptxas_takes_it(name, arch):
    gemm, mnk = CASES[name]
    tensors, *_ = arguments(gemm, mnk)
    compiled = cute.compile(gemm, *tensors, options=f"--arch {arch}")
    blocks = int(gemm.cta_group)
    text = compiled.stages.text("ptx")
    assert f"tcgen05.mma.cta_group::{blocks}.kind::f16" in text
    assert f"tcgen05.alloc.cta_group::{blocks}" in text
    if blocks == 2:
        assert ".multicast::cluster.cta_group::2" in text
        assert "tcgen05.commit.cta_group::2" in text
    assert compiled.__cubin__
