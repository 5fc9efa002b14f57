"""Compiles a rewritten tree to a function that takes the place of the user's.

The new function shares the user's globals dictionary and closure cells and has its name, defaults,
annotations and documentation; the user's function and module are not touched. `__dsl__` is one more
closure cell, which only the new function has.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Set
from types import CellType, CodeType, FunctionType

from basedsl.prestage.callbacks import RUNTIME
from basedsl.prestage.nodes import LOAD, At, FunctionNode, clone
from basedsl.prestage.source import FUTURE_FLAGS

_FACTORY = "__factory__"
_OWN = "__own__"  # the function inside the factory: its own name may mean a global in its body


def compile_tree(tree: FunctionNode, original: CodeType, generated: Set[str]) -> CodeType:
    """Return the code object of a rewritten function; `generated` names the generated functions."""
    at = At.node(tree)
    if isinstance(tree, ast.FunctionDef):
        body: list[ast.stmt] = [_without_signature_values(tree)]
        result = at.load(_OWN)
    else:
        body = []
        result = at.put(ast.Lambda(_without_values(tree.args), tree.body))
    body.append(at.put(ast.Return(result)))
    factory = at.function(_FACTORY, [RUNTIME, *original.co_freevars], body)
    code = compile(
        ast.Module([factory], []),
        original.co_filename,
        "exec",
        flags=original.co_flags & FUTURE_FLAGS,
        dont_inherit=True,
    )
    outer = _only_code(code, _FACTORY)
    inner = _only_code(outer, original.co_name if isinstance(tree, ast.Lambda) else _OWN)
    inner = inner.replace(co_name=original.co_name)
    return _requalified(inner, original.co_qualname, original.co_qualname, generated)


def make_function(code: CodeType, original: FunctionType, runtime: object) -> FunctionType:
    """Return a function with new code, and everything else of the original."""
    cells = dict(zip(original.__code__.co_freevars, original.__closure__ or (), strict=True))
    cells[RUNTIME] = CellType(runtime)
    function = FunctionType(
        code,
        original.__globals__,
        original.__name__,
        original.__defaults__,
        tuple(cells[name] for name in code.co_freevars),
    )
    function.__kwdefaults__ = original.__kwdefaults__
    function.__qualname__ = original.__qualname__
    function.__module__ = original.__module__
    function.__doc__ = original.__doc__
    function.__dict__.update(original.__dict__)
    if sys.version_info >= (3, 12):
        function.__type_params__ = original.__type_params__
    if sys.version_info >= (3, 14) and original.__annotate__ is not None:
        function.__annotate__ = original.__annotate__
    else:
        function.__annotations__ = original.__annotations__
    return function


def readable(tree: FunctionNode) -> str:
    """Return rewritten code as text, with the user's signature."""
    shown = clone(tree)
    if isinstance(shown, ast.FunctionDef):
        shown.decorator_list = []
    try:
        return ast.unparse(shown)
    except ValueError:
        # Before Python 3.12 not every f-string can be written with the quotes there are.
        return ast.unparse(_PlainFormats().visit(shown))


class _PlainFormats(ast.NodeTransformer):
    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.expr:
        self.generic_visit(node)
        template = ""
        values: list[ast.expr] = []
        for part in node.values:
            if isinstance(part, ast.Constant):
                template += str(part.value).replace("{", "{{").replace("}", "}}")
            elif isinstance(part, ast.FormattedValue):
                template += "{}" if part.conversion < 0 else "{!" + chr(part.conversion) + "}"
                values.append(part.value)
        formatter = ast.Attribute(ast.Constant(template), "format", LOAD)
        return ast.copy_location(ast.Call(formatter, values, []), node)


def _without_signature_values(node: ast.FunctionDef) -> ast.FunctionDef:
    """Return a definition without its defaults and decorators: the function object has these
    values.
    """
    bare = At.node(node).function(_OWN, [], node.body)
    bare.args = _without_values(node.args)
    return bare


def _without_values(args: ast.arguments) -> ast.arguments:
    bare = clone(args)
    for arg in ast.walk(bare):
        if isinstance(arg, ast.arg):
            arg.annotation = None
    bare.defaults = []
    bare.kw_defaults = [None] * len(bare.kwonlyargs)
    return bare


def _only_code(code: CodeType, name: str) -> CodeType:
    (found,) = (
        const for const in code.co_consts if isinstance(const, CodeType) and const.co_name == name
    )
    return found


def _requalified(
    code: CodeType, qualname: str, user_qualname: str, generated: Set[str]
) -> CodeType:
    """Return `code` with qualified names as if it stood where the user wrote it.

    `user_qualname` is that of the innermost function or class of the user around or at `code`.
    """
    is_function = code.co_flags & inspect.CO_OPTIMIZED
    prefix = f"{user_qualname}.<locals>." if is_function else f"{user_qualname}."
    consts: list[object] = []
    for const in code.co_consts:
        if isinstance(const, CodeType):
            name = const.co_name
            # A name declared global has no prefix.
            own = name if const.co_qualname == name else prefix + name
            user = user_qualname if name in generated else own
            if name in generated:  # tracebacks show it as the user's function
                const = const.replace(co_name=user_qualname.rpartition(".")[2])
            consts.append(_requalified(const, own, user, generated))
        elif not is_function and const == code.co_qualname:
            consts.append(qualname)
        else:
            consts.append(const)
    consts.append(RUNTIME)  # unused: the mark that `is_rewritten` looks for
    return code.replace(co_qualname=qualname, co_consts=tuple(consts))
