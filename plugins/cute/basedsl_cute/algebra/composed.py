"""Swizzles and composed layouts: functions on indices that a shape and a stride cannot express.

A composed layout is ``inner o offset o outer``: ``R(c) = inner(offset + outer(c))``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from . import basis, dynamic
from .coordinates import coordinate_to_index, has_none, slice_tuple
from .dynamic import is_static_int
from .errors import LayoutError
from .frozen import Frozen
from .ignored_location import takes_location
from .int_tuple import is_static, normalize, transform_leaf, tuple_rank
from .layout import Layout, text


class Swizzle(Frozen):
    """A function on indices that XORs ``bits`` bits of an index into lower ones.

    It is ``x ^ ((x & yyy) >> shift)``. The source bits are ``[base + shift, base + shift +
    bits)``, the target bits ``[base, base + bits)``; a negative shift exchanges the two. It prints
    ``S<bits,base,shift>``. Applying a swizzle twice is the identity. Raises LayoutError if source
    and target overlap.

    ``unit`` is the number of bits of the indexed elements, where that is known: the swizzle of a
    layout of memory (`gmma_smem_atom`) can then be put on a pointer.

    >>> swizzle = Swizzle(2, 0, 3)
    >>> print(swizzle, [swizzle(8 + i) for i in range(4)])
    S<2,0,3> [9, 8, 11, 10]
    """

    __slots__ = ("base", "bits", "shift", "unit")

    bits: int
    base: int
    shift: int
    unit: int | None

    def __init__(self, bits: int, base: int, shift: int, unit: int | None = None):
        bits, base, shift = (_whole(n) for n in (bits, base, shift))
        if bits < 0 or base < 0 or abs(shift) < bits:
            raise LayoutError(
                f"S<{bits},{base},{shift}>: bits and base are at least 0, and |shift| at least bits"
            )
        self._set(bits=bits, base=base, shift=shift, unit=unit)

    @staticmethod
    def from_name(name: str) -> Swizzle:
        """Return the swizzle of byte addresses that TMA and matrix descriptors call `name`: "none"
        (or "interleave"), "32B", "64B" or "128B", also as "SW128" or "SWIZZLE_128B"; or the one
        that prints as `name`. Raises LayoutError for another name.

        >>> print(Swizzle.from_name("128B"), Swizzle.from_name("S<2,4,3>"))
        S<3,4,3> S<2,4,3>
        """
        printed = re.fullmatch(r"S<(\d+),(\d+),(-?\d+)>", name.replace(" ", ""))
        if printed:
            return Swizzle(*map(int, printed.groups()))
        short = name.upper().removeprefix("SWIZZLE_").removeprefix("SW").removesuffix("B")
        bits = {"NONE": 0, "INTERLEAVE": 0, "INTER": 0, "32": 1, "64": 2, "128": 3}.get(short)
        if bits is None:
            raise LayoutError(f"no swizzle is called {name!r}; there are none, 32B, 64B and 128B")
        return Swizzle(bits, 4, 3)

    def __reduce__(self) -> Any:
        return (Swizzle, self._key())

    @property
    def of_bytes(self) -> Swizzle:
        """This swizzle on byte addresses; one of unknown unit is taken to be that already."""
        steps = (self.unit or 8).bit_length() - 4
        return Swizzle(self.bits, self.base + steps, self.shift) if self.bits else self

    @property
    def num_bits(self) -> int:
        """The number of bits that are XORed."""
        return self.bits

    @property
    def num_base(self) -> int:
        """The number of low bits that neither change nor count."""
        return self.base

    @property
    def num_shift(self) -> int:
        """The distance from the target bits up to the source bits."""
        return self.shift

    @property
    def source_mask(self) -> int:
        """The bits of an index that are read."""
        return ((1 << self.bits) - 1) << (self.base + max(self.shift, 0))

    @property
    def target_mask(self) -> int:
        """The bits of an index that change."""
        return ((1 << self.bits) - 1) << (self.base + max(-self.shift, 0))

    @property
    def period(self) -> int:
        """The distance after which the swizzle repeats: ``swizzle(x + period) == swizzle(x) +
        period``.
        """
        return 1 << (self.base + self.bits + abs(self.shift))

    @property
    def max_alignment(self) -> int:
        """The number of elements that stay together: indices below ``2**base`` move as one
        block.
        """
        return 1 << self.base

    def __call__(self, x: Any) -> Any:
        if self.bits == 0:
            return x
        if is_static_int(x):
            return x ^ self._moved(x & self.source_mask)
        low = math.gcd(dynamic.divisibility(x), self.period)
        if low > self.source_mask:
            return x
        swizzled = x ^ self._moved(x & self.source_mask)
        target = self.target_mask
        return dynamic.with_divby(swizzled, math.gcd(low, target & -target))

    def _moved(self, source: Any) -> Any:
        return source >> self.shift if self.shift >= 0 else source << -self.shift

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Swizzle) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[int, int, int, int | None]:
        return (self.bits, self.base, self.shift, self.unit)

    def __str__(self) -> str:
        return f"S<{self.bits},{self.base},{self.shift}>"

    __repr__ = __str__


@takes_location
def make_swizzle(b: int, m: int, s: int) -> Swizzle:
    """Return the swizzle with ``b`` bits, base ``m`` and shift ``s``; see `Swizzle`.

    >>> print(make_swizzle(3, 4, 3))
    S<3,4,3>
    """
    return Swizzle(b, m, s)


def _whole(n: Any) -> int:
    found = normalize(n)
    if not is_static_int(found):
        raise LayoutError(f"a swizzle is made of static integers, not {text(found)}")
    return int(found)


def swizzle_of_masks(source: int, target: int) -> Swizzle:
    """Return the swizzle that XORs the bits of ``source`` into those of ``target``.

    Raises LayoutError unless both masks are runs of equally many ones.
    """
    bits = source.bit_count()
    if source == 0 and target == 0:
        return Swizzle(0, 0, 0)
    low_source, low_target = source & -source, target & -target
    run = (1 << bits) - 1
    if source != run * low_source or target != run * low_target:
        raise LayoutError(f"masks {source:#b} and {target:#b} describe no swizzle")
    shift = low_source.bit_length() - low_target.bit_length()
    return Swizzle(bits, min(low_source, low_target).bit_length() - 1, shift)


class ComposedLayout(Frozen):
    """An immutable function ``inner(offset + outer(c))`` of coordinates: ``inner o offset o
    outer``.

    ``outer`` is a layout and holds the domain; ``inner`` is a swizzle, a layout or a Python
    function on indices. Indexing and rearranging act on ``outer``. Prints ``S<3,4,3> o 0 o
    (8,64):(64,1)``.
    """

    __slots__ = ("inner", "offset", "outer")

    inner: Any
    offset: Any
    outer: Any
    if TYPE_CHECKING:  # `late_methods` has it

        @property
        def max_alignment(self) -> int: ...

    def __init__(self, inner: Any, offset: Any, outer: Any):
        if not callable(inner):
            raise LayoutError(f"the inner part of a composed layout must be a function: {inner!r}")
        if not isinstance(outer, Layout | ComposedLayout):
            raise LayoutError(f"the outer part of a composed layout must be a layout: {outer!r}")
        self._set(inner=inner, offset=offset, outer=outer)

    def __reduce__(self) -> Any:
        return (ComposedLayout, (self.inner, self.offset, self.outer))

    @property
    def shape(self) -> Any:
        """The shape of the outer part."""
        return self.outer.shape

    @property
    def is_normal(self) -> bool:
        """False: there is no stride that describes the whole function."""
        return False

    @property
    def is_static(self) -> bool:
        """True if offset and outer part are known while tracing."""
        return is_static(self.offset) and self.outer.is_static

    def with_outer(self, outer: Any) -> ComposedLayout:
        """Return the same function of another domain, that of the layout ``outer``."""
        return ComposedLayout(self.inner, self.offset, outer)

    def __call__(self, *coord: Any, loc: Any = None, ip: Any = None) -> Any:
        c = coord[0] if len(coord) == 1 else coord
        if has_none(c):
            return slice_and_offset(c, self)[0]
        return self.inner(basis.add(self.offset, self.outer(c)))

    def __getitem__(self, mode: int) -> ComposedLayout:
        return self.with_outer(self.outer[mode])

    def __len__(self) -> int:
        return tuple_rank(self.shape)

    def _key(self) -> Any:
        return (self.inner, transform_leaf(dynamic.leaf_key, self.offset), self.outer)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ComposedLayout):
            return NotImplemented
        return bool(self._key() == other._key())

    def __hash__(self) -> int:
        return hash(self._key())

    def __str__(self) -> str:
        inner = self.inner
        if not isinstance(inner, Swizzle | Layout | ComposedLayout):
            inner = getattr(inner, "__name__", "function")
        return f"{inner} o {text(self.offset)} o {self.outer}"

    __repr__ = __str__


AnyLayout: TypeAlias = Layout | ComposedLayout


@takes_location
def make_composed_layout(
    inner: Swizzle | AnyLayout | Callable[[Any], Any], offset: Any, outer: AnyLayout
) -> ComposedLayout:
    """Return the layout ``R(c) = inner(offset + outer(c))``.

    Raises LayoutError unless ``inner`` is a function, ``outer`` a layout, and the offset a
    coordinate.

    >>> swizzled = make_composed_layout(Swizzle(2, 0, 3), 0, Layout((8, 8), (1, 8)))
    >>> swizzled(0, 1)
    9
    """
    return ComposedLayout(inner, normalize(offset), outer)


@takes_location
def slice_and_offset(coord: Any, layout: AnyLayout) -> tuple[AnyLayout, Any]:
    """Return the sub-layout of the modes that ``coord`` keeps (``None``), and its start.

    The start is to be added to the pointer. For a composed layout it is accumulated in the
    layout's own offset instead, because the inner function is not linear, and 0 is returned.

    >>> print(*slice_and_offset((3, None), Layout((5, 4), (1, 20))))
    (4):(20) 3
    """
    if isinstance(layout, ComposedLayout):
        outer, start = slice_and_offset(coord, layout.outer)
        return ComposedLayout(layout.inner, basis.add(layout.offset, start), outer), 0
    kept = Layout(slice_tuple(coord, layout.shape), slice_tuple(coord, layout.stride))
    return kept, coordinate_to_index(coord, layout.shape, layout.stride)


@takes_location
def domain_offset(coord: Any, x: Any) -> Any:
    """Move coordinate 0 of `x`, a layout or a view, to ``coord``.

    For a layout the result is ``(layout, offset)``: the offset is to be added to the pointer; a
    composed layout takes it in itself and returns 0. For a tensor it is the tensor that starts
    there.

    >>> print(*domain_offset((1, 2), Layout((4, 8), (8, 1))))
    (4,8):(8,1) 10
    """
    if isinstance(x, ComposedLayout):
        return ComposedLayout(x.inner, basis.add(x.offset, x.outer(coord)), x.outer), 0
    if isinstance(x, Layout):
        return x, x(coord)
    return x.domain_offset(coord)
