"""Questions about the machine, asked in plain Python and while a function is traced."""

import numpy as np

import basedsl_cute as cute
from basedsl_cute.dsl.machine import current_target


@cute.jit
def ask(x: cute.Tensor, seen: cute.Constexpr):
    seen(current_target().name)


def test_a_traced_function_is_told_what_it_is_compiled_for(sim):
    names = []
    x = np.zeros(4, np.float32)
    cute.compile(ask, x, names.append, options="--gpu-arch sm_100a")
    cute.compile(ask, x, names.append)
    assert names == ["sm_100a", "sim"]
    assert current_target().name == "sim"
