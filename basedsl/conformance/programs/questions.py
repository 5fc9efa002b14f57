"""Questions for the identity and the type of numbers: `is`, `isinstance`, `type`, `match`."""

# mypy: ignore-errors
# ruff: noqa

import functools
import numbers
import operator

from basedsl.conformance.cases import program, refused


@program("bool")
def is_true(b):
    return 1 if b is True else 2


@program("bool")
def is_not_true(b):
    return 1 if b is not True else 2


@program("bool")
def is_false(b):
    if b is False:
        return 1
    return 2


@program("int")
def compare_is_true(n):
    found = n > 3
    return 1 if found is True else 0


@refused("write ==", "int int")
def is_numbers(n, m):
    return 1 if n is m else 0


@program("int")
def is_none(n):
    return 1 if n is None else 0


@program("int")
def is_not_none(n):
    return 1 if n is not None else 0


@refused("write ==", "int")
def is_literal(n):
    three = 3
    return 1 if n is three else 0


@program("int")
def is_true_int(n):
    return 1 if n is True else 0


@program("float")
def is_same_name(x):
    y = x
    return 1 if x is y else 0


@program("int")
def operator_is(n):
    return 1 if operator.is_(n > 3, True) else 0


@program("int")
def chain_is(n):
    return 1 if (n > 3) is (n > 2) is True else 0


@refused("id() of an", "int")
def id_equal(n):
    m = n
    return 1 if id(m) == id(n) else 0


@program("int")
def isinstance_int(n):
    return 1 if isinstance(n, int) else 2


@program("float")
def isinstance_int_of_float(n):
    return 1 if isinstance(n, int) else 2


@program("float")
def isinstance_tuple(n):
    return 1 if isinstance(n, (int, float)) else 2


@program("int")
def isinstance_union(n):
    return 1 if isinstance(n, int | float) else 2


@program("bool")
def isinstance_bool(n):
    return (1 if isinstance(n, bool) else 2), (1 if isinstance(n, int) else 2)


@program("int")
def isinstance_not_bool(n):
    return 1 if isinstance(n, bool) else 2


@program("int")
def type_is_int(n):
    return 1 if type(n) is int else 2


@program("int")
def type_eq_int(n):
    return 1 if type(n) == int else 2


@program("float")
def type_in(n):
    return 1 if type(n) in (int, float) else 2


@program("float")
def type_name(n):
    return 1 if type(n).__name__ == "float" else 2


@program("float")
def class_attr(n):
    return 1 if n.__class__ is float else 2


@program("int")
def number_number(n):
    return 1 if isinstance(n, numbers.Number) else 2


@program("int")
def number_integral(n):
    return 1 if isinstance(n, numbers.Integral) else 2


@program("float")
def number_integral_float(n):
    return (1 if isinstance(n, numbers.Integral) else 2), (1 if isinstance(n, numbers.Real) else 2)


@program("int")
def issubclass_type(n):
    return 1 if issubclass(type(n), int) else 2


@program("int")
def type_constructs(n):
    return type(n)(3.7) + n


@program("float")
def type_constructs_float(x):
    return type(x)(3) / 2 + x


@functools.singledispatch
def kind(x):
    return 0


@kind.register
def _(x: int):
    return 1


@kind.register
def _(x: float):
    return 2


@program("int")
def dispatch(n):
    return kind(n)


@program("float")
def dispatch_float(n):
    return kind(n)


@program("int")
def match_int(n):
    v = (n,)
    match v:
        case (int(a),):
            return a + 1
        case (float(a),):
            return 100
    return -1


@program("float")
def match_float(n):
    v = [n, 1]
    match v:
        case [int(a), _]:
            return 1.0
        case [float(a), int(b)]:
            return a + b
    return -1.0


@program("int")
def match_direct(n):
    match n:
        case int(a):
            return a + 1
        case float(a):
            return 100
    return -1


@refused("`match` needs a static subject", "int")
def match_values(n):
    match n:
        case 1:
            return 10
        case 2 | 3:
            return 20
        case _:
            return 30


@refused("`match` needs a static subject", "int")
def match_guard(n):
    match n:
        case k if k > 3:
            return k
        case _:
            return 0


@refused("`match` needs a static subject", "int int")
def match_tuple(n, m):
    match (n, m):
        case (0, 0):
            return 1
        case (0, k):
            return k
        case (k, 0):
            return -k
        case (a, b):
            return a * b


@program("int")
def isinstance_helper(n):
    def helper(v):
        if isinstance(v, (int, float)):
            return v * 2
        return sum(v)

    return helper(n) + helper([1, 2])


@program("int")
def isinstance_map(n):
    return sum(1 for k in (n, 1, 2.0, "a") if isinstance(k, int))


@program("int")
def int_methods(n):
    return n.real + n.imag + n.numerator + n.denominator


@program("int")
def conjugate(n):
    return n.conjugate()


@program("float")
def getattr_real(n):
    return n.real


@program("int")
def callable_int(n):
    return 1 if callable(n) else 0


@program("int")
def format_types(n):
    return len(f"{type(n).__name__}")


@program("bool")
def table_bool(n):
    table = {int: 1, float: 2, bool: 3}
    return table.get(type(n), 0)


@program("int")
def isinstance_object(n):
    return 1 if isinstance(n, object) else 0


@program("int")
def isinstance_str(n):
    return 1 if isinstance(n, str) else 0


@program("int")
def isinstance_alias(n):
    check = isinstance
    return 1 if check(n, int) else 0


@program("int")
def map_isinstance(n):
    return 1 if all(map(lambda v: isinstance(v, int), [n, 1])) else 0


@program("int")
def try_int(n):
    if type(n) is not int:
        raise TypeError("not an int")
    return n


@program("float")
def type_eq_types(x):
    return (1 if type(x) is type(1.0) else 0), (1 if type(x) == type(1) else 0)


@program("int float")
def type_is_type(n, x):
    return (
        (1 if type(x) is type(n) else 0),
        (1 if type(x * 1) is type(x) else 0),
        (1 if type(n + x) is type(x) else 0),
        (1 if type(n / 1) is float else 0),
    )


@program("int")
def type_bool_expr(n):
    return (
        (1 if type(n > 3) is bool else 0),
        (1 if isinstance(n > 3, bool) else 0),
        (1 if type((n > 3) + 1) is int else 0),
    )
