"""Calls with arguments that a function does not have: the error says which it has."""

import pytest

import basedsl_cute as cute
from basedsl_cute.algebra.explained_calls import explains_arguments

CALLS = {
    "testing.benchmark": (lambda: None,),
    "testing.tune": (),
    "testing.perf_report": (),
    "sim.ranks": (2,),
    "sim.profile": (),
    "ops.matmul": (),
    "ops.attention": (),
    "runtime.from_dlpack": (),
    "runtime.make_fake_tensor": (),
    "distributed.simulated": (),
}


@pytest.mark.parametrize("path", CALLS)
def test_a_misspelt_keyword_gets_the_parameters(path):
    function = cute
    for name in path.split("."):
        function = getattr(function, name)
    with pytest.raises(TypeError, match=r"argument") as caught:
        function(*CALLS[path], misspelt=1)
    (note,) = caught.value.__notes__
    assert note.startswith(f"hint: it is {function.__name__}(")


def test_errors_of_the_body_are_left_alone():
    @explains_arguments
    def fails(x):
        return len(x)

    assert fails("ab") == 2
    with pytest.raises(TypeError) as caught:
        fails(3)
    assert not hasattr(caught.value, "__notes__")
