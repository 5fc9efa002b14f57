import basedsl_toy as toy


from dataclasses import dataclass


@dataclass
class Point:
    x: int
    y: int


@toy.jit
def at_start(k):
    point, start = Point(k, 1), Point(0, 1)
    return 1 if point.x == start.x and point.y == start.y else 0


assert at_start(0) == 1
