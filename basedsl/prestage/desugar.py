"""Pass `desugar`: bring statements into the few forms that later passes know.

Before -> after, everything else unchanged:

    super()                  super(__class__, self)         (first parameter of the function)
    x: T = v                 x = v                          (never evaluated in a function)
    x = a[i] = v             __value = v; x = __value; a[i] = __value
    a[i], b = v              __value, __value_2 = v; a[i] = __value; b = __value_2
    a[i] += v                __item = a[i]; __item += v; a[i] = __item
    for a[i] in xs: ...      for __value in xs: a[i] = __value; ...
    assert t, m              if t: pass             (where evaluating `m` can have an effect)
                             else: raise __dsl__.AssertionError(m)
    global, nonlocal         moved to the top of their function

where `a[i]` stands for a subscript whose index is not a constant, slice or tuple: later such a
store alone in its statement becomes `__dsl__.setitem`. Bodies of classes are left alone, but not
the functions in them.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from basedsl.prestage.nodes import (
    LOAD,
    STORE,
    At,
    FreshNames,
    FunctionNode,
    blocks,
    clone,
    has_docstring,
    has_walrus,
    walk,
)
from basedsl.prestage.resolve import Resolver

Declaration = ast.Global | ast.Nonlocal


def is_dynamic_index(node: ast.Subscript) -> bool:
    """Return True for a subscript whose index may be a dynamic integer."""
    index = node.slice
    if isinstance(index, ast.UnaryOp):
        index = index.operand
    return not isinstance(index, ast.Constant | ast.Slice | ast.Tuple)


def desugar(
    tree: FunctionNode, nodes: Sequence[ast.AST], fresh: FreshNames, resolver: Resolver
) -> None:
    """Rewrite `tree` and the functions in it, in place; `nodes` are all those of the tree."""
    if any(isinstance(node, ast.Name) and node.id == "super" for node in nodes):
        if resolver.role("super") == "super":
            _expand_super(tree, None)
    for node in nodes:
        if isinstance(node, ast.FunctionDef):
            _Desugaring(fresh).function(node)


def _expand_super(node: ast.AST, first: str | None) -> None:
    if isinstance(node, ast.FunctionDef | ast.Lambda):
        params = [*node.args.posonlyargs, *node.args.args]
        first = params[0].arg if params else None
    elif (
        first is not None
        and isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "super"
        and not node.args
        and not node.keywords
    ):
        at = At.node(node)
        node.args = [at.load("__class__"), at.load(first)]
    for child in ast.iter_child_nodes(node):
        _expand_super(child, first)


class _Desugaring:
    def __init__(self, fresh: FreshNames) -> None:
        self.fresh = fresh
        self.declarations: list[Declaration] = []

    def function(self, node: ast.FunctionDef) -> None:
        body = self.block(node.body)
        top = 1 if has_docstring(body) else 0
        node.body = body[:top] + list(self.declarations) + body[top:]

    def block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        result: list[ast.stmt] = []
        for statement in body:
            result += self.statement(statement)
        return result or [At.node(body[0]).put(ast.Pass())]

    def statement(self, node: ast.stmt) -> list[ast.stmt]:
        match node:
            case ast.FunctionDef() | ast.ClassDef():
                return [node]
            case ast.Global() | ast.Nonlocal():
                self.declarations.append(node)
                return []
            case ast.Assign():
                return self.assign(node)
            case ast.AnnAssign():
                return self.annotated(node)
            case ast.AugAssign(target=ast.Subscript() as target) if is_dynamic_index(target):
                return self.augmented(node, target)
            case ast.Assert(msg=ast.expr() as message) if __debug__ and not _is_text(message):
                at = At.node(node)
                error = at.callback("AssertionError", [message])
                return [at.put(ast.If(node.test, [at.put(ast.Pass())], [at.put(ast.Raise(error))]))]
        for body in blocks(node):
            body[:] = self.block(body)
        match node:
            case ast.For() if _stores_dynamically(node.target):
                node.target, rest = self.split(node.target)
                node.body[:0] = rest
            case ast.With():
                for item in node.items:
                    if item.optional_vars is not None and _stores_dynamically(item.optional_vars):
                        item.optional_vars, rest = self.split(item.optional_vars)
                        node.body[:0] = rest
        return [node]

    def assign(self, node: ast.Assign) -> list[ast.stmt]:
        if not any(_stores_dynamically(target) for target in node.targets):
            return [node]
        if len(node.targets) == 1:
            target = node.targets[0]
            if isinstance(target, ast.Subscript):
                return [node]
            node.targets[0], rest = self.split(target)
            return [node, *rest]
        at = At.node(node)
        name = self.temporary("value", at)
        result: list[ast.stmt] = [at.assign(name, node.value)]
        for target in node.targets:
            result += self.assign(at.put(ast.Assign([target], at.load(name))))
        return result

    def annotated(self, node: ast.AnnAssign) -> list[ast.stmt]:
        at = At.node(node)
        if node.value is not None:
            return self.assign(at.put(ast.Assign([node.target], node.value)))
        target = node.target
        if isinstance(target, ast.Name):
            return [node] if node.simple else []
        parts = [target.value] + ([target.slice] if isinstance(target, ast.Subscript) else [])
        return [at.expr(part) for part in parts if not isinstance(part, ast.Slice)]

    def augmented(self, node: ast.AugAssign, target: ast.Subscript) -> list[ast.stmt]:
        at = At.node(node)
        result: list[ast.stmt] = []
        # Names need no copy, unless evaluating the right side may rebind them.
        keep = not any(isinstance(part, ast.Call) for part in walk(node.value))
        keep = keep and not has_walrus(node.value)

        def once(part: ast.expr, kind: str) -> ast.expr:
            if isinstance(part, ast.Name) and keep:
                return part
            name = self.temporary(kind, at)
            result.append(at.assign(name, part))
            return at.load(name)

        container = once(target.value, "container")
        index = once(target.slice, "index")
        item = self.temporary("item", at)
        load = At.node(target).put(ast.Subscript(container, index, LOAD))
        store = At.node(target).put(ast.Subscript(clone(container), clone(index), STORE))
        node.target = at.put(ast.Name(item, STORE))
        result += [
            at.assign(item, load),
            node,
            at.put(ast.Assign([store], at.load(item))),
        ]
        return result

    def split(self, target: ast.expr) -> tuple[ast.expr, list[ast.stmt]]:
        """Return a target of temporaries, and the stores from them in Python's order."""
        at = At.node(target)
        if isinstance(target, ast.Tuple | ast.List):
            rest: list[ast.stmt] = []
            for position, element in enumerate(target.elts):
                starred = isinstance(element, ast.Starred)
                inner = element.value if isinstance(element, ast.Starred) else element
                place = At.node(inner)
                name = self.temporary("value", place)
                store = place.store(name)
                target.elts[position] = place.put(ast.Starred(store, STORE)) if starred else store
                rest += self.assign(place.put(ast.Assign([inner], place.load(name))))
            return target, rest
        name = self.temporary("value", at)
        return at.store(name), [at.put(ast.Assign([target], at.load(name)))]

    def temporary(self, kind: str, at: At) -> str:
        return self.fresh.variable(kind, at.lineno)


def _is_text(node: ast.expr) -> bool:
    """Return True for a message that can be made while compiling: names and texts of them."""
    return all(
        isinstance(part, ast.Constant | ast.Name | ast.Attribute | ast.JoinedStr | _PARTS)
        for part in walk(node)
    )


_PARTS = ast.FormattedValue | ast.expr_context


def _stores_dynamically(target: ast.expr) -> bool:
    if isinstance(target, ast.Subscript):
        return is_dynamic_index(target)
    if isinstance(target, ast.Tuple | ast.List):
        return any(_stores_dynamically(element) for element in target.elts)
    return isinstance(target, ast.Starred) and _stores_dynamically(target.value)
