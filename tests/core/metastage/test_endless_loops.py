"""A `while` that Python alone decides and that does not end is an error."""

import numpy as np
import pytest

import basedsl_toy as toy
from basedsl import DSLError
from basedsl.metastage import loops


def endless(out: toy.Buffer):
    i = 0
    while True:
        i += 1
        out[0] = i


def endless_with_an_exit(out: toy.Buffer):
    i = 0
    while True:
        i += 1
        if i < 0:
            break
        out[0] = i


@pytest.mark.parametrize("fn", [endless, endless_with_an_exit])
def test_it_is_an_error_at_the_while(fn, monkeypatch):
    monkeypatch.setattr(loops, "_MOST_UNROLLED", 100)
    with pytest.raises(DSLError, match="has gone round 100 times while compiling") as caught:
        toy.jit(fn)(np.zeros(1))
    assert caught.value.span.line == fn.__code__.co_firstlineno + 2


def test_what_emits_nothing_may_go_on(monkeypatch):
    monkeypatch.setattr(loops, "_MOST_UNROLLED", 100)

    @toy.jit
    def f(n):
        i = 0
        while i < 1000:
            i += 1
        return n + i

    assert f(1) == 1001
