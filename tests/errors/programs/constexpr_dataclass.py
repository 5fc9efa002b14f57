from dataclasses import dataclass

import basedsl_toy as toy


@dataclass
class Sizes:
    first: int


@toy.jit
def pick(n: toy.Int64, sizes: toy.Constexpr):
    return n + sizes.first


pick(1, Sizes(2))
