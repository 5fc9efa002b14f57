"""Pass `expressions`: expressions whose meaning may be dynamic become callbacks.

    a and b                 __dsl__.and_(lambda: a, lambda: b)
    if a and b:             ... __dsl__.all_true(lambda: a, lambda: b)
    not a                   __dsl__.not_(a)
    a if c else b           __dsl__.ifexp(c, lambda: a, lambda: b)
    a < b < c               __dsl__.compare(a, ('<', lambda: b), ('<', lambda: c))
    a in b; a is b          __dsl__.compare(a, ('in', lambda: b)); ... ('is', lambda: b)
    max(a, b), math.sin(a)  __dsl__.fn(max)(a, b), __dsl__.fn(math.sin)(a)
    sum(e for x in xs)      __dsl__.fn(sum)(__dsl__.each(xs, lambda x: e, False))
    f(a) (f a variable)     __dsl__.fn(f)(a)
    a[i]; a[i] = v          __dsl__.getitem(a, i); __dsl__.setitem(v, a, i)
    x (maybe unbound)       __dsl__.read(lambda: x, 'x')
    case True               case __dsl__.TRUE
    g = v (global)          g = v; __dsl__.check_outer('g', g, 'global')

Operands that assign by `:=` become functions defined before the statement, which share the
variable. In lambdas and comprehensions, whose variables such a function would not see, an operator
with `:=` in an operand remains Python. Statements directly in class bodies remain Python too.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from basedsl.prestage.assignment import Assignment
from basedsl.prestage.callbacks import RUNTIME
from basedsl.prestage.desugar import is_dynamic_index
from basedsl.prestage.nodes import (
    CHILD_FIELDS,
    LOAD,
    At,
    FreshNames,
    blocks,
    has_walrus,
    walk,
)
from basedsl.prestage.resolve import dotted_name
from basedsl.prestage.scopes import Scope, Scopes
from basedsl.prestage.static import RoleOf, is_static_test

_OPERATORS: dict[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
}


@dataclass(eq=False, repr=False)
class _Context:
    """The place of an expression: its function, and where functions for operands go."""

    #: The user's function around it; None at module level.
    scope: Scope | None
    #: The block for functions of operands; None where they could not see all variables.
    hoisted: list[ast.stmt] | None = None
    #: Variables which the function being written owns only through such functions.
    declared: set[str] = field(default_factory=set)
    #: Variables which it shares with the functions around it.
    shared: set[str] = field(default_factory=set)


class Expressions:
    """The pass over a whole tree, in place."""

    def __init__(
        self,
        scopes: Scopes,
        assignment: Assignment,
        fresh: FreshNames,
        role_of: RoleOf,
        generated: set[ast.FunctionDef],
        tested: set[ast.BoolOp],
    ) -> None:
        self.tested = tested
        self.scopes = scopes
        self.unbound = assignment.unbound
        self.fresh = fresh
        self.role_of = role_of
        self.generated = generated
        self.maybe_unbound = {node.id for node in assignment.unbound}

    def run(self, tree: ast.FunctionDef | ast.Lambda) -> None:
        """Rewrite the body of `tree` and the functions in it."""
        self.defined: set[str] = set()
        self.imported: set[str] = set()
        for node in walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                self.defined.add(node.name)
            elif isinstance(node, ast.Import | ast.ImportFrom):
                self.imported.update((a.asname or a.name).split(".")[0] for a in node.names)
        if isinstance(tree, ast.Lambda):
            tree.body = self.expr(tree.body, _Context(None))
        else:
            self.function(tree, None)

    # Statements ----------------------------------------------------------------------------

    def function(self, node: ast.FunctionDef, scope: Scope | None) -> None:
        context = _Context(scope if node in self.generated else self.scopes.of[node])
        for statement in node.body:
            if isinstance(statement, ast.Global | ast.Nonlocal):
                context.shared.update(statement.names)
        body = self.block(node.body, context)
        top = 0
        while top < len(body) and _is_declaration(body[top], top):
            top += 1
        at = At(node.lineno, node.col_offset, node.lineno, node.col_offset)
        body[top:top] = [at.declare(name) for name in sorted(context.declared)]
        node.body = body

    def block(self, body: list[ast.stmt], context: _Context) -> list[ast.stmt]:
        result: list[ast.stmt] = []
        for node in body:
            context.hoisted = []
            done = self.statement(node, context)
            result += context.hoisted
            result += done
        return result

    def statement(self, node: ast.stmt, context: _Context) -> list[ast.stmt]:
        match node:
            case ast.FunctionDef():
                self.definition(node, context)
            case ast.ClassDef():
                self.class_(node, context)
            case ast.Assign(targets=[ast.Subscript() as target]) if is_dynamic_index(target):
                at = At.node(node)
                args = [node.value, target.value, target.slice]
                args = [self.expr(arg, context) for arg in args]
                return [at.expr(at.callback("setitem", args))]
            case ast.AugAssign(target=ast.Name() as target) if target in self.unbound:
                at = At.node(target)
                read = at.assign(target.id, self.read(at, target.id))
                self.fields(node, context)
                return [read, node, *self.outer_checks(node, context)]
            case ast.If() | ast.For() | ast.While() | ast.With() | ast.Try() | ast.Match():
                self.compound(node, context)
                return [node]
            case ast.Expr(value=ast.Attribute() | ast.Name() as named):
                text, at = ast.unparse(named), At.node(named)
                value = self.expr(named, context)
                return [at.expr(at.callback("named", [value, at.const(text)]))]
            case ast.Expr() | ast.Return():
                if node.value is not None:
                    node.value = self.expr(node.value, context)
            case ast.Assign() | ast.AugAssign() | ast.Delete():
                self.fields(node, context)
                return [node, *self.outer_checks(node, context)]
            case ast.Raise() | ast.Assert():
                self.fields(node, context)
        return [node]

    def compound(self, node: ast.stmt, context: _Context) -> None:
        """Rewrite a compound statement that remains Python: its headers, then its blocks."""
        for field_ in CHILD_FIELDS[type(node)]:
            value = getattr(node, field_)
            if isinstance(value, ast.expr):
                setattr(node, field_, self.expr(value, context))
            elif field_ in ("items", "handlers", "cases"):
                for part in value:
                    for name in ("context_expr", "optional_vars", "type", "guard"):
                        inner = getattr(part, name, None)
                        if inner is not None:
                            setattr(part, name, self.expr(inner, context))
                    if isinstance(part, ast.match_case):
                        part.pattern = _pattern(part.pattern)
        hoisted = context.hoisted
        checks = self.outer_checks(node, context)
        for body in blocks(node):
            body[:] = self.block(body, context)
        if isinstance(node, ast.For | ast.With):
            node.body[:0] = checks
        context.hoisted = hoisted

    def definition(self, node: ast.FunctionDef, context: _Context) -> None:
        if node not in self.generated:
            node.decorator_list = [self.expr(item, context) for item in node.decorator_list]
            self.defaults(node.args, context)
        self.function(node, context.scope)

    def class_(self, node: ast.ClassDef, context: _Context) -> None:
        node.decorator_list = [self.expr(item, context) for item in node.decorator_list]
        node.bases = [self.expr(item, context) for item in node.bases]
        for keyword in node.keywords:
            keyword.value = self.expr(keyword.value, context)
        self.methods(node.body)

    def methods(self, body: list[ast.stmt]) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef):
                self.function(node, None)
            else:
                for inner in blocks(node):
                    self.methods(inner)

    def defaults(self, args: ast.arguments, context: _Context) -> None:
        args.defaults = [self.expr(item, context) for item in args.defaults]
        args.kw_defaults = [item and self.expr(item, context) for item in args.kw_defaults]

    def outer_checks(self, node: ast.stmt, context: _Context) -> list[ast.stmt]:
        """Return the checks of a statement that assigns outside of the decorated function."""
        scope = context.scope
        if scope is None or not (scope.globals or scope.nonlocals):
            return []
        targets: list[ast.AST] = []
        match node:
            case ast.Assign():
                targets = list(node.targets)
            case ast.AugAssign() | ast.For():
                targets = [node.target]
            case ast.With():
                targets = [item.optional_vars for item in node.items if item.optional_vars]
        result: list[ast.stmt] = []
        for target in targets:
            for name in walk(target):
                if not isinstance(name, ast.Name) or not isinstance(name.ctx, ast.Store):
                    continue
                if name in self.scopes.owner:
                    continue
                kind = "global" if name.id in scope.globals else "nonlocal"
                if kind == "global" or name.id in scope.nonlocals:
                    at = At.node(name)
                    args = [at.const(name.id), at.load(name.id), at.const(kind)]
                    result.append(at.expr(at.callback("check_outer", args)))
        return result

    # Expressions ---------------------------------------------------------------------------

    def expr(self, node: ast.expr, context: _Context) -> ast.expr:
        """Return the rewritten expression."""
        handler = _HANDLERS.get(type(node))
        if handler is not None:
            result: ast.expr = handler(self, node, context)
            return result
        self.fields(node, context)
        return node

    def fields(self, node: ast.AST, context: _Context) -> None:
        """Rewrite the expressions directly in a node."""
        for name in CHILD_FIELDS[type(node)]:
            value = getattr(node, name, None)
            if value.__class__ is list:
                for position, item in enumerate(value):
                    if isinstance(item, ast.expr):
                        value[position] = self.expr(item, context)
                    elif isinstance(item, ast.AST):
                        self.fields(item, context)
            elif isinstance(value, ast.expr):
                setattr(node, name, self.expr(value, context))

    def constant(self, node: ast.Constant, context: _Context) -> ast.expr:
        return node

    def name(self, node: ast.Name, context: _Context) -> ast.expr:
        if node in self.unbound and isinstance(node.ctx, ast.Load):
            return self.read(At.node(node), node.id)
        return node

    def read(self, at: At, name: str) -> ast.expr:
        return at.callback("read", [at.thunk(at.load(name)), at.const(name)])

    def boolean(self, node: ast.BoolOp, context: _Context) -> ast.expr:
        if self.stays(node, node.values, context):
            self.fields(node, context)
            return node
        kind = "and_" if isinstance(node.op, ast.And) else "or_"
        names = self.assigned(node, node.values, context)
        thunks = [self.thunk(kind + "arg", value, context) for value in node.values]
        if node in self.tested:
            kind = "all_true" if kind == "and_" else "any_true"
        return At.node(node).callback(kind, thunks, names)

    def unary(self, node: ast.UnaryOp, context: _Context) -> ast.expr:
        if not isinstance(node.op, ast.Not) or is_static_test(node, self.role_of):
            self.fields(node, context)
            return node
        return At.node(node).callback("not_", [self.expr(node.operand, context)])

    def ifexp(self, node: ast.IfExp, context: _Context) -> ast.expr:
        arms = [node.body, node.orelse]
        if is_static_test(node.test, self.role_of) or self.stays(node, arms, context):
            self.fields(node, context)
            return node
        names = self.assigned(node, arms, context)
        test = self.expr(node.test, context)
        thunks = [self.thunk("ifexp_arm", arm, context) for arm in arms]
        return At.node(node).callback("ifexp", [test, *thunks], names)

    def compare(self, node: ast.Compare, context: _Context) -> ast.expr:
        calls_back = isinstance(node.ops[0], ast.In | ast.NotIn | ast.Is | ast.IsNot)
        single = len(node.ops) == 1 and not calls_back
        if single or self.stays(node, node.comparators, context):
            self.fields(node, context)
            return node
        names = self.assigned(node, node.comparators, context)
        args = [self.expr(node.left, context)]
        for operator, value in zip(node.ops, node.comparators, strict=True):
            at = At.node(value)
            thunk = self.thunk("compare_arg", value, context)
            args.append(at.put(ast.Tuple([at.const(_OPERATORS[type(operator)]), thunk], LOAD)))
        return At.node(node).callback("compare", args, names)

    def call(self, node: ast.Call, context: _Context) -> ast.expr:
        role = self.role_of(node.func)
        known = role == "callback" or self.may_be_builtin(node.func)
        if role == "callback" and len(node.args) == 1 and _is_simple(node.args[0]):
            node.args = [self.each(node.args[0], context)]
            for keyword in node.keywords:
                keyword.value = self.expr(keyword.value, context)
        else:
            self.fields(node, context)
        if known or _makes_text(node.func):
            node.func = At.node(node.func).callback("fn", [node.func])
        return node

    def binary(self, node: ast.BinOp, context: _Context) -> ast.expr:
        self.fields(node, context)
        if isinstance(node.op, ast.Mod) and _is_text(node.left):
            at = At.node(node)
            make = at.put(ast.Attribute(node.left, "__mod__", LOAD))
            return at.put(ast.Call(at.callback("fn", [make]), [node.right], []))
        return node

    def text(self, node: ast.JoinedStr, context: _Context) -> ast.expr:
        """A text of one value is what formatting gives; others are joined from their parts."""
        at = At.node(node)
        parts: list[ast.expr] = []
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                part.value = self.expr(part.value, context)
                if part.format_spec is not None:
                    self.fields(part.format_spec, context)
                part = at.put(ast.JoinedStr([part]))
            parts.append(part)
        return parts[0] if len(parts) == 1 else at.callback("text", parts)

    def each(self, node: Any, context: _Context) -> ast.expr:
        (generator,) = node.generators
        at = At.node(node)
        items = self.expr(generator.iter, context)
        parameter = At.node(generator.target).put(ast.arg(generator.target.id))
        item = at.put(ast.Lambda(_parameters(parameter), self.expr(node.elt, _inside(context))))
        eager = at.const(isinstance(node, ast.ListComp))
        return at.callback("each", [items, item, eager])

    def may_be_builtin(self, callee: ast.expr) -> bool:
        """Return True for a local name that may hold a builtin or a function of `math`: one that no
        `def` or `class` binds, or a module imported here.
        """
        if isinstance(callee, ast.Name):
            return callee in self.scopes.owner and callee.id not in self.defined
        found = dotted_name(callee)
        return found is not None and found[0].id in self.imported and found[0] in self.scopes.owner

    def subscript(self, node: ast.Subscript, context: _Context) -> ast.expr:
        self.fields(node, context)
        if isinstance(node.ctx, ast.Load) and is_dynamic_index(node):
            return At.node(node).callback("getitem", [node.value, node.slice])
        return node

    def lambda_(self, node: ast.Lambda, context: _Context) -> ast.expr:
        self.defaults(node.args, context)
        node.body = self.expr(node.body, _inside(context))
        return node

    def comprehension(self, node: Any, context: _Context) -> ast.expr:
        inner = _inside(context)
        for position, generator in enumerate(node.generators):
            generator.iter = self.expr(generator.iter, inner if position else context)
            generator.target = self.expr(generator.target, inner)
            generator.ifs = [self.expr(condition, inner) for condition in generator.ifs]
        for name in ("elt", "key", "value"):
            value = getattr(node, name, None)
            if value is not None:
                setattr(node, name, self.expr(value, inner))
        result: ast.expr = node
        return result

    # Thunks --------------------------------------------------------------------------------

    def stays(self, node: ast.expr, operands: list[ast.expr], context: _Context) -> bool:
        """Return True if an operator is left to Python."""
        if is_static_test(node, self.role_of):
            return True
        return context.hoisted is None and any(map(has_walrus, operands))

    def thunk(self, kind: str, value: ast.expr, context: _Context) -> ast.expr:
        """Return `lambda: value`, or a function defined before the statement if it has `:=`."""
        at = At.node(value)
        if context.hoisted is None or not has_walrus(value):
            return at.thunk(self.expr(value, _inside(context)))
        scope = context.scope
        names = _walrus_names(value)
        head: list[ast.stmt] = []
        if outer := [name for name in names if scope is not None and name in scope.globals]:
            head.append(at.put(ast.Global(outer)))
        if own := [name for name in names if name not in outer]:
            head.append(at.put(ast.Nonlocal(own)))
            context.declared.update(name for name in own if name not in context.shared)
        inner = replace(context, hoisted=[], declared=set(), shared=set(names))
        result = self.expr(value, inner)
        assert inner.hoisted is not None
        body = [*head, *inner.hoisted, at.put(ast.Return(result))]
        function = at.function(self.fresh.function(kind, at.lineno), [], body)
        context.hoisted.append(function)
        return at.load(function.name)

    def assigned(
        self, node: ast.expr, operands: list[ast.expr], context: _Context
    ) -> dict[str, ast.expr]:
        """Return the keywords `names` and `undef_ok` if operands assign variables."""
        scope = context.scope
        if scope is None or not any(map(has_walrus, operands)):
            return {}
        found = {name for operand in operands for name in _walrus_names(operand)}
        names = [name for name in found if name not in scope.globals]
        names.sort(key=lambda name: (scope.index.get(name, -1), name))
        at = At.node(node)
        bound = [name for name in names if name not in self.maybe_unbound]
        return {"names": at.names(names), "undef_ok": at.names(bound)}


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def tested_conditions(nodes: Iterable[ast.AST]) -> set[ast.BoolOp]:
    """Return each `and` and `or` of which only the truth is asked, where Python jumps on it."""
    found: set[ast.BoolOp] = set()

    def add(node: ast.expr | None) -> None:
        match node:
            case ast.BoolOp():
                found.add(node)
                for value in node.values:
                    add(value)
            case ast.UnaryOp(op=ast.Not()):
                add(node.operand)
            case ast.IfExp():
                add(node.body)
                add(node.orelse)

    for node in nodes:
        if isinstance(node, ast.If | ast.While | ast.IfExp | ast.Assert):
            add(node.test)
        elif isinstance(node, ast.comprehension):
            for condition in node.ifs:
                add(condition)
        elif isinstance(node, ast.match_case):
            add(node.guard)
    return found


def _makes_text(callee: ast.expr) -> bool:
    """Return True for `"...".format` and `"...".join`."""
    return (
        isinstance(callee, ast.Attribute)
        and callee.attr in ("format", "join")
        and _is_text(callee.value)
    )


def _is_simple(node: ast.expr) -> bool:
    """Return True for a comprehension of one loop, one variable and no condition."""
    if not isinstance(node, ast.GeneratorExp | ast.ListComp) or len(node.generators) != 1:
        return False
    (generator,) = node.generators
    plain = not (generator.ifs or generator.is_async) and isinstance(generator.target, ast.Name)
    return plain and not has_walrus(node)


def _parameters(*names: ast.arg) -> ast.arguments:
    return ast.arguments([], list(names), None, [], [], None, [])


def _inside(context: _Context) -> _Context:
    """Return the context in a lambda or comprehension."""
    return replace(context, hoisted=None)


def _pattern(node: ast.pattern) -> ast.pattern:
    """Return a pattern in which the runtime tries `True` and `False`, not Python by identity."""
    if isinstance(node, ast.MatchSingleton) and node.value is not None:
        at = At.node(node)
        value = ast.Attribute(at.load(RUNTIME), str(node.value).upper(), LOAD)
        return at.put(ast.MatchValue(at.put(value)))
    for name in CHILD_FIELDS[type(node)]:
        value = getattr(node, name)
        if isinstance(value, ast.pattern):
            setattr(node, name, _pattern(value))
        elif isinstance(value, list):
            value[:] = [_pattern(x) if isinstance(x, ast.pattern) else x for x in value]
    return node


def _walrus_names(node: ast.AST) -> list[str]:
    """Return the variables that evaluating an expression assigns in its function."""
    found: dict[str, None] = {}

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.NamedExpr):
            found[node.target.id] = None
        for child in ast.iter_child_nodes(node):
            if isinstance(node, ast.Lambda) and child is node.body:
                continue
            visit(child)

    visit(node)
    return list(found)


def _is_declaration(node: ast.stmt, position: int) -> bool:
    if isinstance(node, ast.Global | ast.Nonlocal):
        return True
    return position == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


_Handler = Callable[[Expressions, Any, _Context], ast.expr]
_HANDLERS: dict[type[ast.AST], _Handler] = {
    ast.Constant: Expressions.constant,
    ast.Name: Expressions.name,
    ast.BoolOp: Expressions.boolean,
    ast.UnaryOp: Expressions.unary,
    ast.IfExp: Expressions.ifexp,
    ast.Compare: Expressions.compare,
    ast.BinOp: Expressions.binary,
    ast.JoinedStr: Expressions.text,
    ast.Call: Expressions.call,
    ast.Subscript: Expressions.subscript,
    ast.Lambda: Expressions.lambda_,
    ast.ListComp: Expressions.comprehension,
    ast.SetComp: Expressions.comprehension,
    ast.DictComp: Expressions.comprehension,
    ast.GeneratorExp: Expressions.comprehension,
}
