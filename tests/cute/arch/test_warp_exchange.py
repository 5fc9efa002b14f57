"""Shuffles, votes, warp reductions, single instructions and inline PTX."""

from __future__ import annotations

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLError
from basedsl_cute import arch

RNG = np.random.default_rng(3)


def per_thread(function, *arrays, out=np.int32, threads=64):
    """`function` of the thread's elements, in every thread of a block."""

    @cute.kernel
    def kernel(inputs: tuple, y: cute.Tensor):
        t = arch.thread_idx()[0]
        y[t] = function(*[x[t] for x in inputs])

    @cute.jit
    def host(inputs: tuple, y: cute.Tensor):
        kernel(inputs, y).launch(grid=1, block=threads)

    y = np.zeros(threads, out)
    host(arrays, y)
    return y


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.float64, np.int8, np.int64])
def test_shuffles_carry_every_width(target, dtype):
    x = RNG.integers(-100, 100, 64).astype(dtype) if np.dtype(dtype).kind == "i" else (
        RNG.standard_normal(64).astype(dtype)
    )  # fmt: skip
    lane = np.arange(64) % 32
    base = np.arange(64) - lane
    got = per_thread(lambda v: arch.shuffle_sync_bfly(v, 5), x, out=dtype)
    np.testing.assert_array_equal(got, x[base + (lane ^ 5)])
    got = per_thread(lambda v: arch.shuffle_sync(v, 7), x, out=dtype)
    np.testing.assert_array_equal(got, x[base + 7])
    got = per_thread(lambda v: arch.shuffle_sync_up(v, 3), x, out=dtype)
    np.testing.assert_array_equal(got, x[base + np.where(lane >= 3, lane - 3, lane)])
    got = per_thread(lambda v: arch.shuffle_sync_down(v, 3), x, out=dtype)
    np.testing.assert_array_equal(got, x[base + np.where(lane < 29, lane + 3, lane)])


def test_groups_of_four_lanes(target):
    x = np.arange(64, dtype=np.int32)
    got = per_thread(lambda v: arch.shuffle_sync(v, 2, mask_and_clamp=7199), x)
    np.testing.assert_array_equal(got, x // 4 * 4 + 2)


@pytest.mark.parametrize("group", [1, 4, 32])
def test_warp_reductions(target, group):
    x = RNG.integers(0, 1000, 64).astype(np.float32)
    groups = x.reshape(-1, group)
    got = per_thread(lambda v: arch.warp_reduction_sum(v, group), x, out=np.float32)
    np.testing.assert_array_equal(got, np.repeat(groups.sum(1), group))
    got = per_thread(lambda v: arch.warp_reduction_max(v, group), x, out=np.float32)
    np.testing.assert_array_equal(got, np.repeat(groups.max(1), group))
    got = per_thread(lambda v: arch.warp_reduction(v, arch.fmin, group), x, out=np.float32)
    np.testing.assert_array_equal(got, np.repeat(groups.min(1), group))


def test_redux_and_votes(target):
    x = RNG.integers(-50, 50, 64).astype(np.int32)
    warps = x.reshape(2, 32)
    for kind, function in (("add", np.sum), ("min", np.min), ("max", np.max)):
        got = per_thread(lambda v, kind=kind: arch.warp_redux_sync(v, kind), x)
        np.testing.assert_array_equal(got, np.repeat(function(warps, axis=1), 32))
    got = per_thread(lambda v: arch.popc(arch.vote_ballot_sync(v > 0)), x)
    np.testing.assert_array_equal(got, np.repeat((warps > 0).sum(1), 32))
    y = np.where(np.arange(64) < 32, 1, x).astype(np.int32)
    for vote, function in (
        (arch.vote_any_sync, lambda p: p.any(1)),
        (arch.vote_all_sync, lambda p: p.all(1)),
        (arch.vote_uni_sync, lambda p: p.all(1) | ~p.any(1)),
    ):
        got = per_thread(lambda v, vote=vote: vote(v > 0).to(cute.Int32), y)
        np.testing.assert_array_equal(got, np.repeat(function(y.reshape(2, 32) > 0), 32))


def test_single_instructions(target):
    x = RNG.standard_normal(64).astype(np.float32)
    got = per_thread(lambda v: arch.fmax(v, 0.0) + arch.fmin(v, 0.0), x, out=np.float32)
    np.testing.assert_array_equal(got, x)
    got = per_thread(arch.rcp_approx, x, out=np.float32)
    np.testing.assert_allclose(got, 1 / x, rtol=1e-6)
    bits = RNG.integers(0, 2**31, 64).astype(np.int32)
    got = per_thread(lambda v: arch.prmt(v, 0, 0x0123), bits)
    np.testing.assert_array_equal(got, bits.byteswap())


def test_pairs_of_floats(target):
    x, y, z = (RNG.standard_normal(64).astype(np.float32) for _ in range(3))

    def all_four(a, b, c):
        pair = arch.fma_packed_f32x2((a, b), (b, 2.0), (c, c))
        pair = arch.mul_packed_f32x2(pair, (2, 3))
        pair = arch.sub_packed_f32x2(pair, (a, a))
        low, high = arch.add_packed_f32x2(pair, (1.0, b))
        return low - high

    fused = [np.float64(a) * b + z for a, b in ((x, y), (y, np.float32(2)))]
    low, high = (w.astype(np.float32) for w in fused)
    low, high = low * np.float32(2) - x + np.float32(1), high * np.float32(3) - x + y
    got = per_thread(all_four, x, y, z, out=np.float32)
    np.testing.assert_allclose(got, low - high, rtol=1e-5, atol=1e-5)
    with pytest.raises(DSLError, match=r"mul_packed_f32x2\(\) takes pairs"):
        per_thread(lambda a: arch.mul_packed_f32x2(a, (1, 2))[0], x, out=np.float32)


@pytest.mark.parametrize(
    "kind, space, instruction",
    [
        (arch.ProxyKind.async_shared, arch.SharedSpace.shared_cta, "async.shared::cta"),
        ("async.shared", "cluster", "async.shared::cluster"),
        (arch.ProxyKind.async_shared, None, "async.shared::cta"),
        (arch.ProxyKind.async_global, None, "async.global"),
        (arch.ProxyKind.async_, None, "async"),
        ("alias", None, "alias"),
    ],
)
def test_proxies_have_names_and_texts(kind, space, instruction):
    def fenced(x):
        arch.fence_proxy(kind, space=space)
        return x

    assert f"fence.proxy.{instruction};" in ptx_of(fenced, np.zeros(4, np.float32))


def ptx_of(function, *arrays, out=np.float32):
    @cute.kernel
    def kernel(inputs: tuple, y: cute.Tensor):
        t = arch.thread_idx()[0]
        y[t] = function(*[x[t] for x in inputs])

    @cute.jit
    def host(inputs: tuple, y: cute.Tensor):
        kernel(inputs, y).launch(grid=1, block=64)

    compiled = cute.compile(host, arrays, np.zeros(64, out), options="--arch sm_90a")
    return compiled.stages.text("ptx")


def test_instructions_in_ptx():
    x, i = np.zeros(64, np.float32), np.zeros(64, np.int32)
    assert "shfl.sync.bfly.b32" in ptx_of(lambda v: arch.shuffle_sync_bfly(v, 1), x)
    assert "redux.sync.max.s32" in ptx_of(lambda v: arch.warp_redux_sync(v, "max"), i, out=np.int32)
    assert "popc.b32" in ptx_of(arch.popc, i, out=np.int32)
    assert "max.f32" in ptx_of(lambda v: arch.fmax(v, 1.0), x)
    assert "prmt.b32" in ptx_of(lambda v: arch.prmt(v, v, v), i, out=np.int32)


def test_inline_ptx():
    x, h = np.zeros(64, np.float32), np.zeros(64, np.float16)
    text = ptx_of(lambda v: arch.inline_ptx("tanh.approx.f32 $0, $1;", [v], cute.Float32), x)
    assert "tanh.approx.f32" in text
    text = ptx_of(
        lambda v: arch.inline_ptx("tanh.approx.f16 $0, $1;", [v], cute.Float16), h, out=np.float16
    )
    assert "tanh.approx.f16" in text

    def two(v):
        whole, rest = arch.inline_ptx(
            "cvt.rzi.s32.f32 $0, $2; mov.f32 $1, $2;", [v], (cute.Int32, cute.Float32)
        )
        return rest - whole

    assert "cvt.rzi.s32.f32" in ptx_of(two, x)


def test_what_is_refused(sim):
    x = np.zeros(64, np.float32)
    for text, wrong in {
        "1, 2, 4, 8, 16 or 32 threads": lambda v: arch.warp_reduction_sum(v, 12),
        "no redux.sync 'add' of Float32": lambda v: arch.warp_redux_sync(v, "add"),
        "there is no shuffle 'left'": lambda v: arch.shuffle_sync_op(v, 1, kind="left"),
        "popc() takes": lambda v: arch.popc(v),
        "16, 32 or 64 bits, not Int8": lambda v: arch.inline_ptx("", [v.to(cute.Int8)]),
        "a static integer from 0": lambda v: arch.cp_async_wait_group(-1),
    }.items():
        with pytest.raises(DSLError) as caught:
            per_thread(wrong, x, out=np.float32)
        assert text in str(caught.value)


BITS = np.random.default_rng(7).integers(-(2**31), 2**31, 64).astype(np.int32)
REALS = np.linspace(0.1, 6, 64, dtype=np.float32)


@pytest.mark.parametrize(
    "text, x, expected",
    [
        ("tanh.approx.f32 $0, $1;", REALS, np.tanh(REALS)),
        ("ex2.approx.ftz.f32 $0, $1;", REALS, np.exp2(REALS)),
        ("rsqrt.approx.f32 $0, $1;", REALS, 1 / np.sqrt(REALS)),
        ("fma.rn.f32 $0, $1, $1, $1;", REALS, REALS * REALS + REALS),
        ("max.f32 $0, $1, $1;", REALS, REALS),
        ("  mul.lo.s32 $0, $1, 3 ;\n", BITS, BITS * np.int32(3)),
        ("mul.hi.u32 $0, $1, 0x80000000;", BITS, (BITS.view(np.uint32) >> 1).view(np.int32)),
        ("shl.b32 $0, $1, 33;", BITS, BITS * 0),
        ("shr.u32 $0, $1, 4;", BITS, (BITS.view(np.uint32) >> 4).view(np.int32)),
        ("lop3.b32 $0, $1, 0xFF, $1, 0x78;", BITS, (BITS & 255) ^ BITS),
        ("popc.b32 $0, $1;", BITS, np.array([int(b).bit_count() for b in BITS.view(np.uint32)])),
        ("min.u32 $0, $1, 7;", BITS, np.minimum(BITS.view(np.uint32), 7).view(np.int32)),
    ],
)
def test_inline_ptx_of_one_instruction_runs(target, text, x, expected):
    kind = cute.Float32 if x.dtype == np.float32 else cute.Int32
    got = per_thread(lambda v: arch.inline_ptx(text, [v], kind), x, out=x.dtype)
    if x.dtype == np.float32:
        np.testing.assert_allclose(got, expected, rtol=2e-3 if "tanh" in text else 1e-6)
    else:
        np.testing.assert_array_equal(got, expected)


def test_inline_ptx_that_the_simulator_does_not_know_names_the_text(sim):
    with pytest.raises(Exception, match=r"the instruction bar.sync in PTX text: 'bar.sync 0; "):
        text = "bar.sync 0; mov.b32 $0, $1;"
        per_thread(lambda v: arch.inline_ptx(text, [v], cute.Int32), BITS, out=np.int32)
