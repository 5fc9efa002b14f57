"""break, continue, early return, loop else: on some paths, on all, from any depth."""

# mypy: ignore-errors
# ruff: noqa: B007, RET, SIM, PIE790

from basedsl.conformance.cases import program


@program("int int")
def guard_at_the_top(n, m):
    if n < 0:
        return -1
    total = 0
    for i in range(n):
        total += i * m
    return total


@program("int int int")
def two_guards_and_elif(a, b, c):
    if a > b:
        return a
    elif b > c:
        return b + 100
    if c == 0:
        return 1000
    return c + 200


@program("int")
def return_on_all_paths(n):
    if n > 3:
        return n * 2
    else:
        return n - 1


@program("int")
def return_nothing_on_some_path_never_taken(n):
    x = n
    if x > 5:
        x = 5
    return x


@program("int ints")
def return_inside_a_loop(n, a):
    for i in range(6):
        if a[i] == n:
            return i
    return -1


@program("int ints")
def return_from_nested_loops(n, a):
    for i in range(6):
        for j in range(i):
            if a[i] + a[j] == n:
                return i * 10 + j
        if a[i] > 8:
            return -2
    return -1


@program("count ints")
def return_from_while_in_for(n, a):
    for i in range(n):
        k = 0
        while k < 6:
            if a[k] == i:
                return 100 * i + k
            k += 1
    return -1


@program("int ints")
def break_leaves_one_loop(n, a):
    count = 0
    for i in range(6):
        for j in range(6):
            if a[j] > n:
                break
            count += 1
        count += 10
    return count


@program("int count")
def continue_skips(n, m):
    total = 0
    for i in range(m):
        if i % 3 == 1:
            continue
        if i == n:
            continue
        total += i
    return total


@program("int count")
def break_and_continue_together(n, m):
    total, last = 0, -1
    for i in range(20):
        if i % 2 == 0:
            continue
        if i > m + 5:
            break
        total += i
        last = i
    return total, last


@program("count")
def continue_in_while(n):
    k = total = 0
    while k < n:
        k += 1
        if k % 2 == 0:
            continue
        total += k
    return total, k


@program("int ints")
def for_else_runs_without_break(n, a):
    for i in range(6):
        if a[i] == n:
            found = i
            break
    else:
        found = -1
    return found


@program("int count")
def while_else(n, m):
    k = 0
    while k < m:
        if k == n:
            break
        k += 1
    else:
        k += 1000
    return k


@program("count")
def for_else_of_an_empty_loop(n):
    x = 1
    for i in range(n - 20):
        x = 2
    else:
        x += 10
    return x


@program("int count")
def else_after_continue(n, m):
    total = 0
    for i in range(m):
        if i == n:
            continue
        total += 1
    else:
        total += 100
    return total


@program("int count")
def nested_else(n, m):
    r = 0
    for i in range(m):
        for j in range(i):
            if i * j == n:
                r += 1
                break
        else:
            r += 10
            if i == 4:
                break
    else:
        r += 1000
    return r


@program("int")
def while_true_with_break(n):
    k = 0
    while True:
        if k * k > abs(n):
            break
        k += 1
    return k


@program("int")
def while_true_with_return(n):
    k = n
    while True:
        if k % 7 == 3:
            return k
        k += 1


@program("int count")
def nested_while_true(n, m):
    total = i = 0
    while True:
        i += 1
        j = 0
        while True:
            j += 1
            total += 1
            if j > i:
                break
            if total > 30:
                return -total
        if i > m:
            break
    return total


@program("int bool")
def unconditional_break(n, flag):
    r = 0
    for i in range(n):
        r += 5
        break
    while flag:
        r += 1
        break
    return r


@program("int")
def unconditional_return_in_loop(n):
    for i in range(n):
        return i + 10
    return -1


@program("int count ints")
def loops_in_branches_in_loops(n, m, a):
    total = 0
    for i in range(m):
        if a[i % 6] > n:
            for j in range(3):
                if j == i:
                    break
                total += j
            else:
                continue
            total += 100
        elif a[i % 6] == 0:
            k = i
            while k > 0:
                k -= 2
                if k == 3:
                    return total - 1
        else:
            pass
        total += 1
    return total


@program("int count")
def three_levels_three_exits(n, m):
    r = 0
    for i in range(m):
        for j in range(m):
            if j > i:
                break
            k = 0
            while k < 5:
                k += 1
                if k == j:
                    continue
                if i + j + k == n:
                    return r
                r += k
        if r > 40:
            break
    return r + 1000


@program("int")
def code_after_return_is_dead(n):
    if n > 0:
        return n
        n = 100
    return -n


@program("int bool")
def exit_in_unrolled_loop(n, flag):
    r = 0
    for x in (1, 2, 3, 4):
        if x == n:
            break
        if flag and x == 2:
            continue
        r += x
    else:
        r += 100
    return r


@program("int")
def return_in_unrolled_loop(n):
    for i, x in enumerate([4, 7, 1]):
        if x > n:
            return i
    return -1


@program("int bool")
def return_tuples(n, flag):
    if flag:
        return n, 1.5
    for i in range(3):
        if i == n:
            return i + 10, 2.5
    return 0, 0.5


@program("int bool")
def nested_function_with_early_return(n, flag):
    def clamp(x, low, high):
        if x < low:
            return low
        if x > high:
            return high
        return x

    if flag:
        return clamp(n, 0, 3)
    return clamp(n * 2, -4, 4)


@program("int int")
def pass_everywhere(n, m):
    if n > m:
        pass
    for i in range(m):
        pass
    while n > 100:
        pass
    return n


@program("count count")
def exit_condition_uses_loop_state(n, m):
    seen = 0
    i = 0
    for i in range(50):
        seen = seen * 2 + i
        if seen > n * m + 10:
            break
    return seen, i
