"""Objects that have another name, or outlive the call: outer variables, aliases, classes."""

# mypy: ignore-errors
# ruff: noqa: B007, B023, C416, C417, E722, F841, RUF015, RUF100

from basedsl.conformance.cases import program, program_of, refused


@program_of("int", message="the nonlocal variable 'kept' cannot hold a dynamic value")
def dynamic_nonlocal_write(jit):
    kept = 0

    def main(n):
        nonlocal kept
        kept = n  # error
        return n

    return main


@program_of("int", message="the nonlocal variable 'kept' cannot hold a dynamic value")
def dynamic_nonlocal_update(jit):
    kept = 0

    def main(n):
        nonlocal kept
        kept += n  # error
        return n

    return main


@program_of("int")
def static_nonlocal_write(jit):
    kept = 0

    def main(n):
        nonlocal kept
        kept = 5
        kept += 1
        return n + kept

    return main


@program("int")
def nonlocal_inside_the_function(n):
    total = 0

    def add():
        nonlocal total
        total = total + n

    add()
    add()
    return total


def _fresh(x, held=None):
    held = [] if held is None else held
    held.append(x)
    return len(held)


@program("int")
def default_arguments_of_a_function_inside(n):
    def total(x, held=[0]):  # noqa: B006
        held[0] = held[0] + x
        return held[0]

    r = total(n) + total(n)
    for i in range(3):
        r += total(i)
    return r, _fresh(n)


@program("count")
def lambdas_made_in_a_loop(n):
    r = 0
    f = lambda x: x  # noqa: E731
    for i in range(n):
        f = lambda x: x + i  # noqa: E731
        r += f(1)
    return r


@program("int")
def closures_share_the_last_value(n):
    late = [lambda: n + i for i in (1, 2, 3)]
    early = [lambda i=i: n + i for i in (1, 2, 3)]
    return late[0](), early[0](), late[2]()


@program("", inputs=[(0,), (2,)])
def aliases_of_lists_in_a_loop_that_may_not_run(n):
    a = [1, 2]
    b = a
    for i in range(n):
        b[0] = i + 5
        b = a
    a[1] = 9
    return b[0], b[1], a[0]


@refused("refers to different", inputs=[(0,)])
def rebinding_to_an_alias_in_a_loop(n):
    a, b = [1, 2], [3, 4]
    for i in range(n):
        b = a  # error
    a[0] = 50
    return b[0]


@program("count")
def comprehension_variables_are_their_own(n):
    v = 5
    r = 0
    for i in range(n):
        r += v
        r += [v for v in (1, 2)][0]
        r += sum({v: v for v in (3, 4)}.values())
    return r + v


@program("int")
def comprehension_variables_in_a_branch(n):
    v = 0
    if n not in (1, 3):
        return 0
    for i, j in enumerate([2, n, n]):
        m = v + i
    [0 for u, v in ((1, 2),)]
    return m


MAYBE = "may be one object after this loop, and one is changed"


@refused(MAYBE, inputs=[(0,)])
def changing_what_a_loop_may_have_left_alone(n):
    e = d = [1, 2]
    for i in range(n):
        d = [i, i]
    d[0] = 50
    return e[0]


@refused(MAYBE, inputs=[(0,)])
def changing_the_other_name_after_a_loop(n):
    d = [1, 2]
    held = [d]
    while n > 0:
        d = [n, n]
        n -= 1
    held[0][0] = 50
    return d[0]


@refused(MAYBE, inputs=[(0,)])
def changing_an_argument_that_a_loop_may_have_replaced(n):
    def inner(d):
        for i in range(n):
            d = [i, i]
        d[0] = 9
        return d

    x = [1, 2]
    y = inner(x)
    return x[0], y[0]


@refused("is changed in place, and another name of it is bound anew", inputs=[(0,)])
def changing_under_one_name_and_binding_another(n):
    e = d = [1, 2]
    total = 0
    for i in range(n):
        e[0] += 1
        total += d[0]
        d = [i, i]
    return total


@program("", inputs=[(0,), (2,)])
def reading_what_a_loop_may_have_left_alone(n):
    e = d = [1, 2]
    for i in range(n):
        d = [i, i]
    return e[0] + d[0], d[1]


@program("", inputs=[(0,), (2,), (5,)])
def changing_what_only_one_name_has(n):
    d = [0, 0]
    for i in range(n):
        d = [d[0] + i, i]
    d[0] += 1
    total = 0
    for k in range(n):
        inner = [k, 0]
        for i in range(n):
            inner = [inner[0] + i, k]
        inner[1] += 1
        total += inner[0] + inner[1]
    return d, total


# What classes, functions, modules and global variables hold ---------------------------------------

ONCE = "inside staged control flow"
STATE = 0


class Shared:
    count = 0

    @classmethod
    def add(cls, x):
        cls.count = cls.count + x


@refused("the global variable 'STATE' is bound " + ONCE, "int")
def static_global_write_in_a_branch(n):
    global STATE
    if n > 0:
        STATE = 4  # error
    return n


@program_of("int", message="the nonlocal variable 'kept' is bound " + ONCE)
def static_nonlocal_write_in_a_loop(jit):
    kept = 0

    def main(n):
        nonlocal kept
        for i in range(n):
            kept = 5  # error
        return n

    return main


@refused("'Shared.count' is set " + ONCE, "int")
def class_attribute_in_a_branch(n):
    if n > 0:  # error
        Shared.count = Shared.count + 5
    return n


@refused("'Shared.count' is set " + ONCE, "count")
def class_attribute_by_a_method_in_a_loop(n):
    for i in range(n):  # error
        Shared.add(1)
    return n


@refused("'Local.k' is set " + ONCE, "count")
def attribute_of_a_local_class_in_a_loop(n):
    class Local:
        k = 0

    for i in range(n):  # error
        Local.k = Local.k + i
    return Local.k


@refused("'f.calls' is set " + ONCE, "count")
def attribute_of_a_function_in_a_loop(n):
    def f():
        f.calls = f.calls + 1

    f.calls = 0
    for i in range(n):  # error
        f()
    return f.calls


@program("int")
def static_class_attribute(n):
    class Local:
        k = 1

    for i in (1, 2, 3):
        Local.k = Local.k + i
    Local.k = Local.k + n
    return Local.k
