"""`vector`: operations on vectors that programs of CuTe's experimental primitives use."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from basedsl import DSLTypeError
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.tensors.print_tensor import print_tensor
from basedsl_cute.tensors.tensor_ssa import TensorSSA

Vector = TensorSSA


@takes_location
def from_elements(elements: Sequence[Any], shape: Any = None, dtype: Any = None) -> TensorSSA:
    """Return the vector of these numbers, of one type: `TensorSSA.from_elements`."""
    return TensorSSA.from_elements(elements, shape, dtype)


@takes_location
def outerproduct(lhs: TensorSSA, rhs: TensorSSA, acc: TensorSSA | None = None) -> TensorSSA:
    """Return the products of all pairs of elements, `lhs[i] * rhs[j]` at (i, j), plus `acc` if
    given. Raises DSLTypeError unless both are vectors with one mode.
    """
    for x in (lhs, rhs):
        if not isinstance(x, TensorSSA) or (isinstance(x.shape, tuple) and len(x.shape) != 1):
            raise DSLTypeError(f"outerproduct takes two vectors with one mode, got {x}")
    column: Any = lhs.reshape((lhs.size, 1))
    product: Any = column * rhs.reshape((1, rhs.size))
    total: TensorSSA = product if acc is None else product + acc
    return total


@takes_location
def print_nd_vector(vector: TensorSSA) -> None:
    """Print the elements of a vector when the code runs."""
    print_tensor(vector)


__all__ = ["Vector", "from_elements", "outerproduct", "print_nd_vector"]
