"""Methods are bound as Python binds them: the instance is the first argument, whatever its name."""

from __future__ import annotations

import types

import pytest

from basedsl.errors import DSLCallError, DSLTypeError
from basedsl_toy import TOY, Int64, jit


class Scale:
    factor = 3

    @jit
    def plain(this, x):
        return x * this.factor

    @jit
    def annotated(it, x: Int64):
        return it.plain(x) + it.factor

    @staticmethod
    @jit
    def static(x):
        return x + 1

    @classmethod
    @jit
    def of_class(cls, x):
        return x + cls.factor


class Point(tuple):
    @jit
    def total(p):
        return p[0] + p[1]


@jit
def free(x):
    return x + 1


@jit
def taken(owner, x):
    return x + owner.factor


def test_the_instance_may_have_any_name():
    scale = Scale()
    assert [scale.plain(x) for x in (2, 5, 7)] == [6, 15, 21]
    assert scale.annotated(4) == 15
    assert Scale.plain(scale, 2) == 6 and Scale.plain(this=scale, x=3) == 9
    assert Point((3, 4)).total() == 7


def test_each_instance_has_its_own_code():
    one, two = Scale(), Scale()
    two.factor = 5
    assert (one.plain(2), two.plain(2), one.plain(2)) == (6, 10, 6)
    one.factor = 7
    assert (one.plain(2), two.plain(2)) == (14, 10)


def test_static_and_class_methods_take_what_python_passes():
    scale = Scale()
    assert (Scale.static(1), scale.static(1)) == (2, 2)
    assert (Scale.of_class(1), scale.of_class(1)) == (4, 4)


def test_a_function_becomes_a_method_where_a_class_gets_it():
    class Later:
        factor = 2

    with pytest.raises(DSLCallError, match="cannot pass a Later"):
        taken(Later(), 1)
    Later.taken = taken
    assert Later().taken(1) == 3

    class Holder:
        same = free
        static = staticmethod(free)

    assert Holder.same(1) == 2 and Holder().static(1) == 2
    with pytest.raises(TypeError, match="Holder"):
        Holder().same()  # Python adds 1 to the instance, too
    assert types.MethodType(free, 7)() == 8


def test_a_method_is_compiled_without_its_instance():
    scale = Scale()
    compiled = scale.plain.compile(2)
    assert compiled(5) == 15


def test_traced_calls_bind_as_calls_from_python():
    scale = Scale()

    @TOY.jit
    def outer(x):
        return scale.plain(x) + Scale.plain(scale, x) + scale.static(x) + scale.of_class(x)

    assert outer(2) == 6 + 6 + 3 + 5


def test_a_bound_method_is_not_decorated():
    class Plain:
        def get(self):
            return 1

    with pytest.raises(DSLTypeError, match="not a bound method"):
        jit(Plain().get)
