"""The schedule of a persistent Blackwell GEMM on the simulator, beside its model on paper.

`schedule` has one block compute a row of tiles, one after another. What its warps and units did is
replayed on a modelled multiprocessor (`cute.sim.predict`), whose rates are those that the model
takes; a tile's loads, products and epilogue are then pieces of one timeline.
"""

import statistics
from collections import Counter
from itertools import pairwise
from typing import Any, NamedTuple

from basedsl_cute.sim import predict

EPILOGUE_WARP = "warp 0"


class Tile(NamedTuple):
    """The cycles at which each part of a tile begins and ends, and when its accumulators were
    there: (begin, end).
    """

    loads: tuple[float, float]
    products: tuple[float, float]
    committed: float
    epilogue: tuple[float, float]
    stores: tuple[float, float]


def schedule(function: Any, given: Any, tiles: int, stored: int) -> list[Tile]:
    """The tiles that one block of the kernel of `function(*given)` computes, `tiles` of them, each
    of `stored` bytes of C.
    """
    (found,) = predict(function, *given, arch="sm_100a", timeline=True)
    slices = [one for one in found.slices if one.block == 0]
    copies = [one for one in slices if one.track == "TMA"]
    sizes = [int(one.name.split()[1]) for one in copies]
    counts = Counter(sizes)
    (of_c,) = (size for size in counts if size * counts[size] == stored * tiles)
    loads = [one for one, size in zip(copies, sizes, strict=True) if size != of_c]
    stores = [one for one, size in zip(copies, sizes, strict=True) if size == of_c]
    products = [one for one in slices if one.track == "tensor cores"]
    mine = [one for one in slices if one.track == EPILOGUE_WARP]
    # The first access to tensor memory allocates it; those behind the tiles' loads free it.
    reads = [i for i, one in enumerate(mine) if one.name.endswith(" tensor memory")][1:]
    reads = reads[: len(reads) // tiles * tiles]
    out = []
    for tile in range(tiles):
        of_loads, of_products, of_stores, of_reads = (
            part(pieces, tile, tiles) for pieces in (loads, products, stores, reads)
        )
        first = of_reads[0]
        # What the warp last waited for, before it read, is the barrier of the accumulators.
        woken = next(one for one in reversed(mine[:first]) if one.name.endswith(" mbarrier"))
        out.append(
            Tile(
                span(of_loads),
                span(of_products),
                woken.start + woken.length,
                (mine[first].start, max(one.start for one in of_stores)),
                span(of_stores),
            )
        )
    return out


def part(pieces: list[Any], tile: int, tiles: int) -> list[Any]:
    """The pieces of one tile of several, which have equally many, in order."""
    count, rest = divmod(len(pieces), tiles)
    assert count and not rest, (len(pieces), tiles)
    return pieces[tile * count : (tile + 1) * count]


def span(pieces: list[Any]) -> tuple[float, float]:
    return min(one.start for one in pieces), max(one.start + one.length for one in pieces)


def shared(one: tuple[float, float], other: tuple[float, float]) -> float:
    """The cycles that two spans have in common."""
    return max(0.0, min(one[1], other[1]) - max(one[0], other[0]))


def step(tiles: list[Tile]) -> float:
    """The cycles from the end of one tile's products to that of the next one's, the median."""
    ends = [tile.products[1] for tile in tiles]
    return statistics.median(b - a for a, b in pairwise(ends))


def print_schedule(title: str, tiles: list[Tile], model: Any, stores: float) -> None:
    """Print the tiles as a table, and beside them what the model says, a `TileTime`; `stores` are
    the cycles that the bytes of C take of a multiprocessor's share of L2, which it leaves out.
    """
    print(f"### {title}\n")
    print(
        "| tile | loads | products | accumulators there | epilogue | stores done "
        "| epilogue during the next tile's products |"
    )
    print("|---|---|---|---|---|---|---|")
    for i, tile in enumerate(tiles):
        hidden = "-"
        if i + 1 < len(tiles):
            length = tile.epilogue[1] - tile.epilogue[0]
            hidden = f"{shared(tile.epilogue, tiles[i + 1].products) / length:.0%}"
        loads, products, epilogue = (
            f"{begin:.0f} to {end:.0f}" for begin, end in (tile.loads, tile.products, tile.epilogue)
        )
        print(
            f"| {i} | {loads} | {products} | {tile.committed:.0f} | {epilogue} "
            f"| {tile.stores[1]:.0f} | {hidden} |"
        )
    busy = ", ".join(
        f"{name.replace('_', ' ')} {getattr(model, name):.0f}" for name in model._fields
    )
    print(
        f"\nFrom tile to tile {step(tiles):.0f} cycles; on paper {model.cycles:.0f}, bound by "
        f"{model.bound.replace('_', ' ')} ({busy}), without the {stores:.0f} of C's bytes in L2.\n"
    )
