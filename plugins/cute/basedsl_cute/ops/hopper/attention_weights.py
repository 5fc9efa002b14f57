"""The columns of a tile's scores on Hopper, by when and how they are made into weights."""

from __future__ import annotations

import basedsl_cute as cute
from basedsl_cute.ops.flash.half_powers import (
    narrow_in_halves,
    powers_by_a_line,
    powers_in_halves,
)
from basedsl_cute.ops.flash.softmax import Powers, as_rows, blocks_of

PAIR = 2  # blocks of eight columns, 16 keys, that weights of 8 bits lie in


def parts_of(scores, cfg):
    """The columns of scores that are made into weights ahead of the wait for the values, and those
    behind it: pieces of them, by rows, and of how their powers are made.
    """
    made = []
    for part in parts(cute.size(scores) // 4, cfg):
        found = pieces(part, cfg)
        made.append([(as_rows(blocks_of(scores, a, b)), kind) for a, b, kind in found])
    return made


def parts(blocks, cfg):
    """The parts of blocks of eight columns: of each the first block, and that behind its last."""
    middle = blocks - blocks * cfg.late // 8
    if converts(cfg):
        middle -= middle % PAIR
    return (0, middle), (middle, blocks)


def pieces(part, cfg):
    """The pieces of a part: the first block, that behind the last, and how powers are made."""
    first, last = part
    if converts(cfg):
        pairs = (last - first) // PAIR
        line = last - PAIR * (pairs * cfg.in_lines // 8)
        halves = line - PAIR * (pairs * cfg.in_halves // 8)
    else:
        line, halves = last, last - (last - first) * cfg.computed // 8
    other = Powers.HALVES if converts(cfg) else Powers.PRODUCTS
    found = (first, halves, Powers.UNIT), (halves, line, other), (line, last, Powers.LINE)
    return [piece for piece in found if piece[0] < piece[1]]


def converts(cfg):
    """True if some powers are made with the conversion, of pairs of blocks."""
    return cfg.in_halves > 0 or cfg.in_lines > 0


def store_weights(weights, ordered, cfg):
    """Store the weights of a tile, 8 bits each, whose numbers are `ordered` as
    `ops.flash.softmax.narrow_weights` tells, or exponents where powers are made here.
    """
    if not converts(cfg):
        weights.store(ordered.load().to(weights.element_type).reshape(weights.shape))
        return
    for part in parts(cute.size(weights) // 4, cfg):
        for first, last, kind in pieces(part, cfg):
            found, to = pairs_of(ordered, weights, first, last)
            if kind is Powers.UNIT:
                to.store(found.load().to(weights.element_type).reshape(to.shape))
            else:
                by = powers_in_halves if kind is Powers.HALVES else powers_by_a_line
                narrow_in_halves(found.load(), to, by)


def pairs_of(ordered, weights, first, last):
    """Blocks `first` to before `last` of what is `ordered` like weights, and of these."""
    columns, pair, rows, two, _ = ordered.layout.shape
    *steps, _ = ordered.layout.stride
    each = columns * rows
    layout = cute.make_layout((columns, pair, rows, (last - first) // two), stride=tuple(steps))
    found = cute.make_tensor(ordered.iterator + first * each, layout)
    flat = cute.make_layout((last - first) * each)
    return found, cute.make_tensor(weights.iterator + first * each, flat)
