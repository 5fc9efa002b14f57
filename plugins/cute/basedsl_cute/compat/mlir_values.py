"""The SSA values in a tree of numbers, tensors and objects, taken out and put back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from basedsl import DSLTypeError, Numeric, as_numeric, flatten, rebuild
from basedsl_cute.dsl.cute import CUTE


def extract_mlir_values(value: Any) -> list[Any]:
    """Return the SSA values in the tree `value`, in order.

    A tree is a number, a tensor, or a tuple, list, dict or object of trees.
    """
    return [leaf.ir_value() for leaf in flatten(value)[1] if _is_dynamic(leaf)]


def new_from_mlir_values(value: Any, values: Sequence[Any]) -> Any:
    """A tree like `value` with other SSA values: as many as `extract_mlir_values` returns, or one
    for each number too that is static in `value`, as `get_mlir_types` counts them. Raises
    DSLTypeError for another number of values.
    """
    node, leaves = flatten(value)
    replaced = [leaf for leaf in leaves if _is_dynamic(leaf)]
    if len(values) != len(replaced):
        replaced = [leaf for leaf in leaves if _is_dynamic(leaf) or _is_number(leaf)]
    if len(values) != len(replaced):
        raise DSLTypeError(
            f"new_from_mlir_values() gets {len(values)} values for {len(replaced)} numbers"
        )
    new = iter(values)
    chosen = {id(leaf) for leaf in replaced}
    made = [_with(leaf, next(new)) if id(leaf) in chosen else leaf for leaf in leaves]
    return rebuild(node, made)


def _is_number(leaf: Any) -> bool:
    return isinstance(leaf, Numeric | int | float)


def _is_dynamic(leaf: Any) -> bool:
    if isinstance(leaf, Numeric):
        return leaf.is_dynamic
    return hasattr(type(leaf), "with_ir_value")


def _with(leaf: Any, value: Any) -> Any:
    if _is_number(leaf):
        leaf = as_numeric(leaf)
        return type(leaf).from_value(value)
    return leaf.with_ir_value(value)


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
    if hasattr(value, "__get_mlir_types__") and not isinstance(value, Numeric):
        return list(value.__get_mlir_types__())
    return CUTE.ir_types(value)


def get_c_pointers(value: Any) -> list[Any]:
    """Return the list that `__c_pointers__` of the argument `value` gives, or of a number, static
    in a host program, the address of its C storage; an empty one for other objects.
    """
    if isinstance(value, Numeric) and value.is_dynamic:
        return []
    if hasattr(value, "__c_pointers__"):
        return list(value.__c_pointers__())
    return []
