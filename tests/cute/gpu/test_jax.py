"""Operations of JAX on a real GPU: on JAX's stream, in JAX's memory."""

from __future__ import annotations

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLTypeError

jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = pytest.importorskip("jax.numpy")

pytestmark = pytest.mark.gpu


def gpus():
    try:
        return jax.devices("gpu")
    except RuntimeError:
        return []


@pytest.fixture
def on_gpu():
    if not gpus():
        pytest.skip("JAX has no GPU")
    return lambda x: jax.device_put(np.asarray(x, np.float32), gpus()[0])


@cute.kernel
def square_kernel(x: cute.Tensor, y: cute.Tensor):
    i = cute.arch.block_idx()[0] * 128 + cute.arch.thread_idx()[0]
    if i < cute.size(x):
        y[i] = x[i] * x[i]


def operation():
    return cute.jax.jax_kernel(
        square_kernel, grid=lambda x, y: cute.ceil_div(cute.size(x), 128), block=128
    )


def test_jit_on_the_stream_of_jax(on_gpu):
    square = operation()
    x = on_gpu(np.arange(100_000) % 17)
    result = jax.jit(lambda v: square(square(v) + 1) - 1)(x)
    assert result.devices() == {gpus()[0]}
    np.testing.assert_array_equal(result, (np.asarray(x) ** 2 + 1) ** 2 - 1)


def test_vmap(on_gpu):
    x = on_gpu(np.arange(24).reshape(2, 3, 4))
    result = jax.jit(jax.vmap(jax.vmap(operation())))(x)
    np.testing.assert_array_equal(result, np.asarray(x) ** 2)


def test_grad_by_a_rule(on_gpu):
    square = operation()
    square.def_vjp(lambda inputs, outputs, cotangents: (2 * inputs[0] * cotangents[0],))
    x = on_gpu(np.arange(300))
    np.testing.assert_array_equal(jax.grad(lambda v: square(v).sum())(x), 2 * np.asarray(x))


@cute.kernel
def add_kernel(y: cute.Tensor, x: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    y[i] = y[i] + x[i]


@cute.jit
def add(y: cute.Tensor, stream: cute.Stream, x: cute.Tensor):
    add_kernel(y, x).launch(grid=1, block=64, stream=stream)


def test_an_input_that_is_an_output(on_gpu):
    x, y = on_gpu(np.arange(64)), on_gpu(np.ones(64))
    result = jax.jit(cute.jax.jax_callable(add, in_out_argnames=("y",)))(y, x)
    np.testing.assert_array_equal(result, np.arange(64) + 1)
    np.testing.assert_array_equal(y, 1)


def test_shard_map_over_every_gpu(on_gpu):
    devices = np.array(gpus())
    mesh, spec = jax.sharding.Mesh(devices, ("i",)), jax.sharding.PartitionSpec("i")
    sharding = jax.sharding.NamedSharding(mesh, spec)
    n = 256 * len(devices)
    x = jax.device_put(np.arange(n, dtype=np.float32), sharding)
    result = jax.jit(jax.shard_map(operation(), mesh=mesh, in_specs=spec, out_specs=spec))(x)
    assert result.devices() == set(devices)
    np.testing.assert_array_equal(result, np.arange(n, dtype=np.float32) ** 2)


def test_a_scan_runs_it_many_times(on_gpu):
    """XLA may record the body as a CUDA graph; each run is ordered by the stream."""
    plus = cute.jax.jax_callable(add, in_out_argnames=("y",))
    one = on_gpu(np.ones(64))
    result = jax.jit(lambda v: jax.lax.fori_loop(0, 50, lambda i, c: plus(c, one), v))(one)
    np.testing.assert_array_equal(result, 51)


def test_an_array_of_jax_is_not_written(on_gpu):
    x = on_gpu(np.zeros(64))
    with pytest.raises(DSLTypeError, match="is written, and its array is read-only"):
        add(x, None, x)
    np.testing.assert_array_equal(x, 0)
