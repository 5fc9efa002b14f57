"""Values that have parts, of classes that are made while a program runs."""

import dataclasses

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
