"""`utils.distributed`: flags between simulated ranks, and the PTX of multicast memory."""

import ml_dtypes
import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLError, DSLTypeError
from basedsl_cute import arch, sim
from basedsl_cute.distributed import SymmetricTensor, simulated
from basedsl_cute.lowering.ptx import ptxas
from basedsl_cute.runtime import from_dlpack
from basedsl_cute.utils import distributed


@cute.kernel
def reduce_kernel(data: SymmetricTensor, flags: SymmetricTensor, out: cute.Tensor):
    """Every rank tells all others that its data is there, waits for theirs, and sums."""
    t = arch.thread_idx()[0]
    for peer in cute.range_constexpr(data.num_ranks):
        if t == 0:
            distributed.red_add1(flags.peer(peer).iterator, scope="sys", order="release")
    if t == 0:
        distributed.spin_lock_atom_cas_acquire_wait(
            flags.local.iterator, expected_val=data.num_ranks, reset_val=0, scope="sys"
        )
    arch.sync_threads()
    total = data.local[t] - data.local[t]
    for peer in cute.range_constexpr(data.num_ranks):
        total += data.peer(peer)[t]
    out[t] = total


@cute.jit
def reduce(data, flags, out: cute.Tensor):
    reduce_kernel(data, flags, out).launch(grid=1, block=32)


@pytest.mark.usefixtures("sim")
@pytest.mark.parametrize("ranks", [2, 4])
def test_an_all_reduce_by_flags(ranks):
    with sim.ranks(ranks, seed=1) as world:
        data = simulated(world, 32, np.float32)
        flags = simulated(world, 1, np.int32)
        out = [np.full(32, np.nan, np.float32) for _ in range(ranks)]

        def program(rank):
            data[rank].local[:] = np.arange(32) * (rank + 1)
            reduce(data[rank], flags[rank], out[rank])

        world.run(program)
    wanted = np.arange(32) * (ranks * (ranks + 1) // 2)
    assert all((each == wanted).all() for each in out)


@cute.kernel
def turns_kernel(flag: cute.Tensor, out: cute.Tensor):
    """Warp 1 writes, warp 0 waits for it to have come twice."""
    t = arch.thread_idx()[0]
    if t == 32:
        out[1] = 5
        distributed.red_add1(flag.iterator)
        distributed.red_add1(flag.iterator, order="relaxed")
    if t == 0:
        distributed.spin_lock_ld_lt_relaxed_wait(flag.iterator, expected_val=2)
        distributed.spin_lock_atom_cas_relaxed_wait(flag.iterator, expected_val=2, reset_val=7)
        out[0] = 3


@cute.jit
def turns(flag: cute.Tensor, out: cute.Tensor):
    turns_kernel(flag, out).launch(grid=1, block=64)


def test_waits_of_one_block():
    flag, out = np.zeros(1, np.int32), np.zeros(2, np.int32)
    cute.compile(turns, flag, out, options="--arch sim")(flag, out)
    assert flag.tolist() == [7] and out.tolist() == [3, 5]


@cute.kernel
def multicast_kernel(x: cute.Tensor, flag: cute.Tensor, dtype: cute.Constexpr):
    registers = distributed.multimem_ld_reduce(
        x.iterator, dtype=dtype, num_elements=128 // dtype.width
    )
    distributed.multimem_st(x.iterator, *registers)
    a, b, c, d = distributed.multimem_ld_reduce_4xf32(x.iterator)
    distributed.multimem_st_4xb32(x.iterator, a, b, c, d)
    distributed.multimem_red_add1(lock_ptr=flag.iterator, scope="sys", order="release")


@cute.jit
def multicast(x: cute.Tensor, flag: cute.Tensor, dtype: cute.Constexpr):
    multicast_kernel(x, flag, dtype).launch(grid=1, block=32)


@cute.kernel
def in_the_switch_kernel(x: SymmetricTensor, dtype: cute.Constexpr, bug: cute.Constexpr):
    """Each rank sums its part of all ranks' words and stores it on all of them."""
    t = arch.thread_idx()[0]
    x.local[t] = x.local[t] + x.local[t]
    if not bug:
        x.signals.barrier()
    vectors = cute.size(x.multicast) * dtype.width // 128
    if t % x.num_ranks == x.rank and t < vectors:
        place = x.multicast.iterator + t * (128 // dtype.width)
        distributed.multimem_st(place, *distributed.multimem_ld_reduce(place, dtype))
    x.signals.barrier()
    if t == 0:
        flag = x.multicast.iterator + cute.size(x.multicast) - 4
        if cute.const_expr(dtype is cute.Float32):
            distributed.multimem_red_add1(cute.recast_ptr(flag, dtype=cute.Int32), scope="sys")
    x.signals.barrier()


@cute.jit
def in_the_switch(x, dtype: cute.Constexpr, bug: cute.Constexpr):
    in_the_switch_kernel(x, dtype, bug).launch(grid=1, block=32)


@pytest.mark.usefixtures("sim")
@pytest.mark.parametrize(
    "ranks, dtype", [(2, np.float32), (4, np.float32), (2, np.float16), (2, ml_dtypes.bfloat16)]
)
def test_an_all_reduce_in_multicast_memory(ranks, dtype):
    rng = np.random.default_rng(0)
    given = [rng.integers(-8, 9, 64).astype(dtype) for _ in range(ranks)]
    given[0][-4:] = 0
    for other in given[1:]:
        other[-4:] = 0
    element = {2: cute.Float16, 4: cute.Float32}[np.dtype(dtype).itemsize]
    element = cute.BFloat16 if dtype is ml_dtypes.bfloat16 else element
    with sim.ranks(ranks, seed=2) as world:
        x = simulated(world, 64, dtype, multicast=True, fill=lambda rank: given[rank])
        world.run(lambda rank: in_the_switch(x[rank], element, False))
    wanted = sum(one.astype(np.float32) for one in given).astype(dtype)
    wanted[:32] *= 2
    if dtype is np.float32:
        wanted[-4:].view(np.int32)[0] = ranks  # each rank has added 1 on all
    assert all(one.has_multicast and (one.local == wanted).all() for one in x)


@pytest.mark.usefixtures("sim")
def test_races_in_multicast_memory():
    with sim.ranks(2) as world:
        x = simulated(world, 64, np.float32, multicast=True)
        with pytest.raises(sim.RaceError, match="of rank"):
            world.run(lambda rank: in_the_switch(x[rank], cute.Float32, True))


@pytest.mark.usefixtures("sim")
def test_memory_without_multicast():
    with sim.ranks(2) as world:
        x = simulated(world, 64, np.float32)
        with pytest.raises(DSLError, match="has no multicast address"):
            world.run(lambda rank: in_the_switch(x[rank], cute.Float32, False))
    flag = np.zeros(1, np.int32)
    with pytest.raises(sim.MemoryAccessError, match="is no multicast address"):
        multicast(np.zeros(16, np.float32), flag, cute.Float32)


@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="there is no ptxas")
@pytest.mark.parametrize("dtype", [cute.Float32, cute.Float16, cute.BFloat16, cute.Float8E4M3FN])
def test_ptxas_takes_multicast_memory(dtype):
    x, flag = from_dlpack(np.zeros(16, np.float32)), from_dlpack(np.zeros(1, np.int32))
    text = cute.compile(multicast, x, flag, dtype, options="--arch sm_100a").stages.text("ptx")
    assert text.count("multimem.") == 5
    assert ptxas.start(text, "sm_100a").finish().warnings == ()


@pytest.mark.parametrize(("wrong", "message"), [
    (lambda: distributed.multimem_ld_reduce(None, cute.Int8), "sums Float32, .* not Int8"),
    (lambda: distributed.multimem_ld_reduce(None, cute.Float16, 4), "8 of Float16, not 4"),
    (lambda: distributed.multimem_st(None, 1.0), "stores four registers, not 1"),
    (lambda: distributed.red_add1(None, scope="cta"), "scope is gpu or sys, not 'cta'"),
    (lambda: distributed.red_add1(None, order="acquire"), "order is relaxed or release"),
])  # fmt: skip
def test_what_there_is_not(wrong, message):
    with pytest.raises(DSLTypeError, match=message):
        wrong()
