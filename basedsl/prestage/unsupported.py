"""Pass `check`: constructs that cannot be compiled at all are errors at the user's line.

Only constructs that are wrong whatever their values are rejected here; `try`, `with` and `match`
are left to the callbacks, which know whether a dynamic value is involved.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from basedsl.prestage.nodes import unsupported

_GENERATOR_HINT = "collect the values in a list, or loop where the values are needed"
_ASYNC_HINT = "write a plain function"

_REJECTED: dict[type[ast.AST], tuple[str, str]] = {
    ast.Yield: ("'yield': generators cannot be compiled", _GENERATOR_HINT),
    ast.YieldFrom: ("'yield from': generators cannot be compiled", _GENERATOR_HINT),
    ast.Await: ("'await' cannot be compiled", _ASYNC_HINT),
    ast.AsyncFor: ("'async for' cannot be compiled", _ASYNC_HINT),
    ast.AsyncWith: ("'async with' cannot be compiled", _ASYNC_HINT),
    ast.AsyncFunctionDef: ("'async def' cannot be compiled", _ASYNC_HINT),
    ast.TryStar: ("'except*' cannot be compiled", "catch the exceptions with plain 'except'"),
}


def check_supported(nodes: Sequence[ast.AST], filename: str) -> None:
    """Raise a `DSLSyntaxError` for the first construct that cannot be compiled."""
    for node in nodes:
        if isinstance(node, ast.Call) and _asks_for_variables(node):
            raise unsupported(
                filename,
                node,
                "the variables of a compiled function cannot be listed",
                "name the variables, or keep them in a dict",
            )
        if isinstance(node, ast.Call) and _evaluates(node, nodes):
            raise unsupported(
                filename,
                node,
                "a text cannot be evaluated among the variables of a compiled function",
                'write the expression, or give it a namespace: eval(text, {"n": n})',
            )
        rejected = _REJECTED.get(type(node))
        if rejected is not None:
            message, hint = rejected
            raise unsupported(filename, node, message, hint)
        if isinstance(node, ast.comprehension) and node.is_async:
            raise unsupported(filename, node.target, "'async for' cannot be compiled", _ASYNC_HINT)


def _asks_for_variables(call: ast.Call) -> bool:
    """Return True for `locals()`, `vars()` and `dir()`: branches are functions of their own."""
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    return name in ("locals", "vars", "dir") and not call.args


def _evaluates(call: ast.Call, nodes: Sequence[ast.AST]) -> bool:
    """Return True for `eval(text)` and `exec(text)` that may name a variable of the function: a
    branch is a function of its own, where they would read the module's variable.
    """
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    if name not in ("eval", "exec") or len(call.args) != 1:
        return False
    (text,) = call.args
    if not isinstance(text, ast.Constant) or not isinstance(text.value, str):
        return True
    try:
        named = {node.id for node in ast.walk(ast.parse(text.value)) if isinstance(node, ast.Name)}
    except (SyntaxError, ValueError):
        return False
    own = {node.arg for node in nodes if isinstance(node, ast.arg)}
    own |= {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return not named.isdisjoint(own)
