"""Epilogues: functions of the user's that transform the accumulators of a matrix product.

    def bias_relu(acc, bias):
        x = acc + bias.to(cute.Float32)
        return cute.where(x > 0.0, x, 0.0)

An epilogue is static: a function, or an object of a class with `__call__`. It gets part of the
accumulator as a `TensorSSA` and, of the same shape, the elements of each operand at the same
places of C; an operand that is a number is passed as it is. Its result is converted to C's element
type. A kernel may call it several times for a tile, on parts of its own choice, so it works
element by element: `acc` of shape (8) and of shape ((2, 2, 32), 1) mean the same to it. None is
the identity and costs nothing.

Operands are tensors of C's shape; those with fewer elements come through strides of 0
(`per_column`, `per_row`).
"""

from __future__ import annotations

from typing import Any

from basedsl import DSLTypeError, logical_not, with_article
from basedsl_cute import algebra
from basedsl_cute.algebra.int_tuple import flatten_to_tuple
from basedsl_cute.atoms.copy_instruction import predicated
from basedsl_cute.atoms.copy_tensors import autovec_copy
from basedsl_cute.tensors.make_tensor import make_rmem_tensor, make_tensor
from basedsl_cute.tensors.tensor import Tensor
from basedsl_cute.tensors.tensor_ssa import TensorSSA

__all__ = ["apply_epilogue", "is_one_number", "load_operand", "per_column", "per_row"]


def per_column(vector: Tensor, shape: Any) -> Tensor:
    """Return the matrix of `shape` (M, N) or (M, N, L) whose element (m, n, l) is `vector[n]`.

    It is a view with strides 0. Raises DSLTypeError unless `vector` is a tensor of one mode.
    """
    return _stretched(vector, shape, 1)


def per_row(vector: Tensor, shape: Any) -> Tensor:
    """Return the matrix of `shape` (M, N) or (M, N, L) whose element (m, n, l) is `vector[m]`.

    It is a view with strides 0. Raises DSLTypeError unless `vector` is a tensor of one mode.
    """
    return _stretched(vector, shape, 0)


def _stretched(vector: Tensor, shape: Any, mode: int) -> Tensor:
    if not isinstance(vector, Tensor) or algebra.rank(vector.layout) != 1:
        raise DSLTypeError(f"a vector is stretched to a matrix, not {vector}")
    step = vector.stride[0] if isinstance(vector.stride, tuple) else vector.stride
    strides = tuple(step if i == mode else 0 for i in range(len(shape)))
    return make_tensor(vector.iterator, algebra.make_layout(tuple(shape), stride=strides))


def load_operand(part: Tensor, coords: Tensor, bound: Any, inside: Any = None) -> TensorSSA:
    """Load a thread's part of an operand, zero where its coordinate is not below `bound`.

    `coords` are the coordinates of `part`'s elements, of the same shape. `inside` says that all of
    them are below `bound`, for the whole tile: it is read in wide accesses then.
    """
    fragment = make_rmem_tensor(algebra.shape(part.layout), part.element_type)
    if inside is True:
        autovec_copy(part, fragment)
        values: TensorSSA = fragment.load()
        return values
    fragment.fill(0)  # on all paths: what some leave as it was would live on from tile to tile
    if inside is not None:
        with predicated(inside):
            autovec_copy(part, fragment)
    with predicated(None if inside is None else logical_not(inside)):
        for i in range(int(algebra.size(fragment.shape))):
            with predicated(algebra.elem_less(coords[i], bound)):
                fragment[i] = part[i]
    values = fragment.load()
    return values


def is_one_number(operand: Tensor) -> bool:
    """Return True if all strides are 0: the one element there is may be read from any
    coordinate.
    """
    return all(type(d) is int and d == 0 for d in flatten_to_tuple(operand.stride))


def apply_epilogue(op: Any, acc: TensorSSA, operands: Any, dtype: Any) -> TensorSSA:
    """Return `op(acc, *operands)` in C's element type; `op` is None, a function or a callable
    object.

    Raises DSLTypeError for operands without an epilogue, and unless the result is a vector with as
    many elements as `acc`.
    """
    if op is None:
        if operands:
            raise DSLTypeError("epilogue operands without an epilogue", hint="pass epilogue_op=")
        return acc.to(dtype)
    if not callable(op):
        raise DSLTypeError(
            f"an epilogue is a function of the accumulators, not {with_article(type(op))}",
            hint="def relu(acc): return cute.where(acc > 0.0, acc, 0.0)",
        )
    name = getattr(op, "__name__", type(op).__name__)
    result = op(acc, *operands)
    if not isinstance(result, TensorSSA):
        raise DSLTypeError(
            f"the epilogue '{name}' returns {type(result).__name__}, not a TensorSSA",
            hint="it returns a vector of the accumulator's shape",
        )
    if algebra.product(result.shape) != algebra.product(acc.shape):
        raise DSLTypeError(
            f"the epilogue '{name}' makes {result.shape} of an accumulator of {acc.shape}",
            hint="it works element by element: its result has as many elements as the accumulator",
        )
    return result.to(dtype)
