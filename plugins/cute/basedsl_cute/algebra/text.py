"""Parsing of the printed forms of layouts, int tuples and tilers.

The printed form is CuTe's: ``((4,2),8):((1,4),8)``, basis strides ``1@0``, ``_`` for None, dynamic
leaves ``?`` and ``?{div=8}``, composed layouts ``S<3,4,3> o 0 o (8,64):(64,1)``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from .basis import ScaledBasis, make_ratio
from .composed import ComposedLayout, Swizzle
from .dynamic import Dyn
from .errors import LayoutError
from .ignored_location import takes_location
from .layout import Layout

_TOKEN = re.compile(r"\s*(\d+/\d+|-?\d+|\?(?:\{div=\d+\})?|[(),:_@])")
_SWIZZLE = re.compile(r"\s*Sw?<(-?\d+),(-?\d+),(-?\d+)>\s*")


class _LayoutReader:
    """A recursive-descent reader over the tokens of one layout, tuple or tiler."""

    def __init__(self, source: str, dynamic_leaf: Callable[[str], Any]):
        self.source = source
        self.dynamic_leaf = dynamic_leaf
        self.tokens: list[str] = []
        position = 0
        while position < len(source.rstrip()):
            match = _TOKEN.match(source, position)
            if match is None:
                raise self.error(f"unexpected {source[position:]!r}")
            self.tokens.append(match[1])
            position = match.end()
        self.at = 0

    def error(self, what: str) -> LayoutError:
        return LayoutError(f"cannot read {self.source!r} as a layout: {what}")

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def next(self, expected: str | None = None) -> str:
        token = self.peek()
        if not token or (expected is not None and token != expected):
            raise self.error(f"expected {expected or 'more'}, found {token or 'the end'!r}")
        self.at += 1
        return token

    def item(self) -> Any:
        """Return a tuple, an integer, or a layout; inside a tuple a layout is a tiler's entry."""
        first = self.tuple_or_leaf()
        if self.peek() != ":":
            return first
        self.next(":")
        try:
            return Layout(first, self.tuple_or_leaf())
        except LayoutError as error:
            raise self.error(str(error)) from None

    def tuple_or_leaf(self) -> Any:
        if self.peek() != "(":
            return self.leaf()
        self.next("(")
        items: list[Any] = []
        while self.peek() != ")":
            items.append(self.item())
            if self.peek() != ")":
                self.next(",")
        self.next(")")
        return tuple(items)

    def leaf(self) -> Any:
        token = self.next()
        if token == "_":
            return None
        value: Any
        if token.startswith("?"):
            value = self.dynamic_leaf(token)
        elif "/" in token:
            numerator, denominator = token.split("/")
            value = make_ratio(int(numerator), int(denominator))
        elif token.lstrip("-").isdigit():
            value = int(token)
        else:
            raise self.error(f"unexpected {token!r}")
        path: list[int] = []
        while self.peek() == "@":
            self.next("@")
            path.insert(0, int(self.next()))
        return ScaledBasis(value, tuple(path)) if path else value


def _fresh_dynamic(token: str) -> Dyn:
    return Dyn(divby=int(token[6:-1]) if "{" in token else 1)


@takes_location
def parse(source: str, dynamic_leaf: Callable[[str], Any] = _fresh_dynamic) -> Any:
    """Return an int tuple, coordinate, tiler, swizzle, layout or composed layout from its printed
    form.

    Each dynamic leaf becomes what ``dynamic_leaf`` returns for its text; by default a new `Dyn`.

    >>> parse("(4,(2,_))"), print(parse("((4,2),8):((1,4),8)"))
    ((4,2),8):((1,4),8)
    ((4, (2, None)), None)
    """
    parts = [part.strip() for part in source.split(" o ")]
    if len(parts) == 1:
        swizzle = _SWIZZLE.fullmatch(source)
        if swizzle:
            return Swizzle(*(int(group) for group in swizzle.groups()))
        reader = _LayoutReader(source, dynamic_leaf)
        result = reader.item()
        if reader.peek():
            raise reader.error(f"{reader.peek()!r} follows the end")
        return result
    if len(parts) % 2 == 0:
        raise LayoutError(f"cannot read {source!r}: a composed layout is 'inner o offset o outer'")
    inner, offset, outer = parts[0], parts[1], " o ".join(parts[2:])
    return ComposedLayout(
        parse(inner, dynamic_leaf), parse(offset, dynamic_leaf), parse(outer, dynamic_leaf)
    )


@takes_location
def parse_layout(source: str) -> Layout | ComposedLayout:
    """Return the layout or composed layout that prints as ``source``; LayoutError for anything
    else.

    >>> parse_layout("S<3,4,3> o 0 o (8,64):(64,1)")(1, 0)
    64
    """
    result = parse(source)
    if not isinstance(result, Layout | ComposedLayout):
        raise LayoutError(f"{source!r} is no layout: expected 'shape:stride'")
    return result
