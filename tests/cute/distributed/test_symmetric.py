"""Symmetric tensors as arguments on simulated ranks, and the errors of memory that does not fit."""

import subprocess
import sys
import types

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLCallError, DSLError, DSLRuntimeError, DSLTypeError
from basedsl_cute import arch, sim
from basedsl_cute.distributed import (
    PeerTimeoutError,
    SymmetricTensor,
    from_nvshmem,
    from_pointers,
    pad_bytes,
    simulated,
)
from basedsl_cute.sim import CoordinateError, DeadlockError, MemoryAccessError

pytestmark = pytest.mark.usefixtures("sim")

SIZE = 96


@cute.kernel
def sum_kernel(x: SymmetricTensor, y: cute.Tensor):
    t = arch.thread_idx()[0]
    slot = arch.block_idx()[0]
    x.signals.barrier(slot)
    i = slot * 32 + t
    total = x.local[i] - x.local[i]
    for rank in range(x.num_ranks):
        total += x.peer(rank)[i]
    y[i] = total
    x.signals.barrier(slot)


@cute.jit
def sum_of_ranks(x, y: cute.Tensor):
    sum_kernel(x, y).launch(grid=SIZE // 32, block=32)


@pytest.mark.parametrize("ranks", [1, 2, 4, 8])
@pytest.mark.parametrize("static", [True, False])
def test_every_rank_sums_all(ranks, static):
    with sim.ranks(ranks, seed=ranks) as world:
        x = simulated(world, SIZE, np.float32, static_rank=static, static_num_ranks=static)
        y = [np.zeros(SIZE, np.float32) for _ in x]

        def program(rank):
            for turn in range(2):
                x[rank].local[:] = np.arange(SIZE) * (rank + 1) + turn
                sum_of_ranks(x[rank], y[rank])

        world.run(program)
    wanted = np.arange(SIZE) * (ranks * (ranks + 1) // 2) + ranks
    assert all((each == wanted).all() for each in y)


@cute.kernel
def ranks_kernel(x: SymmetricTensor, y: cute.Tensor):
    y[0] = x.rank
    y[1] = x.num_ranks
    y[2] = 1 if cute.is_static(x.rank) else 0
    y[3] = 1 if cute.is_static(x.num_ranks) else 0


@cute.jit
def ranks_of(x, y: cute.Tensor):
    ranks_kernel(x, y).launch(grid=1, block=1)


@pytest.mark.parametrize("static_rank", [True, False])
@pytest.mark.parametrize("static_num_ranks", [True, False])
def test_numbers_are_static_or_dynamic(static_rank, static_num_ranks):
    with sim.ranks(2) as world:
        x = simulated(
            world, 4, np.int32, static_rank=static_rank, static_num_ranks=static_num_ranks
        )
        y = [np.zeros(4, np.int32) for _ in x]
        world.run(ranks_of, x, y)
    for rank in range(2):
        assert y[rank].tolist() == [rank, 2, static_rank, static_num_ranks]


@cute.kernel
def put_kernel(x: SymmetricTensor, y: cute.Tensor):
    after, before = (x.rank + 1) % x.num_ranks, (x.rank + x.num_ranks - 1) % x.num_ranks
    value = x.signals.counter(5) + 1
    x.signals.put(x.peer(after), y, after, value, slot=5)
    if arch.thread_idx()[0] == 0:
        x.signals.wait(before, value, slot=5)
        x.signals.set_counter(5, value)
    arch.sync_threads()
    for i in range(arch.thread_idx()[0], SIZE, 64):
        y[i] = x.local[i]


@cute.jit
def put_around(x, y: cute.Tensor):
    put_kernel(x, y).launch(grid=1, block=64)


def test_a_put_with_signal():
    with sim.ranks(4, seed=3) as world:
        x = simulated(world, SIZE, np.int16)
        y = [np.full(SIZE, rank, np.int16) for rank in range(4)]
        world.run(put_around, x, y)
    assert [int(each[7]) for each in y] == [3, 0, 1, 2]


# Errors ------------------------------------------------------------------------------------------


@cute.kernel
def beyond_kernel(x: SymmetricTensor, y: cute.Tensor, rank):
    y[0] = x.peer(rank)[0]


@cute.jit
def read_of(x, y: cute.Tensor, rank):
    beyond_kernel(x, y, rank).launch(grid=1, block=1)


def one_rank(**more):
    with sim.ranks(2) as world:
        return world, simulated(world, 4, np.float32, **more)


def test_a_rank_that_does_not_exist():
    world, x = one_rank()
    y = [np.zeros(1, np.float32)] * 2
    with pytest.raises(CoordinateError, match="2"):
        world.run(read_of, x, y, [2, 2])


def test_a_static_rank_that_does_not_exist():
    @cute.jit
    def static(x, y: cute.Tensor):
        beyond_kernel(x, y, cute.const_expr(2)).launch(grid=1, block=1)

    @cute.kernel
    def kernel(x: SymmetricTensor, y: cute.Tensor):
        y[0] = x.peer(2)[0]

    @cute.jit
    def host(x, y: cute.Tensor):
        kernel(x, y).launch(grid=1, block=1)

    world, x = one_rank()
    with pytest.raises(DSLTypeError, match="there is no rank 2 in a group of 2"):
        world.run(host, x, [np.zeros(1, np.float32)] * 2)


def test_addresses_that_do_not_fit():
    local, other = np.zeros(4, np.float32), np.zeros(4, np.float32)
    here, there = local.ctypes.data, other.ctypes.data
    with pytest.raises(DSLCallError, match="not that of its own array"):
        from_pointers(local, [there, here], 0)
    with pytest.raises(DSLCallError, match="rank 2 of a group of 2"):
        from_pointers(local, [here, there], 2)
    with pytest.raises(DSLCallError, match="rank 1 has no address"):
        from_pointers(local, [here, 0], 0)
    with pytest.raises(DSLCallError, match="the same address"):
        from_pointers(local, [here, here], 0)
    with pytest.raises(DSLCallError, match="a pad of each rank, and a report"):
        from_pointers(local, [here, there], 0, pads=[here, there])
    with pytest.raises(DSLCallError, match="negative strides"):
        backwards = local[::-1]
        from_pointers(backwards, [backwards.ctypes.data, there], 0)
    with pytest.raises(DSLCallError, match="at most 3600 seconds"):
        from_pointers(local, [here, there], 0, timeout=0)


def test_plain_pointers_are_enough_without_signals():
    arrays = [np.full(4, rank, np.float32) for rank in range(2)]
    addresses = [each.ctypes.data for each in arrays]
    x = from_pointers(arrays[0], addresses, 0)
    y = np.zeros(1, np.float32)
    read_of(x, y, 1)
    assert y[0] == 1
    with pytest.raises(DSLError, match="has no signals"):
        x.signals.barrier()


def test_the_host_reaches_no_peer():
    _, x = one_rank()
    with pytest.raises(DSLError, match="in kernels"):
        x[0].peer(1)


def test_the_symmetric_tensor_of_another_rank_or_world():
    with sim.ranks(2) as world:
        x = simulated(world, SIZE)
        y = np.zeros(SIZE, np.float32)
        text = "simulated rank 0 passes the symmetric tensor of rank 1"
        with pytest.raises(DSLCallError, match=text):
            world.run(lambda rank: wait_for_rank_1(x[1 - rank], y))
    with sim.ranks(2) as other, pytest.raises(DSLCallError, match="is of another world"):
        other.run(lambda rank: wait_for_rank_1(x[rank], y))


@pytest.mark.parametrize("timeout", [0, -1, 3601, None])
def test_limits_that_are_none(timeout):
    with sim.ranks(2) as world, pytest.raises(DSLCallError, match="a time limit is above 0"):
        simulated(world, SIZE, timeout=timeout)


def test_a_closed_tensor_is_named():
    world, x = one_rank()
    x[1].close()
    with pytest.raises(DSLCallError, match="is closed") as found:
        world.run(read_of, x, [np.zeros(1, np.float32)] * 2, [0, 0])
    assert "on simulated rank 1 of 2" in found.value.__notes__


def test_memory_of_a_group_that_this_process_is_not_in():
    @cute.kernel
    def kernel(y: cute.Tensor, address):
        y[0] = cute.make_ptr(cute.Float32, address, "gmem").load()

    @cute.jit
    def host(y: cute.Tensor, address: cute.Int64):
        kernel(y, address).launch(grid=1, block=1)

    _, x = one_rank()
    other = sim.World(1)
    with pytest.raises(MemoryAccessError, match="belongs to no argument"):
        other.run(lambda rank: host(np.zeros(1, np.float32), x[0].addresses[1]))


def test_a_group_of_its_own_for_each_number_of_arguments():
    world, x = one_rank()
    with pytest.raises(DSLCallError, match="1 arguments for 2 ranks"):
        world.run(sum_of_ranks, x[:1])


# Time limits ------------------------------------------------------------------------------------


@cute.kernel
def late_kernel(x: SymmetricTensor, y: cute.Tensor):
    if arch.thread_idx()[0] == 0:
        x.signals.wait(1, 1, slot=9)
        x.signals.wait(1, 2, slot=9)
    y[arch.thread_idx()[0]] = 1


@cute.jit
def wait_for_rank_1(x, y: cute.Tensor):
    if x.rank == 0:
        late_kernel(x, y).launch(grid=1, block=32)


def test_a_wait_beyond_its_limit_names_rank_slot_and_line():
    with sim.ranks(2) as world:
        x = simulated(world, 4, np.int32, timeout=50e-9)
        y = [np.zeros(32, np.int32) for _ in x]
        world.run(wait_for_rank_1, x, y)
    x[1].check()
    assert (y[0] == 1).all()
    with pytest.raises(PeerTimeoutError) as found:
        x[0].check()
    text = str(found.value)
    assert "rank 0 waited 5e-08 s for the signal of rank 1 in slot 9" in text
    assert "x.signals.wait(1, 1, slot=9)" in text
    assert "it waited for 1, and the signal is 0" in text


@cute.kernel
def many_flags_kernel(x: SymmetricTensor, y: cute.Tensor, count: cute.Int32):
    lane = arch.lane_idx()
    if x.rank == 0:
        x.signals.wait_all(1, 7, 3, 3 + count)
        for i in range(lane, count, 32):
            y[i] = x.local[i]
    else:
        for i in range(lane, count, 32):
            arch.store(x.peer(0).iterator + i, i + 1)
            x.signals.notify(0, 7, 3 + i)


@cute.jit
def wait_for_many_flags(x, y: cute.Tensor, count: cute.Int32):
    many_flags_kernel(x, y, count).launch(grid=1, block=32)


@pytest.mark.parametrize("count", [0, 1, 40, 300])
def test_many_flags_are_waited_for_together(count):
    with sim.ranks(2, seed=count) as world:
        x = simulated(world, 300, np.int32, slots=303)
        y = [np.zeros(300, np.int32) for _ in x]
        world.run(lambda rank: wait_for_many_flags(x[rank], y[rank], count))
    assert (y[0][:count] == np.arange(count) + 1).all() and not y[0][count:].any()


def test_one_of_many_flags_that_does_not_come_is_named():
    with sim.ranks(2) as world:
        x = simulated(world, 300, np.int32, slots=303, timeout=20e-9)
        y = [np.zeros(300, np.int32) for _ in x]
        world.run(lambda rank: wait_for_many_flags(x[rank], y[rank], 300 if rank == 0 else 299))
    with pytest.raises(PeerTimeoutError, match="the signal of rank 1 in slot 302") as found:
        x[0].check()
    assert "x.signals.wait_all(1, 7, 3, 3 + count)" in str(found.value)


def test_without_a_limit_in_reach_the_simulator_says_who_waits_for_whom():
    with sim.ranks(2) as world:
        x = simulated(world, 4, np.int32)
        with pytest.raises(DeadlockError) as found:
            world.run(wait_for_rank_1, x, [np.zeros(32, np.int32) for _ in x])
    text = str(found.value)
    assert "rank 0 waits for the signal of rank 1 in slot 9 of rank 0" in text
    assert "rank 1 has ended without a launch" in text


def test_host_barriers_order_ranks():
    @cute.kernel
    def kernel(x: SymmetricTensor, y: cute.Tensor):
        y[0] = x.peer(1 - x.rank)[0]

    @cute.jit
    def host(x, y: cute.Tensor):
        kernel(x, y).launch(grid=1, block=1)

    for seed in range(3):
        with sim.ranks(2, seed) as world:
            x = simulated(world, 1, np.int32)
            y = [np.zeros(1, np.int32) for _ in x]

            def program(rank, world=world, x=x, y=y):
                x[rank].local[0] = rank + 5
                world.barrier()
                host(x[rank], y[rank])
                world.barrier()
                x[rank].local[0] = 0

            world.run(program)
        assert [int(each[0]) for each in y] == [6, 5]


def test_a_host_barrier_that_some_rank_does_not_reach():
    world = sim.World(3)
    with pytest.raises(DeadlockError, match="none of 3 ranks can go on") as found:
        world.run(lambda rank: world.barrier() if rank else None)
    assert "rank 0 has ended" in str(found.value)
    assert "rank 2 waits at a barrier of the host" in str(found.value)


def test_memory_of_nvshmem(monkeypatch):
    with pytest.raises(DSLRuntimeError, match="NVSHMEM's Python package is not installed"):
        monkeypatch.setitem(sys.modules, "nvshmem.core", None)
        from_nvshmem(np.zeros(4, np.float32))
    heap = {}  # of PE 1: the address of an array of this PE -> that of PE 0's
    local, pad = np.zeros(4, np.float32), np.zeros(pad_bytes(2), np.uint8)
    others = np.zeros_like(local), np.zeros_like(pad)
    for mine, other in zip((local, pad), others, strict=True):
        heap[mine.ctypes.data, 0] = other.ctypes.data
    core, bindings = (types.ModuleType(f"nvshmem.{name}") for name in ("core", "bindings"))
    core.my_pe, core.n_pes = lambda: 1, lambda: 2
    bindings.ptr = lambda address, pe: heap.get((address, pe), 0)
    monkeypatch.setitem(sys.modules, "nvshmem", types.ModuleType("nvshmem"))
    monkeypatch.setitem(sys.modules, "nvshmem.core", core)
    monkeypatch.setitem(sys.modules, "nvshmem.bindings", bindings)
    x = from_nvshmem(local, pad, np.zeros(8, np.int32), timeout=2)
    assert (x.rank, x.num_ranks, x.timeout) == (1, 2, 2)
    assert x.addresses == (others[0].ctypes.data, local.ctypes.data)
    places = [one.address for one in x.argument.signals.peers]
    assert places == [others[1].ctypes.data, pad.ctypes.data]
    heap.clear()
    with pytest.raises(DSLCallError, match="rank 0 has no address"):
        from_nvshmem(local)
    core.my_pe = core.n_pes = lambda: 0  # as the real one says before init
    with pytest.raises(DSLRuntimeError, match="NVSHMEM is not initialized"):
        from_nvshmem(local)


REAL_NVSHMEM = """
import sys
import numpy as np
import nvshmem.bindings, nvshmem.core
from basedsl import DSLRuntimeError
from basedsl_cute.distributed import from_nvshmem

assert nvshmem.bindings.ptr.__doc__.startswith("ptr(intptr_t dest, int pe) -> intptr_t")
try:
    from_nvshmem(np.zeros(4, np.float32))
except DSLRuntimeError as error:
    print(error)
"""


def test_the_real_nvshmem_says_that_it_is_not_initialized():
    """In a process of its own: NVSHMEM keeps its libraries loaded."""
    pytest.importorskip("nvshmem.core", reason="nvshmem4py is not installed")
    run = subprocess.run(
        [sys.executable, "-c", REAL_NVSHMEM], capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stderr
    assert "NVSHMEM is not initialized" in run.stdout or "NVSHMEM does not load" in run.stdout
