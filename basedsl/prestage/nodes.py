"""Small tools on Python syntax trees: walking, cloning, building nodes that have a location.

Every synthetic node carries the location of the construct it came from. Nothing here knows why the
rewriter changes a tree.
"""

from __future__ import annotations

import ast
import linecache
import sys
from collections.abc import Iterable, Iterator
from typing import Any, TypeVar

from basedsl.errors import DSLSyntaxError
from basedsl.location import Span
from basedsl.prestage.callbacks import RUNTIME

Node = TypeVar("Node", bound=ast.AST)
FunctionNode = ast.FunctionDef | ast.Lambda
Loop = ast.For | ast.While

_LEAF_FIELDS = frozenset(
    "ctx op ops id attr kind type_comment level module simple conversion asname is_async rest "
    "kwd_attrs arg".split()
)
_NAMELESS = (ast.Constant, ast.Attribute, ast.Call, ast.BinOp, ast.Assign, ast.Expr)
LOAD = ast.Load()
STORE = ast.Store()


def _child_fields(kind: type[ast.AST]) -> tuple[str, ...]:
    if kind is ast.Constant:
        return ()
    return tuple(field for field in kind._fields if field not in _LEAF_FIELDS)


class _ChildFields(dict[type[ast.AST], tuple[str, ...]]):
    def __missing__(self, kind: type[ast.AST]) -> tuple[str, ...]:
        fields = self[kind] = _child_fields(kind)
        return fields


#: The fields of a node type that may hold nodes (contexts and operators left out).
CHILD_FIELDS = _ChildFields()


def children(node: ast.AST) -> Iterator[ast.AST]:
    """Return the direct child nodes, in field order."""
    for field in CHILD_FIELDS[type(node)]:
        value = getattr(node, field, None)
        if isinstance(value, list):
            for item in value:
                if isinstance(item, ast.AST):
                    yield item
        elif isinstance(value, ast.AST):
            yield value


def walk(root: ast.AST) -> list[ast.AST]:
    """Return all nodes below and including `root`, in no particular order."""
    found: list[ast.AST] = [root]
    for node in found:
        for field in CHILD_FIELDS[type(node)]:
            value = getattr(node, field, None)
            if value.__class__ is list:
                found += [item for item in value if isinstance(item, ast.AST)]
            elif isinstance(value, ast.AST):
                found.append(value)
    return found


def clone(node: Node) -> Node:
    """Return a deep copy; contexts and operators, which have no identity, are shared."""
    new: Node = node.__class__.__new__(node.__class__)
    attributes = new.__dict__
    attributes.update(node.__dict__)
    for field in CHILD_FIELDS[node.__class__]:
        value = attributes.get(field)
        if value.__class__ is list:
            attributes[field] = [
                clone(item) if isinstance(item, ast.AST) else item for item in value
            ]
        elif isinstance(value, ast.AST):
            attributes[field] = clone(value)
    return new


def identifiers(nodes: Iterable[ast.AST]) -> set[str]:
    """Return every variable name (and attribute-like name) that occurs in nodes."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Name):
            found.add(node.id)
        elif not isinstance(node, _NAMELESS):
            attributes = node.__dict__
            for key in ("name", "arg", "rest", "asname"):
                value = attributes.get(key)
                if isinstance(value, str):
                    found.add(value.split(".")[0])
    return found


def blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Return the statement lists directly inside a statement (those of handlers and cases
    included).
    """
    for field in ("body", "orelse", "finalbody"):
        value = getattr(node, field, None)
        if isinstance(value, list) and value:
            yield value
    for part in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
        yield part.body


def has_walrus(node: ast.AST) -> bool:
    """Return True if evaluating an expression assigns variables of its function."""
    if isinstance(node, ast.NamedExpr):
        return True
    if isinstance(node, ast.Lambda):
        return any(has_walrus(d) for d in (*node.args.defaults, *node.args.kw_defaults) if d)
    return any(has_walrus(child) for child in children(node))


def parameters(args: ast.arguments) -> list[ast.arg]:
    """Return all parameters in the order of `co_varnames`."""
    found = [*args.posonlyargs, *args.args, *args.kwonlyargs]
    return found + [extra for extra in (args.vararg, args.kwarg) if extra is not None]


def has_docstring(body: list[ast.stmt]) -> bool:
    """Return True if a function body starts with a docstring."""
    return bool(
        body
        and isinstance(body[0], ast.Expr)
        and isinstance(body[0].value, ast.Constant)
        and isinstance(body[0].value.value, str)
    )


def span(filename: str, node: Any) -> Span:
    """Return the place of a node in the user's file (trees count UTF-8 bytes, spans characters)."""
    start = linecache.getline(filename, node.lineno).encode()[: node.col_offset]
    end = linecache.getline(filename, node.end_lineno).encode()[: node.end_col_offset]
    return Span(
        filename,
        node.lineno,
        len(start.decode(errors="ignore")) if start else node.col_offset,
        node.end_lineno,
        len(end.decode(errors="ignore")) if end else node.end_col_offset,
    )


def unsupported(filename: str, node: Any, message: str, hint: str | None = None) -> DSLSyntaxError:
    """Return the error for a construct that cannot be staged."""
    return DSLSyntaxError(message, span(filename, node), hint)


class At:
    """Builds nodes at one place of the user's source. Its attributes are a node's."""

    def __init__(self, lineno: int, col_offset: int, end_lineno: int, end_col_offset: int) -> None:
        self.lineno = lineno
        self.col_offset = col_offset
        self.end_lineno = end_lineno
        self.end_col_offset = end_col_offset

    @classmethod
    def node(cls, node: Any) -> At:
        """Make a builder at the place of a node."""
        return cls(
            node.lineno,
            node.col_offset,
            node.end_lineno or node.lineno,
            node.end_col_offset or node.col_offset,
        )

    @classmethod
    def header(cls, node: ast.stmt) -> At:
        """Make a builder at the place of a compound statement without its blocks."""
        last: Any = node
        if isinstance(node, ast.If | ast.While):
            last = node.test
        elif isinstance(node, ast.For):
            last = node.iter
        elif isinstance(node, ast.With):
            item = node.items[-1]
            last = item.optional_vars or item.context_expr
        elif isinstance(node, ast.Match):
            last = node.subject
        elif isinstance(node, ast.Try):
            return cls(node.lineno, node.col_offset, node.lineno, node.col_offset + len("try"))
        return cls(
            node.lineno,
            node.col_offset,
            last.end_lineno or node.lineno,
            last.end_col_offset or node.col_offset,
        )

    def put(self, node: Node) -> Node:
        """Give a new node this place."""
        node.__dict__.update(self.__dict__)
        return node

    def load(self, name: str) -> ast.expr:
        return self.put(ast.Name(name, LOAD))

    def store(self, name: str) -> ast.expr:
        return self.put(ast.Name(name, STORE))

    def const(self, value: Any) -> ast.expr:
        return self.put(ast.Constant(value))

    def names(self, names: Iterable[str]) -> ast.expr:
        """Return a tuple of strings."""
        return self.put(ast.Tuple([self.const(name) for name in names], LOAD))

    def callback(
        self, name: str, args: list[ast.expr], keywords: dict[str, ast.expr] | None = None
    ) -> ast.Call:
        """Return `__dsl__.name(args)`."""
        return self.put(
            ast.Call(
                self.put(ast.Attribute(self.load(RUNTIME), name, LOAD)),
                args,
                [self.put(ast.keyword(key, value)) for key, value in (keywords or {}).items()],
            )
        )

    def thunk(self, value: ast.expr) -> ast.Lambda:
        """Return `lambda: value`."""
        return self.put(ast.Lambda(_no_arguments(), value))

    def assign(self, name: str, value: ast.expr) -> ast.Assign:
        return self.put(ast.Assign([self.store(name)], value))

    def expr(self, value: ast.expr) -> ast.Expr:
        return self.put(ast.Expr(value))

    def declare(self, name: str) -> ast.stmt:
        """Return `name: ...`, which makes the name a local variable and binds nothing."""
        target = self.put(ast.Name(name, STORE))
        return self.put(ast.AnnAssign(target, self.const(...), None, 1))

    def function(self, name: str, params: list[str], body: list[ast.stmt]) -> ast.FunctionDef:
        """Return `def name(params): body`."""
        args = _no_arguments()
        args.args = [self.put(ast.arg(param)) for param in params]
        node = ast.FunctionDef(name, args, body or [self.put(ast.Pass())], [])
        if sys.version_info >= (3, 12):
            node.type_params = []
        return self.put(node)


def _no_arguments() -> ast.arguments:
    return ast.arguments(
        posonlyargs=[], args=[], vararg=None, kwonlyargs=[], kw_defaults=[], kwarg=None, defaults=[]
    )


class FreshNames:
    """Makes names that occur nowhere in the function: readable, with the line they belong to."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = taken

    def function(self, kind: str, line: int) -> str:
        """Return a name for a generated function, like `for_body_12`."""
        return self._unique(f"{kind}_{line}", "")

    def variable(self, kind: str, line: int) -> str:
        """Return a name for a compiler variable, like `__brk_12__` (Python never mangles such
        names).
        """
        return self._unique(f"__{kind}_{line}", "__")

    def single(self, name: str) -> str:
        """Return `name` itself, or a variation if the user took it."""
        if name in self._taken:
            return self._unique(name.rstrip("_"), "__")
        self._taken.add(name)
        return name

    def _unique(self, stem: str, suffix: str) -> str:
        name, count = stem + suffix, 1
        while name in self._taken:
            count += 1
            name = f"{stem}_{count}{suffix}"
        self._taken.add(name)
        return name
