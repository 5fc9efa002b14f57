"""`ops.attention` against float64, on the simulator or the GPU that is there."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from basedsl import DSLTypeError
from basedsl_cute.ops import attention
from basedsl_cute.ops.ampere.attention import Config
from basedsl_cute.ops.flash import attention as flash
from basedsl_cute.ops.hopper import attention as hopper

sys.path.insert(0, str(Path(__file__).parent))

from attention_reference import close, normal, pages_of, reference

SMALL = Config(tile=(32, 32), warps=2)  # few operations, so that it compiles fast
BIAS = np.random.default_rng(7).standard_normal((4, 70, 90)).astype(np.float32)


@pytest.fixture(scope="module")
def qkv():
    return normal(2, 70, 4, 64), normal(2, 90, 2, 64, seed=1), normal(2, 90, 2, 96, seed=2)


SLOPES = np.float32([0.1, 0.2, 0.3, 0.4])


def capped(s, *_):
    return 2 * np.tanh(s / 2)


def biased(s, *_):
    return s + BIAS


def sloped(s, batch, head, q, k):
    return s - SLOPES[head] * abs(k - q - 20)


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, {}),
        ({"causal": True}, {"right": 0}),
        ({"causal": "top-left"}, {"right": 0, "shift": 0}),
        ({"window": (10, 3)}, {"left": 10, "right": 3}),
        (
            {"window": (10, None), "causal": True, "scale": 0.5},
            {"left": 10, "right": 0, "scale": 0.5},
        ),
        ({"softcap": 2.0}, {"score": capped}),
        ({"bias": BIAS}, {"score": biased}),
        ({"alibi": SLOPES}, {"score": sloped}),
    ],
    ids=["plain", "causal", "top-left", "window", "scale", "softcap", "bias", "alibi"],
)
def test_options(qkv, options, wanted):
    out, lse = attention(*qkv, return_lse=True, config=SMALL, **options)
    values, logs = reference(*qkv, **wanted)
    close(out, values)
    close(lse, logs, 2e-3)


@pytest.mark.parametrize(
    ("options", "wanted", "tile"),
    [
        ({}, {}, (64, 64)),
        ({"causal": True}, {"right": 0}, (128, 64)),
        ({"window": (10, 3)}, {"left": 10, "right": 3}, (192, 48)),
        ({"bias": BIAS}, {"score": biased}, (64, 80)),
    ],
    ids=["plain", "causal", "window", "bias"],
)
def test_the_kernel_for_hopper(qkv, options, wanted, tile):
    config = hopper.Config(tile)
    out, lse = attention(*qkv, return_lse=True, config=config, **options)
    values, logs = reference(*qkv, **wanted)
    close(out, values)
    close(lse, logs, 2e-3)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"query_stages": 2, "turns": True}, marks=pytest.mark.slow),
        {"ahead": True, "late": 3},
        pytest.param({"between": False}, marks=pytest.mark.slow),
        {"query_stages": 2, "overlaps": True, "by_bits": True},
    ],
    ids=["turns", "late", "after", "overlaps"],
)
def test_blocks_of_hopper_that_stay_for_many_tiles(qkv, options, monkeypatch):
    monkeypatch.setattr(flash, "_multiprocessors", lambda q: 2)
    config = hopper.Config((64, 64), persistent=True, **options)
    out, lse = attention(*qkv, return_lse=True, config=config, causal=True)
    values, logs = reference(*qkv, right=0)
    close(out, values)
    close(lse, logs, 2e-3)


@pytest.mark.parametrize("config", [SMALL, hopper.Config((64, 64))], ids=["ampere", "hopper"])
def test_scores_whose_exponents_round_by_more_than_floats_hold(qkv, config):
    draw = np.random.default_rng(3).integers
    q, k = (draw(-2, 3, x.shape).astype(np.float16) for x in qkv[:2])
    q, k, v = q[:, :12], k[:, :40], qkv[2][:, :40]
    out, lse = attention(q, k, v, scale=2.0**28, return_lse=True, config=config)
    values, logs = reference(q, k, v, scale=2.0**28)
    close(out, values)
    np.testing.assert_allclose(lse, logs, rtol=1e-6)


def test_hopper_writes_rows_that_are_not_aligned_to_16_bytes():
    q, k, v = normal(1, 40, 1, 32), normal(1, 40, 1, 32, seed=1), normal(1, 40, 1, 32, seed=2)
    out = np.full((1, 40, 1, 34), np.nan, np.float16)
    attention(q, k, v, out=out[..., :32], config=hopper.Config((64, 48)))
    close(out[..., :32], reference(q, k, v)[0])
    assert np.isnan(out[..., 32:]).all()


def test_hopper_with_a_function_and_rows_that_see_nothing():
    q, k, v = normal(1, 80, 2, 64), normal(1, 40, 1, 64, seed=1), normal(1, 40, 1, 64, seed=2)

    def score(s, batch, head, q, k):
        return s * 0.5 if q > k else s - head

    def wanted(s, batch, head, q, k):
        return np.where(q > k, s * 0.5, s - head)

    config = hopper.Config((64, 32), stages=3)
    out, lse = attention(q, k, v, causal=True, score=score, return_lse=True, config=config)
    values, logs = reference(q, k, v, right=0, score=wanted)
    close(out, values)
    np.testing.assert_array_equal(np.isneginf(lse), np.isneginf(logs))


def test_sinks_take_part_without_a_value(qkv):
    sinks = np.float32([0.5, -1, 2, 0])
    out, lse = attention(*qkv, sinks=sinks, return_lse=True)
    values, logs = reference(*qkv)
    total = np.logaddexp(logs, sinks[:, None])
    close(out, values * np.exp(logs - total).transpose(0, 2, 1)[..., None])
    close(lse, total, 2e-3)


def test_a_layout_of_heads_first(qkv):
    swapped = (np.ascontiguousarray(x.transpose(0, 2, 1, 3)) for x in qkv)
    close(attention(*swapped, layout="bhsd").transpose(0, 2, 1, 3), reference(*qkv)[0])


def test_rows_that_see_nothing_are_zeros_and_minus_infinity():
    q, k, v = normal(1, 40, 2, 32), normal(1, 8, 2, 32, seed=1), normal(1, 8, 2, 32, seed=2)
    out, lse = attention(q, k, v, causal=True, return_lse=True)
    values, logs = reference(q, k, v, right=0)
    close(out, values)
    assert np.isneginf(lse[:, :, :32]).all() and np.isfinite(lse[:, :, 32:]).all()
    np.testing.assert_array_equal(np.isneginf(lse), np.isneginf(logs))


def test_not_a_number_travels_along_its_row(qkv):
    q, k, v = (x.copy() for x in qkv)
    q[0, 3, 1, 5] = np.nan
    out = attention(q, k, v)
    assert np.isnan(out[0, 3, 1]).all()
    assert np.isnan(out).sum() == out.shape[-1]


class TestFunctions:
    """Scores and masks that are functions of the user's."""

    def test_arrays_that_they_capture_are_operands(self, qkv):
        relative = np.zeros((4, 70, 90), np.float32)

        def score(s, batch, head, q, k):
            return s + relative[head, q, k]

        for _ in range(2):
            relative[:] = np.random.default_rng().standard_normal(relative.shape)
            found = attention(*qkv, score=score)
            close(found, reference(*qkv, score=lambda s, *_: s + relative)[0])

    def test_an_array_of_the_module(self, qkv):
        def score(s, batch, head, q, k):
            return s + BIAS[head, q, k]

        close(attention(*qkv, score=score), reference(*qkv, score=biased)[0])

    def test_plain_python(self, qkv):
        width = 25

        def score(s, batch, head, q, k):
            if q > k:
                return s * 0.5
            return s - head

        def mask(batch, head, q, k):
            return k <= q + 20 and (q - k < width or k < 2)

        def wanted_score(s, batch, head, q, k):
            return np.where(q > k, s * 0.5, s - head)

        def wanted_mask(batch, head, q, k):
            return (k <= q + 20) & ((q - k < width) | (k < 2))

        wanted, _ = reference(*qkv, score=wanted_score, mask=wanted_mask)
        close(attention(*qkv, score=score, mask=mask), wanted)

    @pytest.mark.parametrize("config", [None, hopper.Config((64, 32))], ids=["ampere", "hopper"])
    def test_tiles_that_a_mask_hides_are_not_read(self, config):
        """Elements there are no numbers, and does not reach any result."""
        q, k, v = (normal(1, 150, 1, 32, seed=i) for i in range(3))
        k[:, 32:64] = v[:, 32:64] = np.nan

        def mask(batch, head, q, k):
            return k <= q and not (k // 32 == 1)

        def wanted(batch, head, q, k):
            return (k <= q) & (k // 32 != 1)

        values, _ = reference(np.float64(q), np.nan_to_num(k), np.nan_to_num(v), mask=wanted)
        config = config or Config((64, 32))
        close(attention(q, k, v, mask=mask, config=config), values)

    def test_a_number_that_they_capture_may_change(self, qkv):
        factor = 0.5

        def score(s, batch, head, q, k):
            return s * factor

        close(attention(*qkv, score=score), reference(*qkv, score=lambda s, *_: s * 0.5)[0])
        factor = 2.0
        close(attention(*qkv, score=score), reference(*qkv, score=lambda s, *_: s * 2.0)[0])


class TestDecoding:
    """Few queries against many keys."""

    @pytest.mark.parametrize("window", [None, (50, 0)])
    def test_keys_are_split_over_blocks(self, window):
        q, k, v = normal(2, 1, 8, 64), normal(2, 700, 2, 64, seed=1), normal(2, 700, 2, 64, seed=2)
        out, lse = attention(q, k, v, window=window, return_lse=True)
        left, right = window or (None, None)
        values, logs = reference(q, k, v, left=left, right=right)
        close(out, values)
        close(lse, logs, 2e-3)

    @pytest.mark.parametrize(
        "options", [{}, {"slack": 8, "heads_first": True}], ids=["plain", "slack"]
    )
    def test_splits_with_sinks(self, options):
        q, k, v = normal(1, 2, 4, 32), normal(1, 300, 1, 32, seed=1), normal(1, 300, 1, 32, seed=2)
        sinks = np.float32([1, 2, 3, 4])
        config = Config((16, 32), 1, packed=4, splits=3, **options)
        out = attention(q, k, v, sinks=sinks, config=config, causal=True)
        values, logs = reference(q, k, v, right=0)
        total = np.logaddexp(logs, sinks[:, None])
        close(out, values * np.exp(logs - total).transpose(0, 2, 1)[..., None])

    def test_more_splits_than_tiles_of_keys(self):
        q, k, v = normal(1, 1, 2, 32), normal(1, 40, 1, 32, seed=1), normal(1, 40, 1, 32, seed=2)
        config = Config((16, 16), 1, packed=2, splits=70)
        out, lse = attention(q, k, v, return_lse=True, config=config)
        values, logs = reference(q, k, v)
        close(out, values)
        close(lse, logs, 2e-3)

    def test_a_cache_of_pages(self):
        rows, used = 16, np.int32([37, 90])
        pages = normal(20, rows, 2, 64, seed=1), normal(20, rows, 2, 64, seed=2)
        table = np.int32(np.random.default_rng(3).permutation(20)[:12].reshape(2, 6))
        q = normal(2, 3, 4, 64)
        out = attention(q, *pages, block_table=table, seqused_k=used, causal=True)
        for i, keys in enumerate(used):
            k, v = (x[table[i]].reshape(1, -1, 2, 64)[:, :keys] for x in pages)
            close(out[i : i + 1], reference(q[i : i + 1], k, v, right=0)[0])


def check_pages(rows, head, config):
    used = np.int32([37, 90])
    table, caches, sequences = pages_of(used, rows, head)
    q = normal(2, 70, 4, head)
    out = attention(q, *caches, block_table=table, seqused_k=used, causal=True, config=config)
    for i, (k, v) in enumerate(sequences):
        close(out[i : i + 1], reference(q[i : i + 1], k, v, right=0)[0])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "head", "tile"), [(16, 64, (64, 48)), (64, 96, (64, 32)), (32, 128, (64, 64))]
)
def test_a_cache_of_pages_by_the_kernel_for_hopper(rows, head, tile):
    check_pages(rows, head, hopper.Config(tile, persistent=True))


@pytest.mark.parametrize("page", [12, 4])
def test_pages_that_the_kernel_for_hopper_does_not_take(page):
    with pytest.raises(DSLTypeError, match="no packed or paged sequences with"):
        check_pages(page, 64, hopper.Config((64, 48)))


@pytest.mark.parametrize(
    ("config", "causal"),
    [
        (None, False),
        (None, True),
        pytest.param(hopper.Config((64, 48)), True, marks=pytest.mark.slow),
        pytest.param(
            hopper.Config((128, 32), turns=True, persistent=True), False, marks=pytest.mark.slow
        ),
    ],
    ids=["plain", "causal", "hopper", "hopper persistent"],
)
def test_packed_sequences(config, causal):
    lengths = [(5, 9), (40, 40), (0, 7), (70, 33), (3, 0)]
    starts = [np.cumsum([0, *x]).astype(np.int32) for x in zip(*lengths, strict=True)]
    q, k, v = (normal(starts[i > 0][-1], heads, 64, seed=i) for i, heads in enumerate((4, 2, 2)))
    k, v = (np.concatenate([x, np.full_like(x[:9], np.nan)]) for x in (k, v))
    given = {"cu_seqlens_q": starts[0], "cu_seqlens_k": starts[1], "max_seqlen_q": 70}
    out, lse = attention(q, k, v, **given, causal=causal, return_lse=True, config=config)
    for i in range(len(lengths)):
        own, keys = (slice(s[i], s[i + 1]) for s in starts)
        right = 0 if causal else None
        values, logs = reference(q[None, own], k[None, keys], v[None, keys], right=right)
        close(out[own], values[0])
        close(lse[:, own], logs[0], 2e-3)


@pytest.mark.parametrize("shape", [(0, 5, 2, 32), (1, 0, 2, 32)])
def test_nothing_to_do(shape):
    q = normal(*shape)
    k = v = normal(shape[0], 4, 2, 32)
    assert attention(q, k, v).shape == shape


def test_no_keys():
    q, k = normal(1, 3, 2, 32), normal(1, 0, 2, 32)
    out, lse = attention(q, k, k, return_lse=True)
    assert (out == 0).all() and np.isneginf(lse).all()


def test_views_are_copied_where_kernels_need_it():
    wide = normal(1, 20, 2, 35)
    q = wide[..., 1:33]
    close(attention(q, q, q), reference(q, q, q)[0])


def test_modes_of_one_element_have_any_stride():
    q, k, v = (normal(1, 1, 70, 32, seed=i) for i in range(3))
    odd = [np.lib.stride_tricks.as_strided(x, (1, 70, 1, 32), (2, 64, 2, 2)) for x in (q, k, v)]
    wanted = reference(*(x.transpose(0, 2, 1, 3) for x in (q, k, v)))[0]
    close(attention(*odd), wanted)
    close(attention(*odd, config=hopper.Config((64, 64))), wanted)


def test_out_is_written(qkv):
    out = np.full((2, 70, 4, 96), np.nan, np.float16)
    assert attention(*qkv, out=out) is out
    close(out, reference(*qkv)[0])


@pytest.mark.parametrize(("head", "head_v"), [(40, 24), (64, 40)], ids=str)
def test_heads_that_no_kernel_has_are_padded(head, head_v):
    q, k = normal(1, 20, 2, head), normal(1, 24, 1, head, seed=1)
    v = normal(1, 24, 1, head_v, seed=2)
    wanted, logs = reference(q, k, v)
    found, lse = attention(q, k, v, config=SMALL, return_lse=True)
    assert found.shape == (1, 20, 2, head_v) and found.flags.c_contiguous
    close(found, wanted)
    close(lse, logs)
    out = np.full((1, 20, 2, 50), np.nan, np.float16)[..., 3 : 3 + head_v]
    assert attention(q, k, v, config=SMALL, out=out) is out
    close(out, wanted)


class Five:
    def __index__(self):
        return 5


@pytest.mark.parametrize("window", [(np.int64(5), np.uint8(3)), [Five(), 3]])
def test_windows_of_any_integers(window):
    q, k, v = normal(1, 40, 1, 32), normal(1, 40, 1, 32, seed=1), normal(1, 40, 1, 32, seed=2)
    close(attention(q, k, v, window=window), reference(q, k, v, left=5, right=3)[0])


@pytest.mark.parametrize("window", [(2**31 - 1, 2**31 - 1), (2**30, 2**40)], ids=str)
def test_windows_beyond_all_keys_hide_nothing(window):
    q, k, v = (normal(1, 20, 1, 32, seed=n) for n in range(3))
    close(attention(q, k, v, window=window, config=SMALL), reference(q, k, v)[0])
    wanted = reference(q, k, v, right=0)[0]
    close(attention(q, k, v, window=window, causal=True, config=SMALL), wanted)


@pytest.mark.parametrize("first", [1, 4])
def test_arrays_are_copied_that_are_not_aligned(first):
    q = normal(1 * 20 * 2 * 32 + first)[first:].reshape(1, 20, 2, 32)
    k, v = (normal(1, 24, 1, 33, seed=n)[..., 1:] for n in (1, 2))
    close(attention(q, k, v, config=SMALL), reference(q, k, v)[0])


Q = np.zeros((1, 8, 4, 64), np.float16)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ((Q, Q[..., :32], Q), {}, "heads of q have 64 elements, those of k 32"),
        ((Q, Q[:, :4], Q), {}, "k and v differ in length"),
        ((Q, Q[:, :, :3], Q[:, :, :3]), {}, "3 heads of keys cannot serve 4 of queries"),
        ((Q[0], Q, Q), {}, "q has 3 modes, not"),
        ((Q.astype(np.float32),) * 3, {}, "no kernel for elements of Float32"),
        ((Q, Q, [[1]]), {}, "takes arrays of PyTorch, CuPy, JAX or NumPy, not a list"),
        ((np.zeros((1, 8, 4, 72), np.float16), Q[..., :40], Q), {}, "72 elements, those of k 40"),
        (
            (np.zeros((1, 8, 4, 257), np.float16),) * 3,
            {},
            "heads of 257 elements .* have no kernel",
        ),
        (
            (Q, *[np.zeros((2, 8, 4, 40), np.float16)] * 2),
            {"block_table": np.zeros((1, 1), np.int32), "seqused_k": np.int32([8])},
            "pages of k have heads of 40 elements",
        ),
        ((Q, Q, Q), {"causal": "left"}, "causal='left'"),
        ((Q, Q, Q), {"layout": "sbhd"}, "no layout 'sbhd'"),
        ((Q, Q, Q), {"bias": np.zeros((3, 8, 8), np.float32)}, "bias of .* does not broadcast"),
        ((Q, Q, Q), {"bias": np.ones((8, 8), bool)}, "bias is Boolean"),
        ((Q, Q, Q), {"sinks": np.zeros(3, np.float32)}, r"sinks is \(3,\), not \(4,\)"),
        ((Q, Q, Q), {"score": "linear"}, "score= is a str"),
        ((Q, Q, Q), {"block_table": np.zeros((1, 1), np.int32)}, "block_table needs seqused_k"),
        ((Q, Q, Q), {"out": np.zeros((1, 8, 4, 32), np.float16)}, "out is"),
        ((Q, Q, Q), {"out": Q}, "out shares memory with q"),
        ((Q, Q, Q), {"window": 4}, "window=4"),
        ((Q, Q, Q), {"window": (4, -1)}, r"window=\(4, -1\)"),
        ((Q, Q, Q), {"window": (True, 7)}, r"window=\(True, 7\)"),
        ((Q, Q, Q), {"window": (6.0, 7)}, r"window=\(6.0, 7\)"),
        ((Q, Q, Q), {"softcap": np.inf}, "softcap=inf is not positive and finite"),
        ((Q, Q, Q), {"softcap": "2"}, "softcap='2' is not positive and finite"),
        ((Q, Q, Q), {"scale": np.array([0.5])}, "scale=array"),
        ((Q[:, :, :0], Q, Q), {}, "heads of keys cannot serve 0 of queries"),
        ((Q, Q, Q), {"softcap": 0}, "softcap=0 is not positive and finite"),
        ((Q, Q, Q), {"scale": "half"}, "scale='half'"),
        ((Q, Q, Q), {"scale": -0.5}, "scale=-0.5 is not positive"),
        ((Q, Q, Q), {"scale": 0}, "scale=0 is not positive"),
        ((Q, Q, Q), {"scale": "2"}, "scale='2'"),
        ((Q, Q, Q), {"scale": np.inf}, "scale=inf is not positive and finite"),
        ((Q, Q, Q), {"max_seqlen_q": -5}, "max_seqlen_q=-5"),
        ((Q, Q, Q), {"max_seqlen_q": 5.0}, "max_seqlen_q=5.0"),
        ((Q, Q, Q), {"sinks": [1.0] * 4}, r"attention \(sinks\) takes arrays"),
        ((Q, Q, Q), {"config": "fast"}, "config is a str"),
        ((Q, Q, Q), {"config": Config(warps=3)}, r"3 warps cannot share a tile \(64, 64\)"),
        ((Q, Q, Q), {"mask": lambda b, h, q, k: q - k}, "a mask returns an Int32"),
        ((Q, Q, Q), {"mask": lambda b, h, q, k: None}, "a mask returns a NoneType"),
        ((Q, Q, Q), {"score": lambda s, b, h, q, k: None}, "a score returns a NoneType"),
        ((Q, Q, Q), {"score": lambda s, b, h, q, k: k <= q}, "a score returns a Boolean"),
        ((Q[0], Q, Q), {"cu_seqlens_q": np.array([0.0, 8.0])}, "cu_seqlens_q is .* of Float64"),
        (
            (Q[0], Q[0], Q[0]),
            {"cu_seqlens_q": np.int32([0, 4, 8]), "cu_seqlens_k": np.int32([0, 8])},
            "2 batches of q, 1 of k",
        ),
    ],
)
def test_arguments_that_do_not_fit(arguments, options, message):
    with pytest.raises(DSLTypeError, match=message):
        attention(*arguments, **options)


@pytest.mark.parametrize(
    "fields",
    [{"stages": 0}, {"tile": (0, 64)}, {"tile": (64.0, 64)}, {"splits": -1}, {"slack": -5}],
)
def test_configurations_that_none_can_have(fields):
    with pytest.raises(ValueError, match=f"{next(iter(fields))}=.*: .* integer"):
        Config(**fields)
