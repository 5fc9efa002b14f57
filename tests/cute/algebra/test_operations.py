"""Documented results, errors, views, and the promises of the package as a whole."""

from __future__ import annotations

import ast
import copy
import doctest
import importlib
import pickle
import pkgutil
import sys
from pathlib import Path
from typing import Any

import pytest

from basedsl_cute import algebra as cute
from basedsl_cute.algebra import LayoutError, parse

PACKAGE = Path(cute.__file__).parent


def layout(source: str) -> Any:
    return cute.parse_layout(source)


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (lambda: cute.coalesce(layout("(2,(1,6)):(1,(6,2))")), "12:1"),
        (lambda: cute.coalesce(layout("(2,(1,6)):(1,(6,2))"), (1, 1)), "(2,6):(1,2)"),
        (
            lambda: cute.composition(layout("(6,2):(8,2)"), layout("(4,3):(3,1)")),
            "((2,2),3):((24,2),8)",
        ),
        (
            lambda: cute.composition(layout("(10,2):(16,4)"), layout("(5,4):(1,5)")),
            "(5,(2,2)):(16,(80,4))",
        ),
        (
            lambda: cute.logical_divide(layout("(4,2,3):(2,1,8)"), layout("4:2")),
            "((2,2),(2,3)):((4,1),(2,8))",
        ),
        (
            lambda: cute.zipped_divide(layout("(9,(4,8)):(59,(13,1))"), parse("(3:3,(2,4):(1,8))")),
            "((3,(2,4)),(3,(2,2))):((177,(13,2)),(59,(26,1)))",
        ),
        (
            lambda: cute.logical_product(layout("(2,2):(4,1)"), layout("6:1")),
            "((2,2),(2,3)):((4,1),(2,8))",
        ),
        (
            lambda: cute.blocked_product(layout("(2,5):(5,1)"), layout("(3,4):(1,3)")),
            "((2,3),(5,4)):((5,10),(1,30))",
        ),
        (
            lambda: cute.raked_product(layout("(2,5):(5,1)"), layout("(3,4):(1,3)")),
            "((3,2),(4,5)):((10,5),(30,1))",
        ),
        (
            lambda: cute.zipped_product(layout("(2,5):(5,1)"), layout("(3,4):(1,3)")),
            "((2,5),(3,4)):((5,1),(10,30))",
        ),
        (lambda: cute.gmma_smem_atom("MN_SW128", 8), "S<3,4,3> o 0 o (128,8):(1,128)"),
        (lambda: cute.recast_layout(8, 16, layout("(4,8):(8,1)")), "(4,16):(16,1)"),
        (lambda: cute.recast_layout(16, 8, layout("S<3,4,3> o 0 o (8,128):(128,1)")), None),
        (lambda: cute.make_layout_right((2, (3, 4))), "(2,(3,4)):(12,(4,1))"),
        (lambda: layout("(4,8):(1,4)")[1], "8:4"),
        (lambda: cute.get(layout("((2,3),4):((1,2),6)"), mode=[0, 1]), "3:2"),
        (lambda: cute.select(layout("(2,3,4):(1,2,6)"), mode=[2, 0]), "(4,2):(6,1)"),
        (lambda: cute.append_ones(layout("(2,3):(1,2)"), up_to_rank=3), "(2,3,1):(1,2,0)"),
        (lambda: cute.append(cute.make_layout(()), layout("4:1")), "(4):(1)"),
        (lambda: cute.flatten(layout("((2,3),4):((1,2),6)")), "(2,3,4):(1,2,6)"),
        (lambda: cute.dice(layout("(2,3,4):(1,2,6)"), (None, 0, None)), "(3):(2)"),
        (
            lambda: cute.zipped_divide(layout("(8,6):(1,8)"), (4, None)),
            "((4,6),(2,1)):((1,8),(4,0))",
        ),
    ],
)
def test_documented_results(got: Any, expected: str | None) -> None:
    assert str(got()) == (expected or "S<3,3,3> o 0 o (8,64):(64,1)")


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        (cute.size((4, (2, 8)), mode=[1]), 16),
        (cute.size(layout("(4,(2,8)):(1,(4,8))"), mode=[1, 0]), 2),
        (cute.cosize(layout("S<2,0,3> o 0 o (8,8):(8,1)")), 64),
        (cute.size_in_bytes(4, layout("9:1")), 5),
        (cute.rank((4, (2, 8))), 2),
        (cute.depth((4, (2, (8, 1)))), 3),
        (cute.rank(7), 1),
        (cute.shape(layout("(4,(2,8)):(1,(4,8))"), mode=[1]), (2, 8)),
        (cute.product_each(((2, 3), 4)), (6, 4)),
        (cute.round_up((10, 8), 4), (12, 8)),
        (cute.shape_div((4, 5, 6), 40), (1, 1, 3)),
        (cute.repeat_like(None, (1, (2, 3))), (None, (None, None))),
        (cute.repeat(0, 3), (0, 0, 0)),
        (cute.repeat(0, 1), 0),
        (cute.repeat_as_tuple(0, 1), (0,)),
        (cute.group_modes((2, 3, 5), 1), (2, (3, 5))),
        (cute.slice_((4, (5, 6)), (0, None)), ((5, 6),)),
        (cute.crd2idx((1, 2), layout("(4,8):(8,1)")), 10),
        (cute.crd2crd((1, 2), (4, 8), 32), 9),
        (cute.max_common_vector(layout("(8,4):(1,8)"), layout("(8,4):(1,16)")), 8),
        (cute.max_common_vector(layout("(4,6):(1,8)"), layout("(6,4):(1,8)")), 2),
        (cute.cosize(cute.make_layout((0, 4))), 0),
        (cute.max_alignment(layout("S<3,3,3> o 0 o (8,64):(64,1)")), 8),
        (layout("S<3,3,3> o 4 o (8,64):(64,1)").max_alignment, 4),
        (layout("(4,8):(1,4)").is_normal, True),
        (layout("S<3,3,3> o 0 o 8:1").is_normal, False),
        (cute.is_static(layout("(4,8):(1,4)")), True),
        (cute.is_congruent((1, (2, 3)), layout("(1,(2,3)):(0,(1,2))")), True),
        (cute.is_weakly_congruent((1, 2), (1, (2, 3))), True),
        (cute.compatible((6, 4), ((2, 3), 4)), True),
        (cute.compatible(((2, 3), 4), (6, 4)), False),
    ],
)
def test_documented_values(got: Any, expected: Any) -> None:
    assert got == expected


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: cute.composition(layout("(3,2):(1,5)"), layout("4:1")),
            r"composition\(\(3,2\):\(1,5\), 4:1\) is not admissible: shape divisibility: 3 does",
        ),
        (
            lambda: cute.composition(layout("(4,3):(1,5)"), layout("2:6")),
            "stride divisibility: 6 is no multiple of the extent 4",
        ),
        (
            lambda: cute.composition(layout("(6,2):(8,2)"), layout("4:4")),
            "stride divisibility: 4 does not divide the extent 6",
        ),
        (
            lambda: cute.composition(layout("(4,2):(8,2)"), layout("(2,2):(3,1)")),
            r"\(2,2\):\(3,1\)\) is not admissible: modes of the second operand together leave the",
        ),
        (
            lambda: cute.logical_product(layout("12:3"), layout("(2,2):(1,2)")),
            r"logical_product\(12:3, \(2,2\):\(1,2\)\): .* together leave the extent 3",
        ),
        (
            lambda: cute.composition(layout("(2,3):(9,4)"), cute.Swizzle(1, 0, 2)),
            r"composition\(\(2,3\):\(9,4\), S<1,0,2>\) is no swizzle",
        ),
        (
            lambda: cute.logical_product(layout("(4,4):(1,2)"), 2),
            r"logical_product\(\(4,4\):\(1,2\), 2:1\): .* its modes overlap",
        ),
        (
            lambda: cute.logical_divide(layout("16:1"), layout("(4,4):(1,2)")),
            r"logical_divide\(16:1, \(4,4\):\(1,2\)\): .* its modes overlap",
        ),
        (lambda: cute.idx2crd(4, (4, 0)), "an empty shape"),
        (lambda: layout("(4,0):(1,4)").get_hier_coord(4), "it is empty"),
        (lambda: cute.make_layout_image_mask(layout("(4,2):(1,4)"), 1, 0), "one coordinate for"),
        (lambda: cute.composition(layout("(2,2):(1,2)"), (2, 2, 2)), "more modes in the tiler"),
        (lambda: cute.logical_divide(layout("4:1"), (2, 2)), "too many modes in the tiler"),
        (lambda: cute.tile_to_shape(layout("(2,3):(1,2)"), (8, 8)), "3 does not divide 8"),
        (lambda: cute.complement(layout("(4,4):(1,2)"), 64), "overlap, stride 2 starts before 4"),
        (lambda: cute.left_inverse(layout("(2,2):(2,3)")), "stride 3 is no multiple of 2"),
        (lambda: cute.upcast(layout("(4,3):(3,1)"), 2), "neither 2 nor the stride 3"),
        (lambda: cute.upcast(layout("3:1"), 2), "do not divide 3"),
        (lambda: cute.upcast(cute.Swizzle(1, 1, 1), 3), "power of two, not by 3"),
        (lambda: cute.downcast(layout("4:2"), 2), "no mode has stride 1"),
        (lambda: cute.shape_div(6, 4), r"shape_div\(6, 4\): neither divides"),
        (lambda: cute.left_inverse(layout("(2,3):(12,6)")), "its modes overlap"),
        (lambda: cute.make_layout((0, 4))(3), "is empty"),
        (lambda: cute.make_layout((4, 8), (1,)), "differ in profile"),
        (lambda: cute.make_layout((4, -8)), "the extent -8 is no extent"),
        (lambda: cute.make_layout("abc"), "not an integer or a tuple of integers"),
        (lambda: cute.make_layout((4, True)), "not an integer"),
        (lambda: layout("(4,8):(1,4)")((1, 2, 3)), "does not fit the shape"),
        (lambda: cute.make_swizzle(3, 0, 2), "at least bits"),
        (lambda: cute.parse_layout("(4,8)"), "is no layout"),
        (lambda: cute.parse_layout("(4,8:(1,4)"), "cannot read"),
        (lambda: cute.parse_layout("(4,8):(1,4"), "the end"),
        (lambda: cute.take((2, 3), 1, 1), r"take modes \[1,1\)"),
        (lambda: cute.group_modes((2, 3), 1, 4), r"group modes \[1,4\)"),
        (lambda: cute.get(layout("(4,8):(1,4)"), mode=[2]), "it has 2 modes"),
        (lambda: cute.append((2, 3), up_to_rank=1), "more than 1"),
        (lambda: cute.ceil_div(4, 0), "the divisor must be positive"),
        (lambda: cute.elem_less((1, 2, 3), (4, 5)), "the first operand has more modes"),
        (lambda: cute.add_offset(3, (1, 2)), "cannot add the integer 3"),
        (lambda: cute.assume(12, divby=8), "does not divide"),
        (lambda: cute.assume(12, divby=0), "divby=0\\): it is a positive int"),
        (lambda: cute.assume(12, divby=-4), "it is a positive int"),
        (lambda: cute.assume(12, divby="4"), "it is a positive int"),
    ],
)
def test_inadmissible_operands_are_errors_that_show_them(make: Any, message: str) -> None:
    with pytest.raises(LayoutError, match=message):
        make()


def test_a_wrong_composition_is_never_returned() -> None:
    """The walk would give ((2,2)):((32,2)) here; index 8 of the first layout is 18, not 2."""
    a = layout("(6,2):(8,2)")
    assert [a(i) for i in (0, 4, 8, 12)] == [0, 32, 18, 4]
    with pytest.raises(LayoutError):
        cute.composition(a, layout("4:4"))


@pytest.mark.parametrize("operation", ["complement", "cosize", "left_inverse", "right_inverse"])
@pytest.mark.parametrize("operand", [5, (3, 4), [1], "x", 1.5], ids=repr)
def test_an_operand_that_is_no_layout(operation, operand):
    with pytest.raises(LayoutError, match=f"{operation}.*: its operand is no layout"):
        getattr(cute, operation)(operand)


def test_modes_that_carry_into_the_next_one_are_never_composed_apart() -> None:
    """Index 3 + 1 of (4,2):(8,2) is 2; the sum of what 3 and 1 give would be 32."""
    a = layout("(4,2):(8,2)")
    assert a(3 + 1) == 2 and a(3) + a(1) == 32
    assert str(cute.composition(a, layout("(2,2):(2,1)"))) == "(2,2):(16,8)"
    # Repetitions that overlap have no right place; each mode is taken for itself.
    overlapping = cute.logical_product(layout("(4,2):(2,16)"), layout("(4,4):(2,1)"))
    assert str(overlapping[1]) == "((2,2),(2,2)):((8,32),(1,8))"


def test_a_complement_reaches_the_end_of_a_shape_that_it_does_not_divide() -> None:
    assert str(cute.complement(layout("9:1"), (4, 6))) == "3:9"
    assert str(cute.logical_divide(cute.make_layout((4, 6)), layout("9:1"))) == "(9,3):(1,9)"


@pytest.mark.parametrize("extent", ["0:1", "(4,0):(1,4)", "(0,3):(1,0)", "((2,0)):((6,6))"])
def test_empty_layouts_go_through_the_algebra(extent: str) -> None:
    empty, full = layout(extent), layout("(4,6):(1,4)")
    assert str(cute.complement(empty, 8)) == "8:1"
    for product in (cute.logical_product, cute.blocked_product, cute.raked_product):
        assert cute.size(product(empty, full)) == 0
        assert cute.size(product(full, empty)) == 0
    assert cute.size(cute.composition(full, empty)) == 0
    assert cute.size(cute.zipped_divide(empty, (2,) * cute.rank(empty))) == 0


class View:
    """A minimal tensor: a layout and where it starts."""

    def __init__(self, layout: Any, start: int = 0):
        self.layout, self.start = layout, start

    @property
    def shape(self) -> Any:
        return self.layout.shape

    def with_layout(self, layout: Any) -> View:
        return View(layout, self.start)

    def __getitem__(self, coord: Any) -> View:
        layout, offset = cute.slice_and_offset(coord, self.layout)
        return View(layout, self.start + offset)


def test_operations_apply_to_anything_that_carries_a_layout() -> None:
    view = View(layout("(8,6):(6,1)"))
    tile = cute.local_tile(view, tiler=(4, 3), coord=(1, 1))
    assert (str(tile.layout), tile.start) == ("(4,3):(6,1)", 27)
    batched = View(layout("(8,6,5):(6,1,48)"))
    operand = cute.local_tile(batched, (4, 9, 3), (1, 7, None, 2), proj=(1, None, 1))
    assert (str(operand.layout), operand.start) == ("(4,3,2):(6,1,3)", 24 + 2 * 48)
    mine = cute.local_partition(view, layout("(4,2):(2,1)"), 3)
    assert (str(mine.layout), mine.start) == ("(2,3):(24,2)", 7)
    assert str(cute.zipped_divide(x=view, tiler=(4, 3)).layout) == "((4,3),(2,2)):((6,1),(24,3))"
    assert str(cute.group_modes(view, 0, 2).layout) == "((8,6)):((6,1))"
    assert str(cute.composition(view, (4, None)).layout) == "(4,6):(6,1)"
    assert cute.slice_(view, (2, None)).start == 12
    assert (cute.size(view), cute.rank(view), cute.cosize(view)) == (48, 2, 48)
    mma = cute.make_mma_tiling(cute.mma_atom("UniversalFMA<float>"), (2, 2, 1))
    assert mma.partition("C", view, 3).start == 7


def test_functions_compose_with_layouts() -> None:
    def gather(index: int) -> int:
        return (7 * index) % 32

    indirect = cute.make_composed_layout(gather, 1, layout("(4,8):(8,1)"))
    assert indirect((2, 3)) == gather(20) and str(indirect) == "gather o 1 o (4,8):(8,1)"
    tile, offset = cute.local_tile(indirect, (2, 2), (1, 2))
    assert offset == 0 and tile((1, 1)) == indirect((3, 5))
    assert cute.composition(gather, layout("4:2"))(3) == gather(6)


def test_a_layout_carries_a_swizzle_through() -> None:
    a, swizzle = layout("(8,8):(8,1)"), cute.Swizzle(3, 0, 3)
    moved = cute.composition(a, swizzle)
    assert [moved(i) for i in range(64)] == [a(swizzle(i)) for i in range(64)]
    with pytest.raises(LayoutError, match="no swizzle"):
        cute.composition(layout("(4,16):(1,5)"), swizzle)
    inverse = cute.right_inverse(layout("S<3,0,3> o 0 o (8,8):(8,1)"))
    swizzled = layout("S<3,0,3> o 0 o (8,8):(8,1)")
    assert [swizzled(inverse(i)) for i in range(64)] == list(range(64))


def test_domain_offset_moves_the_origin() -> None:
    same, offset = cute.domain_offset((1, -2), layout("(8,8):(8,1)"))
    assert (str(same), offset) == ("(8,8):(8,1)", 6)
    moved, zero = cute.domain_offset((1, 2), layout("S<2,0,3> o 0 o (8,8):(8,1)"))
    assert zero == 0 and moved((2, 3)) == layout("S<2,0,3> o 0 o (8,8):(8,1)")((3, 5))


def test_basis_strides_print_parse_and_evaluate() -> None:
    identity = cute.make_identity_layout((4, (2, 3)))
    assert str(identity) == "(4,(2,3)):(1@0,(1@0@1,1@1@1))"
    assert identity((3, (1, 2))) == (3, (1, 2)) and identity(11) == (3, (0, 1))
    assert cute.E(1, 0) == cute.ScaledBasis(1, (1, 0)) and cute.E() == 1
    assert str(cute.ScaledBasis(cute.Ratio(1, 2), 0)) == "1/2@0"
    assert (cute.ScaledBasis(cute.Ratio(1, 2), 0) * 4).value == 2
    offset = cute.local_tile(cute.make_identity_layout((8, 6)), (4, 3), (1, 1))[1]
    assert cute.add_offset((0, 0), offset) == (4, 3)


def test_values_are_immutable_hashable_and_pickle() -> None:
    swizzled = layout("S<3,4,3> o 0 o (8,64):(64,1)")
    for value in (layout("(4,8):(1,4)"), swizzled, swizzled.inner, cute.E(0), cute.Ratio(1, 2)):
        assert pickle.loads(pickle.dumps(value)) == value == copy.deepcopy(value)
        assert hash(value) == hash(copy.copy(value))
        with pytest.raises(AttributeError, match="immutable"):
            value.shape = 1
    assert layout("4:1") != 4 and layout("(4):(1)") != layout("4:1")
    assert [str(mode) for mode in layout("(4,8):(1,4)")] == ["4:1", "8:4"]


def test_large_layouts_are_exact() -> None:
    big = cute.make_layout((1 << 20, 1 << 20, 1 << 10))
    assert big(((1 << 20) - 1, (1 << 20) - 1, (1 << 10) - 1)) == (1 << 50) - 1
    assert cute.size_in_bytes(16, big) == 1 << 51


def modules() -> list[str]:
    return sorted(info.name for info in pkgutil.iter_modules([str(PACKAGE)]))


@pytest.mark.parametrize("name", modules())
def test_a_module_is_documented_small_and_imports_only_the_standard_library(name: str) -> None:
    source = (PACKAGE / f"{name}.py").read_text(encoding="utf-8")
    tree = ast.parse(source)
    assert ast.get_docstring(tree) and source.count("\n") < 600
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            roots = {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            roots = {(node.module or "").split(".")[0]}
        else:
            continue
        assert roots <= set(sys.stdlib_module_names), (name, roots)


@pytest.mark.parametrize("name", modules())
def test_documented_examples_run(name: str) -> None:
    module = importlib.import_module(f"basedsl_cute.algebra.{name}")
    outcome = doctest.testmod(module, globs={**vars(cute), **vars(module)})
    assert outcome.failed == 0


def test_everything_public_is_documented() -> None:
    assert len(cute.__all__) == len(set(cute.__all__)) > 100
    for name in cute.__all__:
        value = getattr(cute, name)
        if callable(value):
            assert value.__doc__, name
