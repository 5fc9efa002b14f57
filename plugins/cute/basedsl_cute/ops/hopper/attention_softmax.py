"""The softmax of a configuration of attention on Hopper, and the factor of its scores."""

from __future__ import annotations

import basedsl_cute as cute
from basedsl_cute import arch
from basedsl_cute.ops.flash.softmax import OnlineSoftmax
from basedsl_cute.ops.hopper.attention_lazy import NarrowLazySoftmax

# Weights of 8 bits are multiplied by two to the power of this: at most 256 of e4m3's 448.
NARROW_OFFSET = 8
LEAST_SCALE = 2.0**-100


def softmax_of(rows, factor, dtype, cfg):
    """The softmax of a thread's rows."""
    if cfg.slack:
        return NarrowLazySoftmax(rows, factor, cfg.slack, cfg.tile[1], NARROW_OFFSET)
    return OnlineSoftmax(rows, factor, NARROW_OFFSET if dtype.width == 8 else 0, cfg.by_bits)


def scale_of_head(scale, operand_scales, head, key_head, batch):
    """The factor of products of a head, with those of its queries and of its keys, if any."""
    of_queries, of_keys = operand_scales[:2]
    if of_queries is not None:
        scale = scale * of_queries[head, batch]
    if of_keys is not None:
        scale = scale * of_keys[key_head, batch]
    return scale


def positive(scale):
    """The factor of products of which the largest are found before they are multiplied: NaN for a
    negative one, and for zero, whose products with hidden scores would be NaN, next to nothing.
    """
    return cute.where(scale >= 0.0, arch.fmax(scale, LEAST_SCALE), float("nan"))
