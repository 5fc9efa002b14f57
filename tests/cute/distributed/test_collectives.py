"""Collectives on simulated ranks, against sums and copies in NumPy."""

import ml_dtypes
import numpy as np
import pytest

from basedsl import DSLCallError, DSLTypeError
from basedsl_cute import sim
from basedsl_cute.distributed import PeerTimeoutError
from basedsl_cute.ops.distributed import launches
from basedsl_cute.ops.distributed.workspaces import ALGORITHMS, simulated_workspaces

pytestmark = pytest.mark.usefixtures("sim")


def arrays(ranks, shape, dtype, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.integers(-8, 9, shape).astype(dtype) for _ in range(ranks)]


def run(ranks, seed, call, threads=32, blocks=2):
    """Run `call(rank, workspace)` on each rank, after a barrier of the host, as programs begin."""
    with sim.ranks(ranks, seed) as world:
        spaces = simulated_workspaces(world, blocks, threads)
        world.run(lambda rank: call(rank, spaces[rank]))
    return spaces


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("ranks, seed", [(2, 0), (2, 3), (4, 1), (8, 2)])
def test_all_reduce(algorithm, ranks, seed):
    x = arrays(ranks, 240 if ranks < 8 else 128, np.float32)
    y = [np.zeros_like(each) for each in x]

    def call(rank, space):
        for _turn in range(3):  # rings and buffers are used again
            y[rank][:] = 0
            space.all_reduce(x[rank], y[rank], algorithm)

    run(ranks, seed, call)
    assert all((each == sum(x)).all() for each in y)


def test_small_calls_between_large_ones():
    """Threads that have no vector in some calls find no words of earlier ones in later calls."""
    sizes = [128, 128, 8, 128, 128, 4, 4, 128, 128, 128]
    wanted = [np.full(size, 3.0 * (turn + 1), np.float32) for turn, size in enumerate(sizes)]
    y = [[np.zeros_like(one) for one in wanted] for _ in range(2)]

    def call(rank, space):
        for turn, size in enumerate(sizes):
            x = np.full(size, (rank + 1.0) * (turn + 1), np.float32)
            space.all_reduce(x, y[rank][turn], "lamport")

    run(2, 0, call)
    for each in y:
        assert all((got == one).all() for got, one in zip(each, wanted, strict=True))


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16])
def test_all_reduce_of_narrow_floats_adds_in_float32(dtype):
    x = arrays(2, 64, dtype)
    x[0][:4], x[1][:4] = -0.0, 0.0
    y = [np.zeros_like(each) for each in x]
    wanted = sum(each.astype(np.float32) for each in x).astype(dtype)
    for algorithm in ALGORITHMS:
        run(2, 1, lambda rank, space, a=algorithm: space.all_reduce(x[rank], y[rank], a))
        assert all((each == wanted).all() for each in y)


@pytest.mark.parametrize("count", [0, 1, 7, 33])
def test_all_reduce_of_odd_sizes_and_addresses(count):
    x = [each[1:] for each in arrays(2, count + 1, np.float16)]
    y = [each[1:] for each in arrays(2, count + 1, np.float16, 1)]
    run(2, 0, lambda rank, space: space.all_reduce(x[rank], y[rank]))
    assert all((each == sum(x)).all() for each in y)


def test_all_reduce_in_place():
    x = arrays(2, 300, np.float32)
    wanted = sum(x)
    run(2, 5, lambda rank, space: space.all_reduce(x[rank], x[rank], "one_shot"))
    assert all((each == wanted).all() for each in x)


@pytest.mark.parametrize("ranks, seed", [(2, 0), (4, 1)])
@pytest.mark.parametrize("each", [1, 200])
def test_all_gather_reduce_scatter_and_all_to_all(ranks, seed, each):
    x = arrays(ranks, (ranks, each), np.float32)
    gathered = [np.zeros((ranks, each), np.float32) for _ in x]
    summed = [np.zeros(each, np.float32) for _ in x]
    turned = [np.zeros((ranks, each), np.float32) for _ in x]

    def call(rank, space):
        space.all_gather(x[rank][0], gathered[rank])
        space.reduce_scatter(x[rank], summed[rank])
        space.all_to_all(x[rank], turned[rank])

    run(ranks, seed, call)
    for rank in range(ranks):
        assert (gathered[rank] == np.stack([one[0] for one in x])).all()
        assert (summed[rank] == sum(x)[rank]).all()
        assert (turned[rank] == np.stack([one[rank] for one in x])).all()


@pytest.mark.parametrize("ranks, seed", [(2, 0), (2, 2), (4, 1)])
def test_all_to_all_of_rows(ranks, seed):
    rng = np.random.default_rng(seed)
    matrix = rng.integers(0, 5, (ranks, ranks)).astype(np.int32)
    matrix[0, :] = 0
    matrix[1, 0] = 9
    columns = 24
    x = [rng.random((max(1, int(row.sum())), columns)).astype(np.float32) for row in matrix]
    room = int(matrix.sum(0).max())
    y = [np.full((room, columns), -1, np.float32) for _ in x]
    got = [np.zeros(ranks, np.int32) for _ in x]

    def call(rank, space):
        for _turn in range(2):
            space.all_to_all_rows(x[rank], matrix[rank].copy(), y[rank], got[rank])

    run(ranks, seed, call)
    starts = np.concatenate([np.zeros((ranks, 1), int), matrix.cumsum(1)], 1)
    for rank in range(ranks):
        assert got[rank].tolist() == matrix[:, rank].tolist()
        rows = [x[s][starts[s, rank] : starts[s, rank + 1]] for s in range(ranks)]
        wanted = np.concatenate(rows)
        assert (y[rank][: len(wanted)] == wanted).all()
        assert (y[rank][len(wanted) :] == -1).all()


@pytest.mark.parametrize(
    "ranks, rows, columns, blocks, turns",
    [(2, 5, 128, 2, 1), (4, 5, 72, 2, 1), (2, 3, 136, 8, 1), (2, 2, 256, 4, 6), (2, 5, 7, 2, 1)],
)  # the third and the fourth are without flags
def test_all_reduce_with_residual_and_norm(ranks, rows, columns, blocks, turns):
    x = arrays(ranks, (rows, columns), np.float32)
    residual = [np.ones((rows, columns), np.float32) for _ in x]
    weight = np.linspace(0.5, 2, columns, dtype=np.float32)
    y = [np.zeros((rows, columns), np.float32) for _ in x]

    def call(rank, space):
        for _turn in range(turns):
            space.all_reduce_norm(x[rank], residual[rank], weight, y[rank], 1e-3)
            space.all_reduce(x[rank][:1], y[rank][:1].copy())  # other turns of some buffers

    run(ranks, 1, call, blocks=blocks)
    total = turns * sum(x) + 1
    wanted = total / np.sqrt((total * total).mean(1, keepdims=True) + 1e-3) * weight
    for rank in range(ranks):
        assert (residual[rank] == total).all()
        np.testing.assert_allclose(y[rank], wanted, rtol=1e-5, atol=1e-5)


def test_calls_of_compiled_code(monkeypatch):
    """On a GPU a call is one of compiled code: the same arguments, without the static ones."""
    monkeypatch.setattr(launches.Flat, "is_on_gpu", True)
    monkeypatch.setattr(launches, "_compiled", {})
    x = arrays(2, (3, 64), np.float32)
    y, residual = ([np.zeros((3, 64), np.float32) for _ in x] for _ in range(2))
    sizes = np.array([1, 2], np.int32)
    got = [np.zeros(2, np.int32) for _ in x]
    weight = np.ones(64, np.float32)

    def call(rank, space):
        for algorithm in (*ALGORITHMS, None):
            space.all_reduce(x[rank], y[rank], algorithm)
        space.all_reduce_norm(x[rank], residual[rank], weight, y[rank])
        space.all_to_all_rows(x[rank], sizes, y[rank], got[rank])

    run(2, 0, call)
    assert (residual[0] == sum(x)).all()
    assert (y[0][:2] == np.stack([x[0][0], x[1][0]])).all()
    assert [each.tolist() for each in got] == [[1, 1], [2, 2]]
    assert len(launches._compiled) == 5
    run(2, 0, lambda rank, space: space.all_reduce(x[rank], y[rank]), blocks=4)
    assert len(launches._compiled) == 6  # a workspace of another size has code of its own


def test_errors():
    def wrong(call):
        return run(2, 0, call)

    x = np.zeros(12, np.float32)
    with pytest.raises(DSLTypeError, match="y has 8 elements, and x is for 12"):
        wrong(lambda rank, space: space.all_reduce(x, np.zeros(8, np.float32)))
    with pytest.raises(DSLTypeError, match="x is of Float32, y of Int32"):
        wrong(lambda rank, space: space.all_reduce(x, np.zeros(12, np.int32)))
    with pytest.raises(DSLTypeError, match="adds Float32, Float16 and BFloat16"):
        wrong(lambda rank, space: space.all_reduce(x.astype(int), x.astype(int)))
    with pytest.raises(DSLCallError, match="is no algorithm"):
        wrong(lambda rank, space: space.all_reduce(x, x.copy(), "ring"))
    with pytest.raises(DSLCallError, match="whole vectors of 16 bytes"):
        wrong(lambda rank, space: space.all_reduce(x[:3], x[:3].copy(), "lamport"))
    with pytest.raises(DSLTypeError, match="not contiguous"):
        wrong(lambda rank, space: space.all_reduce(x[::2], x[::2].copy()))
    with pytest.raises(DSLTypeError, match="y has 12 elements, and x is for 24"):
        wrong(lambda rank, space: space.all_gather(x, x.copy()))
    long = np.zeros((1, 4096), np.float32)
    with pytest.raises(DSLCallError, match="a row of 4096 elements is more than 4096 bytes"):
        wrong(lambda rank, space: space.all_reduce_norm(long, long, long[0], long.copy()))
    with pytest.raises(DSLTypeError, match="2 Int32 each"):
        wrong(lambda rank, space: space.all_to_all_rows(x, x, x.copy(), x))


def test_a_rank_that_sends_and_gets_no_rows():
    x = [np.zeros((0, 8), np.float32), np.ones((3, 8), np.float32)]
    sizes = [np.array(n, np.int32) for n in ([0, 0], [0, 3])]
    y, got = [np.zeros((3, 8), np.float32) for _ in x], [np.ones(2, np.int32) for _ in x]
    y[0] = y[0][:0]
    run(2, 0, lambda rank, space: space.all_to_all_rows(x[rank], sizes[rank], y[rank], got[rank]))
    assert (y[1] == 1).all() and [each.tolist() for each in got] == [[0, 0], [0, 3]]
    run(2, 0, lambda rank, space: space.all_reduce_norm(x[0], x[0].copy(), x[1][0], x[0].copy()))


@pytest.mark.parametrize("options", [{"blocks": 0}, {"threads": 33}, {"threads": 2048}])
def test_workspaces_of_no_size(options):
    with sim.ranks(2) as world, pytest.raises(DSLCallError, match="a workspace of"):
        simulated_workspaces(world, **options)


def test_a_rank_that_does_not_come_is_an_error_of_the_others():
    x = arrays(2, 64, np.float32)
    with sim.ranks(2) as world:
        spaces = simulated_workspaces(world, timeout=100e-9)

        def call(rank):
            if rank == 0:
                spaces[0].all_reduce(x[0], np.zeros_like(x[0]))

        world.run(call)
    with pytest.raises(PeerTimeoutError, match="rank 0 waited 1e-07 s for the signal of rank 1"):
        spaces[0].all_reduce(x[0], np.zeros_like(x[0]))
