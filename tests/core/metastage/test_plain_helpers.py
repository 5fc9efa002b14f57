"""Helpers that ask for the class of a number are watched, whatever else watches the interpreter."""

import sys

import pytest

import basedsl_toy as toy
from basedsl import DSLError


def is_int(v):
    return type(v) is int


def ask(n):
    return n + is_int(n)


@pytest.fixture
def hooks():
    """Puts the hooks back that a test sets."""
    before = sys.getprofile(), sys.gettrace()
    yield
    sys.setprofile(before[0])
    sys.settrace(before[1])


@pytest.mark.parametrize("taken", ["none", "profiler", "debugger"])
def test_a_question_is_an_error_under_a_profiler_too(taken, hooks):
    sys.setprofile((lambda *event: None) if taken == "profiler" else None)
    sys.settrace((lambda *event: None) if taken == "debugger" else None)
    held = sys.getprofile(), sys.gettrace()
    with pytest.raises(DSLError, match=r"type\(v\) of a dynamic Int64 is asked in 'is_int'"):
        toy.jit(ask)(3)
    assert (sys.getprofile(), sys.gettrace()) == held


def test_an_error_says_that_nothing_can_watch(hooks):
    sys.setprofile(lambda *event: None)
    sys.settrace(lambda *event: None)
    with pytest.raises(DSLError, match="'is_int' asks for the class of a value, and cannot be"):
        toy.jit(ask)(3)
