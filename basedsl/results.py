"""What a compiled function returns: dynamic leaves come back as Python values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from basedsl.binding.arguments import from_storage, storage_format
from basedsl.errors import DSLTypeError
from basedsl.numeric import Numeric
from basedsl.tree import Node, flatten, leaf_paths, rebuild


class Results:
    """The structure of a result, with the places of its dynamic leaves."""

    def __init__(self, value: Any) -> None:
        node, leaves = flatten(value)
        self.node: Node | None = node
        self.leaves = list(leaves)
        self.types: list[Any] = []
        self.values: list[Any] = []  # ir.Values, until `forget`
        self._places: list[int] = []
        for i, leaf in enumerate(leaves):
            if isinstance(leaf, Numeric) and leaf.is_dynamic:
                self._places.append(i)
                self.types.append(type(leaf))
                self.values.append(leaf.ir_value())
                self.leaves[i] = None
            elif hasattr(type(leaf), "ir_value") and not isinstance(leaf, Numeric):
                path = leaf_paths(node, "the result")[i]
                raise DSLTypeError(
                    f"{path} is a {type(leaf).__name__}, which cannot be returned to Python",
                    hint="return numbers, or write into an array that the caller passes",
                )
            elif isinstance(leaf, Numeric):
                self.leaves[i] = leaf.value
        self.formats = tuple(storage_format(t) for t in self.types)

    def forget(self) -> None:
        """Drop the IR."""
        self.values = []

    def make(self, raw: Sequence[Any]) -> Any:
        """The Python result from the C values of the dynamic leaves."""
        if self.node is None:
            return from_storage(self.types[0], raw[0]) if self._places else self.leaves[0]
        leaves = list(self.leaves)
        for place, kind, value in zip(self._places, self.types, raw, strict=True):
            leaves[place] = from_storage(kind, value)
        return rebuild(self.node, leaves)
