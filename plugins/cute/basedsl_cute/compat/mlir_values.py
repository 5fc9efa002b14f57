"""The SSA values in a tree of numbers, tensors and objects, taken out and put back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from basedsl import Numeric, flatten, rebuild
from basedsl_cute.dsl.cute import CUTE


def extract_mlir_values(value: Any) -> list[Any]:
    """Return the SSA values in the tree `value`, in order.

    A tree is a number, a tensor, or a tuple, list, dict or object of trees.
    """
    return [leaf.ir_value() for leaf in flatten(value)[1] if _is_dynamic(leaf)]


def new_from_mlir_values(value: Any, values: Sequence[Any]) -> Any:
    """A tree like `value` with other SSA values, as many as `extract_mlir_values` returns."""
    node, leaves = flatten(value)
    new = iter(values)
    return rebuild(node, [_with(leaf, next(new)) if _is_dynamic(leaf) else leaf for leaf in leaves])


def _is_dynamic(leaf: Any) -> bool:
    if isinstance(leaf, Numeric):
        return leaf.is_dynamic
    return hasattr(type(leaf), "with_ir_value")


def _with(leaf: Any, value: Any) -> Any:
    return type(leaf).from_value(value) if isinstance(leaf, Numeric) else leaf.with_ir_value(value)


def is_dynamic_expression(value: Any) -> bool:
    """Return whether the tree `value` has a value that is known at run time only."""
    return any(_is_dynamic(leaf) for leaf in flatten(value)[1])


def get_mlir_types(value: Any) -> list[Any]:
    """Return the MLIR types of the Python object `value`: those of its SSA values, what its method
    `__get_mlir_types__` says, or those that it becomes as an argument.
    """
    values = [leaf for leaf in flatten(value)[1] if _is_dynamic(leaf)]
    if values:
        return [one.ir_value().type for one in values]
    if hasattr(value, "__get_mlir_types__"):
        return list(value.__get_mlir_types__())
    return CUTE.ir_types(value)


def get_c_pointers(value: Any) -> list[Any]:
    """Return the list that `__c_pointers__` of the argument `value` gives; an empty one where it
    has no such method.
    """
    return list(value.__c_pointers__()) if hasattr(value, "__c_pointers__") else []
