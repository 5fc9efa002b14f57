"""Operations of `ops` into arrays of the caller's, of any alignment: JAX's are pieces of others."""

from __future__ import annotations

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute.ops.array_libraries import library
from basedsl_cute.ops.layer.norm import norm_backward, norm_into
from basedsl_cute.ops.layer.rotary import rotary_into
from basedsl_cute.ops.layer.sampling import draw
from basedsl_cute.ops.layer.softmax import softmax_backward, softmax_into
from basedsl_cute.ops.layer.topk import TopK, topk_into

X = np.random.default_rng(0).standard_normal((4, 8)).astype(np.float32)


def placed(shape, dtype, shift):
    """An array that begins `shift` elements after a multiple of 64 bytes, poisoned."""
    memory = np.full(np.prod(shape) + 64, 99, dtype)
    begin = -(memory.ctypes.data // memory.itemsize) % (64 // memory.itemsize) + shift
    return memory[begin : begin + np.prod(shape)].reshape(shape)


def into_topk(shift):
    found = TopK(placed((4, 3), np.float32, shift), placed((4, 3), np.int32, shift))
    topk_into(found, X, 3, True)
    return np.concatenate(found, axis=1)


def into_softmax(shift):
    return softmax_into(placed((4, 8), np.float32, shift), X)


def into_softmax_gradient(shift):
    return softmax_backward(X, X, placed((4, 8), np.float32, shift))


def into_norm(shift):
    out = [placed((4, 8), np.float32, shift)]
    return norm_into(out, "layer_norm", X, X[0], X[1], None, 1e-5)


def into_norm_gradient(shift):
    out = placed((4, 8), np.float32, shift)
    return norm_backward("rms_norm", X, X, X[0], None, 1e-5, out=out).x


def into_rotary(shift):
    y = placed((1, 4, 8), np.float32, shift)
    return rotary_into(y, X.reshape(1, 4, 8), X[:1, :4], X[1:2, :4], False, False)


def into_sample(shift):
    found = placed((4,), np.int32, shift)
    return draw(library(X), X, 1, 0, [None] * 4, [1.0, 0, 1.0, 0.0], found)


@pytest.mark.parametrize(
    "call",
    [
        into_topk,
        into_softmax,
        into_rotary,
        pytest.param(into_softmax_gradient, marks=pytest.mark.slow),
        pytest.param(into_norm, marks=pytest.mark.slow),
        pytest.param(into_norm_gradient, marks=pytest.mark.slow),
        pytest.param(into_sample, marks=pytest.mark.slow),
    ],
)
def test_outputs_of_any_alignment(call):
    aligned = np.array(call(0))
    np.testing.assert_allclose(call(1), aligned, atol=1e-6)
    assert not (aligned == 99).any()


def test_words_take_the_place_of_seed_and_offset():
    words = np.array([7, 1, 5, 2], np.uint32)
    options = [None] * 4, [1.0, 0, 1.0, 0.0]
    found = draw(library(X), X, 0, 0, *options, words=words)
    np.testing.assert_array_equal(found, draw(library(X), X, 2**32 + 7, 2**33 + 5, *options))
    assert found.dtype == cute.Int64.numpy_dtype
