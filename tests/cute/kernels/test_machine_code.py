"""Machine code of kernels as CuTe's users write them: registers, spills, and the instructions of
inner loops, by ptxas. No GPU is needed.
"""

import re
import sys
from pathlib import Path

import pytest

import basedsl_cute as cute
from basedsl_cute.lowering.ptx import ptxas
from basedsl_cute.runtime import make_fake_tensor

sys.path.insert(0, str(Path(__file__).parents[1] / "programs"))

import attention

pytestmark = pytest.mark.skipif(ptxas.find_ptxas() is None, reason="no ptxas")


@pytest.mark.parametrize("causal", [False, True])
def test_attention_by_mma_sync(causal):
    """Tiles of 64 x 64, heads of 128: sums of 64 registers, scores and operands of 32 each."""
    length, heads = cute.sym_int(), cute.sym_int()
    strides = (cute.sym_int(divisibility=8), 1, cute.sym_int(divisibility=8))
    fakes = [
        make_fake_tensor(cute.Float16, (length, 128, heads), strides, assumed_align=16)
        for _ in "qkvo"
    ]
    program = attention.Attention(128, rows=64, columns=64, warps=4, causal=causal)
    ptx = cute.compile(program, *fakes, 0.1, options="--gpu-arch sm_90a").__ptx__
    (resources,) = ptxas.assemble(ptx, "sm_90a").kernels.values()
    assert (resources.spill_stores, resources.spill_loads, resources.stack) == (0, 0, 0)
    assert resources.registers <= 248  # two blocks an SM
    loops = 2 if causal else 1  # tiles that need a mask have one of their own
    # One instruction for each exponential, and for each score one product and difference; sums of
    # weights are products with ones.
    assert len(re.findall(r"ex2\.approx\.ftz\.f32", ptx)) == 34 * loops
    assert len(re.findall(r"ex2\.approx\.f32", ptx)) == 0
    assert len(re.findall(r"fma\.rn\.f32", ptx)) == 32 * loops
    assert len(re.findall(r"sub\.rn\.f32|add\.rn\.f32", ptx)) <= 40 * loops
    # Swizzled addresses differ by constants: a few exclusive ors, not one for each access.
    assert len(re.findall(r"xor\.b32", ptx)) <= 24 * loops < len(re.findall("ldmatrix", ptx))
