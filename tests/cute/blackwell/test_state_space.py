"""A state-space scan by chunks, against the recurrence in float64; its PTX through ptxas."""

import ml_dtypes
import numpy as np
import pytest

from tests.cute.blackwell.state_space import CHUNK, HEAD, STATE, StateSpaceScan
from tests.cute.blackwell.whole_programs import (
    check_resources,
    needs_ptxas,
    precision,
    simulate,
    tensors_of,
)

CASES = {
    "one chunk": ((1, 1, 1, 1), np.float16),
    "three chunks": ((3, 1, 1, 1), np.float16),
    "groups and batches": ((2, 2, 1, 2), ml_dtypes.bfloat16),
}


def arguments(sizes, dtype, seed=0):
    """The tensors, what the program writes, and what is exact."""
    chunks, heads, groups, batches = sizes
    rows, rng = chunks * CHUNK, np.random.default_rng(seed)
    x = rng.standard_normal((batches, heads, rows, HEAD)).astype(dtype)
    b, c = (
        (rng.standard_normal((batches, groups, rows, STATE)) / 4).astype(dtype) for _ in range(2)
    )
    delta = rng.uniform(0.02, 0.2, (batches, heads, rows)).astype(np.float32)
    rate = -rng.uniform(0.2, 1, heads)
    skip = rng.standard_normal(heads).astype(np.float32)
    steps = (delta * rate[:, None]).reshape(batches, heads, chunks, CHUNK)
    decay = steps.cumsum(3).reshape(delta.shape).astype(np.float32)
    y = np.full(x.shape, np.nan, dtype)
    state = np.full((batches, heads, STATE, HEAD), np.nan, np.float32)
    exact, held = np.zeros(x.shape), np.zeros(state.shape)
    wide_b, wide_c = (np.repeat(z.astype(float), heads // groups, 1) for z in (b, c))
    for row in range(rows):
        now = x[:, :, row].astype(float)
        held *= np.exp(delta[:, :, row].astype(float) * rate)[..., None, None]
        held += np.einsum("bh,bhn,bhd->bhnd", delta[:, :, row], wide_b[:, :, row], now)
        exact[:, :, row] = np.einsum("bhn,bhnd->bhd", wide_c[:, :, row], held)
        exact[:, :, row] += skip[:, None] * now
    arrays = [
        x.transpose(2, 3, 1, 0), delta.transpose(2, 1, 0), decay.transpose(2, 1, 0),
        b.transpose(2, 3, 1, 0), c.transpose(2, 3, 1, 0), skip, y.transpose(2, 3, 1, 0),
        state.transpose(3, 2, 1, 0),
    ]  # fmt: skip
    tensors = tensors_of(arrays, (1, 0, 0, 1, 1, 0, 1, 0))
    return tensors, (y, state), (exact, held)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_against_float64(name):
    check(*CASES[name])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100))
def test_random_configurations(seed):
    rng = np.random.default_rng(seed)
    groups = int(rng.integers(1, 3))
    sizes = (int(rng.integers(1, 4)), groups * int(rng.integers(1, 3)), groups,
             int(rng.integers(1, 3)))  # fmt: skip
    check(sizes, (np.float16, ml_dtypes.bfloat16)[rng.integers(2)], seed)


def check(sizes, dtype, seed=0):
    tensors, (y, state), (exact, held) = arguments(sizes, dtype, seed)
    simulate(StateSpaceScan(), tensors)
    for found, wanted in ((y, exact), (state, held)):
        atol = precision(dtype) * abs(wanted).max()
        np.testing.assert_allclose(found.astype(float), wanted, atol=atol, rtol=0)


@pytest.mark.slow
@needs_ptxas
@pytest.mark.parametrize("arch", ["sm_100a", "sm_103a"])
def test_ptxas_spills_nothing(arch):
    tensors, *_ = arguments(*CASES["three chunks"])
    check_resources(StateSpaceScan(), tensors, arch)
