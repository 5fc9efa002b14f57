"""Pass `exits`: lower `break`, `continue`, early `return` and the `else` of loops.

Structure first, flags only where needed:

    if c: return a          if c: __retval__ = a
    rest                    else: rest
                            return __retval__

    for x in xs:            __brk_1__ = False
        if c(x): break      for x in xs:              (exits: __brk_1__)
        rest                    if c(x): __brk_1__ = True
    else:                       else: rest
        nothing()           if not __brk_1__: nothing()

Statements after one that may or may not exit are guarded by `if not flag`. Python's own jumps
remain where every statement between the jump and its target certainly remains Python: tests and
iterables that are static, `try`, `with`, `match`.

Not covered: a lowered jump out of two nested `with` of which the inner one raises on exit and the
outer one swallows that. Python forgets the jump, the rewritten function does it.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import NamedTuple

from basedsl.prestage.assignment import Assignment, Effect, irrefutable, truth
from basedsl.prestage.callbacks import RETURN_VALUE, RETURNED
from basedsl.prestage.nodes import (
    At,
    FreshNames,
    Loop,
    blocks,
    has_docstring,
    unsupported,
    walk,
)
from basedsl.prestage.scopes import Scope
from basedsl.prestage.static import RoleOf, is_static_iterable, is_static_test

RET, BRK, CONT = 1, 2, 4
_KIND_NAMES = {BRK: "brk", CONT: "cont"}
_KEYWORDS = {ast.Return: "return", ast.Break: "break", ast.Continue: "continue"}


@dataclass(eq=False, repr=False)
class Structure:
    """The facts about the statements of a tree that later passes need."""

    #: Branches and loops that stay Python statements.
    plain: set[ast.stmt] = field(default_factory=set)
    #: The flags that end a staged loop.
    exits: dict[Loop, tuple[str, ...]] = field(default_factory=dict)
    #: Assignments to flags, which are dropped where nobody reads the flag afterwards.
    setters: set[ast.stmt] = field(default_factory=set)


class _Jumps(NamedTuple):
    """Jumps that leave a statement (RET | BRK | CONT), and whether control may go on after it."""

    escaping: int = 0
    #: Those of them that leave a staged statement on their way.
    crossing: int = 0
    falls: bool = True


@dataclass(eq=False, repr=False)
class _Flags:
    """The flag variables of one loop, or of the function (RET)."""

    line: int
    names: dict[int, str] = field(default_factory=dict)
    used: int = 0


class _ExitTarget(NamedTuple):
    """The place of a block: which jumps may remain Python there, and the flags of the others."""

    real: int
    function: _Flags
    loop: _Flags

    def flags(self, kind: int) -> _Flags:
        """Return the flags for a kind of jump at this place."""
        return self.function if kind == RET else self.loop

    @property
    def staged(self) -> _ExitTarget:
        """Return the same place inside a staged statement, where no jump may remain Python."""
        return self._replace(real=0)


class Exits:
    """The pass over one function, in place; functions in it are lowered separately."""

    def __init__(
        self,
        scope: Scope,
        assignment: Assignment,
        structure: Structure,
        fresh: FreshNames,
        role_of: RoleOf,
        filename: str,
    ) -> None:
        self.scope = scope
        self.effects = assignment.effects
        self.structure = structure
        self.fresh = fresh
        self.role_of = role_of
        self.filename = filename
        self.known: dict[ast.stmt, _Jumps] = {}
        self.setters: list[tuple[_Flags, int, ast.stmt]] = []
        self.retval: str | None = None

    def run(self) -> None:
        """Lower the function of the scope."""
        node = self.scope.node
        assert isinstance(node, ast.FunctionDef)
        jumps = self.block_jumps(node.body)
        lowered = bool(jumps.crossing & RET)
        body = node.body
        if lowered and _returns_values(body):
            self.retval = self.fresh.single(RETURN_VALUE)
            self.scope.add(self.retval)
            if jumps.falls:
                end = At.node(body[-1]).put(ast.Return(None))
                self.effects[end] = Effect()
                body = [*body, end]
        flags = _Flags(node.lineno)
        body = self.block(body, _ExitTarget(RET, flags, _Flags(node.lineno)))
        if self.retval is not None and not isinstance(body[-1], ast.Return | ast.Raise):
            bit = self.scope.mask([self.retval])
            end = At.node(body[-1]).put(ast.Return(At.node(body[-1]).load(self.retval)))
            self.effects[end] = Effect(reads=bit, mentions=bit)
            body.append(end)
        unused = {statement for flags, kind, statement in self.setters if not flags.used & kind}
        if unused:
            body = _without(body, unused)
        if flags.used:
            at = At(node.lineno, node.col_offset, node.lineno, node.col_offset + len("def"))
            top = 1 if has_docstring(body) else 0
            while isinstance(body[top], ast.Global | ast.Nonlocal):
                top += 1
            body.insert(top, self.set_flag(flags, RET, False, at))
        node.body = body

    # Analysis ------------------------------------------------------------------------------

    def block_jumps(self, body: list[ast.stmt]) -> _Jumps:
        """Return the jumps of a block; unreachable ones are left out."""
        escaping = crossing = 0
        for statement in body:
            jumps = self.jumps(statement)
            escaping |= jumps.escaping
            crossing |= jumps.crossing
            if not jumps.falls:
                return _Jumps(escaping, crossing, False)
        return _Jumps(escaping, crossing, True)

    def jumps(self, node: ast.stmt) -> _Jumps:
        """Return the jumps of a statement, analysed once."""
        known = self.known.get(node)
        if known is None:
            known = self.known[node] = self.analyse(node)
        return known

    def analyse(self, node: ast.stmt) -> _Jumps:
        match node:
            case ast.Return():
                return _Jumps(RET, 0, False)
            case ast.Break():
                return _Jumps(BRK, 0, False)
            case ast.Continue():
                return _Jumps(CONT, 0, False)
            case ast.Raise():
                return _Jumps(0, 0, False)
            case ast.If():
                return self.analyse_if(node)
            case ast.For() | ast.While():
                return self.analyse_loop(node)
            case ast.With():
                # The manager may swallow an exception.
                return self.block_jumps(node.body)._replace(falls=True)
            case ast.Try():
                return self.analyse_try(node)
            case ast.Match():
                cases = [self.block_jumps(case.body) for case in node.cases]
                falls = any(c.falls for c in cases) or not any(map(irrefutable, node.cases))
                return _union(cases, falls)
        return _Jumps()

    def analyse_if(self, node: ast.If) -> _Jumps:
        then, orelse = self.block_jumps(node.body), self.block_jumps(node.orelse)
        falls = then.falls or orelse.falls
        constant = truth(node.test)
        if constant is not None:
            falls = then.falls if constant else orelse.falls
        jumps = _union([then, orelse], falls)
        if is_static_test(node.test, self.role_of):
            self.structure.plain.add(node)
            return jumps
        return jumps._replace(crossing=jumps.escaping)

    def analyse_loop(self, node: Loop) -> _Jumps:
        endless = isinstance(node, ast.While) and truth(node.test) is True
        if endless:
            node.orelse = []  # never reached
        body, orelse = self.block_jumps(node.body), self.block_jumps(node.orelse)
        escaping = body.escaping & RET | orelse.escaping
        falls = bool(body.escaping & BRK) or (orelse.falls and not endless)
        if self.is_static(node) and not body.crossing:
            return _Jumps(escaping, orelse.crossing, falls)
        return _Jumps(escaping, escaping, falls)

    def is_static(self, node: Loop) -> bool:
        if isinstance(node, ast.While):
            if truth(node.test) is True and not self.block_jumps(node.body).escaping:
                return False  # endless: the callback notices
            return is_static_test(node.test, self.role_of)
        return is_static_iterable(node.iter, self.role_of)

    def analyse_try(self, node: ast.Try) -> _Jumps:
        body, orelse = self.block_jumps(node.body), self.block_jumps(node.orelse)
        handlers = [self.block_jumps(handler.body) for handler in node.handlers]
        final = self.block_jumps(node.finalbody)
        falls = (body.falls and orelse.falls) or any(handler.falls for handler in handlers)
        return _union([body, orelse, *handlers, final], falls and final.falls)

    # Lowering ------------------------------------------------------------------------------

    def lowered(self, jumps: _Jumps, place: _ExitTarget) -> int:
        """Return the jumps that cannot remain Python at a place."""
        return jumps.crossing | jumps.escaping & ~place.real

    def block(self, todo: list[ast.stmt], place: _ExitTarget) -> list[ast.stmt]:
        done: list[ast.stmt] = []
        next_ = 0
        while next_ < len(todo):
            node = todo[next_]
            next_ += 1
            jumps = self.jumps(node)
            lowered = self.lowered(jumps, place)
            falls = jumps.falls
            match node:
                case ast.Return() | ast.Break() | ast.Continue():
                    return done + (self.jump(node, place) if lowered else [node])
                case ast.For() | ast.While():
                    before, after, lowered = self.loop(node, place)
                    done += before
                    todo, next_ = after + (todo[next_:] if falls else []), 0
                    falls = True
                case ast.If():
                    if lowered and self.take_rest(node, todo[next_:]):
                        next_ = len(todo)
                    inner = place if node in self.structure.plain else place.staged
                    node.body = self.block(node.body, inner) or [At.node(node).put(ast.Pass())]
                    node.orelse = self.block(node.orelse, inner)
                    done.append(node)
                case _:
                    self.inside(node, place)
                    done.append(node)
            if not falls:
                break
            if lowered and next_ < len(todo):
                done.append(self.guarded(todo[next_:], lowered, place, At.header(node)))
                break
        return done

    def take_rest(self, node: ast.If, rest: list[ast.stmt]) -> bool:
        """Move the statements after a branch into the arm that goes on, if only one does."""
        then, orelse = self.block_jumps(node.body), self.block_jumps(node.orelse)
        if then.falls and orelse.falls:
            return False
        if then.falls:
            node.body = node.body + rest
        elif orelse.falls:
            node.orelse = node.orelse + rest
        return True

    def guarded(self, rest: list[ast.stmt], kinds: int, place: _ExitTarget, at: At) -> ast.stmt:
        """Return `if not flags: rest`."""
        node = at.put(ast.If(self.not_flags(kinds, place, at), rest, []))
        node.body = self.block(rest, place.staged)
        return node

    def not_flags(self, kinds: int, place: _ExitTarget, at: At) -> ast.expr:
        names = [self.flag(place.flags(kind), kind) for kind in (RET, BRK, CONT) if kinds & kind]
        for kind in (RET, BRK, CONT):
            place.flags(kind).used |= kinds & kind
        flags = [at.load(name) for name in names]
        any_flag = flags[0] if len(flags) == 1 else at.put(ast.BoolOp(ast.Or(), flags))
        test = at.put(ast.UnaryOp(ast.Not(), any_flag))
        bits = self.scope.mask(names)
        self.effects[test] = Effect(reads=bits, mentions=bits)
        return test

    def jump(
        self, node: ast.Return | ast.Break | ast.Continue, place: _ExitTarget
    ) -> list[ast.stmt]:
        at = At.node(node)
        kind = {ast.Return: RET, ast.Break: BRK, ast.Continue: CONT}[type(node)]
        result: list[ast.stmt] = []
        if isinstance(node, ast.Return) and self.retval is not None:
            value = at.const(None) if node.value is None else node.value
            assign = at.assign(self.retval, value)
            bit = self.scope.mask([self.retval])
            effect = self.effects[node]
            self.effects[assign] = effect._replace(
                writes=effect.writes | bit,
                may=effect.may | bit,
                binds=effect.binds | bit,
                mentions=effect.mentions | bit,
            )
            result.append(assign)
        setter = self.set_flag(place.flags(kind), kind, True, at)
        self.setters.append((place.flags(kind), kind, setter))
        return [*result, setter]

    def loop(self, node: Loop, place: _ExitTarget) -> tuple[list[ast.stmt], list[ast.stmt], int]:
        """Lower a loop; return it, the rest of its `else`, and the flags that guard all that
        follows.
        """
        body, orelse = self.block_jumps(node.body), self.block_jumps(node.orelse)
        returns = body.escaping & RET
        if self.is_static(node) and not body.crossing and not returns & ~place.real:
            self.structure.plain.add(node)
            inner = place._replace(real=place.real & RET | BRK | CONT)
            node.body = self.block(node.body, inner)
            node.orelse = self.block(node.orelse, place)
            return [node], [], self.lowered(orelse, place)
        at = At.header(node)
        flags = _Flags(node.lineno)
        lowered = self.block(node.body, _ExitTarget(0, place.function, flags))
        before: list[ast.stmt] = []
        exits: list[str] = []
        after = node.orelse
        if flags.used & CONT:
            lowered.insert(0, self.set_flag(flags, CONT, False, at))
        if body.escaping & BRK:
            flags.used |= BRK
            exits.append(self.flag(flags, BRK))
            before.append(self.set_flag(flags, BRK, False, at))
            if after:
                outer = _ExitTarget(0, place.function, flags)
                test = self.not_flags(BRK, outer, at)
                after = [at.put(ast.If(test, after, []))]
        if returns:
            place.function.used |= RET
            exits.append(self.flag(place.function, RET))
        node.body, node.orelse = lowered, []
        self.structure.exits[node] = tuple(exits)
        return [*before, node], after, returns

    def inside(self, node: ast.stmt, place: _ExitTarget) -> None:
        """Lower the blocks of a statement that remains Python."""
        match node:
            case ast.With():
                node.body = self.block(node.body, place)
            case ast.Match():
                for case in node.cases:
                    case.body = self.block(case.body, place)
            case ast.Try():
                if self.lowered(self.block_jumps(node.finalbody), place):
                    raise self.jump_in_finally(node)
                skipped = self.lowered(self.block_jumps(node.body), place)
                node.body = self.block(node.body, place)
                if skipped and node.orelse:
                    at = At.header(node)
                    node.orelse = [self.guarded(node.orelse, skipped, place, at)]
                else:
                    node.orelse = self.block(node.orelse, place)
                for handler in node.handlers:
                    handler.body = self.block(handler.body, place)
                    if skipped and _may_fail_after_jump(node.body):
                        handler.body[:0] = self.cancelled(skipped, place, At.header(node))
                node.finalbody = self.block(node.finalbody, place)

    def cancelled(self, kinds: int, place: _ExitTarget, at: At) -> list[ast.stmt]:
        """Return the resets of flags where an exception, in a `finally` say, cancels the jump."""
        result: list[ast.stmt] = []
        for kind in (RET, BRK, CONT):
            if kinds & kind:
                setter = self.set_flag(place.flags(kind), kind, False, at)
                self.setters.append((place.flags(kind), kind, setter))
                result.append(setter)
        return result

    def jump_in_finally(self, node: ast.Try) -> Exception:
        for statement in node.finalbody:
            for inner in walk(statement):
                keyword = _KEYWORDS.get(type(inner))
                if keyword is not None:
                    return unsupported(
                        self.filename,
                        inner,
                        f"'{keyword}' in a 'finally' block cannot be compiled in staged control "
                        "flow",
                        f"it would discard exceptions: move the '{keyword}' after the 'try'",
                    )
        raise AssertionError("a jump was counted that is not there")

    # Flags ---------------------------------------------------------------------------------

    def flag(self, flags: _Flags, kind: int) -> str:
        name = flags.names.get(kind)
        if name is None:
            if kind == RET:
                name = self.fresh.single(RETURNED)
            else:
                name = self.fresh.variable(_KIND_NAMES[kind], flags.line)
            flags.names[kind] = name
            self.scope.add(name)
        return name

    def set_flag(self, flags: _Flags, kind: int, value: bool, at: At) -> ast.stmt:
        name = self.flag(flags, kind)
        node = at.assign(name, at.const(value))
        bit = self.scope.mask([name])
        self.effects[node] = Effect(writes=bit, may=bit, binds=bit, mentions=bit)
        self.structure.setters.add(node)
        return node


def _may_fail_after_jump(body: list[ast.stmt]) -> bool:
    return any(
        isinstance(node, ast.With) or (isinstance(node, ast.Try) and node.finalbody)
        for statement in body
        for node in walk(statement)
    )


def _union(parts: list[_Jumps], falls: bool) -> _Jumps:
    escaping = crossing = 0
    for part in parts:
        escaping |= part.escaping
        crossing |= part.crossing
    return _Jumps(escaping, crossing, falls)


def _returns_values(body: list[ast.stmt]) -> bool:
    """Return True if any `return` of a function (not of those in it) gives something but None."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            continue
        if isinstance(node, ast.Return):
            value = node.value
            if value is not None and not (isinstance(value, ast.Constant) and value.value is None):
                return True
        elif any(_returns_values(inner) for inner in blocks(node)):
            return True
    return False


def _without(body: list[ast.stmt], unused: set[ast.stmt]) -> list[ast.stmt]:
    kept = [node for node in body if node not in unused]
    for node in kept:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef):
            for inner in blocks(node):
                inner[:] = _without(inner, unused)
    return kept or [At.node(body[0]).put(ast.Pass())]
