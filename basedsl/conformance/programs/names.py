"""When names are bound: in branches and loops, on some paths, deleted, in outer scopes."""

# mypy: ignore-errors
# ruff: noqa: F821, B007, F841, SIM, PLW0602, PLW0603

from basedsl.conformance.cases import program, refused


@program("int")
def bound_in_both_branches(n):
    if n > 0:
        x = 1
    else:
        x = n * 2
    return x


@program("int")
def bound_in_nested_branches(n):
    if n > 0:
        if n > 5:
            x = 1
        else:
            x = 2
        y = x + 1
    else:
        y = x = 3
    return x + y


@program("int")
def unused_name_in_one_branch(n):
    if n > 0:
        unused = n * 3
        other = "text"
    return n


@program("int")
def first_bound_in_a_branch_and_read_there(n):
    r = 0
    if n > 0:
        x = n * 2
        r = x + 1
    if n > 3:
        x = 5
        r += x
    return r


@program("count")
def first_bound_in_a_loop_body(n):
    r = 0
    for i in range(n):
        x = i * 2
        r += x
    return r


@program("int")
def first_bound_in_a_loop_that_runs(n):
    for i in range(3):
        x = i + n
    return x, i


@program("", inputs=[(1,), (4,)])
def first_bound_in_a_loop_and_read_after_it_left(n):
    while True:
        x = n * 2
        if x > 3:
            break
        n += 1
    return x


@program("count")
def rebinding_to_another_kind_where_dead(n):
    x = "static"
    r = len(x)
    for i in range(n):
        x = i
        r += x
    return r


@program("int")
def del_and_bind_again(n):
    x = n
    del x
    x = 3
    if n > 0:
        y = x
        del y
    return x


@program("int bool")
def return_makes_the_rest_bound(n, flag):
    if flag:
        x = n + 1
    else:
        return -1
    return x


@program("count bool")
def continue_makes_the_rest_bound(n, flag):
    r = 0
    for i in range(n):
        if i % 2 == 0:
            x = i
        else:
            continue
        r += x
    return r


@program("int")
def closures_see_later_values(n):
    k = 1

    def get():
        return k

    a = get()
    k = n
    if n > 2:
        k = 10
    return a, get()


@program("count")
def closure_changed_in_a_loop(n):
    total = 0

    def add(x):
        nonlocal total
        total = total + x

    for i in range(n):
        add(i)
    return total


@program("int")
def lambdas_and_defaults(n):
    double = lambda x, by=2: x * by  # noqa: E731
    return double(n) + double(3, by=n)


SCALE = 3
STATE = 0


@program("int")
def globals_are_read(n):
    return n * SCALE


@program("int")
def static_global_write(n):
    global STATE
    STATE = 4
    STATE = STATE + 1
    return n + STATE


@refused("not bound on every path", "int")
def maybe_unbound_after_a_branch(n):
    if n > 0:
        x = 1
    return x  # error


@refused("not bound when the loop does not run once", "count")
def maybe_unbound_after_a_loop(n):
    for i in range(n):
        x = i
    return x  # error


@refused("not bound on every path", "count")
def maybe_unbound_loop_variable(n):
    for i in range(n):
        pass
    return i  # error


@refused("'x' is read here before it is bound", "int")
def never_bound(n):
    if n > 100:
        y = x  # error
    x = n
    return x


@refused("cannot hold a dynamic value", "int")
def dynamic_global_write(n):
    global STATE
    STATE = n  # error
    return n
