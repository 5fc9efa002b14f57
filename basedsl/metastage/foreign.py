"""Objects that captured code can read but not change: arrays, objects of libraries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any

from basedsl.errors import DSLError, with_article
from basedsl.location import Span
from basedsl.metastage.contents import (
    ALL,
    ATTRIBUTES,
    STORAGE,
    Contents,
    has_attributes,
    has_storage,
    is_opaque_class,
    may_change,
)
from basedsl.metastage.namespaces import ONCE, instructions, named_in, naming_span
from basedsl.metastage.volatile import outside_calls
from basedsl.tracing import current_trace_or_none

if TYPE_CHECKING:
    from basedsl.metastage.state import PlaceContents

_HINT = (
    "keep what changes in variables, lists or objects of your own, or in an array that is passed "
    "as an argument"
)


class ForeignObjects:
    """The objects outside a region that no loop or branch can carry, with their contents now."""

    __slots__ = ("_codes", "_held", "_marks", "_outside")

    def __init__(
        self,
        snapshot: Mapping[int, PlaceContents],
        global_values: Mapping[str, Any],
        functions: Sequence[FunctionType],
    ) -> None:
        self._codes = [function.__code__ for function in functions]
        self._held: dict[int, tuple[str, Any, Contents, str]] = {}
        trace = current_trace_or_none()
        self._outside = None if trace is None else trace.outside
        self._marks = None if self._outside is None else self._outside.mark(snapshot)
        used: set[str] | None = None
        if self._outside is not None and self._outside.volatile:
            self._refuse_volatile(_reached(functions, snapshot))
        for name, value in global_values.items():
            if not self._hold(name, value) and self._is_global(name):
                self._check_opaque(name, value)
        for contents in snapshot.values():
            if contents.node.kind in _CONTAINERS and has_attributes(contents.place):
                self._hold(contents.prefix, contents.place, ATTRIBUTES)
            elif contents.node.kind == "object" and is_opaque_class(type(contents.place)):
                self._hold(contents.prefix, contents.place)
                self._check_opaque(contents.prefix, contents.place)
            elif contents.node.kind == "object" and has_storage(type(contents.place)):
                self._hold(contents.prefix, contents.place, STORAGE)
            for node in _tuples(contents.node):
                if has_attributes(node.obj):
                    self._hold(contents.prefix, node.obj, ATTRIBUTES)
            for index, leaf in enumerate(contents.leaves):
                if id(leaf) in snapshot or not may_change(leaf):
                    continue
                path = contents.path(index)
                if not self._hold(path, leaf) and path != contents.name:
                    if used is None:
                        used = _used_names(functions, snapshot)
                    if path.rpartition(".")[2] not in used and "[" not in path:
                        continue
                self._check_opaque(path, leaf)

    def _hold(self, path: str, value: Any, part: str = ALL) -> bool:
        """Keep the contents of an object; False if it is opaque."""
        key = id(value)
        if key not in self._held:
            self._held[key] = path, value, Contents(value, part), part
        return not self._held[key][2].is_opaque

    def _check_opaque(self, path: str, value: Any) -> None:
        if self._held[id(value)][2].is_opaque:
            raise DSLError(
                f"'{path}', {with_article(type(value))}, is used inside staged control flow",
                self._span_of(path),
                notes=(("what is done with it would happen once, while compiling", None),),
                hint="use it outside of loops and branches that the run time decides",
            )

    def _refuse_volatile(self, functions: Iterable[FunctionType]) -> None:
        for function in functions:
            for call in outside_calls(function):
                here = any(function.__code__ is code for code in self._codes)
                first = None if here else naming_span(self._codes, function.__name__)[0]
                raise DSLError(
                    f"'{call.path}', which reaches outside of the program, is used inside staged "
                    "control flow",
                    first or call.span,
                    notes=(
                        *((("it is used here", call.span),) if first is not None else ()),
                        ("it would be called once, while compiling", None),
                    ),
                    hint="call it outside of loops and branches that the run time decides, and "
                    "pass what it gives as an argument",
                )

    def check(self) -> None:
        """Raise a DSLError if one of them has changed."""
        for place, value, before, part in self._held.values():
            if not before.same_as(Contents(value, part)):
                kind = with_article(type(value))
                raise DSLError(
                    f"'{place}', {kind}, is changed inside staged control flow",
                    self._span_of(place),
                    notes=(ONCE,),
                    hint=_HINT,
                )

    def check_outliving(self) -> None:
        """Raise a DSLError if a helper has changed anything that outlives the call."""
        path = None if self._outside is None else self._outside.changed_since(self._marks)
        if path is not None:
            raise DSLError(
                f"'{path}' is changed inside staged control flow",
                self._span_of(path),
                notes=(ONCE,),
                hint="change it where Python alone decides, or keep it in variables",
            )

    def _is_global(self, name: str) -> bool:
        """Return True if the region's code reads a global of this name, not an attribute only."""
        return any(
            one.argval == name and one.opname in ("LOAD_GLOBAL", "LOAD_NAME")
            for code in self._codes
            for _, one in instructions(code)
        )

    def _span_of(self, path: str) -> Span | None:
        """Return the first line of the region that names the object and stores or calls something,
        or else the first that names it.
        """
        steps = path.replace("[", ".").split(".")
        first, _ = naming_span(self._codes, steps[0])
        # The last step, where a module goes by another name.
        return first or naming_span(self._codes, steps[-1])[0]


# Methods that see an object only before or after captured code does.
_MAKING = ("__init__", "__new__", "__del__")
_CONTAINERS = ("list", "dict", "snapshot")


def _tuples(node: Any) -> Iterable[Any]:
    for child in node.children:
        if child is not None:
            if child.kind == "tuple" and type(child.obj) is not tuple:
                yield child
            yield from _tuples(child)


def _used_names(
    functions: Iterable[FunctionType], snapshot: Mapping[int, PlaceContents]
) -> set[str]:
    """Return the names in a region's code, and in the helpers and methods that it can call."""
    return {name for f in _reached(functions, snapshot) for name in named_in(f.__code__)}


def _reached(
    functions: Iterable[FunctionType], snapshot: Mapping[int, PlaceContents]
) -> Iterator[FunctionType]:
    """Yield a region's functions, and the helpers and methods that they can call."""
    seen: set[int] = set()
    classes = {type(c.place) for c in snapshot.values() if c.node.kind == "object"}
    methods = {
        name: f
        for cls in classes
        for base in cls.__mro__
        for name, f in vars(base).items()
        if name not in _MAKING
    }
    todo: list[Any] = [f for name, f in methods.items() if name.startswith("__")]
    for contents in snapshot.values():
        todo += contents.leaves
    todo += functions  # first, as `pop` takes the last
    while todo:
        function = todo.pop()
        if isinstance(function, property):
            todo += [function.fget, function.fset]
        function = getattr(function, "__func__", function)
        if not isinstance(function, FunctionType) or id(function.__code__) in seen:
            continue
        code = function.__code__
        seen.add(id(code))
        yield function
        names = named_in(code)
        held = (function.__globals__.get(name) for name in names)
        todo += [one for one in held if isinstance(one, FunctionType | MethodType)]
        todo += [methods[name] for name in names if name in methods]
