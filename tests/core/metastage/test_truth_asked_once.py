"""A condition asks the truth of each operand of `and` and `or` once, as Python's bytecode does.

No `assert`: pytest rewrites those of a test module.
"""

import pytest

import basedsl_toy as toy


class Asked:
    def __init__(self, value):
        self.value, self.count = value, 0

    def __bool__(self):
        self.count += 1
        return self.value > 1


def in_if(n):
    a = Asked(n)
    if a and a:
        pass
    if a or n > 5 or a:
        pass
    return a.count


def in_a_conditional_expression(n):
    a = Asked(n)
    return 1 if a or a else 2, a.count


def below_not(n):
    a = Asked(n)
    return not (a and a), a.count


def in_while(n):
    a = Asked(n)
    while (a and n < 5) or (not a and a):
        a.value -= 1
    return a.count


def below_not_in_if(n):
    a = Asked(n)
    if not (a and a) and not (a or a):
        pass
    return a.count


def in_a_choice_in_if(n):
    a = Asked(n)
    if (a and a) if n > 0 else (a or a):
        pass
    return a.count


def as_a_value_and_then(n):
    a = Asked(n)
    both = a and a
    return 1 if both else 2, a.count


PROGRAMS = [
    *(in_if, in_a_conditional_expression, below_not, below_not_in_if, in_a_choice_in_if),
    *(in_while, as_a_value_and_then),
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_dynamic(program):
    compiled = toy.jit(program)
    for n in (0, 2, 3):
        assert compiled(n) == program(n)


@pytest.mark.parametrize("truth", [False, True])
def test_static(truth):
    class Counted:
        count = 0

        def __bool__(self):
            Counted.count += 1
            return truth

    def program(n):
        a = Counted()
        if a and a:
            n += 1
        return n + (1 if a or a else 2)

    results, counts = [], []
    for fn in (program, toy.jit(program)):
        Counted.count = 0
        results.append(fn(3))
        counts.append(Counted.count)
    assert results[0] == results[1] and counts[0] == counts[1]
