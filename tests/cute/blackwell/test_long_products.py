"""tcgen05.mma of K = 96 (sm_103) against NumPy: rows of 48 bytes in rings of buffers of 128.

The expectation is written from the PTX ISA ("Block Scaling" with K = 96, shared memory descriptor)
and CuTe's C++ header `mma_traits_sm100.hpp` (`SM103_MXF4_ULTRA_SS_VS`).
"""

import ml_dtypes
import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLTypeError
from basedsl.testing import slow_but
from basedsl_cute import arch
from basedsl_cute.lowering.ptx import ptxas
from basedsl_cute.nvgpu import tcgen05
from basedsl_cute.sim.errors import SimulationError
from tests.cute.blackwell.harness import COLUMNS, compile_body, run, smem_descriptor

K, STEPS, BUFFERS = 96, 8, 3  # 8 instructions: 384 bytes of a row, in 3 buffers of 128
FP4 = np.arange(16, dtype=np.uint8).view(ml_dtypes.float4_e2m1fn).astype(np.float64)
SCALES = {
    "ue8m0": ml_dtypes.float8_e8m0fnu, "ue4m3": ml_dtypes.float8_e4m3fn,
}  # fmt: skip
FIRST_A, FIRST_B = 144, 192  # columns of the scale factors; D takes those from 0 on


def swizzled(rows):
    """The byte offset of each byte (rows, 128) of a buffer swizzled by 128 bytes."""
    r, byte = np.indices((rows, 128))
    linear = r * 128 + byte
    return linear ^ ((linear >> 7 & 7) << 4)


class Case:
    """A product of 8 instructions along K: `body`, memories before, what is expected."""

    def __init__(self, m, n, blocks, scale, vector, seed=0):
        rng = np.random.default_rng([seed, m, n])
        a, b = (rng.integers(0, 16, (rows, K * STEPS), np.uint8) for rows in (m, n))
        own = m // blocks, n // blocks
        sizes = [rows * 128 for rows in own]
        begin_b = BUFFERS * sizes[0]
        self.smem = rng.integers(0, 256, (blocks, begin_b + BUFFERS * sizes[1]), np.uint8)
        self.tmem = rng.integers(0, 1 << 32, (blocks, 128, COLUMNS), np.uint32)
        for block in range(blocks):
            for codes, rows, begin, size in (
                (a, own[0], 0, sizes[0]),
                (b, own[1], begin_b, sizes[1]),
            ):
                part = codes[block * rows : (block + 1) * rows]
                packed = part[:, ::2] | part[:, 1::2] << 4
                for i in range(BUFFERS):
                    places = begin + i * size + swizzled(rows)
                    self.smem[block][places] = packed[:, 128 * i : 128 * i + 128]
        count = K * STEPS // vector
        factors = []
        for which, (rows, first) in enumerate(((m, FIRST_A), (n, FIRST_B))):
            low, high = (120, 134) if scale == "ue8m0" else (0, 0x7F)
            codes = rng.integers(low, high, (rows, count)).astype(np.uint8)
            factors.append(codes.view(SCALES[scale]).astype(np.float64))
            self.put_factors(codes, first, which == 0, own[0])
        left, right = (
            FP4[x] * np.repeat(f, vector, 1) for x, f in zip((a, b), factors, strict=True)
        )
        sums = left @ right.T
        self.where = np.zeros(self.tmem.shape, bool)
        self.where[:, :, :n] = True
        self.values = np.zeros(self.tmem.shape)
        for block in range(blocks):
            self.values[block][:, :n] = sums[block * own[0] : (block + 1) * own[0]]
        each = K // vector  # factors of an instruction
        groups = [4 * -(-rows // 128) for rows in (own[0], n)]  # columns of 4 factors of all rows

        def factors_of(start, first, step, group):
            index = step * each
            return start + first + index // 4 * group, index % 4

        def issue(base, start):
            for step in range(STEPS):
                at, inside = divmod(48 * step, 128)
                following = (at + 1) % BUFFERS
                operands = []
                for begin, size in ((0, sizes[0]), (begin_b, sizes[1])):
                    here = smem_descriptor(base, begin + at * size + inside, 0, 1024, 2)
                    there = (base.toint() + begin + following * size >> 4).to(cute.Int64)
                    operands.append(here | there << 16 | cute.Int64(1 << 52))
                (sfa, a_id), (sfb, b_id) = (
                    factors_of(start, first, step, group)
                    for first, group in zip((FIRST_A, FIRST_B), groups, strict=True)
                )
                number = 1 << 7 | 1 << 10 | n >> 3 << 17 | m >> 4 << 24 | 1 << 31
                number |= b_id << 4 | (scale == "ue8m0") << 23 | a_id << 29
                arch.tcgen05_mma_block_scale(
                    "mxf4nvf4", start, *operands, cute.Int32(number - (1 << 32)), step > 0, sfa,
                    sfb, vector=vector, cta_group=blocks, is_long=True,
                )  # fmt: skip

        def by_the_atom(base, start):
            group = tcgen05.CtaGroup(blocks)
            if scale == "ue8m0":
                op = tcgen05.SM103MmaMXF4Op((m, n, K), group)
            else:
                op = tcgen05.SM103MmaMXF4NVF4Op(cute.Float8E4M3FN, (m, n, K), group)
            mma = cute.make_tiled_mma(op)
            fake = mma.make_fragment_C(mma.partition_shape_C((m, n)))
            acc = cute.make_tensor(cute.recast_ptr(start, dtype=cute.Float32), fake.layout)
            bytes_ = cute.recast_ptr(base, dtype=cute.Uint8)
            one = cute.make_layout(1, stride=0)
            for step in range(STEPS):
                at, inside = divmod(48 * step, 128)
                following = (at + 1) % BUFFERS
                operands = []
                for begin, size, rows in ((0, sizes[0], own[0]), (begin_b, sizes[1], own[1])):
                    atom = tcgen05.make_smem_layout_atom("K_SW128", cute.Uint8)
                    layout = cute.tile_to_shape(atom, (rows, 128), (0, 1))
                    described = tcgen05.make_umma_smem_desc(
                        bytes_ + begin + at * size + inside, layout, "k",
                        next_src=bytes_ + begin + following * size,
                    )  # fmt: skip
                    operands.append(cute.make_tensor(described, one))
                for field, first, group in zip(("SFA", "SFB"), (FIRST_A, FIRST_B), groups,
                                               strict=True):  # fmt: skip
                    index = step * each
                    words = start + first + index // 4 * group
                    pointer = cute.recast_ptr(words, dtype=op.sf_dtype) + index % 4
                    mma.set(getattr(tcgen05.Field, field), pointer)
                mma.set(tcgen05.Field.ACCUMULATE, step > 0)
                cute.mma_atom_call(mma, acc, *operands, acc)

        self.bodies = {"instructions": issue, "atom": by_the_atom}

    def put_factors(self, codes, first, is_a, own):
        """4 factors of a row in a word, the rows of 4 columns of each 128, copies in the lanes."""
        bytes_ = self.tmem.view(np.uint8).reshape(*self.tmem.shape, 4)
        for block in range(len(self.tmem)):
            part = codes[block * own : (block + 1) * own] if is_a else codes
            group = 4 * -(-len(part) // 128)
            for r, row in enumerate(part):
                for j, code in enumerate(row):
                    column = first + j // 4 * group + r // 32
                    bytes_[block, r % 32 + 32 * np.arange(4), column, j % 4] = code

    def check(self, body):
        after = run(body, self.smem, self.tmem)
        np.testing.assert_array_equal(after[~self.where], self.tmem[~self.where])
        found, wanted = after[self.where].view(np.float32).astype(float), self.values[self.where]
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())


CASES = {
    "nvf4": (128, 32, 1, "ue4m3", 16),
    "mxf4": (128, 48, 1, "ue8m0", 32),
    "mxf4 of many columns": (128, 144, 1, "ue8m0", 32),
    "nvf4, pair": (256, 96, 2, "ue4m3", 16),
    "mxf4, pair": (256, 64, 2, "ue8m0", 32),
}
QUICK = ("nvf4",)


@pytest.mark.parametrize("how", ["instructions", "atom"])
@pytest.mark.parametrize("name", slow_but(CASES, *QUICK))
def test_each_kind(name, how):
    it = Case(*CASES[name])
    it.check(it.bodies[how])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_random_shapes(seed):
    rng = np.random.default_rng(seed)
    blocks = int(rng.integers(1, 3))
    scale, vector = [("ue8m0", 32), ("ue4m3", 16)][int(rng.integers(2))]
    n = 16 * blocks * int(rng.integers(1, 5))
    it = Case(128 * blocks, n, blocks, scale, vector, seed=seed)
    it.check(it.bodies["atom" if seed % 2 else "instructions"])


@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="there is no ptxas")
@pytest.mark.parametrize("name", slow_but(CASES, *QUICK))
def test_ptxas_takes_each(name):
    it = Case(*CASES[name])
    compiled, _, _ = compile_body(it.bodies["atom"], it.smem, it.tmem, "sm_103a")
    text = compiled.stages.text("ptx")
    assert text.count(".kind::mxf4nvf4.block_scale.block") == STEPS
    assert ptxas.start(text, "sm_103a").finish().cubin


@pytest.mark.parametrize("how", ["instructions", "atom"])
def test_sm_100_has_none(how):
    it = Case(*CASES["nvf4"])
    with pytest.raises(DSLTypeError, match=r"sm_100a has no tcgen05\.mma of K = 96: only"):
        compile_body(it.bodies[how], it.smem, it.tmem, "sm_100a")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda op: op((128, 40, 96)), "N is a multiple of 16 up to 256, not 40"),
        (lambda op: op((128, 64, 64)), r"has the shapes \(M, N, 96\), not"),
        (
            lambda op: op((128, 64, 96), 1, tcgen05.OperandSource.TMEM),
            "K = 96 is of the kinds mxf4 and mxf4nvf4, A in shared memory",
        ),
    ],
)
def test_operations_that_there_are_not(make, message):
    with pytest.raises(DSLTypeError, match=message):
        make(tcgen05.SM103MmaMXF4Op)


def test_an_operand_takes_the_swizzle_of_128_bytes():
    it = Case(*CASES["nvf4"])

    def body(base, start):
        operand = smem_descriptor(base, 0, 128, 256)
        number = 1 << 7 | 1 << 10 | 32 >> 3 << 17 | 128 >> 4 << 24 | 1 << 31
        arch.tcgen05_mma_block_scale(
            "mxf4nvf4", start, operand, operand, cute.Int32(number - (1 << 32)), False,
            start + FIRST_A, start + FIRST_B, vector=16, is_long=True,
        )  # fmt: skip

    with pytest.raises(SimulationError, match="of K = 96 has the swizzle none: it takes 128B"):
        run(body, it.smem, it.tmem)
