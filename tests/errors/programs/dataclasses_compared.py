import basedsl_toy as toy


from dataclasses import dataclass


@dataclass
class Point:
    x: int
    y: int


@toy.jit
def at_start(k):
    return 1 if Point(k, 1) == Point(0, 1) else 0


at_start(2)
