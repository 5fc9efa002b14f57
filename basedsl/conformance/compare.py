"""Runs one program by Python and by a DSL, and reports where they differ."""

from __future__ import annotations

import copy
import dataclasses
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from basedsl.conformance.cases import Buf, Case
from basedsl.conformance.declaration import Conformance
from basedsl.errors import DSLError


@dataclass
class Outcome:
    """The outcome of a run: a result and the buffers' contents, or an exception."""

    value: Any = None
    buffers: tuple[list[Any], ...] = ()
    error: BaseException | None = None

    def __str__(self) -> str:
        if self.error is not None:
            return f"{type(self.error).__name__}: {self.error}"
        return f"{self.value!r}" + (f" and buffers {self.buffers}" if self.buffers else "")


def run_python(fn: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]) -> Outcome:
    """Run `fn` in Python, on copies of the arguments."""
    args = copy.deepcopy(list(args))
    try:
        value = fn(*args, **copy.deepcopy(kwargs))
    except Exception as error:  # the exception is the outcome
        return Outcome(error=error)
    return Outcome(value, tuple(list(a) for a in args if isinstance(a, Buf)))


def run_dsl(
    conformance: Conformance, fn: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> Outcome:
    """Run the compiled `fn`; buffers become the DSL's arrays."""
    arrays = [conformance.buffer(a) if isinstance(a, Buf) else copy.deepcopy(a) for a in args]
    try:
        value = fn(*arrays, **copy.deepcopy(kwargs))
    except Exception as error:  # the exception is the outcome
        return Outcome(error=error)
    pairs = zip(args, arrays, strict=True)
    return Outcome(value, tuple(conformance.contents(b) for a, b in pairs if isinstance(a, Buf)))


def difference(conformance: Conformance, python: Outcome, dsl: Outcome) -> str:
    """Return the difference of two outcomes in words; "" if there is none."""
    expected, found = python.error, dsl.error
    if expected is None and found is None:
        if not same(conformance, python.value, dsl.value):
            return f"Python gives {python.value!r}, {conformance.name} gives {dsl.value!r}"
        if not same(conformance, python.buffers, dsl.buffers):
            return f"Python leaves {python.buffers}, {conformance.name} leaves {dsl.buffers}"
        return ""
    if found is None and divides_by_zero(conformance, python):
        return ""
    if expected is None or found is None:
        return f"Python: {python}\n{conformance.name}: {dsl}"
    if conformance.raises and not isinstance(found, type(expected)):
        return f"Python raises {expected!r}, {conformance.name} raises {found!r}"
    if not conformance.raises and not isinstance(found, DSLError | type(expected)):
        return f"Python raises {expected!r}, {conformance.name} fails with {found!r}"
    if isinstance(expected, IndexError | ArithmeticError):
        return ""  # Python's own words differ from operation to operation
    if expected.args and str(expected.args[0]) not in str(found):
        return f"the message of {expected!r} is not in that of {conformance.name}: {found}"
    return ""


def divides_by_zero(conformance: Conformance, python: Outcome) -> bool:
    """Return True if Python stops at a division by zero, which a kernel reports only where the
    quotient is used.
    """
    return not conformance.raises and isinstance(python.error, ZeroDivisionError)


def same(conformance: Conformance, a: Any, b: Any) -> bool:
    """True if two results are the same Python value, up to the width of the DSL's numbers."""
    if isinstance(a, float) and isinstance(b, float):
        if math.isnan(a) or math.isnan(b):
            return math.isnan(a) and math.isnan(b)
        if a == 0.0 and b == 0.0:
            return math.copysign(1.0, a) == math.copysign(1.0, b)
        close = 1e-12 if conformance.float_bits == 64 else 2e-5
        return a == b or math.isclose(a, b, rel_tol=close, abs_tol=close)
    if type(a) is int and type(b) is int:
        return (a - b) % (1 << conformance.int_bits) == 0
    if type(a) is not type(b):
        return False
    if isinstance(a, (tuple, list)):
        return len(a) == len(b) and all(same(conformance, x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(conformance, a[k], b[k]) for k in a)
    if dataclasses.is_dataclass(a) or hasattr(a, "__dict__"):
        return same(conformance, dict(vars(a)), dict(vars(b)))
    return bool(a == b)


def check(conformance: Conformance, case: Case) -> None:
    """Run a case; AssertionError if the DSL does not do what it must."""
    if case.is_session:
        check_session(conformance, case)
        return
    missing = sorted(case.tags & conformance.unsupported.keys())
    if missing or case.message:
        check_refused(conformance, case, missing)
        return
    reference = case.build(lambda fn: fn)
    compiled = conformance.entry(case.build(conformance.jit))
    for args in case.arguments(conformance.int_bits):
        python = run_python(reference, args, case.kwargs)
        dsl = run_dsl(conformance, compiled, args, case.kwargs)
        found = difference(conformance, python, dsl)
        if found:
            error = AssertionError(f"{case.name}{args}: {found}")
            raise error from dsl.error


def check_session(conformance: Conformance, case: Case) -> None:
    """Make the calls of a session, and compare result and state after each."""
    made: Any = case.build
    reference, python_state = made(lambda fn: fn)
    main, dsl_state = made(conformance.jit)
    compiled = conformance.entry(main)
    for number, args in enumerate(case.inputs, 1):
        before = copy.deepcopy(dsl_state())
        dsl = run_dsl(conformance, compiled, args, case.kwargs)
        what = f"{case.name}, call {number} of {case.inputs}"
        if case.message:
            if not isinstance(dsl.error, DSLError) or case.message not in str(dsl.error):
                raise AssertionError(f"{what}: no {case.message!r}, but {dsl}") from dsl.error
            expected = before
        else:
            found = difference(conformance, run_python(reference, args, case.kwargs), dsl)
            if found:
                raise AssertionError(f"{what}: {found}") from dsl.error
            expected = python_state()
        if not same(conformance, expected, dsl_state()):
            raise AssertionError(f"{what} leaves {dsl_state()!r}, not {expected!r}")


def check_refused(conformance: Conformance, case: Case, missing: Sequence[str]) -> None:
    """Run a program that must fail with a DSLError that points into it."""
    compiled = conformance.entry(case.build(conformance.jit))
    args = case.arguments(conformance.int_bits)[0]
    error = run_dsl(conformance, compiled, args, case.kwargs).error
    what = f"{case.name}: {', '.join(missing) or repr(case.message)}"
    if error is None:
        raise AssertionError(f"{what}: no error")
    if not isinstance(error, DSLError):
        raise AssertionError(f"{what}: not a DSLError: {error!r}") from error
    if not missing and case.message not in str(error):
        raise AssertionError(f"{what} is not in the message:\n{error}") from error
    spans = [error.span, *(span for _, span in error.notes)]
    if not any(case.covers(span) for span in spans):
        raise AssertionError(f"{what}: the error does not point into the program:\n{error}")
    marked = case.marked_lines()
    if not missing and marked:
        lines = {span.line for span in spans if span is not None and case.covers(span)}
        if not marked <= lines:
            raise AssertionError(
                f"{what}: the error names lines {sorted(lines)}, not {sorted(marked)}:\n{error}"
            )
