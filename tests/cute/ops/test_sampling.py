"""Sampling of `ops` against NumPy with the same random words, and its frequencies."""

from __future__ import annotations

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLCallError, DSLTypeError
from basedsl_cute.ops import sample
from basedsl_cute.ops.layer import rows
from basedsl_cute.ops.layer.philox import philox


def words(counter, key):
    """Philox4x32-10 of arrays of counters, by NumPy."""
    c = [np.asarray(x, np.uint64) for x in counter]
    k = [np.uint64(x) for x in key]
    low = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        one, other = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [
            (other >> np.uint64(32)) ^ c[1] ^ k[0],
            other & low,
            (one >> np.uint64(32)) ^ c[3] ^ k[1],
            one & low,
        ]
        k = [(k[0] + np.uint64(0x9E3779B9)) & low, (k[1] + np.uint64(0xBB67AE85)) & low]
    return c


def test_known_words():
    """The answers that come with the paper's program, of zeros and of ones."""
    at_zero = [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    at_ones = [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]

    @cute.kernel
    def kernel(x: cute.Tensor):
        for n in cute.range_constexpr(2):
            one = 0xFFFFFFFF * n
            found = philox((one,) * 4, (one,) * 2)
            for i in cute.range_constexpr(4):
                x[n, i] = found[i]

    @cute.jit
    def launch(x: cute.Tensor):
        kernel(x).launch(grid=1, block=1)

    x = np.zeros((2, 4), np.uint32)
    launch(x)
    assert x.tolist() == [at_zero, at_ones]
    assert [int(w) for w in words((0,) * 4, (0, 0))] == at_zero


def kept(row, temperature=1.0, top_k=0, top_p=1.0, min_p=0.0):
    """The elements of a row that are kept."""
    if temperature == 0:
        return row == row.max()
    p = np.exp((row - row.max()).astype(np.float64) / temperature)
    found = np.ones(len(row), bool) if not top_k else row >= np.sort(row)[-min(top_k, len(row))]
    if top_p < 1:
        mass = np.where(found, p, 0)
        above = np.array([mass[row > x].sum() for x in row])
        found &= (above < top_p * mass.sum()) | (row == row.max())
    return found & (p >= min_p)


def wanted(logits, seed=0, offset=0, **options):
    found = []
    for n, row in enumerate(logits.astype(np.float32)):
        mine = {name: x[n] if np.ndim(x) else x for name, x in options.items()}
        index = np.arange(len(row))
        counter = (index // 4, np.full(len(row), n), offset & 0xFFFFFFFF, offset >> 32)
        four = np.stack(np.broadcast_arrays(*words(counter, (seed & 0xFFFFFFFF, seed >> 32))))
        u = (four[index % 4, index].astype(np.float64) + 0.5) / 2**32
        temperature = mine.get("temperature", 1.0)
        score = (row - row.max()).astype(np.float64) / (temperature or 1)
        if temperature:
            score -= np.log(-np.log1p(-u))
        found.append(np.where(kept(row, **mine), score, -np.inf).argmax())
    return np.array(found)


def logits(*shape, seed=0, dtype=np.float32):
    return (np.random.default_rng(seed).standard_normal(shape) * 3).astype(dtype)


CASES = [
    {},
    {"temperature": 0.0},
    {"temperature": 0.7, "top_k": 5},
    {"top_p": 0.6},
    {"temperature": 1.5, "top_k": 9, "top_p": 0.8, "min_p": 0.02},
]


@pytest.mark.parametrize("options", CASES, ids=str)
def test_draws(options):
    x = logits(6, 44)
    seed, offset = 2**40 + 17, 2**33 + 5
    found = sample(x, seed=seed, offset=offset, **options)
    assert found.dtype == np.int64
    np.testing.assert_array_equal(found, wanted(x, seed, offset, **options))


@pytest.mark.parametrize("shape", [(5, 7), (2, 1032), (3, 229)])
def test_rows_of_other_lengths(shape, monkeypatch):
    """No whole vector, several warps, the blocks of a cluster."""
    monkeypatch.setattr(rows, "_ALONE", 64 if shape[1] == 229 else 16384)
    monkeypatch.setattr(rows, "_SHARE", 64)
    x = logits(*shape)
    options = {"top_k": 40, "top_p": 0.9}
    np.testing.assert_array_equal(sample(x, seed=3, **options), wanted(x, 3, **options))


def test_numbers_for_each_row():
    x = logits(2, 2, 40, dtype=np.float16)
    f32 = np.float32
    options = {
        "temperature": np.array([[1, 0], [0.5, 2]], f32),
        "top_k": np.array([[0, 3], [2, 60]], np.int32),
        "top_p": np.array([[0.5, 1], [1, 0]], f32),
        "min_p": np.array([[0, 0], [0, 0.5]], f32),
    }
    found = sample(x, seed=5, **options)
    right = wanted(x.reshape(4, 40), 5, **{name: o.ravel() for name, o in options.items()})
    np.testing.assert_array_equal(found, right.reshape(2, 2))


def test_frequencies():
    p = np.array([0.5, 0.3, 0.15, 0.05], np.float32)
    found = sample(np.tile(np.log(p), (4000, 1)), seed=1)
    counts = np.bincount(found, minlength=4) / 4000
    np.testing.assert_allclose(counts, p, atol=4 * np.sqrt(0.25 / 4000))


def test_rows_without_probabilities():
    x = logits(5, 40)
    x[0, 3], x[1, 3], x[2], x[3, 1:] = np.nan, np.inf, -np.inf, -np.inf
    found = sample(x, seed=0, top_k=3, top_p=0.9)
    assert found[:4].tolist() == [-1, -1, -1, 0] and 0 <= found[4] < 40
    assert sample(x[4], seed=0).shape == () and sample(x[:0], seed=0).shape == (0,)


def test_what_does_not_fit():
    x = logits(3, 40)
    with pytest.raises(DSLCallError, match=r"top_p is 1\.5"):
        sample(x, seed=0, top_p=1.5)
    with pytest.raises(DSLCallError, match="temperature is -1"):
        sample(x, seed=0, temperature=-1)
    with pytest.raises(DSLCallError, match=r"seed is 0\.5"):
        sample(x, seed=0.5)
    with pytest.raises(DSLCallError, match="top_k is -2"):
        sample(x, seed=0, top_k=-2)
    with pytest.raises(DSLTypeError, match=r"top_p is Float64 of \(3,\)"):
        sample(x, seed=0, top_p=np.ones(3))
    with pytest.raises(DSLTypeError, match="logits is of Int32"):
        sample(x.astype(np.int32), seed=0)
