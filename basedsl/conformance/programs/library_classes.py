"""Containers and wrappers of the standard library in captured code, and as results: each keeps its
class, its order and its own methods, and a wrapped function's state is seen.
"""

# mypy: ignore-errors

import contextlib
import functools
from collections import Counter, OrderedDict, defaultdict, deque

from basedsl.conformance.cases import program, refused, session


@program("int")
def a_counter_in_a_branch(n):
    c = Counter("abca")
    if n > 1:
        n += c["a"] + c["zz"] + c.most_common(1)[0][1]
    return n + c["b"]


@program("int")
def a_counter_changed_in_a_branch(n):
    c = Counter(a=2, b=1)
    if n > 1:
        c["a"] += n
    return c["a"] + sum(c.values()), c.total()


@program("int")
def an_ordered_dict_as_a_result(n):
    d = OrderedDict(a=1, b=n)
    if n > 0:
        d["a"] += 1
    return d


@program("int")
def a_default_dict_as_a_result(n):
    d = defaultdict(int, a=n)
    if n > 0:
        d["a"] += 1
    return d["a"], d


@program("int")
def a_ring_as_a_result(n):
    q = deque([1, n, 3], maxlen=3)
    if n > 0:
        q[1] += 1
    return q, q.maxlen


@program("int")
def a_counter_as_a_result(n):
    c = Counter(a=n)
    if n > 0:
        c["a"] += 1
    return c


class Loud(list):
    """Its methods are not those of a list."""

    def __iter__(self):
        return iter([7, 7])

    def __len__(self):
        return 9

    def __setitem__(self, key, value):
        raise ValueError("not to be called")


class Doubling(dict):
    """Its methods are not those of a dict."""

    def __setitem__(self, key, value):
        dict.__setitem__(self, key, value * 2)

    def update(self, *args, **kwargs):
        raise ValueError("not to be called")


@program("int")
def a_list_with_methods_of_its_own(n):
    loud = Loud([1, 2])
    if n > 0:
        n += loud[1]
    return n + len(loud) + sum(loud) + list.__len__(loud)


@program("int")
def a_dict_with_methods_of_its_own(n):
    d = Doubling(a=1)
    if n > 0:
        d["a"] = n
    return d["a"]


@session((1,), (1,), (5,))
def a_context_manager_with_state(jit):
    log = []

    @contextlib.contextmanager
    def entered(k):
        log.append(k)
        try:
            yield k
        finally:
            log.append(-k)

    def f(n):
        with entered(3) as k:
            pass
        return n + k + len(log)

    return f, lambda: list(log)


@session((1,), (1,), (5,))
def a_wrapped_function_with_state(jit):
    log = []

    def counting(f):
        @functools.wraps(f)
        def g(*args):
            log.append(len(args))
            return f(*args)

        return g

    @counting
    def double(k):
        return k * 2

    def f(n):
        return double(n) + len(log)

    return f, lambda: list(log)


_ENTERED = []


@contextlib.contextmanager
def _entered():
    _ENTERED.append(1)
    yield


@refused("'_ENTERED' is changed inside staged control flow", "count")
def a_context_manager_with_state_in_a_loop(n):
    for _ in range(n):  # error
        with _entered():
            pass
    return n


@refused("the variables of a compiled function cannot be listed", "int")
def variables_listed_in_a_branch(n):
    if n > 0:
        n += len(locals())  # error
    return n


@refused("the variables of a compiled function cannot be listed", "int")
def variables_listed_at_the_top(n):
    return n + len(vars())  # error


@refused("a text cannot be evaluated among the variables of a compiled function", "int")
def a_text_evaluated_in_a_branch(n):
    if n > 0:
        n += eval("n * 2")  # error
    return n


_SEEN = []


def _noted(k):
    _SEEN.append(k)
    return k


@refused("'_SEEN' is changed by a later item of any()", "int")
def effects_of_later_items(n):
    return 1 if any(_noted(k) == n for k in (1, 2, 3) if k) else 0  # error


@program("int")
def effects_of_items_that_are_known(n):
    return n + any(_noted(k) > 1 for k in (1, 2, 3))
