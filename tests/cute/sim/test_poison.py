"""Values that nobody wrote, and quotients by zero: followed until they matter."""

import warnings

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLWarning
from basedsl_cute import arch
from basedsl_cute.sim import ArithmeticTrapError, SimulationWarning, UninitializedReadError

pytestmark = pytest.mark.usefixtures("sim")


def shared(count, dtype=cute.Float32):
    return cute.utils.SmemAllocator().allocate_tensor(dtype, cute.make_layout((count,)), 16)


@cute.jit
def host(kernel: cute.Constexpr, x: cute.Tensor, y: cute.Tensor, n: cute.Int32):
    kernel(x, y, n).launch(grid=1, block=64)


def run(kernel, n=0):
    y = np.zeros(64, np.float32)
    host(kernel, np.arange(64, dtype=np.float32), y, n)
    return y


# Discarded: nothing is reported ------------------------------------------------------------------


@cute.kernel
def stored_by_some(x: cute.Tensor, y: cute.Tensor, n: cute.Int32):
    t = arch.thread_idx()[0]
    tile = shared(64)
    if t < 16:
        tile[t] = x[t]
    arch.sync_threads()
    v = tile[t] * 2.0
    if t < 16:
        y[t] = v


@cute.kernel
def chosen(x: cute.Tensor, y: cute.Tensor, n: cute.Int32):
    t = arch.thread_idx()[0]
    tile = shared(64)
    if t < 16:
        tile[t] = x[t]
    arch.sync_threads()
    y[t] = cute.where(t < 16, tile[t] + 1.0, 0.0)


@cute.kernel
def by_way_of_shuffles(x: cute.Tensor, y: cute.Tensor, n: cute.Int32):
    t = arch.thread_idx()[0]
    tile = shared(64)
    if t % 32 < 16:
        tile[t] = x[t]
    arch.sync_threads()
    v = arch.shuffle_sync(tile[t], t % 16)
    y[t] = v


@cute.kernel
def copied_to_shared_memory(x: cute.Tensor, y: cute.Tensor, n: cute.Int32):
    t = arch.thread_idx()[0]
    a, b = shared(64), shared(64)
    if t < 16:
        a[t] = x[t]
    b[t] = a[t]
    arch.sync_threads()
    if t < 16:
        y[t] = b[15 - t]


@cute.kernel
def carried_by_a_loop(x: cute.Tensor, y: cute.Tensor, n: cute.Int32):
    t = arch.thread_idx()[0]
    tile = shared(64)
    if t < 16:
        tile[t] = x[t]
    arch.sync_threads()
    total = cute.Float32(0.0)
    for i in range(n, t % 3 + 3):
        total += tile[t] + i
    if t < 16:
        y[t] = total


@cute.kernel
def vector_of_registers(x: cute.Tensor, y: cute.Tensor, n: cute.Int32):
    t = arch.thread_idx()[0]
    mine = cute.make_rmem_tensor(cute.make_layout(4), cute.Float32)
    mine[0] = x[t]
    mine[2] = x[t]
    both = mine.load() * 2.0
    other = cute.make_rmem_tensor(cute.make_layout(4), cute.Float32)
    other.store(both)
    y[t] = other[0] + other[2]


@pytest.mark.parametrize(
    "kernel",
    [
        stored_by_some,
        chosen,
        by_way_of_shuffles,
        copied_to_shared_memory,
        carried_by_a_loop,
        vector_of_registers,
    ],
    ids=lambda k: k.__name__,
)
def test_what_is_discarded_is_not_reported(kernel):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = run(kernel)
    assert y[:16].any() and not np.isnan(y).any()


# Used: reported at the read, with the use --------------------------------------------------------


@cute.kernel
def stored_by_one_more(x: cute.Tensor, y: cute.Tensor, n: cute.Int32):
    t = arch.thread_idx()[0]
    tile = shared(64)
    if t < 16:
        tile[t] = x[t]
    arch.sync_threads()
    v = tile[t] * 2.0
    if t < 17:
        y[t] = v


@cute.kernel
def of_a_copy(x: cute.Tensor, y: cute.Tensor, n: cute.Int32):
    t = arch.thread_idx()[0]
    first, second = shared(64), shared(64)
    if t < 16:
        first[t] = x[t]
    second[t] = first[t]
    arch.sync_threads()
    y[t] = second[t]


@cute.kernel
def of_another_lane(x: cute.Tensor, y: cute.Tensor, n: cute.Int32):
    t = arch.thread_idx()[0]
    tile = shared(64)
    if t % 32 < 16:
        tile[t] = x[t]
    arch.sync_threads()
    y[t] = arch.shuffle_sync(tile[t], 16)


@cute.kernel
def element_of_a_vector(x: cute.Tensor, y: cute.Tensor, n: cute.Int32):
    t = arch.thread_idx()[0]
    mine = cute.make_rmem_tensor(cute.make_layout(4), cute.Float32)
    mine[0] = x[t]
    both = mine.load() * 2.0
    y[t] = both[0] + both[2]


@cute.kernel
def loop_bound(x: cute.Tensor, y: cute.Tensor, n: cute.Int32):
    t = arch.thread_idx()[0]
    bounds = shared(64, cute.Int32)
    total = cute.Float32(0.0)
    for i in range(bounds[t] & 3):
        total += x[i]
    y[t] = total


@pytest.mark.parametrize(
    ("kernel", "name", "role"),
    [
        (stored_by_one_more, "tile", "note: the value is stored to `y`"),
        (of_a_copy, "first", "note: the value is stored to `y`"),
        (of_another_lane, "tile", "note: the value is stored to `y`"),
        (element_of_a_vector, None, "note: the value is stored to `y`"),
        (loop_bound, "bounds", "note: the value is a bound of this loop"),
    ],
    ids=lambda k: getattr(k, "__name__", ""),
)
def test_what_is_used_is_reported(kernel, name, role):
    with pytest.raises(UninitializedReadError) as caught:
        run(kernel)
    text = str(caught.value)
    assert role in text and "thread (" in text
    assert f"of `{name}`" in text if name else "registers that nobody has written" in text


def test_levels(monkeypatch):
    monkeypatch.setenv("CUTE_DSL_CHECK_UNINITIALIZED", "warn")
    with pytest.warns(SimulationWarning, match="no thread has written") as caught:
        y = run(stored_by_one_more)
    assert len(caught) == 1 and y[15] == 30.0
    monkeypatch.setenv("CUTE_DSL_CHECK_UNINITIALIZED", "off")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert run(stored_by_one_more)[15] == 30.0


@cute.kernel
def chosen_by_unwritten(x: cute.Tensor, y: cute.Tensor, n: cute.Int32, stored: cute.Constexpr):
    t = arch.thread_idx()[0]
    r = cute.make_rmem_tensor(2, cute.Float32)
    if t < 20:
        r[0], r[1] = x[t], x[t] + 1
    a = t * 2 if r[0] >= 8 else t * 3
    b = r[1] * 2.0 if a > 3 else r[1]
    if stored or t < 20:
        y[t] = a + b


@cute.jit
def choose(x: cute.Tensor, y: cute.Tensor, stored: cute.Constexpr):
    chosen_by_unwritten(x, y, 0, stored).launch(grid=1, block=32)


def test_a_choice_by_what_nobody_wrote_is_followed():
    x, y, t = np.arange(32, dtype=np.float32), np.zeros(32, np.float32), np.arange(32)
    choose(x, y, False)
    a = np.where(t >= 8, t * 2, t * 3)
    wanted = a + np.where(a > 3, 2 * (x + 1), x + 1)
    assert (y == np.where(t < 20, wanted, 0)).all()
    with pytest.raises(UninitializedReadError, match="nobody has written") as caught:
        choose(x, y, True)
    assert "stored to" in str(caught.value) and "thread (20, 0, 0)" in str(caught.value)


@cute.struct
class Storage:
    tile: cute.struct.Align[cute.struct.MemRange[cute.Float32, 256], 1024]


@cute.kernel
def over_a_full_tile(x: cute.Tensor, y: cute.Tensor, is_first: cute.Constexpr):
    t = arch.thread_idx()[0]
    storage = cute.utils.SmemAllocator().allocate(Storage)
    tile = storage.tile.get_tensor(cute.make_layout(256))
    mine = cute.make_rmem_tensor(cute.make_layout(1), cute.Float32)
    if t:
        mine[0] = x[t]
    if is_first:
        tile[t] = x[t]
        arch.sync_threads()  # all of shared memory was written
    tile[t] = mine[0]
    arch.sync_threads()
    y[t] = tile[255 - t]


@cute.jit
def with_dynamic_memory(x: cute.Tensor, y: cute.Tensor, is_first: cute.Constexpr):
    over_a_full_tile(x, y, is_first).launch(grid=1, block=256, smem=Storage.size_in_bytes())


@pytest.mark.parametrize("is_first", [True, False])
def test_what_nobody_wrote_is_stored_over_a_full_tile(is_first):
    x, y = np.zeros((2, 256), np.float32)
    with pytest.raises(UninitializedReadError, match="nobody has written: element 0 of `mine`"):
        with_dynamic_memory(x, y, is_first)


@cute.kernel
def checked_registers(y: cute.Tensor, n: cute.Int32):
    sums = cute.make_rmem_tensor(cute.make_layout(2), cute.Float32)
    sums[0] = 2.0
    for r in range(n):
        is_bad = sums[r] == 0.0 or sums[r] != sums[r]
        sums[r] = 1.0 if is_bad else sums[r] + 1.0
    y[0] = sums[0]


def test_a_choice_among_checked_registers_is_followed():
    @cute.jit
    def host(y: cute.Tensor, n: cute.Int32):
        checked_registers(y, n).launch(grid=1, block=1)

    y = np.zeros(1, np.float32)
    host(y, 2)
    assert y[0] == 3.0


# Quotients by zero -------------------------------------------------------------------------------


@cute.kernel
def unused_quotient(x: cute.Tensor, y: cute.Tensor, n: cute.Int32):
    t = arch.thread_idx()[0]
    i = 7 % n + t // n
    if n == 0:
        i = cute.Int32(t)
    y[i] = 1.0


@cute.kernel
def used_quotient(x: cute.Tensor, y: cute.Tensor, n: cute.Int32):
    t = arch.thread_idx()[0]
    y[t] = cute.Float32(t // (t % 4))


def test_a_quotient_by_zero_that_nobody_uses():
    assert run(unused_quotient)[1] == 1.0


@cute.kernel
def by_static_zero(x: cute.Tensor, n: cute.Constexpr, stored: cute.Constexpr):
    both = x[0] // n + x[0] % n
    x[1] = both if stored else 5


@cute.jit
def divided(x: cute.Tensor, n: cute.Constexpr, stored: cute.Constexpr):
    by_static_zero(x, n, stored).launch(grid=1, block=1)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32])
def test_a_quotient_by_a_static_zero(dtype):
    x = np.full(2, 7, dtype)
    with pytest.warns(DSLWarning, match="by zero; divide only where"):
        divided(x, 0, False)
    assert x.tolist() == [7, 5]
    with (
        pytest.warns(DSLWarning, match="by zero"),
        pytest.raises(ArithmeticTrapError, match="by zero"),
    ):
        divided(x, 0, True)
    divided(x, 4, True)
    assert x.tolist() == [7, 1 + 3]


def test_a_quotient_by_zero_that_is_stored(monkeypatch):
    with pytest.raises(ArithmeticTrapError, match="by zero") as caught:
        run(used_quotient)
    text = str(caught.value)
    assert "t // (t % 4)" in text and "thread (0, 0, 0)" in text
    monkeypatch.setenv("CUTE_DSL_CHECK_DIVISION", "warn")
    with pytest.warns(SimulationWarning, match="by zero"):
        assert run(used_quotient)[7] == 2.0
    monkeypatch.setenv("CUTE_DSL_CHECK_DIVISION", "off")
    assert run(used_quotient)[7] == 2.0
