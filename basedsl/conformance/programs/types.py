"""Types across paths: literals adapt, widths widen, types without a common one are an error."""

# mypy: ignore-errors
# ruff: noqa: B007, SIM

from basedsl.conformance.cases import program, refused
from basedsl.numeric import Float32, Int8, Int16, Int32, Int64


@program("count floats")
def float_accumulator_starts_at_zero_point(n, a):
    total = 0.0
    for i in range(6):
        total += a[i]
    return total


@program("floats")
def literal_takes_the_type_it_meets(a):
    total = 0
    for i in range(6):
        total += a[i]
    return total + 0.0


@program("int")
def widths_widen(n):
    x = Int8(1)
    if n > 0:
        x = Int32(1000)
    return int(x)


@program("count")
def widths_widen_in_a_loop(n):
    x = Int16(1)
    for i in range(n):
        x = x + Int32(1)
    return int(x)


@program("int")
def literal_on_one_path(n):
    x = 1
    if n > 0:
        x = Int64(n) * 2
    return int(x)


@program("int float")
def expression_promotes(n, x):
    y = n if n > 0 else x
    return y + 0.5


@program("int")
def explicit_types(n):
    small = Int32(5) + 3
    return int(small) + n, float(Float32(1.5))


@program("bool")
def booleans_are_ints(flag):
    return flag + flag + 1


@refused("on one path and", "int float")
def int_or_float_variable(n, x):
    if n > 0:
        y = n
    else:
        y = x
    return y


@refused("before the loop and", "int float")
def int_becomes_float_in_a_loop(n, x):
    y = n
    for i in range(3):
        y = x * 2
    return y


@refused("on one path and", "int")
def none_or_number(n):
    x = None
    if n > 0:
        x = n
    return x


@refused("or None", "int")
def expression_of_none(n):
    x = n if n > 0 else None  # error
    return x


@refused("on one path and", "int")
def strings_by_condition(n):
    if n > 0:
        mode = "a"
    else:
        mode = "b"
    return 1 if mode == "a" else 2


@refused("the return value", "int")
def return_some_paths_only(n):
    if n > 0:
        return 1


@refused("cannot choose between objects", "int")
def functions_by_condition(n):
    if n > 0:
        f = lambda x: x + 1  # noqa: E731
    else:
        f = lambda x: x - 1  # noqa: E731
    return f(n)


@refused("is used as a Python condition", "int")
def comprehension_by_a_dynamic_condition(n):
    return sum([x for x in (1, 2, 3) if x > n])  # error


@refused("on one path and", "int")
def bool_or_int_variable(n):
    x = True
    if n > 3:
        x = 5
    return x
