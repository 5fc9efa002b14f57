"""Laws of the layout algebra, checked against brute-force evaluation on random layouts."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from basedsl_cute import algebra as cute
from basedsl_cute.algebra import Layout, LayoutError

law = settings(
    max_examples=100,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.filter_too_much, HealthCheck.too_slow],
)

extents = st.sampled_from([1, 1, 2, 2, 3, 4, 4, 5, 6, 8])
strides = st.sampled_from([0, 1, 1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48])


def nested(leaf: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    inner = st.one_of(leaf, st.lists(leaf, min_size=1, max_size=3).map(tuple))
    return st.one_of(leaf, st.lists(inner, min_size=1, max_size=3).map(tuple))


shapes = nested(extents).filter(lambda s: cute.product(s) <= 400)


def leaves(x: Any) -> list[Any]:
    return [leaf for e in x for leaf in leaves(e)] if isinstance(x, tuple) else [x]


def rebuild(values: list[Any], like: Any) -> Any:
    remaining = iter(values)

    def go(x: Any) -> Any:
        return tuple(go(e) for e in x) if isinstance(x, tuple) else next(remaining)

    return go(like)


@st.composite
def layouts(draw: Any, shape: st.SearchStrategy[Any] = shapes) -> Layout:
    s = draw(shape)
    return cute.make_layout(s, rebuild([draw(strides) for _ in leaves(s)], s))


@st.composite
def compact_layouts(draw: Any) -> Layout:
    s = draw(shapes)
    order = rebuild(list(draw(st.permutations(range(len(leaves(s)))))), s)
    return cute.make_ordered_layout(s, order)


any_layouts = st.one_of(layouts(), compact_layouts())


def coordinates(shape: Any) -> list[Any]:
    """All coordinates in colexicographic order, built without the algebra."""
    if not isinstance(shape, tuple):
        return list(range(shape))
    return [tuple(reversed(c)) for c in itertools.product(*map(coordinates, reversed(shape)))]


def dot(coord: Any, stride: Any) -> int:
    if isinstance(coord, tuple):
        return sum(dot(c, d) for c, d in zip(coord, stride, strict=True))
    return coord * stride


def image(layout: Layout) -> list[int]:
    """The values of a layout in linear order, built without the algebra."""
    return [dot(c, layout.stride) for c in coordinates(layout.shape)]


def injective(layout: Layout) -> bool:
    values = image(layout)
    return len(set(values)) == len(values)


@law
@given(any_layouts)
def test_evaluation_is_the_inner_product_with_the_coordinate(layout: Layout) -> None:
    values = image(layout)
    assert [layout(i) for i in range(cute.size(layout))] == values
    assert [layout(c) for c in coordinates(layout.shape)] == values
    assert cute.cosize(layout) == max(values) + 1


@law
@given(shapes)
def test_coordinates_and_indices_are_inverse(shape: Any) -> None:
    all_coordinates = coordinates(shape)
    assert [cute.idx2crd(i, shape) for i in range(cute.size(shape))] == all_coordinates
    assert [cute.crd2idx(c, shape) for c in all_coordinates] == list(range(cute.size(shape)))
    following = [*all_coordinates[1:], all_coordinates[0]]
    if isinstance(shape, tuple):
        assert [cute.increment_coord(c, shape) for c in all_coordinates] == following


@law
@given(any_layouts)
def test_coalesce_and_filter_keep_the_function(layout: Layout) -> None:
    flat = cute.coalesce(layout)
    assert image(flat) == image(layout)
    assert cute.depth(flat) <= 1 and cute.coalesce(flat) == flat
    by_mode = cute.coalesce(layout, (1,) * cute.rank(layout))
    assert image(by_mode) == image(layout)
    if isinstance(layout.shape, tuple):
        assert cute.compatible(cute.product_each(layout.shape), by_mode.shape)
    filtered = cute.filter(layout)
    assert sorted(set(image(filtered))) == sorted(set(image(layout)))
    assert all(d != 0 for d in leaves(filtered.stride)) or filtered == Layout(1, 0)


@law
@given(any_layouts, layouts(shapes.filter(lambda s: cute.product(s) <= 60)))
def test_composition_is_functional_composition_or_an_error(a: Layout, b: Layout) -> None:
    try:
        result = cute.composition(a, b)
    except LayoutError as error:
        assert str(a) in str(error) and str(b) in str(error)
        return
    assert cute.compatible(b.shape, result.shape)
    assert image(result) == [a(i) for i in image(b)]


@law
@given(any_layouts, st.integers(1, 60), st.integers(0, 60))
def test_composition_with_one_mode_fails_only_if_no_layout_exists(
    a: Layout, extent: int, stride: int
) -> None:
    values = [a(stride * i) for i in range(extent)]
    try:
        result = cute.composition(a, Layout(extent, stride))
    except LayoutError:
        steps = {y - x for x, y in itertools.pairwise(values)}
        assert len(steps) > 1 or extent == 2 or not linear_by_divisibility(a, stride)
        return
    assert image(result) == values


def linear_by_divisibility(a: Layout, stride: int) -> bool:
    """True if every prefix product of the coalesced extents divides or is divided by the stride."""
    flat = cute.coalesce(a)
    prefixes = itertools.accumulate(leaves(flat.shape)[:-1], lambda x, y: x * y)
    return all(stride % p == 0 or p % stride == 0 for p in prefixes)


@law
@given(any_layouts, st.data())
def test_composition_with_a_tiler_works_mode_by_mode(a: Layout, data: Any) -> None:
    assume(isinstance(a.shape, tuple))
    small = layouts(shapes.filter(lambda s: cute.product(s) <= 12))
    count = data.draw(st.integers(1, cute.rank(a)))
    tiler = tuple(data.draw(st.one_of(st.none(), extents, small)) for _ in range(count))
    try:
        result = cute.composition(a, tiler)
    except LayoutError:
        return
    assert cute.rank(result) == count
    for i, entry in enumerate(tiler):
        if entry is None:
            assert result[i] == a[i]
        else:
            indices = range(entry) if isinstance(entry, int) else image(entry)
            assert image(result[i]) == [a[i](j) for j in indices]


@law
@given(any_layouts, st.integers(1, 500))
def test_complement_fills_the_rest(layout: Layout, cotarget: int) -> None:
    try:
        rest = cute.complement(layout, cotarget)
    except LayoutError as error:
        ends = [d * s for d, s in by_stride(layout)]
        starts = [d for d, _ in by_stride(layout)]
        assert "overlap" in str(error)
        assert any(d < end for end, d in zip(ends, starts[1:], strict=False))
        return
    values = sorted(set(image(layout)))
    others = image(rest)
    assert others == sorted(set(others))
    sums = [x + y for x in values for y in others]
    assert len(set(sums)) == len(sums)
    ends = [1, *(s * d for d, s in by_stride(layout))]
    if all(d % end == 0 for (d, _), end in zip(by_stride(layout), ends, strict=False)):
        assert set(range(cotarget)) <= set(sums)


def by_stride(layout: Layout) -> list[tuple[int, int]]:
    """(stride, extent) of the modes that reach more than one index, sorted."""
    modes = zip(leaves(layout.stride), leaves(layout.shape), strict=True)
    return sorted((d, s) for d, s in modes if s > 1 and d > 0)


@law
@given(any_layouts)
def test_right_inverse_undoes_from_the_right(layout: Layout) -> None:
    inverse = cute.right_inverse(layout)
    assert [layout(i) for i in image(inverse)] == list(range(cute.size(inverse)))
    if sorted(image(layout)) == list(range(cute.size(layout))):
        assert cute.size(inverse) == cute.size(layout)


@law
@given(any_layouts)
def test_left_inverse_undoes_from_the_left(layout: Layout) -> None:
    try:
        inverse = cute.left_inverse(layout)
    except LayoutError:
        modes = by_stride(layout)
        pairs = list(itertools.pairwise(modes))
        assert any(e % d or e < d * s for (d, s), (e, _) in pairs)
        return
    values = image(layout)
    if injective(layout):
        assert [inverse(v) for v in values] == list(range(len(values)))
    assert [layout(inverse(v)) for v in values] == values


@law
@given(any_layouts)
def test_nullspace_is_what_maps_to_zero_by_stride(layout: Layout) -> None:
    kernel = cute.nullspace(layout)
    assert all(layout(i) == 0 for i in image(kernel))
    assert cute.size(kernel) * cute.size(cute.filter_zeros(layout)) == cute.size(layout)


@law
@given(compact_layouts(), layouts(shapes.filter(lambda s: cute.product(s) <= 16)))
def test_divides_partition_the_layout(layout: Layout, tiler: Layout) -> None:
    try:
        divided = cute.logical_divide(layout, tiler)
    except LayoutError:
        return
    assert image(divided[0]) == [layout(i) for i in image(tiler)]
    if injective(tiler) and cute.size(divided) == cute.size(layout):
        assert sorted(image(divided)) == sorted(image(layout))
    zipped = cute.zipped_divide(layout, tiler)
    assert zipped == divided
    assert image(cute.tiled_divide(layout, tiler)) == image(divided)
    assert image(cute.flat_divide(layout, tiler)) == image(divided)


@law
@given(st.data())
def test_divides_by_mode_give_tiles_at_their_coordinates(data: Any) -> None:
    tile = tuple(data.draw(st.lists(extents, min_size=1, max_size=3)))
    count = tuple(data.draw(st.lists(extents, min_size=len(tile), max_size=len(tile))))
    shape = tuple(t * c for t, c in zip(tile, count, strict=True))
    assume(math.prod(shape) <= 600)
    layout = data.draw(layouts(st.just(shape)))
    zipped = cute.zipped_divide(layout, tile)
    where = tuple(data.draw(st.integers(0, c - 1)) for c in count)
    part, offset = cute.local_tile(layout, tile, where)
    for inner in coordinates(tile):
        outer = tuple(w * t + i for w, t, i in zip(where, tile, inner, strict=True))
        assert zipped((inner, where)) == layout(outer) == offset + part(inner)
    threads = cute.make_layout(tile)
    for index in range(cute.size(threads)):
        part, offset = cute.local_partition(layout, threads, index)
        mine = cute.idx2crd(index, tile)
        for rest in coordinates(count):
            outer = tuple(r * t + m for r, t, m in zip(rest, tile, mine, strict=True))
            assert layout(outer) == offset + part(rest)


@law
@given(
    compact_layouts().filter(lambda x: cute.size(x) <= 40),
    compact_layouts().filter(lambda x: cute.size(x) <= 20),
)
def test_products_repeat_the_block(block: Layout, tiler: Layout) -> None:
    result = cute.logical_product(block, tiler)
    assert result[0] == block and cute.size(result[1]) == cute.size(tiler)
    values = image(result)
    assert len(set(values)) == len(values)
    steps = [result[1](i) for i in range(cute.size(tiler))]
    assert values == [b + s for s in steps for b in image(block)]
    assert [s // cute.size(block) for s in steps] == image(tiler)
    for product in (cute.zipped_product, cute.tiled_product, cute.flat_product):
        assert sorted(image(product(block, tiler))) == sorted(values)


@law
@given(compact_layouts(), compact_layouts())
def test_blocked_and_raked_products_hold_the_same_elements(block: Layout, tiler: Layout) -> None:
    assume(cute.size(block) * cute.size(tiler) <= 600)
    blocked, raked = cute.blocked_product(block, tiler), cute.raked_product(block, tiler)
    count = cute.size(block) * cute.size(tiler)
    assert sorted(image(blocked)) == sorted(image(raked)) == list(range(count))
    rank = max(cute.rank(block), cute.rank(tiler))
    assert cute.rank(blocked) == cute.rank(raked) == rank


@law
@given(any_layouts)
def test_printed_layouts_read_back(layout: Layout) -> None:
    assert cute.parse_layout(str(layout)) == layout
    assert Layout.parse(str(layout)) == layout
    assert hash(cute.parse_layout(str(layout))) == hash(layout)
    identity = cute.make_identity_layout(layout.shape)
    assert cute.parse_layout(str(identity)) == identity
    composed = cute.make_composed_layout(cute.Swizzle(2, 1, 3), 5, layout)
    assert cute.parse_layout(str(composed)) == composed


@law
@given(any_layouts.filter(lambda x: isinstance(x.shape, tuple)), st.data())
def test_slicing_fixes_coordinates(layout: Layout, data: Any) -> None:
    where = tuple(data.draw(st.integers(0, cute.size(s) - 1)) for s in layout.shape)
    keep = tuple(data.draw(st.booleans()) for _ in layout.shape)
    coord = tuple(None if k else c for k, c in zip(keep, where, strict=True))
    part, offset = cute.slice_and_offset(coord, layout)
    kept = [s for s, k in zip(layout.shape, keep, strict=True) if k]
    for inner in coordinates(tuple(kept)):
        remaining = iter(inner)
        full = tuple(next(remaining) if k else c for k, c in zip(keep, where, strict=True))
        assert layout(full) == offset + part(inner)
    swizzled = cute.make_composed_layout(cute.Swizzle(2, 1, 3), 3, layout)
    part, offset = cute.slice_and_offset(coord, swizzled)
    assert offset == 0
    for inner in coordinates(tuple(kept)):
        remaining = iter(inner)
        full = tuple(next(remaining) if k else c for k, c in zip(keep, where, strict=True))
        assert swizzled(full) == part(inner)


@law
@given(compact_layouts(), st.sampled_from([1, 2, 3]))
def test_hierarchical_coordinates_invert_an_index(layout: Layout, padding: int) -> None:
    spread = Layout(
        layout.shape, rebuild([d * padding for d in leaves(layout.stride)], layout.shape)
    )
    outer = cute.make_layout((spread, Layout(3, cute.cosize(spread) + 1)))
    for index in set(image(outer)):
        assert outer(outer.get_hier_coord(index)) == index
        assert outer(outer.get_flat_coord(index)) == index
        assert outer(outer.get_1d_coord(index)) == index


@law
@given(st.integers(0, 3), st.integers(0, 3), st.integers(-4, 4), st.integers(0, 5000))
def test_swizzles_are_involutions(bits: int, base: int, shift: int, x: int) -> None:
    assume(abs(shift) >= bits)
    swizzle = cute.make_swizzle(bits, base, shift)
    assert swizzle(swizzle(x)) == x
    assert swizzle(x + swizzle.period) == swizzle(x) + swizzle.period
    assert cute.parse(str(swizzle)) == swizzle
    for n in (1, 2, 4, 8):
        assert cute.upcast(cute.downcast(swizzle, n), n) == swizzle
        if n <= swizzle.max_alignment:
            assert cute.upcast(swizzle, n)(x // n) == swizzle(x) // n


@law
@given(any_layouts, st.sampled_from([2, 3, 4, 8]))
def test_recasting_keeps_the_memory(layout: Layout, n: int) -> None:
    try:
        wide = cute.upcast(layout, n)
    except LayoutError:
        pass
    else:
        assert {v // n for v in image(layout)} == set(image(wide))
    try:
        narrow = cute.downcast(layout, n)
    except LayoutError:
        assert 1 not in leaves(layout.stride)
        return
    once = [d for d in leaves(layout.stride) if d == 1]
    if len(once) == 1:
        assert set(image(narrow)) == {v * n + k for v in image(layout) for k in range(n)}
        assert cute.upcast(narrow, n).shape == layout.shape


@law
@given(any_layouts)
def test_max_alignment_is_the_largest_upcast(layout: Layout) -> None:
    widest = cute.max_alignment(layout)
    assert widest >= 1
    flat = cute.coalesce(layout)
    cute.upcast(flat, widest)
    values = set(image(layout))
    assert all(v - v % widest + k in values for v in values for k in range(widest))


@law
@given(any_layouts, any_layouts)
def test_common_vectors_correspond(a: Layout, b: Layout) -> None:
    count = cute.max_common_vector(a, b)
    common = cute.max_common_layout(a, b)
    assert cute.size(common) == count
    assert [a(i) for i in image(common)] == list(range(count)) == [b(i) for i in image(common)]


@law
@given(st.lists(extents, min_size=1, max_size=4).map(tuple), st.integers(1, 64))
def test_distributing_over_a_domain(shape: tuple[int, ...], n: int) -> None:
    result = cute.domain_distribute(shape, n)
    values = image(result)
    assert n % cute.size(result) == 0 and values == sorted(set(values))
    whole = cute.make_layout(shape)
    divided = cute.zipped_divide(whole, result)
    assert sorted(image(divided)) == list(range(cute.size(shape)))


@law
@given(compact_layouts().filter(lambda x: isinstance(x.shape, tuple)), st.data())
def test_image_masks_hold_the_reachable_indices(layout: Layout, data: Any) -> None:
    where = tuple(data.draw(st.integers(0, cute.size(s) - 1)) for s in layout.shape)
    mode = data.draw(st.integers(0, cute.rank(layout) - 1))
    reached = {
        layout((*where[:mode], i, *where[mode + 1 :])) for i in range(cute.size(layout, mode))
    }
    mask = cute.make_layout_image_mask(layout, where, mode)
    assert mask == sum(1 << index for index in reached)


@pytest.mark.parametrize("thr", ["(4,8):(8,1)", "(16,2):(1,16)", "((2,4),4):((1,8),2)"])
@pytest.mark.parametrize("val", ["(2,2):(2,1)", "(1,8):(0,1)", "4:1"])
def test_a_thread_value_layout_covers_its_tile_once(thr: str, val: str) -> None:
    threads, values = cute.parse_layout(thr), cute.parse_layout(val)
    tiler, layout_tv = cute.make_layout_tv(threads, values)
    assert sorted(image(layout_tv)) == list(range(cute.size(tiler)))
    assert cute.size(layout_tv, 0) == cute.size(threads)
