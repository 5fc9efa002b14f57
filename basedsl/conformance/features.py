"""Features that conformance programs need, read from their text, and why a program is skipped.

A DSL names those that it does not have in `Conformance(without=...)`. What is not named is tested.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from basedsl.conformance.cases import Case

if TYPE_CHECKING:
    from basedsl.conformance.declaration import Conformance

FEATURES = {
    "buffers": "arguments that are arrays",
    "floats": "numbers that are no integers",
    "loops": "`for` over a range of run time",
    "while": "`while` over a condition of run time",
    "branches": "`if`, conditional expressions, `and` and `or` over conditions of run time",
    "integer-errors": "integer division, remainder, powers and shifts, which may raise",
    "float-errors": "errors of float division and of math functions",
    "raise": "exceptions and assertions at run time",
    "recursion": "functions that call themselves",
    "results": "values that functions return to Python",
    "tree-arguments": "tuples, dicts and objects as arguments",
    "tree-results": "tuples, dicts and objects as results",
    "sessions": "state that outlives a call",
    "negative-index": "indices that count from the end",
}
"""The features by name, and what each is. Programs are tagged with some; the others are derived."""

_ERRING = (ast.FloorDiv, ast.Mod, ast.Pow, ast.LShift, ast.RShift)
_STATIC_LOOPS = ("range_constexpr",)


def features_of(text: str) -> frozenset[str]:
    """Return the features that the text of a program needs by its syntax."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(textwrap.dedent(text))):
        found |= _of_node(node)
    return frozenset(found)


def _of_node(node: ast.AST) -> set[str]:
    match node:
        case ast.Constant(value=float()):
            return {"floats"}
        case ast.BinOp(op=ast.Div()) | ast.AugAssign(op=ast.Div()):
            return {"floats"}
        case ast.Name(id="float") | ast.Name(id="math"):
            return {"floats"}
        case ast.BinOp(op=op) | ast.AugAssign(op=op) if isinstance(op, _ERRING):
            return {"integer-errors"}
        case ast.Call(func=ast.Name(id="divmod" | "pow")):
            return {"integer-errors"}
        case ast.For(iter=items) | ast.comprehension(iter=items):
            return set() if _name(items) in _STATIC_LOOPS else {"loops"}
        case ast.While():
            return {"while"}
        case ast.If() | ast.IfExp() | ast.BoolOp() | ast.Match():
            return {"branches"}
        case ast.Compare(ops=[_, _, *_]):
            return {"branches"}
        case ast.Raise() | ast.Assert():
            return {"raise"}
        case ast.Return(value=ast.expr()):
            return {"results"}
        case ast.FunctionDef(name=name):
            calls = (n for n in ast.walk(node) if isinstance(n, ast.Call))
            return {"recursion"} if any(_name(call) == name for call in calls) else set()
    return set()


def _name(node: ast.expr) -> str:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id
    return ""


@functools.cache
def _of_function(function: Any) -> frozenset[str]:
    return features_of(inspect.getsource(function))


def features_of_case(case: Case) -> frozenset[str]:
    """Return the features of a program: its tags, and what its text and its arguments need."""
    found = set(case.tags) | _of_function(case.source)
    if {"ints", "floats"} & set(case.kinds):
        found.add("buffers")
    if {"float", "floats"} & set(case.kinds):
        found.add("floats")
    if case.is_session:
        found.add("sessions")
    return frozenset(found)


def why_skipped(conformance: Conformance, name: str, case: Case) -> str | None:
    """Return why a program is not run on a DSL, a feature or its name with the reason; else None.

    `name` is `area-program`, as in the identifiers of the tests.
    """
    reasons = {**conformance.without, **conformance.differs}
    needed = features_of_case(case)
    for key in reasons:
        if key == name or key in (case.tags if key in conformance.differs else needed):
            return f"{key}: {reasons[key]}"
    return None


def skipped(
    conformance: Conformance, cases: Iterable[tuple[str, Case]]
) -> tuple[int, dict[str, int]]:
    """Return how many programs are run on a DSL, and how many are not, by the reason."""
    run, left = 0, dict[str, int]()
    for name, case in cases:
        why = why_skipped(conformance, name, case)
        if why is None:
            run += 1
        else:
            left[why] = left.get(why, 0) + 1
    return run, left
