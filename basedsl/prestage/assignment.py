"""Definite assignment: finds the reads of local variables that may find them unbound.

A forward analysis of the user's own control flow (before exits are lowered), with separate states
for the true and false outcome of a condition, so that `if x and (y := f()): use(y)` is proved.
Every node is visited once. Also notes the reads and writes of each statement (`Effect`), which is
all that later passes need to know of expressions.

A `with` is assumed to let exceptions out; were it to swallow one, a read of a name that the rest of
its body would have bound raises Python's own NameError.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from basedsl.prestage.nodes import children, parameters
from basedsl.prestage.scopes import Scope, Scopes, outside_expressions


class Effect(NamedTuple):
    """The reads and writes of a simple statement, or of the header of a compound one.

    Sets are bit masks by `Scope.index`. `reads` are those of values from before the statement,
    `bad` the ones among them that may be unbound; `writes` certainly happen, `may` possibly, also
    through a call of a nested function; `binds` are those the statement itself assigns or deletes;
    `mentions` has all variables that occur, also inside of nested functions.
    """

    reads: int = 0
    bad: int = 0
    writes: int = 0
    may: int = 0
    binds: int = 0
    mentions: int = 0


@dataclass(eq=False, repr=False)
class Assignment:
    """The result of the analysis of a tree."""

    #: Loads that are not proved to find their variable bound.
    unbound: set[ast.Name] = field(default_factory=set)
    effects: dict[ast.AST, Effect] = field(default_factory=dict)
    #: Per function, captured variables that a closure may read unbound.
    captured_bad: dict[Scope, int] = field(default_factory=dict)


def analyse_assignment(scopes: Scopes) -> Assignment:
    """Analyse every function (not lambda) of a tree."""
    result = Assignment()
    for scope in scopes.functions():
        _DefiniteAssignment(scopes, scope, result).run()
    return result


class _DefiniteAssignment:
    # A state is a bit mask: bit i says variable i is bound; bit width+i says it was assigned by
    # the current statement. States merge by `&`; the unreachable state has all bits set.

    def __init__(self, scopes: Scopes, scope: Scope, result: Assignment) -> None:
        self.owner = scopes.owner
        self.scope = scope
        self.unbound = result.unbound
        self.effects = result.effects
        self.result = result
        self.width = len(scope.index)
        self.low = (1 << self.width) - 1
        self.never = (1 << 2 * self.width) - 1
        self.bits = {name: 1 << i | 1 << self.width + i for name, i in scope.index.items()}
        self.deleted = scope.mask(scope.deleted & scope.index.keys())
        self.may_be_unbound = (scope.deleted | scope.conditional) & scope.index.keys()
        self.called = scope.mask(scope.closure_assigned) | scope.mask(scope.foreign)
        self.captured_bad = 0
        self.breaks = self.continues = self.never
        self.reads = self.bad = self.may = self.binds = self.mentions = 0

    def run(self) -> None:
        assert isinstance(self.scope.node, ast.FunctionDef)
        state = self.scope.mask(arg.arg for arg in parameters(self.scope.node.args))
        state |= self.scope.mask(self.scope.foreign)
        self.block(self.scope.node.body, state)
        self.result.captured_bad[self.scope] = self.captured_bad

    # Effects -----------------------------------------------------------------------------

    def start(self, state: int) -> int:
        self.reads = self.bad = self.may = self.binds = self.mentions = 0
        return state & self.low

    def finish(self, node: ast.AST, state: int) -> int:
        """Note the effect of the nodes visited since `start` under `node`."""
        self.effects[node] = Effect(
            self.reads, self.bad, state >> self.width, self.may, self.binds, self.mentions
        )
        return state

    def assigned(self, name: str, state: int) -> int:
        bits = self.bits.get(name)
        if bits is None:
            return state
        self.may |= bits & self.low
        self.binds |= bits & self.low
        self.mentions |= bits & self.low
        return state | bits

    def removed(self, name: str, state: int) -> int:
        return self.assigned(name, state) & ~(self.bits.get(name, 0) & self.low)

    # Expressions ---------------------------------------------------------------------------

    def expr(self, node: ast.AST, state: int) -> int:
        """Visit an expression or an assignment target; return the state after it."""
        handler = _EXPRESSIONS.get(type(node))
        if handler is not None:
            after: int = handler(self, node, state)
            return after
        for child in children(node):
            state = self.expr(child, state)
        return state

    def cond(self, node: ast.expr, state: int) -> tuple[int, int]:
        """Visit a condition; return the states after it turned out true and false."""
        constant = truth(node)
        if constant is not None:
            return (state, self.never) if constant else (self.never, state)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            true, false = self.cond(node.operand, state)
            return false, true
        if isinstance(node, ast.BoolOp):
            conjunction = isinstance(node.op, ast.And)
            ended = self.never
            for value in node.values:
                true, false = self.cond(value, state)
                state, over = (true, false) if conjunction else (false, true)
                ended &= over
            return (state, ended) if conjunction else (ended, state)
        if isinstance(node, ast.IfExp):
            true, false = self.cond(node.test, state)
            then, orelse = self.cond(node.body, true), self.cond(node.orelse, false)
            return then[0] & orelse[0], then[1] & orelse[1]
        if isinstance(node, ast.Compare):
            state = self.expr(node.comparators[0], self.expr(node.left, state))
            ended = state
            for value in node.comparators[1:]:
                state = self.expr(value, state)
                ended &= state
            return state, ended
        state = self.expr(node, state)
        return state, state

    def branching(self, node: ast.expr, state: int) -> int:
        true, false = self.cond(node, state)
        return true & false

    def constant(self, node: ast.Constant, state: int) -> int:
        return state

    def name(self, node: ast.Name, state: int) -> int:
        if not self.tracks(node):
            return state
        if isinstance(node.ctx, ast.Store):
            return self.assigned(node.id, state)
        bits = self.bits[node.id]
        bit = bits & self.low
        self.mentions |= bit
        if not state & bit:
            self.bad |= bit
            self.unbound.add(node)
        # An operand that Python never reaches may still be traced: `n or 1 or m`.
        if state == self.never or not state & (bits ^ bit):
            self.reads |= bit
        return state if isinstance(node.ctx, ast.Load) else self.removed(node.id, state)

    def tracks(self, node: ast.Name) -> bool:
        owner = self.owner.get(node)
        return owner is self.scope or (
            owner is not None and self.scope.foreign.get(node.id) is owner
        )

    def named(self, node: ast.NamedExpr, state: int) -> int:
        return self.expr(node.target, self.expr(node.value, state))

    def call(self, node: ast.Call, state: int) -> int:
        for child in children(node):
            state = self.expr(child, state)
        self.may |= self.called
        self.mentions |= self.called
        return state

    def dict_(self, node: ast.Dict, state: int) -> int:
        for key, value in zip(node.keys, node.values, strict=True):
            if key is not None:
                state = self.expr(key, state)
            state = self.expr(value, state)
        return state

    def lambda_(self, node: ast.Lambda, state: int) -> int:
        for default in outside_expressions(node):
            state = self.expr(default, state)
        self.capture(node, state)
        return state

    def comprehension(self, node: Any, state: int) -> int:
        state = inner = self.expr(node.generators[0].iter, state)
        if isinstance(node, ast.GeneratorExp):
            self.capture(node, state)
            return state
        for position, generator in enumerate(node.generators):
            if position:
                inner = self.expr(generator.iter, inner)
            inner = self.expr(generator.target, inner)
            for condition in generator.ifs:
                inner = self.cond(condition, inner)[0]
        if isinstance(node, ast.DictComp):
            self.expr(node.value, self.expr(node.key, inner))
        else:
            self.expr(node.elt, inner)
        return state

    def capture(self, node: ast.AST, state: int) -> None:
        """Visit a definition that mentions variables of this function."""
        for name in self.scope.inner_names.get(node, ()):
            self.mentions |= self.bits[name] & self.low
        for use in self.scope.inner_uses.get(node, ()):
            bit = self.bits[use.id] & self.low
            if not isinstance(use.ctx, ast.Load):
                self.may |= bit
                if isinstance(node, ast.GeneratorExp):
                    self.binds |= bit
            elif not state & bit or self.deleted & bit:
                if use.id in self.may_be_unbound:
                    self.captured_bad |= bit
                    self.unbound.add(use)

    # Statements ------------------------------------------------------------------------------

    def block(self, body: list[ast.stmt], state: int) -> int:
        for statement in body:
            handler = _STATEMENTS.get(type(statement))
            if handler is not None:
                state = handler(self, statement, state)
            else:
                state = self.simple(statement, state)
        return state

    def simple(self, node: ast.AST, state: int) -> int:
        return self.finish(node, self.expr(node, self.start(state)))

    def assign(self, node: ast.Assign, state: int) -> int:
        state = self.expr(node.value, self.start(state))
        for target in node.targets:
            state = self.expr(target, state)
        return self.finish(node, state)

    def augmented(self, node: ast.AugAssign, state: int) -> int:
        state = self.start(state)
        target = node.target
        if isinstance(target, ast.Name):
            if self.tracks(target):
                bits = self.bits[target.id]
                self.reads |= bits & self.low
                if not state & bits & self.low:
                    self.bad |= bits & self.low
                    self.unbound.add(target)
        else:
            state = self.expr(target, state)
        state = self.expr(node.value, state)
        if isinstance(target, ast.Name):
            state = self.expr(target, state)
        return self.finish(node, state)

    def annotated(self, node: ast.AnnAssign, state: int) -> int:
        # Only `x: T` without a value is left: it declares, and does nothing.
        state = self.start(state)
        if isinstance(node.target, ast.Name):
            self.mentions |= self.bits.get(node.target.id, 0) & self.low
        return self.finish(node, state)

    def definition(self, node: ast.FunctionDef | ast.ClassDef, state: int) -> int:
        state = self.start(state)
        for expression in outside_expressions(node):
            state = self.expr(expression, state)
        bound = self.assigned(node.name, state)
        self.capture(node, bound if isinstance(node, ast.FunctionDef) else state)
        return self.finish(node, bound)

    def import_(self, node: ast.Import | ast.ImportFrom, state: int) -> int:
        state = self.start(state)
        for alias in node.names:
            state = self.assigned((alias.asname or alias.name).split(".")[0], state)
        return self.finish(node, state)

    def leave(self, node: ast.Return | ast.Raise, state: int) -> int:
        self.simple(node, state)
        return self.never

    def break_(self, node: ast.Break, state: int) -> int:
        self.breaks &= state
        self.effects[node] = Effect()
        return self.never

    def continue_(self, node: ast.Continue, state: int) -> int:
        self.continues &= state
        self.effects[node] = Effect()
        return self.never

    def if_(self, node: ast.If, state: int) -> int:
        true, false = self.cond(node.test, self.start(state))
        self.finish(node.test, true & false)
        return self.block(node.body, true) & self.block(node.orelse, false)

    def for_(self, node: ast.For, state: int) -> int:
        state = self.finish(node.iter, self.expr(node.iter, self.start(state)))
        head = state & ~self.deleted
        outer = self.breaks, self.continues
        self.breaks = self.continues = self.never
        item = self.finish(node.target, self.expr(node.target, self.start(head)))
        self.block(node.body, item)
        breaks = self.breaks
        self.breaks, self.continues = outer
        return self.block(node.orelse, head) & breaks

    def while_(self, node: ast.While, state: int) -> int:
        head = state & ~self.deleted
        true, false = self.cond(node.test, self.start(head))
        self.finish(node.test, true & false)
        outer = self.breaks, self.continues
        self.breaks = self.continues = self.never
        self.block(node.body, true)
        breaks = self.breaks
        self.breaks, self.continues = outer
        return self.block(node.orelse, false) & breaks

    def with_(self, node: ast.With, state: int) -> int:
        state = self.start(state)
        for item in node.items:
            state = self.expr(item.context_expr, state)
            if item.optional_vars is not None:
                state = self.expr(item.optional_vars, state)
        return self.block(node.body, self.finish(node, state))

    def try_(self, node: ast.Try, state: int) -> int:
        outer = self.breaks, self.continues
        if node.finalbody:
            self.breaks = self.continues = self.never
        caught = state & ~self.deleted
        after = self.block(node.orelse, self.block(node.body, state))
        for handler in node.handlers:
            self.start(caught)
            entry = caught
            if handler.type is not None:
                entry = self.expr(handler.type, entry)
            if handler.name is not None:
                entry = self.assigned(handler.name, entry)
            end = self.block(handler.body, self.finish(handler, entry))
            if handler.name is not None and end != self.never:
                end = self.removed(handler.name, end)
            after &= end
        if node.finalbody:
            jumps = self.breaks, self.continues
            self.breaks, self.continues = outer
            gained = self.block(node.finalbody, caught)
            if gained == self.never:
                return self.never
            self.breaks &= self.through(jumps[0], gained)
            self.continues &= self.through(jumps[1], gained)
            after = self.through(after, gained)
        return after

    def through(self, state: int, gained: int) -> int:
        """Return a state after a `finally` block that ends with `gained` at least."""
        return state if state == self.never else state & ~self.deleted | gained

    def match(self, node: ast.Match, state: int) -> int:
        state = self.finish(node, self.expr(node.subject, self.start(state)))
        after = self.never
        for case in node.cases:
            entry = self.pattern(case.pattern, self.start(state))
            failed = state
            if case.guard is not None:
                entry, _ = self.cond(case.guard, entry)
            self.finish(case, entry)
            after &= self.block(case.body, entry)
            state = failed if not irrefutable(case) else self.never
        return after & state

    def pattern(self, node: ast.AST, state: int) -> int:
        if isinstance(node, ast.MatchOr):
            merged = self.never
            for alternative in node.patterns:
                merged &= self.pattern(alternative, state)
            return merged
        for child in children(node):
            if isinstance(child, ast.pattern):
                state = self.pattern(child, state)
            else:
                state = self.expr(child, state)
        name = getattr(node, "rest" if isinstance(node, ast.MatchMapping) else "name", None)
        return state if name is None else self.assigned(name, state)


def truth(node: ast.expr) -> bool | None:
    """Return the truth of a literal condition (or `__debug__`); None for other expressions."""
    if isinstance(node, ast.Constant):
        return bool(node.value)
    if isinstance(node, ast.Name) and node.id == "__debug__":
        return __debug__
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        value = truth(node.operand)
        return None if value is None else not value
    return None


def irrefutable(case: ast.match_case) -> bool:
    """Return True if a case takes every subject."""
    pattern: ast.pattern | None = case.pattern
    while isinstance(pattern, ast.MatchAs) and pattern.pattern is not None:
        pattern = pattern.pattern
    return case.guard is None and isinstance(pattern, ast.MatchAs)


_EXPRESSIONS: dict[type[ast.AST], Any] = {
    ast.Constant: _DefiniteAssignment.constant,
    ast.Name: _DefiniteAssignment.name,
    ast.NamedExpr: _DefiniteAssignment.named,
    ast.Call: _DefiniteAssignment.call,
    ast.Dict: _DefiniteAssignment.dict_,
    ast.BoolOp: _DefiniteAssignment.branching,
    ast.IfExp: _DefiniteAssignment.branching,
    ast.Compare: _DefiniteAssignment.branching,
    ast.Lambda: _DefiniteAssignment.lambda_,
    ast.ListComp: _DefiniteAssignment.comprehension,
    ast.SetComp: _DefiniteAssignment.comprehension,
    ast.DictComp: _DefiniteAssignment.comprehension,
    ast.GeneratorExp: _DefiniteAssignment.comprehension,
}
_STATEMENTS: dict[type[ast.AST], Any] = {
    ast.Assign: _DefiniteAssignment.assign,
    ast.AugAssign: _DefiniteAssignment.augmented,
    ast.AnnAssign: _DefiniteAssignment.annotated,
    ast.FunctionDef: _DefiniteAssignment.definition,
    ast.ClassDef: _DefiniteAssignment.definition,
    ast.Import: _DefiniteAssignment.import_,
    ast.ImportFrom: _DefiniteAssignment.import_,
    ast.Return: _DefiniteAssignment.leave,
    ast.Raise: _DefiniteAssignment.leave,
    ast.Break: _DefiniteAssignment.break_,
    ast.Continue: _DefiniteAssignment.continue_,
    ast.If: _DefiniteAssignment.if_,
    ast.For: _DefiniteAssignment.for_,
    ast.While: _DefiniteAssignment.while_,
    ast.With: _DefiniteAssignment.with_,
    ast.Try: _DefiniteAssignment.try_,
    ast.Match: _DefiniteAssignment.match,
}
