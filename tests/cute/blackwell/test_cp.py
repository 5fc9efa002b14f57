"""tcgen05.cp and shift on random bytes against the PTX ISA: each shape, expansion, pairs."""

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLTypeError
from basedsl_cute import arch
from basedsl_cute.lowering.ptx import ptxas
from basedsl_cute.nvgpu import tcgen05
from tests.cute.blackwell.harness import (
    COLUMNS,
    compile_body,
    core_matrices,
    run,
    smem_descriptor,
)

# Shape -> (rows, bytes of a row, lanes of each copy of the rows).
LANES = np.arange(128)
SHAPES = {
    "128x256b": (128, 32, [LANES]),
    "128x128b": (128, 16, [LANES]),
    "4x256b": (4, 32, [LANES[:4] * 32]),
    "4x32x128b": (32, 16, [LANES[:32], LANES[32:64], LANES[64:96], LANES[96:]]),
    "2x64x128b_0213": (64, 16, [LANES[:64], LANES[64:]]),
    "2x64x128b_0123": (
        64, 16, [np.r_[LANES[:32], LANES[64:96]], np.r_[LANES[32:64], LANES[96:]]],
    ),
}  # fmt: skip
BITS = {"b4x16_p64": 4, "b6x16_p32": 6}


def expanded(raw, source_format):
    """16 elements at the beginning of each 16 bytes become a byte each."""
    if not source_format:
        return raw
    bits = BITS[source_format]
    out = np.zeros_like(raw)
    for at in np.ndindex(raw.shape[0], raw.shape[1] // 16):
        chunk = raw[at[0], 16 * at[1] : 16 * at[1] + 16]
        number = int.from_bytes(chunk.tobytes(), "little")
        for i in range(16):
            code = number >> bits * i & (1 << bits) - 1
            out[at[0], 16 * at[1] + i] = code << 2 if bits == 4 else code
    return out


def random_bytes(rng, *shape):
    return rng.integers(0, 256, shape, np.uint8)


def case(shape, blocks, source_format, seed):
    rng = np.random.default_rng(seed)
    smem = random_bytes(rng, blocks, 16384)
    tmem = random_bytes(rng, blocks, 128, 4 * COLUMNS).view(np.uint32)
    rows, size, copies = SHAPES[shape]
    lbo = 128 * int(rng.integers(1, 4))
    sbo = lbo * 2 if size == 32 else 128 * int(rng.integers(1, 4))
    offset, column = 16 * int(rng.integers(0, 64)), int(rng.integers(0, COLUMNS - 8))

    def body(base, start):
        source = smem_descriptor(base, offset, lbo, sbo)
        arch.tcgen05_cp(
            shape, start + column, source, cta_group=blocks, source_format=source_format
        )

    wanted = tmem.copy()
    places = offset + core_matrices(rows, size, lbo, sbo)
    for block in range(blocks):
        words = expanded(smem[block][places], source_format).view(np.uint32)
        for lanes in copies:
            wanted[block][lanes, column : column + size // 4] = words
    return body, smem, tmem, wanted


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("blocks", [1, 2])
def test_each_shape(shape, blocks):
    body, smem, tmem, wanted = case(shape, blocks, "", 1)
    np.testing.assert_array_equal(run(body, smem, tmem), wanted)


ATOMS = {op.shape: op for op in (
    tcgen05.Cp128x256bOp, tcgen05.Cp128x128bOp, tcgen05.Cp4x256bOp, tcgen05.Cp4x32x128bOp,
    tcgen05.Cp2x64x128b0213Op, tcgen05.Cp2x64x128b0123Op,
)}  # fmt: skip


@pytest.mark.parametrize("shape", ["128x256b", "128x128b"])
def test_tiled_copies(shape):
    """The atom, its partitions and descriptors, from a K-major tile without a swizzle."""
    rng = np.random.default_rng(5)
    words = SHAPES[shape][1] // 4
    smem = random_bytes(rng, 1, 4096)
    tmem = random_bytes(rng, 1, 128, 4 * COLUMNS).view(np.uint32)
    layout = cute.make_layout(((8, 16), (4, words // 4)), stride=((4, 32), (1, 512)))

    def body(base, start):
        source = cute.make_tensor(base, layout)
        target = cute.make_tensor(start + 8, cute.make_layout((128, words), stride=(65536, 1)))
        copy = tcgen05.make_s2t_copy(cute.make_copy_atom(ATOMS[shape](), cute.Int32), target)
        mine = copy.get_slice(0)
        given = tcgen05.get_s2t_smem_desc_tensor(copy, mine.partition_S(source))
        cute.copy(copy, given, mine.partition_D(target))

    wanted = tmem.copy()
    rows = core_matrices(128, 4 * words, 2048, 128)
    wanted[0][:, 8 : 8 + words] = smem[0][rows].view(np.uint32)
    np.testing.assert_array_equal(run(body, smem, tmem), wanted)


@pytest.mark.parametrize("shape", ["4x32x128b", "2x64x128b_0213", "2x64x128b_0123"])
def test_lanes_of_the_copies_of_rows(shape):
    places = cute.make_copy_atom(ATOMS[shape](), cute.Int8).op.bits_layout().tmem
    rows, size, copies = SHAPES[shape]
    lanes = {(int(places(i)) >> 21) for i in range(cute.size(places)) if places(i) % 32 == 0}
    assert cute.size(places) == rows * size * 8 * len(copies)
    assert lanes == set(np.concatenate(copies).tolist())


@pytest.mark.parametrize("shape", ["128x256b", "128x128b"])
@pytest.mark.parametrize("source_format", BITS)
def test_each_expansion(shape, source_format):
    body, smem, tmem, wanted = case(shape, 1, source_format, 2)
    np.testing.assert_array_equal(run(body, smem, tmem), wanted)


@pytest.mark.parametrize("blocks", [1, 2])
def test_shift_moves_lanes_down(blocks):
    rng = np.random.default_rng(3)
    smem = random_bytes(rng, blocks, 1024)
    tmem = random_bytes(rng, blocks, 128, 4 * COLUMNS).view(np.uint32)
    wanted = tmem.copy()
    wanted[:, 1:, 32:40] = tmem[:, :-1, 32:40]
    after = run(lambda base, start: arch.tcgen05_shift(start + 32, cta_group=blocks), smem, tmem)
    np.testing.assert_array_equal(after, wanted)


@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="there is no ptxas")
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("source_format", ["", *BITS])
def test_ptxas_takes_each_copy(shape, source_format):
    body, smem, tmem, _ = case(shape, 1, source_format, 4)
    compiled, *_ = compile_body(body, smem, tmem, "sm_100a")
    text = compiled.stages.text("ptx")
    assert "tcgen05.cp.cta_group::1." in text and source_format in text
    assert compiled.__cubin__


@pytest.mark.skipif(ptxas.find_ptxas() is None, reason="there is no ptxas")
def test_shift_is_of_chosen_architectures():
    smem, tmem = np.zeros((1, 1024), np.uint8), np.zeros((1, 128, COLUMNS), np.uint32)

    def body(base, start):
        arch.tcgen05_shift(start)

    assert compile_body(body, smem, tmem, "sm_103a")[0].__cubin__
    with pytest.raises(
        DSLTypeError, match=r"sm_100f has no tcgen05.shift: only sm_100a, sm_103a and"
    ):
        compile_body(body, smem, tmem, "sm_100f")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda s: arch.tcgen05_cp("8x8b", s, cute.Int64(0)), "has the shapes 128x256b"),
        (
            lambda s: arch.tcgen05_cp("128x128b", s, cute.Int64(0), source_format="b8"),
            "expands b4x16_p64 and b6x16_p32",
        ),
    ],
)
def test_copies_that_there_are_not(call, message):
    smem, tmem = np.zeros((1, 1024), np.uint8), np.zeros((1, 128, COLUMNS), np.uint32)
    with pytest.raises(DSLTypeError, match=message):
        compile_body(lambda base, start: call(start), smem, tmem)
