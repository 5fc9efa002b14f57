"""Several calls of one function, with state between them: what static code changes in lists, dicts,
objects, defaults and closures, it changes in every call.
"""

# mypy: ignore-errors
# ruff: noqa: B006

import collections
import functools
import types
from dataclasses import dataclass

from basedsl.conformance.cases import session


@session()
def a_list_that_grows(jit):
    log = []

    def main(n):
        log.append(1)
        return n + len(log)

    return main, lambda: log


@session()
def a_list_that_shrinks(jit):
    items = [1, 2, 3, 4, 5, 6, 7, 8]

    def main(n):
        return n + items.pop()

    return main, lambda: items


@session()
def an_item_of_a_list(jit):
    counts = [0, 5]

    def main(n):
        counts[0] += 2
        return n * counts[0] + counts[1]

    return main, lambda: counts


@session()
def a_list_that_is_sorted(jit):
    items = [3, 1, 2]

    def main(n):
        items.sort()
        return n + items[0]

    return main, lambda: items


@session()
def a_list_that_is_reversed(jit):
    items = [3, 1, 2]

    def main(n):
        items.reverse()
        return n + items[0]

    return main, lambda: items


@session()
def an_item_of_a_dict(jit):
    counts = {}

    def main(n):
        counts["calls"] = counts.get("calls", 0) + 1
        return n + counts["calls"]

    return main, lambda: counts


@session()
def the_order_of_a_dict(jit):
    table = collections.OrderedDict(a=1, b=2, c=3)

    def main(n):
        table.move_to_end(next(iter(table)))
        return n + next(iter(table.values()))

    return main, lambda: dict(table)


@session()
def a_set_that_grows(jit):
    seen = set()

    def main(n):
        seen.add(len(seen))
        return n + len(seen)

    return main, lambda: sorted(seen)


@session()
def a_deque_that_turns(jit):
    items = collections.deque([1, 2, 3])

    def main(n):
        items.rotate(1)
        return n + items[0]

    return main, lambda: list(items)


@session()
def a_counter(jit):
    counts = collections.Counter()

    def main(n):
        counts.update("ab")
        return n + counts["a"]

    return main, lambda: dict(counts)


@session()
def a_bytearray(jit):
    data = bytearray(2)

    def main(n):
        data[0] += 1
        return n + data[0]

    return main, lambda: bytes(data)


@session()
def an_attribute(jit):
    class Account:
        value = 0

    account = Account()

    def main(n):
        account.value += 3
        return n + account.value

    return main, lambda: account.value


@session()
def an_attribute_of_an_attribute(jit):
    outer = types.SimpleNamespace(inner=types.SimpleNamespace(count=0), other=[0])

    def main(n):
        outer.inner.count += 1
        outer.other.append(outer.inner.count)
        return n + len(outer.other)

    return main, lambda: (outer.inner.count, outer.other)


@session()
def a_slot(jit):
    class Slotted:
        __slots__ = ("count",)

    one = Slotted()
    one.count = 0

    def main(n):
        one.count += 1
        return n + one.count

    return main, lambda: one.count


@session()
def a_method_that_counts(jit):
    class Machine:
        def __init__(self):
            self.turns = 0

        def turn(self, n):
            self.turns += 1
            return n * self.turns

    machine = Machine()

    def main(n):
        return machine.turn(n)

    return main, lambda: machine.turns


@session()
def a_setter_of_a_property(jit):
    class Box:
        held = 1

        @property
        def value(self):
            return self.held

        @value.setter
        def value(self, new):
            self.held = new * 2

    box = Box()

    def main(n):
        box.value = box.value + 1
        return n + box.value

    return main, lambda: box.held


@session()
def a_dataclass(jit):
    @dataclass
    class Settings:
        scale: int = 1

    settings = Settings()

    def main(n):
        settings.scale *= 2
        return n * settings.scale

    return main, lambda: settings.scale


@session()
def an_attribute_of_a_class(jit):
    class Shared:
        count = 0

    def main(n):
        Shared.count += 1
        return n + Shared.count

    return main, lambda: Shared.count


@session()
def a_class_that_counts_its_objects(jit):
    class Counted:
        made = 0

        def __init__(self, x):
            Counted.made += 1
            self.x = x

    def main(n):
        return Counted(n).x + Counted(2).x + Counted.made

    return main, lambda: Counted.made


@session()
def an_attribute_of_a_function(jit):
    def helper(x):
        helper.calls = getattr(helper, "calls", 0) + 1
        return x + helper.calls

    def main(n):
        return helper(n)

    return main, lambda: getattr(helper, "calls", 0)


@session()
def a_mutable_default(jit):
    def helper(x, held=[]):
        held.append(len(held))
        return x + len(held)

    def main(n):
        return helper(n)

    return main, lambda: helper.__defaults__


@session()
def a_mutable_keyword_default(jit):
    def helper(x, *, held={"n": 0}):
        held["n"] += 1
        return x + held["n"]

    def main(n):
        return helper(n)

    return main, lambda: helper.__kwdefaults__


@session()
def a_mutable_default_of_a_decorated_helper(jit):
    held = []

    @jit
    def helper(x, log=held):
        log.append(1)
        return x + len(log)

    def main(n):
        return helper(n)

    return main, lambda: held


@session()
def a_nonlocal_variable(jit):
    count = 0

    def main(n):
        nonlocal count
        count += 1
        return n + count

    return main, lambda: count


@session()
def a_nonlocal_variable_of_a_helper(jit):
    count = 0

    def helper():
        nonlocal count
        count += 2
        return count

    def main(n):
        return n + helper()

    return main, lambda: count


@session((1,), (1,), (5,), (1,))
def a_value_that_comes_back(jit):
    state = [0]

    def main(n):
        state[0] = 1 - state[0]
        return n + state[0] * 100

    return main, lambda: state


@session()
def a_list_under_two_names(jit):
    first = [0]
    second = (first,)

    def main(n):
        second[0][0] += 1
        return n + first[0]

    return main, lambda: first


@session()
def a_bound_method_of_a_list(jit):
    log = []
    push = log.append

    def main(n):
        push(1)
        return n + 1

    return main, lambda: log


@session()
def a_partial_of_a_function(jit):
    log = []

    def add(items, x):
        items.append(x)
        return len(items)

    note = functools.partial(add, log)

    def main(n):
        return n + note(3)

    return main, lambda: log
