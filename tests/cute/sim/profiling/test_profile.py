"""`cute.sim.profile`: counts of whole kernels against numbers counted by hand."""

import json

import numpy as np
import pytest

from basedsl_cute.nvgpu import tcgen05
from basedsl_cute.runtime import from_dlpack
from basedsl_cute.sim import profile
from basedsl_cute.sim.profiling.result import table as kernel_table
from tests.cute.blackwell.first_gemm import FirstGemm
from tests.cute.sim.profiling import kernels


def zeros(*shape):
    return np.zeros(shape, np.float32)


@pytest.mark.parametrize(("step", "sectors"), [(1, 4), (2, 8), (8, 32), (32, 32)])
def test_strided_loads(step, sectors):
    x, y = np.arange(256 * step, dtype=np.float32), zeros(256)
    kernel = profile(kernels.copied, x, y, step=step).kernel
    assert np.array_equal(y, x[::step])
    assert (kernel.total.load_requests, kernel.total.store_requests) == (8, 8)
    assert kernel.total.load_sectors == 8 * sectors
    assert kernel.total.load_ideal_sectors == 8 * 4
    assert (kernel.total.store_sectors, kernel.total.store_ideal_sectors) == (32, 32)
    assert kernel.total.instructions["global load"] == 8
    assert kernel.where("y[i] = x").active_lanes == 32


def test_a_view_that_begins_within_a_sector():
    x, y = np.arange(257, dtype=np.float32), zeros(256)
    kernel = profile(kernels.copied, x[1:], y).kernel
    assert np.array_equal(y, x[1:])
    assert kernel.total.load_sectors == 8 * 5
    assert profile(kernels.copied, x[:-1], y).kernel.total.load_sectors == 8 * 4


def test_divergence():
    y = zeros(64)
    kernel = profile(kernels.odd, y).kernel
    store = kernel.where("y[i] = cute")
    assert y.sum() == 32
    assert store.active_lanes == 16
    assert (store.store_sectors, store.store_ideal_sectors) == (8, 4)
    branch = kernel.where("if i % 2")
    assert (branch.branches, branch.diverged_branches) == (2, 2)


@pytest.mark.parametrize(("pitch", "ways"), [(32, 32), (33, 1), (34, 2), (36, 4)])
def test_transposes_through_shared_memory(pitch, ways):
    x, y = np.random.default_rng(0).random((32, 32), np.float32), zeros(32, 32)
    kernel = profile(kernels.turn, x, y, pitch).kernel
    assert np.array_equal(y, x.T)
    assert kernel.total.store_bank_conflicts == 0
    assert kernel.total.load_wavefronts == 32 * ways
    assert kernel.total.load_bank_conflicts == 32 * (ways - 1)
    assert kernel.where("turned = tile").load_bank_conflicts == 32 * (ways - 1)
    assert kernel.where("sync_threads").barriers == 32
    assert kernel.shared == (31 * pitch + 32) * 4


@pytest.mark.parametrize(("swizzled", "wavefronts"), [(False, 32), (True, 4)])
def test_ldmatrix(swizzled, wavefronts):
    y = np.zeros(32, np.float16)
    kernel = profile(kernels.matrices, y, swizzled).kernel
    assert (y == 1).all()
    line = kernel.where("cute.copy(atom, mine, held)")
    assert line.instructions["matrix load"] == 1
    assert (line.load_wavefronts, line.load_ideal_wavefronts) == (wavefronts, 4)


def test_a_part_of_the_blocks():
    x, y = np.ones(1024, np.float32), zeros(1024)
    kernel = profile(kernels.copied, x, y, first_blocks=2).kernel
    assert (kernel.blocks, kernel.total.load_requests) == (2, 8)
    assert not y.any()


def test_the_table_and_json():
    result = profile(kernels.turn, zeros(32, 32), zeros(32, 32), 32)
    text = str(result)
    assert "turn_kernel: grid 1, block 32 x 32, 4096 bytes of shared memory" in text
    assert "992 bank conflicts of loads, 0 of stores" in text
    (found,) = json.loads(result.json())
    assert found["total"]["load_wavefronts"] == 1024
    assert "turned = tile[lane, row]" in [line["text"] for line in found["lines"]]


def test_the_page(tmp_path):
    path = profile(kernels.turn, zeros(32, 32), zeros(32, 32), 32).html(tmp_path / "turn.html")
    text = path.read_text()
    assert "turned = tile[lane, row]" in text
    assert '<span class="warn">992</span>' in text
    assert "prefers-color-scheme: dark" in text
    assert "http" not in text


def test_warpgroup_products_and_tma():
    from basedsl_cute.ops.hopper.gemm import Config, gemm

    m, n, k = 128, 128, 128
    rng = np.random.default_rng(0)
    a, b = ((rng.random((rows, k, 1)) - 0.5).astype(np.float16) for rows in (m, n))
    c = np.zeros((m, n, 1), np.float16)
    kernel = profile(gemm, a, b, c, 132, Config(tile=(128, 128, 64))).kernel
    exact = a[..., 0].astype(np.float32) @ b[..., 0].astype(np.float32).T
    assert np.allclose(c[..., 0], exact, atol=0.02)
    assert kernel.total.tensor_flops == 2 * m * n * k
    assert kernel.total.tma_bytes == 2 * (m * k + n * k + m * n)


def test_products_of_tcgen05():
    """Descriptors give the shape of a product; both blocks of a pair are one product."""
    for gemm, (m, n, k) in (
        (FirstGemm((128, 32, 32)), (128, 32, 64)),
        (FirstGemm((256, 64, 32), 3, tcgen05.CtaGroup.TWO, (2, 1)), (256, 64, 64)),
    ):
        a, b = np.ones((m, k), np.float16), np.ones((n, k), np.float16)
        c = zeros(m, n)
        tensors = [from_dlpack(x, assumed_align=16) for x in (a, b, c)]
        kernel = profile(gemm, *tensors, arch="sm_100a").kernel
        assert (c == k).all()
        assert kernel.total.tensor_flops == 2 * m * n * k
        assert kernel.total.instructions["tensor core"] == k / 16
        assert kernel.total.tensor_memory_bytes == m * n * 4
        assert f"tensor memory: {m * n * 4} bytes" in str(kernel_table(kernel))
