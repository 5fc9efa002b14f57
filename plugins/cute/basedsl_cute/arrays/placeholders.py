"""Placeholders for arguments, to compile before there is data: symbolic shapes, streams."""

from __future__ import annotations

import itertools
from typing import Any

from basedsl import DSLCallError, Numeric
from basedsl_cute.algebra import is_congruent
from basedsl_cute.algebra.dynamic import mul
from basedsl_cute.algebra.explained_calls import explains_arguments
from basedsl_cute.algebra.int_tuple import flatten_to_tuple, unflatten_tuple
from basedsl_cute.hardware.address_space import AddressSpace

_numbers = itertools.count()


class SymInt:
    """A symbolic extent or stride, whose number a call of the compiled function gives.

    One symbol in several places stands for one number. `divisibility` is promised to divide it;
    both are checked at the call. `width` is 32 or 64 bits.
    """

    def __init__(self, divisibility: int = 1, width: int = 32) -> None:
        if type(divisibility) is not int or divisibility < 1:
            raise DSLCallError(f"divisibility must be a positive int, not {divisibility!r}")
        self.divby = divisibility
        self.width = width
        self.name = f"s{next(_numbers)}"

    @property
    def divisibility(self) -> int:
        """The promised divisor."""
        return self.divby

    def __str__(self) -> str:
        return f"?{{div={self.divby}}}" if self.divby > 1 else "?"

    __repr__ = __str__


@explains_arguments
def sym_int(divisibility: int = 1) -> SymInt:
    """Make a new symbol of 32 bits for an extent or a stride; `divisibility` divides it.

    >>> import basedsl_cute as cute
    >>> n = cute.sym_int(divisibility=4)
    >>> cute.runtime.make_fake_compact_tensor(cute.Float32, (n, 8))
    FakeTensor<Float32, (?{div=4},8):(1,?{div=4})>
    """
    return SymInt(divisibility)


def sym_int32(divisibility: int = 1) -> SymInt:
    """Make a new symbol of 32 bits; `divisibility` divides it."""
    return SymInt(divisibility, 32)


def sym_int64(divisibility: int = 1) -> SymInt:
    """Make a new symbol of 64 bits; `divisibility` divides it."""
    return SymInt(divisibility, 64)


class _Derived:
    """A stride that is a product of symbols, of which only the divisor is known."""

    name = None

    def __init__(self, divby: int, width: int) -> None:
        self.divby = divby
        self.width = width

    def __str__(self) -> str:
        return f"?{{div={self.divby}}}" if self.divby > 1 else "?"


class FakeTensor:
    """A tensor argument without data: element type, memory space, shape and stride.

    Shape and stride are ints and symbols and may be nested: arrays that the compiled function is
    called with have a mode for each leaf.
    """

    __dsl_leaf__ = True

    def __init__(
        self, dtype: Any, shape: tuple[Any, ...], stride: tuple[Any, ...], space: str, align: int
    ) -> None:
        self.element_type = self.dtype = dtype
        self.shape = shape
        self.stride = stride
        self.memspace = AddressSpace(space)
        self.align = align

    def __str__(self) -> str:
        return f"FakeTensor<{self.dtype.__name__}, {_text(self.shape)}:{_text(self.stride)}>"

    __repr__ = __str__


class FakeStream:
    """A stream argument without a stream. With `implicit`, calls leave the argument out."""

    def __init__(self, implicit: bool = False) -> None:
        self.implicit = implicit

    def __cuda_stream__(self) -> tuple[int, int]:
        return (0, 0)


@explains_arguments
def make_fake_tensor(
    dtype: Any,
    shape: Any,
    stride: Any,
    *,
    memspace: Any = AddressSpace.gmem,
    assumed_align: int | None = None,
) -> FakeTensor:
    """Make a placeholder for a tensor argument of `cute.compile`.

    `dtype` is a numeric class; `shape` and `stride` (in elements) are congruent nested tuples of
    ints and symbols (`cute.sym_int()`); `memspace` is an `AddressSpace`; `assumed_align` a promised
    alignment in bytes, by default that of an element. Raises DSLCallError for other leaves and for
    shape and stride that differ in nesting.
    """
    shape, stride = _checked_leaves(shape, "shape"), _checked_leaves(stride, "stride")
    if not is_congruent(shape, stride):
        raise DSLCallError(f"shape {shape} and stride {stride} differ in rank or nesting")
    natural = max(1, _checked(dtype).width // 8)
    return FakeTensor(dtype, shape, stride, str(memspace), max(assumed_align or 1, natural))


@explains_arguments
def make_fake_compact_tensor(
    dtype: Any,
    shape: Any,
    stride_order: Any = None,
    *,
    memspace: Any = AddressSpace.gmem,
    assumed_align: int | None = None,
) -> FakeTensor:
    """Make a placeholder for a compact tensor argument of `cute.compile`, with derived strides.

    `dtype` is the element type, `shape` the static or symbolic extents, `memspace` the address
    space, and `assumed_align` the alignment in bytes that calls promise.
    `stride_order` numbers the modes from the fastest (0) on; by default the first is the fastest.
    Nested modes are numbered by their leaves. The other parameters are those of `make_fake_tensor`.
    Raises DSLCallError for other leaves and for an order that does not number the modes.
    """
    profile = _checked_leaves(shape, "shape")
    shape = flatten_to_tuple(profile)
    order = tuple(range(len(shape)))
    if stride_order is not None:
        order = flatten_to_tuple(_as_tuples(stride_order))
    if sorted(order) != list(range(len(shape))):
        raise DSLCallError(f"stride_order={order} does not number the modes of {profile}")
    stride: list[Any] = [None] * len(shape)
    step, divby, width = 1, 1, 0
    for mode in sorted(range(len(shape)), key=lambda i: order[i]):
        stride[mode] = step if not width else _Derived(divby, width)
        extent = shape[mode]
        divby *= extent.divby if isinstance(extent, SymInt) else max(extent, 1)
        if isinstance(extent, SymInt):
            width = max(width, extent.width)
        elif not width:
            step = mul(step, extent)
    return make_fake_tensor(
        dtype,
        profile,
        unflatten_tuple(tuple(stride), profile),
        memspace=memspace,
        assumed_align=assumed_align,
    )


@explains_arguments
def make_fake_stream(use_tvm_ffi_env_stream: bool = False) -> FakeStream:
    """Make a placeholder for a stream argument of `cute.compile`.

    With `use_tvm_ffi_env_stream`, calls of the compiled function leave the stream out and run on
    PyTorch's current stream, or on the default stream where PyTorch is not loaded.
    """
    return FakeStream(implicit=use_tvm_ffi_env_stream)


def _checked_leaves(x: Any, what: str) -> tuple[Any, ...]:
    """The shape or stride as nested tuples of ints and symbols; DSLCallError for other leaves."""
    x = _as_tuples(x)
    for leaf in flatten_to_tuple(x):
        if type(leaf) is not int and not isinstance(leaf, SymInt | _Derived):
            raise DSLCallError(
                f"{what} of a fake tensor: {leaf!r} is neither an int nor a symbol",
                hint="for instance cute.sym_int()",
            )
    return x if isinstance(x, tuple) else (x,)


def _as_tuples(x: Any) -> Any:
    return tuple(map(_as_tuples, x)) if isinstance(x, tuple | list) else x


def _text(x: Any) -> str:
    return f"({','.join(map(_text, x))})" if isinstance(x, tuple) else str(x)


def _checked(dtype: Any) -> Any:
    if not (isinstance(dtype, type) and issubclass(dtype, Numeric)):
        raise DSLCallError(f"an element type is expected, not {dtype!r}")
    return dtype
