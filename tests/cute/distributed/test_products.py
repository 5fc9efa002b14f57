"""Matrix products with communication on simulated ranks, against NumPy."""

import ml_dtypes
import numpy as np
import pytest

from basedsl import DSLCallError, DSLTypeError
from basedsl_cute import sim
from basedsl_cute.ops.distributed import products, scatter_product
from basedsl_cute.ops.distributed.product_pace import Rounds, push_pace, store_pace
from basedsl_cute.ops.distributed.products import simulated_product_workspaces
from basedsl_cute.ops.hopper.config import Config

pytestmark = pytest.mark.usefixtures("sim")

SMALL = {"tile": (64, 64, 64), "stages": 3, "pingpong": True, "producer_registers": 40}
MULTICAST = SMALL | {"cluster": (2, 1)}
SHARED = SMALL | {"pingpong": False, "tile": (128, 64, 64), "deferred": True}


def slow(*values):
    return pytest.param(*values, marks=pytest.mark.slow)


def matrices(count, rows, columns, dtype=np.float16):
    rng = np.random.default_rng(rows + columns)
    return [rng.integers(-3, 4, (rows, columns)).astype(dtype) for _ in range(count)]


def run(ranks, seed, call, nbytes=1 << 18):
    with sim.ranks(ranks, seed) as world:
        spaces = simulated_product_workspaces(world, nbytes)
        world.run(lambda rank: call(rank, spaces[rank]))


def wide(x):
    return x.astype(np.float32)


@pytest.mark.parametrize(
    "ranks, rows, n, k, seed, options, turns",
    [
        (2, 24, 64, 64, 0, SMALL, 1),
        slow(2, 40, 64, 72, 3, SMALL, 3),  # both halves of the memory, and the first again
        slow(2, 130, 64, 64, 1, SHARED, 1),
        slow(2, 200, 72, 136, 1, MULTICAST, 2),
        slow(4, 72, 72, 136, 2, SMALL, 2),
        slow(8, 24, 64, 64, 1, SMALL, 1),
    ],
)
def test_all_gather_with_product(ranks, rows, n, k, seed, options, turns):
    x, weight = matrices(ranks, rows, k), matrices(ranks, n, k)
    y = [np.zeros((turns, ranks * rows, n), np.float16) for _ in x]

    def call(rank, space):
        for turn in range(turns):
            own = x[rank] * (turn + 1)
            space.all_gather_matmul(own, weight[rank], y[rank][turn], Config(**options))

    run(ranks, seed, call)
    for rank in range(ranks):
        wanted = wide(np.concatenate(x)) @ wide(weight[rank]).T
        for turn in range(turns):
            assert (y[rank][turn] == (wanted * (turn + 1)).astype(np.float16)).all()


@pytest.mark.parametrize(
    "ranks, rows, n, k, seed, options, turns, everywhere",
    [
        (2, 24, 64, 64, 2, SMALL, 1, True),
        slow(2, 72, 72, 136, 0, SMALL, 1, False),
        slow(2, 40, 64, 72, 3, SMALL, 3, True),
        slow(2, 200, 72, 136, 1, MULTICAST, 2, True),
        slow(2, 200, 72, 136, 4, MULTICAST, 2, False),
        slow(2, 130, 72, 136, 2, SHARED, 2, True),
        slow(2, 40, 64, 64, 5, SHARED, 1, False),
        slow(4, 72, 72, 136, 2, SMALL, 2, True),
        slow(8, 24, 64, 64, 1, SMALL, 1, False),
    ],
)
def test_product_with_a_sum_over_ranks(ranks, rows, n, k, seed, options, turns, everywhere):
    x, weight = matrices(ranks, ranks * rows, k), matrices(ranks, n, k)
    y = [np.zeros((turns, ranks * rows if everywhere else rows, n), np.float16) for _ in x]

    def call(rank, space):
        product = space.matmul_all_reduce if everywhere else space.matmul_reduce_scatter
        for turn in range(turns):
            product(x[rank] * (turn + 1), weight[rank], y[rank][turn], Config(**options))

    run(ranks, seed, call)
    total = sum(wide(a) @ wide(b).T for a, b in zip(x, weight, strict=True))
    for rank in range(ranks):
        wanted = total if everywhere else total[rank * rows : (rank + 1) * rows]
        for turn in range(turns):
            assert (y[rank][turn] == (wanted * (turn + 1)).astype(np.float16)).all()


@pytest.mark.slow
@pytest.mark.parametrize("everywhere, every", [(False, 1), (True, 1), (False, 2)])
def test_tiles_that_are_announced_while_the_next_is_multiplied(monkeypatch, everywhere, every):
    monkeypatch.setattr(scatter_product.Exchange, "delay", 2)
    monkeypatch.setattr(products, "store_pace", lambda rounds, pace: (0, every))
    options = SHARED | {"stages": 2}
    x, weight = matrices(2, 2 * 130, 264), matrices(2, 40, 264)  # five steps of K
    y = [np.zeros((260 if everywhere else 130, 40), np.float16) for _ in x]

    def call(rank, space):
        product = space.matmul_all_reduce if everywhere else space.matmul_reduce_scatter
        product(x[rank], weight[rank], y[rank], Config(**options))

    run(2, 1, call)
    total = sum(wide(a) @ wide(b).T for a, b in zip(x, weight, strict=True))
    for rank in range(2):
        part = total if everywhere else total[rank * 130 : (rank + 1) * 130]
        assert (y[rank] == part.astype(np.float16)).all()


@pytest.mark.slow
@pytest.mark.parametrize("gathers", [False, True])
def test_transfers_that_take_their_time(monkeypatch, gathers):
    monkeypatch.setattr(products, "push_pace", lambda rounds, chunks, pace: 7)
    monkeypatch.setattr(products, "store_pace", lambda rounds, pace: (7, 1))
    x, weight = matrices(2, 80, 64), matrices(2, 64, 64)
    y = [np.zeros((160 if gathers else 40, 64), np.float16) for _ in x]

    def call(rank, space):
        product = space.all_gather_matmul if gathers else space.matmul_reduce_scatter
        product(x[rank], weight[rank], y[rank], Config(**SMALL))

    run(2, 1, call)
    total = sum(wide(a) @ wide(b).T for a, b in zip(x, weight, strict=True))
    for rank in range(2):
        wanted = total[rank * 40 : (rank + 1) * 40]
        if gathers:
            wanted = wide(np.concatenate(x)) @ wide(weight[rank]).T
        assert (y[rank] == wanted.astype(np.float16)).all()


def test_the_pace_leaves_the_time_until_data_is_needed():
    square = Config(tile=(128, 128, 64), cluster=(2, 1), pingpong=True)
    two = Rounds(square, 256, 8192, 4096, 2, 132)  # this rank's tiles, then the peer's
    assert (two.of_a_shard, two.count, two.resident) == (64, 2, 64)
    assert push_pace(two, 512, 0.5) == int(0.5 * 0.8 * 0.5 * two.nanoseconds / 512)
    assert push_pace(Rounds(square, 128, 4096, 4096, 2, 132), 512, 0.5) == 0  # all at once
    assert store_pace(two, 1.0) == (int(0.6 * two.nanoseconds / 4), 1)
    assert store_pace(Rounds(square, 256, 4096, 8192, 2, 132), 0.5) == (0, 1)
    shared = Config(tile=(128, 256, 64), cluster=(2, 1), deferred=True)
    assert store_pace(Rounds(shared, 1024, 4096, 8192, 2, 132), 1.0) == (0, 8)


def test_errors():
    def wrong(call):
        return run(2, 0, call, 1 << 12)

    x, weight, y = np.zeros((64, 64)), np.zeros((64, 64)), np.zeros((128, 64))
    x, weight, y = (one.astype(ml_dtypes.bfloat16) for one in (x, weight, y))
    with pytest.raises(DSLCallError, match="takes 32768 bytes of the workspace, which has 4096"):
        wrong(lambda rank, space: space.all_gather_matmul(x, weight, y))
    with pytest.raises(DSLTypeError, match="x has 64 x 64 elements, weight 64 x 64, and y 4096"):
        wrong(lambda rank, space: space.all_gather_matmul(x, weight, y[:64]))
    with pytest.raises(DSLTypeError, match="and weight is of Float32"):
        wrong(lambda rank, space: space.all_gather_matmul(x, weight.astype(np.float32), y))
    with pytest.raises(DSLTypeError, match="x has rows that are no multiples of 8 elements"):
        wrong(lambda rank, space: space.all_gather_matmul(x[:, :4].copy(), weight, y))
    with pytest.raises(DSLTypeError, match="x is of BFloat16, y of Float16"):
        wrong(lambda rank, space: space.all_gather_matmul(x, weight, y.astype(np.float16)))
    with pytest.raises(DSLTypeError, match="the config is a str, not a Config"):
        wrong(lambda rank, space: space.all_gather_matmul(x, weight, y, "tune"))
    with pytest.raises(DSLCallError, match="a product over no elements"):
        wrong(lambda rank, space: space.all_gather_matmul(x[:, :0], weight[:, :0], y))
    wrong(lambda rank, space: space.all_gather_matmul(x[:0], weight, y[:0]))  # no rows, no work
    wrong(lambda rank, space: space.matmul_all_reduce(x, weight[:0], y[:64, :0]))
    with pytest.raises(DSLCallError, match="63 rows are no 2 equal parts"):
        wrong(lambda rank, space: space.matmul_reduce_scatter(x[:63], weight, y[:32]))


@pytest.mark.parametrize("rows, k, lines", [(4096, 4096, 128), (256, 4096, 16), (8, 64, 16)])
def test_small_shards_are_pushed_in_small_chunks(rows, k, lines):
    assert products._chunk(rows, k, 128, 132 * 6)[0] == lines
