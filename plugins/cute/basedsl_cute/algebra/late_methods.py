"""Methods of layouts that need modules above them: `parse`, `max_alignment`, pictures in notebooks.

The package imports this module last, so that `layout` and `composed` import nothing back up.
"""

from __future__ import annotations

from .composed import ComposedLayout, Swizzle
from .draw import notebook_svg
from .layout import Layout
from .text import parse_layout
from .tv_copy import CopyTiling
from .tv_mma import MmaTiling
from .vectorize import max_alignment


def _max_alignment(self: Layout | ComposedLayout) -> int:
    """Return the number of elements that every vector access through the layout may be aligned
    to.
    """
    return max_alignment(self)


for _layout in (Layout, ComposedLayout):
    setattr(_layout, "max_alignment", property(_max_alignment))  # noqa: B010
for _class in (Layout, Swizzle, ComposedLayout, CopyTiling, MmaTiling):
    setattr(_class, "_repr_svg_", notebook_svg)  # noqa: B010
Layout.parse = staticmethod(parse_layout)  # type: ignore[method-assign]
