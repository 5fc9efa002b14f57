"""tcgen05.ld with a reduction of each thread's registers against NumPy; who has it."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLTypeError
from basedsl_cute import arch
from basedsl_cute.lowering.ptx import ptxas
from basedsl_cute.nvgpu import tcgen05
from basedsl_cute.nvgpu.tcgen05 import TmemLoadRedOp
from basedsl_cute.runtime import from_dlpack

COLUMNS = 64


@cute.kernel
def load_reduce(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor, op: cute.Constexpr):
    """y = x through tensor memory; z[thread, i] the reduction of the i-th load of a thread."""
    t, _, _ = arch.thread_idx()
    warp = arch.make_warp_uniform(arch.warp_idx())
    holder = cute.utils.SmemAllocator().allocate_array(cute.Int32, 1)
    if warp == 0:
        arch.alloc_tmem(COLUMNS, holder)
    arch.sync_threads()
    dtype = x.element_type
    start = arch.retrieve_tmem_ptr(dtype, 16, holder)
    tile = cute.make_tensor(start, cute.make_layout((128, COLUMNS), stride=(65536, 1)))
    put = tcgen05.make_tmem_copy(cute.make_copy_atom(tcgen05.St32x32bOp(COLUMNS), dtype), tile)
    get = tcgen05.make_tmem_copy(cute.make_copy_atom(op, dtype), tile)
    source = get.get_slice(t).partition_S(tile)
    registers = cute.make_rmem_tensor(get.get_slice(t).partition_D(tile).shape, dtype)
    flat = cute.make_tensor(registers.iterator, cute.make_layout(COLUMNS))
    stored = cute.make_tensor(
        registers.iterator, cute.make_layout(put.get_slice(t).partition_S(tile).shape)
    )
    cute.autovec_copy(x[t, None], flat)
    cute.copy(put, stored, put.get_slice(t).partition_D(tile))
    arch.fence_view_async_tmem_store()
    flat.fill(0)
    reduced = cute.make_rmem_tensor(COLUMNS // int(op.repeat), dtype)
    cute.copy(get, source, (registers, reduced))
    cute.autovec_copy(flat, y[t, None])
    cute.autovec_copy(reduced, z[t, None])
    arch.sync_threads()
    if warp == 0:
        arch.dealloc_tmem(start, COLUMNS)


def compile_reduce(op, kind, target):
    rng = np.random.default_rng(0)
    x = rng.integers(-(2**30), 2**30, (128, COLUMNS)).astype(kind)
    if kind is np.float32:
        x = rng.standard_normal((128, COLUMNS)).astype(kind)
        x[3, 5] = np.nan
    y, z = np.zeros_like(x), np.zeros((128, COLUMNS // int(op.repeat)), kind)

    @cute.jit
    def host(x: cute.Tensor, y: cute.Tensor, z: cute.Tensor):
        load_reduce(x, y, z, op).launch(grid=(1, 1, 1), block=(128, 1, 1))

    args = [from_dlpack(a, assumed_align=16) for a in (x, y, z)]
    return cute.compile(host, *args, options=f"--arch {target}"), args, (x, y, z)


REDUCTIONS = TmemLoadRedOp.MAX, TmemLoadRedOp.MIN, TmemLoadRedOp.MAXABS, TmemLoadRedOp.MINABS


@pytest.mark.parametrize("kind", [np.float32, np.int32, np.uint32])
@pytest.mark.parametrize("red", REDUCTIONS)
@pytest.mark.parametrize("repeat", [2, 32])
def test_against_numpy(kind, red, repeat):
    op = tcgen05.LdRed32x32bOp(tcgen05.Repetition(repeat), redOp=red)
    if kind is not np.float32 and red.name.endswith("ABS"):
        with pytest.raises(DSLTypeError, match=r"has no M..ABS of"):
            compile_reduce(op, kind, "sim")
        return
    compiled, args, (x, y, z) = compile_reduce(op, kind, "sim")
    compiled(*args)
    np.testing.assert_array_equal(y, x)
    parts = x.reshape(128, -1, repeat)
    parts = np.abs(parts) if red.name.endswith("ABS") else parts
    wanted = (np.fmax if red.name.startswith("MAX") else np.fmin).reduce(parts, 2)
    np.testing.assert_array_equal(z, wanted)


def half_rows(x, repeat):
    """The registers that LdRed16x32bx2Op loads of x, (threads, instructions, registers), first from
    one half of a warp's lanes, then from the other (PTX ISA, "tcgen05.ld").
    """
    t, i, r = np.indices((128, COLUMNS // repeat, repeat))
    lanes = t // 32 * 32 + i % 2 * 16 + t % 16
    return x[lanes, i // 2 * 2 * repeat + t % 32 // 16 * repeat + r]


@pytest.mark.parametrize("kind", [np.float32, np.int32])
@pytest.mark.parametrize("repeat", [2, 32])
def test_each_half_of_a_warp_reduces_its_own_columns(kind, repeat):
    op = tcgen05.LdRed16x32bx2Op(tcgen05.Repetition(repeat), redOp=TmemLoadRedOp.MIN)
    compiled, args, (x, y, z) = compile_reduce(op, kind, "sim")
    compiled(*args)
    loaded = half_rows(x, repeat)
    np.testing.assert_array_equal(y.reshape(loaded.shape), loaded)
    np.testing.assert_array_equal(z, np.fmin.reduce(loaded, 2))


@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="there is no ptxas")
@pytest.mark.parametrize(
    "op",
    [*(tcgen05.LdRed32x32bOp(16, red) for red in REDUCTIONS), tcgen05.LdRed16x32bx2Op(16)],
    ids=lambda op: f"{op.shape}-{op.redOp.name}",
)
def test_ptxas_takes_it(op):
    compiled, *_ = compile_reduce(op, np.float32, "sm_103a")
    wanted = f"tcgen05.ld.red.sync.aligned.{op.shape}.x16.{op.redOp.value}.f32"
    assert wanted in compiled.stages.text("ptx")
    assert compiled.__cubin__


def test_sm_100_does_not_have_it():
    with pytest.raises(DSLTypeError, match=r"sm_100a has no tcgen05.ld with a reduction: only the"):
        compile_reduce(tcgen05.LdRed32x32bOp(16), np.float32, "sm_100a")
