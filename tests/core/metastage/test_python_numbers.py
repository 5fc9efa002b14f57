"""Dynamic numbers in the place of Python's: exact comparisons, exceptions, classes, limits."""

from __future__ import annotations

import functools
import math
import operator
import subprocess
import sys

import numpy as np
import pytest

import basedsl_toy as toy
from basedsl import DSLError
from basedsl.numeric import Float32, Float64, Int8, Int32, Int64, Int128, Uint64
from basedsl.objectstage import native
from basedsl.tracing import raised
from basedsl_toy.dsl import TOY

RELATIONS = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)


@toy.jit
def compared(n: Int64, x: Float64):
    return (
        (n < x, n <= x, n > x, n >= x, n == x, n != x),
        (x < n, x <= n, x > n, x >= n, x == n, x != n),
    )


@toy.jit
def compared_unsigned(n: Uint64, x: Float64):
    return (
        (n < x, n <= x, n > x, n >= x, n == x, n != x),
        (x < n, x <= n, x > n, x >= n, x == n, x != n),
    )


@toy.jit
def compared_single(n: Int32, x: Float32):
    return (
        (n < x, n <= x, n > x, n >= x, n == x, n != x),
        (x < n, x <= n, x > n, x >= n, x == n, x != n),
    )


@pytest.mark.parametrize(
    ("function", "least", "most", "bits"),
    [
        (compared, -(2**63), 2**63 - 1, 53),
        (compared_unsigned, 0, 2**64 - 1, 53),
        (compared_single, -(2**31), 2**31 - 1, 24),
    ],
)
def test_integers_compare_with_floats_exactly(function, least, most, bits):
    around = [0, 1, -1, 2**bits, 2**bits + 1, 2**bits + 3, -(2**bits) - 1, most, most - 1, least]
    integers = [n for n in around if least <= n <= most]
    single = bits == 24
    floats = [float(np.float32(n)) if single else float(n) for n in around]
    floats += [0.5, -0.5, -0.0, math.inf, -math.inf, math.nan, 3e38]
    for n in integers:
        for x in floats:
            expected = (
                tuple(relation(n, x) for relation in RELATIONS),
                tuple(relation(x, n) for relation in RELATIONS),
            )
            assert function(n, x) == expected, (n, x)


def test_known_numbers_compare_exactly():
    assert Int64(2**53 + 1) != Float64(2.0**53)
    assert Int32(2**24 + 1) > Float32(2.0**24)
    assert Int128(2**100 + 1) > 2.0**100


class Coded(Exception):
    def __init__(self, code, *, text=""):
        super().__init__(f"code {code}{text}")
        self.code = code


@pytest.mark.parametrize(
    "error",
    [
        Coded(7, text="!"),
        ValueError("a", 3),
        KeyError("k"),
        OSError(2, "no such file"),
        StopIteration(3),
        NotImplementedError(),
    ],
    ids=repr,
)
def test_exceptions_come_back_with_arguments_and_attributes(error):
    found = raised.error_of(raised.text_of(error, True), None)
    assert isinstance(found, type(error))
    assert found.args[: len(error.args)] == error.args
    if isinstance(error, Coded):
        assert (str(found), found.code) == ("code 7!", 7)
    if isinstance(error, OSError):
        assert found.errno == 2


def test_names_are_spoken_without_modules():
    text = raised.text_of(Coded(7), True)
    assert raised.spoken(text) == "Coded: code 7"
    assert raised.spoken("n is small: very") == "n is small: very"


PROGRAM = """
import basedsl_toy as toy

@toy.jit
def checked(n):
    class Local(ValueError):
        pass
    if n > 2:
        raise Local("bad")
    return n

try:
    checked(3)
except ValueError as error:
    print(type(error).__name__, type(error).__qualname__, error.args)
"""


def test_a_class_of_the_function_keeps_its_name_and_base_from_the_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("BASEDSL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("BASEDSL_CACHE", raising=False)
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    outputs = [
        subprocess.run([sys.executable, file], capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert outputs == ["Local checked.<locals>.Local ('bad',)\n"] * 2


def test_the_class_of_a_number():
    @functools.singledispatch
    def kind(x):
        return "object"

    kind.register(int, lambda x: "int")
    kind.register(float, lambda x: "float")
    kind.register(bool, lambda x: "bool")
    seen = []

    @toy.jit
    def ask(n, x, b, small: Int8):
        seen.append([kind(v) for v in (n, x, b, small)])
        seen.append([type(v) for v in (n, x, b, small)])
        seen.append([isinstance(v, Int64) for v in (n, x, b, small)])
        seen.append([v.__class__ for v in (n, x, b, small)])
        return n

    ask(1, 1.5, True, 3)
    assert seen == [
        ["int", "float", "bool", "int"],
        [int, float, bool, Int8],
        [True, False, False, False],
        [int, float, bool, int],
    ]


def test_asking_whether_a_type_is_the_default_type_is_an_error():
    @toy.jit
    def by_identity(n):
        return 1 if type(n) is Int64 else 0

    @toy.jit
    def by_equality(n):
        return 1 if type(n) == Int64 else 0  # noqa: E721

    @toy.jit
    def by_search(n):
        return 1 if type(n) in (Int8, Int64) else 0

    for function in (by_identity, by_equality, by_search):
        with pytest.raises(DSLError, match="Int64 is compared with int"):
            function(1)


def test_a_pattern_of_a_bool_asks_for_the_truth():
    @toy.jit
    def f(n):
        match (n > 1, 3):
            case (True, _):
                return 1
            case _:
                return 2

    with pytest.raises(DSLError, match="`match` needs a static subject"):
        f(3)


def test_floats_beyond_the_type_are_errors():
    @TOY.jit
    def f(x: Float32):
        return x

    with pytest.raises(DSLError, match="1e\\+300 does not fit Float32"):
        f(1e300)
    assert f(math.inf) == math.inf
    with pytest.raises(DSLError, match="1e\\+300 does not fit Float32"):
        f(1e300)
    with pytest.raises(DSLError, match="does not fit Float32"):
        Float32(1.0) * 1e39


def test_loops_are_counted_by_their_jumps_back():
    text = "\n".join(
        f"{2 * i + 1}:\n  br i1 %c{i}, label %{2 * i + 2}, label %{2 * i + 1}\n{2 * i + 2}:"
        for i in range(5)
    )
    assert native._loops_of(text) == 5
