"""Assertions in native code: the exception that a failed one becomes, threads, callers."""

from __future__ import annotations

import ctypes
import threading

import pytest

from basedsl.errors import CompilerBug, DSLRuntimeError
from basedsl.objectstage import asserts

I64 = ctypes.c_int64


def asserting(message, line=3):
    return f"""
    func.func @f(%x: i64) -> i64 {{
      %c0 = arith.constant 0 : i64
      %c1 = arith.constant 1 : i64
      %r = scf.for %i = %c0 to %x step %c1 iter_args(%s = %c0) -> i64 : i64 {{
        %c5 = arith.constant 5 : i64
        %0 = arith.cmpi slt, %i, %c5 : i64
        cf.assert %0, "{message}" loc("user.py":{line}:9)
        %t = arith.addi %s, %i : i64
        scf.yield %t : i64
      }}
      return %r : i64
    }}"""


def test_a_failed_assertion_leaves_the_function_and_raises(compiled):
    f = compiled(asserting("too far"), I64, I64)
    assert f(5) == 10
    asserts.raise_failed_assertion()
    assert f(10**15) == 0, "the loop ends at once"
    with pytest.raises(asserts.DSLAssertionError, match="too far") as caught:
        asserts.raise_failed_assertion()
    assert (caught.value.span.filename, caught.value.span.line, caught.value.span.col) == (
        ("user.py", 3, 8)
    )
    asserts.raise_failed_assertion()


@pytest.mark.parametrize(
    ("message", "error", "text"),
    [
        ("", AssertionError, "assertion failed"),
        ("ZeroDivisionError: division by zero", ZeroDivisionError, "division by zero"),
        ("IndexError: 7 of 5", IndexError, "7 of 5"),
        ("note: keep me", AssertionError, "note: keep me"),
        ("ünï \\22quoted\\22 100%", AssertionError, 'ünï "quoted" 100%'),
    ],
)
def test_messages_and_python_errors(compiled, message, error, text):
    f = compiled(asserting(message), I64, I64)
    f(9)
    with pytest.raises(error) as caught:
        asserts.raise_failed_assertion()
    assert isinstance(caught.value, DSLRuntimeError)
    assert caught.value.message == text


def test_assertions_are_per_thread(compiled):
    f = compiled(asserting("in a thread"), I64, I64)
    thread = threading.Thread(target=f, args=(9,))
    thread.start()
    thread.join()
    asserts.raise_failed_assertion()


def test_a_caller_of_a_function_that_asserts_is_refused(object_of):
    text = (
        asserting("inner")
        + """
    func.func @g(%x: i64) -> i64 {
      %0 = func.call @f(%x) : (i64) -> i64
      return %0 : i64
    }"""
    )
    with pytest.raises(CompilerBug, match="f, which asserts, is called by g"):
        object_of(text)


def test_code_without_assertions_says_so(object_of):
    assert asserts.can_fail(object_of(asserting("x")))
    assert not asserts.can_fail(object_of("func.func @f() { return }"))
