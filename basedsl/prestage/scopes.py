"""Scopes: finds the owner of each name in a function and in everything defined in it.

Follows Python's rules: parameters, assignments, `global`, `nonlocal`, comprehensions, class bodies
(invisible to the functions in them), `:=` in comprehensions. No data flow here.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

from basedsl.prestage.nodes import FunctionNode, children, parameters

#: A comprehension runs in place; a generator expression, like a function, may run later.
Kind = Literal["function", "lambda", "class", "comprehension", "generator"]
Definition = (
    ast.FunctionDef
    | ast.Lambda
    | ast.ClassDef
    | ast.ListComp
    | ast.SetComp
    | ast.DictComp
    | ast.GeneratorExp
)


@dataclass(eq=False, repr=False)
class Scope:
    """One function, lambda, class body or comprehension."""

    kind: Kind
    node: Definition
    parent: Scope | None
    params: list[str] = field(default_factory=list)
    #: Names bound here, in order of first binding, with those declared global or nonlocal.
    bound: dict[str, None] = field(default_factory=dict)
    globals: set[str] = field(default_factory=set)
    nonlocals: set[str] = field(default_factory=set)
    #: Names bound below a branch or loop; names deleted anywhere.
    conditional: set[str] = field(default_factory=set)
    deleted: set[str] = field(default_factory=set)
    uses: list[ast.Name] = field(default_factory=list)
    #: Own variables by number, in order of first binding, then foreign ones, then flags; the
    #: order of `names` in callbacks.
    index: dict[str, int] = field(default_factory=dict)
    #: Variables of functions around this one in the tree that code here may assign: declared
    #: nonlocal here, or assigned by some nested function that might be called.
    foreign: dict[str, Scope] = field(default_factory=dict)
    #: Own variables that functions, classes or generator expressions inside mention or assign.
    captured: set[str] = field(default_factory=set)
    closure_assigned: set[str] = field(default_factory=set)
    #: Per definition directly inside: the mentions of own variables of this scope in it.
    inner_uses: dict[ast.AST, list[ast.Name]] = field(default_factory=dict)
    #: Per definition directly inside: own variables of this scope in it, also those assigned.
    inner_names: dict[ast.AST, set[str]] = field(default_factory=dict)

    def add(self, name: str) -> None:
        """Number one more variable."""
        self.index.setdefault(name, len(self.index))

    def mask(self, names: Iterable[str]) -> int:
        """Return a set of own variables as a bit mask."""
        result = 0
        for name in names:
            result |= 1 << self.index[name]
        return result

    def names(self, mask: int) -> tuple[str, ...]:
        """Return the variables in a bit mask, in order of first binding."""
        return tuple(name for name, number in self.index.items() if mask >> number & 1)


@dataclass(eq=False, repr=False)
class Scopes:
    """The scopes of a tree, and for each `Name` node the function scope that owns it."""

    of: dict[ast.AST, Scope]
    #: Absent for globals, builtins, variables around the decorated function, class variables.
    owner: dict[ast.Name, Scope]

    def functions(self) -> list[Scope]:
        """Return the scopes of `def` functions, outer ones first."""
        return [scope for scope in self.of.values() if scope.kind == "function"]


def analyse_scopes(tree: FunctionNode) -> Scopes:
    """Return the scopes of `tree` and of the definitions in it."""
    builder = _Builder()
    builder.definition(tree, None)
    for scope in builder.scopes.values():
        own = dict.fromkeys(scope.params)
        own.update(scope.bound)
        scope.index = {
            name: number
            for number, name in enumerate(
                name for name in own if name not in scope.globals and name not in scope.nonlocals
            )
        }
    scopes = Scopes(builder.scopes, {})
    for scope in builder.scopes.values():
        _resolve(scopes, scope)
    foreign = [(scope, _foreign(scope)) for scope in scopes.functions()]
    for scope, found in foreign:
        scope.foreign = found
        for name in found:
            scope.add(name)
    return scopes


def _owner(scope: Scope | None, name: str) -> Scope | None:
    """Return the scope that owns `name` as seen from `scope`; None for names from outside."""
    start = scope
    while scope is not None:
        if name in scope.globals:
            return None
        if name in scope.index and (scope.kind != "class" or scope is start):
            return scope
        scope = scope.parent
    return None


def _resolve(scopes: Scopes, scope: Scope) -> None:
    owners: dict[str, Scope | None] = {}
    for use in scope.uses:
        name = use.id
        if name not in owners:
            owners[name] = _owner(scope, name)
        owner = owners[name]
        if owner is None or owner.kind == "class":
            continue
        scopes.owner[use] = owner
        creation = _creation(scope, owner)
        if creation is not None:
            owner.inner_uses.setdefault(creation, []).append(use)
            owner.inner_names.setdefault(creation, set()).add(name)
            owner.captured.add(name)
    for name in scope.nonlocals:
        owner = _owner(scope.parent, name)
        if owner is not None and owner.kind != "class":
            creation = _creation(scope, owner)
            if creation is not None:
                owner.inner_names.setdefault(creation, set()).add(name)
            owner.captured.add(name)
            owner.closure_assigned.add(name)
            if name in scope.deleted:
                owner.deleted.add(name)


def _foreign(scope: Scope) -> dict[str, Scope]:
    found: dict[str, Scope] = {}
    for name in sorted(scope.nonlocals):
        owner = _owner(scope.parent, name)
        if owner is not None and owner.kind == "function":
            found[name] = owner
    around = scope.parent
    while around is not None:
        for name in sorted(around.closure_assigned):
            if around.kind == "function" and _owner(scope, name) is around:
                found[name] = around
        around = around.parent
    return found


def _creation(scope: Scope | None, owner: Scope) -> ast.AST | None:
    """Return the definition in `owner` through which `scope` sees it; None if `scope` runs in
    place.
    """
    creation: ast.AST | None = None
    while scope is not None and scope is not owner:
        if scope.kind != "comprehension":
            creation = scope.node
        scope = scope.parent
    return creation


class _Builder:
    def __init__(self) -> None:
        self.scopes: dict[ast.AST, Scope] = {}
        self.depth = 0

    def definition(self, node: FunctionNode, parent: Scope | None) -> None:
        kind: Kind = "lambda" if isinstance(node, ast.Lambda) else "function"
        scope = self.open(kind, node, parent)
        scope.params = [arg.arg for arg in parameters(node.args)]
        depth, self.depth = self.depth, 0
        if isinstance(node, ast.Lambda):
            self.visit(node.body, scope)
        else:
            self.block(node.body, scope)
        self.depth = depth

    def open(self, kind: Kind, node: Definition, parent: Scope | None) -> Scope:
        scope = self.scopes[node] = Scope(kind, node, parent)
        return scope

    def block(self, body: list[ast.stmt], scope: Scope) -> None:
        for statement in body:
            self.visit(statement, scope)

    def bind(self, name: str, scope: Scope) -> None:
        scope.bound[name] = None
        if self.depth:
            scope.conditional.add(name)

    def visit(self, node: ast.AST, scope: Scope) -> None:
        handler = _HANDLERS.get(type(node))
        if handler is not None:
            handler(self, node, scope)
            return
        for child in children(node):
            self.visit(child, scope)

    def name(self, node: ast.Name, scope: Scope) -> None:
        scope.uses.append(node)
        if not isinstance(node.ctx, ast.Load):
            self.bind(node.id, scope)
            if isinstance(node.ctx, ast.Del):
                scope.deleted.add(node.id)

    def walrus(self, node: ast.NamedExpr, scope: Scope) -> None:
        self.visit(node.value, scope)
        target = scope
        while target.kind in ("comprehension", "generator") and target.parent is not None:
            target = target.parent
        scope.uses.append(node.target)
        self.bind(node.target.id, target)
        target.conditional.add(node.target.id)
        if scope.kind == "generator" or (target is not scope and _lazy(scope, target)):
            target.closure_assigned.add(node.target.id)

    def conditional(self, node: ast.AST, scope: Scope) -> None:
        self.depth += 1
        for child in children(node):
            self.visit(child, scope)
        self.depth -= 1

    def function(self, node: ast.FunctionDef, scope: Scope) -> None:
        for expression in outside_expressions(node):
            self.visit(expression, scope)
        self.bind(node.name, scope)
        self.definition(node, scope)

    def lambda_(self, node: ast.Lambda, scope: Scope) -> None:
        for expression in outside_expressions(node):
            self.visit(expression, scope)
        self.definition(node, scope)

    def class_(self, node: ast.ClassDef, scope: Scope) -> None:
        for expression in outside_expressions(node):
            self.visit(expression, scope)
        self.bind(node.name, scope)
        depth, self.depth = self.depth, 0
        self.block(node.body, self.open("class", node, scope))
        self.depth = depth

    def comprehension(
        self,
        node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp,
        scope: Scope,
    ) -> None:
        first = node.generators[0]
        self.visit(first.iter, scope)
        kind: Kind = "generator" if isinstance(node, ast.GeneratorExp) else "comprehension"
        inner = self.open(kind, node, scope)
        for generator in node.generators:
            self.visit(generator.target, inner)
            if generator is not first:
                self.visit(generator.iter, inner)
            for condition in generator.ifs:
                self.visit(condition, inner)
        if isinstance(node, ast.DictComp):
            self.visit(node.key, inner)
            self.visit(node.value, inner)
        else:
            self.visit(node.elt, inner)

    def named(self, node: ast.ExceptHandler | ast.MatchAs | ast.MatchStar, scope: Scope) -> None:
        for child in children(node):
            self.visit(child, scope)
        if node.name is not None:
            self.bind(node.name, scope)
            if isinstance(node, ast.ExceptHandler):
                scope.deleted.add(node.name)

    def mapping(self, node: ast.MatchMapping, scope: Scope) -> None:
        for child in children(node):
            self.visit(child, scope)
        if node.rest is not None:
            self.bind(node.rest, scope)

    def import_(self, node: ast.Import | ast.ImportFrom, scope: Scope) -> None:
        for alias in node.names:
            self.bind((alias.asname or alias.name).split(".")[0], scope)

    def global_(self, node: ast.Global, scope: Scope) -> None:
        scope.globals.update(node.names)

    def nonlocal_(self, node: ast.Nonlocal, scope: Scope) -> None:
        scope.nonlocals.update(node.names)


def _lazy(scope: Scope, target: Scope) -> bool:
    while scope is not target and scope.parent is not None:
        if scope.kind == "generator":
            return True
        scope = scope.parent
    return False


def outside_expressions(node: ast.FunctionDef | ast.Lambda | ast.ClassDef) -> list[ast.expr]:
    """Return the expressions of a definition that are evaluated outside it, in Python's order."""
    if isinstance(node, ast.ClassDef):
        keywords = [keyword.value for keyword in node.keywords]
        return [*node.decorator_list, *node.bases, *keywords]
    defaults = [*node.args.defaults, *(d for d in node.args.kw_defaults if d is not None)]
    if isinstance(node, ast.Lambda):
        return defaults
    return [*node.decorator_list, *defaults, *signature_annotations(node)]


def signature_annotations(node: ast.FunctionDef) -> list[ast.expr]:
    """Return the annotations in a signature."""
    found = [arg.annotation for arg in parameters(node.args)]
    return [expr for expr in (*found, node.returns) if expr is not None]


_HANDLERS: dict[type[ast.AST], Any] = {
    ast.Name: _Builder.name,
    ast.NamedExpr: _Builder.walrus,
    ast.If: _Builder.conditional,
    ast.For: _Builder.conditional,
    ast.While: _Builder.conditional,
    ast.Try: _Builder.conditional,
    ast.Match: _Builder.conditional,
    ast.FunctionDef: _Builder.function,
    ast.Lambda: _Builder.lambda_,
    ast.ClassDef: _Builder.class_,
    ast.ListComp: _Builder.comprehension,
    ast.SetComp: _Builder.comprehension,
    ast.DictComp: _Builder.comprehension,
    ast.GeneratorExp: _Builder.comprehension,
    ast.ExceptHandler: _Builder.named,
    ast.MatchAs: _Builder.named,
    ast.MatchStar: _Builder.named,
    ast.MatchMapping: _Builder.mapping,
    ast.Import: _Builder.import_,
    ast.ImportFrom: _Builder.import_,
    ast.Global: _Builder.global_,
    ast.Nonlocal: _Builder.nonlocal_,
}
