"""Bounds and steps of every kind, zero trips, the loop variable, values that loops carry."""

# mypy: ignore-errors
# ruff: noqa: B905, B007, SIM, PLW2901

import basedsl
from basedsl import const_expr, range_constexpr
from basedsl.conformance.cases import program, refused


@program("int int")
def dynamic_bounds(a, b):
    total = 0
    for i in range(a, b):
        total += i
    return total


@program("int int")
def negative_static_step(a, b):
    total = 0
    for i in range(a, b, -2):
        total = total * 3 % 101 + i
    return total


@program("", inputs=[(a, b, s) for a in (-3, 0, 7) for b in (-6, 0, 5) for s in (-3, -1, 1, 2, 9)])
def dynamic_step(a, b, s):
    total = count = 0
    for i in range(a, b, s):
        total = total * 3 % 101 + i
        count += 1
    return total, count


@program("", inputs=[(1,), (0,), (-1,)])
def zero_step_raises(s):
    total = 0
    for i in range(0, 4, s):
        total += 1
    return total


@program("", inputs=[(-5,), (0,), (1,), (4,)])
def loop_variable_after_the_loop(n):
    i = 77
    for i in range(n):
        pass
    return i


@program("", inputs=[(1,), (4,)])
def loop_variable_after_break(n):
    i = -1
    for i in range(10):
        if i * i >= n:
            break
    return i


@program("count")
def assigning_the_loop_variable(n):
    total = 0
    for i in range(n):
        total += i
        i = i * 2
        total += i
    return total


@program("count")
def bounds_are_evaluated_once(n):
    total = 0
    for i in range(n):
        n = n + 1
        total += 1
    return total, n


@program("count count")
def triangular(n, m):
    total = 0
    for i in range(n):
        for j in range(i, m):
            for k in range(j, -1, -1):
                total += i + j * k
    return total


@program("", inputs=[(n,) for n in (1, 6, 7, 27)])
def collatz(n):
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


@program("count count")
def gcd(a, b):
    while b:
        a, b = b, a % b
    return a


@program("count")
def fibonacci_swaps(n):
    a, b = 0, 1
    for _ in range(n):
        a, b = b, a + b
    return a


@program("float count")
def float_state(x, n):
    y = 0.0
    for i in range(n):
        y = y * 0.5 + x
    return y


@program("count")
def bool_state(n):
    even = True
    for i in range(n):
        even = not even
    return even


@program("count")
def while_with_walrus(n):
    total = 0
    while (k := total * 2 + 1) < n * 5:
        total = total + k
    return total, k


@program("count")
def walrus_and_break(n):
    i = 0
    while (k := i * i) < 50:
        if k > n * 3:
            break
        i += 1
    return i, k


@program("ints")
def while_over_a_buffer(a):
    i = 0
    while i < 6 and a[i] <= 4:
        i += 1
    return i


@program("count")
def static_bounds_are_staged(n):
    total = 0
    for i in range(4):
        total += i * n
    return total


@program("count")
def static_while(n):
    k = 0
    total = n
    while k < 5:
        total += k
        k += 1
    return total, k


@program("int")
def unrolled_range(n):
    names = []
    total = 0
    for i in range_constexpr(4):
        names.append(i)
        total += n * i
    return total, len(names)


@program("count")
def range_with_hints(n):
    total = 0
    for i in basedsl.range(0, n, 1, unroll=2):
        total += i
    for i in basedsl.range(3, unroll_full=True):
        total += 100
    return total


@program("int")
def const_expr_branch(n):
    kind = "double"
    if const_expr(kind == "double"):
        n = n * 2
    else:
        n = n.not_there
    return n


@program("int")
def over_tuples_lists_and_dicts(n):
    total = 0
    for x in (n, 2 * n, 5):
        total += x
    for x in [1, n]:
        total -= x
    for key, value in {"a": n, "b": 3}.items():
        total += value * (2 if key == "a" else 1)
    return total


@program("int")
def enumerate_zip_reversed(n):
    total = 0
    for i, x in enumerate([n, 3, n + 1]):
        total = total * 2 + i * x
    for x, y in zip((1, n), (n, 4)):
        total += x * y
    for x in reversed([n, 1, 2]):
        total = total * 2 + x
    for i in reversed(range(3)):
        total = total * 2 + i
    return total


@program("wide", inputs=[(-3,), (0,), (3,)])
def bounds_near_the_extremes(n):
    top = 2**31 - 1
    count = 0
    for i in range(top - 2, top):
        count += 1
    for i in range(-top, -top + 3 + n):
        count += 10
    return count


@refused("range_constexpr needs static bounds", "int")
def dynamic_range_constexpr(n):
    total = 0
    for i in range_constexpr(n):  # error
        total += i
    return total


@refused("const_expr needs a static value", "int")
def dynamic_const_expr(n):
    if const_expr(n > 0):  # error
        return 1
    return 0


@refused("a dynamic bound cannot be iterated", "int")
def comprehension_over_dynamic_range(n):
    return sum([i for i in range(n) if i > 1])  # error


@refused("changes its structure", "count")
def append_in_a_loop(n):
    found = []
    for i in range(n):
        found.append(1)  # the list is changed here
    return len(found)


@refused("changes its structure", "count", tags="")
def dict_grows_in_a_loop(n):
    found = {}
    for i in range(n):
        found["a"] = 1
    return len(found)


@refused("only DSL values can change in a loop", "count")
def string_changes_in_a_loop(n):
    text = "a"
    for i in range(n):
        text = text + "b"  # error
    return len(text)


LOG = []


@refused("the global object 'LOG' is changed", "count")
def global_list_in_a_loop(n):
    total = 0
    for i in range(n):
        LOG.append(1)
        total += 1
    return total
