"""Decorated functions as Python objects: copies, pickles, nested definitions, `*args: T`."""

from __future__ import annotations

import copy
import gc
import pickle

import pytest

import basedsl_toy as toy
from basedsl import DSLCallError, DSLError
from basedsl.testing import TraceLog


@toy.jit
def double(x: toy.Int64):
    return x * 2


class Scale:
    def __init__(self, by):
        self.by = by

    @toy.jit
    def times(self, x: toy.Int64):
        return x * self.by


def test_functions_are_copied_and_pickled_as_themselves():
    assert copy.copy(double) is double and copy.deepcopy([double])[0] is double
    assert pickle.loads(pickle.dumps(double)) is double
    compiled = toy.compile(double, 1)
    assert copy.deepcopy({"f": compiled})["f"] is compiled
    with pytest.raises(TypeError, match=r"double.* cannot be pickled: pickle the function"):
        pickle.dumps(compiled)


def test_methods_are_copied_and_pickled_with_their_instance():
    bound = Scale(3).times
    apart = copy.deepcopy(bound)
    bound.__self__.by = 5
    assert (bound(2), apart(2), pickle.loads(pickle.dumps(bound))(2)) == (10, 6, 10)


def test_an_annotation_of_variadic_parameters_is_that_of_each():
    @toy.jit
    def f(n: toy.Int64, *rest: toy.Float64, **named: toy.Int64):
        total = rest[0] / 2
        for x in rest:
            total = total + x
        return n, total, named["k"]

    assert f(1, 1, 2.5, k=3) == (1, 4.0, 3)
    compiled = toy.compile(f, 1, 1, 2, k=3)
    assert compiled(5, 3, 4, k=6) == (5, 8.5, 6)
    with pytest.raises(DSLCallError, match=r"'named\['k'\]' is declared Int64, got the float 1.5"):
        f(1, 2, k=1.5)

    @toy.jit
    def outer(n: toy.Int64):
        return f(n, n, k=1)

    assert outer(3) == (3, 4.5, 1)


def test_a_function_decorated_inside_of_another():
    @toy.jit
    def outer(n: toy.Int64):
        @toy.jit
        def to(m: toy.Int64):
            total = 0
            for i in range(m):
                if i != n:
                    total += i
            return total

        return to(n + 2) + to(3)

    assert outer(2) == 0 + 1 + 3 + 0 + 1


def test_values_of_another_compilation_are_an_error():
    kept = TraceLog()

    @toy.jit
    def keeps(n: toy.Int64):
        kept.append(n)
        return n

    @toy.jit
    def uses(n: toy.Int64):
        return n + kept[0]

    @toy.jit
    def compiles(n: toy.Int64):
        kept.clear()
        kept.append(n)
        toy.compile(uses, 1)
        return n

    assert keeps(1) == 1
    for function in (uses, compiles):
        with pytest.raises(DSLError, match="an Int64 made while another function was compiled"):
            function(1)
    gc.collect()

    @toy.jit
    def compiles_another(n: toy.Int64):
        toy.compile(double, 1)
        return n + 1

    assert compiles_another(1) == 2


def test_a_format_of_what_is_not_known_does_not_leave_the_call():
    texts = []

    @toy.jit
    def f(n: toy.Int64, x: toy.Float64):
        texts.append(f"{n:5d} {x:.2f} {3:3d}")
        return n

    with pytest.raises(DSLError, match="'texts' outlives the call and cannot hold a dynamic value"):
        f(1, 2.0)
