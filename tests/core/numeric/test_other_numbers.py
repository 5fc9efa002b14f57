"""A dynamic number that meets an array, or a number of a class in C that knows no DSL, is an error:
the class would answer False, or compute with an object.
"""

import operator
from decimal import Decimal

import numpy as np
import pytest

import basedsl_toy as toy
from basedsl import DSLTypeError

ARRAY = np.arange(3)


@pytest.mark.parametrize("other", [ARRAY, np.array(2), 2 + 0j, Decimal(2)], ids=repr)
@pytest.mark.parametrize("op", [operator.eq, operator.ne])
def test_equality(op, other):
    with pytest.raises(DSLTypeError, match=r"Int64 [!=]= an? \w+ cannot be computed"):
        toy.jit(lambda n: op(n, other))(2)
    if not isinstance(other, Decimal):
        with pytest.raises(DSLTypeError, match=r"Int64 [!=]= an? \w+ cannot be computed"):
            toy.jit(lambda n: op(other, n))(2)


@pytest.mark.parametrize("op", [operator.add, operator.mul, operator.lt])
def test_arithmetic_of_an_array(op):
    for program in (lambda n: op(n, ARRAY), lambda n: op(ARRAY, n)):
        with pytest.raises(DSLTypeError, match=r"Int64 . an ndarray cannot be computed"):
            toy.jit(program)(2)


def test_membership():
    for program in (lambda n: n in ARRAY, lambda n: n in (Decimal(2), 2)):
        with pytest.raises(DSLTypeError, match="cannot be computed"):
            toy.jit(program)(2)


def test_items_of_an_array_and_classes_in_python_answer():
    class Even:
        def __eq__(self, other):
            return other % 2 == 0

    assert toy.jit(lambda n: (n == ARRAY[2], n == Even(), n == None, n != "2"))(2) == (  # noqa: E711
        *(True, True, False, True),
    )
