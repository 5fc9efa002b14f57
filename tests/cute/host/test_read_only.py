"""Nothing is written through an argument whose array is read-only; reading it is fine."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLTypeError


def frozen(*values):
    array = np.array(values, np.float32)
    array.flags.writeable = False
    return array


@cute.kernel
def add_kernel(x: cute.Tensor, y: cute.Tensor):
    i = cute.arch.thread_idx()[0]
    y[i] = y[i] + x[i]


@cute.jit
def add(x: cute.Tensor, y: cute.Tensor):
    add_kernel(x, y).launch(grid=1, block=2)


@cute.jit
def add_twice(x: cute.Tensor, y: cute.Tensor):
    add_kernel(y, x).launch(grid=1, block=2)
    add_kernel(x, y).launch(grid=1, block=2)


@pytest.mark.parametrize("options", ["--arch sim", "--arch sm_90a"])
def test_a_write_is_an_error_on_every_target(options):
    with pytest.raises(DSLTypeError, match="'y' is written, and its array is read-only") as caught:
        cute.compile(add, np.ones(2, np.float32), frozen(1, 2), options=options)
    assert caught.value.span.source_line.strip() == "y[i] = y[i] + x[i]"


def test_the_argument_of_the_host_function_is_named(sim):
    with pytest.raises(DSLTypeError, match="'x' is written"):
        add_twice(frozen(1, 2), np.zeros(2, np.float32))


def test_reading_is_fine(sim):
    y = np.ones(2, np.float32)
    add(frozen(1, 2), y)
    np.testing.assert_array_equal(y, [2, 3])


def test_the_same_function_writes_an_array_that_may_be_written(sim):
    x, y = np.ones(2, np.float32), np.zeros(2, np.float32)
    for _ in range(3):
        add(x, y)
    with pytest.raises(DSLTypeError):
        add(x, frozen(0, 0))
    np.testing.assert_array_equal(y, 3)


# Addresses that go further than a view ----------------------------------------------------------


@cute.kernel
def by_a_loop(x: cute.Tensor, y: cute.Tensor):
    at = y.iterator
    for i in range(x.shape[0]):
        cute.make_tensor(at, 1)[0] = x[i]
        at = at + 1


@cute.kernel
def by_a_while(x: cute.Tensor, y: cute.Tensor):
    at = y.iterator
    n = x.shape[0]
    while n > 0:
        at = at + 1
        n -= 1
    cute.make_tensor(at - 1, 1)[0] = x[0]


@cute.kernel
def by_a_branch(x: cute.Tensor, y: cute.Tensor):
    at = x.iterator
    if cute.arch.thread_idx()[0] == 0:
        at = y.iterator
    cute.make_tensor(at, 1)[0] = 3.0


@cute.kernel
def by_ptx(x: cute.Tensor, y: cute.Tensor):
    cute.arch.inline_ptx("st.global.f32 [$0], $1;", [y.iterator, x[0]])


@cute.kernel
def by_a_reduction_in_ptx(x: cute.Tensor, y: cute.Tensor):
    cute.arch.inline_ptx("{ red.global.add.f32 [$0+4], $1; }", [y.iterator, x[0]])


@cute.kernel
def by_a_register_of_ptx(x: cute.Tensor, y: cute.Tensor):
    cute.arch.inline_ptx(
        "{ .reg .b64 %a; add.u64 %a, $0, 4; st.f32 [%a], $1; }", [y.iterator, x[0]]
    )


@cute.kernel
def by_a_bulk_copy(x: cute.Tensor, y: cute.Tensor):
    smem = cute.utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout(4))
    smem[0] = x[0]
    cute.copy(cute.make_copy_atom(cute.nvgpu.cpasync.CopyBulkS2GOp(), cute.Float32), smem, y)


KERNELS = {
    one.fn.__name__: one
    for one in (
        by_a_loop,
        by_a_while,
        by_a_branch,
        by_ptx,
        by_a_reduction_in_ptx,
        by_a_register_of_ptx,
        by_a_bulk_copy,
    )
}


def compiled(kernel, x, y):
    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor):
        kernel(x, y).launch(grid=1, block=1)

    return cute.compile(host, x, y, options="--arch sm_90a")


@pytest.mark.parametrize("name", KERNELS)
def test_addresses_are_followed(name):
    writable = np.ones(4, np.float32)
    compiled(KERNELS[name], frozen(1, 2, 3, 4) if name != "by_a_branch" else writable, writable)
    with pytest.raises(DSLTypeError, match="'y' is written, and its array is read-only"):
        compiled(KERNELS[name], writable, frozen(1, 2, 3, 4))


@cute.kernel
def reading(x: cute.Tensor, y: cute.Tensor):
    value = cute.arch.inline_ptx("ld.global.f32 $0, [$1];", [x.iterator], cute.Float32)
    cute.arch.inline_ptx("st.global.f32 [$0], $1;", [y.iterator, value])
    distance = x.iterator.toint() - x.iterator.toint()
    y[distance] = value


def test_reading_by_ptx_and_distances_are_fine():
    compiled(reading, frozen(1, 2, 3, 4), np.zeros(4, np.float32))


@cute.kernel
def by_tma(atom: cute.CopyAtom, y: cute.Tensor):
    smem = cute.utils.SmemAllocator().allocate_tensor(cute.Float32, cute.make_layout((8, 8)), 128)
    tile = cute.local_tile(y, (8, 8), (0, 0))
    ours, theirs = cute.nvgpu.cpasync.tma_partition(
        atom, 0, cute.make_layout(1), cute.group_modes(smem, 0, 2), cute.group_modes(tile, 0, 2)
    )
    cute.copy(atom, ours, theirs)


@cute.jit
def store_by_tma(y: cute.Tensor):
    atom, tensor = cute.nvgpu.cpasync.make_tiled_tma_atom(
        cute.nvgpu.cpasync.CopyBulkTensorTileS2GOp(), y, cute.make_layout((8, 8)), (8, 8)
    )
    by_tma(atom, tensor).launch(grid=1, block=32)


def test_stores_by_tma_are_followed():
    y = np.zeros((8, 8), np.float32, order="F")
    cute.compile(store_by_tma, y, options="--arch sm_90a")
    y.flags.writeable = False
    with pytest.raises(DSLTypeError, match="'y' is written, and its array is read-only"):
        cute.compile(store_by_tma, y, options="--arch sm_90a")
