"""State of the interpreter and of the library that nobody finds from objects: each call repeats
what static code does to it.
"""

import csv
import logging
import sys
import threading
import types

import pytest

import basedsl_toy as toy
from basedsl import DSLError


def test_levels_of_loggers():
    log = logging.getLogger("basedsl.attacked")
    log.setLevel(10)

    @toy.jit
    def raised(n):
        log.setLevel(log.level + 1)
        return n + log.level

    @toy.jit
    def shown(n):
        return n if log.isEnabledFor(20) else -n

    assert [raised(0), raised(0), raised(0)] == [11, 12, 13]
    assert [shown(3), shown(3)] == [3, 3]
    log.setLevel(30)
    assert shown(3) == -3


def test_the_switch_interval():
    before = sys.getswitchinterval()

    @toy.jit
    def doubled(n):
        sys.setswitchinterval(sys.getswitchinterval() * 2)
        return n

    try:
        doubled(0), doubled(0)
        assert sys.getswitchinterval() == pytest.approx(4 * before)
    finally:
        sys.setswitchinterval(before)


def test_the_name_of_a_thread():
    before = threading.current_thread().name

    @toy.jit
    def named(n):
        threading.current_thread().name += "x"
        return n + len(threading.current_thread().name)

    try:
        assert [named(0), named(0)] == [len(before) + 1, len(before) + 2]
    finally:
        threading.current_thread().name = before


def test_the_recursion_limit_that_static_code_sets_stays():
    before = sys.getrecursionlimit()

    @toy.jit
    def raised(n):
        sys.setrecursionlimit(before + 7)
        return n

    try:
        raised(0)
        assert sys.getrecursionlimit() == before + 7
    finally:
        sys.setrecursionlimit(before)


def test_iterators_without_a_position():
    rows = csv.reader(["1,2", "3,4", "5,6", "7,8"])

    @toy.jit
    def first(n):
        return n + int(next(rows)[0])

    assert [first(0), first(0)] == [1, 3]

    @toy.jit
    def looped(n):
        total = 0
        for _ in range(n):
            total += int(next(rows)[0])
        return total

    with pytest.raises(DSLError, match="'rows', a reader, is used inside staged control flow"):
        looped(2)


def test_the_class_of_a_module_and_of_an_object_with_slots():
    class Other(types.ModuleType):
        pass

    class A:
        __slots__ = ("v",)

    class B:
        __slots__ = ("v",)

    module, thing = types.ModuleType("attacked"), A()
    thing.v = 1

    @toy.jit
    def turned(n):
        found = n + (type(module) is Other) + 10 * (type(thing) is B) * thing.v
        module.__class__, thing.__class__ = Other, B
        return found

    assert [turned(0), turned(0)] == [0, 11]
