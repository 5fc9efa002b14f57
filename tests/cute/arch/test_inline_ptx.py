"""Inline PTX of several instructions: registers of its own, predicates, vectors, memory."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLError

LANES = np.arange(32, dtype=np.int32)


def run(text, inputs, kind, more=()):
    """The result in each lane of a warp. `inputs(t, x, s)` gets the lane, and global and shared
    memory of 64 integers, whose contents are their positions.
    """
    kinds = [kind, *more] if more else kind

    @cute.kernel
    def kernel(out: cute.Tensor, x: cute.Tensor):
        t = cute.arch.thread_idx()[0]
        s = cute.arch.alloc_smem(cute.Int32, 64)
        shared = cute.make_tensor(s, 64)
        shared[t] = t
        shared[t + 32] = t + 32
        cute.arch.sync_threads()
        made = cute.arch.inline_ptx(text, inputs(t, x.iterator, s), kinds)
        cute.arch.sync_threads()
        if cute.const_expr(kinds == ()):
            out[t] = shared[t]
        elif cute.const_expr(isinstance(made, tuple)):
            out[t] = sum(made[1:], made[0])
        else:
            out[t] = made

    @cute.jit
    def launch(out: cute.Tensor, x: cute.Tensor):
        kernel(out, x).launch(grid=(1, 1, 1), block=(32, 1, 1))

    out = np.zeros(32, np.int32 if kind == () else kind.numpy_dtype)
    x = np.arange(64, dtype=np.int32)
    launch(out, x)
    return out, x


def number(t, x, s):
    return [t]


PROGRAMS = {
    "ballot": (
        "{ .reg .pred p; setp.lt.s32 p, $1, 10; vote.sync.ballot.b32 $0, p, -1; }",
        number,
        np.full(32, 1023),
    ),
    "guards": (
        "{\n\t.reg .pred p, q;\n\t.reg .b32 r;\n\tmov.b32 r, 5;\n\tsetp.ge.u32 p|q, $1, 16;\n\t"
        "@p add.s32 r, r, $1;\n\t@!p sub.s32 r, r, $1; // comment\n\t"
        "@q shl.b32 r, r, 1;\n\tmov.b32 $0, r;\n\t}",
        number,
        np.where(LANES >= 16, 5 + LANES, (5 - LANES) * 2),
    ),
    "wide": (
        "{ .reg .b64 w; .reg .b32 lo, hi; mul.wide.u32 w, $1, 0x40000001; "
        "mov.b64 {lo, hi}, w; mov.b64 w, {hi, lo}; cvt.u32.u64 hi, w; add.u32 $0, hi, lo; }",
        number,
        ((LANES.astype(np.uint64) * 0x40000001 >> 32) + (LANES.astype(np.uint64) * 0x40000001))
        .astype(np.uint32)
        .view(np.int32),
    ),
    "shuffle": (
        "{ .reg .pred p; .reg .b32 r; shfl.sync.bfly.b32 r|p, $1, 1, 31, 0xffffffff; "
        "selp.b32 $0, r, -1, p; }",
        number,
        LANES ^ 1,
    ),
    "reduce": ("redux.sync.max.u32 $0, $1, 0xffffffff;", number, np.full(32, 31)),
    "special": ("{ .reg .u32 a; mov.u32 a, %laneid; mad.lo.s32 $0, a, 3, $1; }", number, LANES * 4),
    "bits": (
        "{ .reg .b32 a; bfe.u32 a, $1, 1, 2; prmt.b32 $0, a, $1, 0x4440; }",
        number,
        ((LANES >> 1 & 3) | LANES << 8 | LANES << 16 | LANES << 24),
    ),
    "rounding": (
        "{ .reg .f32 f; cvt.rn.f32.s32 f, $1; mul.f32 f, f, 0f3F000000; cvt.rpi.s32.f32 $0, f; }",
        number,
        -(-LANES // 2),
    ),
    "predicate": (
        "selp.b32 $0, $1, 7, $2;",
        lambda t, x, s: [t, t >= 9],
        np.where(LANES >= 9, LANES, 7),
    ),
    "down": (  # a sum with 1.5 2^23 rounds to a whole number
        "{ .reg .f32 f; .reg .b32 r; cvt.rn.f32.s32 f, $1; fma.rn.f32 f, f, 0f3E800000, "
        "0fC0000000; add.rm.ftz.f32 f, f, 0f4B400000; mov.b32 r, f; sub.s32 $0, r, 0x4B400000; }",
        number,
        (LANES - 8) // 4,
    ),
    "fields": (
        "{ .reg .b32 a; bfi.b32 a, $1, -1, 4, 5; shf.r.wrap.b32 $0, a, $1, 4; }",
        number,
        (LANES | 0x0FFFFFE0 | LANES << 28),
    ),
    "global": (
        "{ .reg .v2 .b32 v; ld.global.v2.b32 v, [$1+8]; add.s32 $0, v.x, v.y; }",
        lambda t, x, s: [x + (t - t % 2)],
        2 * (LANES - LANES % 2) + 5,
    ),
    "shared": (
        "{ .reg .b32 a, b; ld.shared.b32 a, [$1+4]; mov.b32 $0, a; }",
        lambda t, x, s: [s + t],
        LANES + 1,
    ),
    "atomic": (
        "atom.global.add.u32 $0, [$1], 2;",
        lambda t, x, s: [x + t],
        LANES,
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_run(target, name):
    text, inputs, expected = PROGRAMS[name]
    out, x = run(text, inputs, cute.Int32)
    np.testing.assert_array_equal(out, np.asarray(expected).astype(np.int32))
    if name == "atomic":
        np.testing.assert_array_equal(x[:32], LANES + 2)


@cute.kernel
def bulk_copies(total: cute.Tensor, source: cute.Tensor):
    t = cute.arch.thread_idx()[0]
    s = cute.arch.alloc_smem(cute.Float32, 32, alignment=128)
    barrier = cute.arch.alloc_smem(cute.Int64, 1)
    if t == 0:
        cute.arch.mbarrier_init(barrier, 1)
    cute.arch.mbarrier_init_fence()
    cute.arch.sync_threads()
    if t == 0:
        ptx = cute.arch.inline_ptx
        cute.arch.mbarrier_arrive_and_expect_tx(barrier, 128)
        load = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
        ptx(f"{load} [$0], [$1], $2, [$3];", [s, source.iterator, cute.Int32(128), barrier])
        cute.arch.mbarrier_wait(barrier, 0)
        there = ptx("cvta.to.global.u64 $0, $1;", [total.iterator], cute.Int64)
        add = "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32"
        for _ in range(2):
            ptx(f"{add} [$0], [$1], $2;", [there, s, cute.Int32(128)])
        ptx("cp.async.bulk.commit_group;")
        ptx("cp.async.bulk.wait_group 0;")


def test_bulk_copies(target):
    @cute.jit
    def launch(total: cute.Tensor, source: cute.Tensor):
        bulk_copies(total, source).launch(grid=1, block=32)

    total, source = np.ones(32, np.float32), np.arange(32, dtype=np.float32)
    launch(total, source)
    np.testing.assert_array_equal(total, 1 + 2 * source)


@pytest.mark.parametrize("kind", [cute.Float16, cute.BFloat16], ids=str)
def test_additions_of_two_halves(target, kind):
    name = {cute.Float16: "f16x2", cute.BFloat16: "bf16x2"}[kind]

    @cute.kernel
    def kernel(x: cute.Tensor):
        pair = cute.make_rmem_tensor(2, kind)
        pair[0], pair[1] = kind(1.0), kind(-0.5)
        word = cute.recast_tensor(pair, cute.Int32)[0]
        cute.arch.inline_ptx(f"red.global.add.noftz.{name} [$0], $1;", [x.iterator, word])

    @cute.jit
    def launch(x: cute.Tensor):
        kernel(x).launch(grid=1, block=32)

    x = np.zeros(2, kind.numpy_dtype)
    launch(x)
    assert x.astype(np.float32).tolist() == [32, -16]


def test_pairs_of_float32(sim):
    """The target of the other programs may be of before sm_100, which has no `.f32x2`."""
    text = (
        "{ .reg .b64 a; .reg .f32 f, g; cvt.rn.f32.s32 f, $1; add.f32 g, f, f; mov.b64 a, {f, g}; "
        "fma.rn.f32x2 a, a, a, a; mov.b64 {f, g}, a; sub.f32 f, g, f; cvt.rzi.s32.f32 $0, f; }"
    )
    out, _ = run(text, number, cute.Int32)
    np.testing.assert_array_equal(out, 3 * LANES**2 + LANES)


def test_pairs_of_halves(target):
    text = (
        "{ .reg .b32 a, ones; .reg .b16 h, g; .reg .f32 f, d; cvt.rn.f32.s32 f, $1; neg.f32 d, f; "
        "cvt.rn.f16x2.f32 a, d, f; mov.b32 ones, 0x3c003c00; fma.rn.f16x2 a, a, a, ones; "
        "mul.rn.f16x2 a, a, ones; mov.b32 {h, g}, a; cvt.f32.f16 f, h; cvt.f32.f16 d, g; "
        "sub.f32 d, f, d; add.f32 f, f, d; cvt.rzi.s32.f32 $0, f; }"
    )
    out, _ = run(text, number, cute.Int32)
    np.testing.assert_array_equal(out, LANES**2 + 1)


def test_pairs_of_halves_are_clamped_and_become_8_bits(sim):
    """The conversion is of sm_89 and later. Of 2, NaN and -1 the clamped ones are 1, 0 and 0."""
    one, two, nan, less, big = 0x3C00, 0x4000, 0x7E00, 0xBC00, 0x7BFF
    for high, low, clamped, narrow in (
        (two, nan, 0x3C000000, 0x407F),
        (less, one, 0x00003C00, 0xB838),
        (big, 0x0001, 0x3C000001, 0x7E00),
    ):
        word = f"mov.b32 a, {high << 16 | low:#x}; "
        text = "{ .reg .b32 a; " + word + "fma.rn.sat.f16x2 $0, a, 0x3c003c00, 0; }"
        np.testing.assert_array_equal(np.uint32(run(text, number, cute.Int32)[0]), clamped)
        convert = "cvt.rn.satfinite.e4m3x2.f16x2 h, a; mov.b32 $0, {h, z}; }"
        text = "{ .reg .b32 a; .reg .b16 h, z; mov.b16 z, 0; " + word + convert
        np.testing.assert_array_equal(np.uint32(run(text, number, cute.Int32)[0]), narrow)


def test_several_results(target):
    text = "{ .reg .pred p; setp.eq.s32 p, $2, 3; selp.b32 $0, 1, 0, p; add.s32 $1, $2, $2; }"
    out, _ = run(text, number, cute.Int32, (cute.Int32,))
    np.testing.assert_array_equal(out, 2 * LANES + (LANES == 3))


def test_stores_have_no_result(target):
    def inputs(t, x, s):
        return [s + t, t * 3]

    out, _ = run("{ .reg .pred p; setp.lt.s32 p, $1, 60; @p st.shared.b32 [$0], $1; }", inputs, ())
    np.testing.assert_array_equal(out, np.where(3 * LANES < 60, 3 * LANES, LANES))


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("{ .reg .pred p; L: setp.ne.b32 p, $1, 0; @p bra L; mov.b32 $0, $1; }", "'L:'"),
        ("mov.b32 $0, $1; barrier.sync 1;", "the instruction barrier.sync"),
        ("add.rz.f64 $0, $1, $1;", "the instruction add.rz.f64"),
        ("add.s32 $0, $1;", "the instruction add.s32"),
        ("add.s32 $0, $1, what?;", "the operand 'what\\?'"),
    ],
)
def test_the_error_names_what_the_simulator_does_not_run(sim, text, named):
    with pytest.raises(DSLError, match=named):
        run(text, number, cute.Int32)


def test_names_of_mlirs_operation(target):
    """`{$r0}` and `{$w0}` with `read_only_args`, as programs for `nvvm.inline_ptx` write them."""

    @cute.kernel
    def kernel(out: cute.Tensor):
        t = cute.arch.thread_idx()[0]
        text = "{ .reg .b32 r; mul.lo.s32 r, {$r0}, {$r1}; add.s32 {$w0}, r, {$r0}; }"
        out[t] = cute.arch.inline_ptx(text, output_types=cute.Int32, read_only_args=[t, t + 1])

    @cute.jit
    def launch(out: cute.Tensor):
        kernel(out).launch(grid=1, block=32)

    out = np.zeros(32, np.int32)
    launch(out)
    cute.synchronize()
    assert (out == LANES * (LANES + 2)).all()


def test_a_name_that_stands_for_nothing(sim):
    @cute.kernel
    def kernel(out: cute.Tensor):
        text = "mov.b32 {$w0}, {$r1};"
        out[0] = cute.arch.inline_ptx(text, output_types=cute.Int32, read_only_args=[1])

    @cute.jit
    def launch(out: cute.Tensor):
        kernel(out).launch(grid=1, block=1)

    with pytest.raises(DSLError, match=r"has 1 inputs, and its text names \{\$r1\}"):
        launch(np.zeros(1, np.int32))
