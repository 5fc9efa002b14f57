"""Dynamic integers: folding, divisibility, and agreement with the static algebra."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from basedsl_cute import algebra as cute
from basedsl_cute.algebra import Dyn, Layout, LayoutError
from basedsl_cute.algebra import dynamic as dyn

law = settings(max_examples=100, deadline=None, derandomize=True, database=None)


class Traced:
    """The least a dynamic integer may be: operators only, no ``min_with``, no divisibility."""

    def __init__(self, value: int):
        self.value = value

    def __add__(self, other: Any) -> Traced:
        return Traced(self.value + getattr(other, "value", other))

    def __sub__(self, other: Any) -> Traced:
        return Traced(self.value - getattr(other, "value", other))

    def __mul__(self, other: Any) -> Traced:
        return Traced(self.value * getattr(other, "value", other))

    def __floordiv__(self, other: Any) -> Traced:
        return Traced(self.value // getattr(other, "value", other))

    def __mod__(self, other: Any) -> Traced:
        return Traced(self.value % getattr(other, "value", other))

    def __lt__(self, other: Any) -> Traced:
        return Traced(int(self.value < getattr(other, "value", other)))

    def __rsub__(self, other: int) -> Traced:
        return Traced(other - self.value)

    def __rfloordiv__(self, other: int) -> Traced:
        return Traced(other // self.value)

    def __rmod__(self, other: int) -> Traced:
        return Traced(other % self.value)

    __radd__, __rmul__, __rlt__ = __add__, __mul__, __lt__


def value_of(x: Any, values: dict[str, int]) -> Any:
    if isinstance(x, Traced):
        return x.value
    if isinstance(x, tuple):
        return tuple(value_of(e, values) for e in x)
    if isinstance(x, Layout):
        return Layout(value_of(x.shape, values), value_of(x.stride, values))
    return cute.evaluate(x, values)


@st.composite
def dynamic_layouts(draw: Any) -> tuple[Layout, Layout, dict[str, int]]:
    """A layout with some dynamic leaves, the same one static, and the values of the leaves.

    Powers of two, so that every composition is admissible whether or not modes have merged.
    """
    extents = draw(st.lists(st.sampled_from([1, 2, 2, 4, 8]), min_size=1, max_size=3))
    strides = draw(
        st.lists(st.sampled_from([0, 1, 2, 4, 8, 32, 64]), min_size=len(extents), max_size=3)
    )[: len(extents)]
    values: dict[str, int] = {}
    symbolic = draw(st.booleans())  # two families of dynamic integers do not mix

    def leaf(value: int) -> Any:
        if draw(st.booleans()) or value == 0:
            return value
        if symbolic:
            name = f"n{len(values)}"
            values[name] = value
            divisors = [d for d in range(1, value + 1) if value % d == 0]
            return Dyn(name, draw(st.sampled_from(divisors)))
        return Traced(value)

    shape = tuple(leaf(e) for e in extents)
    stride = tuple(leaf(d) for d in strides)
    return Layout(shape, stride), Layout(tuple(extents), tuple(strides)), values


def points(layout: Layout) -> list[int]:
    return [layout(i) for i in range(cute.size(layout))]


def same_function(got: Layout, expected: Layout, operand: Layout) -> None:
    assert points(got) == points(expected)


def same_tile(got: Layout, expected: Layout, operand: Layout) -> None:
    """Extents 1 that are not known to be 1 may change the order of the tiles, nothing else."""
    assert points(got[0]) == points(expected[0])
    if cute.size(got) == cute.size(expected):
        assert sorted(points(got)) == sorted(points(expected))


def also_a_complement(got: Layout, expected: Layout, operand: Layout) -> None:
    sums = [x + y for x in set(points(operand)) for y in points(got)]
    assert len(sums) == len(set(sums)) and points(got) == sorted(points(got))
    assert cute.size(got) >= cute.size(expected)


OPERATIONS = {
    "coalesce": (cute.coalesce, same_function),
    "filter": (cute.filter, same_function),
    "compose 4:1": (lambda x: cute.composition(x, Layout(4, 1)), same_function),
    "compose (2,2)": (lambda x: cute.composition(x, Layout((2, 2), (2, 4))), same_function),
    "divide 2": (lambda x: cute.logical_divide(x, 2), same_tile),
    "divide 4:2": (lambda x: cute.logical_divide(x, Layout(4, 2)), same_tile),
    "zipped divide (2,)": (lambda x: cute.zipped_divide(x, (2,)), same_tile),
    "tile (4,)": (lambda x: cute.local_tile(x, (4,), (None,))[0], same_tile),
    "product": (lambda x: cute.logical_product(x, Layout(3, 2)), same_tile),
    "complement": (lambda x: cute.complement(x, 96), also_a_complement),
    "make_layout": (lambda x: cute.make_layout(x.shape), same_function),
    "make_layout_right": (lambda x: cute.make_layout_right(x.shape), same_function),
    "slice": (lambda x: x((None,) * len(x)), same_function),
}


@pytest.mark.parametrize("name", sorted(OPERATIONS))
def test_a_dynamic_operation_evaluates_to_the_static_one(name: str) -> None:
    operation, agree = OPERATIONS[name]
    decided = 0

    @law
    @given(dynamic_layouts())
    def compare(example: tuple[Layout, Layout, dict[str, int]]) -> None:
        nonlocal decided
        layout, static, values = example
        try:
            expected = operation(static)
        except LayoutError:
            return
        try:
            result = operation(layout)
        except LayoutError as error:
            assert name in ("complement", "product") and "dynamic strides" in str(error)
            return
        decided += 1
        agree(value_of(result, values), expected, static)

    compare()
    assert decided > 20


@law
@given(dynamic_layouts(), st.integers(0, 40))
def test_dynamic_indices_give_dynamic_offsets(
    example: tuple[Layout, Layout, dict[str, int]], index: int
) -> None:
    layout, static, values = example
    values["i"] = index
    traced = any(isinstance(leaf, Traced) for leaf in (*layout.shape, *layout.stride))
    i = Traced(index) if traced else Dyn("i")
    assert value_of(layout(i), values) == static(index)
    assert value_of(layout(index), values) == static(index)
    assert value_of(cute.size(layout), values) == cute.size(static)
    assert value_of(cute.cosize(layout), values) == cute.cosize(static)


@law
@given(
    st.integers(1, 400),
    st.integers(1, 64),
    st.sampled_from(["mul", "add", "sub", "floordiv", "mod", "ceil_div", "min_"]),
    st.data(),
)
def test_leaf_operations_compute_and_claim_only_true_divisibility(
    a: int, b: int, name: str, data: Any
) -> None:
    def leaf(value: int, symbol: str) -> Any:
        divisors = [d for d in range(1, value + 1) if value % d == 0]
        kind = data.draw(st.sampled_from(["static", "symbol", "traced"]))
        if kind == "static":
            return value
        return Dyn(symbol, data.draw(st.sampled_from(divisors))) if kind == "symbol" else None

    x, y = leaf(a, "a"), leaf(b, "b")
    x, y = Traced(a) if x is None else x, Traced(b) if y is None else y
    if isinstance(x, Traced) != isinstance(y, Traced) and Dyn in (type(x), type(y)):
        return  # two families of dynamic integers do not mix
    operation = getattr(dyn, name)
    expected = operation(a, b)
    result = operation(x, y)
    values = {"a": a, "b": b}
    assert value_of(result, values) == expected
    claimed = dyn.divisibility(result)
    assert expected == 0 or (claimed and expected % claimed == 0)


def test_what_needs_no_run_time_folds() -> None:
    n = Dyn("n", divby=4)
    for folded in (n * 1, 1 * n, n + 0, 0 + n, n - 0, n // 1, dyn.mul(n, 1), dyn.add(0, n)):
        assert folded is n
    for zero in (n * 0, 0 * n, n % 1, n % 4, n % 2, dyn.mul(0, n), dyn.mod(n, 4)):
        assert zero == 0 and isinstance(zero, int)
    assert dyn.min_(n, 1) == 1 and dyn.ceil_div(n, 1) is n


@pytest.mark.parametrize(
    ("expression", "divby"),
    [
        (lambda n: n, 16),
        (lambda n: n * 3, 48),
        (lambda n: n * 3 + 8, 8),
        (lambda n: n // 4, 4),
        (lambda n: n // 5, 1),
        (lambda n: n % 24, 8),
        (lambda n: n - 4, 4),
        (lambda n: n << 1, 32),
        (lambda n: n.min_with(24), 8),
        (lambda n: dyn.ceil_div(n, 8), 2),
    ],
)
def test_divisibility_is_carried(expression: Any, divby: int) -> None:
    result = expression(Dyn("n", divby=16))
    assert dyn.divisibility(result) == divby
    assert str(result) == ("?" if divby == 1 else f"?{{div={divby}}}")


def test_layouts_print_and_carry_divisibility() -> None:
    m, n = cute.sym_int("m", divby=16), cute.sym_int("n")
    layout = cute.make_layout((m, n), (n, 1))
    assert str(layout) == "(?{div=16},?):(?,1)"
    assert str(cute.make_layout((m, 8))) == "(?{div=16},8):(1,?{div=16})"
    assert str(cute.zipped_divide(cute.make_layout((m, 8)), (8, 4))) == (
        "((8,4),(?{div=2},2)):((1,?{div=16}),(8,?{div=64}))"
    )
    assert cute.is_static(layout) is False and layout.is_static is False
    assert cute.max_alignment(cute.make_layout((8, n), (1, m))) == 8
    assert cute.max_alignment(cute.make_layout((8, n), (1, n))) == 1
    wide = cute.make_layout((m, n), (1, m))
    assert cute.max_common_vector(wide, cute.make_layout((m, n))) == 16


def test_structure_does_not_depend_on_dynamic_values() -> None:
    static = cute.composition(Layout((10, 2), (16, 4)), Layout((5, 4), (1, 5)))
    assert str(static) == "(5,(2,2)):(16,(80,4))"
    n = Dyn("n")
    dynamic = cute.composition(Layout((n, 2), (16, 4)), Layout((5, 4), (1, 5)))
    assert cute.is_congruent(dynamic.shape, ((1, 1), (1, 1)))
    assert points(cute.evaluate(dynamic, {"n": 10})) == points(static)


def test_equality_is_structural_and_never_asks_a_traced_value() -> None:
    n = Dyn("n")
    assert Layout((n * 2, 4), (1, 2)) == Layout((Dyn("n") * 2, 4), (1, 2))
    assert Layout((n, 4), (1, 2)) != Layout((Dyn("k"), 4), (1, 2))
    assert hash(Layout(n, 1)) == hash(Layout(Dyn("n"), 1))
    traced = Traced(4)
    assert Layout(traced, 1) == Layout(traced, 1) != Layout(Traced(4), 1)
    assert str(Layout(traced, 1)) == "?:1"
    with pytest.raises(TypeError, match="not known while tracing"):
        bool(n)


def test_promises_are_checked_on_evaluation() -> None:
    with pytest.raises(ValueError, match="not a multiple of 16 as promised"):
        Dyn("n", divby=16).evaluate({"n": 24})
    with pytest.raises(ValueError, match="divby must be positive"):
        Dyn("n", divby=0)
    assert Dyn("n", 4).with_divby(6).divby == math.lcm(4, 6)
    assert (Dyn("n") * 4).with_divby(8).evaluate({"n": 2}) == 8


def test_elem_less_joins_dynamic_comparisons() -> None:
    n = Dyn("n")
    assert cute.elem_less((3, 9), (n, 8)) is False
    assert cute.elem_less((3, 7), (4, 8)) is True
    joined = cute.elem_less((3, n), (n, 8))
    assert [joined.evaluate({"n": v}) for v in (2, 3, 5, 8)] == [0, 0, 1, 0]


def test_swizzles_of_dynamic_indices() -> None:
    swizzle = cute.Swizzle(3, 3, 3)
    n = Dyn("n", divby=8)
    result = swizzle(n)
    assert result.divby == 8
    for value in range(0, 1024, 8):
        assert result.evaluate({"n": value}) == swizzle(value)
    aligned = Dyn("k", divby=512)
    assert swizzle(aligned) is aligned
    left = cute.Swizzle(2, 1, -3)
    for value in range(256):
        assert left(Dyn("n")).evaluate({"n": value}) == left(value)


def test_what_counts_as_a_dynamic_integer() -> None:
    assert cute.is_dynamic_int(Dyn("n")) and cute.is_dynamic_int(Traced(3))
    for other in (3, True, 2.5, Fraction(1, 2), "n", (4,), [4], None, cute.E(0), Layout(4, 1)):
        assert not cute.is_dynamic_int(other)
    with pytest.raises(LayoutError, match="not an integer"):
        cute.make_layout((Fraction(1, 2), 4))


def test_masks_of_dynamic_coordinates() -> None:
    layout, row = cute.make_layout((4, 2)), Dyn("row")
    mask = cute.make_layout_image_mask(layout, (row, 0), mode=1)
    assert [mask.evaluate({"row": i}) for i in range(4)] == [
        cute.make_layout_image_mask(layout, (i, 0), mode=1) for i in range(4)
    ]


def test_dynamic_thread_indices_partition() -> None:
    mma = cute.make_mma_tiling(cute.mma_atom("SM80_16x8x16_F32F16F16F32_TN"), (2, 2, 1))
    tensor = cute.make_layout((64, 32), (32, 1))
    t = Dyn("t")
    part, offset = mma.partition("C", tensor, t)
    assert part.is_static
    for thread in range(mma.size):
        expected = mma.partition("C", tensor, thread)
        assert (part, offset.evaluate({"t": thread})) == expected
