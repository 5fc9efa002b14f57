"""Layouts: a shape and a stride of the same profile, that is, a function on coordinates.

Here are the class and its constructors. Operations on layouts live in `modes` (structure),
`compose`, `inverse`, `division` and `products`; swizzled layouts in `composed`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import basis, coordinates, dynamic
from .basis import ScaledBasis
from .coordinates import (
    compact_col_major,
    compact_order,
    compact_row_major,
    coordinate_to_index,
    has_none,
    idx2crd,
    slice_tuple,
)
from .errors import LayoutError
from .frozen import Frozen
from .ignored_location import takes_location
from .int_tuple import (
    IntTuple,
    flatten_to_tuple,
    is_congruent,
    is_static,
    leaves,
    normalize,
    product,
    transform_leaf,
    tuple_get,
    tuple_rank,
    wrap,
    zeros_to_ones,
)

_is_congruent = is_congruent.__wrapped__


class Layout(Frozen):
    """An immutable function from coordinates to indices, ``shape:stride``.

    Calling it with a coordinate (int, tuple, or several arguments) gives the index; with ``None``
    in the coordinate it gives the sub-layout of those modes. ``layout[i]`` is mode ``i``. ``==`` is
    equality of shape and stride: dynamic leaves are equal if they are the same expression.

    >>> layout = Layout((4, 8), (1, 4))
    >>> print(layout, layout((3, 2)), layout(11), layout(None, 2))
    (4,8):(1,4) 11 11 (4):(1)
    """

    __slots__ = ("_hash", "shape", "stride")

    shape: IntTuple
    stride: IntTuple
    _hash: int | None
    if TYPE_CHECKING:  # `late_methods` has these two

        @staticmethod
        def parse(source: str) -> Any: ...
        @property
        def max_alignment(self) -> int: ...

    def __init__(self, shape: IntTuple, stride: IntTuple):
        if not _is_congruent(shape, stride):
            raise LayoutError(
                f"shape {text(shape)} and stride {text(stride)} differ in profile",
                hint="give one stride for each extent, nested alike: (4, 8) and (8, 1)",
            )
        put = object.__setattr__
        put(self, "shape", shape)
        put(self, "stride", stride)
        put(self, "_hash", None)

    def __reduce__(self) -> Any:
        return (Layout, (self.shape, self.stride))

    @property
    def is_normal(self) -> bool:
        """True: the layout is a shape and a stride, nothing is composed on top of it."""
        return True

    @property
    def is_static(self) -> bool:
        """True if every leaf is known while tracing."""
        return is_static(self.shape) and is_static(self.stride)

    def __call__(self, *coord: Any, loc: Any = None, ip: Any = None) -> Any:
        c = coord[0] if len(coord) == 1 else coord
        if has_none(c):
            return Layout(slice_tuple(c, self.shape), slice_tuple(c, self.stride))
        return coordinate_to_index(c, self.shape, self.stride)

    def __getitem__(self, mode: int | tuple[int, ...]) -> Layout:
        path = mode if isinstance(mode, tuple) else (mode,)
        if path and not -tuple_rank(self.shape) <= path[0] < tuple_rank(self.shape):
            known = f"{self}, which has {tuple_rank(self.shape)}"
            raise IndexError(f"mode {path[0]} of {known}; layout(i) is an offset")
        return Layout(tuple_get(self.shape, path), tuple_get(self.stride, path))

    def __len__(self) -> int:
        return tuple_rank(self.shape)

    @takes_location
    def get_hier_coord(self, index: Any) -> Any:
        """Return the coordinate, in the layout's own profile, of a linear index into its codomain.

        For a layout whose modes do not overlap, ``layout(get_hier_coord(i)) == i`` for every ``i``
        of its image. A mode of stride 0 gets coordinate 0.
        """
        if not is_static(self) or any(isinstance(d, ScaledBasis) for d in leaves(self.stride)):
            return idx2crd(index, self.shape, self.stride)
        modes = zip(flatten_to_tuple(self.shape), flatten_to_tuple(self.stride), strict=True)
        descending = sorted((d for s, d in modes if s > 1), reverse=True)

        def digit(extent: int, stride: int) -> Any:
            if extent == 0:
                raise LayoutError(f"index {index} in {self}: it is empty")
            if extent == 1 or stride == 0:
                return 0
            below = index
            for larger in descending:
                if larger > stride and larger % (extent * stride):
                    below = dynamic.mod(below, larger)
            return dynamic.mod(dynamic.floordiv(below, stride), extent)

        return transform_leaf(digit, self.shape, self.stride)

    @takes_location
    def get_flat_coord(self, index: Any) -> Any:
        """Return the coordinate of an index as `get_hier_coord`, with one integer per top-level
        mode.
        """
        coord = self.get_hier_coord(index)
        if not isinstance(self.shape, tuple):
            return coord
        return tuple(coordinates.crd2idx(c, s) for c, s in zip(coord, self.shape, strict=True))

    @takes_location
    def get_1d_coord(self, index: Any) -> Any:
        """Return the linear (colexicographic) coordinate of an index into the codomain."""
        return coordinates.crd2idx(self.get_hier_coord(index), self.shape)

    def _key(self) -> Any:
        return (
            transform_leaf(dynamic.leaf_key, self.shape),
            transform_leaf(_stride_key, self.stride),
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Layout):
            return NotImplemented
        return self is other or self._key() == other._key()

    def __hash__(self) -> int:
        if self._hash is None:
            self._set(_hash=hash(self._key()))
        return self._hash  # type: ignore[return-value]

    def __str__(self) -> str:
        return f"{text(self.shape)}:{text(self.stride)}"

    __repr__ = __str__


def _stride_key(leaf: Any) -> Any:
    return leaf.structural_key() if isinstance(leaf, ScaledBasis) else dynamic.leaf_key(leaf)


def text(x: Any) -> str:
    """Return an integer tuple as it prints: ``((4,2),8)``, ``?{div=4}``, ``1@0``, ``_`` for None.

    A dynamic integer prints ``?`` or, with known divisibility n, ``?{div=n}``.
    """
    if type(x) is int:
        return str(x)
    if isinstance(x, tuple):
        return f"({','.join(map(text, x))})"
    if x is None:
        return "_"
    if dynamic.is_dynamic_int(x):
        n = dynamic.divisibility(x)
        return f"?{{div={n}}}" if n > 1 else "?"
    if isinstance(x, ScaledBasis):
        return "@".join([text(x.value), *(str(i) for i in reversed(x.mode))])
    return str(x)


@takes_location
def make_layout(shape: Any, stride: Any = None) -> Layout:
    """Return a layout from a shape and a stride, or several layouts as the modes of one.

    Without a stride the layout is compact and colexicographic, and a static extent 1 gets stride
    0. Raises LayoutError if the profiles differ or an extent is negative.

    >>> print(make_layout((4, 8)), make_layout((4, 8), (8, 1)))
    (4,8):(1,4) (4,8):(8,1)
    >>> print(make_layout((make_layout(4, 2), make_layout((2, 2)))))
    (4,(2,2)):(2,(1,2))
    """
    if stride is None and _is_layout(shape):
        return concatenate(shape)
    if stride is None and isinstance(shape, tuple | list) and any(_is_layout(e) for e in shape):
        return concatenate(*shape)
    shape = checked_shape(shape)
    return Layout(shape, compact_col_major(shape) if stride is None else normalize(stride))


def checked_shape(shape: Any) -> IntTuple:
    """Return a shape of ints and tuples; LayoutError for what is none, such as -1, True or 1.5."""
    shape = normalize(shape)
    for extent in leaves(shape):
        if isinstance(extent, ScaledBasis) or (dynamic.is_static_int(extent) and extent < 0):
            raise LayoutError(
                f"shape {text(shape)}: the extent {extent} is no extent",
                hint="extents are 0 or more; none is inferred from the others",
            )
    return shape


def check_layout(operation: str, x: Any) -> None:
    """Raise LayoutError if `x`, the operand of an operation of this name, is no layout."""
    if not isinstance(x, Layout):
        raise LayoutError(
            f"{operation}({text(x)}): its operand is no layout",
            hint="make_layout(shape) is the compact layout of a shape",
        )


def _is_layout(x: Any) -> bool:
    return isinstance(x, Layout) or hasattr(x, "outer")


def concatenate(*layouts: Layout) -> Layout:
    """Return a layout whose modes are the given layouts, also for one or none."""
    for layout in layouts:
        if not isinstance(layout, Layout):
            raise LayoutError(f"only plain layouts can be the modes of a layout, not {layout}")
    return Layout(tuple(x.shape for x in layouts), tuple(x.stride for x in layouts))


@takes_location
def make_layout_left(shape: Any) -> Layout:
    """Return the compact layout whose first mode is fastest: ``(4,8):(1,4)``."""
    shape = checked_shape(shape)
    return Layout(shape, compact_col_major(shape))


@takes_location
def make_layout_right(shape: Any) -> Layout:
    """Return the compact layout whose last mode is fastest: ``(4,8):(8,1)``."""
    shape = checked_shape(shape)
    return Layout(shape, compact_row_major(shape))


@takes_location
def make_ordered_layout(shape: Any, order: Any) -> Layout:
    """Return the compact layout of the shape `shape` whose modes are ordered by ``order``: the
    smallest number is fastest.

    >>> print(make_ordered_layout((2, 3, 4), order=(2, 0, 1)))
    (2,3,4):(12,1,3)
    """
    shape = checked_shape(shape)
    return Layout(shape, compact_order(shape, normalize(order)))


@takes_location
def make_identity_layout(shape: Any) -> Layout:
    """Return the layout that maps a coordinate of ``shape`` to itself, by basis strides.

    >>> print(make_identity_layout((4, 8)), make_identity_layout((4, 8))(1, 2))
    (4,8):(1@0,1@1) (1, 2)
    """
    shape = checked_shape(shape)
    return Layout(shape, coordinates.basis_like(shape))


@takes_location
def make_layout_like(layout: Layout) -> Layout:
    """Return the compact layout with the shape and the stride order of ``layout``.

    Modes of stride 0 keep it.

    >>> print(make_layout_like(make_layout((2, 2, 2, 2), (0, 2, 4, 1))))
    (2,2,2,2):(0,2,4,1)
    """
    return Layout(
        layout.shape, compact_order(zeros_to_ones(layout.stride, layout.shape), layout.stride)
    )


@takes_location
def size(x: Any, mode: Any = None) -> Any:
    """Return the number of elements: the product of the extents of ``x`` or of one of its modes.

    ``x`` is an int tuple, a layout, or anything with a ``shape`` or, failing that, a ``size``; of
    a tiled copy or MMA it is the number of threads. ``mode`` is an index or a path of indices.

    >>> size((4, (2, 8))), size((4, (2, 8)), mode=[1, 0])
    (64, 2)
    """
    if hasattr(x, "tiler_mn") or hasattr(x, "thr_layout_vmnk"):
        own = x.thr_layout_vmnk.shape if hasattr(x, "thr_layout_vmnk") else x.size
        return product(tuple_get(own, _path(mode)))
    return product(tuple_get(_whole_shape(x), _path(mode)))


@takes_location
def shape(x: Any, mode: Any = None) -> IntTuple:
    """Return the shape of `x`, a layout, tensor or tile, or of its mode at the path ``mode``.

    An int tuple may hold layouts (a tiler); each stands for its shape.

    >>> shape(make_layout((4, (2, 8))), mode=[1])
    (2, 8)
    """
    return tuple_get(_whole_shape(x), _path(mode))


def _whole_shape(x: Any) -> IntTuple:
    if isinstance(x, tuple | list):
        return tuple(map(_whole_shape, x))
    if type(x) is int:
        return x
    if x is not None and not dynamic.is_static_int(x) and hasattr(x, "shape"):
        return x.shape
    return normalize(x)


def _path(mode: Any) -> tuple[int, ...]:
    if mode is None:
        return ()
    return tuple(mode) if isinstance(mode, tuple | list) else (mode,)


@takes_location
def coshape(layout: Any) -> Any:
    """Return the smallest extents that bound the image: 1 + the largest index.

    The result is a tuple for basis strides.
    """
    if hasattr(layout, "outer"):
        return coshape(layout.outer)
    check_layout("coshape", layout)
    extents = tuple(leaves(layout.shape))
    if any(dynamic.is_zero(s) for s in extents):
        return transform_leaf(lambda _: 0, coordinates.sum_of_strides(layout.stride))
    total: Any = 0
    for s, d in zip(extents, leaves(layout.stride), strict=True):
        total = basis.add(total, basis.scale(dynamic.sub(s, 1), _magnitude(d)))
    return transform_leaf(lambda c: dynamic.add(c, 1), basis.as_coordinate(total))


def _magnitude(stride: Any) -> Any:
    if isinstance(stride, ScaledBasis):
        return ScaledBasis(_magnitude(stride.value), stride.mode)
    return abs(stride) if dynamic.is_static_int(stride) else stride


@takes_location
def cosize(layout: Any, mode: Any = None) -> Any:
    """Return 1 + the largest index of a layout or a tensor, or of its mode at the path `mode`; of a
    composed layout, of its outer part.

    >>> cosize(make_layout((4, 8), (1, 5)))
    39
    """
    if hasattr(layout, "outer"):
        return cosize(layout.outer, mode)
    if not isinstance(layout, Layout) and hasattr(layout, "layout"):
        return cosize(layout.layout, mode)
    check_layout("cosize", layout)
    path = _path(mode)
    return product(coshape(layout[path] if path else layout))


@takes_location
def size_in_bytes(dtype: Any, layout: Any) -> Any:
    """Return the bytes that ``cosize(layout)`` elements take, or as many as a shape has.

    ``dtype`` is a numeric class, or a number of bits. Elements narrower than a byte are packed and
    the total is rounded up.

    >>> size_in_bytes(16, make_layout((4, 8))), size_in_bytes(4, 5)
    (64, 3)
    """
    width = dtype if dynamic.is_static_int(dtype) else dtype.width
    if width < 1:
        raise LayoutError(f"elements of {width} bits")
    count = cosize(layout) if hasattr(layout, "shape") else product(checked_shape(layout))
    return dynamic.ceil_div(dynamic.mul(count, width), 8)


def modes_of(layout: Layout) -> list[Layout]:
    """Return the top-level modes as layouts."""
    return [Layout(s, d) for s, d in zip(wrap(layout.shape), wrap(layout.stride), strict=True)]
