"""Truth and conversions of a program's own objects."""

# mypy: ignore-errors
# ruff: noqa

from basedsl.conformance.cases import program


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
