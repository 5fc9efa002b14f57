"""The width of the accesses of elementwise and row kernels, computed while compiling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from basedsl_cute.algebra import divisibility
from basedsl_cute.tensors.pointer import storage_bits

ACCESS_BITS = 128  # the widest access of one thread


def common_vector(tensors: Sequence[Any], mode: int, *, whole: bool = False) -> int:
    """Return the most elements along `mode` that all `tensors` can access at once, a power of two.

    They are at most 16 bytes of the narrowest element type. In every tensor each such group lies
    at an address that is a multiple of its size, or of 16 bytes where it is larger. With `whole`,
    they divide the extent of `mode` too. Tensors of one mode are read along it, whatever `mode`
    says.
    """
    vector = max(ACCESS_BITS // storage_bits(x.element_type) for x in tensors)
    while vector > 1 and not all(_fits(x, mode, vector, whole) for x in tensors):
        vector //= 2
    return vector


def _fits(x: Any, mode: int, vector: int, whole: bool) -> bool:
    width = storage_bits(x.element_type)
    elements = min(vector, ACCESS_BITS // width)  # of one access
    if x.iterator.alignment * 8 % (elements * width):
        return False
    shape, stride = _modes(x.shape), _modes(x.stride)
    along = mode if len(stride) > 1 else 0
    if type(stride[along]) is not int or stride[along] != 1:
        return False
    if whole and divisibility(shape[along]) % vector:
        return False
    return all(divisibility(d) % elements == 0 for i, d in enumerate(stride) if i != along)


def _modes(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)
