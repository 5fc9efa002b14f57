"""A program's own classes as arguments: `DSL.argument_adapter`."""

from __future__ import annotations

import pytest

import basedsl_toy as toy
from basedsl import DSL, DSLCallError, DSLTypeError

OWN = DSL(type(toy.TOY.language)())


class Temperature:
    def __init__(self, celsius):
        self.celsius = celsius


class Hot(Temperature):
    pass


@OWN.argument_adapter(Temperature)
def in_kelvin(temperature):
    return temperature.celsius + 273.0


@OWN.jit
def double(t):
    return t * 2


def test_values_of_the_class_and_its_subclasses_are_converted_at_every_call():
    assert [double(Temperature(c)) for c in (27.0, -273.0)] == [600.0, 0.0]
    assert double(Hot(27.0)) == double(300.0)


def test_another_dsl_does_not_know_them():
    @toy.jit
    def same(t):
        return t * 2

    with pytest.raises((DSLCallError, DSLTypeError, TypeError)):
        same(Temperature(1.0))


def test_an_adapter_that_returns_its_own_class():
    @OWN.argument_adapter(Loop)
    def again(loop):
        return Loop()

    with pytest.raises(DSLCallError, match="an adapter makes"):
        double(Loop())


class Loop:
    pass


@pytest.mark.parametrize("kinds", [(), (3,), ("Loop",)])
def test_adapters_are_registered_for_classes(kinds):
    with pytest.raises(DSLTypeError, match="for classes, not for"):
        OWN.argument_adapter(*kinds)
