"""Operations under `shard_map` on all devices of JAX, which are simulated ones of the CPU:
`XLA_FLAGS=--xla_force_host_platform_device_count=2 python jax_devices.py`, since JAX takes their
number when it begins.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec

import basedsl_cute as cute
from basedsl_cute import arch, sim
from basedsl_cute.distributed import SymmetricTensor, simulated
from basedsl_cute.ops.distributed import collectives
from basedsl_cute.ops.distributed.workspaces import simulated_workspaces

COUNT = len(jax.devices())
SPEC, ALL = PartitionSpec("i"), PartitionSpec()
MESH = Mesh(np.array(jax.devices()), ("i",))


def sharded(function, out=SPEC):
    return jax.jit(jax.shard_map(function, mesh=MESH, in_specs=SPEC, out_specs=out))


@cute.kernel
def square_kernel(x: cute.Tensor, y: cute.Tensor):
    i = arch.block_idx()[0] * 32 + arch.thread_idx()[0]
    if i < cute.size(x):
        y[i] = x[i] * x[i]


def blocks(x, y):
    return cute.ceil_div(cute.size(x), 32)


square = cute.jax.jax_kernel(square_kernel, grid=blocks, block=32)


@square.def_vjp
def square_vjp(inputs, outputs, cotangents):
    return (2 * inputs[0] * cotangents[0],)


def kernels():
    """A kernel on each shard, with JAX's own collectives and gradients."""
    x = jnp.arange(50.0 * COUNT)
    assert sharded(square)(x).devices() == set(jax.devices())
    np.testing.assert_array_equal(sharded(square)(x), x**2)
    total = sharded(lambda v: jax.lax.psum(square(v).sum(), "i"), ALL)
    np.testing.assert_array_equal(total(x), (x**2).sum())
    np.testing.assert_array_equal(jax.grad(total)(x), 2 * x)


@cute.kernel
def sum_kernel(x: cute.Tensor, y: cute.Tensor, w: SymmetricTensor):
    block = arch.block_idx()[0]
    i = block * 32 + arch.thread_idx()[0]
    w.local[i] = x[i]
    w.signals.barrier(block)
    total = cute.Float32(0)
    for rank in range(w.num_ranks):
        total += w.peer(rank)[i]
    y[i] = total
    w.signals.barrier(block)


@cute.jit
def sum_of_shards(x: cute.Tensor, y: cute.Tensor, stream: cute.Stream, w: SymmetricTensor):
    sum_kernel(x, y, w).launch(grid=x.shape[0] // 32, block=32, stream=stream)


def communication():
    """A kernel of all devices at once, in symmetric memory; several times in one program."""
    w = simulated(sim.World(COUNT, seed=3), 64)
    add = cute.jax.jax_callable(sum_of_shards, w=w)
    x = jnp.arange(64.0 * COUNT)
    y = sharded(lambda v: add(add(v) + 1))(x)
    once = np.asarray(x).reshape(COUNT, 64).sum(0) + 1
    np.testing.assert_array_equal(y, np.tile(once * COUNT, COUNT))


@cute.jit
def all_reduce(
    x: cute.Tensor, y: cute.Tensor, stream: cute.Stream, w: SymmetricTensor, plan: cute.Constexpr
):
    collectives.exchange_kernel(x, y, w, x.shape[0] // plan.vector, False, True, plan).launch(
        grid=2, block=plan.threads, stream=stream
    )


def collective():
    """The kernel of `ops.distributed.all_reduce`."""
    spaces = simulated_workspaces(sim.World(COUNT), blocks=2)
    plan = spaces[0]._plan(cute.Float32, 4, 400)
    operation = cute.jax.jax_callable(all_reduce, w=[one.rings for one in spaces], plan=plan)
    x = jnp.arange(100.0 * COUNT)
    wanted = np.asarray(x).reshape(COUNT, 100).sum(0)
    np.testing.assert_array_equal(sharded(operation)(x), np.tile(wanted, COUNT))


@cute.kernel
def racing_kernel(x: cute.Tensor, y: cute.Tensor, w: SymmetricTensor):
    i = arch.thread_idx()[0]
    w.local[i] = x[i]
    y[i] = w.peer((w.rank + 1) % w.num_ranks)[i]


@cute.jit
def shift(x: cute.Tensor, y: cute.Tensor, stream: cute.Stream, w: SymmetricTensor):
    racing_kernel(x, y, w).launch(grid=1, block=32, stream=stream)


def errors():
    """Races between devices, and memory that does not fit, are errors of JAX."""
    x = jnp.arange(32.0 * COUNT)

    def fails(text, w):
        try:
            sharded(cute.jax.jax_callable(shift, w=w))(x).block_until_ready()
        except jax.errors.JaxRuntimeError as error:
            assert text in str(error), error
        else:
            raise AssertionError(text)

    fails("race on global memory", simulated(sim.World(COUNT), 32))
    fails("simulated devices get a list of symmetric tensors", simulated(sim.World(2), 32)[0])
    fails("and the list has 1 symmetric", simulated(sim.World(1), 32))


for part in (kernels, communication, collective, errors):
    part()
print(f"shards of {COUNT} devices are right")
