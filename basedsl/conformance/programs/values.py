# mypy: ignore-errors
"""Expressions: operators, short circuit, builtins, math, formatting, unpacking, subscripts."""

import math

from basedsl.conformance.cases import program, refused


@program("int int")
def arithmetic(a, b):
    return a + b * 3 - (a - b), a * b, -a, +b, abs(a)


@program("int int")
def floor_division_and_modulo(a, b):
    return a // b, a % b


@program("int int")
def divmod_and_pow(a, b):
    q, r = divmod(a, 7)
    return q, r, a**2, pow(b, 3), divmod(a, -3)


@program("int int")
def true_division(a, b):
    return a / 4, a / (abs(b) + 1)


@program("float float")
def float_arithmetic(x, y):
    return x + y, x * y, x - 2 * y, -x, x // 1.5, x % 1.5, abs(x)


@program("float", tags="float-errors")
def float_division_by_zero(x):
    return 1.0 / x


@program("float", tags="float-errors")
def float_modulo_by_zero(x):
    return 7.5 % x, 7.5 // x


@program("float", tags="float-errors")
def math_domain_errors(x):
    return math.sqrt(x), math.log(x + 1.0)


@program("int int")
def bitwise(a, b):
    return a & b, a | b, a ^ b, ~a, a << 3, a >> 1


@program("int float bool")
def mixed_arithmetic(n, x, flag):
    return n + x, n * 2.5, flag + n, x * flag, (n > 2) + 1


@program("int int")
def comparisons(a, b):
    return a < b, a <= b, a == b, a != b, a > b, a >= b, not a < b


@program("int int int")
def chained_comparisons(a, b, c):
    return a < b < c, a <= b != c, 0 <= a < 6, a == b == c


@program("int int")
def and_or_give_operands(a, b):
    return a and b, a or b, (a and b) or 7, a and 3, 0 or b


@program("int int bool")
def operands_that_are_never_needed(n, m, flag):
    r = 0
    if flag:
        w = (n or 1) or m
        r = (m and 0) and n
        r = r + w
    return r


@program("int ints")
def short_circuit_guards_loads(i, a):
    count = 0
    if 0 <= i < 6 and a[i] > 0:
        count += 1
    if i < 0 or i >= 6 or a[i] == 0:
        count += 10
    return count


@program("int int")
def short_circuit_guards_division(a, b):
    return b != 0 and a // b > 1


@program("int int")
def conditional_expression(a, b):
    return (a if a > b else b) + (1 if a else 2)


@program("int float")
def conditional_expression_promotes(n, x):
    return (n if n > 0 else x) + 0.0


@program("int int")
def walrus(a, b):
    if (k := a + b) > 3:
        return k
    return (k * 2) + (j := 4) + j


@program("int int ints")
def unpacking(a, b, buffer):
    x, y = a, b
    x, y = y, x
    first, *middle, last = (x, y, 3, a)
    (p, q), r = (a, b), 5
    [u, v] = [q, p]
    buffer[0], buffer[1] = buffer[1], buffer[0]
    return x, y, first, last, middle[0] + middle[1], u, v, r


@program("int ints")
def augmented(n, a):
    n += 3
    n -= 1
    n *= 2
    n //= 3
    n %= 17
    n ^= 5
    n |= 8
    n &= 30
    n <<= 1
    n >>= 1
    a[2] += n
    a[1] *= 2
    a[5] -= 1
    return n


@program("int ints", tags="negative-index")
def negative_buffer_index(n, a):
    a[-1] = n
    a[-6] += 2
    return a[-2] + a[-1]


@program("int int")
def comprehensions(n, m):
    squares = [i * n for i in (1, 2, 3)]
    table = {key: n + i for i, key in enumerate("ab")}
    pairs = [x + y for x in (n, 1) for y in (m, 2) if y is not None]
    total = sum(x * 2 for x in squares)
    return squares[2], table["b"], sum(pairs), total


@program("int int int")
def min_max_sum_any_all(a, b, c):
    return (
        min(a, b, c),
        max(a, b),
        max([a, b, 3]),
        sum([a, b, c]),
        sum((a, b), 10),
        any([a > b, b > c]),
        all((a < 10, b < 5)),
    )


@program("int float")
def max_promotes(n, x):
    return max(n, x) + 0.0, min(x, n) + 0.0


@program("float")
def rounding(x):
    return round(x), int(x), math.floor(x), math.ceil(x), math.trunc(x)


@program("int float bool")
def conversions(n, x, flag):
    return int(x), float(n), bool(n), bool(x), int(flag), float(flag), int(n)


@program("float")
def math_functions(x):
    y = abs(x) + 0.5
    return (
        math.sqrt(y),
        math.exp(x / 8),
        math.log(y),
        math.sin(x),
        math.cos(x),
        math.tanh(x),
        math.atan2(x, y),
        math.pow(y, 1.5),
        math.fabs(x),
    )


@program("int")
def math_constants_and_static_math(n):
    return n * math.pi, math.sqrt(16.0), math.floor(2.7) + n


@program("int")
def formatting_while_compiling(n):
    text = f"{3:>4}|{'a'!r}"
    return len(text) + n


@program("int int")
def dynamic_index_of_tuple_and_list(i, n):
    values = (n, 20, 30, n * 2)
    items = [5, n, 7]
    items[i % 3] = 100
    items[0] += 1
    return values[i % 4], items[i % 3], items[0], items[1], items[-1], values[-(i % 4) - 1]


@program("int")
def dynamic_index_out_of_range(i):
    values = [1, 2, 3]
    return values[i]


@program("int ints")
def nested_subscripts(n, a):
    table = [(n, 2), (3, 4 + n)]
    rows = [[1, 2], [n, 3]]
    rows[1][0] = a[n % 6]
    return table[n % 2][1] if n < 0 else table[1][n % 2], table[a[0] % 2][n % 2], rows[1][n % 2]


@program("int")
def len_of_containers(n):
    return len([n, 1]) + len((n,)) + len({"a": n}) + len("abc")


@program("bool bool")
def boolean_algebra(p, q):
    return p and q, p or q, not p, p != q, p & q, p | q, p ^ q


@program("wide wide")
def extremes_compare(a, b):
    return a < b, a == b, a >= b, max(a, b), min(a, b)


@program("wide")
def extremes_wrap_at_the_width(a):
    return a + 1, a - 1, a ^ -1


@refused("is not iterable", "int")
def iterating_a_number(n):
    total = 0
    for x in n:  # error
        total += x
    return total


@refused("does not fit", "int")
def literal_that_does_not_fit(n):
    return n + 2**80  # error


@refused("match", "int")
def match_on_dynamic(n):
    match n:
        case 0:  # error
            return 1
        case _:
            return 2


@refused("refers to different list objects", "int")
def dynamic_index_of_lists(n):
    rows = [[1, 2], [3, 4]]
    return rows[n % 2][0]  # error
