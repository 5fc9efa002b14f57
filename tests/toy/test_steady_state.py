"""A call in steady state is native: no Python of the library runs."""

import sys

from basedsl.location import is_internal
from basedsl_toy import jit


@jit
def inc(x):
    return x + 1


def calls_in_the_library(fn, *args):
    """The result of a call, and the library's Python functions that it ran."""
    seen = []

    def note(frame, event, arg):
        if event == "call" and is_internal(frame.f_code.co_filename):
            seen.append(frame.f_code.co_qualname)

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        result = fn(*args)
    finally:
        sys.setprofile(before)
    return result, seen


def test_the_third_call_runs_no_python_of_the_library():
    first, second, third = (calls_in_the_library(inc, n) for n in (5, 6, 7))
    assert [result for result, _ in (first, second, third)] == [6, 7, 8]
    assert "Driver.call" in first[1] and "Driver.call" in second[1]
    assert "Driver._load_or_compile" in first[1]
    assert "Driver._load_or_compile" not in second[1]
    assert third[1] == []
