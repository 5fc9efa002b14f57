"""Arguments of `ops` that were silent, or failed with an error of Python's."""

from __future__ import annotations

import numpy as np
import pytest

from basedsl import DSLCallError, DSLTypeError
from basedsl_cute.ops import gated_linear, matmul, rms_norm, rotary, sample, softmax, topk
from basedsl_cute.ops.gemm.footprint import Footprint

X = np.random.default_rng(0).standard_normal((16, 40)).astype(np.float16)
SQUARE = X[:, :16].copy()


@pytest.mark.slow  # each is compiled; of `a` and `b` see tests/cute/ampere/test_matmul.py
@pytest.mark.parametrize(
    "operands, out",
    [
        ({"a": X[:, 8:24]}, X[:, :16]),
        ({"b": X[:, 8:24]}, X[:, :16]),
        ({"residual": X[:, 8:24]}, X[:, :16]),
        ({"residual": X[:, :16].T}, X[:, :16]),
        ({"bias": X[3, :16]}, X[:, :16]),
    ],
)
def test_an_out_that_overlaps_an_operand(operands, out):
    a, b = operands.pop("a", SQUARE), operands.pop("b", SQUARE)
    with pytest.raises(DSLTypeError, match="out shares memory with"):
        matmul(a, b, out=out, **operands)


@pytest.mark.slow
def test_an_out_that_is_the_residual_or_lies_beside_the_operands():
    pitched = X.copy()
    out, a = pitched[:, 16:32], pitched[:, :16]
    wanted = (a.astype(np.float32) @ SQUARE.astype(np.float32) + out).astype(np.float16)
    matmul(a, SQUARE, residual=out, out=out)
    np.testing.assert_allclose(out, wanted, atol=2e-2)


@pytest.mark.parametrize("kind", [np.int8, np.int32, np.uint8])
def test_an_out_of_integers_is_asked_for(kind):
    """Fractions were cut off because the array at hand was of integers."""
    out = np.full((16, 16), 77, kind)
    with pytest.raises(DSLTypeError, match=r"out is of U?[Ii]nt.* with fractions"):
        matmul(SQUARE, SQUARE, out=out)
    assert (out == 77).all()
    whole = np.eye(16, dtype=np.float16)
    assert (matmul(whole, whole, out=out, out_dtype=kind) == np.eye(16)).all()


def test_an_out_of_truths_is_refused():
    with pytest.raises(DSLTypeError, match="no results of Boolean"):
        matmul(SQUARE, SQUARE, out=np.zeros((16, 16), bool))


def test_footprints():
    """Against NumPy, of views of one buffer with gaps and with negative strides."""
    memory = np.zeros(4096, np.float32)
    draw = np.random.default_rng(1)
    shared = 0
    for _ in range(300):
        views = []
        for _ in range(2):
            shape = draw.integers(0, 6, 2)
            strides = draw.integers(-40, 40, 2)
            begin = 1000 + int(draw.integers(0, 60))
            view = np.lib.stride_tricks.as_strided(memory[begin:], shape, strides * 4)
            made = Footprint(tuple(map(int, shape)), tuple(map(int, strides)), 4)
            views.append((view, made, memory.ctypes.data + 4 * begin))
        (one, mine, at), (other, its, its_at) = views
        assert mine.shares(at, its, its_at) == np.shares_memory(one, other)
        shared += mine.shares(at, its, its_at)
    assert 20 < shared < 280


def test_arguments_of_other_kinds():
    logits = X.astype(np.float32)
    topk(logits, 1)  # True and 1.0 are equal to 1, and have its plan
    calls = [
        (lambda: matmul(SQUARE, SQUARE, out_dtype=bool), "no results of Boolean"),
        (lambda: gated_linear(SQUARE, SQUARE, SQUARE, activation=None), "a gate has an activation"),
        (lambda: matmul(SQUARE, [1.0]), r"matmul \(b\) takes arrays of .* not a list"),
        (lambda: rms_norm(logits, 2.0), r"rms_norm \(weight\) takes arrays"),
        (lambda: rms_norm(logits, eps=None), "rms_norm: eps=None"),
        (lambda: rms_norm(logits, eps="1e-6"), "rms_norm: eps='1e-6'"),
        (lambda: rotary(logits[None], logits, [1.0]), r"rotary \(sin\) takes arrays"),
        (lambda: topk(logits, True), "k is True"),
        (lambda: topk(logits, 1.0), "k is 1.0"),
        (lambda: topk(logits, np.array(1)), "k is array"),
        (lambda: sample(logits, seed=1, temperature="1"), "temperature is '1'"),
        (lambda: sample(logits, seed=1, top_p=None), "top_p is None"),
    ]
    for call, message in calls:
        with pytest.raises((DSLTypeError, DSLCallError), match=message):
            call()


def test_arrays_that_begin_within_an_element():
    memory = np.zeros(160, np.uint8)
    begin = -memory.ctypes.data % 16 + 1
    x = memory[begin : begin + 128].view(np.float32).reshape(4, 8)
    heads = x.reshape(1, 4, 8)
    table = np.ones((1, 4), np.float32)
    for call in (
        lambda: softmax(x),
        lambda: rms_norm(x),
        lambda: topk(x, 2),
        lambda: sample(x, seed=1),
        lambda: rotary(heads, table, table),
    ):
        with pytest.raises(DSLTypeError, match="starts 1 bytes after a multiple"):
            call()


def test_options_of_rows_that_keep_nothing():
    """Their values are not checked: the index is -1, and never one beyond the row."""
    logits = X.astype(np.float32)
    heat = np.ones(16, np.float32)
    heat[:3] = -1, np.nan, 0
    found = sample(logits, seed=1, temperature=heat)
    assert found[:2].tolist() == [-1, -1] and found[2] == logits[2].argmax()
    assert (found[3:] >= 0).all()


ANGLES = np.zeros((16, 20), np.float32)
HEADS = X[:, None, :].astype(np.float32)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: matmul(X, X.T, tf32="no"), "matmul: tf32='no'"),
        (lambda: topk(X, 2, largest="no"), "topk: largest='no'"),
        (lambda: rotary(HEADS, ANGLES, ANGLES, interleaved="no"), "rotary: interleaved='no'"),
        (lambda: rotary(HEADS, ANGLES, ANGLES, inverse=1), "rotary: inverse=1"),
        (lambda: rms_norm(X, eps=True), "rms_norm: eps=True"),
    ],
)
def test_texts_and_numbers_are_no_truths(call, message):
    """Each text counted as true."""
    with pytest.raises(DSLTypeError, match=message):
        call()


def test_masked_arrays_are_refused():
    masked = np.ma.masked_greater(X, 0.5)
    for call in (lambda: matmul(masked, X.T), lambda: matmul(X, masked.T), lambda: softmax(masked)):
        with pytest.raises(DSLTypeError, match="masked array"):
            call()
