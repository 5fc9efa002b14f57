"""Hand-written functions on control flow: the rewritten function does what Python does."""

# The programs below are odd on purpose.
# ruff: noqa: B007, B012, RUF005, F821, F841
from __future__ import annotations

from typing import Any

import pytest

CASES: list[tuple[Any, list[tuple[Any, ...]]]] = []


def case(*inputs: tuple[Any, ...]) -> Any:
    """Register a function with the arguments it is called with."""

    def register(fn: Any) -> Any:
        CASES.append((fn, list(inputs)))
        return fn

    return register


NUMBERS = [(-2,), (0,), (1,), (3,), (7,)]
LISTS = [([],), ([1],), ([3, -1, 4, 1, 5],), ([0, 0, 9],)]


@case(*NUMBERS)
def branches(n):
    if n < 0:
        kind = "negative"
    elif n == 0:
        kind = "zero"
    elif n < 5:
        kind = "small"
    else:
        kind = "large"
    return kind


@case(*NUMBERS)
def guards(n):
    if n < 0:
        return "negative"
    if n == 0:
        return "zero"
    if n > 5:
        return
    return n


@case(*NUMBERS)
def only_one_path_returns(n):
    if n > 0:
        return n


@case(*NUMBERS)
def returns_from_deep(n):
    for i in range(4):
        for j in range(4):
            if i * j == n:
                return i, j
            if i + j > n:
                break
        else:
            continue
        if n == 1:
            return "one"
    return None


@case(*LISTS)
def for_else(xs):
    for x in xs:
        if x > 3:
            found = x
            break
    else:
        found = -1
    return found


@case(*LISTS)
def while_else(xs):
    i = 0
    while i < len(xs):
        if xs[i] < 0:
            break
        i += 1
    else:
        return "none"
    return i


@case(*LISTS)
def else_that_returns(xs):
    for x in xs:
        if x == 9:
            break
    else:
        return "not found"
    return x


@case(*LISTS)
def continues(xs):
    total = 0
    for x in xs:
        if x < 0:
            continue
        if x > 4:
            total += 100
            continue
        total += x
    return total


@case(*LISTS)
def nested_exits(xs):
    log = []
    for x in xs:
        if x:
            if x < 0:
                log.append("skip")
                continue
            log.append(x)
            if x == 4:
                if len(log) > 2:
                    break
                log.append("four")
        log.append("end")
    return log


@case(*NUMBERS)
def while_true(n):
    i = 0
    while True:
        i += 1
        if i > n:
            return i
        if i == 5:
            break
    return -i


@case(*NUMBERS)
def loop_variable_after_loop(n):
    for i in range(n):
        pass
    return i


@case(*NUMBERS)
def zero_trips_keep_the_variable(n):
    i = "before"
    for i in range(n):
        pass
    return i


@case(*NUMBERS)
def bound_in_one_branch(n):
    if n > 0:
        x = n
    return x


@case(*NUMBERS)
def unbound_in_nested_branch(n):
    if n >= 0:
        if n > 2:
            x = n
        else:
            y = n
        return x + y
    return y


@case(*NUMBERS)
def deleted(n):
    x = n
    if n > 1:
        del x
    return x


@case(*NUMBERS)
def deleted_in_a_loop(n):
    x = 0
    for i in range(n):
        if i == 2:
            del x
        else:
            x = i
    return x


@case(*NUMBERS)
def augmented_unbound(n):
    if n > 2:
        x = 1
    x += n
    return x


@case(*NUMBERS)
def swaps(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a, b


@case(*LISTS)
def targets(xs):
    first, *rest = xs or [7]
    for i, (a, *b) in enumerate([(1, 2, 3), "ab"]):
        rest += [i, a, b]
    [p, q] = first, rest
    return p, q


@case(*LISTS)
def subscript_targets(xs):
    i = 0
    for xs[i] in (10, 20, 30):
        i = (i + 1) % (len(xs) - 1)
    xs[0], xs[i] = xs[i], xs[0]
    i, xs[i] = 1, "x"
    a = xs[i] = b = "y"
    return xs, i, a, b


@case(*LISTS)
def subscript_augmented(xs):
    calls = []

    def index():
        calls.append("index")
        return 0

    def items():
        calls.append("items")
        return xs

    items()[index()] += 5
    i = 0
    xs[i] *= 3
    xs[i] += (i := 1)
    xs[:1] += [8]
    return xs, calls, i


@case((3,), (0,))
def order_of_stores(n):
    log = []

    def f(x):
        log.append(x)
        return x

    box = {}
    f(box)[f(1)] = f(2)
    f(box)[f(3)], f(box)[f(4)] = f(5), f(6)
    return repr(log), box


@case(*NUMBERS)
def try_in_a_loop(n):
    log = []
    for i in range(4):
        try:
            if i == n:
                raise ValueError(i)
            log.append(10 // (i - 1))
        except ZeroDivisionError as error:
            log.append(str(error))
            continue
        except ValueError:
            break
        else:
            log.append("else")
        finally:
            log.append("finally")
    return log


@case(*NUMBERS)
def return_through_finally(n):
    log = []

    def inner():
        for i in range(5):
            try:
                if i == n:
                    return i
            finally:
                log.append(i)
        return "end"

    return inner(), log


@case(*NUMBERS)
def direct_finally(n):
    try:
        return 10 // n
    except ZeroDivisionError:
        return "zero"
    finally:
        if n is None:
            return "none"


@case(*NUMBERS)
def raises(n):
    if n < 0:
        raise ValueError("negative", n)
    if n == 0:
        try:
            raise KeyError(n)
        except KeyError as error:
            raise RuntimeError("wrapped") from error
    for i in range(n):
        if i == 2:
            raise TypeError from None
    return n


@case(*NUMBERS)
def reraises(n):
    try:
        if n == 3:
            raise ValueError(n)
        return n
    except ValueError:
        if n > 2:
            raise
        return "caught"


class Manager:
    def __init__(self, log, swallow=()):
        self.log, self.swallow = log, swallow

    def __enter__(self):
        self.log.append("enter")
        return self

    def __exit__(self, kind, value, traceback):
        self.log.append(("exit", kind))
        return kind in self.swallow


@case(*NUMBERS)
def with_exits(n):
    log = []
    for i in range(4):
        with Manager(log) as a, Manager(a.log) as b:
            if i == n:
                break
            if i == 1:
                continue
            assert a is not b
        log.append(i)
    else:
        log.append("else")
    return log


@case(*NUMBERS)
def with_that_swallows(n):
    log = []
    x = 1
    for i in range(3):
        with Manager(log, (ValueError,)):
            if i == n:
                raise ValueError
            x += i
        log.append(x)
    return log, x


@case(*NUMBERS)
def return_in_with(n):
    log = []
    with Manager(log):
        if n > 2:
            return log
        log.append(n)
    return log + [1]


@case((1,), ((1, 2),), ({"a": 1, "b": 2},), ([0, 1, 2],), ("s",), (None,))
def matches(x):
    for _ in range(2):
        match x:
            case 1 | 2:
                break
            case (a, b) if a < b and b < 5:
                return "pair", a, b
            case {"a": a, **rest}:
                return "dict", a, rest
            case [a, *others]:
                x = others
                continue
            case str() as s:
                y = s
            case _:
                y = 0
        return "end", y
    return "after", x


@case(*NUMBERS)
def walrus(n):
    log = []
    while (k := n - len(log)) > 0 and k != 4:
        log.append(k)
    if n > 1 and (m := n * 2) > 5:
        log.append(m)
    if not (n > 2 or (p := n) < 0):
        log.append(p)
    value = (q := n) if n else (r := -1)
    log.append([w := i for i in range(3) if (i and (v := i)) or n])
    return log, k, value, w


@case(*NUMBERS)
def walrus_unbound(n):
    if n > 1 and (m := n):
        pass
    return m


@case(*LISTS)
def comprehensions(xs):
    k = 2
    a = [x * k for x in xs if x > 0 and x < 5]
    b = {x: y for x in xs for y in range(x) if not y % 2}
    c = {x if x else "zero" for x in xs}
    d = sum(x for x in xs if 0 < x < 4)
    e = [[i * j for j in range(i)] for i in xs if i < 4]
    return a, b, sorted(map(str, c)), d, e, [(lambda: x and k)() for x in xs]


@case(*NUMBERS)
def loops_in_branches(n):
    total = 0
    if n > 0:
        for i in range(n):
            j = 0
            while j < i:
                if j == 2:
                    break
                j += 1
            else:
                total += 100
            total += j
    else:
        while total > n:
            total -= 1
            if total == -1:
                return "early"
    return total


@case(*NUMBERS)
def dead_code(n):
    while True:
        return n
        n = 5
    else:
        x = 1
    return x


@case(*NUMBERS)
def dead_names_stay_local(n):
    if n > 2:
        return len2
    return 0
    len2 = 1


@case(*NUMBERS)
def constant_tests(n):
    x = 0
    if True:
        x = 1
    while 0:
        x = 2
    if __debug__ and n is not None:
        x += n
    if not True:
        y = 0
    else:
        y = 1
    return x, y


@case((1, 2, 3), (3, 2, 1), (1, 1, "a"))
def chains(a, b, c):
    log = []

    def f(x):
        log.append(x)
        return x

    first = f(a) < f(b) < f(c)
    second = f(a) == f(b) != f(c) is not None
    third = f(a) in (1, 2) in [f(c)]
    return first, second, third, log


@case((0, 0), (0, 2), (3, 0), ([], "x"))
def boolean_values(a, b):
    log = []

    def f(x):
        log.append(x)
        return x

    return f(a) and f(b), f(a) or f(b), not f(a), f(a) if f(b) else f("no"), log


def test_the_corpus_is_there():
    # Guards against a corpus that is empty by mistake.
    assert len(CASES) >= 40


@pytest.mark.parametrize(("fn", "inputs"), CASES, ids=[fn.__name__ for fn, _ in CASES])
def test_case(fn: Any, inputs: list[tuple[Any, ...]], tools: Any) -> None:
    tools.check(fn, *inputs)


def test_asserts(tools: Any) -> None:
    # As text, because pytest rewrites the assertions of this file.
    text = """
def f(n):
    assert n != 0
    assert n < 5, f"{n} is too large"
    assert (m := n + 1) > 0 and m, m
    if n == 3:
        assert not n, "inside"
    return m
"""
    tools.check(tools.define(text), *NUMBERS)


def test_lazy_iterables_are_consumed_as_needed(tools: Any) -> None:
    def f(source):
        for x in source:
            if x == 2:
                break
        return next(source)

    new = tools.stage(f)
    source = iter(range(10))
    assert new(source) == f(iter(range(10))) == 3
    assert next(source) == 4


def test_generators_passed_in(tools: Any) -> None:
    log: list[int] = []

    def numbers():
        try:
            for i in range(5):
                log.append(i)
                yield i
        finally:
            log.append(-1)

    def f(source):
        total = 0
        for x in source:
            total += x
            if total > 2:
                return total
        return total

    source = numbers()
    assert tools.stage(f)(source) == 3
    assert log == [0, 1, 2]
    source.close()
