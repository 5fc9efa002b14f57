"""The order of a row's elements: keys that compare like them, and the search for a threshold.

Keys are unsigned integers in the order of the numbers, with NaN above infinity: a number's bits,
inverted if it is negative. A search among them takes at most as many steps as they have pairs of
bits, whatever the elements are; keys of 16-bit elements leave out the bits that are always the
same.
"""

from __future__ import annotations

from typing import Any

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.ops.layer.rows import RowPlan, lane_of_row, registers, row_totals

_PIVOTS = 3  # which divide the keys in four, so that a step of the search finds two bits
_SIGN = 0x80000000
_NAN = 0x7FC00000


def unused_bits(plan: RowPlan) -> int:
    """Return the number of low bits in which all elements of the plan's type are alike."""
    known = {cute.BFloat16: 16, cute.Float16: 13, cute.Float32: 0}
    return known[plan.dtype]


def key_bits(plan: RowPlan) -> int:
    """Return the number of bits of the plan's keys."""
    return 32 - unused_bits(plan)


def keys_of(values: Any, plan: RowPlan) -> Any:
    """Return the keys of a vector of Float32; 0 and -0 have the same."""
    bits = (values + 0.0).bitcast(cute.Uint32)
    bits = cute.where(values == values, bits, cute.Uint32(_NAN))
    inverted = (bits.bitcast(cute.Int32) >> 31).bitcast(cute.Uint32) | cute.Uint32(_SIGN)
    return (bits ^ inverted) >> cute.Uint32(unused_bits(plan))


def key_of(value: Any, plan: RowPlan) -> Any:
    """Return the key of a number of Float32."""
    return keys_of(cute.TensorSSA.from_elements((value,)), plan)[0]


@cute.jit
def within_row(keys: Any, plan: cute.Constexpr):
    """Return keys of this thread's part of a row, with 0, which no number has, beyond its end."""
    if cute.const_expr(plan.vectors % plan.sharing == 0):
        return keys
    fragment = registers(plan, cute.Uint32)
    fragment.store(keys)
    c = plan.chunks - 1
    if c * plan.sharing + lane_of_row(plan) >= plan.vectors:
        for i in cute.range_constexpr(plan.vector):
            fragment[i, c] = cute.Uint32(0)
    return fragment.load()


def sum_where(condition: Any, weights: Any) -> Any:
    """Return the sum of a warp's `weights`, a vector or a number, where the vector `condition`
    holds.
    """
    chosen = cute.where(condition, weights, 0.0)
    return arch.warp_reduction_sum(chosen.reduce(cute.ReductionOp.ADD, 0.0, 0))


@cute.jit
def threshold(
    keys: Any,
    weights: Any,
    low: Any,
    high: Any,
    limit: Any,
    slots: Any,
    plan: cute.Constexpr,
    turn: Any,
):
    """Return the least key from `low` to `high` above which the row's weights sum to less than
    `limit`, which they do for `high`; and the next turn of the exchange, which needs 3 slots.

    `weights` are numbers of Float32 of this thread's elements, or one of all.
    """
    while low < high:
        step = (high - low) >> 2
        pivots = [low + step * n for n in range(1, _PIVOTS + 1)]
        sums = row_totals([sum_where(keys > p, weights) for p in pivots], slots, plan, turn)
        turn += 1
        found_low, found_high = pivots[-1] + 1, high
        for n in cute.range_constexpr(_PIVOTS - 1, -1, -1):
            below = low
            if cute.const_expr(n > 0):
                below = pivots[n - 1] + 1
            found_low = cute.where(sums[n] < limit, below, found_low)
            found_high = cute.where(sums[n] < limit, pivots[n], found_high)
        low, high = found_low, found_high
    return low, turn
