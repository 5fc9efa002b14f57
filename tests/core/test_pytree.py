"""Values that have parts: of classes that are made while a program runs, and namespaces."""

import dataclasses
import types

from basedsl.pytree import flatten, unflatten
from basedsl_toy import Int32, jit


def scaled_sum(factor):
    """A dataclass of x and y; up to Python 3.11 it says that it is of the module `types`."""
    return dataclasses.make_dataclass(
        "Args",
        [("x", Int32), ("y", Int32)],
        namespace={"total": lambda self: (self.x + self.y) * factor},
        frozen=True,
    )


def test_a_dataclass_that_was_made_while_the_program_runs():
    @jit
    def total(args):
        return args.total()

    assert total(scaled_sum(2)(Int32(3), Int32(4))) == 14
    assert total(scaled_sum(3)(Int32(3), Int32(4))) == 21  # of the same name, another method
    assert total(scaled_sum(2)(Int32(5), Int32(4))) == 18


def test_a_namespace_is_a_result_and_rebuilt():
    @jit
    def both(x):
        return types.SimpleNamespace(sum=x + 1, parts=(x, 2))

    found = both(Int32(3))
    assert found == types.SimpleNamespace(sum=4, parts=(3, 2))
    node, leaves = flatten(found)
    assert unflatten(node, leaves) == found
