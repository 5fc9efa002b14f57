"""Pictures: what is drawn where, in the three output forms."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

from basedsl_cute import algebra as cute
from basedsl_cute.algebra.draw import COLOURS, picture

SVG = "{http://www.w3.org/2000/svg}"

MMA = cute.make_mma_tiling(cute.mma_atom("SM80_16x8x16_F32F16F16F32_TN"), (2, 1, 1))
COPY = cute.make_copy_tiling_of_mma(cute.copy_atom("SM75_U32x4_LDSM_N", 16), MMA, "A")
TILER, TV = cute.make_layout_tv(cute.make_layout((2, 4), (4, 1)), cute.make_layout((2, 2)))

DRAWABLE: dict[str, tuple[Any, int]] = {
    "layout": (cute.make_layout((4, 8), (8, 1)), 32),
    "vector": (cute.make_layout(5, 3), 5),
    "rank 3": (cute.make_layout((2, (2, 2), 3)), 24),
    "identity": (cute.make_identity_layout((2, 3)), 6),
    "swizzle": (cute.make_swizzle(2, 1, 3), 32),
    "wide swizzle": (cute.make_swizzle(3, 4, 3), 64),
    "composed": (cute.gmma_smem_atom("K_SW64", 16), 256),
    "thread-value": ((TV, TILER), 32),
    "tiled copy": (COPY, 2 * 32 * 16),
    "tiled mma": (MMA, 32 * 16 + 8 * 16 + 32 * 8),
}


def cells(svg: str) -> list[str]:
    root = ET.fromstring(svg)
    return [rect.attrib["fill"] for rect in root.iter(f"{SVG}rect")]


@pytest.mark.parametrize("name", sorted(DRAWABLE))
def test_every_kind_draws_in_every_form(name: str, tmp_path: Path) -> None:
    thing, count = DRAWABLE[name]
    path = tmp_path / "picture.svg"
    svg = cute.draw(thing, path)
    assert path.read_text(encoding="utf-8") == svg == cute.to_svg(thing)
    assert len(cells(svg)) == count
    assert set(cells(svg)) <= {f"rgb({r},{g},{b})" for r, g, b in COLOURS}
    latex = cute.to_latex(thing)
    assert latex.count(r"\node[cell,") == count
    assert latex.count("{") == latex.count("}") and r"\end{document}" in latex
    caption = picture(thing).caption
    assert cute.to_text(thing).startswith(caption)
    assert latex.startswith(f"% {caption}")


def test_text_shows_indices_with_coordinates() -> None:
    assert cute.to_text(cute.make_layout((2, 3), (3, 1))) == "\n".join(
        ["(2,3):(3,1)", "    0 1 2", "  +------", "0 | 0 1 2", "1 | 3 4 5"]
    )


def test_a_swizzle_shows_the_permuted_blocks() -> None:
    rows = cute.to_text(cute.make_swizzle(1, 0, 1)).splitlines()[3:]
    assert rows == ["0 | 0 1", "1 | 3 2"]
    drawn = cute.to_text(cute.make_swizzle(1, 4, 1)).splitlines()
    assert drawn[0] == "S<1,4,1>, in blocks of 16" and drawn[3:] == rows


def test_the_name_of_the_file_says_which_form(tmp_path: Path) -> None:
    layout = cute.make_layout((2, 3))
    forms = {"a.svg": cute.to_svg, "a.txt": cute.to_text, "a.tex": cute.to_latex, "a": cute.to_svg}
    for name, form in forms.items():
        assert cute.draw(layout, tmp_path / name) == form(layout)
        assert (tmp_path / name).read_text(encoding="utf-8") == form(layout)


def test_tiled_operations_of_the_front_end_draw_themselves() -> None:
    import basedsl_cute as front
    from basedsl_cute.nvgpu import warp

    copy = front.make_tiled_copy_tv(
        front.make_copy_atom(front.nvgpu.CopyUniversalOp(), front.Float16, num_bits_per_copy=64),
        front.make_layout((4, 8)),
        front.make_layout((1, 4)),
    )
    mma = front.make_tiled_mma(warp.MmaF16BF16Op(front.Float16, front.Float32, (16, 8, 16)))
    for thing in (copy, mma):
        assert front.draw(thing) == thing._repr_svg_() == cute.to_svg(thing.tiling)
        assert "T31" in cute.to_text(thing) and "T31" in cute.to_latex(thing)


def test_thread_value_cells_are_labelled_and_coloured_by_thread() -> None:
    grid = picture((TV, TILER)).grids[0]
    seen = set()
    for i, row in enumerate(grid.rows):
        for j, cell in enumerate(row):
            thread, value = (int(line[1:]) for line in cell.lines)
            assert TV((thread, value)) == i + TILER[0] * j
            assert cell.fill == COLOURS[thread % 8]
            seen.add((thread, value))
    assert len(seen) == cute.size(TV)


def test_a_tiled_mma_shows_real_lanes_and_broadcasts() -> None:
    volta = cute.make_mma_tiling(cute.mma_atom("SM70_8x8x4_F32F16F16F32_TN"))
    a, b, c = picture(volta).grids
    assert (a.title, b.title, c.title) == ("A", "B", "C")
    assert a.rows[4][0].lines == ("T16", "V0")
    assert (b.extent, c.extent) == ((4, 8), (8, 8))
    two_by_two = cute.make_mma_tiling(cute.mma_atom("SM80_16x8x16_F32F16F16F32_TN"), (2, 2, 1))
    shared = picture(two_by_two).grids[0].rows[0][0]
    assert shared.lines == ("T0+1", "V0")


def test_mma_cells_agree_with_the_partition() -> None:
    grid = picture(MMA).grids[2]
    tile = cute.make_identity_layout(MMA.tile_shape_mnk[:2])
    for thread in (0, 5, 33, 63):
        part, offset = MMA.partition("C", tile, thread)
        for value in range(cute.size(part)):
            i, j = cute.add_offset(cute.add_offset((0, 0), offset), part(value))
            assert grid.rows[i][j].lines == (f"T{thread}", f"V{value}")


def test_latex_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    cute.print_latex(cute.make_layout((2, 2)))
    assert r"\begin{tikzpicture}" in capsys.readouterr().out
    cute.print_latex_tv(TV, TILER)
    assert r"\shortstack{T0 \\ V0}" in capsys.readouterr().out


def test_notebooks_show_what_fits_and_fall_back_to_text(tmp_path: Path) -> None:
    assert cute.make_layout((4, 8))._repr_svg_().startswith("<svg")
    for thing in (MMA, COPY, cute.make_swizzle(2, 0, 3), cute.gmma_smem_atom("K_SW32", 16)):
        assert re.match(r"<svg", thing._repr_svg_())
    large = cute.make_layout((1024, 1024))._repr_svg_()
    assert "(1024,1024):(1,1024): the first 32 x 32 of 1024 x 1024" in large
    assert cute.draw(MMA)._repr_svg_() == cute.draw(MMA)
    assert cute.draw(MMA, tmp_path / "mma.txt")._repr_svg_() is None
    assert cute.make_layout((cute.Dyn("n"), 4))._repr_svg_() is None


def test_a_layout_too_large_shows_its_corner() -> None:
    drawn = picture(cute.make_layout((1024, 1024), (1024, 1)))
    assert drawn.caption.endswith(": the first 32 x 32 of 1024 x 1024")
    assert drawn.grids[0].extent == (32, 32)
    assert drawn.grids[0].rows[3][5].lines == (str(3 * 1024 + 5),)
    row = picture(cute.make_layout(1 << 20))
    assert row.grids[0].extent == (1, 32)


def test_what_cannot_be_drawn_says_why() -> None:
    with pytest.raises(cute.LayoutError, match="dynamic extents"):
        cute.draw(cute.make_layout((cute.Dyn("n"), 4)))
    with pytest.raises(cute.LayoutError, match="1048576 cells"):
        cute.draw((cute.make_layout((1024, 1024)), (1024, 1024)))
    with pytest.raises(cute.LayoutError, match="cannot draw 'text'"):
        cute.draw("text")
