"""Objects that captured code can read but not change: arrays, objects of libraries, attributes of
subclasses of built-in classes. Each line of the tables is a loop and a branch; of what is refused,
also a branch that uses an object of the module.
"""

# mypy: ignore-errors
# ruff: noqa: F401

import array
import collections
import ctypes
import decimal
import functools
import io
import itertools
import linecache
import logging
import queue
import random
import re
import threading
import types

import numpy as np

from basedsl.conformance.cases import program, refused


class Items(list):
    pass


class Pair(tuple):
    pass


class Row(collections.deque):
    pass


class Number(int):
    pass


class Table(dict):
    pass


class Slotted:
    __slots__ = ("a", "n")


class Own(random.Random):
    pass


class Holder:
    def __init__(self):
        self.array = np.zeros(2, np.int64)
        self.lock = threading.RLock()
        self.n = 0

    def bump(self):
        self.n += 1

    def store(self):
        self.array[0] += 1

    def locked(self):
        self.lock.acquire()
        self.n += 1


def holding(obj, **attributes):
    for name, value in attributes.items():
        setattr(obj, name, value)
    return obj


# Name -> how `it` is made, what captured code does, what is read afterwards.
CHANGED = {
    "an_array": ("np.zeros(2, np.int64)", "it[0] += 1", "int(it[0])"),
    "a_view": ("np.zeros(2, np.int64)[1:]", "it[0] += 1", "int(it[0])"),
    "an_array_of_objects": ("np.zeros(2, object)", "it[0] += 1", "int(it[0])"),
    "an_array_of_the_library": ("array.array('i', [0])", "it[0] += 1", "it[0]"),
    "a_memoryview": ("memoryview(bytearray(4))", "it[0] += 1", "it[0]"),
    "a_text": ("io.StringIO()", "it.write('x')", "it.tell()"),
    "a_stream_of_bytes": ("io.BytesIO()", "it.write(b'x')", "it.tell()"),
    "a_user_dict": ("collections.UserDict(a=0)", "it['a'] += 1", "it['a']"),
    "a_user_list": ("collections.UserList([0])", "it[0] += 1", "it[0]"),
    "a_chain": ("collections.ChainMap({'a': 0})", "it['a'] += 1", "it['a']"),
    "a_queue": ("queue.Queue()", "it.put(1)", "it.qsize()"),
    "a_stack": ("queue.LifoQueue()", "it.put(1)", "it.qsize()"),
    "a_c_array": ("(ctypes.c_int * 2)()", "it[0] += 1", "it[0]"),
    "a_c_number": ("ctypes.c_int(0)", "it.value += 1", "it.value"),
    "random_numbers": ("random.Random(1)", "it.random()", "it.randrange(9)"),
    "an_own_source_of_numbers": ("Own(1)", "it.random()", "it.randrange(9)"),
    "numbers_of_numpy": ("np.random.RandomState(1)", "it.rand()", "it.randint(9)"),
    "a_generator_of_numpy": ("np.random.default_rng(1)", "it.random()", "int(it.integers(9))"),
    "an_array_in_an_object": ("Holder()", "it.array[0] += 1", "int(it.array[0])"),
    "an_array_by_a_method": ("Holder()", "it.store()", "int(it.array[0])"),
    "an_array_in_a_list": ("[np.zeros(1, np.int64)]", "it[0][0] += 1", "int(it[0][0])"),
    "an_array_in_a_tuple": ("(np.zeros(1, np.int64),)", "it[0][0] += 1", "int(it[0][0])"),
    "an_array_in_a_dict": ("{'a': np.zeros(1, np.int64)}", "it['a'][0] += 1", "int(it['a'][0])"),
    "an_array_in_a_slot": (
        "holding(Slotted(), a=np.zeros(1, np.int64))",
        "it.a[0] += 1",
        "int(it.a[0])",
    ),
    "an_attribute_of_a_list": ("holding(Items([0]), c=0)", "it.c += 1", "it.c"),
    "an_attribute_of_a_tuple": ("holding(Pair([0]), c=0)", "it.c += 1", "it.c"),
    "an_attribute_of_a_deque": ("holding(Row([0]), c=0)", "it.c += 1", "it.c"),
    "an_attribute_of_a_dict": ("holding(Table(), c=0)", "it.c += 1", "it.c"),
    "an_attribute_of_an_int": ("holding(Number(3), c=0)", "it.c += 1", "it.c"),
    "an_attribute_of_an_exception": ("holding(ValueError(1), c=0)", "it.c += 1", "it.c"),
    "a_context_of_decimals": ("decimal.Context(prec=5)", "it.prec += 1", "it.prec"),
    "a_partial": ("functools.partial([0].append, 1)", "it()", "len(it.func.__self__)"),
    "a_method_of_a_list": ("[0].append", "it(1)", "len(it.__self__)"),
    "a_method_of_an_array": (
        "np.zeros(2, np.int64).__setitem__",
        "it(0, it.__self__[0] + 1)",
        "int(it.__self__[0])",
    ),
}
USED = {
    "a_lock": ("threading.RLock()", "it.acquire()", "0"),
    "a_lock_in_an_object": ("Holder()", "it.locked()", "it.n"),
    "a_simple_queue": ("queue.SimpleQueue()", "it.put(1)", "it.qsize()"),
    "a_logger": ("logging.getLogger('basedsl.conformance')", "it.debug('x')", "0"),
    "variables_of_a_thread": ("holding(threading.local(), c=0)", "it.c += 1", "it.c"),
    "a_pointer": ("ctypes.pointer(ctypes.c_int(0))", "it[0] += 1", "it[0]"),
}
RIGHT = {
    "reading_an_array": ("np.arange(3)", "r += int(it[1])", "int(it[2])"),
    "reading_a_random_source": ("random.Random(1)", "r += len(repr(it)) * 0", "it.randrange(9)"),
    "reading_a_user_dict": ("collections.UserDict(a=2)", "r += it['a']", "it['a']"),
    "reading_a_decimal": ("decimal.Decimal(3)", "r += int(it)", "int(it)"),
    "matching_a_pattern": ("re.compile('a+')", "r += len(it.findall('aab'))", "0"),
    "a_method_beside_a_lock": ("Holder()", "it.bump()", "it.n"),
    "a_slot": ("holding(Slotted(), a=0, n=1)", "it.a += it.n", "it.a"),
    "an_ordered_dict": ("collections.OrderedDict(a=0)", "it['a'] += 1", "it['a']"),
    "a_namespace": ("types.SimpleNamespace(a=0)", "it.a += 1", "it.a"),
    "a_list_subclass": ("holding(Items([0]), c=5)", "it[0] += it.c", "it[0]"),
    "a_deque": ("collections.deque([0, 1])", "it[0] += 1", "it[0]"),
    "an_own_array": ("0", "v = np.zeros(1, np.int64); v[0] += 2; r += int(v[0])", "it"),
}


def _make(name, made, change, read, head, of_module=False):
    text = (
        f"def {name}(n):\n    it = {made}\n    r = 0\n    {head}\n"
        f"        {change}\n        r += 1\n    return r + {read}\n"
    )
    if of_module:
        globals()[f"_{name}"] = eval(made)
        text = re.sub(r"\bit\b", f"_{name}", text.replace(f"    it = {made}\n", ""))
    filename = f"<{__name__}.{name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(True), filename)
    exec(compile(text, filename, "exec"), globals())
    return globals()[name]


for _table, _declare in (
    (CHANGED, refused("is changed inside staged control flow", "count")),
    (USED, refused("is used inside staged control flow", "count")),
    (RIGHT, program("count")),
):
    for _name, _parts in _table.items():
        _declare(_make(f"{_name}_in_a_loop", *_parts, "for i in range(n):"))
        _declare(_make(f"{_name}_in_a_branch", *_parts, "if n > 1:"))
        if _table is not RIGHT:
            _declare(_make(f"global_{_name}", *_parts, "if n > 1:", of_module=True))


@refused("is changed inside staged control flow", "count")
def an_array_in_a_while(n):
    it = np.zeros(1, np.int64)
    while n > 0:
        it[0] += 1  # error
        n -= 1
    return int(it[0])


@program()
def an_array_in_a_while_that_python_decides():
    it = np.zeros(1, np.int64)
    k = 0
    while k < 3:
        it[0] += 1
        k += 1
    return int(it[0])


@program("int")
def an_array_in_an_unrolled_loop(n):
    it = np.zeros(1, np.int64)
    for k in (1, 2, 3):
        it[0] += k
    return n + int(it[0])


@refused("is changed inside staged control flow", "int")
def an_array_in_a_conditional_expression(n):
    it = [np.zeros(1, np.int64)]
    return it[0].__iadd__(1)[0] * 0 + n if n > 0 else n  # error


@refused("is changed inside staged control flow", "int")
def an_array_by_a_function_inside(n):
    it = np.zeros(1, np.int64)

    def change():
        it[0] += 1

    if n > 0:
        change()  # error
    return n + int(it[0])


def _store(place, value):
    place[0] = value


@refused("is changed inside staged control flow", "int")
def an_array_by_a_helper(n):
    it = np.zeros(1, np.int64)
    if n > 0:
        _store(it, 4)  # error
    return n + int(it[0])


_GLOBAL = np.zeros(1, np.int64)


@refused("'_GLOBAL', an ndarray, is changed inside staged control flow", "int")
def an_array_of_the_module(n):
    if n > 0:
        _GLOBAL[0] += 1  # error
    return n


@program("int")
def iterators_of_an_own_branch(n):
    r = 0
    if n > 0:
        numbers = itertools.count(3)
        r = next(numbers) + next(numbers)
    return r + n


@program("int")
def a_view_of_a_dict(n):
    table = {"a": 1}
    shown = types.MappingProxyType(table)
    if n > 0:
        n += shown["a"]
    return n


# What a helper reaches, and the region itself does not name --------------------------------------

_LOG = [0]
_COUNT = 0


def _note(x, held=[0]):  # noqa: B006
    held.append(1)
    return x


def _push():
    _LOG.append(1)
    return len(_LOG)


def _tick():
    global _COUNT
    _COUNT += 1
    return _COUNT


def _tagged(x):
    _tagged.calls += 1
    return x


_tagged.calls = 0


@refused("'_note.__defaults__' is changed inside staged control flow", "int")
def a_mutable_default_of_a_helper(n):
    return _note(3) if n > 0 else n


@refused("'_LOG' is changed inside staged control flow", "int")
def a_list_of_a_helper(n):
    if n > 0:
        n += _push()
    return n


@refused("'_COUNT' is changed inside staged control flow", "count")
def a_global_of_a_helper(n):
    r = 0
    for _ in range(n):
        r += _tick() * 0
    return r


@refused("'_tagged.calls' is set inside staged control flow", "int")
def an_attribute_of_a_helper(n):
    if n > 0:
        n = _tagged(n)
    return n
