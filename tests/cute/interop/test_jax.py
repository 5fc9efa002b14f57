"""`cute.jax`: a `@jit` function as an operation of JAX."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLError

jax = pytest.importorskip("jax")


@cute.kernel
def scale_kernel(x: cute.Tensor, y: cute.Tensor, factor: cute.Constexpr):
    i = cute.arch.thread_idx()[0]
    for j in range(x.shape[1]):
        y[i, j] = x[i, j] * factor + y[i, j]


@cute.jit
def scale(stream, x: cute.Tensor, y: cute.Tensor, *, factor: cute.Constexpr = 2.0):
    scale_kernel(x, y, factor).launch(grid=(1, 1, 1), block=(x.shape[0], 1, 1), stream=stream)


@cute.jit
def add_one(stream, x: cute.Tensor):
    for_aliases(x).launch(grid=(1, 1, 1), block=(x.shape[0], 1, 1), stream=stream)


@cute.kernel
def for_aliases(x: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    x[i] = x[i] + 1.0


def test_a_call_under_jit(sim):
    x = cute.jax.testing.create_tensor((3, 4), cute.Float32, jax.random.key(0))
    out = jax.ShapeDtypeStruct(x.shape, x.dtype)
    call = cute.jax.cutlass_call(scale, output_shape_dtype=out, factor=3.0)
    np.testing.assert_array_equal(call(x), 3 * np.asarray(x))
    np.testing.assert_array_equal(jax.jit(lambda v: call(v) + 1)(x), 3 * np.asarray(x) + 1)


def test_specs_permute_modes(sim):
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    spec = cute.jax.TensorSpec(mode=(1, 0), divisibility=4)
    call = cute.jax.cutlass_call(
        scale,
        output_shape_dtype=[jax.ShapeDtypeStruct((3, 4), np.float32)],
        input_spec=[spec],
        output_spec=[cute.jax.TensorSpec(mode=(1, 0), static=True)],
    )
    (result,) = call(x)
    np.testing.assert_array_equal(result, 2 * x)
    with pytest.raises(Exception, match="2 specs are given for 1"):
        cute.jax.cutlass_call(
            scale,
            output_shape_dtype=jax.ShapeDtypeStruct((3, 4), np.float32),
            input_spec=[spec] * 2,
        )(x).block_until_ready()


def test_an_output_may_begin_as_an_input(sim):
    x = np.arange(4, dtype=np.float32)
    call = cute.jax.cutlass_call(
        add_one,
        output_shape_dtype=jax.ShapeDtypeStruct((4,), np.float32),
        input_output_aliases={0: 0},
        use_static_tensors=True,
    )
    np.testing.assert_array_equal(call(x), x + 1)
    assert cute.jax.cutlass_to_jax_dtype(cute.BFloat16) == jax.numpy.bfloat16
    assert cute.jax.get_export_disabled_safety_checks() == []
    assert issubclass(DSLError, Exception)
