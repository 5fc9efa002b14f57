"""Pictures of layouts: SVG, TikZ and plain text from one model.

A picture is a row of grids; a grid has a coloured, labelled cell for each coordinate. Plain
layouts show indices. Thread-value layouts, tiled copies and tiled MMAs show which thread (T) holds
an element as which of its values (V), coloured by thread, as in the CuTe papers.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .composed import ComposedLayout, Swizzle
from .dynamic import is_static_int
from .errors import LayoutError
from .ignored_location import takes_location
from .int_tuple import flatten_to_tuple, is_static, product_each, wrap
from .layout import Layout, make_layout, shape, size, text
from .tv_copy import CopyTiling
from .tv_mma import MmaTiling

COLOURS = (
    (175, 175, 255), (175, 255, 175), (255, 255, 175), (255, 175, 175),
    (210, 210, 255), (210, 255, 210), (255, 255, 210), (255, 210, 210),
)  # fmt: skip
"""Fill colours as red, green, blue; thread (or index) i has colour i % 8."""

MAX_CELLS = 1 << 16
MAX_NOTEBOOK_CELLS = 1 << 12
CORNER = 32
"""Rows and columns that are shown of a layout that is too large for a picture."""


@dataclass(frozen=True)
class Cell:
    """A coordinate of a picture: its label lines and the number that picks its colour."""

    lines: tuple[str, ...]
    colour: int

    @property
    def fill(self) -> tuple[int, int, int]:
        """The colour as red, green, blue."""
        return COLOURS[self.colour % len(COLOURS)]


@dataclass(frozen=True)
class Grid:
    """A titled table of cells, ``rows[i][j]``, placed with its corner at (row, column)."""

    title: str
    rows: tuple[tuple[Cell, ...], ...]
    row: int = 0
    column: int = 0

    @property
    def extent(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        return len(self.rows), len(self.rows[0])


@dataclass(frozen=True)
class Picture:
    """The caption of a picture, and its grids, which do not overlap."""

    caption: str
    grids: tuple[Grid, ...] = field(default=())


def picture(x: Any) -> Picture:
    """Return the picture of a layout, composed layout, swizzle, tiled copy or tiled MMA.

    ``x`` may also be ``(tv_layout, tiler)``, a thread-value layout with its tile's shape. Raises
    LayoutError for dynamic operands and for more than `MAX_CELLS` cells.
    """
    x = getattr(x, "tiling", x)  # a tiled copy or MMA of the front end
    if isinstance(x, CopyTiling):
        return _copy_picture(x)
    if isinstance(x, MmaTiling):
        return _mma_picture(x)
    if isinstance(x, tuple) and len(x) == 2 and isinstance(x[0], Layout):
        return Picture(f"{x[0]} over {text(shape(x[1]))}", (_tv_grid("", *x),))
    if isinstance(x, Swizzle):
        return _swizzle_picture(x)
    if isinstance(x, Layout | ComposedLayout):
        return _layout_picture(x, MAX_CELLS)
    raise LayoutError(f"cannot draw {x!r}")


def cell_count(x: Any) -> int | None:
    """Return the number of cells of the picture of ``x``; None if it depends on dynamic values."""
    count: Any
    if isinstance(x, Layout | ComposedLayout):
        count = size(x) if x.is_static else None
    elif isinstance(x, Swizzle):
        count = x.period
    elif isinstance(x, CopyTiling):
        count = 2 * size(x.tiler_mn)
    elif isinstance(x, MmaTiling):
        m, n, k = x.tile_shape_mnk
        count = m * n + m * k + n * k
    else:
        count = size(x[1])
    return count if is_static_int(count) else None


def _check_size(x: Any) -> None:
    count = cell_count(x)
    if count is None:
        raise LayoutError(f"cannot draw {x}: it has dynamic extents, strides or offsets")
    if not 0 < count <= MAX_CELLS:
        raise LayoutError(f"cannot draw {x}: {count} cells (at most {MAX_CELLS})")


def _layout_picture(layout: Layout | ComposedLayout, most: int) -> Picture:
    """Return the picture of a layout; of one with more than `most` cells, that of its corner, whose
    caption says so.
    """
    if not layout.is_static:
        _check_size(layout)
    height, width = _rows_and_columns(layout)
    if height * width <= most:
        return Picture(str(layout), (_index_grid(layout),))
    shown = min(height, CORNER), min(width, CORNER)
    caption = f"{layout}: the first {shown[0]} x {shown[1]} of {height} x {width}"
    return Picture(caption, (_index_grid(layout, shown),))


def _rows_and_columns(layout: Layout | ComposedLayout) -> tuple[int, int]:
    modes = wrap(layout.shape)
    return (1, size(layout)) if len(modes) < 2 else (size(modes[0]), size(modes[1:]))


def _index_grid(layout: Layout | ComposedLayout, shown: tuple[int, int] | None = None) -> Grid:
    """Return the indices of a layout, or of its first `shown` rows and columns."""
    if shown is None:
        _check_size(layout)
    modes = wrap(layout.shape)
    height, width = _rows_and_columns(layout)
    rows, columns = shown or (height, width)
    inner = getattr(layout, "inner", None)
    base = inner.base if isinstance(inner, Swizzle) else 0

    def cell(i: int, j: int) -> Cell:
        value = layout(i + height * j if len(modes) > 1 else j)
        number = value if is_static_int(value) else sum(flatten_to_tuple(value))
        return Cell((text(value),), number >> base)

    return Grid("", tuple(tuple(cell(i, j) for j in range(columns)) for i in range(rows)))


def _swizzle_picture(swizzle: Swizzle) -> Picture:
    """Return the picture of the blocks that the swizzle moves as wholes."""
    width, block = 1 << abs(swizzle.shift), 1 << swizzle.base
    rows = Layout((1 << swizzle.bits, width), (width, 1))
    moved = ComposedLayout(Swizzle(swizzle.bits, 0, swizzle.shift), 0, rows)
    caption = str(swizzle) if block == 1 else f"{swizzle}, in blocks of {block}"
    return Picture(caption, (_index_grid(moved),))


Holders = dict[int, list[tuple[int, int]]]
"""For each position of a tile the (thread, value) pairs that hold it."""


def _holders_grid(
    title: str, holders: Holders, extents: tuple[int, ...], row: int = 0, column: int = 0
) -> Grid:
    height = extents[0] if len(extents) > 1 else 1
    width = size(extents) // height

    def cell(i: int, j: int) -> Cell:
        held = holders.get(i + height * j)
        if held is None:
            return Cell(("",), 0)
        thread, value = min(held)
        others = len({t for t, _ in held}) - 1
        return Cell((f"T{thread}{f'+{others}' if others else ''}", f"V{value}"), thread)

    rows = tuple(tuple(cell(i, j) for j in range(width)) for i in range(height))
    return Grid(title, rows, row, column)


def _tv_grid(title: str, layout_tv: Layout, tiler: Any, column: int = 0) -> Grid:
    """Return the inverse of a thread-value layout: the holder of each position of the tile."""
    _check_size((layout_tv, tiler))
    if not is_static(layout_tv):
        raise LayoutError(f"cannot draw {layout_tv}: it has dynamic extents or strides")
    holders: Holders = {}
    for thread in range(size(layout_tv, 0)):
        for value in range(size(layout_tv, 1)):
            holders.setdefault(layout_tv((thread, value)), []).append((thread, value))
    return _holders_grid(title, holders, product_each(shape(tiler)), 0, column)


def _copy_picture(copy: CopyTiling) -> Picture:
    _check_size(copy)
    source = _tv_grid("source", copy.layout_src_tv_tiled, copy.tiler_mn)
    column = source.extent[1] + 3
    target = _tv_grid("destination", copy.layout_dst_tv_tiled, copy.tiler_mn, column)
    caption = f"{copy.atom.name or 'copy'}, {copy.size} threads, tile {text(shape(copy.tiler_mn))}"
    return Picture(caption, (source, target))


def _mma_picture(mma: MmaTiling) -> Picture:
    """C with A to its left and B, transposed, above it."""
    _check_size(mma)
    m, n, k = mma.tile_shape_mnk
    below = beside = k + 3
    b = _holders_grid("B", _mma_holders(mma, "B", (n, k)), (n, k))
    grids = (
        _holders_grid("A", _mma_holders(mma, "A", (m, k)), (m, k), below, 0),
        Grid("B", tuple(zip(*b.rows, strict=True)), 0, beside),
        _holders_grid("C", _mma_holders(mma, "C", (m, n)), (m, n), below, beside),
    )
    caption = f"{mma.atom.name or 'mma'}, {mma.size} threads, tile {text(mma.tile_shape_mnk)}"
    return Picture(caption, grids)


def _mma_holders(mma: MmaTiling, operand: str, extents: tuple[int, int]) -> Holders:
    """Return the holders of an operand, by real thread index (lanes of an atom may have gaps)."""
    fragments = mma.thrfrg(operand, make_layout(extents))
    threads = mma.thr_layout_vmnk
    flat = make_layout(product_each(threads.shape))
    i, j = {"A": (1, 3), "B": (2, 3), "C": (1, 2)}[operand]
    holders: Holders = {}
    for logical in range(size(threads)):
        where = flat.get_flat_coord(logical)
        mine = (where[0], (where[i], where[j]))
        for value in range(size(fragments.shape, 1)):
            held = holders.setdefault(fragments((mine, value)), [])
            held.append((threads(where), value))
    return holders


@takes_location
def to_text(x: Any) -> str:
    """Return the picture of ``x`` as a text table; a cell reads like ``T3V1`` or ``17``.

    >>> print(to_text(make_layout((2, 3), (3, 1))))
    (2,3):(3,1)
        0 1 2
      +------
    0 | 0 1 2
    1 | 3 4 5
    """
    drawn = picture(x)
    parts = [drawn.caption]
    for grid in drawn.grids:
        height, width = grid.extent
        labels = [["".join(cell.lines) for cell in row] for row in grid.rows]
        column = max(len(str(width - 1)), *(len(label) for row in labels for label in row))
        margin = len(str(height - 1))
        if grid.title:
            parts.append(grid.title)
        header = " ".join(str(j).rjust(column) for j in range(width))
        parts.append(" " * (margin + 3) + header)
        parts.append(" " * (margin + 1) + "+" + "-" * (len(header) + 1))
        for i, row in enumerate(labels):
            parts.append(f"{i:>{margin}} | " + " ".join(label.rjust(column) for label in row))
    return "\n".join(parts)


@takes_location
def to_latex(x: Any) -> str:
    """Return the picture of ``x`` as a standalone LaTeX document with one TikZ picture."""
    drawn = picture(x)
    lines = [
        f"% {drawn.caption}",
        r"\documentclass[tikz,border=2mm]{standalone}",
        r"\begin{document}",
        r"\begin{tikzpicture}[x={(0cm,-1cm)},y={(1cm,0cm)},"
        r"cell/.style={rectangle,draw=black,thick,minimum size=1cm,anchor=center}]",
    ]
    for grid in drawn.grids:
        lines += _latex_grid(grid)
    lines += [r"\end{tikzpicture}", r"\end{document}"]
    return "\n".join(lines) + "\n"


def _latex_grid(grid: Grid) -> list[str]:
    height, width = grid.extent
    lines = []
    for i, row in enumerate(grid.rows):
        for j, cell in enumerate(row):
            red, green, blue = cell.fill
            fill = f"{{rgb,255:red,{red};green,{green};blue,{blue}}}"
            label = cell.lines[0]
            if len(cell.lines) > 1:
                label = r"\shortstack{" + r" \\ ".join(cell.lines) + "}"
            place = f"({grid.row + i},{grid.column + j})"
            lines.append(rf"\node[cell,fill={fill}] at {place} {{{label}}};")
    at = [(f"({grid.row + i},{grid.column - 1})", str(i)) for i in range(height)]
    at += [(f"({grid.row - 1},{grid.column + j})", str(j)) for j in range(width)]
    if grid.title:
        at.append((f"({grid.row - 1},{grid.column - 1})", grid.title))
    return lines + [rf"\node at {place} {{\texttt{{{label}}}}};" for place, label in at]


_CELL = 36
_MARGIN = 2


class Drawing(str):
    """The text of a picture, which a notebook shows as the picture."""

    __slots__ = ()

    def _repr_svg_(self) -> str | None:
        return str(self) if self.startswith("<svg") else None


@takes_location
def to_svg(x: Any) -> str:
    """Return the picture of ``x`` as an SVG document."""
    return _svg(picture(x))


def _svg(drawn: Picture) -> str:
    rows = max(grid.row + grid.extent[0] for grid in drawn.grids) + _MARGIN
    columns = max(grid.column + grid.extent[1] for grid in drawn.grids) + _MARGIN
    width, height = columns * _CELL, (rows + 1) * _CELL
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="monospace" font-size="11" '
        'text-anchor="middle">',
        f"<title>{_escape(drawn.caption)}</title>",
        f'<text x="{_CELL // 2}" y="{_CELL // 2}" text-anchor="start">'
        f"{_escape(drawn.caption)}</text>",
    ]
    for grid in drawn.grids:
        parts += _svg_grid(grid)
    return "\n".join([*parts, "</svg>"]) + "\n"


def _escape(text: str) -> str:
    from html import escape  # its table of names takes as long to load as all of this module

    return escape(text)


def _svg_grid(grid: Grid) -> list[str]:
    def corner(i: int, j: int) -> tuple[int, int]:
        return (grid.column + j + 1) * _CELL, (grid.row + i + _MARGIN) * _CELL

    def label(i: int, j: int, what: str, down: int = 0) -> str:
        left, top = corner(i, j)
        place = f'x="{left + _CELL // 2}" y="{top + _CELL // 2 + 4 + down}"'
        return f"<text {place}>{_escape(what)}</text>"

    height, width = grid.extent
    parts = []
    for i, row in enumerate(grid.rows):
        for j, cell in enumerate(row):
            left, top = corner(i, j)
            red, green, blue = cell.fill
            parts.append(
                f'<rect x="{left}" y="{top}" width="{_CELL}" height="{_CELL}" '
                f'fill="rgb({red},{green},{blue})" stroke="black"/>'
            )
            spread = 7 if len(cell.lines) > 1 else 0
            for line, down in zip(cell.lines, (-spread, spread), strict=False):
                parts.append(label(i, j, line, down))
    parts += [label(i, -1, str(i)) for i in range(height)]
    parts += [label(-1, j, str(j)) for j in range(width)]
    if grid.title:
        left, top = corner(-1, -1)
        place = f'x="{left + _CELL // 2}" y="{top}" text-anchor="start" font-weight="bold"'
        parts.append(f"<text {place}>{_escape(grid.title)}</text>")
    return parts


def notebook_svg(x: Any) -> str | None:
    """Return `to_svg` for a notebook: of a large layout its corner; None, so that the text form is
    shown, for other large pictures.
    """
    count = cell_count(x)
    if count is None or count == 0:
        return None
    if count > MAX_NOTEBOOK_CELLS and isinstance(x, Layout | ComposedLayout):
        return _svg(_layout_picture(x, MAX_NOTEBOOK_CELLS))
    return to_svg(x) if count <= MAX_NOTEBOOK_CELLS else None


@takes_location
def draw(x: Any, path: str | Path | None = None) -> str:
    """Draw ``x`` and return the text of the picture, written to ``path`` if one is given: SVG, or
    a table for a name in ``.txt``, or LaTeX for one in ``.tex``. A notebook shows the picture.
    Of a layout with more than `MAX_CELLS` cells the corner is drawn, and the caption says so.

    ``x`` is a layout, composed layout, swizzle, tiled copy, tiled MMA, or
    ``(tv_layout, tiler)``. Raises LayoutError for dynamic operands.
    """
    form = {".txt": to_text, ".tex": to_latex}.get(Path(path or "").suffix, to_svg)
    drawn = Drawing(form(x))
    if path is not None:
        Path(path).write_text(drawn, encoding="utf-8")
    return drawn


@takes_location
def print_latex(x: Any) -> None:
    """Print the TikZ source of the picture of ``x``."""
    print(to_latex(x))


@takes_location
def print_latex_tv(layout_tv: Layout, tiler_mn: Any) -> None:
    """Print the TikZ source of `layout_tv`, a thread-value layout over the tile `tiler_mn`."""
    print(to_latex((layout_tv, tiler_mn)))
