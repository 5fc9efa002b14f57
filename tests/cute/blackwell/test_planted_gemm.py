"""Mistakes planted in the tutorial's first GEMM, each found by the simulator with its line.

A mistake is one change of the text of `first_gemm`.
"""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import basedsl_cute as cute
from basedsl import DSLError
from basedsl.testing import slow_but
from tests.cute.blackwell import first_gemm
from tests.cute.blackwell.test_first_gemm import arguments

TEXT = Path(first_gemm.__file__).read_text()
WAIT = "        done = acc_consumer.wait_and_advance()\n"
FREE = "        tmem.free(start)\n"
RELEASE = "                    full.release()\n"
MULTIPLY = "                    for kb in cutlass.range_constexpr(cute.size(rA, mode=[2])):\n"
COMMIT = "            if is_leader:\n                acc_producer.commit()\n"
FRAGMENT = "        b_one = cute.select(b_layout, mode=[0, 1, 2])\n"
FRAGMENTS = "        rA, rB = mma.make_fragment_A(sA), mma.make_fragment_B(sB)\n"
ALLOCATE = "        columns = utils.get_num_tmem_alloc_cols(fake)\n"
MORE = "        columns = 128\n"
# As a softmax that writes its weights where the sums of another product are.
STORED = """        shape = tcgen05.St32x32bOp(tcgen05.Repetition(n // self.subtiles))
        put = cute.make_copy_atom(shape, cutlass.Float32)
        there = tcgen05.make_tmem_copy(put, tAcc[None, 0])
        values.fill(0)
        cute.copy(there, values, there.get_slice(t).partition_D(tAcc[None, 0]))
        cute.arch.fence_view_async_tmem_store()
"""
SECOND = "                        mma.set(tcgen05.Field.ACCUMULATE, True)\n"


def fragments(letter, step, groups=16):
    """The fragment of an operand whose groups of 8 rows are `step` elements apart."""
    shape = f"((((8, {groups}), 16), 1, 4, self.ab_stages))"
    layout = f"cute.make_layout({shape}, stride=(((64, {step}), 1), 0, 16, {groups * 512}))"
    seen = f"cute.make_tensor(s{letter}.iterator, {layout})"
    return FRAGMENTS + f"        r{letter} = mma.make_fragment_{letter}({seen})\n"


def second(columns):
    """A second tensor of accumulators, of the same operands, so many columns further."""
    return f"""{SECOND}                    other = cute.make_tensor(start + {columns}, fake.layout)
                    mma.set(tcgen05.Field.ACCUMULATE, full.count != 0)
                    for kb in cutlass.range_constexpr(cute.size(rA, mode=[2])):
                        at = (None, None, kb, full.index)
                        cute.gemm(mma, other, rA[at], rB[at], other)
                        mma.set(tcgen05.Field.ACCUMULATE, True)
"""


MISTAKES = {
    "TMA writes another swizzle than shared memory has": (
        [(FRAGMENT, FRAGMENT + """
        atom = tcgen05.make_smem_layout_atom(tcgen05.SmemLayoutAtomKind.K_SW64, dtype)
        a_one = tcgen05.tile_to_mma_shape(atom, ((128, 16), 1, 4))
""")],
        "the tile in shared memory has its elements in another order than the atom",
    ),
    "TMA writes another swizzle than the descriptor says": (
        [("        rA, rB = mma.make_fragment_A(sA), mma", """
        atom = tcgen05.make_smem_layout_atom(tcgen05.SmemLayoutAtomKind.K_SW64, dtype)
        other = tcgen05.tile_to_mma_shape(atom, ((128, 16), 1, 4, self.ab_stages))
        seen = cute.recast_ptr(sA.iterator, other.inner, dtype)
        rA, rB = mma.make_fragment_A(cute.make_tensor(seen, other.outer)), mma""")],
        "operand A of a tcgen05.mma has the swizzle 128B from TMA, and 64B in its descriptor",
    ),
    "a descriptor whose groups of rows are too close": (
        [(FRAGMENTS, fragments("A", 256))],
        "the descriptor of operand A of a tcgen05.mma disagrees with the layout of what TMA loaded",
    ),
    "a descriptor whose groups of rows are too far apart": (
        [(FRAGMENTS, fragments("B", 1024, 8))],
        "the descriptor of operand B of a tcgen05.mma disagrees with the layout of what TMA loaded",
    ),
    "accumulators that overlap": (
        [(SECOND, second(48)), (ALLOCATE, MORE)],
        "D of a tcgen05.mma overlaps accumulators of another",
    ),
    "an operand stored over accumulators": (
        [(WAIT, WAIT + STORED)],
        "a tcgen05.st overwrites accumulators of a tcgen05.mma that nobody",
    ),
    "the accumulators are not committed": (
        [(COMMIT, "")], "`Storage.acc_barriers` (1 of 1 arrivals still to come",
    ),
    "a stage is released before it is multiplied": (
        [(RELEASE, ""), (MULTIPLY, RELEASE + MULTIPLY)],
        "was overwritten before the instruction was complete",
    ),
    "bytes that never come": (
        [(" * blocks\n\n        @cute.struct", " * blocks + 16\n\n        @cute.struct")],
        "waits for phase parity 0 of the mbarrier at byte offset 0 of `Storage.ab_barriers`",
    ),
    "the epilogue does not wait": (
        [(WAIT, ""), ("        done.release()\n", "")],
        "tcgen05.ld reads tensor memory that a tcgen05.mma may still write",
    ),
    "tensor memory is not freed": (
        [(FREE, "")], "columns of tensor memory were never freed",
    ),
    "tensor memory is read after it was freed": (
        [(FREE, ""), (WAIT, WAIT + "        pipeline.sync(barrier_id=1)\n" + FREE
                      + "        pipeline.sync(barrier_id=1)\n")],
        "of tensor memory, which are not allocated",
    ),
    "accumulators where the allocation ends": (
        [("acc = cute.make_tensor(start, fake.layout)",
          "acc = cute.make_tensor(start + 16, fake.layout)")],
        "of tensor memory, which are not allocated",
    ),
}  # fmt: skip


# The others have tests of single instructions, too.
QUICK = (
    "TMA writes another swizzle than the descriptor says",
    "the accumulators are not committed",
    "a stage is released before it is multiplied",
)


# Changes of the same kind that are right.
TWINS = {
    "groups of rows as they are, A": [(FRAGMENTS, fragments("A", 512))],
    "groups of rows as they are, B": [(FRAGMENTS, fragments("B", 512, 8))],
    "accumulators side by side": [(SECOND, second(64)), (ALLOCATE, MORE)],
}


@pytest.mark.parametrize("twin", slow_but(TWINS))
def test_a_program_like_it_is_right(twin, tmp_path):
    gemm = planted(TWINS[twin], tmp_path)
    tensors, a, b, c = arguments(gemm, (128, 64, 320))
    cute.compile(gemm, *tensors, options="--arch sim")(*tensors)
    np.testing.assert_allclose(c, a.astype(float) @ b.astype(float).T, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("mistake", slow_but(MISTAKES, *QUICK))
def test_a_mistake_is_reported(mistake, tmp_path):
    changes, message = MISTAKES[mistake]
    gemm = planted(changes, tmp_path)
    tensors, *_ = arguments(gemm, (128, 64, 320))
    with pytest.raises(DSLError) as error:
        cute.compile(gemm, *tensors, options="--arch sim")(*tensors)
    text = str(error.value)
    assert message in text
    if mistake == "accumulators that overlap":
        assert "`other` takes columns 48 to 111" in text
        assert "`acc` takes columns 0 to 63, written here" in text
        assert "cute.gemm(mma, acc," in text and "cute.gemm(mma, other," in text


def planted(changes, tmp_path):
    """The GEMM of two stages with changes of its text."""
    text = TEXT
    for old, new in changes:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    path = tmp_path / "planted_gemm.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("planted_gemm", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.FirstGemm(ab_stages=2)
