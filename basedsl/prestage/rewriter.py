"""The passes in their order, and the public entry: `stage_function`.

A pass is a name and a function that rewrites the tree of a `Unit` in place; analyses run between
them and leave their facts in the unit. Rewritings are kept per code object.
"""

from __future__ import annotations

import ast
import itertools
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from types import CodeType, FunctionType, MethodType
from typing import NamedTuple

from basedsl.errors import TOO_DEEP, DSLSyntaxError
from basedsl.location import Span
from basedsl.prestage.assignment import Assignment, analyse_assignment
from basedsl.prestage.callbacks import RUNTIME, ControlFlowCallbacks
from basedsl.prestage.comprehensions import separate_comprehensions
from basedsl.prestage.control_flow import ControlFlowPass
from basedsl.prestage.desugar import desugar
from basedsl.prestage.exits import Exits, Structure
from basedsl.prestage.expressions import Expressions, tested_conditions
from basedsl.prestage.liveness import analyse_liveness
from basedsl.prestage.mangle import mangle
from basedsl.prestage.nodes import FreshNames, FunctionNode, identifiers, walk
from basedsl.prestage.recompile import compile_tree, make_function, readable
from basedsl.prestage.resolve import Resolver, Role, dotted_name
from basedsl.prestage.scopes import Scopes, analyse_scopes
from basedsl.prestage.source import FunctionSource, find_source
from basedsl.prestage.unsupported import check_supported
from basedsl.recursion_limit import deeper


class PassDiff(NamedTuple):
    """The change that one pass made, as a text difference."""

    name: str
    before: str
    after: str

    def __str__(self) -> str:
        import difflib  # only whoever prints a change needs it

        lines = difflib.unified_diff(
            self.before.splitlines(), self.after.splitlines(), "before", self.name, lineterm=""
        )
        return "\n".join(lines)


@dataclass(eq=False, repr=False)
class Unit:
    """A function while it is rewritten: its tree and the facts known about it."""

    source: FunctionSource
    resolver: Resolver
    tree: FunctionNode
    #: The nodes of the user's tree, collected once for the first passes.
    nodes: list[ast.AST]
    fresh: FreshNames
    captured: tuple[str, ...] = ()
    scopes: Scopes = field(default_factory=lambda: Scopes({}, {}))
    assignment: Assignment = field(default_factory=Assignment)
    structure: Structure = field(default_factory=Structure)
    generated: set[ast.FunctionDef] = field(default_factory=set)
    #: The `and` and `or` of which only the truth is asked.
    tested: set[ast.BoolOp] = field(default_factory=set)

    def role_of(self, callee: ast.expr) -> Role | None:
        """Return the role of a callee; None if it is local or no dotted name."""
        found = dotted_name(callee)
        if found is None or found[0] in self.scopes.owner or found[0].id == RUNTIME:
            return None
        return self.resolver.role(found[1])


def _check_unit(unit: Unit) -> None:
    check_supported(unit.nodes, unit.source.filename)


def _mangle(unit: Unit) -> None:
    mangle(unit.tree, unit.nodes, unit.source.class_name)


def _desugar(unit: Unit) -> None:
    unit.tested = tested_conditions(unit.nodes)
    desugar(unit.tree, unit.nodes, unit.fresh, unit.resolver)
    unit.scopes = analyse_scopes(unit.tree)
    if separate_comprehensions(unit.scopes, unit.captured, unit.fresh):
        unit.scopes = analyse_scopes(unit.tree)
    unit.assignment = analyse_assignment(unit.scopes)


def _exits(unit: Unit) -> None:
    for scope in unit.scopes.functions():
        Exits(
            scope,
            unit.assignment,
            unit.structure,
            unit.fresh,
            unit.role_of,
            unit.source.filename,
        ).run()


def _control_flow(unit: Unit) -> None:
    for scope in unit.scopes.functions():
        sharing, dead = analyse_liveness(scope, unit.assignment, unit.structure)
        ControlFlowPass(
            scope, unit.assignment, unit.structure, sharing, dead, unit.fresh, unit.generated
        ).run()


def _expressions(unit: Unit) -> None:
    Expressions(
        unit.scopes, unit.assignment, unit.fresh, unit.role_of, unit.generated, unit.tested
    ).run(unit.tree)


PASSES: tuple[tuple[str, Callable[[Unit], None]], ...] = (
    ("check", _check_unit),
    ("mangle", _mangle),
    ("desugar", _desugar),
    ("exits", _exits),
    ("control_flow", _control_flow),
    ("expressions", _expressions),
)


class _Rewriting(NamedTuple):
    """The cached result for one code object."""

    code: CodeType
    tree: FunctionNode
    answers: dict[str, Role]


def _rewrite(
    fn: FunctionType, resolver: Resolver, watch: Callable[[str, FunctionNode], None] | None = None
) -> tuple[FunctionNode, frozenset[str]]:
    source = find_source(fn)
    nodes = walk(source.node)
    taken = identifiers(nodes).union(fn.__code__.co_freevars, [RUNTIME])
    captured = fn.__code__.co_freevars
    unit = Unit(source, resolver, source.node, nodes, FreshNames(taken), captured)
    for name, run in PASSES:
        run(unit)
        if watch is not None:
            watch(name, unit.tree)
    return unit.tree, frozenset(node.name for node in unit.generated)


class StagedFunction:
    """A function and its rewriting; `bind` makes it callable."""

    def __init__(self, original: FunctionType, rewriting: _Rewriting) -> None:
        self.original = original
        self._rewriting = rewriting

    def bind(self, runtime: ControlFlowCallbacks) -> FunctionType:
        """Return a new function in place of the original, whose `__dsl__` is `runtime`."""
        return make_function(self._rewriting.code, self.original, runtime)

    @cached_property
    def source(self) -> str:
        """Return the rewritten function as Python text, for reading."""
        with deeper():
            return readable(self._rewriting.tree)

    @property
    def tree(self) -> ast.AST:
        """The syntax tree of the rewritten function; its nodes have the lines of the user's."""
        return self._rewriting.tree

    @cached_property
    def diffs(self) -> tuple[PassDiff, ...]:
        """Return the change of each pass, in order. The passes are run again for this."""
        texts = [("source", readable(find_source(self.original).node))]
        resolver = Resolver(self.original)
        _rewrite(self.original, resolver, lambda name, tree: texts.append((name, readable(tree))))
        return tuple(
            PassDiff(name, before, after)
            for (_, before), (name, after) in itertools.pairwise(texts)
        )


_rewritings: dict[int, tuple[weakref.ref[CodeType], _Rewriting]] = {}


def stage_function(fn: FunctionType) -> StagedFunction:
    """Rewrite a Python function (of a method, its function) for staged execution.

    Raises `DSLSyntaxError` if the source cannot be found or has a construct that cannot be
    compiled. The function itself is not changed.
    """
    if isinstance(fn, MethodType):
        raise TypeError("stage the function of a method: method.__func__")
    if not isinstance(fn, FunctionType):
        raise TypeError(f"not a Python function: {fn!r}")
    code = fn.__code__
    resolver = Resolver(fn)
    known = _rewritings.get(id(code))
    if known is not None and known[0]() is code and resolver.agrees(known[1].answers):
        return StagedFunction(fn, known[1])
    try:
        with deeper():
            tree, generated = _rewrite(fn, resolver)
            new = compile_tree(tree, code, generated)
    except RecursionError:
        raise DSLSyntaxError(
            f"{code.co_name!r} is nested too deeply to be compiled",
            Span(code.co_filename, code.co_firstlineno),
            TOO_DEEP,
        ) from None
    rewriting = _Rewriting(new, tree, resolver.answers)
    key = id(code)
    _rewritings[key] = (weakref.ref(code, lambda _: _forget(key)), rewriting)
    return StagedFunction(fn, rewriting)


def _forget(key: int) -> None:
    entry = _rewritings.get(key)
    if entry is not None and entry[0]() is None:
        del _rewritings[key]
