"""`ops.attention` by tcgen05 on the simulator, against float64; its machine code by ptxas."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLTypeError
from basedsl_cute.hardware.targets import ENVIRONMENT_VARIABLE
from basedsl_cute.lowering.ptx import ptxas
from basedsl_cute.ops import attention
from basedsl_cute.ops.ampere import attention as ampere
from basedsl_cute.ops.blackwell import attention as blackwell
from basedsl_cute.ops.flash import attention as flash
from basedsl_cute.ops.flash.arguments import Extents
from basedsl_cute.ops.flash.variant import Variant

sys.path.insert(0, str(Path(__file__).parents[1] / "flash"))

from attention_reference import reference

ml_dtypes = pytest.importorskip("ml_dtypes")


def operands(batches, queries, keys, heads, key_heads, head, dtype=np.float16, seed=0):
    rng = np.random.default_rng(seed)
    shapes = ((queries, heads), (keys, key_heads), (keys, key_heads))
    return [rng.standard_normal((batches, *s, head)).astype(dtype) for s in shapes]


def check(q, k, v, config, wanted, **options):
    out = np.full((*q.shape[:3], v.shape[3]), np.nan, q.dtype)
    _, lse = attention(q, k, v, out=out, return_lse=True, config=config, **options)
    values, logs = reference(q, k, v, **wanted)
    coarse = 2e-2 if q.dtype == ml_dtypes.bfloat16 else 4e-3
    np.testing.assert_allclose(out.astype(float), values, atol=coarse, rtol=0)
    np.testing.assert_array_equal(np.isneginf(lse), np.isneginf(logs))
    np.testing.assert_allclose(lse, logs, atol=2e-3)


CASES = {
    "part of a tile": ((1, 100, 90, 1, 1, 64), {}, {}),
    "causal, groups": ((1, 300, 300, 2, 1, 64), {"causal": True}, {"right": 0}),
    "128 wide, batches": ((2, 130, 200, 1, 1, 128), {}, {}),
    "rows that see nothing": ((1, 300, 150, 1, 1, 64), {"causal": True}, {"right": 0}),
    "window": ((1, 200, 390, 1, 1, 64), {"window": (40, 3)}, {"left": 40, "right": 3}),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_against_float64(name):
    sizes, options, wanted = CASES[name]
    check(*operands(*sizes), blackwell.Config(), wanted, **options)


SLOPES = np.array([0.5, 0.0625], np.float32)
SINKS = np.array([1.5, -0.5], np.float32)
TABLE = np.linspace(-2, 2, 64, dtype=np.float32)


def bent(score, batch, head, query, key):
    return score * 0.5 + cute.Float32(head) * 0.25 + TABLE[(query + key) % 64]


def bent_reference(s, batch, head, query, key):
    return s * 0.5 + head * 0.25 + TABLE[(query + key) % 64]


def of_a_part(batch, head, query, key):
    return (query // 48 == key // 48) | (key == head)


def softcapped(s, *place):
    return 5 * np.tanh(s / 5)


def sloped(s, batch, head, query, key, shift):
    return s - SLOPES[head] * abs(key - query - shift)


def variants(queries, keys):
    """Options of attention, and of its reference; sinks are counted afterwards."""
    shift = keys - queries
    bias = np.random.default_rng(5).standard_normal((1, 2, queries, keys)).astype(np.float32)
    return {
        "softcap": ({"softcap": 5.0}, {"score": softcapped}),
        "softcap, causal": (
            {"softcap": 5.0, "causal": True}, {"score": softcapped, "right": 0},
        ),
        "alibi": ({"alibi": SLOPES}, {"score": lambda *x: sloped(*x, shift)}),
        "bias": (
            {"bias": bias, "window": (60, 3)},
            {"score": lambda s, b, h, i, j: s + bias[0, h, i, j], "left": 60, "right": 3},
        ),
        "a function": ({"score": bent}, {"score": bent_reference}),
        "a mask": ({"mask": of_a_part}, {"mask": of_a_part}),
        "a function and a mask, causal": (
            {"score": bent, "mask": of_a_part, "causal": True},
            {"score": bent_reference, "mask": of_a_part, "right": 0},
        ),
        "sinks": ({"sinks": SINKS}, {}),
        "sinks, rows that see nothing": ({"sinks": SINKS, "causal": True}, {"right": 0}),
        "sinks, softcap, alibi": (
            {"sinks": SINKS, "softcap": 5.0, "alibi": SLOPES},
            {"score": lambda s, *x: sloped(softcapped(s), *x, shift)},
        ),
    }  # fmt: skip


def check_variant(name, sizes, config=None, dtype=np.float16, seed=0):
    q, k, v = operands(*sizes, dtype, seed)
    options, wanted = variants(*sizes[1:3])[name]
    values, logs = reference(q, k, v, **wanted)
    if "sinks" in options:
        counted = np.logaddexp(logs, SINKS[:, None])
        values = values * np.exp(logs - counted).transpose(0, 2, 1)[..., None]
        logs = counted
    found, lse = attention(q, k, v, return_lse=True, config=config or blackwell.Config(), **options)
    coarse = 2e-2 if dtype == ml_dtypes.bfloat16 else 4e-3
    np.testing.assert_allclose(found.astype(float), values, atol=coarse, rtol=0)
    np.testing.assert_allclose(lse, logs, atol=4e-3)


@pytest.mark.slow
@pytest.mark.parametrize("name", variants(1, 1))
def test_functions_biases_and_sinks(name):
    nothing = "rows that see nothing" in name
    check_variant(name, (1, 200, 150 if nothing else 170, 2, 1, 64))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_random_variants(monkeypatch, seed):
    rng = np.random.default_rng(seed)
    blocks = int(rng.integers(1, 5))
    monkeypatch.setattr(flash, "_multiprocessors", lambda q: blocks)
    name = list(variants(1, 1))[seed % len(variants(1, 1))]
    queries, keys = (int(n) for n in rng.integers(1, 300, 2))
    head = int(rng.choice((64, 128)))
    config = blackwell.Config(
        stages=2, persistent=bool(rng.integers(2)), computed=int(rng.integers(5))
    )
    dtype = (np.float16, ml_dtypes.bfloat16)[rng.integers(2)]
    batches = 1 if name == "bias" else int(rng.integers(1, 3))
    sizes = batches, queries, keys, 2, int(rng.integers(1, 3)), head
    check_variant(name, sizes, config, dtype, seed)


def test_a_second_tile_of_queries():
    q, k, v = operands(1, 260, 60, 1, 1, 64)
    check(q, k, v, blackwell.Config(), {})


@pytest.mark.slow
def test_sums_are_scaled_when_scores_grow():
    """Keys that come last in the kernel's order, the first ones, have the largest scores by far."""
    q, k, v = operands(1, 130, 384, 1, 1, 64)
    k[:, :128] *= 8
    check(q, k, v, blackwell.Config(), {})


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"causal": True}], ids=["full", "causal"])
def test_a_block_that_stays_for_all_tasks(monkeypatch, options):
    monkeypatch.setattr(flash, "_multiprocessors", lambda q: 1)
    q, k, v = operands(1, 300, 300, 2, 1, 64)
    check(q, k, v, blackwell.Config(), {"right": 0} if options else {}, **options)


@pytest.mark.slow
def test_weights_by_polynomials():
    """Rows that see nothing are zeros, also in BFloat16; what is no number stays so."""
    q, k, v = operands(1, 300, 150, 1, 1, 64, ml_dtypes.bfloat16)
    check(q, k, v, blackwell.Config(computed=4), {"right": 0}, causal=True)
    q[0, 200, 0, 5] = np.nan
    out, lse = attention(q, k, v, causal=True, config=blackwell.Config(computed=4), return_lse=True)
    rows = np.isnan(out.astype(float)).all((0, 2, 3))
    assert rows[200] and rows.sum() == 1 and np.isnan(lse).sum() == 1
    k[0, 2, 0, 5] = np.nan  # queries 150 to 151 do not see it
    out = attention(q, k, v, causal=True, config=blackwell.Config(computed=4))
    rows = np.isnan(out.astype(float)).all((0, 2, 3))
    assert rows[152:].all() and not rows[:152].any()


@pytest.mark.slow
def test_rows_that_are_not_aligned_to_16_bytes():
    q, k, v = operands(1, 80, 80, 1, 1, 64)
    out = np.full((1, 80, 1, 66), np.nan, np.float16)
    attention(q, k, v, out=out[..., :64], config=blackwell.Config())
    np.testing.assert_allclose(out[..., :64], reference(q, k, v)[0], atol=4e-3)
    assert np.isnan(out[..., 64:]).all()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100))
def test_random_configurations(monkeypatch, seed):
    rng = np.random.default_rng(seed)
    blocks = int(rng.integers(1, 5))  # each of which stays for several tasks
    monkeypatch.setattr(flash, "_multiprocessors", lambda q: blocks)
    batches, key_heads, group = (int(n) for n in rng.integers(1, 3, 3))
    queries, keys = (int(n) for n in rng.integers(1, 400, 2))
    head = int(rng.choice((64, 128)))
    dtype = (np.float16, ml_dtypes.bfloat16)[rng.integers(2)]
    shift = keys - queries
    options, wanted = [
        ({}, {}),
        ({"causal": True}, {"right": 0}),
        ({"causal": "top-left"}, {"right": 0, "shift": 0}),
        ({"window": (50, 9)}, {"left": 50, "right": 9}),
    ][rng.integers(4)]
    config = blackwell.Config(stages=int(rng.integers(2, 4 if head == 64 else 3)),
                              persistent=bool(rng.integers(2)))  # fmt: skip
    scale = float(rng.uniform(0.05, 0.5))
    config = replace(config, computed=int(rng.integers(5)))
    given = operands(batches, queries, keys, key_heads * group, key_heads, head, dtype, seed)
    check(*given, config, {"shift": shift, **wanted, "scale": scale}, scale=scale, **options)


@pytest.mark.parametrize(("target", "dtype", "head", "variant", "kind"), [
    ("sm_100a", cute.Float16, (64, 64), Variant(), blackwell.Config),
    ("sm_103a", cute.BFloat16, (128, 128), Variant(right=0), blackwell.Config),
    ("sm_100f", cute.Float16, (128, 128), Variant(left=128, right=0), blackwell.Config),
    ("sm_100a", cute.Float16, (96, 96), Variant(), ampere.Config),
    ("sm_100a", cute.Float16, (128, 64), Variant(), ampere.Config),
    ("sm_100a", cute.Float16, (64, 64), Variant(softcap=2.0), blackwell.Config),
    ("sm_100a", cute.Float16, (128, 128), Variant(sinks=True), blackwell.Config),
    ("sm_100", cute.Float16, (64, 64), Variant(), ampere.Config),
    ("sm_120a", cute.Float16, (64, 64), Variant(), ampere.Config),
])  # fmt: skip
def test_attention_takes_the_kernel_that_the_target_has(
    monkeypatch, target, dtype, head, variant, kind
):
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, target)
    x = np.zeros((1, 512, 8, head[0]), np.float16)
    lib = flash.library(x, "attention")
    operand = flash.operands_of(lib, x, x, x, "bshd", False, False, None, flash.HALVES)["q"]
    extents = Extents(1, 4096, 4096, 8, 8, *head)
    assert isinstance(flash._chosen(extents, 4096, operand, variant, True), kind)


SCORED = {
    "softcap": Variant(softcap=5.0, right=0),
    "alibi": Variant(alibi=True),
    "sinks": Variant(sinks=True, left=100, right=0),
    "bias": Variant(bias=True),
}


@pytest.mark.slow
@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="there is no ptxas")
@pytest.mark.parametrize("name", SCORED)
@pytest.mark.parametrize("head", blackwell.HEADS)
def test_ptxas_spills_nothing_in_variants(monkeypatch, head, name):
    kernel = resources(monkeypatch, head, SCORED[name], "sm_100a")
    assert kernel.spills == kernel.local == 0
    assert kernel.registers * blackwell.THREADS <= 65536


def resources(monkeypatch, head, variant, arch):
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, arch)
    config = flash.blackwell_config(head, variant.right)
    x = np.zeros((1, 2, 256, head), np.float16).transpose(2, 3, 1, 0)
    lse = np.zeros((1, 2, 256), np.float32).transpose(2, 1, 0)
    slopes, sinks = (np.zeros(2, np.float32) for _ in range(2))
    bias = np.zeros((1, 2, 256, 256), np.float32).transpose(2, 3, 1, 0)
    extras = (
        slopes if variant.alibi else None,
        sinks if variant.sinks else None,
        bias if variant.bias else None,
    )
    compiled = cute.compile(
        flash._launch,
        *(x, x, x, x, lse, None, None, None),
        *((None,) * 4, extras, (), (None,) * 3),
        *(1.0, 1.0, 1, 256, 148, head, head, variant, config, False, 0),
        options=f"--gpu-arch {arch}",
    )
    (kernel,) = compiled.resources.values()
    return kernel


def test_what_the_kernel_lacks_is_an_error():
    q, k, v = operands(1, 8, 8, 1, 1, 32)
    with pytest.raises(DSLTypeError, match="no kernel for heads of 32"):
        attention(q, k, v, config=blackwell.Config())


@pytest.mark.slow
@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="there is no ptxas")
@pytest.mark.parametrize("arch", ["sm_100a", "sm_103a"])
@pytest.mark.parametrize("right", [None, 0])
@pytest.mark.parametrize("head", blackwell.HEADS)
def test_ptxas_spills_nothing(monkeypatch, head, right, arch):
    kernel = resources(monkeypatch, head, Variant(right=right), arch)
    assert kernel.spills == kernel.local == 0
    assert kernel.registers * blackwell.THREADS <= 65536
