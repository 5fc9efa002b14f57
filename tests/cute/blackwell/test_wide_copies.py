"""Copies of 256 bits between global memory and registers, which sm_100 has as one access."""

import re

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute.runtime import from_dlpack
from tests.cute.blackwell.test_block_scaled_gemm import aligned


@cute.kernel
def twice_kernel(x: cute.Tensor, y: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    n = 256 // x.element_type.width
    atom = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), x.element_type, num_bits_per_copy=256)
    held = cute.make_rmem_tensor(n, x.element_type)
    cute.copy(atom, cute.local_tile(x, (n,), (t,)), held)
    held.store(held.load() + held.load())
    cute.copy(atom, held, cute.local_tile(y, (n,), (t,)))


@cute.jit
def twice(x: cute.Tensor, y: cute.Tensor):
    twice_kernel(x, y).launch(grid=1, block=32)


def compiled(dtype, target):
    x = aligned(np.arange(32 * 32 // np.dtype(dtype).itemsize).astype(dtype))
    y = aligned(np.zeros_like(x))
    tensors = [from_dlpack(a, assumed_align=32) for a in (x, y)]
    return cute.compile(twice, *tensors, options=f"--arch {target}"), tensors, x, y


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_on_the_simulator(dtype):
    function, tensors, x, y = compiled(dtype, "sim")
    function(*tensors)
    np.testing.assert_array_equal(y, x + x)


@pytest.mark.parametrize(
    ("target", "accesses"), [("sm_90a", 4), ("sm_100a", 2), ("sm_103f", 2), ("sm_120a", 2)]
)
def test_ptx_has_one_access_from_sm_100_on(target, accesses):
    text = compiled(np.float32, target)[0].stages.text("ptx")
    assert len(re.findall(r"\b(?:ld|st)\.global", text)) == accesses
