"""The variables a staged construct can read or change, as the interpreter holds them.

The rewritten function shares variables with the bodies of its constructs through closure cells, so
a construct's state is the cells of its bodies and everything reachable from them. `State.capture`
takes a picture of all leaves, `State.restore` writes one back into cells and objects.
"""

from __future__ import annotations

import dis
from collections.abc import Callable, Iterable, Mapping
from types import CellType, CodeType, FunctionType
from typing import Any

from basedsl.errors import DSLNameError
from basedsl.location import Span
from basedsl.tree import (
    UNBOUND,
    Node,
    flatten,
    leaf_paths,
    mutable_objects,
    set_cell,
    unflatten,
)


class Body:
    """What to run on one side of a branch, and the functions whose variables it shares."""

    __slots__ = ("functions", "run")

    def __init__(self, run: Callable[[], Any], functions: Iterable[Any]) -> None:
        self.run = run
        self.functions = tuple(functions)


class MaybeUnbound:
    """What a variable holds after a construct that binds it on some paths only."""

    __dsl_leaf__ = True

    def __init__(self, name: str, path: str, span: Span | None) -> None:
        self.name = name
        self.path = path
        self.span = span

    def error(self) -> DSLNameError:
        return DSLNameError(
            f"'{self.name}' is read here, but it is not bound on every path",
            notes=((f"it is not bound {self.path}", self.span),),
            hint=f"give '{self.name}' a value before this statement",
        )


class Picture:
    """Shape and leaves of each variable at one moment."""

    __slots__ = ("leaves", "nodes")

    def __init__(self, nodes: dict[str, Node | None], leaves: dict[str, list[Any]]) -> None:
        self.nodes = nodes
        self.leaves = leaves

    def copy(self) -> Picture:
        return Picture(dict(self.nodes), {name: list(ls) for name, ls in self.leaves.items()})

    def value(self, name: str) -> Any:
        """The variable itself: the object a node was made from, or the leaf."""
        node = self.nodes[name]
        return self.leaves[name][0] if node is None else node.obj

    def is_unbound(self, name: str) -> bool:
        return self.nodes[name] is None and isinstance(
            self.leaves[name][0], type(UNBOUND) | MaybeUnbound
        )

    def set_unbound(self, name: str) -> None:
        self.nodes[name] = None
        self.leaves[name] = [UNBOUND]

    def objects(self) -> dict[int, Any]:
        """All mutable objects in the picture, by id."""
        return {id(o): o for node in self.nodes.values() for o in mutable_objects(node)}

    def path(self, name: str, index: int) -> str:
        return leaf_paths(self.nodes[name], name)[index]


class State:
    """The cells of some body functions. `names` are those a construct may bind."""

    def __init__(self, bodies: Iterable[Any], names: Iterable[str]) -> None:
        self.cells: dict[str, CellType] = {}
        for body in bodies:
            for function in body.functions if isinstance(body, Body) else (body,):
                if isinstance(function, FunctionType) and function.__closure__:
                    names_of_cells = function.__code__.co_freevars
                    self.cells.update(zip(names_of_cells, function.__closure__, strict=True))
        self.cells.pop("__dsl__", None)
        self.names = tuple(name for name in names if name in self.cells)

    def capture(self, extra: Mapping[str, Any] | None = None) -> Picture:
        """The picture now; `extra` adds values that are no variables (a branch's result)."""
        seen: dict[int, Any] = {}
        nodes: dict[str, Node | None] = {}
        leaves: dict[str, list[Any]] = {}
        for name, cell in self.cells.items():
            try:
                value = cell.cell_contents
            except ValueError:
                value = UNBOUND
            nodes[name], leaves[name] = flatten(value, seen)
        for name, value in (extra or {}).items():
            nodes[name], leaves[name] = flatten(value, seen)
        return Picture(nodes, leaves)

    def restore(self, picture: Picture) -> None:
        """Make the variables and every object in the picture what they were."""
        for name, cell in self.cells.items():
            set_cell(cell, unflatten(picture.nodes[name], picture.leaves[name]))


def binding_span(body: Any, name: str) -> Span | None:
    """The last place in `body` that binds `name`, for messages."""
    found = None
    for function in body.functions if isinstance(body, Body) else (body,):
        if isinstance(function, FunctionType):
            found = _binding_span(function.__code__, name) or found
    return found


def _binding_span(code: CodeType, name: str) -> Span | None:
    found = None
    for instruction in dis.get_instructions(code):
        if instruction.opname.startswith("STORE") and instruction.argval == name:
            where = instruction.positions
            if where is not None and where.lineno is not None:
                found = Span(
                    code.co_filename,
                    where.lineno,
                    where.col_offset or 0,
                    where.end_lineno,
                    where.end_col_offset,
                )
    for constant in code.co_consts:
        if isinstance(constant, CodeType) and name in constant.co_freevars:
            found = _binding_span(constant, name) or found
    return found
