"""The configurations of attention of 8 bits on Hopper, by the extent of heads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from basedsl_cute.ops.hopper import attention as hopper

_STAYS = hopper.Config(query_stages=2, persistent=True, by_bits=True)
_NARROW_64 = replace(_STAYS, tile=(192, 160), stages=4, overlaps=True)
_NARROW_SCORED_64 = replace(_NARROW_64, tile=(192, 128))
_NARROW_MASKED_64 = replace(_NARROW_64, tile=(128, 128))
_NARROW_128 = replace(
    _STAYS,
    tile=(192, 96),
    stages=4,
    between=False,
    ahead=True,
    late=4,
    overlaps=True,
    from_end=True,
    by_groups=True,
    in_blocks=True,
)
_NARROW_SCORED_128 = replace(
    _STAYS,
    tile=(128, 128),
    stages=3,
    turns=True,
    between=False,
    ahead=True,
    late=4,
    computed=1,
)
_NARROW_256 = replace(_STAYS, tile=(128, 128), turns=True)
_NARROW_MASKED_256 = replace(_STAYS, tile=(128, 64), stages=4, overlaps=True)
# Of elements of 8 bits: heads' extent -> configurations for products, for functions of scores, and
# for masks of the user's, which take registers: larger tiles would keep numbers in memory.
NARROW_CONFIGS = {
    64: (_NARROW_64, _NARROW_SCORED_64, _NARROW_MASKED_64),
    128: (_NARROW_128, _NARROW_SCORED_128, _NARROW_SCORED_128),
    256: (_NARROW_256, _NARROW_256, _NARROW_MASKED_256),
}
# Weights below a 2^18th of their row's largest are zero, and with slack below a 2^15th to 2^17th:
# all that is lost of so many keys weighs at most an eighth, or with 16,384 keys a sixth, of the
# largest weight, where without slack it is a sixteenth. Steps cost a few instructions each.
_SLACK = {4096: ((0, 3.0),), 16384: ((0, 3.0), (1024, 2.0), (4096, 1.0))}
# Without a mask, functions of scores, or logarithms of sums, which are coarser so: without a bound
# of the keys that a query sees, and with one.
_LAZY: dict[str, Any] = {"by_products": True, "early": True, "slack": _SLACK[4096]}
_NARROW_64_LAZY = replace(
    _NARROW_64,
    tile=(192, 128),
    between=False,
    ahead=True,
    late=4,
    from_end=True,
    by_groups=True,
    in_halves=6,
    **_LAZY,
)
# With a causal mask, what is done once a task takes more of the time: half of the weights by a line
# bring it as far ahead of 16 bits (bench/results/2026-11-24-attention.md).
_NARROW_128_LAZY = replace(_NARROW_128, late=6, in_halves=3, in_lines=2, **_LAZY)
_NARROW_256_LAZY = replace(_NARROW_256, ahead=True, late=4, between=False, in_halves=2, **_LAZY)
NARROW_BY_PRODUCTS = {
    64: (_NARROW_64_LAZY, _NARROW_64_LAZY),
    128: (_NARROW_128_LAZY, replace(_NARROW_128_LAZY, in_halves=0, in_lines=6)),
    256: (_NARROW_256_LAZY, _NARROW_256),
}
# The most keys whose weights are summed after they are rounded.
_KEYS_BY_PRODUCTS = 32768


def narrow_config(width: int, keys: int, is_bounded: bool, has_logs: bool) -> hopper.Config:
    """The configuration for elements of 8 bits without a mask or a function of scores: heads of up
    to `width` elements, so many keys, queries that see some of them alone if it `is_bounded`, and
    logarithms of sums or not.
    """
    of_width, (plain, *_) = next(x for x in NARROW_CONFIGS.items() if width <= x[0])
    if has_logs or keys > _KEYS_BY_PRODUCTS:
        return plain
    found = NARROW_BY_PRODUCTS[of_width][is_bounded]
    if found.slack:
        found = replace(found, slack=next((x for most, x in _SLACK.items() if keys <= most), ()))
        if not found.slack:
            found = replace(found, in_halves=0, in_lines=0)
    return found
