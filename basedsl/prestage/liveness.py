"""Liveness: finds the variables that a staged statement must share with the code around it.

A backward analysis of the tree after the exits were lowered. Every statement is first summarised,
bottom-up, as a function on sets of live variables (gen and pass masks, one pass mask per way to
leave it); then one top-down walk gives each staged statement its `Sharing`. Both visit every
statement once, whatever the nesting. *Bad* liveness follows only reads that may find the variable
unbound; a variable that is live but not bad after a construct may be undefined on one of its paths.
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from basedsl.prestage.assignment import Assignment, Effect, irrefutable, truth
from basedsl.prestage.exits import Structure
from basedsl.prestage.nodes import Loop
from basedsl.prestage.scopes import Scope

_ALL = -1
_NOTHING = Effect()


class Sharing(NamedTuple):
    """The variables (bit masks) of a staged statement: see `callbacks` for `names`, `undef_ok`."""

    names: int
    undef_ok: int
    #: Live at the start of the first body (then, loop body) and of the second (else).
    live_in: int
    live_in_else: int = 0


class _Summary(NamedTuple):
    """Transfer function: live-in = gen | next & falls | after_loop & breaks | head & continues."""

    gen: int = 0
    bad: int = 0
    falls: int = _ALL
    breaks: int = 0
    continues: int = 0
    #: Variables possibly assigned or deleted inside.
    may: int = 0

    def then(self, after: _Summary) -> _Summary:
        """Return the summary of this followed by `after`."""
        falls = self.falls
        return _Summary(
            self.gen | after.gen & falls,
            self.bad | after.bad & falls,
            falls & after.falls,
            self.breaks | after.breaks & falls,
            self.continues | after.continues & falls,
            self.may | after.may,
        )

    def either(self, other: _Summary) -> _Summary:
        """Return the summary of this or `other`."""
        return _Summary(
            self.gen | other.gen,
            self.bad | other.bad,
            self.falls | other.falls,
            self.breaks | other.breaks,
            self.continues | other.continues,
            self.may | other.may,
        )


_SKIP = _Summary()
#: Never reached; neutral for `either`.
_NEVER = _Summary(falls=0)


class _Live(NamedTuple):
    """The live and badly live variables at one point."""

    live: int = 0
    bad: int = 0

    def __or__(self, other: _Live) -> _Live:
        return _Live(self.live | other.live, self.bad | other.bad)


class _Outs(NamedTuple):
    """The live variables where a block may go: to a break or continue target, or up by an
    exception.
    """

    breaks: _Live
    continues: _Live
    exception: _Live


def analyse_liveness(
    scope: Scope, assignment: Assignment, structure: Structure
) -> tuple[dict[ast.stmt, Sharing], set[ast.stmt]]:
    """Return the sharing of every staged statement of a function, and useless flag assignments."""
    analysis = _Liveness(scope, assignment, structure)
    assert isinstance(scope.node, ast.FunctionDef)
    # Variables that other functions may read at any time.
    foreign = scope.mask(scope.foreign)
    always = _Live(
        scope.mask(scope.captured & scope.index.keys()) | foreign,
        assignment.captured_bad[scope] | foreign,
    )
    analysis.place(scope.node.body, always, _Outs(_Live(), _Live(), always))
    return analysis.sharing, analysis.dead


class _Liveness:
    def __init__(self, scope: Scope, assignment: Assignment, structure: Structure) -> None:
        self.scope = scope
        self.effects = assignment.effects
        self.structure = structure
        self.summaries: dict[ast.AST, _Summary] = {}
        self.sharing: dict[ast.stmt, Sharing] = {}
        self.dead: set[ast.stmt] = set()

    # Bottom-up -----------------------------------------------------------------------------

    def effect(self, node: ast.AST) -> _Summary:
        """Return the summary of a simple statement or a header."""
        effect = self.effects.get(node, _NOTHING)
        return _Summary(effect.reads, effect.bad, ~effect.writes, 0, 0, effect.may)

    def block(self, body: list[ast.stmt]) -> _Summary:
        total = _SKIP
        for node in reversed(body):
            total = self.summary(node).then(total)
        return total

    def summary(self, node: ast.stmt) -> _Summary:
        known = self.summaries.get(node)
        if known is None:
            known = self.summaries[node] = self.summarise(node)
        return known

    def summarise(self, node: ast.stmt) -> _Summary:
        match node:
            case ast.Return() | ast.Raise():
                return self.effect(node).then(_NEVER)
            case ast.Break():
                return _Summary(falls=0, breaks=_ALL)
            case ast.Continue():
                return _Summary(falls=0, continues=_ALL)
            case ast.If():
                arms = self.block(node.body).either(self.block(node.orelse))
                return self.effect(node.test).then(arms)
            case ast.For() | ast.While():
                return self.loop(node)
            case ast.With():
                # The manager may swallow an exception from anywhere in the body.
                return self.effect(node).then(self.block(node.body).either(_SKIP))
            case ast.Try():
                return self.try_(node)
            case ast.Match():
                arms = _SKIP if not any(map(irrefutable, node.cases)) else _NEVER
                for case in node.cases:
                    pattern = self.effect(case)
                    arms = arms.either(pattern.then(self.block(case.body)))
                    # A pattern may bind some names and then fail.
                    arms = arms.either(_Summary(pattern.gen, pattern.bad, 0))
                return self.effect(node).then(arms)
        return self.effect(node)

    def turn(self, node: Loop) -> _Summary:
        """Return the summary of one turn of a loop, from its head back to its head."""
        if isinstance(node, ast.For):
            return self.effect(node.target).then(self.block(node.body))
        return self.effect(node.test).then(self.block(node.body))

    def leaving(self, node: Loop) -> _Summary:
        """Return the summary from the head of a loop out of it, without `break`."""
        flags = self.scope.mask(self.structure.exits.get(node, ()))
        if isinstance(node, ast.For):
            return _Summary(flags).then(self.block(node.orelse))
        if node in self.structure.plain and truth(node.test) is True:
            return _NEVER
        test = self.effect(node.test)
        if flags:  # a flag ends the loop before the test
            test = _Summary(flags | test.gen, test.bad)
        return test.then(self.block(node.orelse))

    def loop(self, node: Loop) -> _Summary:
        turn, leaving = self.turn(node), self.leaving(node)
        # Going round adds nothing to what one turn and leaving need.
        total = _Summary(
            turn.gen | leaving.gen,
            turn.bad | leaving.bad,
            leaving.falls | turn.breaks,
            leaving.breaks,
            leaving.continues,
            turn.may | leaving.may,
        )
        return self.effect(node.iter).then(total) if isinstance(node, ast.For) else total

    def try_(self, node: ast.Try) -> _Summary:
        body = self.block(node.body).then(self.block(node.orelse))
        total = body
        for handler in node.handlers:
            total = total.either(self.effect(handler).then(self.block(handler.body)))
        final = self.block(node.finalbody)
        through = final.falls
        return _Summary(
            total.gen | final.gen,
            total.bad | final.bad,
            total.falls & through,
            total.breaks & through | final.breaks,
            total.continues & through | final.continues,
            total.may | final.may,
        )

    # Top-down ------------------------------------------------------------------------------

    def before(self, summary: _Summary, out: _Live, outs: _Outs) -> _Live:
        """Return the live variables before something with this summary."""
        s = summary
        return _Live(
            s.gen
            | out.live & s.falls
            | outs.breaks.live & s.breaks
            | outs.continues.live & s.continues
            | outs.exception.live,
            s.bad
            | out.bad & s.falls
            | outs.breaks.bad & s.breaks
            | outs.continues.bad & s.continues
            | outs.exception.bad,
        )

    def place(self, body: list[ast.stmt], out: _Live, outs: _Outs) -> _Live:
        """Visit a block with `out` live after it; return the live variables before it."""
        for node in reversed(body):
            self.visit(node, out, outs)
            if node in self.structure.setters:
                if not self.effects[node].writes & (out.live | outs.exception.live):
                    self.dead.add(node)
            out = self.before(self.summary(node), out, outs)
        return out

    def visit(self, node: ast.stmt, out: _Live, outs: _Outs) -> None:
        match node:
            case ast.If():
                then = self.place(node.body, out, outs)
                orelse = self.place(node.orelse, out, outs)
                if node not in self.structure.plain:
                    may = self.block_may(node.body) | self.block_may(node.orelse)
                    self.share(node, may, out, then, orelse)
            case ast.For() | ast.While():
                self.visit_loop(node, out, outs)
            case ast.With():
                self.place(node.body, out, self.caught(outs, out))
            case ast.Try():
                self.visit_try(node, out, outs)
            case ast.Match():
                for case in node.cases:
                    self.place(case.body, out, outs)

    def visit_loop(self, node: Loop, out: _Live, outs: _Outs) -> None:
        turn, leaving = self.turn(node), self.leaving(node)
        after = self.before(leaving, out, outs)
        head = after | _Live(turn.gen | out.live & turn.breaks, turn.bad | out.bad & turn.breaks)
        self.place(node.orelse, out, outs)
        body = self.place(node.body, head, _Outs(out, head, outs.exception))
        if node in self.structure.plain:
            return
        used = head | out
        if isinstance(node, ast.For):
            target = self.effect(node.target)
            body = _Live(target.gen | body.live & target.falls)
        else:
            # Variables that the test assigns reach the body through the loop's own state.
            used |= _Live(body.live & self.effect(node.test).may)
        self.share(node, turn.may, used, body, _Live())

    def visit_try(self, node: ast.Try, out: _Live, outs: _Outs) -> None:
        final = self.place(node.finalbody, out, outs)
        outs = _Outs(outs.breaks | final, outs.continues | final, outs.exception | final)
        if node.finalbody:
            out = out | final
        caught = outs
        for handler in node.handlers:
            body = self.place(handler.body, out, outs)
            caught = self.caught(caught, self.before(self.effect(handler), body, outs))
        orelse = self.place(node.orelse, out, caught)
        self.place(node.body, orelse, caught)

    def caught(self, outs: _Outs, handler: _Live) -> _Outs:
        return _Outs(outs.breaks, outs.continues, outs.exception | handler)

    def block_may(self, body: list[ast.stmt]) -> int:
        may = 0
        for node in body:
            may |= self.summary(node).may
        return may

    def share(self, node: ast.stmt, may: int, out: _Live, body: _Live, orelse: _Live) -> None:
        names = may & out.live
        self.sharing[node] = Sharing(names, names & ~out.bad, body.live, orelse.live)
