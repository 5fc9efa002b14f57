"""Several calls of one function, with state between them in arrays, iterators, sources of random
numbers and other objects of libraries, in classes derived from Python's, and in memos.
"""

# mypy: ignore-errors

import array
import collections
import functools
import io
import itertools
import queue
import random
import types

import numpy as np

from basedsl.conformance.cases import session


@session()
def a_numpy_array(jit):
    total = np.zeros(2, np.int64)

    def main(n):
        total[0] += 2
        return n + int(total[0])

    return main, lambda: total.tolist()


@session()
def an_array_behind_a_view(jit):
    total = np.zeros(4, np.int64)
    view = total[1:3]

    def main(n):
        view[0] += 2
        return n + int(total[1])

    return main, lambda: total.tolist()


@session()
def an_array_of_the_standard_library(jit):
    total = array.array("i", [0])

    def main(n):
        total[0] += 1
        return n + total[0]

    return main, lambda: total.tolist()


@session()
def an_array_in_an_attribute(jit):
    model = types.SimpleNamespace(weights=np.zeros(2, np.int64))

    def main(n):
        model.weights += 1
        return n + int(model.weights.sum())

    return main, lambda: model.weights.tolist()


@session()
def an_iterator(jit):
    numbers = itertools.count(10)

    def main(n):
        return n + next(numbers)

    return main, lambda: repr(numbers)


@session()
def a_generator(jit):
    def squares():
        i = 0
        while True:
            yield i * i
            i += 1

    made = squares()

    def main(n):
        return n + next(made)

    return main, lambda: made.gi_frame.f_locals.get("i")


@session()
def random_numbers_of_an_own_source(jit):
    source = random.Random(7)

    def main(n):
        return n + source.randrange(1000)

    return main, lambda: repr(source.getstate())


@session()
def random_numbers_of_numpy(jit):
    source = np.random.default_rng(7)

    def main(n):
        return n + int(source.integers(1000))

    return main, lambda: repr(source.bit_generator.state)


@session()
def a_text_in_memory(jit):
    text = io.StringIO()

    def main(n):
        text.write("ab")
        return n + text.tell()

    return main, lambda: text.getvalue()


@session()
def a_queue(jit):
    waiting = queue.Queue()

    def main(n):
        waiting.put(1)
        return n + waiting.qsize()

    return main, lambda: list(waiting.queue)


@session()
def a_user_list(jit):
    items = collections.UserList()

    def main(n):
        items.append(1)
        return n + len(items)

    return main, lambda: items.data


@session()
def a_chain_of_dicts(jit):
    chain = collections.ChainMap({}, {"a": 5})

    def main(n):
        chain["a"] = chain["a"] + 1
        return n + chain["a"]

    return main, lambda: [dict(one) for one in chain.maps]


@session()
def an_attribute_of_a_list_subclass(jit):
    class Items(list):
        changes = 0

    items = Items([1])

    def main(n):
        items.changes += 1
        return n + items.changes

    return main, lambda: items.changes


@session()
def an_attribute_of_a_tuple_subclass(jit):
    class Pair(tuple):
        pass

    pair = Pair((1, 2))
    pair.uses = 0

    def main(n):
        pair.uses += 1
        return n + pair.uses + pair[0]

    return main, lambda: pair.uses


@session()
def an_attribute_of_an_int_subclass(jit):
    class Number(int):
        pass

    number = Number(3)
    number.uses = 0

    def main(n):
        number.uses += 1
        return n + number.uses + number

    return main, lambda: number.uses


@session()
def a_memo(jit):
    memo = {}

    def square(k):
        if k not in memo:
            memo[k] = k * k
        return memo[k]

    def main(n):
        return n + square(3) + square(4)

    return main, lambda: memo


@session()
def a_cached_property(jit):
    class Table:
        size = 3

        @functools.cached_property
        def total(self):
            return self.size * 2

    table = Table()

    def main(n):
        return n + table.total

    return main, lambda: dict(vars(table))


@session()
def registering_callbacks(jit):
    callbacks = []

    def main(n):
        callbacks.append(len)
        return n + len(callbacks)

    return main, lambda: len(callbacks)
