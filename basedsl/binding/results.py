"""Results of compiled functions: dynamic leaves come back as Python values.

A `Results` is made of the value that tracing returned and keeps nothing of the IR: the shape of the
value, its static leaves, and the types of the dynamic ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from basedsl.binding.arguments import from_storage, storage_format
from basedsl.errors import DSLTypeError, with_article
from basedsl.location import span_of_function
from basedsl.numeric import Boolean, Numeric
from basedsl.pytree import Node, flatten, leaf_paths

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


class Results:
    """The structure of a result: its tree, its static leaves, the places of its dynamic leaves.

    `values` are the `ir.Value`s of the dynamic leaves, until `forget` drops them.
    """

    def __init__(self, value: Any, fn: Any = None) -> None:
        node, leaves = flatten(value)
        self.shape = _strip(node, {})
        self.leaves = list(leaves)
        self.types: list[Any] = []
        self.places: list[int] = []
        self.values: list[Any] = []
        for i, leaf in enumerate(leaves):
            if isinstance(leaf, Numeric) and leaf.is_dynamic:
                self.places.append(i)
                self.types.append(type(leaf))
                self.values.append(leaf.ir_value())
                self.leaves[i] = None
            elif _only_lives_here(leaf):
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
        """Return a result structure from the attributes that the disk cache stores."""
        made = cls.__new__(cls)
        made.shape, made.leaves, made.types, made.places = shape, leaves, types, places
        made.values = []
        return made

    @property
    def storage(self) -> tuple[str, ...]:
        """The `struct` code of each dynamic leaf."""
        return tuple(storage_format(t) for t in self.types)

    @property
    def native_storage(self) -> tuple[str, ...] | None:
        """`storage` with "?" for booleans; None if a leaf takes more than one C value to read."""
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
        """Return the Python result for the C values of the dynamic leaves, in the order of
        `types`.
        """
        if self.shape is None:
            return from_storage(self.types[0], raw[0]) if self.places else self.leaves[0]
        leaves = list(self.leaves)
        for place, kind, value in zip(self.places, self.types, raw, strict=True):
            leaves[place] = from_storage(kind, value)
        return _make(self.shape, iter(leaves), {})


def _strip(node: Node | None, numbers: dict[int, int]) -> Shape | None:
    if node is None:
        return None
    if node.kind == "again":
        return Shape("again", object, (), numbers[id(node.obj)])
    number = numbers[id(node.obj)] = len(numbers)
    made = Shape(node.kind, type(node.obj), node.keys, number)
    if node.kind not in _MADE_OF_CLASS:
        made.exemplar = node.obj
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
    elif shape.kind == "list":
        new = list(parts)
    elif shape.kind == "dict":
        new = dict(zip(shape.keys, parts, strict=True))
    elif shape.kind in ("object", "record"):
        new = object.__new__(shape.cls)
        for key, part in zip(shape.keys, parts, strict=True):
            object.__setattr__(new, key, part)
    elif shape.kind == "protocol":
        new = shape.exemplar.__dsl_rebuild__(tuple(parts))
    else:  # a function or method: itself
        new = shape.exemplar
    made[shape.number] = new
    return new
