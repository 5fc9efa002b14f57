"""`cute.jax`: `@jit` functions and kernels as operations of JAX; JAX arrays are not written."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLCallError, DSLError, DSLTypeError

jax = pytest.importorskip("jax", reason="JAX is not installed")
jnp = pytest.importorskip("jax.numpy")


@cute.kernel
def scale_kernel(x: cute.Tensor, y: cute.Tensor, factor: cute.Constexpr):
    i = cute.arch.thread_idx()[0]
    for j in range(x.shape[1]):
        y[i, j] = x[i, j] * factor


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
    assert issubclass(DSLError, Exception)


# Arrays of JAX as arguments ----------------------------------------------------------------------


@cute.kernel
def double_kernel(x: cute.Tensor, y: cute.Tensor):
    i = cute.arch.block_idx()[0] * cute.arch.block_dim()[0] + cute.arch.thread_idx()[0]
    if i < cute.size(x):
        y[i] = x[i] * 2


@cute.jit
def double(stream: cute.Stream, x: cute.Tensor, y: cute.Tensor):
    double_kernel(x, y).launch(grid=cute.ceil_div(cute.size(x), 4), block=4, stream=stream)


@cute.kernel
def tile_kernel(x: cute.Tensor, y: cute.Tensor):
    mine = cute.local_tile(y, (4,), (cute.arch.thread_idx()[0],))
    cute.autovec_copy(cute.local_tile(x, (4,), (cute.arch.thread_idx()[0],)), mine)


@cute.jit
def copy_tiles(x: cute.Tensor, y: cute.Tensor):
    tile_kernel(x, y).launch(grid=1, block=2)


@cute.kernel
def count_kernel(x: cute.Tensor):
    cute.arch.atomic_add(x.iterator, cute.Int32(1))


@cute.jit
def count(x: cute.Tensor):
    count_kernel(x).launch(grid=1, block=2)


@cute.jit
def on_the_host(x: cute.Tensor):
    x[0] = 1.0


@pytest.mark.parametrize(
    "write",
    [
        lambda: double(None, np.ones(8, np.float32), jnp.zeros(8)),
        lambda: copy_tiles(np.ones(8, np.float32), jnp.zeros(8)),
        lambda: count(jnp.zeros(1, jnp.int32)),
        lambda: on_the_host(jnp.zeros(4)),
    ],
    ids=["store", "copy", "atomic", "host"],
)
def test_an_array_of_jax_is_not_written(sim, write):
    with pytest.raises(DSLTypeError, match="is written, and its array is read-only") as caught:
        write()
    assert "cute.jax.donate(x)" in caught.value.hint


def test_no_constant_changes(sim):
    zeros = jnp.zeros(8)
    with pytest.raises(DSLTypeError):
        double(None, jnp.ones(8), zeros)
    np.testing.assert_array_equal(zeros, 0)
    np.testing.assert_array_equal(jnp.zeros(8), 0)


def test_a_donated_array_is_written(sim):
    given = jnp.arange(8.0) + 0
    double(None, jnp.ones(8), cute.jax.donate(given))
    np.testing.assert_array_equal(given, 2)


def test_a_tracer_of_jax_has_no_memory(sim):
    with pytest.raises(DSLTypeError, match="is traced by JAX") as caught:
        jax.jit(lambda x: copy_tiles(x, x))(jnp.ones(8))
    assert "jax_callable" in caught.value.hint


# Operations --------------------------------------------------------------------------------------

DOUBLE = cute.jax.jax_callable(double)


def test_a_callable(sim):
    x = jnp.arange(10.0)
    np.testing.assert_array_equal(DOUBLE(x), 2 * x)
    np.testing.assert_array_equal(jax.jit(lambda v: DOUBLE(v + 1) + 1)(x), 2 * x + 3)


@pytest.mark.parametrize("shape", [(3, 8), (2, 3, 8)])
def test_vmap_runs_once_for_each_item(sim, shape):
    x = jnp.arange(float(np.prod(shape))).reshape(shape)
    batched = DOUBLE
    for _ in shape[1:]:
        batched = jax.vmap(batched)
    np.testing.assert_array_equal(jax.jit(batched)(x), 2 * x)


def test_grad_by_a_rule(sim):
    operation = cute.jax.jax_callable(double)

    @operation.def_vjp
    def rule(inputs, outputs, cotangents):
        return (DOUBLE(cotangents[0]),)

    x = jnp.arange(8.0)
    np.testing.assert_allclose(jax.grad(lambda v: (operation(v) ** 2).sum())(x), 8 * x)
    with pytest.raises(Exception, match="differentiat"):
        jax.grad(lambda v: DOUBLE(v).sum())(x)


@cute.kernel
def two_kernel(x: cute.Tensor, y: cute.Tensor, whole: cute.Tensor[cute.Int32, 1]):
    i = cute.arch.thread_idx()[0]
    y[i] = -x[i]
    whole[i] = x[i].to(cute.Int32)


def test_a_kernel_with_two_outputs(sim):
    operation = cute.jax.jax_kernel(
        two_kernel, 2, grid=1, block=lambda x, y, whole: cute.size(x), output_dims={"whole": 6}
    )
    y, whole = jax.jit(operation)(jnp.arange(6.0) + 0.5)
    np.testing.assert_array_equal(y, -np.arange(6) - 0.5)
    assert whole.dtype == jnp.int32
    np.testing.assert_array_equal(whole, np.arange(6))


@cute.kernel
def add_kernel(y: cute.Tensor, x: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    y[i] = y[i] + x[i]


@cute.jit
def add(y: cute.Tensor, stream: cute.Stream, x: cute.Tensor):
    add_kernel(y, x).launch(grid=1, block=8, stream=stream)


def test_an_input_that_is_an_output(sim):
    operation = cute.jax.jax_callable(add, in_out_argnames=("y",))
    x, y = jnp.arange(8.0), jnp.ones(8)
    np.testing.assert_array_equal(operation(y, x), x + 1)
    np.testing.assert_array_equal(y, 1)
    np.testing.assert_array_equal(jax.jit(operation, donate_argnums=0)(y, x), x + 1)
    with pytest.raises(DSLCallError, match="has no parameter 'z'"):
        cute.jax.jax_callable(add, in_out_argnames=("z",))


def test_shard_map(sim):
    mesh = jax.sharding.Mesh(np.array(jax.devices("cpu")[:1]), ("i",))
    spec = jax.sharding.PartitionSpec("i")
    sharded = jax.jit(jax.shard_map(DOUBLE, mesh=mesh, in_specs=spec, out_specs=spec))
    np.testing.assert_array_equal(sharded(jnp.arange(8.0)), 2 * np.arange(8.0))


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 4])
def test_shards_of_several_devices(count):
    program = Path(__file__).parent / "jax_devices.py"
    flags = {"XLA_FLAGS": f"--xla_force_host_platform_device_count={count}"}
    run = subprocess.run(
        [sys.executable, program], env=os.environ | flags | {"JAX_PLATFORMS": "cpu"},
        capture_output=True, text=True, timeout=200,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert f"shards of {count} devices are right" in run.stdout


@cute.kernel
def outside_kernel(x: cute.Tensor, y: cute.Tensor):
    y[100] = x[0]


def test_an_error_of_a_kernel_is_an_error_of_jax(sim):
    operation = cute.jax.jax_kernel(outside_kernel, grid=1, block=1)
    with pytest.raises(jax.errors.JaxRuntimeError, match="out-of-bounds write"):
        operation(jnp.ones(8)).block_until_ready()


MODULE = """
import basedsl_cute as cute

@cute.kernel
def kernel(x: cute.Tensor, y: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    y[i] = x[i] + 5

plus_five = cute.jax.jax_kernel(kernel, grid=1, block=4)
"""


def test_another_process_runs_an_exported_operation(sim, tmp_path, monkeypatch):
    pytest.importorskip("flatbuffers", reason="jax.export serialises by flatbuffers")
    pytest.importorskip("scipy", reason="jax.export's CPU backend needs SciPy, by its LAPACK")
    (tmp_path / "exported_operations.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    operation = importlib.import_module("exported_operations").plus_five
    checks = cute.jax.get_export_disabled_safety_checks()
    export = jax.export.export(jax.jit(operation), platforms=["cpu"], disabled_checks=checks)
    exported = export(jnp.ones(4))
    (tmp_path / "operation.bin").write_bytes(exported.serialize())
    program = (
        "import jax, sys, numpy as np, basedsl_cute as cute; sys.path.insert(0, '.')\n"
        "cute.jax.register()\n"
        "f = jax.export.deserialize(open('operation.bin', 'rb').read())\n"
        "print(np.asarray(f.call(np.ones(4, np.float32))))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout == "[6. 6. 6. 6.]\n", done.stderr
