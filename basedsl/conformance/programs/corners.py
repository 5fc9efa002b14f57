"""Corners of arithmetic and comparison: signs, halves, zeros of both signs, NaN, edges of types."""

# mypy: ignore-errors

import math

from basedsl.conformance.cases import program, refused

NAN, INF = float("nan"), float("inf")
_SIGNED = [(7, 2), (-7, 2), (7, -2), (-7, -2), (0, 3), (6, -3), (1, 0)]
_FLOATS = [(7.5, 2.0), (-7.5, 2.0), (7.5, -2.0), (-7.5, -2.0), (6.0, -3.0), (-6.0, 3.0)]
_ZEROS = [(0.0, 3.0), (-0.0, 3.0), (0.0, -3.0), (-0.0, -3.0)]


@program("", inputs=_SIGNED, tags="raise")
def signs_of_quotient_and_remainder(a, b):
    return a // b, a % b, divmod(a, b)


@program("", inputs=[*_FLOATS, *_ZEROS])
def signs_of_float_quotient_and_remainder(a, b):
    return a // b, a % b, divmod(a, b), math.fmod(a, b)


@program("", inputs=[(1, 0), (0, 0)], tags="raise")
def divmod_by_zero(a, b):
    return divmod(a, b)


@program("", inputs=[(1.0, 0.0), (1.0, -0.0), (1.0, 2.0)], tags="raise float-errors")
def float_floor_division_by_zero(a, b):
    return a // b


@program("", inputs=[(x / 4,) for x in range(-14, 15)])
def round_half_to_even(x):
    return round(x), round(x * 2), round(x, 0), round(x * 0.5, 1)


@program("", inputs=[(1234,), (1250,), (1350,), (-15,), (25,)])
def round_of_an_int(n):
    return round(n), round(n, 2), round(n, -1), round(n, -2)


@program("", inputs=[(NAN, 1.0), (1.0, NAN), (0.0, -0.0), (-0.0, 0.0), (INF, -INF)])
def min_and_max_keep_the_first_of_equals(a, b):
    return min(a, b), max(a, b), min(a, b, 0.5), max(0.5, a, b)


@program("", inputs=[(0.0,), (-0.0,), (2.0,)])
def zeros_of_both_signs(x):
    return -x, x * -1.0, 0.0 - x, x + 0.0, abs(x), math.copysign(1.0, x), x == 0.0


@program("", inputs=[(NAN, 1.0), (1.0, NAN), (NAN, NAN), (INF, 1.0)])
def nan_in_comparisons(a, b):
    return a < b, a <= b, a == b, a != b, a > b, a >= b, not a < b, bool(a), a < b < 2.0


@program("", inputs=[(NAN,), (INF,), (-INF,), (2.75,), (-2.75,)], tags="raise float-errors")
def int_of_what_has_no_int(x):
    return int(x)


@program("", inputs=[(NAN,), (INF,), (2.5,), (-3.5,)], tags="raise float-errors")
def rounding_of_what_has_no_int(x):
    return math.floor(x), math.ceil(x), math.trunc(x), round(x)


@program("", inputs=[(1, 3), (-1, 1), (-5, 20), (3, 0)])
def shifts(n, m):
    return n << m, n >> m, -n << 2, 1 << m


@program("", inputs=[(-1, 70), (5, 70), (5, 32), (5, 64), (-5, 63), (-5, 100)])
def right_shifts_beyond_the_width(n, m):
    return n >> m


@program("", inputs=[(1, -1), (0, -3), (4, 1)], tags="raise")
def negative_shift_count(n, m):
    return n >> m


@program("", inputs=[(2,), (-3,), (1,)])
def power_by_a_negative_literal(n):
    return n**-1, n**-2, 2**-1, n**0


@program("", inputs=[(2, 3), (-3, 3), (0, 0), (-2, 2), (7, 1)])
def power_of_ints(n, m):
    return n**m, 2**m, pow(n, m)


@refused("a negative exponent makes the power of two integers a float", inputs=[(2, -1)])
def power_by_a_negative_number(n, m):
    return n**m  # error


@refused("an integer to the power of `-n`", inputs=[(2,)])
def power_by_a_negated_number(n):
    return 2**-n  # error


@program("", inputs=[(2,), (3,)])
def power_of_a_float_by_a_negated_number(n):
    return 2.0**-n


@program("int")
def ints_and_floats_compare(n):
    return n == 3.0, n < 2.5, 0.5 < n < 3.5, n != 3.0, 2 <= n <= 2.0


@program("bool bool")
def booleans_in_arithmetic(a, b):
    return a + b, a * 3, -a, a - b, a < b, a == 1, max(a, b), sum([a, b]), abs(a), a << 2


@refused("`~` of a Boolean is -1 or -2 in Python", "bool")
def inverted_boolean(flag):
    return ~flag  # error


@program("int int")
def operands_of_a_chain_are_evaluated_once(n, m):
    calls = [0]

    def called(x):
        calls[0] = calls[0] + 1
        return x

    first = n < called(m) < 10
    return first, calls[0]


@program("int int")
def membership(n, m):
    return (
        n in (1, 2, m),
        n not in [3, m],
        n in (),  # noqa: RUF060
        3 in (n, m),
        n in {1, 2, 7},
        n in {1: "a", 3: "b"},
        n in {1: 2, 3: 4}.values(),
        None in (n, m),
        n in (m, None, 2),
        n + 1 in [n + 1],
    )


@program("int int")
def membership_in_ranges(n, m):
    return (
        n in range(5),
        n in range(-4, 10, 3),
        n in range(9, -9, -2),
        n in range(m),
        3 in range(n, m),
        n not in range(m, 12, 2),
    )


@program("int int")
def membership_decides(n, m):
    r = 0
    if n in (1, 3, m):
        r += 1
    elif m not in (n, 0):
        r += 10
    while r in (1, 10):
        r += 5
    return r if n in (0, 7) else r + 100, 0 < n in (1, 2, 3)


@program("int float")
def membership_of_mixed_types(n, x):
    return n in (1.0, 3.0), x in (1, 0.25, n), True in (n, x)


@program("int")
def membership_by_the_users_own_method(n):
    class Evens:
        def __contains__(self, x):
            return x % 2 == 0

    return n in Evens(), n not in Evens()


@program("int")
def static_membership(n):
    found = 0
    for name in ("a", "b", "c"):
        if name in "bc" and name not in {"c": n}:
            found += n
    return found, "x" in {"x": n}


@refused("is looked up in a dict or a set", "int")
def dict_by_a_dynamic_key(n):
    table = {1: 10, 2: 20}
    return table[n]  # error


@refused("is looked up in a dict or a set", "int")
def dict_get_by_a_dynamic_key(n):
    return {1: 10}.get(n, 0)  # error


@refused("is looked up in a dict or a set", "int int")
def set_of_dynamic_values(n, m):
    return len({n, m})  # error


@refused("is used as a Python condition", "int")
def equal_tuples(n):
    return (n, 1) == (3, 1)  # error


@refused("is used as a Python condition", "int int")
def sorted_dynamic_values(n, m):
    return sorted([n, m])[0]  # error


@program("int")
def identity(n):
    m = n
    x = None
    return m is n, x is None, n is not None, n is None


@program("int")
def long_expression(n):
    return (
        sum([n] * 300)
        + (n + n + n + n + n + n + n + n + n + n + n + n + n + n + n + n + n + n + n + n)
        + (n - n + n - n + n - n + n - n + n - n + n - n + n - n + n - n + n - n + n - n)
    )


@program("int int")
def strings_show_dynamic_values_as_question_marks(n, m):
    kind = f"{'a':>3}|{2 + 2:03d}|{3.5!r}"
    return len(kind), n


@program("int")
def static_types_and_attributes(n):
    return isinstance(n, str), hasattr(n, "no_such"), callable(n), str is str


@program("int")
def slices_of_static_length(n):
    values = [1, n, 3, 4]
    values[1:3] = [n + 1]
    del values[0]
    return values[::-1][0], values[0], len(values), (n, 2, 3)[1:], [n, 2][-1:]


@program("int")
def methods_of_lists(n):
    values = [n] * 3 + [1]
    values.append(2)
    values.insert(0, n + 1)
    values.extend([3])
    last = values.pop()
    values.reverse()
    return values[0], values[-1], len(values), last


@program("int")
def match_on_what_is_static(n):
    match (1, n):
        case (2, _):
            r = 0
        case (1, x):
            r = x * 3
        case _:
            r = -1
    return r
