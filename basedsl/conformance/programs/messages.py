"""Refused programs whose message has to name the right place and the right thing."""

# mypy: ignore-errors

from collections import Counter, deque
from dataclasses import dataclass

from basedsl.conformance.cases import refused


@refused("the length of a list or a text (a slice, a repetition)", "int")
def a_slice(n):
    items = [1, 2, 3]
    return len(items[:n])  # error


@refused("the length of a list or a text (a slice, a repetition)", "int")
def a_repetition(n):
    return len([7] * n)  # error


@refused("the length of a list or a text (a slice, a repetition)", "count")
def a_repeated_text(n):
    return len("ab" * n)  # error


@dataclass
class Pair:
    x: int
    y: int


@dataclass(order=True)
class Ordered:
    x: int


@refused("comparing or sorting containers", "int")
def equal_dataclasses(n):
    a, b = Pair(n, 1), Pair(3, 1)
    return 1 if a == b else 2  # error


@refused("comparing or sorting containers", "int")
def ordered_dataclasses(n):
    return 1 if Ordered(n) < Ordered(3) else 2  # error


@refused("the str 'a' or the str 'bcd'", "int", inputs=[(1,)])
def the_length_of_a_word(n):
    words = ["a", "bcd", "ef"]
    return len(words[n])  # error


class Doubler:
    def __init__(self):
        pass

    def of(self, x):
        return x * 2


class Tripler(Doubler):
    def of(self, x):
        return x * 3


@refused("'d' is a Doubler on one path and a Tripler on the other", "int")
def an_object_of_another_class_on_one_path(n):
    if n > 0:
        d = Doubler()  # error
    else:
        d = Tripler()
    return d.of(n)


@refused("'d' refers to different Doubler or Tripler objects", "int")
def an_object_replaced_on_one_path(n):
    d = Doubler()
    if n > 0:
        n += 1
        d = Tripler()  # error
    return d.of(n)


@refused("it is not bound when the condition is true", "int")
def a_binding_missing_in_an_elif(n):
    if n > 3:
        v = 1
    elif n > 2:
        n = 1
    else:
        v = 2
    return n + v  # error


@refused("the return value is the str 'x' on one path", "int")
def the_return_of_another_type(n):
    if n == 0:
        return 1
    if n == 1:
        return 2
    if n == 2:
        return "x"  # error
    return 3


@refused("the return value is None on one path", "int")
def the_return_without_a_value(n):
    if n > 5:
        return 5
    elif n > 4:
        return None  # error
    else:
        return 7


@refused("'out' changes its structure in this loop", "count")
def an_append_in_a_loop(n):
    out = []
    for i in range(n):
        k = i * 2
        out.append(k)  # error
    return len(out)


@refused("'ring' changes its structure in this loop", "count")
def an_append_to_a_deque_in_a_while(n):
    ring = deque()
    while n > 0:
        n -= 1
        ring.appendleft(n)  # error
    return len(ring)


@refused("'out' is a list of 1 item on one path and a list of 0 items", "int")
def an_append_in_a_branch(n):
    out = []
    if n > 0:
        n += 1
        out.append(n)  # error
    return n + len(out)


@refused("'d' is a dict of 'a', 'b' on one path and a dict of 'b', 'a' on the other", "int")
def keys_in_another_order(n):
    d = {}
    if n > 0:
        d["a"] = 1  # error
        d["b"] = 2
    else:
        d["b"] = 2
        d["a"] = 1
    return d["a"]


@refused("'c' changes its structure in this loop, from a Counter of 0 items", "count")
def a_counter_in_a_loop(n):
    c = Counter()
    for _ in range(n):
        n += 0
        c["x"] += 1  # error
    return c["x"]


@refused("is looked up in a dict or a set (hashed)", "count")
def a_counter_of_dynamic_keys(n):
    c = Counter()
    for i in range(n):
        c[i] += 1  # error
    return len(c)


@refused("'t' changes its structure in this loop", "count")
def a_tuple_that_grows(n):
    t = ()
    for i in range(n):
        n += 0
        t = (*t, i)  # error
    return len(t)


@refused("'s' changes in this loop from the str '' to the str 'x'", "count")
def a_text_that_grows(n):
    s = ""
    for _ in range(n):
        n += 0
        s += "x"  # error
    return len(s)
