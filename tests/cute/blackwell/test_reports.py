"""Mistakes with tensor memory that the simulator reports, with the line of the instruction."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLError, DSLTypeError
from basedsl_cute import arch
from basedsl_cute.nvgpu import tcgen05
from basedsl_cute.runtime import from_dlpack
from tests.cute.blackwell.harness import COLUMNS, compile_body, run, smem_descriptor
from tests.cute.blackwell.test_mma_instructions import descriptor

F16 = descriptor("f16", ("f16", "f16"), 128, 32)
PAIR = descriptor("f16", ("f16", "f16"), 256, 32)
MXF8 = descriptor("mxf8f6f4", ("e4m3", "e4m3"), 128, 32, scale="ue8m0")


def memories(blocks=1, tmem=None):
    rng = np.random.default_rng(0)
    smem = rng.integers(0, 0x30, (blocks, 16384), np.uint8)
    if tmem is None:
        tmem = np.zeros((blocks, 128, COLUMNS), np.uint32)
    return smem, tmem


def operands(base, **changes):
    given = {"lbo": 128, "sbo": 256} | changes
    return (smem_descriptor(base, 0, **given), smem_descriptor(base, 8192, 128, 256))


def error_of(body, blocks=1, tmem=None):
    with pytest.raises(DSLError) as error:
        run(body, *memories(blocks, tmem))
    assert error.value.span is not None and error.value.span.filename == __file__
    return str(error.value)


def multiply(base, start, **changes):
    left, right = operands(base)
    given = {"kind": "f16", "d": start, "a": left, "b": right, "descriptor": cute.Int32(F16)}
    given |= {"accumulate": False, "cta_group": 1} | changes
    arch.tcgen05_mma(given.pop("kind"), **given)


MISTAKES = {
    "columns beyond the allocation": (
        lambda base, start: multiply(base, start, d=start + COLUMNS - 8),
        "tcgen05.mma writes columns 248 to 279 of tensor memory, which are not allocated",
    ),
    "lanes beyond the end": (
        lambda base, start: multiply(base, start, d=start + (16 << 16)),
        "tcgen05.mma writes lanes up to 143 of 128",
    ),
    "no descriptor of tcgen05": (
        lambda base, start: multiply(base, start, b=cute.Int64(0)),
        "of operand B is none of tcgen05: bits 46 and 47 are 1",
    ),
    "a swizzle that there is not": (
        lambda base, start: multiply(base, start, a=smem_descriptor(base, 0, 128, 256, 3)),
        "of operand A has the swizzle 3, which there is not",
    ),
    "beyond shared memory": (
        lambda base, start: multiply(base, start, a=smem_descriptor(base, 0, 128, 128 * 1024)),
        "operand A of a tcgen05.mma reaches beyond the block's shared memory",
    ),
    "a shape that there is not": (
        lambda base, start: multiply(base, start, descriptor=cute.Int32(F16 | 1 << 24)),
        "M is 64 or 128 over 1 block, not 144",
    ),
    "other blocks than before": (
        lambda base, start: multiply(base, start, cta_group=2, descriptor=cute.Int32(PAIR)),
        "of 2 blocks in a kernel whose tcgen05 instructions are of 1",
    ),
    "a copy beyond the allocation": (
        lambda base, start: arch.tcgen05_cp(
            "128x256b", start + COLUMNS, smem_descriptor(base, 0, 128, 256)
        ),
        "tcgen05.cp writes columns 256 to 263 of tensor memory, which are not allocated",
    ),
    "a copy beyond shared memory": (
        lambda base, start: arch.tcgen05_cp(
            "128x256b", start, smem_descriptor(base, 0, 128, 64 * 1024)
        ),
        "the source of a tcgen05.cp reaches beyond the block's shared memory",
    ),
    "a commit to blocks that there are not": (
        lambda base, start: arch.tcgen05_commit(base, 6),
        "to the blocks of mask 0x6 of a cluster of 1",
    ),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_one_block(name):
    body, message = MISTAKES[name]
    assert message in error_of(body)


def scaled(base, start, sfa=240, sfb=248, d=0, number=MXF8):
    left, right = operands(base)
    arch.tcgen05_mma_block_scale(
        "mxf8f6f4", start + d, left, right, cute.Int32(number - (number >> 31 << 32)), False,
        start + sfa, start + sfb,
    )  # fmt: skip


def test_scale_factors_that_differ_in_the_quarters():
    tmem = np.full((1, 128, COLUMNS), 0x7F7F7F7F, np.uint32)
    tmem[0, 64 + 5, 241] = 0x80808080  # rows 37 of A
    assert "the scale factors of A of row 37 differ in the quarters" in error_of(scaled, 1, tmem)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"d": 224}, "D of a tcgen05.mma overlaps the scale factors of A in tensor memory"),
        ({"sfb": 270}, "tcgen05.mma reads the scale factors of B in columns 270"),
    ],
)
def test_scale_factors_in_wrong_places(options, message):
    assert message in error_of(lambda base, start: scaled(base, start, **options))


def test_a_scale_format_that_the_kind_does_not_have():
    number = MXF8 & ~(1 << 23)
    found = error_of(lambda base, start: scaled(base, start, number=number))
    assert "no factors of ue4m3 for 32 elements each" in found


def test_a_pair_whose_copies_of_a_differ():
    tmem = np.zeros((2, 128, COLUMNS), np.uint32)
    tmem[1, 70, 225] = 1

    def body(base, start):
        number = descriptor("f16", ("f16", "f16"), 128, 32)
        multiply(base, start, a=start + 224, cta_group=2, descriptor=cute.Int32(number))

    assert "differs in the two halves of the lanes" in error_of(body, 2, tmem)


def test_factors_of_a_pair_begin_at_lane_0():
    def body(base, start):
        scaled(base, start, sfa=240 + (32 << 16))

    assert "the scale factors of A begin at lane 32, not 0" in error_of(body)


# Tensors that have the same columns at one time ---------------------------------------------------


def copied(base, start, columns, shape="128x128b"):
    arch.tcgen05_cp(shape, start + columns, smem_descriptor(base, 0, 128, 256))


def two_sums(base, start):
    multiply(base, start, d=start)
    multiply(base, start, d=start + 16)


def sum_over_a_copy(base, start):
    copied(base, start, 8)
    multiply(base, start)


def copy_over_a_sum(base, start):
    multiply(base, start)
    copied(base, start, 28)


def operand_in_a_sum(base, start):
    multiply(base, start, d=start + 64)
    multiply(base, start, a=start + 92)


def factors_in_a_sum(base, start):
    multiply(base, start, d=start + 128)
    scaled(base, start, sfa=158)


OVERLAPS = {
    two_sums: "D of a tcgen05.mma overlaps accumulators of another tcgen05.mma that nobody",
    sum_over_a_copy: "D of a tcgen05.mma overlaps a copy by tcgen05.cp that nobody",
    copy_over_a_sum: "the copy of a tcgen05.cp overlaps accumulators of a tcgen05.mma that nobody",
    operand_in_a_sum: "operand A of a tcgen05.mma has columns that D of another has overwritten",
    factors_in_a_sum: "the scale factors of A of a tcgen05.mma has columns that D of another has",
}


@pytest.mark.parametrize("body", OVERLAPS, ids=lambda body: body.__name__)
def test_tensors_that_overlap(body):
    tmem = np.full((1, 128, COLUMNS), 0x7F7F7F7F, np.uint32)
    text = error_of(body, 1, tmem)
    assert OVERLAPS[body] in text and "written here" in text
    assert text.count("-->") >= 2  # both lines


def side_by_side(base, start):
    multiply(base, start, d=start + 64)
    copied(base, start, 96)
    multiply(base, start, d=start, a=start + 100)
    multiply(base, start, d=start)  # the same tensor anew
    scaled(base, start, d=128, sfa=160)


def test_tensors_that_do_not_overlap():
    tmem = np.full((1, 128, COLUMNS), 0x7F7F7F7F, np.uint32)
    run(side_by_side, *memories(1, tmem))


@cute.kernel
def two_copies(reads_first: cute.Constexpr):
    t, _, _ = arch.thread_idx()
    smem = cute.utils.SmemAllocator()
    first, second = (smem.allocate_array(cute.Int32, 512, byte_alignment=128) for _ in range(2))
    holder = smem.allocate_array(cute.Int32, 1)
    done = smem.allocate_array(cute.Int64, 1)
    for source in (first, second):
        cute.make_tensor(source + t * 16, cute.make_layout(16)).fill(0x7F7F7F7F)
    with arch.elect_one():
        arch.mbarrier_init(done, 1)
        arch.mbarrier_init_fence()
    arch.alloc_tmem(32, holder)
    arch.fence_view_async_shared()
    arch.sync_threads()
    start = arch.retrieve_tmem_ptr(cute.Int32, 16, holder)
    tile = cute.make_tensor(start, cute.make_layout((128, 4), stride=(65536, 1)))
    load = tcgen05.make_tmem_copy(cute.make_copy_atom(tcgen05.Ld32x32bOp(4), cute.Int32), tile)
    mine = load.get_slice(t).partition_S(tile)
    words = cute.make_rmem_tensor(load.get_slice(t).partition_D(tile).shape, cute.Int32)
    for i, source in enumerate((first, second)):
        with arch.elect_one():
            arch.tcgen05_cp("4x32x128b", start, smem_descriptor(source, 0, 128, 128))
            arch.tcgen05_commit(done)
        if cute.const_expr(reads_first):
            arch.mbarrier_wait(done, i)
            arch.tcgen05_after_thread_sync()
            cute.copy(load, mine, words)
    arch.mbarrier_wait(done, 1)
    arch.dealloc_tmem(start, 32)


def run_two_copies(reads_first):
    @cute.jit
    def host():
        two_copies(reads_first).launch(grid=(1, 1, 1), block=(32, 1, 1))

    cute.compile(host, options="--arch sim")()


def test_a_copy_over_one_of_another_tensor_that_nobody_has_read():
    with pytest.raises(DSLError, match=r"the copy of a tcgen05\.cp overlaps another copy"):
        run_two_copies(False)
    run_two_copies(True)


# Pairs, and operands that change too early -------------------------------------------------------


@cute.kernel
def disagree(what: cute.Constexpr, y: cute.Tensor):
    t, _, _ = arch.thread_idx()
    b, _, _ = arch.block_idx()
    warp = arch.make_warp_uniform(arch.warp_idx())
    smem = cute.utils.SmemAllocator()
    data = smem.allocate_array(cute.Int32, 4096, byte_alignment=1024)
    holder = smem.allocate_array(cute.Int32, 1)
    done = smem.allocate_array(cute.Int64, 1)
    there = cute.make_tensor(data, cute.make_layout(4096))
    for i in range(t, 4096, 128):
        there[i] = 0
    if warp == 0:
        with arch.elect_one():
            arch.mbarrier_init(done, 1)
            arch.mbarrier_init_fence()
        if cute.const_expr(what == "columns"):
            if b == 0:
                arch.alloc_tmem(64, holder, True)
            else:
                arch.alloc_tmem(32, holder, True)
        elif cute.const_expr(what == "alone"):
            if b == 0:
                arch.alloc_tmem(64, holder, True)
        else:
            arch.alloc_tmem(64, holder, True)
    if cute.const_expr(what != "fence"):
        arch.fence_view_async_shared()
    arch.cluster_arrive()
    arch.cluster_wait()
    start = arch.retrieve_tmem_ptr(cute.Int32, 16, holder)
    if warp == 0:
        if cute.const_expr(what == "odd"):
            with arch.elect_one():
                multiply(data, start, cta_group=2, descriptor=cute.Int32(PAIR))
                arch.tcgen05_commit(done, 3, 2)
        elif b == 0:
            with arch.elect_one():
                multiply(data, start, cta_group=2, descriptor=cute.Int32(PAIR))
                arch.tcgen05_commit(done, 3, 2)
    if cute.const_expr(what == "overwritten"):
        if warp == 1:
            there[t - 32] = 1
    if cute.const_expr(what == "freed"):
        if warp == 0:
            arch.dealloc_tmem(start, 64, True)
    arch.mbarrier_wait(done, 0)
    if cute.const_expr(what not in ("freed", "kept")):
        if warp == 0:
            arch.dealloc_tmem(start, 64, True)


@pytest.mark.parametrize(
    ("what", "message"),
    [
        ("columns", "tcgen05.alloc of two blocks: one asks for"),
        ("alone", "block 1 of the pair to allocate 64 columns too"),
        ("odd", "is issued by block 1 of the cluster, the odd one"),
        ("fence", "read by tcgen05.mma"),
        ("overwritten", "this write and a read by the asynchronous unit for warp 0 of block 0"),
        ("freed", "dealloc of columns that a tcgen05.mma may still write"),
        ("kept", "64 columns of tensor memory were never freed"),
    ],
)
def test_pairs_that_disagree_and_operands_in_use(what, message, monkeypatch):
    monkeypatch.setenv("CUTE_DSL_CHECK_RACES", "1")
    y = from_dlpack(np.zeros(1, np.int32))

    @cute.jit
    def host(y: cute.Tensor):
        disagree(what, y).launch(grid=(2, 1, 1), block=(128, 1, 1), cluster=(2, 1, 1))

    with pytest.raises(DSLError) as error:
        cute.compile(host, y, options="--arch sim")(y)
    assert message in str(error.value)


@cute.kernel
def commit_to_the_other(what: cute.Constexpr):
    b, _, _ = arch.block_idx()
    done = cute.utils.SmemAllocator().allocate_array(cute.Int64, 1)
    with arch.elect_one():
        arch.mbarrier_init(done, 1)
        arch.mbarrier_init_fence()
    arch.cluster_arrive()
    arch.cluster_wait()
    if b == 0:
        with arch.elect_one():
            arch.tcgen05_commit(done, 2)
    if cute.const_expr(what == "awaited"):
        if b == 1:
            arch.mbarrier_wait(done, 0)
    elif cute.const_expr(what == "relaxed"):
        arch.cluster_arrive_relaxed()
        arch.cluster_wait()


def run_commit_to_the_other(what):
    @cute.jit
    def host():
        commit_to_the_other(what).launch(grid=(2, 1, 1), block=(32, 1, 1), cluster=(2, 1, 1))

    cute.compile(host, options="--arch sim")()


def test_a_commit_to_a_block_that_may_have_ended():
    with pytest.raises(DSLError, match=r"commit is in .* another block, which may have ended"):
        run_commit_to_the_other("")
    run_commit_to_the_other("awaited")
    run_commit_to_the_other("relaxed")


@cute.kernel
def ask_again():
    smem = cute.utils.SmemAllocator()
    response = smem.allocate_array(cute.Int32, 4, byte_alignment=16)
    done = smem.allocate_array(cute.Int64, 1)
    with arch.elect_one():
        arch.mbarrier_init(done, 1)
        arch.mbarrier_init_fence()
    arch.sync_warp()
    for i in cute.range_constexpr(2):
        with arch.elect_one():
            arch.mbarrier_arrive_and_expect_tx(done, 16)
            arch.clusterlaunchcontrol_try_cancel(response, done)
        arch.mbarrier_wait(done, i)


def test_a_request_after_one_that_failed():
    @cute.jit
    def host():
        ask_again().launch(grid=(1, 1, 1), block=(32, 1, 1))

    with pytest.raises(DSLError, match=r"try_cancel after a request that failed"):
        cute.compile(host, options="--arch sim")()


# Architectures ------------------------------------------------------------------------------------


def cta_group_two(base, start):
    multiply(base, start, cta_group=2, descriptor=cute.Int32(PAIR))


@pytest.mark.parametrize(
    ("body", "target", "message"),
    [
        (
            multiply,
            "sm_90a",
            r"sm_90a has no tcgen05.* only the families sm_100f and sm_110f have it",
        ),
        (
            multiply,
            "sm_100",
            r"sm_100 has no tcgen05.* only the families sm_100f and sm_110f have it",
        ),
        (
            multiply,
            "sm_103",
            r"sm_103 has no tcgen05.* only the families sm_100f and sm_110f have it",
        ),
        (
            multiply,
            "sm_120a",
            r"sm_120a has no tcgen05.* only the families sm_100f and sm_110f have it",
        ),
    ],
)
def test_an_architecture_without_it_is_named(body, target, message):
    with pytest.raises(DSLTypeError, match=message) as error:
        compile_body(body, *memories(), target)
    assert error.value.span is not None


@pytest.mark.parametrize("target", ["sm_100a", "sm_100f", "sm_103a", "sm_103f"])
def test_an_architecture_with_it(target):
    text = compile_body(multiply, *memories(), target)[0].stages.text("ptx")
    assert f".target {target}" in text and "tcgen05.mma" in text


def test_a_pointer_of_another_memory():
    def body(base, start):
        multiply(base, start, d=base)

    with pytest.raises(DSLTypeError, match="takes a pointer into tensor memory"):
        compile_body(body, *memories())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "f32"}, "has the kinds f16, tf32, i8, f8f6f4, not 'f32'"),
        ({"scale_d": 16}, "scale_d is a static 0 to 15"),
        ({"disabled_lanes": [0]}, "disabled_lanes are 4 words, not 1"),
        ({"shift_a": True}, "shift_a is for A in tensor memory"),
        ({"collector": "b0"}, "a collector is discard, lastuse, fill, use"),
    ],
)
def test_options_that_there_are_not(changes, message):
    with pytest.raises(DSLTypeError) as error:
        compile_body(lambda base, start: multiply(base, start, **changes), *memories())
    assert message in error.value.message


def test_fields_and_factors_of_block_scaled_operations():
    with pytest.raises(DSLTypeError, match="takes factors of Float8E8M0FNU, not Float16"):
        tcgen05.MmaMXF8F6F4Op(
            cute.Float8E4M3FN, cute.Float8E4M3FN, (128, 64, 32), sf_dtype=cute.Float16
        )
    with pytest.raises(DSLTypeError, match=r"takes factors of .*Float8E4M3FN"):
        tcgen05.MmaMXF4NVF4Op(cute.Float16, (128, 64, 64))
    with pytest.raises(DSLTypeError, match="M is 256 over 2 blocks, not 128"):
        tcgen05.MmaMXF8Op(cute.Float8E5M2, (128, 64, 32), tcgen05.CtaGroup.TWO)
    mma = cute.make_tiled_mma(tcgen05.MmaMXF4Op((128, 64, 64)))
    with pytest.raises(DSLTypeError, match=r"Field.SFA is a pointer into tensor memory"):
        mma.set(tcgen05.Field.SFA, 0)


@pytest.mark.parametrize("target", ["sm_103a", "sm_110a"])
def test_the_architectures_of_the_families_have_it(target):
    found, *_ = compile_body(multiply, *memories(), target)
    assert f".target {target}" in found.__ptx__ and found.__cubin__
