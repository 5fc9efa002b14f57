"""Pass `control_flow`: staged statements become nested functions and a callback.

    if c: x = 1                 def if_then_1():
    else: x = 2                     nonlocal x
                                    x = 1
                                def if_else_1():
                                    nonlocal x
                                    x = 2
                                __dsl__.if_(c, if_then_1, if_else_1, ('x',), ())

A variable is `nonlocal` in a body if it is carried (`names`) or live where the body starts; any
other variable is simply local to the body. Where a variable is bound by nested functions only, the
function that owns it declares it by `x: ...`. Expressions are left to the pass `expressions`.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from basedsl.prestage.assignment import Assignment, Effect
from basedsl.prestage.exits import Structure
from basedsl.prestage.liveness import Sharing
from basedsl.prestage.nodes import (
    At,
    FreshNames,
    blocks,
    has_docstring,
    has_walrus,
    identifiers,
    parameters,
    walk,
)
from basedsl.prestage.scopes import Scope

_NOTHING = Effect()


@dataclass(eq=False, repr=False)
class _WrittenFunction:
    """A function being written: the user's or a generated one. Sets are bit masks."""

    generated: bool
    mentioned: int = 0
    #: Bound by a statement directly in this function.
    bound: int = 0
    #: Assigned here or by a function inside.
    assigned: int = 0


class ControlFlowPass:
    """The pass over one function, in place; functions in it are rewritten separately."""

    def __init__(
        self,
        scope: Scope,
        assignment: Assignment,
        structure: Structure,
        sharing: dict[ast.stmt, Sharing],
        dead: set[ast.stmt],
        fresh: FreshNames,
        generated: set[ast.FunctionDef],
    ) -> None:
        self.scope = scope
        self.effects = assignment.effects
        self.structure = structure
        self.sharing = sharing
        self.dead = dead
        self.fresh = fresh
        self.generated = generated
        self.outer = scope.globals | (scope.nonlocals - scope.foreign.keys())

    def run(self) -> None:
        """Rewrite the function of the scope."""
        node = self.scope.node
        assert isinstance(node, ast.FunctionDef)
        frame = _WrittenFunction(generated=False)
        frame.bound = self.scope.mask(arg.arg for arg in parameters(node.args))
        frame.bound |= self.scope.mask(self.scope.foreign)
        body = self.block(node.body, frame)
        top = 1 if has_docstring(body) else 0
        while top < len(body) and isinstance(body[top], ast.Global | ast.Nonlocal):
            top += 1
        at = At(node.lineno, node.col_offset, node.lineno, node.col_offset + len("def"))
        unbound = self.scope.names(frame.mentioned & ~frame.bound)
        body[top:top] = [at.declare(name) for name in unbound]
        node.body = body

    def block(self, body: list[ast.stmt], frame: _WrittenFunction) -> list[ast.stmt]:
        result: list[ast.stmt] = []
        for node in body:
            if node not in self.dead:
                self.statement(node, frame, result)
        return result

    def note(self, node: ast.AST, frame: _WrittenFunction) -> Effect:
        """Count the effects of a statement or header as those of `frame` itself."""
        effect = self.effects.get(node, _NOTHING)
        frame.mentioned |= effect.mentions
        frame.bound |= effect.binds
        frame.assigned |= effect.binds
        return effect

    def note_thunk(self, node: ast.AST, frame: _WrittenFunction) -> Effect:
        """Count the effects of an expression that a function inside of `frame` evaluates."""
        effect = self.effects.get(node, _NOTHING)
        frame.mentioned |= effect.mentions
        frame.assigned |= effect.binds
        return effect

    def statement(self, node: ast.stmt, frame: _WrittenFunction, out: list[ast.stmt]) -> None:
        match node:
            case ast.If() if node not in self.structure.plain:
                self.if_(node, frame, out)
                return
            case ast.For() if node not in self.structure.plain:
                self.for_(node, frame, out)
                return
            case ast.While() if node not in self.structure.plain:
                self.while_(node, frame, out)
                return
            case ast.If() | ast.While():
                self.note(node.test, frame)
                self.inside(node, frame)
            case ast.For():
                self.note(node.iter, frame)
                self.note(node.target, frame)
                self.inside(node, frame)
            case ast.With():
                self.note(node, frame)
                for item in node.items:
                    at = At.node(item.context_expr)
                    item.context_expr = at.callback("with_", [item.context_expr])
                self.inside(node, frame)
            case ast.Try():
                for handler in node.handlers:
                    self.note(handler, frame)
                self.inside(node, frame)
                at = At.header(node)
                guard = ast.withitem(at.callback("static_only", [at.const("try")]), None)
                out.append(at.put(ast.With([guard], [node])))
                return
            case ast.Match():
                self.note(node, frame)
                for case in node.cases:
                    self.note(case, frame)
                self.inside(node, frame)
            case ast.Raise() if frame.generated and node.exc is not None:
                self.raise_(node, frame, out)
                return
            case ast.Assert():
                self.assertion(node, frame, out)
                return
            case ast.AnnAssign(value=None):
                self.note(node, frame)
                return
            case _:
                self.note(node, frame)
        out.append(node)

    def inside(self, node: ast.stmt, frame: _WrittenFunction) -> None:
        """Rewrite the blocks of a statement that remains Python."""
        for body in blocks(node):
            body[:] = self.block(body, frame) or [At.node(body[0]).put(ast.Pass())]

    # Staged statements -----------------------------------------------------------------------

    def if_(self, node: ast.If, frame: _WrittenFunction, out: list[ast.stmt]) -> None:
        at = At.header(node)
        self.note(node.test, frame)
        sharing = self.sharing[node]
        names = sharing.names
        then = self.function("if_then", at, [], node.body, names, sharing.live_in, frame)
        out.append(then)
        orelse = at.const(None)
        if any(not isinstance(statement, ast.Pass) for statement in node.orelse):
            live = sharing.live_in_else
            function = self.function("if_else", at, [], node.orelse, names, live, frame)
            out.append(function)
            orelse = at.load(function.name)
        args = [node.test, at.load(then.name), orelse, *self.carried(at, sharing)]
        out.append(at.expr(at.callback("if_", args)))

    def for_(self, node: ast.For, frame: _WrittenFunction, out: list[ast.stmt]) -> None:
        at = At.header(node)
        self.note(node.iter, frame)
        sharing = self.sharing[node]
        target, body = node.target, node.body
        binds = self.effects[target].binds
        if (
            isinstance(target, ast.Name)
            and target.id in self.scope.index
            and not binds & (sharing.names | sharing.live_in)
        ):
            param, bound = target.id, binds
        else:
            param, bound = self.fresh.variable("item", at.lineno), 0
            place = At.node(target)
            assign = place.put(ast.Assign([target], place.load(param)))
            self.effects[assign] = self.effects[target]
            body = [assign, *body]
        function = self.function(
            "for_body", at, [param], body, sharing.names, sharing.live_in, frame, bound
        )
        out.append(function)
        args = [node.iter, at.load(function.name), *self.carried(at, sharing, node)]
        out.append(at.expr(at.callback("for_", args)))

    def while_(self, node: ast.While, frame: _WrittenFunction, out: list[ast.stmt]) -> None:
        at = At.header(node)
        sharing = self.sharing[node]
        test = self.thunk("while_test", node.test, self.note_thunk(node.test, frame), out)
        body = self.function("while_body", at, [], node.body, sharing.names, sharing.live_in, frame)
        out.append(body)
        args = [test, at.load(body.name), *self.carried(at, sharing, node)]
        out.append(at.expr(at.callback("while_", args)))

    def carried(
        self, at: At, sharing: Sharing, loop: ast.For | ast.While | None = None
    ) -> list[ast.expr]:
        """Return the trailing arguments of a callback: `names`, `undef_ok` and a loop's `exits`."""
        found = [
            at.names(self.scope.names(sharing.names)),
            at.names(self.scope.names(sharing.undef_ok)),
        ]
        if loop is not None:
            found.append(at.names(self.structure.exits[loop]))
        return found

    def function(
        self,
        kind: str,
        at: At,
        params: list[str],
        body: list[ast.stmt],
        names: int,
        live: int,
        frame: _WrittenFunction,
        bound: int = 0,
    ) -> ast.FunctionDef:
        """Return the body of a construct as a function; `bound` are variables that are its
        parameters.
        """
        inner = _WrittenFunction(generated=True, bound=bound)
        statements = self.block(body, inner)
        shared = names | live
        assigned = inner.assigned & shared | names
        head = self.outer_declarations(statements, at)
        if assigned:
            head.append(at.put(ast.Nonlocal(list(self.scope.names(assigned)))))
        own = inner.mentioned & ~shared & ~inner.bound
        head += [at.declare(name) for name in self.scope.names(own)]
        frame.mentioned |= inner.mentioned & shared | names
        frame.assigned |= assigned
        node = at.function(self.fresh.function(kind, at.lineno), params, head + statements)
        self.generated.add(node)
        return node

    def outer_declarations(self, body: list[ast.stmt], at: At) -> list[ast.stmt]:
        """Return `global` and `nonlocal` for the user's outer variables that a body may assign."""
        if not self.outer:
            return []
        used = identifiers(node for statement in body for node in walk(statement))
        result: list[ast.stmt] = []
        if names := sorted(used & self.scope.globals):
            result.append(at.put(ast.Global(names)))
        if names := sorted(used & self.scope.nonlocals & self.outer):
            result.append(at.put(ast.Nonlocal(names)))
        return result

    # Statements with thunks ------------------------------------------------------------------

    def thunk(self, kind: str, value: ast.expr, effect: Effect, out: list[ast.stmt]) -> ast.expr:
        """Return a function that evaluates `value`; a `def` if it assigns variables."""
        at = At.node(value)
        if not has_walrus(value):
            return at.thunk(value)
        body: list[ast.stmt] = [at.put(ast.Return(value))]
        head = self.outer_declarations(body, at)
        if effect.binds:
            head.append(at.put(ast.Nonlocal(list(self.scope.names(effect.binds)))))
        function = at.function(self.fresh.function(kind, at.lineno), [], head + body)
        self.generated.add(function)
        out.append(function)
        return at.load(function.name)

    def raise_(self, node: ast.Raise, frame: _WrittenFunction, out: list[ast.stmt]) -> None:
        assert node.exc is not None
        at = At.node(node)
        effect = self.note_thunk(node, frame)
        exception = self.thunk("exception", node.exc, effect, out)
        cause = at.const(None)
        if node.cause is not None:
            cause = self.thunk("cause", node.cause, effect, out)
        out.append(at.expr(at.callback("raise_", [exception, cause])))

    def assertion(self, node: ast.Assert, frame: _WrittenFunction, out: list[ast.stmt]) -> None:
        if not __debug__:  # compiled away, as Python does
            out.append(node)
            return
        at = At.node(node)
        effect = self.note_thunk(node, frame)
        test = self.thunk("assert_test", node.test, effect, out)
        message = at.const(None)
        if node.msg is not None:
            message = self.thunk("assert_message", node.msg, effect, out)
        out.append(at.expr(at.callback("assert_", [test, message])))
