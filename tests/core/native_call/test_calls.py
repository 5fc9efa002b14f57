"""Calls: the second of a kind compiles nothing; native calls mean what Python's path means."""

from __future__ import annotations

import math
import sys
import threading
import traceback
from typing import Any

import pytest

from basedsl import Constexpr, DSLCallError, DSLError
from basedsl.binding import NumericArgument
from basedsl.native_call import runtime
from basedsl.numeric import Float32, Int8, Int32, Int64, Uint8, Uint64
from basedsl.prestage import rewriter


class Through:
    """Counts the calls that reach Python."""

    def __init__(self, dsl: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        call = dsl.driver.call

        def counted(*args: Any) -> Any:
            self.count += 1
            return call(*args)

        monkeypatch.setattr(dsl.driver, "call", counted)


@pytest.fixture
def through(dsl: Any, monkeypatch: pytest.MonkeyPatch) -> Through:
    return Through(dsl, monkeypatch)


def add(x: Any, y: Any) -> Any:
    return x + y


def test_native_calls_are_there() -> None:
    assert runtime.runtime() is not None


def test_the_second_call_does_no_tracing_no_ir_and_no_hashing(
    dsl: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    f = dsl.jit(add)
    assert f(1, 2) == 3
    hidden = ((dsl.driver, "compile"), (rewriter, "find_source"), (dsl.language, "pipeline"))
    for owner, name in hidden:
        monkeypatch.setattr(owner, name, None)
    monkeypatch.setattr(type(dsl.driver), "mlir", None)
    assert [f(i, i) for i in range(4)] == [0, 2, 4, 6]


def test_from_the_third_call_on_python_is_not_entered(dsl: Any, through: Through) -> None:
    f = dsl.jit(add)
    assert [f(i, 1) for i in range(6)] == [1, 2, 3, 4, 5, 6]
    assert through.count == 2


def test_each_kind_of_arguments_has_its_own_code(dsl: Any, through: Through) -> None:
    f = dsl.jit(add)
    for _ in range(4):
        assert (f(1, 2), type(f(1, 2))) == (3, int)
        assert (f(1.5, 2.0), f(1, 0.5)) == (3.5, 1.5)
        assert f(0.5, 1) == 1.5
    assert dsl.counts["compiled"] == 4
    assert through.count == 8


class MyInt(int):
    """Not exactly an int."""


def test_a_subclass_is_not_taken_for_its_base(dsl: Any) -> None:
    f = dsl.jit(add)
    for _ in range(4):
        assert f(1, 2) == 3
    with pytest.raises(DSLCallError, match="cannot pass a MyInt"):
        f(MyInt(1), 2)


def test_a_bool_is_not_taken_for_an_int(dsl: Any) -> None:
    f = dsl.jit(lambda x: x, preprocess=False)
    for _ in range(4):
        assert f(1) is not True
        assert f(True) is True
        assert f(False) is False
    assert dsl.counts["compiled"] == 2


def test_an_int_is_not_taken_for_a_typed_number(dsl: Any) -> None:
    f = dsl.jit(lambda x: x + x, preprocess=False)
    for _ in range(4):
        assert f(Int8(100)) == -56
        assert f(100) == 200


@pytest.mark.parametrize(
    ("kind", "values"),
    [
        (Int8, [-128, 127]),
        (Uint8, [0, 255]),
        (Int32, [-(2**31), 2**31 - 1]),
        (Int64, [-(2**63), 2**63 - 1]),
        (Uint64, [0, 2**63, 2**64 - 1]),
    ],
)
def test_the_ends_of_each_range(dsl: Any, kind: Any, values: list[int]) -> None:
    def f(x: Any) -> Any:
        return x

    f.__annotations__["x"] = kind
    compiled = dsl.jit(f, preprocess=False)
    for _ in range(3):
        assert [compiled(value) for value in values] == values
    wrong = [values[0] - 1, values[-1] + 1]
    through_python = [outcome(dsl.compile(f_again(dsl, kind), 0), v) for v in wrong]
    assert [outcome(compiled, value) for value in wrong] == through_python


def f_again(dsl: Any, kind: Any) -> Any:
    def f(x: Any) -> Any:
        return x

    f.__annotations__["x"] = kind
    return dsl.jit(f, preprocess=False)


def outcome(call: Any, *args: Any) -> Any:
    try:
        return call(*args)
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("value", [0.0, -0.0, math.inf, -math.inf, math.nan, 5e-324, 1e308])
def test_floats_arrive_bit_for_bit(dsl: Any, value: float) -> None:
    f = dsl.jit(lambda x: x, preprocess=False)
    assert [f(value).hex() for _ in range(4)] == [value.hex()] * 4


def test_a_declared_float_takes_ints_too(dsl: Any, through: Through) -> None:
    def f(x: Float32) -> Any:
        return x

    compiled = dsl.jit(f, preprocess=False)
    for _ in range(3):
        assert compiled(0.1) == pytest.approx(0.1)
        assert compiled(3) == 3.0
        assert compiled(math.inf) == math.inf
    assert through.count == 2
    with pytest.raises(DSLError, match="1e\\+300 does not fit Float32"):
        compiled(1e300)


@pytest.mark.parametrize(
    "result",
    [
        lambda x: None,
        lambda x: 7,
        lambda x: (x, x + 1),
        lambda x: (x, 2),
        lambda x: {"a": x, "b": [x, (x,)]},
        lambda x: x > 1,
        lambda x: (x * 0.5, x == 1),
    ],
)
def test_results_of_every_shape(dsl: Any, result: Any) -> None:
    f = dsl.jit(result, preprocess=False)
    for x in range(5):
        assert f(x) == result(x)


def test_results_hold_nothing_of_the_ir(dsl: Any) -> None:
    compiled = dsl.compile(dsl.jit(lambda x: {"a": (x, 1)}, preprocess=False), 1)
    assert compiled.results.values == []
    assert compiled.results.shape.exemplar is None
    assert compiled.results.leaves == [None, 1]


def test_tuples(dsl: Any, through: Through) -> None:
    f = dsl.jit(lambda p, q: p[0] * q[1] + p[1], preprocess=False)
    for i in range(5):
        assert f((i, 2), (1.0, 3)) == i * 3 + 2
    assert through.count == 2
    with pytest.raises(DSLCallError):
        f((1, MyInt(2)), (1.0, 3))
    assert f((1, 2, 3), (1.0, 3)) == 5


def test_static_arguments(dsl: Any, through: Through) -> None:
    def f(x: Any, n: Constexpr, text: Constexpr) -> Any:
        return x * n + len(text)

    compiled = dsl.jit(f, preprocess=False)
    for _ in range(4):
        assert compiled(2, 3, "ab") == 8
        assert compiled(2, 4, "ab") == 10
        assert compiled(2, 3, "a" + "bc") == 9
        assert compiled(2, True, "ab") == 4
    assert dsl.counts["compiled"] == 4


def test_defaults_and_keywords(dsl: Any, through: Through) -> None:
    def f(x: Any, y: Any = 10) -> Any:
        return x - y

    compiled = dsl.jit(f, preprocess=False)
    assert [compiled(i) for i in range(5)] == [-10, -9, -8, -7, -6]
    assert [compiled(i, 1) for i in range(5)] == [-1, 0, 1, 2, 3]
    assert through.count == 2
    assert [compiled(y=i, x=1) for i in range(3)] == [1, 0, -1]
    assert [compiled(1, y=i) for i in range(3)] == [1, 0, -1]
    assert [compiled(x=i) for i in range(3)] == [-10, -9, -8]
    assert [compiled(**{"".join(["x"]): i}) for i in range(3)] == [-10, -9, -8]
    assert through.count == 2
    with pytest.raises(DSLCallError, match="multiple values for argument 'x'"):
        compiled(1, x=2)
    with pytest.raises(DSLCallError, match="unexpected keyword argument 'z'"):
        compiled(1, z=2)
    with pytest.raises(DSLCallError, match="too many positional"):
        compiled(1, 2, 3)
    with pytest.raises(DSLCallError, match="missing a required argument"):
        compiled()


def test_keyword_only_parameters_are_not_taken_by_position(dsl: Any, through: Through) -> None:
    def f(x: Any, *, y: Any = 10) -> Any:
        return x - y

    compiled = dsl.jit(f, preprocess=False)
    assert [compiled(i) for i in range(4)] == [-10, -9, -8, -7]
    assert [compiled(i, y=1) for i in range(4)] == [-1, 0, 1, 2]
    assert through.count == 2
    with pytest.raises(DSLCallError, match="positional"):
        compiled(1, 2)


def test_positional_only_parameters_are_not_taken_by_name(dsl: Any, through: Through) -> None:
    def f(x: Any, /, y: Any = 10) -> Any:
        return x - y

    compiled = dsl.jit(f, preprocess=False)
    assert [compiled(i, y=1) for i in range(4)] == [-1, 0, 1, 2]
    assert through.count == 2
    with pytest.raises(DSLCallError, match="positional"):
        compiled(x=1)


def test_variadic_parameters_stay_in_python(dsl: Any, through: Through) -> None:
    def f(*xs: Any, **named: Any) -> Any:
        return sum(xs) + named["n"]

    compiled = dsl.jit(f, preprocess=False)
    for _ in range(4):
        assert compiled(1, 2, n=3) == 6
        assert compiled(1, n=3) == 4
    assert through.count == 8
    assert dsl.counts["compiled"] == 2


def test_a_failed_assertion_is_raised_by_native_calls_too(dsl: Any) -> None:
    @dsl.jit
    def f(x: Any) -> Any:
        assert x > 0, "too small"
        return x

    assert [f(i) for i in range(1, 5)] == [1, 2, 3, 4]
    for _ in range(3):
        with pytest.raises(AssertionError, match="too small"):
            f(-1)
        assert f(1) == 1


def test_a_native_failure_shows_the_users_frames_only(dsl: Any) -> None:
    @dsl.jit
    def f(x: Any) -> Any:
        assert x > 0, "too small"
        return x

    for _ in range(3):
        f(1)
    with pytest.raises(AssertionError) as caught:
        f(-1)
    files = {frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)}
    assert files == {__file__}


def test_references_are_balanced(dsl: Any) -> None:
    f = dsl.jit(lambda p, x: (x, p[0]), preprocess=False)
    pair, number = (2.5, 3), 10**12
    for _ in range(3):
        f(pair, number)
    before = sys.getrefcount(pair), sys.getrefcount(number), sys.getrefcount(None)
    for _ in range(1000):
        f(pair, number)
    after = sys.getrefcount(pair), sys.getrefcount(number), sys.getrefcount(None)
    assert all(abs(a - b) < 100 for a, b in zip(before, after, strict=True))


def test_a_native_call_inside_a_trace_is_inlined(dsl: Any) -> None:
    inner = dsl.jit(add, preprocess=False)
    for _ in range(4):
        inner(1, 2)
    outer = dsl.jit(lambda x: inner(x, 1), preprocess=False)
    assert [outer(i) for i in range(4)] == [1, 2, 3, 4]
    assert dsl.counts["compiled"] == 2


def test_options_of_the_environment(dsl: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    f = dsl.jit(add)
    for _ in range(4):
        f(1, 2)
    monkeypatch.setenv("BASEDSL_OPT_LEVEL", "0")
    for _ in range(4):
        assert f(1, 2) == 3
    assert dsl.counts["compiled"] == 2
    monkeypatch.delenv("BASEDSL_OPT_LEVEL")
    assert [f(i, 2) for i in range(4)] == [2, 3, 4, 5]
    assert dsl.counts["compiled"] == 2


def test_methods_know_their_object(dsl: Any, through: Through) -> None:
    class Scaled:
        def __init__(self, n: int) -> None:
            self.n = n
            self.inner = [n]

        @dsl.jit
        def scale(self, x: Any) -> Any:
            return x * self.n + self.inner[0]

        @dsl.jit
        def __call__(self, x: Any) -> Any:
            return x - self.n

    one, two = Scaled(1), Scaled(2)
    for _ in range(4):
        assert (one.scale(10), two.scale(10)) == (11, 22)
        assert (one(10), two(10)) == (9, 8)
    assert dsl.counts["compiled"] == 4
    one.n = 5
    assert [one.scale(10) for _ in range(4)] == [51] * 4
    one.inner[0] = 0
    assert [one.scale(10) for _ in range(4)] == [50] * 4
    assert (two.scale(10), one(10)) == (22, 5)


def test_forget_drops_native_code(dsl: Any, through: Through) -> None:
    f = dsl.jit(add)
    for _ in range(4):
        f(1, 2)
    f.forget()
    assert f(1, 2) == 3
    assert dsl.counts["compiled"] == 2


def test_more_variants_than_native_code_tries(dsl: Any) -> None:
    def f(x: Any, n: Constexpr) -> Any:
        return x + n

    compiled = dsl.jit(f, preprocess=False)
    for _ in range(3):
        assert [compiled(1, n) for n in range(12)] == list(range(1, 13))
    assert dsl.counts["compiled"] == 12


def test_an_unpacker_that_disagrees_with_pack_is_not_used(
    dsl: Any, through: Through, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(NumericArgument, "pack", lambda self, value: (value + 1,))
    f = dsl.jit(add)
    assert [f(i, 0) for i in range(4)] == [2, 3, 4, 5]
    assert through.count == 4


@pytest.mark.parametrize("same", [True, False], ids=["one function", "a function each"])
def test_eight_threads(dsl: Any, same: bool) -> None:
    def make() -> Any:
        def f(x: Any) -> Any:
            total = 0
            for i in range(x):
                total += i
            return total

        return dsl.jit(f)

    shared = make()
    functions = [shared if same else make() for _ in range(8)]
    start = threading.Barrier(8)
    wrong: list[Any] = []

    def guarded(n: int) -> None:
        try:
            start.wait()
            for i in range(200):
                if functions[n](i + n) != sum(range(i + n)):
                    wrong.append((n, i))
        except BaseException as error:
            wrong.append((n, error))

    threads = [threading.Thread(target=guarded, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert dsl.counts["compiled"] == (1 if same else 8)
