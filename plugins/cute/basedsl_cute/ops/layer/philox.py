"""Philox4x32-10, the counter-based generator of random numbers (Salmon, Moraes, Dror, Shaw:
"Parallel random numbers: as easy as 1, 2, 3", SC 2011).

The random words of a counter depend on it and on the key alone, so that threads need no state, and
results do not depend on which thread makes them.
"""

from __future__ import annotations

from typing import Any

import basedsl_cute as cute
from basedsl_cute import arch

WORDS = 4
"""Random words of a counter."""

_ROUNDS = 10
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_INCREMENTS = (0x9E3779B9, 0xBB67AE85)


def philox(counter: tuple[Any, Any, Any, Any], key: tuple[Any, Any]) -> tuple[Any, ...]:
    """Return the four random words, Uint32, of a counter of four words by a key of two."""
    words = [cute.Uint32(word) for word in counter]
    keys = [cute.Uint32(word) for word in key]
    for _ in range(_ROUNDS):
        highs = [
            arch.mul_hi(words[2 * n], cute.Uint32(factor)) for n, factor in enumerate(_MULTIPLIERS)
        ]
        lows = [words[2 * n] * cute.Uint32(factor) for n, factor in enumerate(_MULTIPLIERS)]
        words = [highs[1] ^ words[1] ^ keys[0], lows[1], highs[0] ^ words[3] ^ keys[1], lows[0]]
        keys = [k + cute.Uint32(step) for k, step in zip(keys, _INCREMENTS, strict=True)]
    return tuple(words)


def exponential(word: Any) -> Any:
    """Return the exponentially distributed Float32 of a random word, infinity for the largest.

    Small ones are as exact as large ones: -log1p(-u) of u = (word + 1/2) / 2^32.
    """
    return 0.0 - cute.math.log1p(0.0 - (word.to(cute.Float32) + 0.5) * 2.0**-32)
