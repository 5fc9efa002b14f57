"""Sums and products of float32 rounded in a direction, against exact fractions."""

from fractions import Fraction

import numpy as np
import pytest

from basedsl_cute.sim.numerics import directed

LARGEST = np.finfo(np.float32).max
TOWARD = {"rm": -np.inf, "rp": np.inf}


def rounded(exact, mode):
    """An exact number as the float32 next to it in the direction `mode`."""
    if mode == "rz":
        mode = "rm" if exact > 0 else "rp"
    if abs(exact) > LARGEST:
        outwards = (exact > 0) == (mode == "rp")
        return np.float32(np.copysign(np.inf if outwards else LARGEST, float(exact > 0) - 0.5))
    near = np.float32(float(exact))  # at most one away
    step = np.float32(TOWARD[mode])
    while (Fraction(float(near)) < exact) if mode == "rp" else (Fraction(float(near)) > exact):
        near = np.nextafter(near, step)
    back = np.nextafter(near, -step)
    fits = Fraction(float(back)) >= exact if mode == "rp" else Fraction(float(back)) <= exact
    return back if fits else near


def numbers():
    rng = np.random.default_rng(0)
    found = rng.standard_normal((3, 150)) * 2.0 ** rng.integers(-60, 60, (3, 150))
    found[:, :50] = rng.standard_normal((3, 50)) * 2.0 ** rng.integers(-2, 2, (3, 50))
    tiny = rng.integers(-(1 << 24), 1 << 24, (3, 20)) * 2.0**-149
    tiny[0] = rng.standard_normal(20)
    return np.concatenate([found, tiny], 1).astype(np.float32)


@pytest.mark.parametrize("mode", ["rz", "rm", "rp"])
def test_against_fractions(mode):
    values = numbers()
    a, b, c = values
    x, y, z = ([Fraction(float(v)) for v in row] for row in values)
    exact = {
        "add": [p + q for p, q in zip(x, y, strict=True)],
        "multiply": [p * q for p, q in zip(x, y, strict=True)],
        "fma": [p * q + r for p, q, r in zip(x, y, z, strict=True)],
    }
    for name, wanted in exact.items():
        given = (a, b, c) if name == "fma" else (a, b)
        found = getattr(directed, name)(*given, mode)
        np.testing.assert_array_equal(found, [rounded(value, mode) for value in wanted], name)


def test_zeros_and_what_overflows():
    one, large = np.float32([1, 0, -0.0]), np.float32([LARGEST])
    down = directed.add(one, -one, "rm")
    np.testing.assert_array_equal(np.signbit(down), [True, True, True])
    assert not np.signbit(directed.add(one, -one, "rp")).any()
    assert not np.signbit(directed.add(np.float32([0]), np.float32([0]), "rm")).any()
    with np.errstate(over="ignore"):
        assert directed.add(large, large, "rz") == LARGEST
        assert directed.add(large, large, "rp") == np.inf
        assert directed.multiply(large, -large, "rm") == -np.inf
