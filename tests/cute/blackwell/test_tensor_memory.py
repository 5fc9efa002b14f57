"""tcgen05.ld and st in every shape against figures of the PTX ISA, allocation, what is wrong.

`EXPECTED` says, from those figures alone, which lane and column register i of thread t is.
"""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl.errors import DSLError, DSLTypeError
from basedsl_cute import arch
from basedsl_cute.lowering.ptx import ptxas
from basedsl_cute.nvgpu import tcgen05
from basedsl_cute.runtime import from_dlpack

COLUMNS = 64
LOADS = {op.shape: op for op in (
    tcgen05.Ld32x32bOp, tcgen05.Ld16x256bOp, tcgen05.Ld16x128bOp, tcgen05.Ld16x64bOp,
    tcgen05.Ld16x32bx2Op,
)}  # fmt: skip
STORES = {op.shape: op for op in (
    tcgen05.St32x32bOp, tcgen05.St16x256bOp, tcgen05.St16x128bOp, tcgen05.St16x64bOp,
    tcgen05.St16x32bx2Op,
)}  # fmt: skip
# (thread, register, repetitions) -> (lane, column).
EXPECTED = {
    "32x32b": lambda t, i, n: (t, i),
    "16x256b": lambda t, i, n: (t // 4 + i // 2 % 2 * 8, t % 4 * 2 + i % 2 + i // 4 * 8),
    "16x128b": lambda t, i, n: (t // 4 + i % 2 * 8, t % 4 + i // 2 * 4),
    "16x64b": lambda t, i, n: (t // 4 + t % 2 * 8, t // 2 % 2 + i * 2),
    "16x32bx2": lambda t, i, n: (t % 16, i + t // 16 * n),
}
REGISTERS = {"32x32b": 1, "16x256b": 4, "16x128b": 2, "16x64b": 1, "16x32bx2": 1}
WIDTH = {"32x32b": 1, "16x256b": 8, "16x128b": 4, "16x64b": 2, "16x32bx2": 2}  # columns


@cute.kernel
def copy_through(x: cute.Tensor, y: cute.Tensor, store: cute.Constexpr, load: cute.Constexpr):
    """y[thread, register] = what `load` gives of a tile where `store` put x[thread, register]."""
    t, _, _ = arch.thread_idx()
    dtype = x.element_type
    warp = arch.make_warp_uniform(arch.warp_idx())
    smem = cute.utils.SmemAllocator()
    holder = smem.allocate_array(cute.Int32, 1)
    if warp == 0:
        arch.alloc_tmem(COLUMNS, holder)
    arch.sync_threads()
    start = arch.retrieve_tmem_ptr(dtype, 16, holder)
    tile = cute.make_tensor(start, cute.make_layout((128, COLUMNS), stride=(65536, 1)))
    for op, is_store in ((store, True), (load, False)):
        tiled = tcgen05.make_tmem_copy(cute.make_copy_atom(op, dtype), tile)
        mine = tiled.get_slice(t)
        if cute.const_expr(is_store):
            part = mine.partition_D(tile)
            registers = cute.make_rmem_tensor(COLUMNS, dtype)
            cute.autovec_copy(x[t, None], registers)
            shaped = cute.make_tensor(
                registers.iterator, cute.make_layout(mine.partition_S(tile).shape)
            )
            cute.copy(tiled, shaped, part)
            arch.fence_view_async_tmem_store()
        else:
            part = mine.partition_S(tile)
            shaped = cute.make_rmem_tensor(mine.partition_D(tile).shape, dtype)
            cute.copy(tiled, part, shaped)
            for i in cute.range_constexpr(COLUMNS):
                y[t, i] = shaped[i]
    arch.sync_threads()
    if warp == 0:
        arch.dealloc_tmem(start, COLUMNS)


def compile_copy(store, load, target, dtype=cute.Int32):
    x = np.arange(128 * COLUMNS, dtype=np.int32).reshape(128, COLUMNS) << 13  # numbers of TF32
    y = np.full_like(x, -1)

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor):
        copy_through(x, y, store, load).launch(grid=(1, 1, 1), block=(128, 1, 1))

    args = from_dlpack(x), from_dlpack(y)
    for tensor in args:
        tensor.element_type = dtype
    return cute.compile(host, *args, options=f"--arch {target}"), args, x, y


def places(shape, repeat):
    """(lane, column) of value i of each thread: registers, then upper lanes, then columns."""
    lane, column = np.zeros((2, 128, COLUMNS), int)
    in_one, deep = REGISTERS[shape] * repeat, 1 if shape == "32x32b" else 2
    for t in range(128):
        for i in range(COLUMNS):
            register, piece = i % in_one, i // in_one
            row, at = EXPECTED[shape](t % 32, register, repeat)
            lane[t, i] = t // 32 * 32 + row + piece % deep * 16
            column[t, i] = at + piece // deep * WIDTH[shape] * repeat
    return lane, column


CASES = [(shape, repeat) for shape in LOADS for repeat in (1, 4, COLUMNS // WIDTH[shape])]


@pytest.mark.parametrize(("shape", "repeat"), CASES)
def test_each_load_against_the_figure(shape, repeat):
    compiled, args, x, y = compile_copy(STORES["32x32b"](COLUMNS), LOADS[shape](repeat), "sim")
    compiled(*args)
    np.testing.assert_array_equal(y, x[places(shape, repeat)])


@pytest.mark.parametrize(("shape", "repeat"), CASES)
def test_each_store_against_the_figure(shape, repeat):
    compiled, args, x, y = compile_copy(STORES[shape](repeat), LOADS["32x32b"](COLUMNS), "sim")
    compiled(*args)
    np.testing.assert_array_equal(y[places(shape, repeat)], x)


def test_elements_of_tf32():
    store, load = STORES["32x32b"](COLUMNS), LOADS["16x64b"](4)
    compiled, args, x, y = compile_copy(store, load, "sim", cute.TFloat32)
    compiled(*args)
    np.testing.assert_array_equal(y, x[places("16x64b", 4)])


@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="there is no ptxas")
@pytest.mark.parametrize("shape", LOADS)
def test_ptxas_takes_each_shape(shape):
    compiled, *_ = compile_copy(STORES[shape](2), LOADS[shape](4), "sm_100a")
    text = compiled.stages.text("ptx")
    assert f"tcgen05.st.sync.aligned.{shape}.x2.b32" in text
    assert f"tcgen05.ld.sync.aligned.{shape}.x4.b32" in text
    assert text.index("tcgen05.ld.") < text.index("tcgen05.wait::ld")
    assert compiled.__cubin__


def test_an_architecture_without_is_named_with_the_line():
    with pytest.raises(DSLTypeError, match=r"sm_120a has no tcgen05") as error:
        compile_copy(STORES["32x32b"](1), LOADS["32x32b"](1), "sm_120a")
    assert error.value.span is not None and error.value.span.filename == __file__


@pytest.mark.parametrize("repeat", [3, 0, 64])
def test_a_repetition_that_there_is_not(repeat):
    with pytest.raises(DSLTypeError, match=r"a power of two times up to 32"):
        tcgen05.Ld16x256bOp(repeat)


# What the simulator finds -------------------------------------------------------------------------


@cute.kernel
def misuse(what: cute.Constexpr, y: cute.Tensor):
    t, _, _ = arch.thread_idx()
    warp = arch.make_warp_uniform(arch.warp_idx())
    smem = cute.utils.SmemAllocator()
    holder = smem.allocate_array(cute.Int32, 1)
    if warp == 0:
        arch.alloc_tmem(32, holder)
        if cute.const_expr(what == "permit"):
            arch.relinquish_tmem_alloc_permit()
            arch.alloc_tmem(32, holder)
        if cute.const_expr(what == "room"):
            arch.alloc_tmem(512, holder)
    arch.sync_threads()
    start = arch.retrieve_tmem_ptr(cute.Int32, 16, holder)
    columns = 64 if cute.const_expr(what == "columns") else 32
    tile = cute.make_tensor(start, cute.make_layout((128, columns), stride=(65536, 1)))
    st = tcgen05.make_tmem_copy(cute.make_copy_atom(tcgen05.St32x32bOp(columns), cute.Int32), tile)
    ld = tcgen05.make_tmem_copy(cute.make_copy_atom(tcgen05.Ld32x32bOp(columns), cute.Int32), tile)
    registers = cute.make_rmem_tensor((columns, 1, 1), cute.Int32)
    registers.fill(7)
    thread = t + 32 if cute.const_expr(what == "lanes") else t
    if cute.const_expr(what == "lanes"):
        thread = thread % 128
    if cute.const_expr(what != "unwritten"):
        cute.copy(st, registers, st.get_slice(thread).partition_D(tile))
    if cute.const_expr(what != "wait"):
        arch.fence_view_async_tmem_store()
    cute.copy(ld, ld.get_slice(t).partition_S(tile), registers)
    y[t] = registers[0]
    arch.sync_threads()
    if warp == 0:
        if cute.const_expr(what == "size"):
            arch.dealloc_tmem(start, 64)
        elif cute.const_expr(what != "free"):
            arch.dealloc_tmem(start, 32)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("permit", "after the block gave up the permit"),
        ("room", "512 columns of tensor memory; of 512 there are allocated 32 at"),
        ("columns", "columns 0 to 63 of tensor memory, which are not allocated"),
        ("lanes", "this warp reaches lanes"),
        ("unwritten", "column 0 of tensor memory, which nobody has written"),
        ("wait", "reads what a tcgen05.st may still write"),
        ("size", "dealloc of 64 columns at 0x0: 32 columns were allocated there"),
        ("free", "32 columns of tensor memory were never freed"),
    ],
)
def test_the_simulator_reports(what, message):
    y = from_dlpack(np.zeros(128, np.int32))

    @cute.jit
    def host(y: cute.Tensor):
        misuse(what, y).launch(grid=(1, 1, 1), block=(128, 1, 1))

    with pytest.raises(DSLError) as error:
        cute.compile(host, y, options="--arch sim")(y)
    assert message in str(error.value)


@cute.kernel
def element(what: cute.Constexpr, y: cute.Tensor):
    tile = cute.make_tensor(cute.make_ptr(cute.Int32, 0, "tmem"), cute.make_layout((128, 32)))
    if cute.const_expr(what == "read"):
        y[0] = tile[0]
    elif cute.const_expr(what == "write"):
        tile[0] = 1
    else:
        tile.fill(0)


@pytest.mark.parametrize("what", ["read", "write", "fill"])
def test_one_thread_cannot_access_tensor_memory(what):
    @cute.jit
    def host(y: cute.Tensor):
        element(what, y).launch(grid=(1, 1, 1), block=(1, 1, 1))

    with pytest.raises(DSLTypeError, match=r"one thread cannot (read|write) tensor memory"):
        cute.compile(host, from_dlpack(np.zeros(1, np.int32)), options="--arch sim")


@pytest.mark.parametrize("columns", [16, 48, 1024])
def test_a_number_of_columns_that_there_is_not(columns):
    @cute.kernel
    def kernel():
        holder = cute.utils.SmemAllocator().allocate_array(cute.Int32, 1)
        arch.alloc_tmem(columns, holder)

    @cute.jit
    def host():
        kernel().launch(grid=(1, 1, 1), block=(32, 1, 1))

    with pytest.raises(
        DSLTypeError, match=rf"{columns} columns are no power of two from 32 to 512"
    ):
        cute.compile(host, options="--arch sim")


def test_an_allocator_says_what_it_does_not_offer():
    with pytest.raises(DSLError, match=r"^TmemAllocator\.reserve is not offered: no public desc"):
        cute.utils.TmemAllocator(None).reserve(32)
    with pytest.raises(DSLError, match=r"^TmemAllocator\.num_columns is not offered: no public de"):
        _ = cute.utils.TmemAllocator(None).num_columns


def test_properties_of_a_copy():
    half = cute.make_copy_atom(
        tcgen05.Ld16x256bOp(tcgen05.Repetition.x4, tcgen05.Pack.PACK_16b_IN_32b), cute.Float16
    )
    assert tcgen05.get_tmem_copy_properties(half) == (16, 256, 4, tcgen05.Pack.PACK_16b_IN_32b)
    assert tcgen05.is_tmem_load(half) and not tcgen05.is_tmem_store(half)
    for repeat in tcgen05.Repetition.x8, tcgen05.Repetition.x128:
        store = cute.make_copy_atom(tcgen05.St16x32bx2Op(repeat), cute.Float32)
        assert tcgen05.get_tmem_copy_properties(store) == (16, 32, repeat, tcgen05.Unpack.NONE)
    assert tcgen05.is_tmem_store(store) and not tcgen05.is_tmem_load(store)
    two = tcgen05.St32x32bOp(1, tcgen05.Unpack.UNPACK_32b_IN_16b)
    assert two.packing is tcgen05.Unpack.UNPACK_32b_IN_16b and two.is_packed
    plain = cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32)
    with pytest.raises(DSLTypeError, match="get_tmem_copy_properties takes the atom of a tcgen05"):
        tcgen05.get_tmem_copy_properties(plain)
