import contextlib

import basedsl_toy as toy


@toy.jit
def guarded(n: toy.Int64):
    with contextlib.suppress(ValueError):
        n = n + 1
    return n


guarded(1)
