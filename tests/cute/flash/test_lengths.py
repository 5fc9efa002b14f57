"""The values of lengths and block tables of `ops.attention`, where the host can read them, and rows
of packed arrays that are of no sequence.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from basedsl import DSLTypeError
from basedsl_cute.ops import attention, attention_backward
from basedsl_cute.ops.array_libraries import library

sys.path.insert(0, str(Path(__file__).parent))

from attention_reference import close, gradients, normal, reference

Q, K, V = normal(11, 4, 32), normal(13, 2, 32, seed=1), normal(13, 2, 32, seed=2)
DENSE = normal(2, 11, 4, 32), normal(2, 9, 2, 32, seed=1), normal(2, 9, 2, 32, seed=2)
CACHES = normal(6, 16, 2, 32, seed=1), normal(6, 16, 2, 32, seed=2)


def ints(*numbers):
    return np.array(numbers, np.int32)


PACKED = {"cu_seqlens_q": ints(0, 4, 4, 11), "cu_seqlens_k": ints(0, 5, 9, 13)}


@pytest.mark.parametrize(
    "changed, message",
    [
        ({"cu_seqlens_q": ints(0, 4, 4, 12)}, "cu_seqlens_q ends at 12, and q has 11 rows"),
        ({"cu_seqlens_k": ints(0, 5, 9, 14)}, "cu_seqlens_k ends at 14, and k has 13 rows"),
        ({"cu_seqlens_q": ints(0, 8, 4, 11)}, "cu_seqlens_q has places below 0, or not in order"),
        ({"cu_seqlens_k": ints(-1, 5, 9, 13)}, "cu_seqlens_k has places below 0, or not in order"),
        ({"cu_seqlens_q": ints()}, "cu_seqlens_q is empty"),
        ({"max_seqlen_q": 6}, "max_seqlen_q is 6, and a sequence has 7 rows"),
        ({"max_seqlen_k": np.int64(4)}, "max_seqlen_k is 4, and a sequence has 5 rows"),
        ({"seqused_k": ints(5, 5, 4)}, "seqused_k is 5 for sequence 1 of 4 keys"),
    ],
)
def test_places_beyond_packed_arrays(changed, message):
    attention(Q, K, V, **PACKED)  # so that there is a plan
    with pytest.raises(DSLTypeError, match=message):
        attention(Q, K, V, **(PACKED | changed))


def test_a_longest_sequence_is_no_longer_than_its_array():
    """Blocks are launched for it."""
    found = attention(Q, K, V, **PACKED, max_seqlen_q=2**40, max_seqlen_k=2**40)
    np.testing.assert_array_equal(found, attention(Q, K, V, **PACKED))


@pytest.mark.parametrize(
    "options, message",
    [
        ({"seqused_k": ints(9, 10)}, "seqused_k is 10 for sequence 1 of 9 keys"),
        ({"seqused_k": ints(-1, 9)}, "seqused_k is -1 for sequence 0 of 9 keys"),
        ({"max_seqlen_q": 3}, "max_seqlen_q=3, and sequences have 11 rows"),
        ({"max_seqlen_k": 3}, "max_seqlen_k=3, and sequences have 9 rows"),
    ],
)
def test_numbers_of_keys_beyond_arrays(options, message):
    attention(*DENSE, seqused_k=ints(9, 9))
    with pytest.raises(DSLTypeError, match=message):
        attention(*DENSE, **options)


@pytest.mark.parametrize(
    "table, used, message",
    [
        ([[3, 6], [0, 5]], (17, 5), "block_table has page 6 for sequence 0, and there are 6"),
        ([[3, 1], [-1, 5]], (17, 5), "block_table has page -1 for sequence 1"),
        ([[3, 1], [0, 5]], (33, 5), "seqused_k is 33 for sequence 0 of 32 keys"),
    ],
)
def test_pages_beyond_a_cache(table, used, message):
    with pytest.raises(DSLTypeError, match=message):
        attention(DENSE[0], *CACHES, block_table=ints(*table), seqused_k=ints(*used))


def test_pages_behind_the_last_key_are_not_looked_at():
    beyond = ints([3, -7], [5, 2**31 - 1])
    for used in ((16, 5), (0, 1)):
        found, wanted = (
            attention(DENSE[0], *CACHES, block_table=table, seqused_k=ints(*used))
            for table in (beyond, ints([3, 0], [5, 0]))
        )
        np.testing.assert_array_equal(found, wanted)


def test_keys_are_packed_or_in_pages():
    with pytest.raises(DSLTypeError, match="cu_seqlens_k is for packed keys"):
        attention(*(Q, *CACHES), **PACKED, block_table=ints([0], [1], [2]), seqused_k=ints(1, 1, 1))


@pytest.fixture
def poisoned(monkeypatch):
    """New arrays are not numbers."""
    kind = type(library(Q))
    empty = kind.empty

    def made(self, *given):
        x = empty(self, *given)
        x[...] = np.nan
        return x

    monkeypatch.setattr(kind, "empty", made)
    monkeypatch.setattr(kind, "empty_like", lambda self, x: made(self, x.shape, x.dtype, x))


@pytest.mark.parametrize("again", [False, True])
def test_rows_of_no_sequence_have_no_gradient(poisoned, again):
    """Gradients of weights are sums over all rows."""
    starts = {"cu_seqlens_q": ints(2, 5, 9), "cu_seqlens_k": ints(1, 7, 10)}
    for _ in range(3 if again else 1):
        out, lse = attention(Q, K, V, **starts, return_lse=True)
        out[:2] = out[9:] = 0
        grad = normal(*out.shape, seed=3)
        found = attention_backward(grad, Q, K, V, out, lse, **starts)
    wanted = [np.zeros(x.shape) for x in (Q, K, V)]
    for rows, keys in ((slice(2, 5), slice(1, 7)), (slice(5, 9), slice(7, 10))):
        one = gradients(*(x[None, rows] for x in (grad, Q)), *(x[None, keys] for x in (K, V)))
        for x, part, own in zip(wanted, one, (rows, keys, keys), strict=True):
            x[own] = part[0]
    for one, other in zip(found, wanted, strict=True):
        close(one, other, 1e-2)


def test_no_sequences_have_no_gradient(poisoned):
    out, lse = attention(Q, K, V, cu_seqlens_q=ints(0), cu_seqlens_k=ints(0), return_lse=True)
    found = attention_backward(out, Q, K, V, out, lse, cu_seqlens_q=ints(0), cu_seqlens_k=ints(0))
    assert not any(x.any() for x in found)


@pytest.mark.parametrize("sink", [0.0, 1e4, 1e30, -1e30])
@pytest.mark.parametrize("large", [1.0, 2.0**100])
def test_sinks_beside_scores_of_any_size(sink, large):
    """A difference of equal ones is zero, and not what a product was rounded by."""
    q, k, v = (x[:1].astype(np.float32) for x in DENSE)
    sinks = np.full(4, sink, np.float32)
    found, lse = attention(
        *(x.astype(np.float16) for x in (q, k, v)), scale=large, sinks=sinks, return_lse=True
    )
    values, logs = reference(*(x.astype(np.float16) for x in (q, k, v)), scale=large)
    whole = np.logaddexp(logs, sink)
    close(found, values * np.exp(logs - whole).transpose(0, 2, 1)[..., None])
    np.testing.assert_allclose(lse, whole, rtol=1e-5, atol=4e-3)


@pytest.mark.parametrize(
    "name, changed, message",
    [
        ("out", DENSE[0][:, :5], "out is .2, 5, 4, 32."),
        ("out", DENSE[0].astype(np.float32), "out is .2, 11, 4, 32. of float32"),
        ("grad", DENSE[0][:, :5], "grad is"),
        ("lse", np.zeros((2, 11, 4), np.float32), "lse is"),
        ("lse", [0.0], "takes arrays"),
        ("grad_bias", np.zeros((11, 9), np.float16), "grad_bias is of float16"),
    ],
)
def test_bad_arguments_of_gradients(name, changed, message):
    q, k, v = DENSE
    given = {"grad": q, "out": q, "lse": np.zeros((2, 4, 11), np.float32)}
    given |= {"bias": np.zeros((11, 9), np.float32), "grad_bias": np.zeros((11, 9), np.float32)}
    given[name] = changed
    grad = given.pop("grad")
    with pytest.raises(DSLTypeError, match=message):
        attention_backward(grad, q, k, v, given.pop("out"), given.pop("lse"), **given)
