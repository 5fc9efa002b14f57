"""Pass `mangle`: spell out the private names of classes (`__x` in class `C` becomes `_C__x`).

Rewritten code is compiled outside of the user's class, and callbacks get names as strings, so
Python's implicit mangling is made explicit first. The rewriter's own names end in `__`, which
Python never mangles.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable

from basedsl.prestage.nodes import FunctionNode, children


def mangled(class_name: str | None, name: str) -> str:
    """Return the name Python uses for `name` inside a class."""
    if class_name is None or not name.startswith("__") or name.endswith("__") or "." in name:
        return name
    stem = class_name.lstrip("_")
    return f"_{stem}{name}" if stem else name


def mangle(tree: FunctionNode, nodes: Iterable[ast.AST], class_name: str | None) -> None:
    """Rename private names in place.

    `nodes` are all those of the tree, `class_name` is the class around the function, if any.
    """
    if class_name is not None or any(isinstance(node, ast.ClassDef) for node in nodes):
        _Mangler().visit(tree, class_name)


class _Mangler:
    def visit(self, node: ast.AST, scope: str | None) -> None:
        inner = scope
        match node:
            case ast.Name():
                node.id = mangled(scope, node.id)
            case ast.Attribute():
                node.attr = mangled(scope, node.attr)
            case ast.arg():
                node.arg = mangled(scope, node.arg)
            case ast.FunctionDef():
                node.name = mangled(scope, node.name)
            case ast.ClassDef():
                inner = node.name
                node.name = mangled(scope, node.name)
                for child in (*node.decorator_list, *node.bases, *node.keywords):
                    self.visit(child, scope)
                for statement in node.body:
                    self.visit(statement, inner)
                return
            case ast.Global() | ast.Nonlocal():
                node.names = [mangled(scope, name) for name in node.names]
            case ast.alias():
                node.name = mangled(scope, node.name)
                node.asname = node.asname and mangled(scope, node.asname)
            case ast.ExceptHandler() | ast.MatchAs() | ast.MatchStar():
                node.name = node.name and mangled(scope, node.name)
            case ast.MatchMapping():
                node.rest = node.rest and mangled(scope, node.rest)
        for child in children(node):
            self.visit(child, inner)
