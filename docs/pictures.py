"""Draws the pictures of the documentation, `python docs/pictures.py`, into `docs/pictures/`."""

from pathlib import Path

import basedsl_cute as cute

FOLDER = Path(__file__).parent / "pictures"
ROWS = cute.make_layout((4, 8), stride=(8, 1))
TILER = (2, 4)


def pictures():
    """The name of each picture, and what it draws."""
    columns = cute.make_layout((4, 8))
    threads, values = cute.make_layout((4, 8), stride=(8, 1)), cute.make_layout((2, 2))
    tv, tile = cute.make_layout_tv(threads, values)[::-1]
    copy = cute.make_tiled_copy_tv(
        cute.make_copy_atom(cute.nvgpu.CopyUniversalOp(), cute.Float32, num_bits_per_copy=64),
        cute.make_layout((8, 4), stride=(4, 1)),
        cute.make_layout((1, 2)),
    )
    mma = cute.make_tiled_mma(cute.nvgpu.warp.MmaF16BF16Op(cute.Float16, cute.Float32, (16, 8, 16)))
    return {
        "rows": ROWS,
        "columns": columns,
        "nested": cute.make_layout(((2, 2), (2, 4)), stride=((1, 8), (2, 16))),
        "composition": cute.composition(ROWS, cute.make_layout((4, 4), stride=(1, 8))),
        "complement": cute.complement(cute.make_layout(4, stride=2), 16),
        "coalesce": cute.coalesce(cute.make_layout((2, (1, 6)), stride=(1, (6, 2)))),
        "logical_divide": cute.logical_divide(ROWS, TILER),
        "zipped_divide": cute.zipped_divide(ROWS, TILER),
        "logical_product": cute.logical_product(cute.make_layout((2, 2)), cute.make_layout((2, 3))),
        "blocked_product": cute.blocked_product(cute.make_layout((2, 2)), cute.make_layout((2, 3))),
        "raked_product": cute.raked_product(cute.make_layout((2, 2)), cute.make_layout((2, 3))),
        "right_inverse": cute.right_inverse(ROWS),
        "swizzle": cute.make_swizzle(2, 0, 3),
        "swizzled_rows": cute.make_composed_layout(
            cute.make_swizzle(2, 0, 3), 0, cute.make_layout((4, 8), stride=(8, 1))
        ),
        "thread_values": (tv, tile),
        "tiled_copy": copy,
        "mma": mma,
    }


def main():
    FOLDER.mkdir(exist_ok=True)
    for name, thing in pictures().items():
        cute.draw(thing, FOLDER / f"{name}.svg")


if __name__ == "__main__":
    main()
