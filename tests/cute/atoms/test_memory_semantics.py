"""Copies that are ordered with other threads, and that tell the cache what to keep."""

import re

import ml_dtypes
import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLTypeError
from basedsl_cute import arch
from basedsl_cute.nvgpu import (
    CacheEvictionPriority,
    CopyG2ROp,
    CopyR2GOp,
    CopyUniversalOp,
    LoadCacheMode,
    MemoryOrder,
    MemoryScope,
    cpasync,
)


def through_registers(load, store, dtype, n):
    """Host code that copies n elements a thread to registers and back, by two atoms."""

    @cute.kernel
    def kernel(x: cute.Tensor, y: cute.Tensor, keep: cute.Boolean):
        t = arch.thread_idx()[0]
        held = cute.make_rmem_tensor(n, dtype)
        cute.copy(load, cute.local_tile(x, (n,), (t,)), held)
        pred = cute.make_rmem_tensor(1, cute.Boolean)
        pred[0] = keep
        cute.copy(store, held, cute.local_tile(y, (n,), (t,)), pred=pred)

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor, keep: cute.Boolean):
        kernel(x, y, keep).launch(grid=1, block=32)

    return host


def atom(op, dtype, n, **how):
    return cute.make_copy_atom(op, dtype, num_bits_per_copy=n * dtype.width, **how)


KINDS = [
    (cute.Float16, np.float16, 4), (cute.Float32, np.float32, 1), (cute.Int8, np.int8, 8),
    (cute.Int64, np.int64, 1), (cute.Float8E4M3FN, ml_dtypes.float8_e4m3fn, 2),
    (cute.BFloat16, ml_dtypes.bfloat16, 1),
]  # fmt: skip


@pytest.mark.parametrize("dtype, numpy, n", KINDS)
def test_ordered_copies_move_the_same(target, dtype, numpy, n):
    load = atom(CopyG2ROp(), dtype, n, memory_order=MemoryOrder.ACQUIRE)
    store = atom(CopyR2GOp(), dtype, n, memory_order="release", memory_scope=MemoryScope.SYS)
    x = np.arange(32 * n).astype(numpy)
    for keep in (True, False):
        y = np.zeros_like(x)
        through_registers(load, store, dtype, n)(x, y, keep)
        cute.synchronize()
        np.testing.assert_array_equal(y.astype(np.float32), x.astype(np.float32) * keep)


@pytest.mark.parametrize(
    "how, loads, stores",
    [
        ({"memory_order": "acquire"}, "ld.acquire.gpu.global.b64", None),
        ({"memory_order": "relaxed", "memory_scope": "cta"}, "ld.relaxed.cta.global.b64", None),
        ({"memory_order": "release"}, None, "st.release.gpu.global.b64"),
        ({"memory_order": "volatile"}, "ld.volatile.global.b64", "st.volatile.global.b64"),
        (
            {"l1c_evict_priority": CacheEvictionPriority.NO_ALLOCATE},
            "ld.global.L1::no_allocate.b64",
            "st.global.L1::no_allocate.b64",
        ),
    ],
)
def test_the_instructions(monkeypatch, how, loads, stores):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_90a")
    plain = atom(CopyUniversalOp(), cute.Float16, 4)
    asked = atom(CopyUniversalOp(), cute.Float16, 4, **how)
    host = through_registers(asked if loads else plain, asked if stores else plain, cute.Float16, 4)
    x = np.zeros(128, np.float16)
    ptx = cute.compile(host, x, x.copy(), True).stages.text("ptx")
    for instruction in (loads, stores):
        assert instruction is None or re.search(re.escape(instruction) + r"\b", ptx), ptx


@pytest.mark.parametrize(
    "message, make",
    [
        ("memory_order=SC", lambda: atom(CopyR2GOp(), cute.Int32, 1, memory_order="SC")),
        ("memory_order is one of", lambda: atom(CopyR2GOp(), cute.Int32, 1, memory_order="x")),
        ("at most 64 bits", lambda: atom(CopyG2ROp(), cute.Int32, 4, memory_order="relaxed")),
        ("CopyG2SOp has no memory_order", lambda: atom(
            cpasync.CopyG2SOp(), cute.Int32, 4, memory_order="relaxed")),
        ("no l1c_evict_priority", lambda: atom(
            CopyG2ROp(), cute.Int32, 1, memory_order="relaxed",
            l1c_evict_priority=CacheEvictionPriority.EVICT_LAST)),
        ("not of Boolean", lambda: cute.make_copy_atom(
            CopyG2ROp(), cute.Boolean, memory_order="relaxed")),
    ],
)  # fmt: skip
def test_what_is_refused(message, make):
    with pytest.raises(DSLTypeError, match=message):
        make()


@pytest.mark.parametrize(
    "message, load, store",
    [
        (
            "a store acquires nothing",
            atom(CopyG2ROp(), cute.Int32, 1),
            atom(CopyR2GOp(), cute.Int32, 1, memory_order="acquire"),
        ),
        (
            "a cache mode, or an order",
            atom(CopyG2ROp(LoadCacheMode.STREAMING), cute.Int32, 1, memory_order="acquire"),
            atom(CopyR2GOp(), cute.Int32, 1),
        ),
        (
            "CopyR2GOp copies rmem to gmem, not gmem to rmem",
            atom(CopyR2GOp(), cute.Int32, 1),
            atom(CopyR2GOp(), cute.Int32, 1),
        ),
    ],
)
def test_what_a_copy_refuses(sim, message, load, store):
    x = np.zeros(32, np.int32)
    with pytest.raises(DSLTypeError, match=message):
        through_registers(load, store, cute.Int32, 1)(x, x.copy(), True)
