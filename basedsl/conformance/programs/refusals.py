"""Programs that are valid Python but rejected, with a message that says what to write."""

# mypy: ignore-errors
# ruff: noqa

import dataclasses
import enum
import functools
from collections import Counter
from dataclasses import dataclass

from basedsl.conformance.cases import program, refused


@refused("is fixed while compiling", "count", inputs=[(2,)])
def slice_k(k):
    items = [1, 2, 3]
    return sum(items[:k])


@refused("is fixed while compiling", "count", inputs=[(2,)])
def list_times(k):
    return sum([7] * k)


@dataclass
class P:
    x: int
    y: int


@refused("compare numbers one by one", "count", inputs=[(2,)])
def dataclass_compare(k):
    return 1 if P(k, 1) == P(2, 1) else 0


@dataclass(order=True)
class Q:
    x: int


@refused("compare numbers one by one", "count", inputs=[(2,)])
def dataclass_order(k):
    return 1 if Q(k) < Q(2) else 0


@refused("use numbers for what is known at run time only", "count", inputs=[(1,)])
def len_words(k):
    words = ["a", "bc"]
    return len(words[k])


class Doubler:
    def __call__(self, x):
        return 2 * x


class Tripler:
    def __call__(self, x):
        return 3 * x


@refused("a Doubler on one path", "count", inputs=[(1,)])
def other_object(k):
    if k > 0:
        f = Doubler()
    else:
        f = Tripler()
    return f(k)


@refused("not bound on every path", "count", inputs=[(1,)])
def missing_elif(k):
    if k > 3:
        y = 1
    elif k > 2:
        y = 2
    elif k > 1:
        pass
    else:
        y = 3
    return y


@refused("changes its structure", "count", inputs=[(1,)])
def list_append(k):
    found = []
    for i in range(k):
        x = i * 2
        found.append(x)
    return len(found)


@refused("in the same order on every path", "count", inputs=[(1,)])
def dict_order(k):
    d = {}
    if k > 1:
        d["a"] = 1
        d["b"] = 2
    else:
        d["b"] = 2
        d["a"] = 1
    return d["a"]


@refused("looked up in a dict or a set", "count", inputs=[(1,)])
def counter_loop(k):
    c = Counter()
    for i in range(k):
        c[i] += 1
    return k


@refused("has one type on every path", "count", inputs=[(1,)])
def bool_or_int(k):
    found = False
    if k > 1:
        found = 3
    return found


@refused("cannot be iterated by Python", "count", inputs=[(1,)])
def next_gen(k):
    return next(i for i in range(k))


class C2:
    def __init__(self, n):
        self.n = n

    @functools.cached_property
    def double(self):
        return self.n * 2


@program("int")
def cached_prop(n):
    c = C2(n)
    if n > 2:
        return c.double
    return c.double + 1


@program("int")
def cached_prop_plain(n):
    c = C2(n)
    return c.double + c.double


@functools.lru_cache
def cached(n):
    return n * 2


@refused("looked up in a dict or a set", "int")
def lru(n):
    return cached(n)


class Color(enum.IntEnum):
    RED = 1
    BLUE = 2


@program("int")
def int_enum(n):
    c = Color.RED
    if n > 2:
        c = Color.BLUE
    return c + 0


class Shade(enum.Enum):
    DARK = 1
    LIGHT = 2


@refused("`match` needs a static subject", "int")
def member_matched(n):
    match Shade.DARK if n > 2 else Shade.LIGHT:
        case Shade.DARK:
            return 1
        case _:
            return 2


class Access(enum.Flag):
    READ = 1
    WRITE = 2


@refused("use numbers for what is known at run time only", "int")
def flag_member(n):
    access = Access.READ
    if n > 2:
        access = Access.WRITE
    return Access.WRITE in access


def is_dark(shade):
    return shade is Shade.DARK


@refused("an enumeration's member is asked for in 'is_dark'", "int")
def member_in_a_helper(n):
    return is_dark(Shade.DARK if n > 2 else Shade.LIGHT)


@program("int")
def int_enum_compare(n):
    return 1 if n == Color.RED else 0


def change(v):
    v[0] += 1
    return v[0]


@program("int")
def arg_list(n):
    v = [n]
    change(v)
    return v[0]


@refused("compare numbers one by one", "count", inputs=[(3,)])
def sort_list(k):
    return sorted([k, 1, 2])[0]


@refused("compare numbers one by one", "count", inputs=[(3,)])
def tuple_compare(k):
    return 1 if (k, 1) == (3, 1) else 0


@refused("cannot be iterated by Python", "count", inputs=[(3,)])
def comprehension_if(k):
    return sum(i for i in range(k) if i > 1)


@refused("cannot be iterated by Python", "count", inputs=[(3,)])
def list_range(k):
    return len(list(range(k)))


@refused("is fixed while compiling", "count", inputs=[(3,)])
def str_mul(k):
    return len("ab" * k)


@refused("looked up in a dict or a set", "count", inputs=[(3,)])
def dict_get(k):
    return {1: 2, 3: 4}.get(k, 0)


@refused("cannot be iterated by Python", "count", inputs=[(3,)])
def star_range(k):
    return max(*range(k))


@refused("cannot be iterated by Python", "count", inputs=[(3,)])
def unpack_range(k):
    a, b, c = range(k)
    return a + b + c
