"""`cute.arch`: atomics, loads and stores with semantics, allocations; numbers in structs."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLError


@cute.kernel
def atomics_kernel(x: cute.Tensor, f: cute.Tensor, n: cute.Tensor):
    t = cute.arch.thread_idx()[0]
    cute.arch.atomic_add(x.iterator, 1)
    cute.arch.atomic_add(ptr=x.iterator.llvm_ptr, val=cute.Int32(2), sem="acq_rel", scope="sys")
    cute.arch.atomic_max(x.iterator + 1, t)
    cute.arch.atomic_min(x.iterator + 2, t - 5)
    cute.arch.atomic_or(x.iterator + 3, cute.Int32(1) << (t % 8))
    cute.arch.atomic_cas(x.iterator + 4, 0, 9)
    cute.arch.atomic_exch(x.iterator + 5, 7)
    cute.arch.atomic_and(x.iterator + 6, ~(cute.Int32(1) << t))
    cute.arch.atomic_xor(x.iterator + 7, t)
    cute.arch.atomic_fmax(f.iterator, n[t])
    cute.arch.atomic_fmin(f.iterator + 1, n[t])
    cute.arch.atomic_fmax(f.iterator + 2, n[t] * n[t], sign_bit=False)


@cute.jit
def atomics(x: cute.Tensor, f: cute.Tensor, n: cute.Tensor):
    atomics_kernel(x, f, n).launch(grid=(1, 1, 1), block=(32, 1, 1))


@pytest.mark.parametrize("shift", [-20, 0, 20])
@pytest.mark.parametrize("start", [-7.0, 0.0, 7.0])
def test_atomics(target, shift, start):
    n = (np.random.default_rng(0).standard_normal(32) * 3 + shift).astype(np.float32)
    x = np.array([0, 0, 0, 0, 0, 0, -1, 0], np.int32)
    f = np.array([start, start, 0], np.float32)
    atomics(x, f, n)
    assert x.tolist() == [96, 31, -5, 255, 9, 7, 0, 0]
    wanted = [max(start, n.max()), min(start, n.min()), (n * n).max()]
    np.testing.assert_array_equal(f, np.array(wanted, np.float32))


@cute.kernel
def accesses_kernel(out: cute.Tensor, n: cute.Tensor):
    t = cute.arch.thread_idx()[0]
    first = cute.arch.load(n.iterator, sem="acquire", scope="gpu")
    cute.arch.store(out.iterator, first, sem="release", scope="sys")
    cached = cute.arch.load(n.iterator.llvm_ptr, cute.Float32, cop="cg")
    cute.arch.store(out.iterator + 1, cached, cop="wt")
    bits = cute.arch.load(n.iterator, cute.Int32, sem="volatile")
    cute.arch.store(out.iterator + 2, bits.to(cute.Float32), sem="relaxed")
    shared = cute.arch.alloc_smem(cute.Float32, 32)
    (shared + t).store(n[t])
    cute.arch.sync_warp()
    out[3] = (shared + 3).load()
    out[4] = cute.arch.dynamic_smem_size().to(cute.Float32)


@cute.jit
def accesses(out: cute.Tensor, n: cute.Tensor):
    accesses_kernel(out, n).launch(grid=(1, 1, 1), block=(32, 1, 1), smem=128 + 64)


def test_loads_and_stores_with_semantics(target):
    out, n = np.zeros(5, np.float32), np.arange(1, 33, dtype=np.float32)
    accesses(out, n)
    assert out.tolist() == [1, 1, float(n[:1].view(np.int32)[0]), 4, 64]


def test_their_instructions(monkeypatch):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_90a")
    n = np.zeros(32, np.float32)
    ptx = cute.compile(accesses, np.zeros(5, np.float32), n).__ptx__
    for text in ("ld.acquire.gpu.global", "st.release.sys.global", "ld.global.cg", "st.global.wt",
                 "ld.volatile.global", "st.relaxed.gpu.global", "%dynamic_smem_size"):  # fmt: skip
        assert text in ptx
    ptx = cute.compile(atomics, np.zeros(8, np.int32), n, n).__ptx__
    for text in ("atom.acq_rel.sys.global.add.u32", "atom.relaxed.gpu.global.min.u32"):
        assert text in ptx


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda x: cute.arch.load(x.iterator, sem="release"), "releases nothing"),
        (lambda x: cute.arch.store(x.iterator, 1.0, sem="acquire"), "acquires nothing"),
        (lambda x: cute.arch.atomic_fmax(x.iterator, 1.0), "pointer to Float32"),
        (lambda x: cute.arch.atomic_add(x, 1.0), "takes a pointer"),
        (lambda x: cute.arch.alloc_smem(cute.Float32, 0), "static count"),
        (lambda x: x[0].ptr, "has no address"),
    ],
)
def test_what_they_refuse(sim, wrong, message):
    @cute.kernel
    def kernel(x: cute.Tensor):
        wrong(x)

    @cute.jit
    def host(x: cute.Tensor):
        kernel(x).launch(grid=(1, 1, 1), block=(1, 1, 1))

    with pytest.raises((DSLError, AttributeError), match=message):
        host(np.zeros(4, np.float64))


@cute.jit
def doubled(number: cute.Float32):
    return number * 2.0


@cute.kernel
def numbers_kernel(x: cute.Tensor):
    @cute.struct
    class Numbers:
        f: cute.Float32
        i: cute.Int32
        barrier: cute.Int64

    s = cute.utils.SmemAllocator().allocate(Numbers)
    s.f = 2.0
    s.i = 1
    before = s.f
    s.f = 3.0
    x[0] = before  # what was there when it was read
    x[s.i] = cute.arch.fmax(s.f, 1.0)
    x[2] = (x.iterator + s.i).load() + abs(s.f) + doubled(s.f)
    if s.i > 0 and before < 2.5:
        x[3] = cute.where(s.i == 1, s.f, before)
    for _ in range(s.i):
        x[4] = cute.math.sqrt(s.f * s.f)
    rest = cute.local_tile(x, (3,), (2,))
    rest.store(s.f * rest.load() / before)
    (s.barrier.ptr + 0).store(cute.Int64(5))  # asking for the address reads nothing
    x[5] = s.barrier.to(cute.Float32)


@cute.jit
def numbers(x: cute.Tensor):
    numbers_kernel(x).launch(grid=(1, 1, 1), block=(1, 1, 1))


def test_a_structs_number_is_a_number(target):
    x = np.array([0, 0, 0, 0, 0, 0, 4, 6, 8], np.float32)
    numbers(cute.runtime.from_dlpack(x))
    assert x.tolist() == [2, 3, 12, 3, 3, 5, 6, 9, 12]
