"""`n / m` of integers is rounded once, as Python's quotient is."""

import random
from fractions import Fraction

import numpy as np
import pytest

import basedsl_cute as cute
import basedsl_toy as toy
from basedsl.numeric import Float32, Float64, Uint64
from basedsl.numeric.quotient import rounded_quotient


def integers(bits, count=400):
    r = random.Random(bits)
    edges = [1, -1, 2, 3, -5, 7, 2**24 + 1, (1 << bits) - 1, -(1 << bits), (1 << bits - 1) + 1]
    found = [(n, m) for n in [0, *edges] for m in edges]
    for _ in range(count):
        n, m = (r.choice((-1, 1)) * r.randrange(1, 1 << r.randint(1, bits)) for _ in range(2))
        found.append((n, m))
        # Quotients next to the middle of two floats.
        m = r.randrange(1 << bits - 2, 1 << bits - 1)
        n = (r.randrange(1 << 53, 1 << 54) | 1) * m >> r.randint(60, 70)
        found += [(n, m), (n + 1, m)]
    return found


def single(n, m):
    """The Float32 nearest to a quotient, found in rational numbers."""
    guess = np.float32(n / m)
    around = [np.nextafter(guess, np.float32(s)) for s in (-np.inf, np.inf)]

    def distance(x):
        return abs(Fraction(float(x)) - Fraction(n, m)), int(x.view(np.int32)) & 1

    return float(min([guess, *around], key=distance))


def test_quotients_of_64_bits_are_pythons():
    compiled = toy.jit(lambda n, m: n / m)
    for n, m in integers(63):
        expected = n / m
        assert str(compiled(n, m)) == str(expected) == str(rounded_quotient(n, m, Float64)), (n, m)


@pytest.mark.parametrize("kind", [cute.Int32, cute.Int64])
def test_quotients_in_float32_are_rounded_once(kind, monkeypatch):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sim")

    @cute.jit
    def compiled(n: kind, m: kind):
        return n / m

    for n, m in integers(kind.width - 1):
        assert compiled(n, m) == single(n, m) == rounded_quotient(n, m, Float32), (n, m)


def test_unsigned_integers():
    @toy.jit
    def compiled(n: Uint64, m: Uint64):
        return n / m, n / 10, n / 4, n / n

    for n, m in [(2**64 - 1, 3), (2**63 + 1, 7), (5, 2**63), (2**64 - 1, 2**63 - 1)]:
        assert compiled(n, m) == (n / m, n / 10, n / 4, 1.0)


def test_literals_that_the_default_type_does_not_hold(monkeypatch):
    monkeypatch.setenv("CUTE_DSL_ARCH", "sim")

    @cute.jit
    def compiled(n: cute.Int64, m: cute.Uint64, k: cute.Int8):
        return n / (1 << 33), (1 << 33) / n, m / (1 << 63), k / (1 << 33), m / -3

    assert compiled(3 << 33, 1 << 63, 16) == (3.0, single(1, 3), 1.0, 2.0**-29, -single(1 << 63, 3))


def test_a_zero_divisor():
    compiled = toy.jit(lambda n, m: n / m)
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        compiled(3, 0)
    with pytest.raises(ZeroDivisionError, match="division by zero"):
        toy.jit(lambda n: n / 0)(3)
