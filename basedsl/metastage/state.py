"""The variables a staged construct can read or change, as the interpreter holds them.

The rewritten function shares variables with the bodies of its constructs through closure cells. So
a construct's state is the cells of its bodies and every *place* reachable from them: an object, a
list, a dict, a closure cell, each with its contents. `State.capture` takes a picture of all places,
`State.restore` writes one back. Places keep their identity, so aliases stay aliases.

Objects that the bodies reach through global variables are looked at too, to notice when tracing
changes one: that would happen while compiling, whatever the condition is at run time.
"""

from __future__ import annotations

import dis
import functools
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from types import CellType, CodeType, FunctionType
from typing import Any

from basedsl.errors import DSLError, DSLNameError
from basedsl.location import Span, is_internal
from basedsl.metastage.iterators import is_iterator, position
from basedsl.metastage.namespaces import Namespaces
from basedsl.metastage.slots import same_leaf
from basedsl.pytree import UNBOUND, Node, is_place, leaf_paths, open_place, same_shape, unflatten


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


class Content:
    """What is in one place: its shape and its leaves, other places among them.

    `parent` says how it was found: as the variable of that name, as a leaf of another place, or as
    what a place was that is no longer reachable.
    """

    __slots__ = ("_paths", "leaves", "node", "parent", "positions")

    def __init__(
        self,
        node: Node,
        leaves: list[Any],
        parent: Parent,
        positions: tuple[tuple[int, Any], ...] = (),
    ) -> None:
        self.node = node
        self.leaves = leaves
        self.parent = parent
        self.positions = positions  # of the leaves that are iterators, where they were
        self._paths: list[str] | None = None

    @property
    def place(self) -> Any:
        return self.node.obj

    @property
    def is_variable(self) -> bool:
        return isinstance(self.parent, str) and self.node.kind == "cell"

    @property
    def is_unbound(self) -> bool:
        """True for a cell that holds no value, or maybe none."""
        return (
            self.node.kind == "cell"
            and self.node.children[0] is None
            and isinstance(self.leaves[0], type(UNBOUND) | MaybeUnbound)
        )

    @property
    def name(self) -> str:
        """The variable through which the place was found."""
        return self.parent if isinstance(self.parent, str) else self.parent[0].name

    @property
    def prefix(self) -> str:
        """How a user would write the place itself."""
        if isinstance(self.parent, str):
            return self.parent
        content, index = self.parent
        return content.path(index) if index >= 0 else f"{content.prefix} (before)"

    def path(self, index: int) -> str:
        """How a user would write a leaf: `p.x`, `state.items[0]`."""
        if self._paths is None:
            self._paths = leaf_paths(self.node, self.prefix)
        return self._paths[index]

    def describe(self) -> str:
        """The value of a variable, in words."""
        node = self.node.children[0] if self.node.kind == "cell" else self.node
        if node is None:
            return describe_leaf(self.leaves[0])
        return f"a {type(node.obj).__name__} of {len(node.keys)}"

    def with_leaves(self, leaves: list[Any]) -> Content:
        return Content(self.node, leaves, self.parent)

    def unbound(self, leaf: Any = UNBOUND) -> Content:
        """The same cell, empty or holding a stand-in for a missing value."""
        node = Node("cell", self.node.obj, self.node.keys, [None])
        return Content(node, [leaf], self.parent)

    def write(self) -> None:
        """Make the place what this says."""
        unflatten(self.node, self.leaves)


Parent = str | tuple[Content, int]
Picture = dict[int, Content]  # by the id of the place, which the content keeps alive


class State:
    """The cells of some body functions. `names` are those a construct may bind."""

    def __init__(self, bodies: Iterable[Any], names: Iterable[str]) -> None:
        self.cells: dict[str, CellType] = {}
        functions = [f for body in bodies for f in functions_of(body)]
        for function in functions:
            names_of_cells = function.__code__.co_freevars
            self.cells.update(zip(names_of_cells, function.__closure__ or (), strict=True))
        self.cells.pop("__dsl__", None)
        self.names = frozenset(name for name in names if name in self.cells)
        self._functions = functions
        held = {name: x for name, x in _global_values(functions) if _is_followed(x)}
        self.globals = {name: x for name, x in held.items() if not is_iterator(x)}
        self.global_iterators = [(k, x, position(x)) for k, x in held.items() if is_iterator(x)]

    def value(self, name: str) -> Any:
        """What the variable `name` holds now, UNBOUND if nothing."""
        try:
            return self.cells[name].cell_contents
        except ValueError:
            return UNBOUND

    def capture(self, known: Picture | None = None) -> Picture:
        """The contents of all places now; those in `known` too, reachable or not."""
        picture: Picture = {}
        todo: list[tuple[Any, Parent]] = []
        todo += ((place, name) for name, place in self.globals.items())
        todo += ((cell, name) for name, cell in self.cells.items())
        self._explore(todo, picture)
        if known is not None:
            lost: list[tuple[Any, Parent]] = [
                (c.place, (c, -1)) for c in known.values() if id(c.place) not in picture
            ]
            self._explore(lost, picture)
        return picture

    def _explore(self, todo: list[tuple[Any, Parent]], picture: Picture) -> None:
        at = 0
        while at < len(todo):
            place, parent = todo[at]
            at += 1
            if id(place) in picture:
                continue
            places: list[Any] = []
            node, leaves = open_place(place, places)
            positions = tuple((i, position(x)) for i, x in enumerate(leaves) if is_iterator(x))
            content = picture[id(place)] = Content(node, leaves, parent, positions)
            if places:
                found = {id(p) for p in places}
                todo += ((x, (content, i)) for i, x in enumerate(leaves) if id(x) in found)

    def restore(self, picture: Picture) -> None:
        """Make every place in the picture what it was."""
        for content in picture.values():
            content.write()

    def check_globals(self, before: Picture, after: Picture, same: Callable[..., bool]) -> None:
        """An error if an object that a global variable holds was changed."""
        for name, place in self.globals.items():
            if not same(before[id(place)], after[id(place)]):
                raise DSLError(
                    f"the global object '{name}' is changed inside staged control flow, which "
                    "would happen once, while compiling",
                    hint=f"pass '{name}' as an argument and return what changes, or write to an "
                    "array",
                )

    def watch(self) -> None:
        """Note what classes, functions and modules hold, for `check_outside`."""
        cells = [(name, self.value(name)) for name in self.cells]
        codes = [function.__code__ for function in self._functions]
        self._namespaces = Namespaces([*cells, *_global_values(self._functions)], codes)

    def check_outside(self, before: Picture) -> None:
        """An error if something was done that cannot be taken back: an iterator made outside was
        advanced, an attribute of a class, function or module set.
        """
        self._namespaces.check()
        found = [
            (content.path(index), content.leaves[index], where)
            for content in before.values()
            for index, where in content.positions
        ]
        for path, iterator, where in (*found, *self.global_iterators):
            if position(iterator) != where:
                raise DSLError(
                    f"the iterator '{path}', made before, is advanced inside staged control flow, "
                    "which would happen once, while compiling",
                    hint="index a list with a number that the program carries, or unroll the "
                    "loop with range_constexpr",
                )


def same_content(a: Content, b: Content) -> bool:
    """Whether a place surely holds the same at two moments."""
    return same_shape(a.node, b.node) and all(map(same_leaf, a.leaves, b.leaves))


def refreshed(content: Content) -> Content:
    """What is in the place now."""
    node, leaves = open_place(content.place, [])
    return Content(node, leaves, content.parent)


def functions_of(body: Any) -> Iterator[FunctionType]:
    """The Python functions that make up a body."""
    for function in body.functions if isinstance(body, Body) else (body,):
        if isinstance(function, FunctionType):
            yield function


def _global_values(functions: Iterable[FunctionType]) -> Iterator[tuple[str, Any]]:
    for function in functions:
        variables = function.__globals__
        for name in _names(function.__code__):
            value = variables.get(name)
            if value is not None:
                yield name, value


def _is_followed(value: Any) -> bool:
    kind: Any = type(value)
    return (_is_users(kind) and is_place(value)) or is_iterator(value)


# By the id of a code object that the entry keeps alive. Not by the code itself: comparing two that
# are equal takes time exponential in how deep functions are nested in them.
_known_names: dict[int, tuple[CodeType, tuple[str, ...]]] = {}
_MOST_KNOWN = 4096


def _names(code: CodeType) -> tuple[str, ...]:
    known = _known_names.get(id(code))
    if known is not None:
        return known[1]
    found = dict.fromkeys(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found.update(dict.fromkeys(_names(constant)))
    if len(_known_names) >= _MOST_KNOWN:
        _known_names.clear()
    _known_names[id(code)] = code, tuple(found)
    return tuple(found)


@functools.cache
def _is_users(cls: Any) -> bool:
    """Whether objects of a class belong to the program, not to a library."""
    if cls in (list, dict, set, deque, bytearray):
        return True
    filename: str | None = getattr(sys.modules.get(cls.__module__), "__file__", None)
    if filename is None:
        return bool(cls.__module__ == "__main__")
    return not is_internal(filename) and "-packages" not in filename


def describe_leaf(leaf: Any) -> str:
    """A leaf in a user's words, for messages about types."""
    if leaf is None:
        return "None"
    if isinstance(leaf, type(UNBOUND) | MaybeUnbound):
        return "unbound"
    if hasattr(type(leaf), "ir_value"):
        return type(leaf).__name__
    text = repr(leaf)
    return f"the {type(leaf).__name__} {text}" if len(text) < 40 else f"a {type(leaf).__name__}"


def binding_span(body: Any, name: str) -> Span | None:
    """The last place in `body` that binds `name`, for messages."""
    found = None
    for function in functions_of(body):
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
