"""Values that have parts (pytrees): take out the leaves, rebuild the value from leaves.

All values in staged control flow or across a call boundary are trees. Nodes are tuples,
NamedTuples, lists, dicts, dataclasses, ordinary objects (their attributes), bound methods and
closures (the values that they hold), and classes that implement the protocol:

    __dsl_leaves__(self) -> tuple of parts        (each again any tree)
    __dsl_rebuild__(self, parts) -> a new object  (same class, same static facts, other parts)
    __dsl_static__(self) -> hashable              (optional: what must be equal across paths)

A class with `ir_value` or `__dsl_leaf__`, an array, and everything else is a leaf.

Some nodes are *places*: lists, dicts, deques, sets, ordinary objects and closure cells can change,
and every holder of one sees it change. Of sets and bytearrays the whole contents are one static
leaf. `flatten` goes through places; `open_value` stops there, for callers that follow identity
themselves (the meta-stage, whose branches and loops must keep Python's aliasing).
"""

from __future__ import annotations

import enum
import functools
import sys
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

_ATOMS: tuple[type, ...] = (
    int,
    float,
    complex,
    str,
    bytes,
    type(None),
    type,
    range,
    slice,
    enum.Enum,
    types.ModuleType,
    types.BuiltinFunctionType,
    types.CodeType,
    types.GenericAlias,
)
_EMPTY = object()
PLACES = frozenset({"list", "dict", "object", "cell", "snapshot"})


class Unbound:
    """The leaf that stands for a variable with no value."""

    __dsl_leaf__ = True

    def __repr__(self) -> str:
        return "unbound"


UNBOUND = Unbound()


class Node:
    """The shape of one tree: how its parts are found and put back.

    `kind` says what it is ("tuple", "list", "dict", "object", ...), "again" for a node that the
    tree has already. `obj` is the object the node was made from; `keys` name its parts; `children`
    are Nodes, with None for a leaf; `static` is what must be equal across paths. Equality of shape
    is `same_shape`, not `==`.
    """

    __slots__ = ("children", "keys", "kind", "obj", "static")

    def __init__(
        self,
        kind: str,
        obj: Any,
        keys: tuple[Any, ...],
        children: list[Node | None],
        static: Any = None,
    ) -> None:
        self.kind = kind
        self.obj = obj
        self.keys = keys
        self.children = children
        self.static = static


Parts = tuple[str, tuple[Any, ...], Iterable[Any], Any]


def flatten(
    obj: Any,
    seen: dict[int, Any] | None = None,
    keep: Callable[[Any], bool] | None = None,
) -> tuple[Node | None, list[Any]]:
    """Return the shape of `obj` (None for a leaf) and its leaves, left to right.

    `seen` (id -> object) lets several trees share nodes: one met again has no leaves of its own.
    Objects for which `keep` holds are leaves, whatever their parts.
    """
    leaves: list[Any] = []
    return _flatten(obj, {} if seen is None else seen, leaves, keep), leaves


def _flatten(
    obj: Any, seen: dict[int, Any], leaves: list[Any], keep: Callable[[Any], bool] | None
) -> Node | None:
    parts = _parts(obj)
    if parts is None or (keep is not None and keep(obj)):
        leaves.append(obj)
        return None
    kind, keys, values, static = parts
    if id(obj) in seen:
        return Node("again", obj, (), [])
    if kind != "tuple":
        seen[id(obj)] = obj  # keeps it alive, so that its id stays unique
    return Node(kind, obj, keys, [_flatten(value, seen, leaves, keep) for value in values], static)


def open_value(obj: Any, leaves: list[Any], places: list[Any]) -> Node | None:
    """Return the shape of an immutable value: the places it refers to are leaves, also put in
    `places`.
    """
    parts = _parts(obj)
    if parts is None:
        leaves.append(obj)
        return None
    kind, keys, values, static = parts
    if kind in PLACES:
        leaves.append(obj)
        places.append(obj)
        return None
    return Node(kind, obj, keys, [open_value(v, leaves, places) for v in values], static)


def open_place(obj: Any, places: list[Any]) -> tuple[Node, list[Any]]:
    """Return the contents of the place `obj`: its shape and leaves as `open_value` gives them."""
    parts = _parts(obj)
    assert parts is not None and parts[0] in PLACES
    kind, keys, values, static = parts
    leaves: list[Any] = []
    children = [open_value(value, leaves, places) for value in values]
    return Node(kind, obj, keys, children, static), leaves


def nodes_of(
    node: Node | None, path: tuple[int, ...] = ()
) -> Iterator[tuple[tuple[int, ...], Node]]:
    """Yield each node of a tree with the way to it: the index of the part at each level."""
    if node is not None:
        yield path, node
        for index, child in enumerate(node.children):
            yield from nodes_of(child, (*path, index))


def part_at(obj: Any, path: Iterable[int]) -> Any:
    """Return the part of a tree at the end of a way that `nodes_of` gave."""
    for index in path:
        parts = _parts(obj)
        assert parts is not None
        obj = list(parts[2])[index]
    return obj


def is_place(obj: Any) -> bool:
    """Return True if `obj` can change in place."""
    parts = _parts(obj)
    return parts is not None and parts[0] in PLACES


def empty_like(node: Node) -> Any:
    """Return an empty container of the class of the one that a node was made from."""
    return _empty_like(node.obj)


def copy_place(node: Node, leaves: Sequence[Any] | None) -> Any:
    """Return a new place like the one of `node` with other leaves, or with nothing in it yet."""
    cls = type(node.obj)
    place = blank(cls) if node.kind == "object" else _empty_like(node.obj)
    if leaves is not None:
        fill_place(place, node, leaves)
    return place


def blank(cls: Any) -> Any:
    """Return an object of a class without attributes, whose `__init__` is not called."""
    if issubclass(cls, types.SimpleNamespace):  # `object` cannot make it
        return types.SimpleNamespace.__new__(cls)
    return object.__new__(cls)


def _empty_like(container: Any) -> Any:
    """Return an empty container of the class of another one, without running the class's own
    code, with its attributes.
    """
    cls: Any = type(container)
    new = cls.__new__(cls)
    if isinstance(container, deque):
        deque.__init__(new, (), container.maxlen)
    if isinstance(container, defaultdict):
        new.default_factory = container.default_factory
    for name in _slots(cls):
        if hasattr(container, name):
            object.__setattr__(new, name, getattr(container, name))
    if hasattr(container, "__dict__"):
        new.__dict__.update(container.__dict__)
    return new


def fill_place(place: Any, node: Node, leaves: Sequence[Any]) -> None:
    """Give `place` the contents that `node` and `leaves` describe."""
    unflatten(Node(node.kind, place, node.keys, node.children, node.static), leaves)


def _parts(obj: Any) -> Parts | None:
    cls: Any = type(obj)
    parts = _PARTS[_kind_of_class(cls)]
    return None if parts is None else parts(obj)


@functools.lru_cache(maxsize=4096)
def _kind_of_class(cls: Any) -> str:
    """Return how objects of a class are taken apart, a key of `_PARTS`. By the class alone: the
    numbers of a DSL answer `isinstance` as Python's, which takes time.
    """
    if issubclass(cls, _ATOMS):
        return "leaf"
    if hasattr(cls, "__dsl_leaves__"):
        return "protocol"
    for kind, classes in _BUILT_IN.items():
        if issubclass(cls, classes):
            return kind
    if hasattr(cls, "ir_value") or hasattr(cls, "__dsl_leaf__") or hasattr(cls, "__dlpack__"):
        return "leaf"
    library = cls.__module__.partition(".")[0] in sys.stdlib_module_names
    if library and cls.__module__ != "__main__" and cls is not types.SimpleNamespace:
        if not is_made_dynamically(cls):
            return "leaf"  # loggers, locks, paths, ...: nothing of the program's own state
    return "record" if _is_frozen(cls) else "object"


def is_made_dynamically(cls: Any) -> bool:
    """Return True for a class that `types.new_class` has made for the program: it says that it is
    of the module `types`. Up to Python 3.11 `dataclasses.make_dataclass` makes such classes.
    """
    return cls.__module__ == "types" and vars(types).get(cls.__name__) is not cls


def _protocol_parts(obj: Any) -> Parts:
    parts = tuple(obj.__dsl_leaves__())
    static = obj.__dsl_static__() if hasattr(type(obj), "__dsl_static__") else None
    return "protocol", tuple(range(len(parts))), parts, static


def _tuple_parts(obj: Any) -> Parts:
    items = tuple(tuple.__iter__(obj))
    return "tuple", getattr(type(obj), "_fields", tuple(range(len(items)))), items, None


# Of containers the built-in methods: a subclass may have others, and code of its own in them.


def _list_parts(obj: Any) -> Parts:
    items = tuple(deque.__iter__(obj) if isinstance(obj, deque) else list.__iter__(obj))
    return "list", tuple(range(len(items))), items, None


def _dict_parts(obj: Any) -> Parts:
    base: Any = OrderedDict if isinstance(obj, OrderedDict) else dict
    return "dict", tuple(base.keys(obj)), base.values(obj), None


def _snapshot_parts(obj: Any) -> Parts:
    kept = frozenset(obj) if isinstance(obj, set) else bytes(obj)
    return "snapshot", ("contents",), (kept,), None


def _cell_parts(obj: Any) -> Parts:
    return "cell", ("cell_contents",), (_cell_value(obj),), None


def _function_parts(obj: Any) -> Parts | None:
    if not obj.__closure__ and not obj.__defaults__:
        return None
    cells = obj.__closure__ or ()
    keys = (*obj.__code__.co_freevars, "default")
    return "function", keys, (*cells, obj.__defaults__), obj.__code__


def _method_parts(obj: Any) -> Parts:
    return "method", ("__self__",), (obj.__self__,), obj.__func__


def _object_parts(obj: Any) -> Parts | None:
    cls: Any = type(obj)
    attributes = _attributes(obj)
    if attributes is None:
        return None
    return _kind_of_class(cls), tuple(attributes), attributes.values(), None


#: Kinds of nodes by classes whose subclasses are of them too, or which have none.
_BUILT_IN: dict[str, Any] = {
    "tuple": tuple,
    "list": (list, deque),
    "dict": dict,
    "snapshot": (set, bytearray),
    "cell": types.CellType,
    "function": types.FunctionType,
    "method": types.MethodType,
}
_PARTS: dict[str, Callable[[Any], Parts | None] | None] = {
    "leaf": None,
    "protocol": _protocol_parts,
    "tuple": _tuple_parts,
    "list": _list_parts,
    "dict": _dict_parts,
    "snapshot": _snapshot_parts,
    "cell": _cell_parts,
    "function": _function_parts,
    "method": _method_parts,
    "object": _object_parts,
    "record": _object_parts,
}


def _is_frozen(cls: type) -> bool:
    parameters = cls.__dict__.get("__dataclass_params__")
    return parameters is not None and bool(parameters.frozen)


def _attributes(obj: Any) -> dict[str, Any] | None:
    """Return the instance attributes of an ordinary object; None for an object without any."""
    cls: Any = type(obj)
    found: dict[str, Any] = {}
    slots = _slots(cls)
    for name in slots:
        value = getattr(obj, name, _EMPTY)
        if value is not _EMPTY:
            found[name] = value
    if hasattr(obj, "__dict__"):
        found.update(obj.__dict__)
    elif not slots:
        return None
    return found


@functools.lru_cache(maxsize=4096)
def _slots(cls: Any) -> tuple[str, ...]:
    found: list[str] = []
    for base in reversed(cls.__mro__):
        slots = base.__dict__.get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else slots:
            if slot not in ("__dict__", "__weakref__"):
                found.append(_mangled(base, slot))
    return tuple(found)


def _mangled(cls: type, slot: str) -> str:
    if slot.startswith("__") and not slot.endswith("__"):
        return f"_{cls.__name__.lstrip('_')}{slot}"
    return slot


def _cell_value(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:
        return UNBOUND


def same_shape(a: Node | None, b: Node | None) -> bool:
    """Return True if two trees have the same nodes with the same keys; leaves are not compared."""
    if a is None or b is None:
        return a is b
    return (
        a.kind == b.kind
        and type(a.obj) is type(b.obj)
        and a.keys == b.keys
        and a.static == b.static
        and all(map(same_shape, a.children, b.children))
    )


def leaf_paths(node: Node | None, prefix: str) -> list[str]:
    """Return each leaf of `node` as a user would write it: `state.count`, `pair[0]`, `table['x']`,
    where `prefix` is the name of the whole. A leaf (None) is the prefix itself.
    """
    if node is None:
        return [prefix]
    paths: list[str] = []
    for key, child in zip(node.keys, node.children, strict=True):
        paths += leaf_paths(child, _step(node, prefix, key))
    return paths


def _step(node: Node, prefix: str, key: Any) -> str:
    if node.kind in ("cell", "method", "protocol", "snapshot"):
        return prefix
    if node.kind in ("object", "record", "function") or (
        isinstance(key, str) and node.kind == "tuple"
    ):
        return f"{prefix}.{key}"
    return f"{prefix}[{key!r}]"


def unflatten(node: Node | None, leaves: Sequence[Any]) -> Any:
    """Return the tree with other leaves. Mutable objects are changed in place, others made anew."""
    iterator = iter(leaves)
    result = _unflatten(node, iterator)
    if next(iterator, _EMPTY) is not _EMPTY:
        raise ValueError("more leaves than the tree has")
    return result


def _unflatten(node: Node | None, leaves: Any) -> Any:
    if node is None:
        return next(leaves)
    parts = [_unflatten(child, leaves) for child in node.children]
    return _REBUILD[node.kind](node, parts)


def _rebuild_tuple(node: Node, parts: list[Any]) -> Any:
    if all(map(_is, parts, node.obj)):
        return node.obj
    cls = type(node.obj)
    return cls(*parts) if hasattr(cls, "_fields") else cls(parts)


def _rebuild_list(node: Node, parts: list[Any]) -> Any:
    if isinstance(node.obj, deque):
        deque.clear(node.obj)
        deque.extend(node.obj, parts)
    else:
        list.__setitem__(node.obj, slice(None), parts)
    return node.obj


def _rebuild_snapshot(node: Node, parts: list[Any]) -> Any:
    (contents,) = parts
    if isinstance(node.obj, set):
        if frozenset(node.obj) != contents:
            set.clear(node.obj)
            set.update(node.obj, contents)
    elif node.obj != contents:
        node.obj[:] = contents
    return node.obj


def _rebuild_dict(node: Node, parts: list[Any]) -> Any:
    if isinstance(node.obj, OrderedDict):
        OrderedDict.clear(node.obj)
        for key, part in zip(node.keys, parts, strict=True):
            OrderedDict.__setitem__(node.obj, key, part)
    else:
        dict.clear(node.obj)
        dict.update(node.obj, zip(node.keys, parts, strict=True))
    return node.obj


def _rebuild_cell(node: Node, parts: list[Any]) -> Any:
    set_cell(node.obj, parts[0])
    return node.obj


def _rebuild_object(node: Node, parts: list[Any]) -> Any:
    obj = node.obj
    before = _attributes(obj) or {}
    for key in before:
        if key not in node.keys:
            object.__delattr__(obj, key)
    for key, part in zip(node.keys, parts, strict=True):
        if before.get(key, _EMPTY) is not part:
            object.__setattr__(obj, key, part)
    return obj


def _rebuild_record(node: Node, parts: list[Any]) -> Any:
    before = _attributes(node.obj) or {}
    if all(before.get(k, _EMPTY) is p for k, p in zip(node.keys, parts, strict=True)):
        return node.obj
    return _new_object(node, parts)


def _new_object(node: Node, parts: list[Any]) -> Any:
    new = blank(type(node.obj))
    for key, part in zip(node.keys, parts, strict=True):
        object.__setattr__(new, key, part)
    return new


def _rebuild_function(node: Node, parts: list[Any]) -> Any:
    function = node.obj
    *cells, defaults = parts
    if defaults is function.__defaults__ and all(map(_is, cells, function.__closure__ or ())):
        return function
    new = types.FunctionType(
        function.__code__, function.__globals__, function.__name__, defaults, tuple(cells)
    )
    new.__kwdefaults__ = function.__kwdefaults__
    new.__dict__.update(function.__dict__)
    return new


def _rebuild_protocol(node: Node, parts: list[Any]) -> Any:
    if all(map(_is, parts, node.obj.__dsl_leaves__())):
        return node.obj
    return node.obj.__dsl_rebuild__(tuple(parts))


def _rebuild_method(node: Node, parts: list[Any]) -> Any:
    method = node.obj
    return method if parts[0] is method.__self__ else types.MethodType(method.__func__, parts[0])


def _again(node: Node, parts: list[Any]) -> Any:
    return node.obj


def _is(a: Any, b: Any) -> bool:
    return a is b


_REBUILD: dict[str, Callable[[Node, list[Any]], Any]] = {
    "tuple": _rebuild_tuple,
    "list": _rebuild_list,
    "dict": _rebuild_dict,
    "cell": _rebuild_cell,
    "object": _rebuild_object,
    "protocol": _rebuild_protocol,
    "record": _rebuild_record,
    "snapshot": _rebuild_snapshot,
    "method": _rebuild_method,
    "function": _rebuild_function,
    "again": _again,
}


def set_cell(cell: types.CellType, value: Any) -> None:
    """Bind a closure cell, or empty it for UNBOUND."""
    if value is UNBOUND:
        try:
            del cell.cell_contents
        except ValueError:
            pass
    else:
        cell.cell_contents = value


def rebuild(node: Node | None, leaves: Sequence[Any]) -> Any:
    """Return the tree of shape `node` with other `leaves`, all made anew: the original objects stay
    as they are. With None, a leaf's shape, the one leaf itself.
    """
    return _rebuild_new(node, iter(leaves), {})


def _rebuild_new(node: Node | None, leaves: Any, made: dict[int, Any]) -> Any:
    if node is None:
        return next(leaves)
    if node.kind == "again":
        return made[id(node.obj)]
    parts = [_rebuild_new(child, leaves, made) for child in node.children]
    if node.kind in ("list", "dict", "snapshot"):
        new: Any = _empty_like(node.obj)
        _REBUILD[node.kind](Node(node.kind, new, node.keys, node.children), parts)
    elif node.kind in ("object", "record"):
        new = _new_object(node, parts)
    else:
        new = _REBUILD[node.kind](node, parts)
    made[id(node.obj)] = new
    return new
