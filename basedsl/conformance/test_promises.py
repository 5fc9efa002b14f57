"""Promises that are no program: types of arguments, Constexpr, caching, who may call what, prints.

These run on the DSL's `@jit`, from Python.
"""

# mypy: ignore-errors

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest

from basedsl import Constexpr, DSLCallError, DSLError, DSLTypeError, location, range_constexpr
from basedsl.binding.calling_convention import CONVENTION, ERROR
from basedsl.conformance.declaration import Conformance
from basedsl.numeric import Float32, Int8, Int32
from basedsl.testing import TraceLog

location.mark_user(os.path.abspath(__file__))

SCALE = 3


@pytest.fixture
def jit(conformance: Conformance) -> Callable[..., Any]:
    made: Callable[..., Any] = conformance.dsl.jit
    return made


@pytest.fixture(autouse=True)
def _scale() -> Iterator[None]:
    global SCALE
    SCALE = 3
    yield
    SCALE = 3


# Types ------------------------------------------------------------------------------------------


def test_default_types(conformance: Conformance, jit: Any) -> None:
    seen: list[Any] = []

    @jit
    def types(n, x, flag, plain_int: Constexpr):
        seen.append((n.dtype, x.dtype, flag.dtype.__name__, type(plain_int)))

    types(1, 2.5, True, 4)
    language = conformance.dsl.language
    assert seen == [
        (
            language.default_int,
            language.default_float,
            "Boolean",
            int,
        )
    ]


def test_declared_types(jit: Any) -> None:
    seen: list[Any] = []

    @jit
    def types(n: Int8, x: Float32, k: Int32):
        seen.append([v.dtype for v in (n, x, n + k, n + 1, k + x)])
        return n + k

    assert types(1, 2, 3) == 4
    assert seen == [[Int8, Float32, Int32, Int8, Float32]]


def test_an_int_that_does_not_fit_its_type_is_refused(conformance: Conformance, jit: Any) -> None:
    @jit
    def same(n):
        return n

    top = 2 ** (conformance.int_bits - 1)
    assert same(top - 1) == top - 1 and same(-top) == -top
    with pytest.raises((DSLTypeError, OverflowError, DSLError)):
        same(top)
    assert same(5) == 5


def test_a_float_for_a_declared_int_is_refused(jit: Any) -> None:
    @jit
    def f(n: Int32):
        return n

    with pytest.raises(DSLCallError, match=r"'n' is declared Int32, got the float 2\.5"):
        f(2.5)
    with pytest.raises(DSLCallError, match="'n' is declared Int32, got str"):
        f("2")


def test_numerics_work_outside_compilation() -> None:
    assert Int32(5) + 3 == 8 and type(Int32(5) + 3) is Int32
    assert float(Float32(1.5) * 2) == 3.0


# Constexpr --------------------------------------------------------------------------------------


def test_equal_constexpr_of_different_types_never_share_code(
    jit: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    @jit
    def f(n, k: Constexpr):
        print(type(k).__name__)
        return n + k

    results = [f(10, k) for k in (1, 1.0, True, 1, 1.0, True)]
    assert capsys.readouterr().out.split() == ["int", "float", "bool"]
    assert results == [11, 11.0, 11] * 2
    assert [type(r) for r in results[:3]] == [int, float, int]


def test_constexpr_zeros_of_both_signs_differ(jit: Any) -> None:
    seen: list[Any] = []

    @jit
    def f(k: Constexpr):
        seen.append(str(k))

    f(0.0)
    f(-0.0)
    assert seen == ["0.0", "-0.0"]


def test_constexpr_takes_what_is_hashable(jit: Any) -> None:
    class Twice:
        def apply(self, x):
            return x * 2

    @jit
    def f(n, how: Constexpr, shape: Constexpr):
        return (how().apply(n) if isinstance(how, type) else how(n)) + len(shape)

    assert f(5, Twice, (1, 2)) == 12
    assert f(5, lambda x: x + 1, ("a",)) == 7
    with pytest.raises(DSLCallError, match="not hashable"):
        f(5, Twice, [1, 2])


def test_constexpr_of_a_type(jit: Any) -> None:
    @jit
    def f(k: Constexpr[int]):
        total = 0
        for i in range_constexpr(k):
            total += i
        return total

    assert f(4) == 6
    with pytest.raises(DSLCallError, match=r"'k' is declared Constexpr\[int\]"):
        f("4")


def test_an_inner_call_may_pass_a_dynamic_value_for_constexpr(jit: Any) -> None:
    @jit
    def inner(k: Constexpr):
        return k

    @jit
    def needs_it_static(k: Constexpr):
        total = 0
        for i in range_constexpr(k):
            total += i
        return total

    @jit
    def outer(n):
        return inner(n)

    @jit
    def refused(n):
        return needs_it_static(n)

    assert outer(1) == 1
    with pytest.raises(DSLError, match="dynamic"):
        refused(1)


# Caching ----------------------------------------------------------------------------------------


def test_a_second_call_does_not_trace(jit: Any) -> None:
    traced = TraceLog()

    @jit
    def f(n):
        traced.append(type(n))
        return n + 1

    assert [f(1), f(2), f(3)] == [2, 3, 4]
    assert len(traced) == 1
    assert f(1.5) == 2.5
    assert len(traced) == 2


def test_a_changed_global_is_seen(jit: Any) -> None:
    global SCALE

    @jit
    def f(n):
        return n * SCALE

    assert f(2) == 6
    SCALE = 5
    assert f(2) == 10


def test_a_changed_closure_is_seen(jit: Any) -> None:
    k = 1

    @jit
    def f(n):
        return n + k

    assert f(1) == 2
    k = 10
    assert f(1) == 11


def test_errors_leave_the_function_usable(jit: Any) -> None:
    @jit
    def f(n, k: Constexpr):
        if k:
            for i in range_constexpr(n):
                n = n + i
        return n + 1

    with pytest.raises(DSLError, match="range_constexpr needs static bounds"):
        f(1, True)
    assert f(1, False) == 2
    with pytest.raises(DSLError, match="range_constexpr needs static bounds"):
        f(1, True)


# Calls ------------------------------------------------------------------------------------------


def test_the_table_of_calls_is_complete() -> None:
    callers, callees = ("python", "jit", "kernel"), ("jit", "kernel")
    assert {(a, b) for a in callers for b in callees} == set(CONVENTION)
    assert [pair for pair, action in CONVENTION.items() if action is ERROR] == [
        ("python", "kernel"),
        ("kernel", "kernel"),
    ]


def test_jit_inlines_jit_and_python(conformance: Conformance, jit: Any) -> None:
    traced = TraceLog()

    @jit
    def inner(x):
        traced.append("inner")
        if x > 2:
            return x * 10
        return x

    def plain(x):
        traced.append("plain")
        return x + 1

    @jit
    def outer(n):
        traced.append("outer")
        return inner(n) + inner(plain(n))

    assert [outer(n) for n in (1, 2, 5)] == [3, 32, 110]
    assert traced == ["outer", "inner", "plain", "inner"]  # once, in one compilation
    assert inner(4) == 40  # called from Python it is compiled on its own
    assert traced[4:] == ["inner"]


@pytest.fixture
def launched(conformance: Conformance, jit: Any) -> Callable[..., list[Any]]:
    """Runs a function of an int and a buffer as a kernel; what it leaves in the buffer."""
    if not conformance.kernels:
        pytest.skip(f"{conformance.name} has no kernels")

    def run(body: Callable[..., Any], n: Any) -> list[Any]:
        kernel = conformance.dsl.kernel(body)

        @jit
        def host(n, out):
            conformance.launch(kernel(n, out))

        out = conformance.buffer([0, 0, 0])
        host(n, out)
        return conformance.contents(out)

    return run


def test_jit_launches_a_kernel(launched: Any) -> None:
    def work(n, out):
        out[0] = n + 1
        for i in range(2):
            out[i + 1] = n * i

    assert launched(work, 5) == [6, 0, 5]


def test_a_kernel_inlines_jit_and_python(launched: Any, jit: Any) -> None:
    @jit
    def clamped(x, high: Constexpr):
        if x > high:
            return high
        return x

    def plain(x):
        return x * 2

    def work(n, out):
        out[0] = clamped(n, 3)
        out[1] = plain(clamped(n, 100))
        out[2] = clamped(plain(n), high=6)

    assert launched(work, 5) == [3, 10, 6]
    assert launched(work, 2) == [2, 4, 4]


def test_a_kernel_cannot_call_a_kernel(conformance: Conformance, launched: Any) -> None:
    @conformance.dsl.kernel
    def inner(out):
        out[0] = 1

    def work(n, out):
        inner(out)

    with pytest.raises(DSLCallError) as caught:
        launched(work, 1)
    text = str(caught.value)
    assert "calls the @kernel function" in text and "inner" in text
    assert "a kernel cannot launch a kernel" in text and os.path.basename(__file__) in text


def test_a_dsl_without_kernels_says_so(conformance: Conformance, jit: Any) -> None:
    if conformance.kernels:
        pytest.skip(f"{conformance.name} has kernels")

    @conformance.dsl.kernel
    def work(n):
        pass

    @jit
    def host(n):
        work(n)

    with pytest.raises(DSLCallError, match="has no kernels"):
        host(1)


def test_python_cannot_call_a_kernel(conformance: Conformance) -> None:
    @conformance.dsl.kernel
    def work(n):
        pass

    with pytest.raises(DSLCallError) as caught:
        work(1)
    text = str(caught.value)
    assert "Python calls the @kernel function" in text and "work" in text
    assert "launch it from a @jit function" in text and os.path.basename(__file__) in text


def test_wrong_arguments_name_the_function(jit: Any) -> None:
    @jit
    def f(a, b):
        return a + b

    with pytest.raises(DSLCallError, match=r"f\(\): missing a required argument: 'b'"):
        f(1)
    with pytest.raises(DSLCallError, match="unexpected keyword argument 'c'"):
        f(1, 2, c=3)
    with pytest.raises(DSLCallError, match=r"cannot pass an object \('b'\)"):
        f(1, object())


class TypedPair(NamedTuple):
    low: Int32
    high: Any


def test_fields_are_converted_as_declared(jit: Any) -> None:
    seen: list[Any] = []

    @jit
    def f(pair):
        seen.append(pair.low.dtype)
        return pair

    assert f(TypedPair(1, 2.5)) == TypedPair(1, 2.5)
    assert seen == [Int32]


def test_a_changed_argument_is_refused(jit: Any) -> None:
    @jit
    def f(values):
        values[0] = 1
        return values[1]

    with pytest.raises(DSLError, match="changes its argument 'values' in place"):
        f([3, 4])


# Printing and leaks -----------------------------------------------------------------------------


def test_prints_while_compiling(jit: Any, capsys: pytest.CaptureFixture[str]) -> None:
    @jit
    def add_dynamicexpr(b: Float32):
        a = Float32(2.0)
        result = a + b
        print("[add_dynamicexpr] result =", result)

    @jit
    def add_constexpr(b: Constexpr):
        a = 2.0
        result = a + b
        print("[add_constexpr] result =", result)

    @jit
    def add_hybrid(b: Constexpr):
        a = Float32(2.0)
        result = a + b
        print("[add_hybrid] result =", result)

    for function in (add_dynamicexpr, add_constexpr, add_hybrid, add_hybrid):
        function(5.0)
    assert capsys.readouterr().out.splitlines() == [
        "[add_dynamicexpr] result = ?",
        "[add_constexpr] result = 7.0",
        "[add_hybrid] result = ?",
    ]


def test_prints_once_though_loops_are_traced_again(
    jit: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    @jit
    def f(n):
        total = 0
        for i in range(n):
            print(f"outer {n}")
            for j in range(i):
                print("inner", j)
                total += 0.5
        return total + 0.0

    with pytest.raises(DSLError):
        f(object())
    assert f(3) == 1.5
    assert capsys.readouterr().out.splitlines() == ["outer ?", "inner ?"]


def test_values_do_not_leak_out_of_regions(jit: Any) -> None:
    leaked: dict[str, Any] = {}

    @jit
    def f(n):
        keep = leaked
        for i in range(n):
            remember(keep, i)
        return keep.pop("i") + 1

    def remember(place, value):
        object_store(place, value)

    def object_store(place, value):
        dict.__setitem__(place, "i", value)

    with pytest.raises(DSLError):
        f(3)


def test_a_value_does_not_outlive_its_compilation(jit: Any) -> None:
    kept: list[Any] = []

    @jit
    def f(n):
        kept.append(n)
        return n

    with pytest.raises(DSLError, match="'kept' outlives the call and cannot hold a dynamic value"):
        f(1)
    assert kept == []


def test_without_preprocessing_a_dynamic_condition_is_refused(conformance: Conformance) -> None:
    @conformance.dsl.jit(preprocess=False)
    def f(n):
        if n > 0:  # here
            return 1
        return 0

    with pytest.raises(DSLError) as caught:
        f(1)
    assert "preprocess" in str(caught.value)
    assert "if n > 0:  # here" in str(caught.value)


def test_element_types_do_not_share_code(conformance: Conformance) -> None:
    if "buffers" in conformance.without:
        pytest.skip(f"buffers: {conformance.without['buffers']}")

    def program(a: Any) -> Any:
        return a[0] / 2 + a[1]

    compiled = conformance.entry(program)
    for _ in range(3):  # compiled, run by Python, run natively
        assert compiled(conformance.buffer([3, 4])) == 5.5
        assert compiled(conformance.buffer([3.5, 4.25])) == 6.0
