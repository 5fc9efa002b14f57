"""Finds expressions that certainly have a value while tracing.

Conservative: an expression that is not recognised here is left to the callbacks to decide. Static
tests and iterables keep their Python statement, which keeps rewritten code readable.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from basedsl.prestage.assignment import truth
from basedsl.prestage.resolve import Role

#: The role of a callee expression, None if its first name is local.
RoleOf = Callable[[ast.expr], Role | None]


def is_static_test(node: ast.expr, role_of: RoleOf) -> bool:
    """Return True if Python decides the truth of `node` whatever the values in it are."""
    if truth(node) is not None:
        return True
    match node:
        case ast.UnaryOp(op=ast.Not()):
            return is_static_test(node.operand, role_of)
        case ast.BoolOp():
            return all(is_static_test(value, role_of) for value in node.values)
        case ast.Compare():
            operands = [node.left, *node.comparators]
            return all(map(_is_always_bool, node.ops, operands, operands[1:]))
        case ast.Call():
            return role_of(node.func) in ("bool", "static")
    return False


def _is_always_bool(op: ast.cmpop, left: ast.expr, right: ast.expr) -> bool:
    """Return True if Python itself makes a bool of it; a text never equals a dynamic number."""
    if isinstance(op, ast.In | ast.NotIn):
        return isinstance(left, ast.Constant) and isinstance(left.value, str | bytes | None)
    return isinstance(op, ast.Is | ast.IsNot) and (is_singleton(left) or is_singleton(right))


def is_singleton(node: ast.expr) -> bool:
    """Return True for `None` and `...`, which no number is."""
    return isinstance(node, ast.Constant) and node.value in (None, ...)


def is_static_iterable(node: ast.expr, role_of: RoleOf) -> bool:
    """Return True if Python certainly runs a loop over `node`."""
    if isinstance(node, ast.Tuple | ast.List | ast.Constant):
        return True
    return isinstance(node, ast.Call) and role_of(node.func) == "static"
