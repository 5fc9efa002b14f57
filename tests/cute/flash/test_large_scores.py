"""`ops.attention` of scores so large that their distance, or the rounding of exponents, tells."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from basedsl_cute.ops import attention
from basedsl_cute.ops.ampere.attention import Config
from basedsl_cute.ops.blackwell import attention as blackwell
from basedsl_cute.ops.hopper import attention as hopper

sys.path.insert(0, str(Path(__file__).parent))

from attention_reference import reference

ml_dtypes = pytest.importorskip("ml_dtypes")

CONFIGS = {
    "hopper": hopper.Config((64, 32)),
    "by bits": hopper.Config((64, 32), by_bits=True),
    "slack": Config((32, 32), warps=2, slack=8, heads_first=True),
    "ring": Config((32, 32), warps=2, slack=8, stages=3),
    "splits": Config((16, 32), warps=1, splits=3),
    "key warps": Config((16, 16), warps=1, key_warps=3, stages=2),
}
SCALES = (0.1, 2.0**20, 2.0**26, 3e7, 2.0**28, 2.0**31, 1e12, 1e20, 1e34)
pytestmark = pytest.mark.slow  # for what they compile; one of `test_attention.py` is not
kernels = pytest.mark.parametrize("kind", CONFIGS)
# Logarithms of the sums of splits are too coarse to tell how many such scores are equal.
without_splits = pytest.mark.parametrize(
    "kind", ["hopper", "by bits", "slack", "ring", "key warps"]
)


def whole(*shape, seed=0):
    """Numbers from -2 to 2, whose products are exact, and often equal."""
    return np.random.default_rng(seed).integers(-2, 3, shape)


def operands(dtype=np.float16, keys=70, head=32):
    q, k = whole(1, 40, 1, head), whole(1, keys, 1, head, seed=1)
    v = np.random.default_rng(2).standard_normal(k.shape)
    return [x.astype(dtype) for x in (q, k, v)]


def check(q, k, v, scale, atol, **options):
    out, lse = attention(q, k, v, scale=scale, return_lse=True, **options)
    values, logs = reference(q, k, v, scale=scale)
    np.testing.assert_allclose(np.float64(out), values, atol=atol)
    np.testing.assert_allclose(lse, logs, rtol=1e-6, atol=1e-3)


@kernels
def test_scores_of_any_size(kind):
    q, k, v = operands()
    for scale in SCALES:
        check(q, k, v, scale, 4e-3, config=CONFIGS[kind])


@without_splits
def test_the_largest_numbers_of_float16(kind):
    q, k, v = operands()
    q[0, ::2, 0] = 0
    q[0, ::2, 0, 0] = 65504
    k[0, :, 0, 0] = np.random.default_rng(4).choice([65504, -65504, 60000], k.shape[1])
    q[0, 1] *= 4096  # a row of another size beside
    check(q, k, v, None, 4e-3, config=CONFIGS[kind])


@kernels
def test_infinite_scores_travel_as_in_numpy(kind):
    q, k, v = operands()
    q[0, :, 0, 0] = np.where(np.arange(40) % 2, 1, -1)
    k[0, 5, 0, 0] = np.inf
    out = attention(q, k, v, config=CONFIGS[kind])
    with np.errstate(invalid="ignore"):
        values, _ = reference(q, k, v)
    assert np.isnan(values[0, 1::2]).all() and np.isfinite(values[0, ::2]).all()
    np.testing.assert_allclose(np.float64(out), values, atol=4e-3)


@without_splits
def test_equal_scores_weigh_the_same_in_all_tiles(kind):
    # The sums so far must not be scaled by what the rounding of a base adds.
    q, k, v = (np.ones((1, 16, 1, 32), np.float16), *np.ones((2, 1, 1024, 1, 32), np.float16))
    v[0, :512] = 0
    for score in (1e6, 1.1e6, 1.3e6):
        check(q, k, v, score / 32, 1e-3, config=CONFIGS[kind])


@kernels
def test_scores_of_any_size_by_bfloat16_and_softcap(kind):
    q, k, v = operands(ml_dtypes.bfloat16)
    config = CONFIGS[kind]
    for scale in SCALES:
        check(q, k, v, scale, 2e-2, config=config)
    check(q * ml_dtypes.bfloat16(1e30), k, v, None, 2e-2, config=config)
    check(q * ml_dtypes.bfloat16(1e30), k * ml_dtypes.bfloat16(1e-30), v, None, 2e-2, config=config)
    cap = 1e9
    out = attention(q, k, v, scale=1e8, softcap=cap, config=config)
    values, _ = reference(q, k, v, scale=1e8, score=lambda s, *_: cap * np.tanh(s / cap))
    np.testing.assert_allclose(np.float64(out), values, atol=2e-2)


@pytest.mark.parametrize("options", [{}, {"slack": ((0, 1.0),), "between": False}])
def test_scores_of_any_size_by_elements_of_8_bits(options):
    q, k, v = operands(ml_dtypes.float8_e4m3fn)
    for scale in SCALES:
        check(q, k, v, scale, 0.03 * 3, config=hopper.Config((64, 32), **options))


def test_scores_of_any_size_by_the_kernel_for_blackwell(sim):
    for scale in SCALES:
        check(*operands(head=64), scale, 4e-3, config=blackwell.Config())
