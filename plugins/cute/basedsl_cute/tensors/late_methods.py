"""Methods of tensors that need vectors: `load`, `store` and `fill`.

The package imports this module last, so that `tensor` imports nothing back up.
"""

from __future__ import annotations

from typing import Any

from basedsl import DSLTypeError, with_article
from basedsl_cute import algebra
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.tensors.pointer import as_element, same_bits
from basedsl_cute.tensors.tensor import Tensor, same_extents
from basedsl_cute.tensors.tensor_ssa import TensorSSA, full
from basedsl_cute.tensors.vectorized_access import load_vector, static_outer, store_vector


def load(self: Tensor) -> TensorSSA:
    """Load all elements as a vector, a `TensorSSA` of the tensor's shape and element type.

    The accesses are the widest, up to 16 bytes, that contiguity and alignment prove. Raises
    DSLTypeError for a dynamic shape, and for one without elements.

    >>> import basedsl_cute as cute
    >>> @cute.kernel
    ... def double(x: cute.Tensor):
    ...     x.store(x.load() * 2)
    """
    return TensorSSA(load_vector(self), self.shape, self.element_type)


def store(self: Tensor, value: TensorSSA) -> None:
    """Store all elements from `value`, a vector of the same shape and element type.

    A signed integer also takes the unsigned one of its width, and the reverse: the bits are stored.

    The accesses are the widest, up to 16 bytes, that contiguity and alignment prove. Raises
    DSLTypeError for another shape or element type, and for anything but a `TensorSSA`.
    """
    if not isinstance(value, TensorSSA):
        raise DSLTypeError(
            f"store() takes a vector, got {with_article(type(value))}",
            hint="t.fill(x) for numbers",
        )
    if value.dtype is not self.element_type and not same_bits(value.dtype, self.element_type):
        raise DSLTypeError(
            f"a vector of {value.dtype.__name__} is stored into a tensor of "
            f"{self.element_type.__name__}",
            hint=f"convert it with .to({self.element_type.__name__})",
        )
    if not same_extents(value.shape, self.shape):
        raise DSLTypeError(
            f"a vector of shape {value.shape} is stored into a tensor of shape {self.shape}",
            hint="x.broadcast_to(shape) stretches, x.reshape(shape) keeps the order",
        )
    store_vector(self, value.ir_value())


def fill(self: Tensor, value: Any) -> None:
    """Set all elements to `value`: a Python number, or one of the element type.

    Raises DSLTypeError for a dynamic shape or a number of another type.
    """
    number = as_element(self.element_type, value)
    if algebra.size(static_outer(self).shape) == 0:
        return
    store_vector(self, full(self.shape, number, self.element_type).ir_value())


for _method in (load, store, fill):
    _method.__qualname__ = f"{Tensor.__qualname__}.{_method.__name__}"
    setattr(Tensor, _method.__name__, takes_location(_method))
