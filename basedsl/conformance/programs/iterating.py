"""Builtins over ranges: reversed, enumerate, zip, sum, min, any, generators."""

# mypy: ignore-errors
# ruff: noqa

from basedsl.conformance.cases import program, refused
from basedsl.conformance.programs.truth import Cond


@program("count")
def rev(n):
    t = 0
    for i in reversed(range(n)):
        t = t * 3 + i
    return t


@program("count int")
def rev_step(n, m):
    t = 0
    for i in reversed(range(m, m + n * 3, 2)):
        t = t * 3 + i
    for i in reversed(range(n, -n, -3)):
        t = t * 3 + i
    return t


@program("count")
def enum_range(n):
    t = 0
    for i, k in enumerate(range(2, n)):
        t = t * 3 + i * k
    return t


@program("count")
def enum_start(n):
    t = 0
    for i, k in enumerate(range(2, n), start=n):
        t = t * 3 + i * k
    for i, k in enumerate(range(2, n), 5):
        t = t * 3 + i * k
    return t


@program("count count")
def zip_ranges(n, m):
    t = 0
    for i, k in zip(range(n), range(m, 20)):
        t = t * 3 + i * k
    return t


@program("count")
def zip_list(n):
    t = 0
    for i, k in zip(range(n), [5, 6, 7]):
        t = t * 3 + i * k
    for k, i in zip((1.5, 2.5, 3.5, 4.5), range(n)):
        t = t + i * int(k * 2)
    return t


@program("count")
def enum_zip(n):
    t = 0
    for j, (i, k) in enumerate(zip(range(n), range(n, 2 * n))):
        t = t * 3 + i * k + j
    return t


@program("count")
def rev_enum(n):
    t = 0
    for i, k in enumerate(reversed(range(n))):
        t = t * 3 + i * k
    return t


@program("count")
def zip_break(n):
    t = 0
    for i, k in zip(range(n), range(1, n + 1)):
        if i == 4:
            break
        t += k
    else:
        t += 100
    return t


@program("count")
def sum_range(n):
    return sum(range(n)), sum(range(1, n, 2)), sum(range(n), 10), sum(range(n, -n, -2))


@program("count", tags="raise")
def minmax_range(n):
    return min(range(3, n + 1)), max(range(3, n + 1))


@program("count")
def anyall_range(n):
    return any(range(n)), all(range(n)), all(range(1, n)), any(range(1)), any(range(-n, n))


@program("count")
def len_range(n):
    return len(range(n)), len(range(n, 2 * n, 3)), len(range(n, -n, -2))


@program("count")
def sum_gen(n):
    return sum(i * i for i in range(n))


@program("count")
def sum_list(n):
    return sum([i * i for i in range(n)])


@program("count")
def bool_range(n):
    return 1 if range(n) else 0


@program("count")
def minmax_default(n):
    return min(range(n), default=7)


@program("count ints")
def enum_static(n, a):
    t = 0
    for i, k in enumerate(range(6)):
        t = t * 2 + a[i] * k
    return t + n


@refused("zip(strict=True)", "count")
def zip_strict(n):
    t = 0
    for a, b in zip(range(n), range(n), strict=True):
        t += a * b
    return t


@refused("cannot be iterated by Python", "count")
def mapped(n):
    t = 0
    for x in map(lambda i: i * i, range(n)):
        t += x
    return t


@refused("cannot be iterated by Python", "count")
def index_range(n):
    return range(n + 1)[n], range(n + 1)[-1], range(5)[n % 5]


@program("count", tags="raise")
def minmax_gen(n):
    return max(i * (5 - i) for i in range(n)), min((i * (5 - i) for i in range(n)), default=-9)


@program("count ints")
def any_gen(n, a):
    return any(a[i] > 5 for i in range(n - 4)), all([a[i] > -9 for i in range(n - 4)])


@program("count")
def gen_of_objects(n):
    b = Cond(0)

    def bump(i):
        b.n += i
        return i * 2

    s = sum(bump(i) for i in range(n))
    return s, b.n


@program("count")
def gen_nested(n):
    return sum(sum(i * j for j in range(i)) for i in range(n))


@program("count")
def gen_in_loop(n):
    t = 0
    for k in range(n):
        t += sum(i * k for i in range(k)) - len(range(k))
    return t


@program("count")
def gen_static(n):
    return (
        sum(x * n for x in (1, 2, 3)),
        max([x * n for x in (1, 2, 3)]),
        sum((x for x in range(3)), n),
        sum(x for x in [1.5, n]),
    )
