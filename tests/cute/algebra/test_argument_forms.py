"""Every name of CuTe's layout algebra in every form that programs call it in: positional, by
keyword, with `loc=` and `ip=`, which mean nothing here and are taken everywhere.
"""

from __future__ import annotations

import inspect

import pytest

import basedsl_cute as cute
from basedsl_cute import algebra  # noqa: F401

L = cute.make_layout
A = L(((2, 3), 4), stride=((1, 2), 6))
B = L((4, 2, 3), stride=(2, 1, 8))
SW = cute.make_composed_layout(cute.make_swizzle(3, 3, 3), 0, L((8, 64), stride=(64, 1)))
TV = (cute.make_ordered_layout((4, 8), order=(1, 0)), L((2, 2)))

# What is written, and how its value prints.
FORMS = {
    # 3.1 integer tuples and queries
    "cute.size(A)": "24",
    "cute.size(A, [0])": "6",
    "cute.size(A, mode=[0])": "6",
    "cute.size(A, mode=[0, 1])": "3",
    "cute.size((2, (3, 4)), mode=[1])": "12",
    "cute.size(5)": "5",
    "cute.size(SW)": "512",
    "cute.cosize(A)": "24",
    "cute.cosize(A, mode=[0])": "6",
    "cute.cosize(SW)": "512",
    "cute.size_in_bytes(cute.Float16, A)": "48",
    "cute.size_in_bytes(cute.Int4, L(5))": "3",
    "cute.size_in_bytes(cute.Float32, SW)": "2048",
    "cute.size_in_bytes(cute.Float32, 5)": "20",
    "cute.size_in_bytes(cute.Float16, (4, (2, 3)))": "48",
    "cute.rank(A)": "2",
    "cute.rank(A, mode=[0])": "2",
    "cute.rank(7)": "1",
    "cute.rank((1, 2, 3))": "3",
    "cute.front(((3, 4), 5))": "3",
    "cute.front(6)": "6",
    "cute.flatten_to_tuple(((1, 2), 3))": "(1, 2, 3)",
    "cute.unflatten([1, 2, 3], ((0, 0), 0))": "((1, 2), 3)",
    "cute.transform_leaf(lambda a, b: a + b, (1, (2, 3)), (10, (20, 30)))": "(11, (22, 33))",
    "cute.product_like(((2, 3), 4), (1, 1))": "(6, 4)",
    "cute.has_underscore((1, (None, 2)))": "True",
    "cute.has_underscore((1, (3, 2)))": "False",
    "cute.increment_coord((3, 0), (4, 8))": "(0, 1)",
    "cute.find_if((8, (1, 4)), lambda leaf: leaf == 1)": "(1, 0)",
    "cute.find_if((2, 3), pred_fn=lambda leaf: leaf > 2)": "1",
    "cute.find_if((2, 3), lambda leaf: leaf > 3)": "None",
    "cute.find(8, (8, 1, 8))": "0",
    "cute.find(8, (8, 1, 8), start=1)": "2",
    "cute.find(3, 3)": "0",
    "cute.is_major(1, stride=(8, 1))": "True",
    "cute.is_major(0, (8, 1))": "False",
    "cute.leading_dim((4, 8), (8, 1))": "1",
    "cute.leading_dim((1, 8), (1, 1))": "1",
    "cute.leading_dim((1, 1), (1, 1))": "0",
    "cute.leading_dim((4, (1, 8)), stride=(8, (1, 1)))": "(1, 1)",
    "cute.leading_dim((4, 8), (16, 2))": "None",
    "cute.depth(A)": "2",
    "cute.depth(A, mode=[1])": "0",
    "cute.depth(3)": "0",
    "cute.shape(A)": "((2, 3), 4)",
    "cute.shape(A, mode=[0])": "(2, 3)",
    "cute.shape(A, [0, 1])": "3",
    "cute.get((1, (2, 3)), mode=[1, 0])": "2",
    "cute.get(A, mode=[0])": "(2,3):(1,2)",
    "cute.get(A, [1])": "4:6",
    "cute.select((5, 6, 7), mode=[2, 0])": "(7, 5)",
    "cute.select(B, mode=[2, 0])": "(3,4):(8,2)",
    "cute.select(B, [1])": "(2):(1)",
    "cute.group_modes(B, 0, 2)": "((4,2),3):((2,1),8)",
    "cute.group_modes(B, begin=1, end=3)": "(4,(2,3)):(2,(1,8))",
    "cute.group_modes((1, 2, 3), 0, 2)": "((1, 2), 3)",
    "cute.flatten(A)": "(2,3,4):(1,2,6)",
    "cute.flatten((1, (2, (3,))))": "(1, 2, 3)",
    "cute.append((1, 2), 3)": "(1, 2, 3)",
    "cute.append(L(4), L(2, stride=4))": "(4,2):(1,4)",
    "cute.append((), 3)": "(3,)",
    "cute.append((1,), elem=2)": "(1, 2)",
    "cute.prepend((1, 2), 3)": "(3, 1, 2)",
    "cute.prepend(L(4), L(2, stride=4))": "(2,4):(4,1)",
    "cute.append_ones(L(4), up_to_rank=3)": "(4,1,1):(1,0,0)",
    "cute.slice_(A, (None, 2))": "((2,3)):((1,2))",
    "cute.slice_(A, coord=((None, 1), None))": "(2,4):(1,6)",
    "cute.slice_((5, 6, 7), (None, 0, None))": "(5, 7)",
    "cute.dice(A, (None, 2))": "(4):(6)",
    "cute.dice((5, 6, 7), (None, 0, None))": "(6,)",
    "cute.ceil_div(7, 2)": "4",
    "cute.ceil_div((7, 9, 3), (2, 4))": "(4, 3, 3)",
    "cute.ceil_div((7, 9), b=(2, 4))": "(4, 3)",
    "cute.round_up(7, 4)": "8",
    "cute.round_up((7, 9), (4, 4))": "(8, 12)",
    "cute.shape_div(12, 4)": "3",
    "cute.shape_div((6, 2), 3)": "(2, 2)",
    "cute.shape_div((3, 4), 6)": "(1, 2)",
    "cute.product_each(((2, 3), 4))": "(6, 4)",
    "cute.product(((2, 3), 4))": "24",
    "cute.repeat_like(0, (1, (2, 3)))": "(0, (0, 0))",
    "cute.repeat(7, 3)": "(7, 7, 7)",
    "cute.repeat(7, 1)": "7",
    "cute.repeat_as_tuple(7, 1)": "(7,)",
    "cute.elem_less((1, 2), (2, 3))": "True",
    "cute.elem_less((1, 3), (2, 3))": "False",
    "cute.elem_less((0, (1, 2)), (1, (2, 2)))": "False",
    "cute.crd2idx((1, 2), A)": "13",
    "cute.crd2idx((1, 2), (3, 4))": "7",
    "cute.idx2crd(7, (3, 4))": "(1, 2)",
    "cute.is_static(A)": "True",
    "cute.is_static((1, 2))": "True",
    "cute.is_congruent((1, (2, 3)), (4, (5, 6)))": "True",
    "cute.is_congruent((1, (2, 3)), (4, 5))": "False",
    "cute.is_weakly_congruent((1, 2), (4, (5, 6)))": "True",
    "cute.is_weakly_congruent((1, (2, 3)), (4, 5))": "False",
    "cute.assume(8, divby=4)": "8",
    # 3.2 making layouts
    "L((4, 8))": "(4,8):(1,4)",
    "L((4, 8), (8, 1))": "(4,8):(8,1)",
    "L(shape=(4, 8), stride=(8, 1))": "(4,8):(8,1)",
    "L((4, 1, 8))": "(4,1,8):(1,0,4)",
    "L((L(4), L(2, stride=4)))": "(4,2):(1,4)",
    "L(6)": "6:1",
    "cute.make_ordered_layout((4, 8), order=(1, 0))": "(4,8):(8,1)",
    "cute.make_ordered_layout((4, 8, 2), (2, 0, 1))": "(4,8,2):(16,1,8)",
    "cute.make_ordered_layout(((2, 2), 3), order=((2, 0), 1))": "((2,2),3):((6,1),2)",
    "cute.make_identity_layout((3, 4))": "(3,4):(1@0,1@1)",
    "cute.make_layout_tv(*TV)[0]": "(8, 16)",
    "cute.make_layout_tv(thr_layout=TV[0], val_layout=TV[1])[1]": "((8,4),(2,2)):((16,2),(1,8))",
    "SW": "S<3,3,3> o 0 o (8,64):(64,1)",
    "cute.make_composed_layout(inner=cute.make_swizzle(2, 3, 3), offset=0, outer=L(64))":
        "S<2,3,3> o 0 o 64:1",
    "cute.make_composed_layout(L(8, stride=2), 3, L(2))(1)": "8",
    "cute.make_composed_layout(lambda c: c * c, 0, L(5))(4)": "16",
    "cute.make_swizzle(3, 4, 3)": "S<3,4,3>",
    "cute.Swizzle(3, 3, 3)(0b1001000)": "64",
    "cute.recast_layout(16, 32, L((4, 8), stride=(8, 1)))": "(4,16):(16,1)",
    "cute.recast_layout(32, 16, L((8, 4)))": "(4,4):(1,4)",
    "cute.tile_to_shape(SW, (16, 128), order=(0, 1))":
        "S<3,3,3> o 0 o ((8,2),(64,2)):((64,512),(1,1024))",
    "cute.tile_to_shape(L((2, 2)), (4, 4), (1, 0))": "((2,2),(2,2)):((1,8),(2,4))",
    "cute.make_layout_image_mask(L((2, 4)), (1, 2), mode=1)": "170",
    "A(((1, 2), 3))": "23",
    "A[0]": "(2,3):(1,2)",
    "A.shape": "((2, 3), 4)",
    "A.stride": "((1, 2), 6)",
    "(SW.inner, SW.offset, SW.outer)": "(S<3,3,3>, 0, (8,64):(64,1))",
    "(A.is_normal, SW.is_normal)": "(True, False)",
    "(A.max_alignment, SW.max_alignment)": "(24, 8)",
    "A.get_flat_coord(13)": "(1, 2)",
    "A.get_hier_coord(13)": "((1, 0), 2)",
    "A == L(((2, 3), 4))": "True",
    "A == L((6, 4))": "False",
    # 3.3 algebra
    "cute.coalesce(L((2, (1, 6))))": "12:1",
    "cute.coalesce(L((2, (1, 6)), stride=(1, (6, 2))), target_profile=(1, 1))": "(2,6):(1,2)",
    "cute.filter(L((2, 4), stride=(0, 1)))": "4:1",
    "cute.filter_zeros(L((2, 4), stride=(0, 1)))": "(1,4):(0,1)",
    "cute.composition(L((6, 2), stride=(8, 2)), L((4, 3), stride=(3, 1)))":
        "((2,2),3):((24,2),8)",
    "cute.composition(L((10, 2), stride=(16, 4)), L((5, 4), stride=(1, 5)))":
        "(5,(2,2)):(16,(80,4))",
    "cute.composition(L((4, 8)), (2, 4))": "(2,4):(1,4)",
    "cute.composition(L((4, 8)), (L(2), None))": "(2,8):(1,4)",
    "cute.composition(cute.make_swizzle(1, 1, 1), L(8))": "S<1,1,1> o 0 o 8:1",
    "cute.complement(L(4, stride=2), 24)": "(2,3):(1,8)",
    "cute.complement(L(4), cotarget=12)": "3:4",
    "cute.right_inverse(L((4, 8), stride=(8, 1)))": "(8,4):(4,1)",
    "cute.left_inverse(L((4, 8), stride=(8, 1)))": "(8,4):(4,1)",
    "cute.logical_divide(B, L(4, stride=2))": "((2,2),(2,3)):((4,1),(2,8))",
    "cute.logical_divide(B, tiler=L(4, stride=2))": "((2,2),(2,3)):((4,1),(2,8))",
    "cute.zipped_divide(L((9, (4, 8)), stride=(59, (13, 1))), "
    "(L(3, stride=3), L((2, 4), stride=(1, 8))))":
        "((3,(2,4)),(3,(2,2))):((177,(13,2)),(59,(26,1)))",
    "cute.zipped_divide(L((8, 16)), tiler=(4, 8))": "((4,8),(2,2)):((1,8),(4,64))",
    "cute.zipped_divide(L((8, 16, 3)), (4,))": "((4),(2,16,3)):((1),(4,8,128))",
    "cute.tiled_divide(L((8, 16)), (4, 8))": "((4,8),2,2):((1,8),4,64)",
    "cute.flat_divide(L((8, 16)), (4, 8))": "(4,8,2,2):(1,8,4,64)",
    "cute.logical_product(L((2, 2), stride=(4, 1)), L(6))": "((2,2),(2,3)):((4,1),(2,8))",
    "cute.blocked_product(L((2, 5), stride=(5, 1)), L((3, 4), stride=(1, 3)))":
        "((2,3),(5,4)):((5,10),(1,30))",
    "cute.raked_product(L((2, 5), stride=(5, 1)), L((3, 4), stride=(1, 3)))":
        "((3,2),(4,5)):((10,5),(30,1))",
    "cute.zipped_product(L((2, 5), stride=(5, 1)), L((3, 4), stride=(1, 3)))":
        "((2,5),(3,4)):((5,1),(10,30))",
    "cute.tiled_product(block=L((2, 5), stride=(5, 1)), tiler=L((3, 4), stride=(1, 3)))":
        "((2,5),3,4):((5,1),10,30)",
    "cute.flat_product(L((2, 5), stride=(5, 1)), L((3, 4), stride=(1, 3)))":
        "(2,5,3,4):(5,1,10,30)",
    # the rest of the section, on layouts; tensors are below
    "cute.Ratio(6, 4).reduced()": "3/2",
    "(cute.Ratio(6, 4).to(float), cute.Ratio(6, 4).to(int))": "(1.5, 1)",
    "3 * cute.ScaledBasis(2, 1)": "6@1",
    "cute.ScaledBasis(2, 1).is_static()": "True",
    "cute.ScaledBasis(cute.Ratio(1, 2), 1).is_static()": "True",
    "cute.E(1)": "1@1",
    "cute.E([0, 1])": "1@1@0",
    "(cute.ScaledBasis(2, [0, 1]).value, cute.ScaledBasis(2, [0, 1]).mode)": "(2, (0, 1))",
    "L((4, 8), stride=(cute.ScaledBasis(2, 0), cute.E(1)))((2, 3))": "(4, 3)",
}  # fmt: skip


def value_of(text):
    return eval(text, {"cute": cute, "L": L, "A": A, "B": B, "SW": SW, "TV": TV})


@pytest.mark.parametrize("text", FORMS)
def test_a_form_has_its_value(text):
    assert str(value_of(text)) == FORMS[text]


NAMES = sorted({t.split("(")[0].removeprefix("cute.") for t in FORMS if t.startswith("cute.")})


@pytest.mark.parametrize("name", [n for n in NAMES if inspect.isfunction(getattr(cute, n, None))])
def test_loc_and_ip_are_taken_and_mean_nothing(name):
    text = next(t for t in FORMS if t.startswith(f"cute.{name}("))
    open_, end = 1, text.index("(")
    while open_:
        end += 1
        open_ += {"(": 1, ")": -1}.get(text[end], 0)
    spelled = text[:end] + ", loc=None, ip=None" + text[end:]
    assert str(value_of(spelled)) == FORMS[text]


def test_composition_refuses_a_tiler_that_is_no_extent() -> None:
    from basedsl_cute import LayoutError, composition, make_layout

    for wrong in (-1, True, 1.5, "x", (True, 4), (4, -1)):
        with pytest.raises(LayoutError, match=r"no extent|not an integer"):
            composition(make_layout((8, 4)), wrong)


@pytest.mark.parametrize("wrong", [-1, True, 1.5, (4, -1)])
def test_complement_refuses_a_cotarget_that_is_no_extent(wrong) -> None:
    from basedsl_cute import LayoutError, complement, make_layout

    with pytest.raises(LayoutError, match=r"no extent|not an integer"):
        complement(make_layout((8, 4)), wrong)


WHOLE = (-1, True, 1.5, "x", (4, True), (4, 2.5))
REFUSED = {
    "cute.coalesce(A, wrong)": ("x", True, 1.5, (1, "x"), (1.5, 1), L(4)),
    "cute.filter(A, wrong)": ("x", True, 1.5, (1, "x"), L(4)),
    "cute.filter_zeros(A, wrong)": ("x", True, 1.5, ((1, "x"), 1)),
    "cute.coalesce(wrong)": ("x", True, 1.5, (4, "x")),
    "cute.logical_divide(A, wrong)": (0, (3, 0), L(0), (L((2, 0)), 2), *WHOLE),
    "cute.zipped_divide(A, wrong)": (0, (3, 0)),
    "cute.tiled_divide(A, wrong)": (0, (3, 0)),
    "cute.flat_divide(A, wrong)": (0, (3, 0)),
    "cute.local_tile(A, wrong, (0, 0))": ((3, 0), (3, -1), (3, True)),
    "cute.tile_to_shape(L(2), wrong, (0,))": ((-2,), (True,), (2.0,)),
    "cute.tile_to_shape(L((2, 2)), (4, 4), wrong)": ("x", True, (1, "x"), (0, 1.5)),
    "cute.make_ordered_layout(wrong, (0, 1))": ((4, -1), (4, True), (4, 2.5)),
    "algebra.make_layout_left(wrong)": WHOLE,
    "algebra.make_layout_right(wrong)": WHOLE,
    "cute.make_identity_layout(wrong)": WHOLE,
    "cute.recast_layout(wrong, 8, A)": (0, -8, True, 8.0, "8"),
    "cute.recast_layout(8, wrong, A)": (0, -8, True, 8.0, "8"),
    "algebra.upcast(A, wrong)": (0, -1, True, 2.0, "2"),
    "algebra.downcast(A, wrong)": (0, -1, True, 2.0, "2"),
    "cute.make_swizzle(wrong, 4, 3)": (True, 1.5, "2", -1),
    "cute.make_swizzle(2, wrong, 3)": (True, 1.5, "2", -1),
    "cute.make_composed_layout(cute.make_swizzle(2, 4, 3), wrong, A)": ("x", True, 1.5, None),
    "cute.E(wrong)": (-1, True, "x", 1.5, (0, -1)),
    "cute.size_in_bytes(cute.Float32, wrong)": WHOLE,
    "cute.size_in_bytes(wrong, A)": (0, -8),
    "cute.crd2idx(wrong, (4, 8))": ("x", 1.5),
    "cute.idx2crd(wrong, (4, 8))": ("x", 1.5),
    "cute.shape_div(8, wrong)": (1.5, 2.0, (4, 2.0)),
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_shape_profile_or_count_is_refused(text):
    for wrong in REFUSED[text]:
        with pytest.raises(cute.LayoutError):
            print(text, wrong, eval(text, {**globals(), "wrong": wrong}))
