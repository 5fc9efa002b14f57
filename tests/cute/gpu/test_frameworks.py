"""Tensors and streams of PyTorch, CuPy and JAX on a real GPU."""

import sys
from pathlib import Path

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLError

sys.path.insert(0, str(Path(__file__).parents[3] / "examples" / "cute"))

from tiled_matmul import matmul
from vector_add import add, vector_add

pytestmark = pytest.mark.gpu


@cute.jit
def add_on(a: cute.Tensor, b: cute.Tensor, c: cute.Tensor, stream: cute.Stream):
    n = cute.size(c)
    add(a, b, c).launch(grid=cute.ceil_div(n, 256), block=256, stream=stream)


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="PyTorch is not installed")


def test_torch_tensors_are_used_in_place(torch):
    a, b = torch.randn(2, 10_000, device="cuda")
    c = torch.full_like(a, float("nan"))
    vector_add(a, b, c)
    assert torch.equal(c, a + b)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64", "int32", "int64"])
def test_torch_element_types(torch, dtype):
    kind = getattr(torch, dtype)
    a = (torch.randn(1000, device="cuda") * 10).to(kind)
    c = torch.empty_like(a)
    vector_add(a, a, c)
    assert torch.equal(c, a + a)


def test_torch_strides(torch):
    a = torch.randn(64, 48, device="cuda").T
    b = torch.randn(64, 80, device="cuda")[:, ::2]
    c = torch.full((48, 40), float("nan"), device="cuda")
    matmul(a, b, c)
    torch.testing.assert_close(c, a @ b, rtol=1e-4, atol=1e-4)


def test_stream_of_torch(torch):
    stream = torch.cuda.Stream()
    a, b = torch.randn(2, 10_000, device="cuda")
    c = torch.zeros_like(a)
    stream.wait_stream(torch.cuda.current_stream())
    add_on(a, b, c, stream)
    stream.synchronize()
    assert torch.equal(c, a + b)


def test_graph_capture(torch):
    a, b = torch.randn(2, 10_000, device="cuda")
    c = torch.zeros_like(a)
    compiled = cute.compile(add_on, a, b, c, torch.cuda.current_stream())
    compiled(a, b, c, torch.cuda.current_stream())  # loaded before the capture
    torch.cuda.synchronize()
    c.zero_()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        compiled(a, b, c, torch.cuda.current_stream())
    assert not c.any()
    graph.replay()
    torch.cuda.synchronize()
    assert torch.equal(c, a + b)


def test_cupy():
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    a, b = cupy.random.rand(2, 5000).astype(np.float32)
    c = cupy.zeros_like(a)
    vector_add(a, b, c)
    assert bool((c == a + b).all())


def test_host_and_device_arrays_in_one_call(torch):
    a = np.random.default_rng(0).standard_normal(5000, np.float32)
    c = torch.zeros(5000, device="cuda")
    vector_add(a, a, c)
    np.testing.assert_array_equal(c.cpu().numpy(), a + a)


def test_overlapping_host_arrays_share_their_copy():
    x = np.arange(1000, dtype=np.float32)
    vector_add(x[:500], x[500:], x[:500])
    np.testing.assert_array_equal(x[:500], np.arange(500) * 2 + 500)
    np.testing.assert_array_equal(x[500:], np.arange(500, 1000))


def test_tensor_beyond_32_bits(torch):
    n = 2**31 + 1000
    x = torch.ones(n, dtype=torch.int8, device="cuda")
    y = torch.zeros(1, dtype=torch.int8, device="cuda")

    @cute.kernel
    def last(x: cute.Tensor, y: cute.Tensor):
        y[0] = x[cute.size(x) - 1]

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor):
        last(x, y).launch(grid=1, block=1)

    x[-1] = 7
    host(x, y)
    assert int(y[0]) == 7


def test_launch_limits_of_the_device(torch):
    @cute.kernel
    def kernel():
        pass

    @cute.jit
    def host(n: cute.Int64):
        kernel().launch(grid=n, block=1)

    with pytest.raises(DSLError, match="grid"):
        host(0)
    host(1)
    cute.synchronize()
