"""Arrays of registers that are filled, copied or converted whole are accessed by 8 bytes."""

import re

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl_cute.runtime import from_dlpack

THREADS, EACH = 32, 11


@cute.kernel
def kernel(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor):
    t, _, _ = cute.arch.thread_idx()
    sums = cute.make_rmem_tensor(EACH, cute.Float32)
    sums.fill(0.5)
    for i in cute.range_constexpr(EACH):
        if x[t, i] > 0:
            sums[i] = sums[i] + x[t, i]
    before = cute.make_rmem_tensor(EACH, cute.Float32)
    before.store(sums.load())
    narrow = cute.make_rmem_tensor(EACH, cute.Float16)
    narrow.store(sums.load().to(cute.Float16))
    for i in cute.range_constexpr(EACH):
        sums[i] = 0.0
        y[t, i] = narrow[i]
        z[t, i] = before[i] + sums[i]


@cute.jit
def host(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor):
    kernel(x, y, z).launch(grid=(1, 1, 1), block=(THREADS, 1, 1))


@pytest.fixture
def arrays():
    x = np.random.default_rng(0).integers(-9, 9, (THREADS, EACH)).astype(np.float32)
    return x, np.zeros((THREADS, EACH), np.float16), np.zeros((THREADS, EACH), np.float32)


def test_the_same_elements(target, arrays):
    x, y, z = arrays
    host(*map(from_dlpack, arrays))
    wanted = np.maximum(x, 0) + 0.5
    np.testing.assert_array_equal(y, wanted)
    np.testing.assert_array_equal(z, wanted)


def test_no_access_is_wider_than_8_bytes(arrays):
    compiled = cute.compile(host, *map(from_dlpack, arrays), options="--gpu-arch sm_90a")
    whole = re.compile(rf"vector<{EACH}x")
    assert whole.search(compiled.stages.text("lower-cute"))
    text = compiled.stages.text("nvvm")
    assert not whole.search(text)
    accesses = re.findall(r"llvm\.(?:load|store).*vector<(\d)xf(\d\d)>", text)
    assert {int(n) * int(bits) for n, bits in accesses} == {32, 64}
