"""The variables that a staged construct can read or change, as the interpreter holds them.

The rewritten function shares variables with the bodies of its constructs through closure cells. So
a construct's state is the cells of its bodies and every *place* reachable from them: an object, a
list, a dict, a closure cell, each with its contents. `State.capture` takes a snapshot of all
places, `State.restore` writes one back. Places keep their identity, so aliases stay aliases.

Objects that the bodies reach through global variables are watched too, to notice when tracing
changes one: that would happen while compiling, whatever the condition is at run time.
"""

from __future__ import annotations

import dis
import functools
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import CellType, CodeType, FunctionType
from typing import Any

from basedsl.errors import DSLError, DSLNameError, with_article
from basedsl.location import Span, file_of_module, is_internal
from basedsl.metastage.carried_types import same_leaf
from basedsl.metastage.chosen_member import ChosenMember
from basedsl.metastage.contents import is_opaque_class, may_change
from basedsl.metastage.foreign import ForeignObjects
from basedsl.metastage.iterators import is_iterator, position
from basedsl.metastage.namespaces import ONCE, Namespaces, named_in, naming_span
from basedsl.pytree import UNBOUND, Node, is_place, leaf_paths, open_place, same_shape, unflatten


class Body:
    """The code of one side of a branch, and the functions whose variables it shares."""

    __slots__ = ("functions", "run")

    def __init__(self, run: Callable[[], Any], functions: Iterable[Any]) -> None:
        self.run = run
        self.functions = tuple(functions)


class MaybeUnbound:
    """The value of a variable after a construct that binds it on some paths only."""

    __dsl_leaf__ = True

    def __init__(self, name: str, path: str, span: Span | None) -> None:
        self.name = name
        self.path = path
        self.span = span

    def error(self) -> DSLNameError:
        """Return the error for reading the variable."""
        return DSLNameError(
            f"'{self.name}' is read here, but it is not bound on every path",
            notes=((f"it is not bound {self.path}", self.span),),
            hint=f"give '{self.name}' a value before this statement",
        )


class PlaceContents:
    """The contents of one place: its shape and its leaves, other places among them.

    `parent` says how it was found: as the variable of that name, as a leaf of another place, or as
    an earlier state of a place that is no longer reachable.
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
        self.positions = positions  # of the leaves that are iterators: (index, position)
        self._paths: list[str] | None = None

    @property
    def place(self) -> Any:
        """The object itself."""
        return self.node.obj

    @property
    def is_variable(self) -> bool:
        """True for the cell of a variable."""
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
        """The place as a user would write it."""
        if isinstance(self.parent, str):
            return self.parent
        contents, index = self.parent
        return contents.path(index) if index >= 0 else f"{contents.prefix} (before)"

    def path(self, index: int) -> str:
        """Return a leaf as a user would write it: `p.x`, `state.items[0]`."""
        if self._paths is None:
            self._paths = leaf_paths(self.node, self.prefix)
        return self._paths[index]

    def describe(self) -> str:
        """Return the value of a variable in words, for messages."""
        node = self.node.children[0] if self.node.kind == "cell" else self.node
        if node is None:
            return describe_leaf(self.leaves[0])
        count = len(node.keys)
        part = "attribute" if node.kind in ("object", "record") else "item"
        return f"{with_article(type(node.obj))} of {count} {part}{'' if count == 1 else 's'}"

    def with_leaves(self, leaves: list[Any]) -> PlaceContents:
        """Return the same place with other leaves."""
        return PlaceContents(self.node, leaves, self.parent)

    def unbound(self, leaf: Any = UNBOUND) -> PlaceContents:
        """Return the same cell without a value, or with a leaf that stands for a missing one."""
        node = Node("cell", self.node.obj, self.node.keys, [None])
        return PlaceContents(node, [leaf], self.parent)

    def write(self) -> None:
        """Give the place these contents."""
        unflatten(self.node, self.leaves)


Parent = str | tuple[PlaceContents, int]
StateSnapshot = dict[int, PlaceContents]  # by the id of the place, which its contents keep alive


class State:
    """The cells of some body functions. `names` are those that a construct may bind."""

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
        self.foreign_globals = {
            name: x
            for name, x in _global_values(functions)
            if name not in held and may_change(x) and (not is_place(x) or is_opaque_class(type(x)))
        }
        self.global_iterators = [(k, x, position(x)) for k, x in held.items() if is_iterator(x)]

    def value(self, name: str) -> Any:
        """Return the value of the variable `name` now, UNBOUND if it has none."""
        try:
            return self.cells[name].cell_contents
        except ValueError:
            return UNBOUND

    def capture(self, known: StateSnapshot | None = None) -> StateSnapshot:
        """Return the contents of all places now; those in `known` too, reachable or not."""
        snapshot: StateSnapshot = {}
        todo: list[tuple[Any, Parent]] = []
        todo += ((place, name) for name, place in self.globals.items())
        todo += ((cell, name) for name, cell in self.cells.items())
        self._explore(todo, snapshot)
        if known is not None:
            lost: list[tuple[Any, Parent]] = [
                (c.place, (c, -1)) for c in known.values() if id(c.place) not in snapshot
            ]
            self._explore(lost, snapshot)
        return snapshot

    def _explore(self, todo: list[tuple[Any, Parent]], snapshot: StateSnapshot) -> None:
        at = 0
        while at < len(todo):
            place, parent = todo[at]
            at += 1
            if id(place) in snapshot:
                continue
            places: list[Any] = []
            node, leaves = open_place(place, places)
            positions = tuple((i, position(x)) for i, x in enumerate(leaves) if is_iterator(x))
            contents = snapshot[id(place)] = PlaceContents(node, leaves, parent, positions)
            if places:
                found = {id(p) for p in places}
                todo += ((x, (contents, i)) for i, x in enumerate(leaves) if id(x) in found)

    def restore(self, snapshot: StateSnapshot) -> None:
        """Give every place in the snapshot its contents of then."""
        for contents in snapshot.values():
            contents.write()

    def check_globals(
        self, before: StateSnapshot, after: StateSnapshot, same: Callable[..., bool]
    ) -> None:
        """Raise a DSLError if an object that a global variable holds was changed."""
        for name, place in self.globals.items():
            if not same(before[id(place)], after[id(place)]):
                raise DSLError(
                    f"the global object '{name}' is changed inside staged control flow",
                    notes=(ONCE,),
                    hint=f"pass '{name}' as an argument and return what changes, or write to an "
                    "array",
                )

    def watch(self, before: StateSnapshot) -> None:
        """Note what cannot be carried, for `check_outside`: attributes of classes, functions and
        modules, contents of library objects. DSLError for an object whose contents nobody can see.
        """
        self._foreign = ForeignObjects(before, self.foreign_globals, self._functions)
        cells = [(name, self.value(name)) for name in self.cells]
        codes = [function.__code__ for function in self._functions]
        self._namespaces = Namespaces([*cells, *_global_values(self._functions)], codes)

    def check_outside(self, before: StateSnapshot) -> None:
        """Raise a DSLError if something was done that cannot be undone: an iterator made outside
        was advanced, or an attribute of a class, function or module was set.
        """
        self._namespaces.check()
        self._foreign.check()
        found = [
            (contents.path(index), contents.leaves[index], where)
            for contents in before.values()
            for index, where in contents.positions
        ]
        for path, iterator, where in (*found, *self.global_iterators):
            if position(iterator) != where:
                raise DSLError(
                    f"the iterator '{path}', made before, is advanced inside staged control flow",
                    notes=(ONCE,),
                    hint="index a list with a number that the program carries, or unroll the "
                    "loop with range_constexpr",
                )
        self._foreign.check_outliving()


def reached_from(values: Mapping[str, Any]) -> StateSnapshot:
    """Return the contents of all places that the values of some variables lead to."""
    state = State((), ())
    state.cells = {name: CellType(value) for name, value in values.items()}
    return state.capture()


def changed_since(before: StateSnapshot) -> str | None:
    """Return the path of something that is not as it was, or of an iterator that was advanced."""
    for contents in before.values():
        if not same_contents(contents, refreshed(contents)):
            return contents.prefix
        for index, where in contents.positions:
            if position(contents.leaves[index]) != where:
                return contents.path(index)
    return None


def same_contents(a: PlaceContents, b: PlaceContents) -> bool:
    """Return True if a place certainly has the same contents at two moments."""
    return same_shape(a.node, b.node) and all(map(same_leaf, a.leaves, b.leaves))


def refreshed(contents: PlaceContents) -> PlaceContents:
    """Return the contents of the place now."""
    node, leaves = open_place(contents.place, [])
    return PlaceContents(node, leaves, contents.parent)


def functions_of(body: Any) -> Iterator[FunctionType]:
    """Yield the Python functions that make up a body."""
    for function in body.functions if isinstance(body, Body) else (body,):
        if isinstance(function, FunctionType):
            yield function


def _global_values(functions: Iterable[FunctionType]) -> Iterator[tuple[str, Any]]:
    for function in functions:
        variables = function.__globals__
        for name in named_in(function.__code__):
            value = variables.get(name)
            if value is not None:
                yield name, value


def _is_followed(value: Any) -> bool:
    kind: Any = type(value)
    return (_is_users(kind) and is_place(value)) or is_iterator(value)


@functools.cache
def _is_users(cls: Any) -> bool:
    """Return True if objects of a class belong to the program, not to a library."""
    if cls in (list, dict, set, deque, bytearray):
        return True
    filename = file_of_module(sys.modules.get(cls.__module__))
    if not filename:
        return bool(cls.__module__ == "__main__")
    return not is_internal(filename) and "-packages" not in filename


def describe_leaf(leaf: Any) -> str:
    """Return a leaf in a user's words, for messages about types."""
    if leaf is None:
        return "None"
    if isinstance(leaf, type(UNBOUND) | MaybeUnbound):
        return "unbound"
    if type(leaf) is ChosenMember:
        return str(leaf.leaf_type())
    if hasattr(type(leaf), "ir_value"):
        return type(leaf).__name__
    text = repr(leaf)
    return f"the {type(leaf).__name__} {text}" if len(text) < 40 else with_article(type(leaf))


def binding_span(body: Any, name: str) -> Span | None:
    """Return the last place in `body` that binds `name`, for messages."""
    found = None
    for function in functions_of(body):
        found = _binding_span(function.__code__, name) or found
    return found


def change_span(body: Any, contents: PlaceContents) -> Span | None:
    """Return the place in `body` that changes an object or binds a variable, for messages."""
    bound = binding_span(body, contents.name)
    if bound is not None and contents.node.kind == "cell":
        return bound
    codes = [function.__code__ for function in functions_of(body)]
    span, changes = naming_span(codes, contents.name)
    return span if changes else bound


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
