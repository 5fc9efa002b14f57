"""The columns of a tile's scores on Hopper, by when and how they are made into weights."""

from __future__ import annotations

import basedsl_cute as cute
from basedsl_cute.ops.flash.half_powers import narrow_in_halves
from basedsl_cute.ops.flash.softmax import Powers, as_rows, blocks_of

PAIR = 2  # blocks of eight columns, 16 keys, that weights of 8 bits lie in


def parts_of(scores, cfg):
    """The columns of scores that are made into weights ahead of the wait for the values, and those
    behind it: pairs of them, by rows, and of how their powers are made.
    """
    made = []
    for first, last in parts(cute.size(scores) // 4, cfg):
        cut, other = first_in_halves(first, last, cfg), Powers.HALVES
        if not cfg.in_halves:
            cut, other = last - (last - first) * cfg.computed // 8, Powers.PRODUCTS
        pieces = ((first, cut, Powers.UNIT), (cut, last, other))
        made.append([(as_rows(blocks_of(scores, a, b)), kind) for a, b, kind in pieces if a < b])
    return made


def parts(blocks, cfg):
    """The parts of blocks of eight columns: of each the first block, and that behind its last."""
    middle = blocks - blocks * cfg.late // 8
    if cfg.in_halves:
        middle -= middle % PAIR
    return (0, middle), (middle, blocks)


def first_in_halves(first, last, cfg):
    """The first block of a part, of pairs of blocks, whose weights are made in half precision."""
    pairs = (last - first) // PAIR
    return last - PAIR * (pairs * cfg.in_halves // 8)


def store_weights(weights, ordered, cfg):
    """Store the weights of a tile, 8 bits each, whose numbers are `ordered` as
    `ops.flash.softmax.narrow_weights` tells; those to be made in half precision are exponents.
    """
    if not cfg.in_halves:
        weights.store(ordered.load().to(weights.element_type).reshape(weights.shape))
        return
    for first, last in parts(cute.size(weights) // 4, cfg):
        cut = first_in_halves(first, last, cfg)
        if first < cut:
            found, to = pairs_of(ordered, weights, first, cut)
            to.store(found.load().to(weights.element_type).reshape(to.shape))
        if cut < last:
            found, to = pairs_of(ordered, weights, cut, last)
            narrow_in_halves(found.load(), to)


def pairs_of(ordered, weights, first, last):
    """Blocks `first` to before `last` of what is `ordered` like weights, and of these."""
    columns, pair, rows, two, _ = ordered.layout.shape
    *steps, _ = ordered.layout.stride
    each = columns * rows
    layout = cute.make_layout((columns, pair, rows, (last - first) // two), stride=tuple(steps))
    found = cute.make_tensor(ordered.iterator + first * each, layout)
    flat = cute.make_layout((last - first) * each)
    return found, cute.make_tensor(weights.iterator + first * each, flat)
