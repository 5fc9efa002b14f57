"""Builtins over ranges, tables, deep branches, truth and conversions of one's own objects."""

# mypy: ignore-errors
# ruff: noqa

from basedsl.conformance.cases import program, refused


@program("int", inputs=[(i,) for i in (0, 57, 99, -1, -100, 100, -101)], tags="raise")
def table100(n):
    t = (
        [i * i for i in range(100)]
        if False
        else (
            0,
            37,
            74,
            10,
            47,
            84,
            20,
            57,
            94,
            30,
            67,
            3,
            40,
            77,
            13,
            50,
            87,
            23,
            60,
            97,
            33,
            70,
            6,
            43,
            80,
            16,
            53,
            90,
            26,
            63,
            100,
            36,
            73,
            9,
            46,
            83,
            19,
            56,
            93,
            29,
            66,
            2,
            39,
            76,
            12,
            49,
            86,
            22,
            59,
            96,
            32,
            69,
            5,
            42,
            79,
            15,
            52,
            89,
            25,
            62,
            99,
            35,
            72,
            8,
            45,
            82,
            18,
            55,
            92,
            28,
            65,
            1,
            38,
            75,
            11,
            48,
            85,
            21,
            58,
            95,
            31,
            68,
            4,
            41,
            78,
            14,
            51,
            88,
            24,
            61,
            98,
            34,
            71,
            7,
            44,
            81,
            17,
            54,
            91,
            27,
        )
    )
    return t[n]


@program("int")
def elif100(n):
    x = 0
    if n == 0:
        x = 5
    elif n == 1:
        x = 7
    elif n == 2:
        x = 1
    elif n == 3:
        x = 8
    elif n == 4:
        x = 2
    elif n == 5:
        x = 9
    elif n == 6:
        x = 3
    elif n == 7:
        x = 10
    elif n == 8:
        x = 4
    elif n == 9:
        x = 11
    elif n == 10:
        x = 5
    elif n == 11:
        x = 12
    elif n == 12:
        x = 6
    elif n == 13:
        x = 0
    elif n == 14:
        x = 7
    elif n == 15:
        x = 1
    elif n == 16:
        x = 8
    elif n == 17:
        x = 2
    elif n == 18:
        x = 9
    elif n == 19:
        x = 3
    elif n == 20:
        x = 10
    elif n == 21:
        x = 4
    elif n == 22:
        x = 11
    elif n == 23:
        x = 5
    elif n == 24:
        x = 12
    elif n == 25:
        x = 6
    elif n == 26:
        x = 0
    elif n == 27:
        x = 7
    elif n == 28:
        x = 1
    elif n == 29:
        x = 8
    elif n == 30:
        x = 2
    elif n == 31:
        x = 9
    elif n == 32:
        x = 3
    elif n == 33:
        x = 10
    elif n == 34:
        x = 4
    elif n == 35:
        x = 11
    elif n == 36:
        x = 5
    elif n == 37:
        x = 12
    elif n == 38:
        x = 6
    elif n == 39:
        x = 0
    elif n == 40:
        x = 7
    elif n == 41:
        x = 1
    elif n == 42:
        x = 8
    elif n == 43:
        x = 2
    elif n == 44:
        x = 9
    elif n == 45:
        x = 3
    elif n == 46:
        x = 10
    elif n == 47:
        x = 4
    elif n == 48:
        x = 11
    elif n == 49:
        x = 5
    elif n == 50:
        x = 12
    elif n == 51:
        x = 6
    elif n == 52:
        x = 0
    elif n == 53:
        x = 7
    elif n == 54:
        x = 1
    elif n == 55:
        x = 8
    elif n == 56:
        x = 2
    elif n == 57:
        x = 9
    elif n == 58:
        x = 3
    elif n == 59:
        x = 10
    elif n == 60:
        x = 4
    elif n == 61:
        x = 11
    elif n == 62:
        x = 5
    elif n == 63:
        x = 12
    elif n == 64:
        x = 6
    elif n == 65:
        x = 0
    elif n == 66:
        x = 7
    elif n == 67:
        x = 1
    elif n == 68:
        x = 8
    elif n == 69:
        x = 2
    elif n == 70:
        x = 9
    elif n == 71:
        x = 3
    elif n == 72:
        x = 10
    elif n == 73:
        x = 4
    elif n == 74:
        x = 11
    elif n == 75:
        x = 5
    elif n == 76:
        x = 12
    elif n == 77:
        x = 6
    elif n == 78:
        x = 0
    elif n == 79:
        x = 7
    elif n == 80:
        x = 1
    elif n == 81:
        x = 8
    elif n == 82:
        x = 2
    elif n == 83:
        x = 9
    elif n == 84:
        x = 3
    elif n == 85:
        x = 10
    elif n == 86:
        x = 4
    elif n == 87:
        x = 11
    elif n == 88:
        x = 5
    elif n == 89:
        x = 12
    elif n == 90:
        x = 6
    elif n == 91:
        x = 0
    elif n == 92:
        x = 7
    elif n == 93:
        x = 1
    elif n == 94:
        x = 8
    elif n == 95:
        x = 2
    elif n == 96:
        x = 9
    elif n == 97:
        x = 3
    elif n == 98:
        x = 10
    elif n == 99:
        x = 4
    else:
        x = -1
    return x


class Cond:
    def __init__(self, n):
        self.n = n

    def __bool__(self):
        return self.n > 0


class Sized:
    def __init__(self, n):
        self.n = n

    def __len__(self):
        return self.n


class Conv:
    def __init__(self, n):
        self.n = n

    def __int__(self):
        return self.n

    def __float__(self):
        return self.n + 0.5

    def __index__(self):
        return self.n

    def __abs__(self):
        return -self.n

    def __round__(self, d=None):
        return self.n


@program("int")
def bool_of_object(n):
    c = Cond(n)
    if c:
        return 1
    return 2


@program("int")
def not_object(n):
    return not Cond(n)


@program("int")
def and_object(n):
    return 1 if Cond(n) and Cond(n - 5) else 0


@program("int")
def or_object(n):
    return 1 if (Cond(n) or Cond(-n - 5)) else 0


@program("int")
def ifexp_object(n):
    return 3 if Cond(n) else 4


@program("count")
def while_object(n):
    c = Cond(n)
    k = 0
    while c:
        c.n -= 1
        k += 1
    return k


@program("int")
def bool_call(n):
    return bool(Cond(n)), bool(Sized(abs(n)))


@program("count")
def len_object(n):
    return len(Sized(n)) + (1 if Sized(n) else 0)


@program("int")
def conversions_of_an_object(n):
    return int(Conv(n)), float(Conv(n)), abs(Conv(n)), round(Conv(n))


@program("count")
def range_of_index(n):
    t = 0
    for i in range(Conv(n)):
        t += i
    return t


@program("int")
def any_objects(n):
    return any([Cond(n), Cond(-n)]), all([Cond(n), Cond(n + 3)])


@program("int")
def assert_object(n):
    assert Cond(abs(n) + 1)
    return n


@program("int")
def index_list(n):
    return [1, 2, 3][Conv(abs(n) % 3)]


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


@refused("refers to different Cond objects", "int")
def table_objects(n):
    t = [Cond(1), Cond(2)]
    return t[n % 2].n


@program("int", inputs=[(i,) for i in (0, 1, 2, -1, -3, 3, -4)], tags="raise")
def table_small(n):
    t = (10, 20, 30)
    return t[n]
