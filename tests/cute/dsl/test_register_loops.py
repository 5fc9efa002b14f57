"""Loops over register tensors end up unrolled: fragments stay in registers."""

import numpy as np
import pytest

import basedsl_cute as cute

SIZE = 64


@cute.kernel
def loops_kernel(x: cute.Tensor, how: cute.Constexpr):
    i = cute.arch.thread_idx()[0]
    mine = x[i, None]
    fragment = cute.make_fragment_like(mine)
    other = cute.make_rmem_tensor((4, SIZE // 4), cute.Float32)
    cute.autovec_copy(mine, fragment)
    if cute.const_expr(how == "full"):
        for j in cute.range(SIZE, unroll_full=True):
            fragment[j] = fragment[j] * 2.0 + j
    elif cute.const_expr(how == "plain"):
        for j in range(cute.size(fragment)):
            fragment[j] = fragment[j] * 2.0 + j
    elif cute.const_expr(how == "one"):
        for j in cute.range(cute.size(fragment), unroll=1):
            fragment[j] = fragment[j] * 2.0 + j
    else:
        for j in range(4):
            for k in cute.range(SIZE // 4, unroll_full=True):
                other[j, k] = fragment[j + 4 * k] * 2.0 + (j + 4 * k)
        for j in range(SIZE):
            fragment[j] = other[j]
    if i < 1000:
        cute.autovec_copy(fragment, mine)


@cute.jit
def loops(x: cute.Tensor, how: cute.Constexpr):
    loops_kernel(x, how).launch(grid=(1, 1, 1), block=(x.shape[0], 1, 1))


@pytest.fixture
def x():
    return np.arange(2 * SIZE, dtype=np.float32).reshape(2, SIZE)


@pytest.mark.parametrize("how", ["full", "plain", "one", "nested"])
def test_what_they_compute(target, x, how):
    wanted = x * 2 + np.arange(SIZE, dtype=np.float32)
    loops(cute.runtime.from_dlpack(x), how)
    np.testing.assert_array_equal(x, wanted)


@pytest.mark.parametrize("how", ["full", "plain", "one", "nested"])
def test_no_local_memory(monkeypatch, x, how):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_90a")
    ptx = cute.compile(loops, cute.runtime.from_dlpack(x, assumed_align=16), how).__ptx__
    assert ".local" not in ptx
    assert "ld.global.v4" in ptx


@cute.kernel
def guarded_kernel(x: cute.Tensor, n: cute.Constexpr):
    i = cute.arch.thread_idx()[0]
    mine = x[i, None]
    values = cute.make_fragment_like(mine)
    values.store(mine.load() * 2.0)
    for j in range(cute.size(values)):
        if i < n:
            mine[j] = values[j]


@cute.jit
def guarded(x: cute.Tensor, n: cute.Constexpr):
    guarded_kernel(x, n).launch(grid=(1, 1, 1), block=(x.shape[0], 1, 1))


def test_stores_of_single_elements_behind_one_condition_are_wide(monkeypatch, x):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_90a")
    ptx = cute.compile(guarded, cute.runtime.from_dlpack(x, assumed_align=16), 1).__ptx__
    assert ptx.count("st.global.v4") == SIZE // 4 and "st.global.b32" not in ptx
    ptx = cute.compile(guarded, cute.runtime.from_dlpack(x, assumed_align=4), 1).__ptx__
    assert "st.global.v4" not in ptx


@cute.kernel
def summed(out: cute.Tensor, n: cute.Int32):
    parts = cute.make_rmem_tensor((4,), cute.Int32)
    for i in range(4, unroll_full=True):
        parts[i] = i
    total = cute.Int32(0)
    for i in range(0, n, unroll=1):
        total += parts[i]
    out[0] = total


def test_the_built_in_range_takes_the_hints_of_loops(target):
    @cute.jit
    def host(out: cute.Tensor, n: cute.Int32):
        summed(out, n).launch(grid=1, block=1)

    out = np.zeros(1, np.int32)
    host(out, 3)
    assert out[0] == 0 + 1 + 2
