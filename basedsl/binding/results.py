"""Results of compiled functions: dynamic leaves come back as Python values.

A `Results` is made of the value that tracing returned and keeps nothing of the IR: the shape of the
value, its static leaves, and the types of the dynamic ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from basedsl.binding.arguments import from_storage, storage_format
from basedsl.binding.result_types import ResultType, settle_result
from basedsl.errors import DSLTypeError, plugin_defect, with_article
from basedsl.location import span_of_function, span_of_return
from basedsl.numeric import Boolean, DynamicText, Numeric
from basedsl.plugin import plugin_manager
from basedsl.pytree import Node, blank, copy_place, empty_like, flatten, leaf_paths, part_at

_MADE_OF_CLASS = ("tuple", "list", "dict", "object", "record")


@dataclass
class Shape:
    """A node of a result without its values. `number` identifies a node of the tree; a node of the
    kind "again" refers to an earlier one by that one's number.
    """

    kind: str
    cls: type
    keys: tuple[Any, ...]
    number: int
    children: list[Shape | None] = field(default_factory=list)
    exemplar: Any = None


class Given(NamedTuple):
    """The leaf of a result that is a part of the caller's arguments: it comes back as itself."""

    argument: int
    path: tuple[int, ...]


def _only_lives_here(leaf: Any) -> bool:
    """Return True for a leaf that exists in compiled code only, such as a tensor; a number comes
    back to Python.
    """
    if isinstance(leaf, Numeric):
        return False
    kind = type(leaf)
    return hasattr(kind, "ir_value") or (
        getattr(kind, "__dsl_leaf__", False) and not hasattr(kind, "__dsl_digest__")
    )


def _own_type(language: Any, leaf: Any) -> ResultType | None:
    """Ask the language how a leaf leaves the function; None for what is a number or plain."""
    if language is None or isinstance(leaf, Numeric):
        return None
    if hasattr(type(leaf), "__dsl_result__"):
        own: ResultType = leaf.__dsl_result__()
        return own
    found: ResultType | None = language.result_type(leaf)
    if found is None and not isinstance(leaf, _PLAIN):
        found = plugin_manager().result_type(language.name, leaf)
    return found


_PLAIN = (type(None), bool, int, float, complex, str, bytes, type)


def _storage(kind: Any) -> tuple[str, ...]:
    return kind.storage if isinstance(kind, ResultType) else (storage_format(kind),)


class Results:
    """The structure of a result: its tree, its static leaves, the places of its dynamic leaves.

    It is made of `value`, which the traced function `fn` returned; `language` is asked for the
    result types of its own kinds, none without one. `given` tells of what was made of the
    arguments, by its id, which part of the arguments it is; objects for which `is_outer` holds come
    back as themselves. Raises DSLTypeError, at the return of `fn`, for a leaf that cannot leave
    compiled code.

    `values` are the `ir.Value`s of the dynamic leaves, until `forget` drops them; `types` are their
    numeric classes and result types.
    """

    def __init__(
        self,
        value: Any,
        fn: Any = None,
        language: Any = None,
        given: Mapping[int, Given] | None = None,
        is_outer: Callable[[Any], bool] = lambda value: False,
    ) -> None:
        given = given or {}
        node, leaves = flatten(value, keep=lambda part: id(part) in given or is_outer(part))
        self.shape = _strip(node, {})
        self.leaves = list(leaves)
        #: True if parts of the arguments are in the result, so that `settle` must follow `make`.
        self.returns_arguments = any(id(leaf) in given for leaf in leaves)
        self.types: list[Any] = []
        self.places: list[int] = []
        self.values: list[Any] = []
        for i, leaf in enumerate(leaves):
            if id(leaf) in given:
                self.leaves[i] = given[id(leaf)]
            elif leaf is NotImplemented:
                raise DSLTypeError(
                    "NotImplemented is returned",
                    span_of_return(fn),
                    notes=(("a method of a Python number does not know one of run time", None),),
                    hint="write the operator: 3 + n in place of (3).__add__(n)",
                )
            elif type(leaf) is DynamicText:
                raise DSLTypeError(
                    "a text that shows a value of run time is returned",
                    span_of_return(fn),
                    notes=(("it is made while compiling, with ? for the value", None),),
                    hint="return the number, and make the text where the function is called",
                )
            elif isinstance(leaf, Numeric) and leaf.is_dynamic:
                self.places.append(i)
                self.types.append(type(leaf))
                self.values.append(leaf.ir_value())
                self.leaves[i] = None
            elif (own := _own_type(language, leaf)) is not None:
                found = list(own.ir_values(leaf))
                unknown = settle_result(own, found)
                if unknown is not None:
                    raise plugin_defect(
                        language,
                        f"{type(own).__name__} returns a value of type {unknown}, whose C storage "
                        "is not known",
                        span_of_function(fn),
                        hint="convert it to a memref or a pointer, or declare `storage`",
                    )
                self.places.append(i)
                self.types.append(own)
                self.values += found
                self.leaves[i] = None
            elif _only_lives_here(leaf) and not is_outer(leaf):
                path = leaf_paths(node, "the result")[i]
                owner = value if hasattr(type(value), "__dsl_leaves__") else leaf
                raise DSLTypeError(
                    f"{path} is {with_article(type(owner))}, which cannot be returned to Python",
                    span_of_function(fn),
                    hint="return numbers, or write into an array that the caller passes",
                )
            elif isinstance(leaf, Numeric):
                self.leaves[i] = leaf.value

    @classmethod
    def of_parts(
        cls, shape: Shape | None, leaves: list[Any], types: list[Any], places: list[int]
    ) -> Results:
        """Return a result structure from the attributes that the disk cache stores: the tree
        without values (`shape`, None for a single leaf), all `leaves` with None for dynamic ones,
        and the `types` of the dynamic ones and their `places` among the leaves.
        """
        made = cls.__new__(cls)
        made.shape, made.leaves, made.types, made.places = shape, leaves, types, places
        made.values = []
        made.returns_arguments = False  # such a result is not stored
        return made

    @property
    def storage(self) -> tuple[str, ...]:
        """The `struct` codes of the dynamic leaves: one for a number."""
        return tuple(code for kind in self.types for code in _storage(kind))

    @property
    def native_storage(self) -> tuple[str, ...] | None:
        """`storage` with "?" for booleans; None if a leaf takes more than one C value to read."""
        if any(isinstance(t, ResultType) for t in self.types):
            return None
        if any(t.width < 8 and t is not Boolean for t in self.types):
            return None
        if any(code == "16s" or (t.is_float and code not in "fd") for t, code in self._pairs()):
            return None
        return tuple("?" if t is Boolean else code for t, code in self._pairs())

    def _pairs(self) -> Iterator[tuple[Any, str]]:
        return zip(self.types, self.storage, strict=True)

    @property
    def is_flat_tuple(self) -> bool:
        """True if the result is a plain tuple of dynamic leaves."""
        shape = self.shape
        return (
            shape is not None
            and shape.cls is tuple
            and shape.children == [None] * len(self.places)
            and len(self.places) == len(self.leaves)
        )

    def forget(self) -> None:
        """Drop the references to IR values, so that the module can be freed."""
        self.values = []

    def make(self, raw: Sequence[Any]) -> Any:
        """Return the Python result for `raw`, the C values of the dynamic leaves in the order of
        `types`; with `returns_arguments`, what `settle` makes it of.
        """
        leaves, at = list(self.leaves), 0
        for place, kind in zip(self.places, self.types, strict=True):
            if isinstance(kind, ResultType):
                end = at + len(kind.storage)
                leaves[place] = kind.unpack(tuple(raw[at:end]))
            else:
                end = at + 1
                leaves[place] = from_storage(kind, raw[at])
            at = end
        return leaves if self.returns_arguments else self._built(leaves)

    def settle(self, made: Any, values: Sequence[Any]) -> Any:
        """Return the result of a call of which `make` gave `made`; `values` are its arguments, one
        for each parameter.
        """
        if not self.returns_arguments:
            return made
        leaves = [part_at(values[x.argument], x.path) if isinstance(x, Given) else x for x in made]
        return self._built(leaves)

    def _built(self, leaves: list[Any]) -> Any:
        return leaves[0] if self.shape is None else _make(self.shape, iter(leaves), {})


def _strip(node: Node | None, numbers: dict[int, int]) -> Shape | None:
    if node is None:
        return None
    if node.kind == "again":
        return Shape("again", object, (), numbers[id(node.obj)])
    number = numbers[id(node.obj)] = len(numbers)
    made = Shape(node.kind, type(node.obj), node.keys, number)
    if node.kind not in _MADE_OF_CLASS:
        made.exemplar = node.obj
    elif node.kind in ("list", "dict") and type(node.obj) not in (list, dict):
        made.exemplar = empty_like(node)
    made.children = [_strip(child, numbers) for child in node.children]
    return made


def _make(shape: Shape | None, leaves: Iterator[Any], made: dict[int, Any]) -> Any:
    if shape is None:
        return next(leaves)
    if shape.kind == "again":
        return made[shape.number]
    parts = [_make(child, leaves, made) for child in shape.children]
    new: Any
    if shape.kind == "tuple":
        new = shape.cls(*parts) if hasattr(shape.cls, "_fields") else shape.cls(parts)
    elif shape.exemplar is not None and shape.kind in ("list", "dict"):
        node = Node(shape.kind, shape.exemplar, shape.keys, [None] * len(parts))
        new = copy_place(node, parts)
    elif shape.kind == "list":
        new = list(parts)
    elif shape.kind == "dict":
        new = dict(zip(shape.keys, parts, strict=True))
    elif shape.kind in ("object", "record"):
        new = blank(shape.cls)
        for key, part in zip(shape.keys, parts, strict=True):
            object.__setattr__(new, key, part)
    elif shape.kind == "protocol":
        new = shape.exemplar.__dsl_rebuild__(tuple(parts))
    else:  # a function or method: itself
        new = shape.exemplar
    made[shape.number] = new
    return new
