"""Numbers are known to be multiples, through loops and branches."""

import basedsl_cute as cute
from basedsl.testing import TraceLog

seen = TraceLog()


def note(*values):
    seen.append(values)


@cute.jit
def through_a_loop(n: cute.Int32):
    class Place:
        offset = 0

    place = Place()
    place.offset = 0
    odd = Place()
    odd.offset = 0
    for i in range(n):
        note(place.offset, odd.offset)
        place.offset = i * 64
        odd.offset = i * 6
        if i > 3:
            place.offset = 32
    return place.offset


@cute.jit
def through_a_branch(n: cute.Int32):
    x = 24
    if n > 3:
        x = n * 16
    y = 12 if n > 3 else n * 3
    note(x, y)
    return x + y


def divisors(values):
    return [getattr(v, "divby", None) for v in values]


def test_a_loop_keeps_what_divides_every_value(monkeypatch):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sim")
    seen.clear()
    cute.compile(through_a_loop, 5)
    assert divisors(seen[-1]) == [32, 2]
    assert through_a_loop(4) == 192 and through_a_loop(6) == 32 and through_a_loop(0) == 0


def test_a_branch_keeps_powers_of_two(monkeypatch):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sim")
    seen.clear()
    cute.compile(through_a_branch, 5)
    assert divisors(seen[-1]) == [8, 1]
    assert through_a_branch(2) == 30 and through_a_branch(4) == 76
