"""Operations that a program builds with MLIR's bindings: the simulator runs them, PTX has them."""

import numpy as np
import pytest

import basedsl_cute as cute
import basedsl_cute as cutlass
from basedsl import DSLError
from basedsl_cute._mlir import ir
from basedsl_cute._mlir.dialects import arith, cute_nvgpu, llvm, math, nvvm, vector
from basedsl_cute.cutlass_dsl import (
    T,
    and_,
    dsl_user_op,
    for_generate,
    if_generate,
    not_,
    select_,
    while_generate,
    yield_out,
)

LANES = np.arange(32)


@dsl_user_op
def twice(x, *, loc=None, ip=None):
    return cute.Float32(
        llvm.inline_asm(
            T.f32(),
            [x.ir_value(loc=loc, ip=ip)],
            "add.f32 $0, $1, $1;",
            "=f,f",
            has_side_effects=False,
            is_align_stack=False,
            asm_dialect=llvm.AsmDialect.AD_ATT,
            loc=loc,
            ip=ip,
        )
    )


def extrema(t):
    x = cute.Float32(t)
    low = nvvm.fmin(T.f32(), x.ir_value(), cute.Float32(7.0).ir_value())
    high = nvvm.fmax(low, cute.Float32(3.0), c=cute.Float32(4.0))
    return cute.Float32(high)


def through_bits(t):
    pair = vector.from_elements(T.vector(2, T.f32()), (cute.Float32(t), cute.Float32(1.5)))
    whole = vector.bitcast(T.vector(1, T.i64()), pair)
    bits = cute.Int64(vector.extract(whole, dynamic_position=[], static_position=[0]))
    back = vector.bitcast(T.vector(2, T.f32()), vector.from_elements(T.vector(1, T.i64()), [bits]))
    first, second = (cute.Float32(vector.extract(back, [], [i])) for i in (0, 1))
    return first + second


def by_words(t):
    """`llvm` struct types, insertion and extraction, constants and casts."""
    kind = llvm.StructType.get_literal([T.i32(), T.f32()])
    pair = llvm.insertvalue(llvm.mlir_undef(kind), cute.Int32(t), [0])
    pair = llvm.insertvalue(pair, cute.Float32(0.5), [1])
    word = cute.Int32(llvm.extractvalue(T.i32(), pair, [0]))
    half = cute.Float32(llvm.extractvalue(T.f32(), pair, [1]))
    three = llvm.mlir_constant(T.i32(), ir.IntegerAttr.get(T.i32(), 3))
    bits = cute.Int32(llvm.bitcast(T.i32(), cute.Float32(1.0)))
    return (word + cute.Int32(three)).to(cute.Float32) + half + (bits >> 30).to(cute.Float32)


def arithmetic(t):
    i32 = ir.IntegerType.get_signless(32)
    shifted = arith.shli(cute.Int32(t), arith.constant(i32, 1))
    with ir.InsertionPoint.current, ir.Location.unknown():
        total = arith.addi(shifted, arith.constant(i32, 5))
    narrow = arith.trunci(T.i8(), total)
    wide = cute.Int32(arith.extui(T.i32(), narrow))
    return math.sqrt(wide.to(cute.Float32)), wide


def by_hand(t):
    cell = cute.make_rmem_tensor(1, cute.Int32)
    cell[0] = 0

    def add(n):
        cell[0] = cell[0] + n

    if_generate(t < 4, lambda: add(1), lambda: add(2))
    if_generate(and_(t > 8, not_(t == 10)), lambda: add(10))
    chosen = if_generate(t < 16, lambda: cute.Int32(100), lambda: t * 2, return_types=[cute.Int32])
    n = while_generate([t, cute.Int32(0)], lambda i, s: i > 2, lambda i, s: [i - 3, s + 1])[1]
    for i in for_generate(0, 3):
        add(i * 1000)
        yield_out()
    sums = []
    for i, (total,), results in for_generate(0, t, 1, [cute.Int32(0)]):
        yield_out([total + i])
        sums.append(results)
    return cell[0] + chosen + n * 10000 + sums[0][0] * 100000


def by_hand_expected(t):
    cell = (1 if t < 4 else 2) + (10 if t > 8 and t != 10 else 0) + 3000
    n, i = 0, t
    while i > 2:
        n, i = n + 1, i - 3
    return cell + (100 if t < 16 else 2 * t) + n * 10000 + sum(range(t)) * 100000


def counted(t, x):
    """An atomic of global memory by its pointer; the old value is not used."""
    nvvm.atomicrmw(op=nvvm.AtomicOpKind.ADD, ptr=(x.iterator + 40).llvm_ptr, a=cute.Int32(1))
    return nvvm.atomicrmw(
        res=T.i32(), op=nvvm.AtomicOpKind.MAX, ptr=(x.iterator + 41).llvm_ptr, a=t.ir_value()
    )


def elected(t):
    chosen = cute.Boolean(nvvm.elect_sync())
    return chosen.to(cute.Int32)


@cute.kernel
def kernel(out: cute.Tensor, ints: cute.Tensor):
    t = cute.arch.thread_idx()[0]
    out[t, 0] = twice(cute.Float32(t))
    out[t, 1] = extrema(t)
    out[t, 2] = through_bits(t)
    out[t, 3] = by_words(t)
    root, whole = arithmetic(t)
    out[t, 4] = cute.Float32(root)
    ints[t] = whole + by_hand(t) * 1000
    counted(t, ints)
    barrier = cute.arch.alloc_smem(cute.Int64, 1)
    with cute.arch.elect_one():
        cute.arch.mbarrier_init(barrier, 32)
    cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    cute.arch.mbarrier_arrive(barrier)
    waited = cute.Boolean(False)
    while not waited:
        waited = cute.Boolean(
            nvvm.mbarrier_try_wait_parity_timelimit(
                barrier.llvm_ptr, cute.Int32(0).ir_value(), cute.Int32(1000)
            )
        )
    out[t, 5] = elected(t).to(cute.Float32)


@cute.jit
def run(out: cute.Tensor, ints: cute.Tensor):
    kernel(out, ints).launch(grid=(1, 1, 1), block=(32, 1, 1))


def test_operations_of_the_bindings_run(target):
    out, ints = np.zeros((32, 6), np.float32), np.zeros(42, np.int32)
    run(out, ints)
    t = LANES.astype(np.float32)
    assert (out[:, 0] == 2 * t).all()
    assert (out[:, 1] == np.maximum(np.minimum(t, 7), 4)).all()
    assert (out[:, 2] == t + 1.5).all()
    assert (out[:, 3] == t + 3.5).all()
    assert np.allclose(out[:, 4], np.sqrt(2 * t + 5), rtol=1e-6)
    wanted = [(2 * n + 5) + by_hand_expected(n) * 1000 for n in LANES.tolist()]
    assert (ints[:32] == np.array(wanted).astype(np.int32)).all()
    assert ints[40] == 32
    assert ints[41] == 31
    assert out[:, 5].sum() == 1


def test_they_are_in_the_ptx(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # the kept file is written there
    monkeypatch.setenv("CUTE_DSL_ARCH", "sm_90a")
    from basedsl_cute.runtime import make_fake_tensor

    out = make_fake_tensor(cute.Float32, (32, 6), (6, 1))
    ints = make_fake_tensor(cute.Int32, (42,), (1,))
    compiled = cute.compile(run, out, ints, options="--keep-ptx")
    for text in ("add.f32", "min.f32", "elect.sync", "mbarrier.try_wait.parity", "global.max.s32"):
        assert text in compiled.__ptx__, text


def test_names_of_closed_dialects_are_errors_when_used():
    with pytest.raises(DSLError, match="dialect 'cute_nvgpu' of CuTe's own DSL: not offered"):
        cute_nvgpu.AtomType.get()


def test_the_bindings_are_the_ones_that_cute_traces_with():
    assert ir is cute.CUTE.mlir.bindings.ir
    assert cutlass._mlir.dialects.llvm.StructType is cute.CUTE.mlir.bindings.llvm.StructType


@cute.kernel
def chosen(x: cute.Tensor):
    t = cute.arch.thread_idx()[0]
    x[t] = select_(t < 3, t * 2, cute.Int32(-1))
    x[t] = select_(x[t], x[t], select_(False, 1, t))


def test_a_selection_by_hand(target):
    x = np.zeros(8, np.int32)
    cute.jit(lambda x: chosen(x).launch(grid=1, block=8))(x)
    np.testing.assert_array_equal(x, [0, 2, 4, -1, -1, -1, -1, -1])
