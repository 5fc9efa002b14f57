"""`!cute.memref`: its text, its record, and what cannot be one."""

from __future__ import annotations

import pytest

from basedsl.errors import DSLTypeError
from basedsl_cute.dialect import SPACES, MemRef, define, load
from basedsl_cute.dialect.types import read_space, space_text


def test_it_prints_like_the_slides(cute):
    element = cute.ir.F16Type.get()
    type = cute.memref_type(element, "gmem", "(128,256):(256,1)")
    assert str(type) == '!cute.memref<f16, "gmem", "(128,256):(256,1)">'
    assert str(cute.record(type)) == str(type)


def test_alignment_is_part_of_the_place(cute):
    type = cute.memref_type(cute.ir.F32Type.get(), "smem", "(?{div=4},8):(8,1)", align=16)
    assert str(type) == '!cute.memref<f32, "smem align<16>", "(?{div=4},8):(8,1)">'
    record = cute.record(cute.ir.Type.parse(str(type)))
    assert record == MemRef(cute.ir.F32Type.get(), "smem", "(?{div=4},8):(8,1)", 16)
    assert (record.alignment, record.address_space) == (16, 3)


def test_the_same_type_is_made_once(cute):
    make = cute.memref_type
    element = cute.ir.F32Type.get()
    assert make(element, "gmem", "(4):(1)") is make(element, "gmem", "(4):(1)")
    assert make(element, "gmem", "(4):(1)") != make(element, "gmem", "(4):(2)")


@pytest.mark.parametrize("space", SPACES)
def test_places_are_read_back(space):
    assert read_space(space_text(space, None)) == (space, None)
    assert read_space(space_text(space, 128)) == (space, 128)


@pytest.mark.parametrize("text", ["moon", "gmem align<12>", "gmem align<>", "gmem,16", ""])
def test_what_is_no_place(text):
    with pytest.raises(DSLTypeError):
        read_space(text)


@pytest.mark.parametrize(
    ("element", "bits"),
    [("i1", 8), ("i8", 8), ("bf16", 16), ("f8E4M3FN", 8), ("tf32", 32), ("f64", 64), ("i4", 4)],
)
def test_memory_bits(cute, element, bits):
    type = cute.memref_type(cute.ir.Type.parse(element), "gmem", "(1):(0)")
    assert cute.record(type).element_bits == bits


def test_other_types_have_no_record(cute):
    assert cute.record(cute.ir.F32Type.get()) is None


def test_what_has_no_width_is_no_element(cute):
    record = MemRef(cute.ir.IndexType.get(), "gmem", "(1):(0)")
    with pytest.raises(DSLTypeError, match="no bit width"):
        _ = record.element_bits


def test_one_dialect_for_all_contexts_of_the_bindings(cute_context):
    from basedsl.mlir import MLIRContext

    bindings = cute_context.bindings
    text = '!cute.memref<f32, "gmem", "(4):(1)">'
    for context in (MLIRContext(bindings, load), cute_context):
        with context.entered():
            load(bindings)
            record = define(bindings).record(bindings.ir.Type.parse(text))
            assert record is not None and record.layout == "(4):(1)"
