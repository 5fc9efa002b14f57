"""Shapes and kinds of tcgen05.mma, as the PTX ISA lists them."""

from __future__ import annotations

import itertools

import pytest

from basedsl_cute.hardware.tensor_memory import KINDS, can_transpose, refused_shape

ONE_BLOCK, PAIR = 1, 2
# (kinds, blocks, M) -> the step of N, with A in shared memory.
DENSE, SCALED, FOUR_BITS = ("f16", "tf32", "f8f6f4"), ("mxf8f6f4",), ("mxf4", "mxf4nvf4")
STEPS = {
    **{(kind, ONE_BLOCK, m): 8 for kind in DENSE for m in (64, 128)},
    **{(kind, PAIR, m): 16 for kind in DENSE for m in (128, 256)},
    **{("i8", ONE_BLOCK, m): 16 for m in (64, 128)},
    **{("i8", PAIR, m): 32 for m in (128, 256)},
    **{(kind, ONE_BLOCK, 128): 8 for kind in SCALED + FOUR_BITS},
    **{(kind, PAIR, 256): 16 for kind in SCALED + FOUR_BITS},
    **{(kind, PAIR, 128): 16 for kind in FOUR_BITS},
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_shape_of_the_tables_and_no_other(kind):
    for blocks, m, n in itertools.product((1, 2), (32, 64, 128, 256), range(0, 272, 8)):
        step = STEPS.get((kind, blocks, m))
        legal = step is not None and 0 < n <= 256 and n % step == 0
        legal = legal or (kind == "i8" and blocks == 1 and m in (64, 128) and n == 8)
        assert (refused_shape(kind, m, n, blocks) is None) == legal, (blocks, m, n)


@pytest.mark.parametrize(("m", "blocks", "step"), [(64, 1, 8), (128, 1, 16), (128, 2, 32)])
def test_a_in_tensor_memory_has_wider_steps(m, blocks, step):
    legal = [n for n in range(8, 264, 8) if refused_shape("f16", m, n, blocks, True) is None]
    assert legal == list(range(step, 264, step))


def test_the_words():
    assert refused_shape("f16", 32, 64, 1) == "M is 64 or 128 over 1 block, not 32"
    assert refused_shape("mxf4", 64, 64, 2) == "M is 128 or 256 over 2 blocks, not 64"
    assert refused_shape("tf32", 64, 20, 1) == "N is a multiple of 8 up to 256, not 20"


def test_k_is_256_bits_of_what_is_stored():
    stored = {"f16": 16, "tf32": 32, "i8": 8, "f8f6f4": 8, "mxf8f6f4": 8, "mxf4": 4, "mxf4nvf4": 4}
    assert {name: kind.k for name, kind in KINDS.items()} == {
        k: 256 // b for k, b in stored.items()
    }


def test_narrow_operands_are_k_major():
    assert can_transpose("e4m3") and not can_transpose("e2m1") and not can_transpose("e3m2")
