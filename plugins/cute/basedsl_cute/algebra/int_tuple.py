"""Integer tuples: an integer, or a tuple of integer tuples, with static or dynamic leaves.

Structure (nesting, rank) is always static. Coordinates live in `coordinates`, layouts in `layout`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from numbers import Integral
from typing import Any, TypeAlias

from . import dynamic
from .basis import ScaledBasis
from .dynamic import is_dynamic_int, is_static_int
from .errors import LayoutError
from .ignored_location import takes_location

IntTuple: TypeAlias = Any
"""An int, a dynamic integer, or a tuple of `IntTuple`; strides may hold `ScaledBasis` leaves."""


def normalize(x: Any) -> IntTuple:
    """Return ``x`` with lists turned into tuples and foreign integers into ints.

    Raises LayoutError for a leaf that is no integer.
    """
    if isinstance(x, tuple | list):
        return tuple(normalize(e) for e in x)
    if type(x) is int:
        return x
    if isinstance(x, Integral) and not isinstance(x, bool):
        return int(x)
    if isinstance(x, ScaledBasis) or is_dynamic_int(x):
        return x
    raise LayoutError(
        f"not an integer or a tuple of integers: {x!r} ({type(x).__name__})",
        hint="divide with // for whole numbers"
        if isinstance(x, float)
        else "write shapes, strides and coordinates as 8, (4, 8) or ((2, 2), 8)",
    )


@takes_location
def is_static(x: Any) -> bool:
    """Return True if every leaf of `x` is known while tracing.

    It takes integers, tuples, basis strides, None, and anything with ``shape`` and ``stride`` (or
    ``inner``, ``offset`` and ``outer``).

    >>> is_static((4, (2, 8))), is_static((4, dynamic.Dyn("n")))
    (True, False)
    """
    if type(x) is int:
        return True
    if isinstance(x, tuple | list):
        return all(map(_is_static, x))
    if isinstance(x, ScaledBasis):
        return not is_dynamic_int(x.value)
    if is_dynamic_int(x):
        return False
    if hasattr(x, "outer"):
        return all(map(_is_static, (x.inner, x.offset, x.outer)))
    if hasattr(x, "stride") and hasattr(x, "shape"):
        return _is_static(x.shape) and _is_static(x.stride)
    return True


_is_static = is_static.__wrapped__


def wrap(x: IntTuple) -> tuple[IntTuple, ...]:
    """Return a tuple as it is, anything else as a 1-tuple."""
    return x if isinstance(x, tuple) else (x,)


def leaves(x: IntTuple) -> Iterator[Any]:
    """Return all leaves from left to right."""
    if isinstance(x, tuple):
        for element in x:
            if isinstance(element, tuple):
                yield from leaves(element)
            else:
                yield element
    else:
        yield x


@takes_location
def flatten_to_tuple(x: IntTuple) -> tuple[Any, ...]:
    """Return all leaves of `x` as a tuple, also for an integer.

    >>> flatten_to_tuple((2, (3, 4))), flatten_to_tuple(5)
    ((2, 3, 4), (5,))
    """
    return tuple(leaves(x))


def flatten_tuple(x: IntTuple) -> IntTuple:
    """Return ``x`` without nesting: ``(2, (3, 4))`` becomes ``(2, 3, 4)``; an integer stays one."""
    return flatten_to_tuple(x) if isinstance(x, tuple) else x


def unflatten_tuple(flat: IntTuple, profile: IntTuple) -> IntTuple:
    """Return the leaves of ``flat`` in the nesting of ``profile``.

    Raises LayoutError if the numbers of leaves differ.
    """
    values = flatten_to_tuple(flat)
    if len(values) != len(flatten_to_tuple(profile)):
        raise LayoutError(f"cannot fold {flat} into the profile of {profile}: leaf counts differ")
    remaining = iter(values)
    return transform_leaf(lambda _: next(remaining), profile)


@takes_location
def transform_leaf(f: Callable[..., Any], x: IntTuple, *others: IntTuple) -> IntTuple:
    """Return the tree of ``f`` applied leaf by leaf to the tree `x` and `others` of the same
    profile.

    >>> transform_leaf(lambda a, b: a + b, (1, (2, 3)), (10, (20, 30)))
    (11, (22, 33))
    """
    if not isinstance(x, tuple):
        return f(x, *others)
    for other in others:
        if not isinstance(other, tuple) or len(other) != len(x):
            raise LayoutError(f"profiles differ: {x} and {other}")
    return tuple(transform_leaf(f, *group) for group in zip(x, *others, strict=True))


def tuple_rank(x: IntTuple) -> int:
    """Return the number of top-level modes; 1 for an integer."""
    return len(x) if isinstance(x, tuple) else 1


def tuple_depth(x: IntTuple) -> int:
    """Return the nesting depth; 0 for an integer, 1 for a flat tuple."""
    if not isinstance(x, tuple):
        return 0
    return 1 + max((tuple_depth(e) for e in x), default=0)


def tuple_get(x: IntTuple, path: tuple[int, ...]) -> IntTuple:
    """Return the element reached by descending ``path``; mode 0 of an integer is itself."""
    for index in path:
        modes = wrap(x)
        if not -len(modes) <= index < len(modes):
            raise LayoutError(f"mode {index} of {x}: it has {len(modes)} modes")
        x = modes[index]
    return x


@takes_location
def product(x: IntTuple) -> Any:
    """Return the product of all leaves of the int tuple `x`; 1 for the empty tuple.

    >>> product((2, (3, 4)))
    24
    """
    if not isinstance(x, tuple):
        return x
    result: Any = 1
    for element in x:
        result = dynamic.mul(result, _product(element))
    return result


_product = product.__wrapped__


@takes_location
def product_each(x: IntTuple) -> tuple[Any, ...]:
    """Return the product of each top-level element of the int tuple `x`.

    >>> product_each(((2, 3), 4))
    (6, 4)
    """
    return tuple(product(e) for e in wrap(x))


@takes_location
def product_like(x: IntTuple, guide: IntTuple) -> IntTuple:
    """Return ``x`` multiplied out below the leaves of ``guide``.

    >>> product_like(((2, 3), 4), (1, 1))
    (6, 4)
    """
    if isinstance(guide, tuple):
        return tuple(product_like(a, g) for a, g in _pairs(x, guide, "product_like"))
    return product(x)


def _pairs(a: IntTuple, b: IntTuple, what: str) -> list[tuple[Any, Any]]:
    if not isinstance(a, tuple) or not isinstance(b, tuple) or len(a) != len(b):
        raise LayoutError(f"{what}({a}, {b}): ranks differ")
    return list(zip(a, b, strict=True))


def _padded_pairs(a: IntTuple, b: tuple[Any, ...], what: str) -> list[tuple[Any, Any]]:
    if len(a) < len(b):
        raise LayoutError(f"{what}({a}, {b}): the second operand has more modes")
    return list(zip(a, b + (1,) * (len(a) - len(b)), strict=True))


@takes_location
def ceil_div(a: IntTuple, b: IntTuple) -> IntTuple:
    """Return the rounded-up quotient, leaf by leaf; modes that ``b`` lacks stay as they are.

    An integer ``b`` is divided out of a tuple ``a`` from left to right.

    >>> ceil_div(10, 4), ceil_div((10, 8, 3), (4, 8)), ceil_div((4, 5, 6), 8)
    (3, (3, 1, 3), (1, 3, 6))
    """
    if isinstance(a, tuple) and isinstance(b, tuple):
        return tuple(ceil_div(x, y) for x, y in _padded_pairs(a, b, "ceil_div"))
    if isinstance(a, tuple):
        quotients = []
        for x in a:
            quotients.append(ceil_div(x, b))
            extent = product(x)
            b = b if dynamic.is_zero(extent) else ceil_div(b, extent)
        return tuple(quotients)
    if isinstance(a, float) or isinstance(b, float):
        raise LayoutError(
            f"ceil_div({a}, {b}) is of whole numbers", hint="divide with //, or convert with int()"
        )
    b = product(b)
    if is_static_int(b) and b <= 0:
        raise LayoutError(
            f"ceil_div({a}, {b}): the divisor must be positive",
            hint="divide by the size of a tile, or by the threads of a block",
        )
    return dynamic.ceil_div(a, b)


@takes_location
def round_up(a: IntTuple, b: IntTuple) -> IntTuple:
    """Return the next multiple of ``b`` at or above ``a``, leaf by leaf.

    >>> round_up(10, 4), round_up((10, 8, 3), (4, 8))
    (12, (12, 8, 3))
    """
    if isinstance(a, tuple):
        return tuple(round_up(x, y) for x, y in _padded_pairs(a, wrap(b), "round_up"))
    b = product(b)
    return dynamic.mul(ceil_div(a, b), b)


@takes_location
def shape_div(a: IntTuple, b: IntTuple) -> IntTuple:
    """Divide the shape `a` by `b`: exactly, or with the result 1 where the divisor is a multiple of
    the extent.

    A divisor that is an integer is distributed over a tuple from left to right. Raises LayoutError
    for static integers neither of which divides the other.

    >>> shape_div((4, 5, 6), 40), shape_div((8, 6), (2, 3)), shape_div(12, (2, 3))
    ((1, 1, 3), (4, 2), 2)
    """
    if isinstance(a, tuple) and isinstance(b, tuple):
        return tuple(shape_div(x, y) for x, y in _pairs(a, b, "shape_div"))
    if isinstance(a, tuple):
        quotients = []
        for x in a:
            quotients.append(shape_div(x, b))
            b = shape_div(b, product(x))
        return tuple(quotients)
    b = product(b)
    if isinstance(a, float) or isinstance(b, float):
        raise LayoutError(
            f"shape_div({a}, {b}) is of whole numbers", hint="divide with //, or convert with int()"
        )
    if is_static_int(a) and is_static_int(b):
        if a == 0 or b == 0 or (a % b and b % a):
            raise LayoutError(f"shape_div({a}, {b}): neither divides the other")
        sign = 1 if (a > 0) == (b > 0) else -1
        return sign * max(abs(a) // abs(b), 1)
    return dynamic.ceil_div(a, b)


@takes_location
def is_congruent(a: IntTuple, b: IntTuple) -> bool:
    """Return True if ``a`` and ``b`` (int tuples or layouts) have the same nesting profile.

    >>> is_congruent((1, (2, 3)), (4, (5, 6))), is_congruent((1, (2, 3)), (4, 5))
    (True, False)
    """
    if type(a) is int and type(b) is int:
        return True
    a, b = _shape_of(a), _shape_of(b)
    is_deep = issubclass(type(a), tuple)
    if is_deep and issubclass(type(b), tuple):
        return len(a) == len(b) and all(map(_is_congruent, a, b))
    return not is_deep and not issubclass(type(b), tuple)


_is_congruent = is_congruent.__wrapped__


@takes_location
def is_weakly_congruent(a: IntTuple, b: IntTuple) -> bool:
    """Return True if ``b`` has at least the profile of ``a``: it may be finer at the leaves of
    ``a``.

    >>> is_weakly_congruent((1, 2), (4, (5, 6))), is_weakly_congruent((1, (2, 3)), (4, 5))
    (True, False)
    """
    a, b = _shape_of(a), _shape_of(b)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(
            is_weakly_congruent(x, y) for x, y in zip(a, b, strict=True)
        )
    return not isinstance(a, tuple)


@takes_location
def compatible(a: IntTuple, b: IntTuple) -> bool:
    """Return True if every coordinate into ``a`` is one into ``b``: equal sizes at the leaves of
    ``a``.

    Dynamic extents count as equal only if they are the same expression.
    """
    a, b = _shape_of(a), _shape_of(b)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(compatible(x, y) for x, y in zip(a, b, strict=True))
    return not isinstance(a, tuple) and dynamic.same(a, product(b))


def _shape_of(x: Any) -> IntTuple:
    # `isinstance` would ask a dynamic number for its class, which takes a call in Python.
    kind = type(x)
    return x if kind is int or issubclass(kind, tuple) or not hasattr(x, "shape") else x.shape


@takes_location
def elem_less(a: IntTuple, b: IntTuple) -> Any:
    """Return True if every leaf of ``a`` is smaller than that of ``b``.

    The result is a Python bool when the static leaves decide it, else a dynamic Boolean: the
    comparisons of the dynamic leaves, joined with ``&``. ``b`` may have more modes than ``a``, not
    fewer.

    >>> elem_less((3, 7), (4, 8)), elem_less((3, 8), (4, 8))
    (True, False)
    """
    pairs = list(_comparisons(a, b))
    if any(is_static_int(x) and is_static_int(y) and not x < y for x, y in pairs):
        return False
    result: Any = True
    for x, y in pairs:
        if not (is_static_int(x) and is_static_int(y)):
            result = (x < y) if result is True else result & (x < y)
    return result


def _comparisons(a: IntTuple, b: IntTuple) -> Iterator[tuple[Any, Any]]:
    a, b = _shape_of(a), _shape_of(b)
    if isinstance(a, tuple) and isinstance(b, tuple):
        if len(a) > len(b):
            raise LayoutError(f"elem_less({a}, {b}): the first operand has more modes")
        for x, y in zip(a, b, strict=False):
            yield from _comparisons(x, y)
    elif isinstance(a, tuple) or isinstance(b, tuple):
        raise LayoutError(f"elem_less({a}, {b}): an integer is compared with a tuple")
    else:
        yield a, b


@takes_location
def repeat_like(value: Any, like: IntTuple) -> IntTuple:
    """Return a tuple with the profile of ``like`` and every leaf ``value``.

    >>> repeat_like(0, (1, (2, 3)))
    (0, (0, 0))
    """
    return transform_leaf(lambda _: value, _shape_of(like))


@takes_location
def repeat_as_tuple(value: Any, n: int) -> tuple[Any, ...]:
    """Return ``n`` copies of ``value`` as a tuple, also for n = 1.

    >>> repeat_as_tuple(7, 1)
    (7,)
    """
    return (value,) * n


@takes_location
def repeat(value: Any, n: int) -> Any:
    """Return ``n`` copies of ``value`` as a tuple; for n = 1 the value itself.

    >>> repeat(7, 3), repeat(7, 1)
    ((7, 7, 7), 7)
    """
    return value if n == 1 else (value,) * n


def zeros_to_ones(guide: IntTuple, x: IntTuple) -> IntTuple:
    """Return ``x`` with 1 in place of everything paired with a static 0 in ``guide``."""
    if isinstance(guide, tuple):
        return tuple(zeros_to_ones(g, e) for g, e in _pairs(guide, x, "filter_zeros"))
    return repeat_like(1, x) if dynamic.is_zero(guide) else x
