"""`frame_stack`: calls at any depth find their frames in a chunk that is there."""

import resource

import pytest

from basedsl.frame_stack import in_one_chunk

DEPTHS = range(300)


def faults_at(depth):
    """The pages that 200 calls touch for the first time, made from under `depth` calls."""
    if depth:
        return faults_at(depth - 1)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(200):
        many_values()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def many_values():
    a, b, c, d, e, f, g, h = 1, 2, 3, 4, 5, 6, 7, 8
    return [a, b, c, d, e, f, g, h]


def test_no_depth_maps_a_chunk_for_each_call():
    inside = in_one_chunk(faults_at)
    assert max(inside(depth) for depth in DEPTHS) < 100


def test_what_it_is_given_comes_back():
    @in_one_chunk
    def divide(a: int, *, by: int) -> float:
        """Quotient."""
        return a / by

    assert divide(3, by=2) == 1.5
    assert (divide.__name__, divide.__doc__) == ("divide", "Quotient.")
    with pytest.raises(ZeroDivisionError):
        divide(1, by=0)
