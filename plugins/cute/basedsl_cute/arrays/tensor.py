"""Host tensors and pointers: arguments with the facts that compiled code depends on.

`from_dlpack(x)` makes a tensor of static shape and strides, which can be marked dynamic. Further
promises (alignment, divisibility) are checked against the array at once.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from typing import Any

from basedsl import ArrayRecord, DSLCallError, Numeric
from basedsl import from_dlpack as numeric_of
from basedsl_cute.algebra import Dyn, Layout
from basedsl_cute.algebra.explained_calls import explains_arguments
from basedsl_cute.arrays.record import record_of
from basedsl_cute.hardware.address_space import AddressSpace

STATIC = 0  # in place of a divisor: the leaf is static


class StandsForItself:
    """A base of arguments that can be parts of objects with CuTe's protocol: see `jit_protocol`."""

    def __c_pointers__(self) -> list[Any]:
        return [self]

    def __get_mlir_types__(self) -> list[Any]:
        return [self]

    def __new_from_mlir_values__(self, values: Sequence[Any]) -> Any:
        (traced,) = values
        return traced


class HostTensor(StandsForItself):
    """A host tensor: an array as an argument of a `@jit` function. See `from_dlpack`.

    `host` is the record of the array, `align` the promised alignment of its address in bytes (None
    for the size of an element), and with `narrow` dynamic extents and strides are 32-bit numbers.
    `shape_divisors` and `stride_divisors` have for each mode the promised divisor of a dynamic
    number, or `STATIC`.
    """

    __dsl_leaf__ = True

    def __init__(self, host: ArrayRecord, align: int | None, narrow: bool) -> None:
        self.host = host
        self.narrow = narrow
        self._dtype = numeric_of(*host.dtype)
        rank = len(host.shape)
        self.shape_divisors = [STATIC] * rank
        self.stride_divisors = [STATIC] * rank
        self.align = _checked_align(align, host.address, self._dtype)
        self.argument: Any = None  # cached by `host.tensor_argument`
        self.packed: Any = None  # likewise

    # What it is ---------------------------------------------------------------------------------

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents of the array."""
        return self.host.shape

    @property
    def stride(self) -> tuple[int, ...]:
        """The strides of the array, in elements."""
        return self.host.strides

    @property
    def layout(self) -> Layout:
        """The layout in compiled code, which prints `?` for what is dynamic."""
        return Layout(
            _seen(self.host.shape, self.shape_divisors),
            _seen(self.host.strides, self.stride_divisors),
        )

    @property
    def element_type(self) -> type[Numeric]:
        """The element type. Setting it reinterprets the bytes as another type of the same width;
        DSLCallError for another width.
        """
        return self._dtype

    @element_type.setter
    def element_type(self, dtype: type[Numeric]) -> None:
        if not (isinstance(dtype, type) and issubclass(dtype, Numeric)):
            raise DSLCallError(f"element_type is a numeric type, not {dtype!r}")
        if _bits(dtype) != _bits(self._dtype):
            raise DSLCallError(
                f"elements of {self._dtype.__name__} take {_bits(self._dtype)} bits, those of "
                f"{dtype.__name__} {_bits(dtype)}"
            )
        self._dtype = dtype
        self.argument = None

    dtype = element_type

    @property
    def memspace(self) -> AddressSpace:
        """The address space: global memory."""
        return AddressSpace.gmem

    @property
    def data_ptr(self) -> int:
        """The address of the first element."""
        return self.host.address

    @property
    def iterator(self) -> HostPointer:
        """A host pointer to the first element."""
        return HostPointer(self._dtype, self.host.address, "gmem", self.align, _span(self.host))

    @property
    def leading_dim(self) -> int | None:
        """The mode of stride 1; None if there is none, or several with an extent over 1."""
        units = _units(self.host)
        return units[0] if len(units) == 1 else None

    def __str__(self) -> str:
        place = f"gmem, align<{self.align}>"
        return f"Tensor<{self._dtype.__name__}, {place}, {self.layout}>"

    __repr__ = __str__

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any:
        return self._owner().__dlpack__(*args, **kwargs)

    def __dlpack_device__(self) -> Any:
        return self._owner().__dlpack_device__()

    def _owner(self) -> Any:
        owner = self.host.owner
        return owner[0] if isinstance(owner, tuple) else owner

    # Marks --------------------------------------------------------------------------------------

    def mark_layout_dynamic(self, leading_dim: int | None = None) -> HostTensor:
        """Make all extents dynamic, and all strides except those of 0 and that of the leading mode,
        which is 1. Returns this tensor.

        Without `leading_dim` the leading mode is the one of stride 1, or among several the only one
        with an extent over 1; if there is none, every stride is dynamic. Raises DSLCallError where
        the leading mode is ambiguous, or `leading_dim` has another stride.

        >>> import numpy as np
        >>> from basedsl_cute.runtime import from_dlpack
        >>> from_dlpack(np.zeros((4, 8), np.float32)).mark_layout_dynamic().layout
        (?,?):(?,1)
        """
        shape, strides = self.host.shape, self.host.strides
        rank = len(shape)
        if leading_dim is None:
            units = _units(self.host)
            if len(units) > 1:
                raise DSLCallError(
                    f"the leading mode of {shape}:{strides} is ambiguous: modes {units} have "
                    "stride 1",
                    hint="pass leading_dim=",
                )
            leading = units[0] if units else None
        else:
            leading = _mode(leading_dim, rank, "leading_dim")
            if strides[leading] != 1:
                raise DSLCallError(
                    f"leading_dim={leading_dim} has stride {strides[leading]}, not 1, in "
                    f"{shape}:{strides}"
                )
        self.shape_divisors = [d or 1 for d in self.shape_divisors]
        self.stride_divisors = [
            STATIC if i == leading or stride == 0 else self.stride_divisors[i] or 1
            for i, stride in enumerate(strides)
        ]
        self.argument = None
        return self

    def mark_compact_shape_dynamic(
        self, mode: int, stride_order: Any = None, divisibility: int = 1
    ) -> HostTensor:
        """Make the extent of mode `mode` of a compact tensor dynamic, with the strides that depend
        on it. Returns this tensor.

        `divisibility` is promised to divide the extent. `stride_order` lists the modes from slowest
        to fastest, as PyTorch's `dim_order()`; it can be left out where the strides determine it.
        Raises DSLCallError for a tensor that is not compact in this order, an ambiguous order, and
        an extent that `divisibility` does not divide.

        >>> import numpy as np
        >>> from basedsl_cute.runtime import from_dlpack
        >>> x = from_dlpack(np.zeros((4, 8), np.float32))
        >>> x.mark_compact_shape_dynamic(mode=1, divisibility=4).layout
        (4,?{div=4}):(?{div=4},1)
        """
        shape, strides = self.host.shape, self.host.strides
        place = _mode(mode, len(shape), "mode")
        if type(divisibility) is not int or divisibility < 1:
            raise DSLCallError(f"divisibility must be a positive int, not {divisibility!r}")
        if shape[place] % divisibility:
            raise DSLCallError(
                f"the extent {shape[place]} of mode {mode} is no multiple of {divisibility}"
            )
        order = _stride_order(shape, strides, stride_order, place)
        _check_compact(shape, strides, order)
        self.shape_divisors[place] = math.lcm(self.shape_divisors[place] or 1, divisibility)
        step, dynamic = 1, False
        for i in reversed(order):  # from fastest to slowest
            if dynamic:
                self.stride_divisors[i] = step
            divisor = self.shape_divisors[i]
            step *= divisor or max(1, shape[i])
            dynamic = dynamic or divisor != STATIC
        self.argument = None
        return self


class HostPointer(StandsForItself):
    """A host pointer: an address as an argument of a `@jit` function. See `make_ptr`.

    The element type `dtype`, the address `space` ("gmem", ...) and the alignment `align`, in bytes,
    are static. `num_bytes` is the size of the memory, None if it is not known.
    """

    __dsl_leaf__ = True

    def __init__(
        self, dtype: Any, address: int, space: str, align: int, num_bytes: int | None = None
    ) -> None:
        self.dtype = dtype
        self.address = address
        self.space = space
        self.align = align
        self.num_bytes = num_bytes

    value_type = element_type = property(lambda self: self.dtype)

    @property
    def memspace(self) -> AddressSpace:
        """The address space."""
        return AddressSpace(self.space)

    @property
    def alignment(self) -> int:
        """The promised alignment, in bytes."""
        return self.align

    def __int__(self) -> int:
        return self.address

    def __str__(self) -> str:
        return f"Ptr<{self.address:#x}, {self.dtype.__name__}, {self.space}, align<{self.align}>>"

    __repr__ = __str__


@explains_arguments
def from_dlpack(
    tensor: Any,
    assumed_align: int | None = None,
    use_32bit_stride: bool = False,
    enable_tvm_ffi: bool = False,
) -> HostTensor:
    """Make a host tensor of static shape and strides over an array's memory; nothing is copied.

    `tensor` is an array of NumPy, PyTorch, CuPy or JAX, or any object with `__dlpack__`.
    `assumed_align` promises an alignment in bytes, a power of two, which is checked against the
    address; by default it is the element size. `use_32bit_stride` passes dynamic extents and
    strides as 32-bit numbers; by default the size of the array decides. `enable_tvm_ffi` has no
    effect: calls are always checked natively.

    Raises DSLTypeError for what is no array or has no supported element type, DSLCallError for an
    address without the promised alignment, or offsets that do not fit 32 bits.

    >>> import numpy as np
    >>> from basedsl_cute.runtime import from_dlpack
    >>> from_dlpack(np.zeros((4, 8), np.float32))
    Tensor<Float32, gmem, align<4>, (4,8):(8,1)>
    """
    made = HostTensor(record_of(tensor), assumed_align, use_32bit_stride)
    if use_32bit_stride and reaches_beyond_32_bits(made.host.shape, made.host.strides):
        raise DSLCallError(
            f"use_32bit_stride: offsets in {made.shape}:{made.stride} do not fit 32 bits"
        )
    return made


@explains_arguments
def make_ptr(
    dtype: Any,
    value: Any,
    mem_space: Any = AddressSpace.generic,
    assumed_align: int | None = None,
    *,
    num_bytes: int | None = None,
) -> HostPointer:
    """Make a host pointer to elements of `dtype` at an address: an argument of `@jit` functions.

    `value` is an int, a ctypes pointer or a ctypes array; `mem_space` an `AddressSpace`;
    `assumed_align` a promised alignment in bytes, which is checked, by default the element size.
    `num_bytes` is the size of the memory, which only the simulator needs: it finds the size itself
    if a variable of a caller refers to the array. Raises DSLCallError for other values, types and
    alignments.
    """
    if not (isinstance(dtype, type) and issubclass(dtype, Numeric)):
        raise DSLCallError(f"make_ptr takes an element type, not {dtype!r}")
    if isinstance(value, int):
        address = value
    elif isinstance(value, ctypes.Array):
        address = ctypes.addressof(value)
        num_bytes = ctypes.sizeof(value) if num_bytes is None else num_bytes
    elif isinstance(value, ctypes._Pointer | ctypes.c_void_p):
        address = ctypes.cast(value, ctypes.c_void_p).value or 0
    else:
        raise DSLCallError(
            f"make_ptr takes an address, got {type(value).__name__}",
            hint="an int (x.data_ptr(), x.ctypes.data) or a ctypes pointer",
        )
    align = _checked_align(assumed_align, address, dtype)
    return HostPointer(dtype, address, AddressSpace(str(mem_space)).value, align, num_bytes)


def reaches_beyond_32_bits(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """True if an offset, an extent, a stride or the number of coordinates does not fit 31 bits.
    The stride of an extent-1 mode counts as well: it moves nothing, but code can read it. Where
    elements share memory there are more coordinates than offsets. An extent of 0 leaves the others
    to be multiplied: code may ask for the size of some modes.
    """
    furthest, size = 0, 1
    for n, d in zip(shape, strides, strict=True):
        if n >= 2**31 or abs(d) >= 2**31:
            return True
        if n:
            furthest += (n - 1) * abs(d)
            size *= n
    return furthest >= 2**31 or size >= 2**31


def _checked_align(align: int | None, address: int, dtype: Any) -> int:
    natural: int = max(1, dtype.width // 8)
    if align is None:
        return natural
    if type(align) is not int or align < 1 or align & (align - 1):
        raise DSLCallError(
            f"assumed_align is a power of two of bytes, not {align!r}",
            hint="16 allows vectors of 128 bits; without it, the size of an element is assumed",
        )
    if address % align:
        raise DSLCallError(
            f"assumed_align={align}: the address {address:#x} is only aligned to "
            f"{address & -address} bytes"
        )
    return max(align, natural)


def _seen(values: tuple[int, ...], divisors: list[int]) -> tuple[Any, ...]:
    return tuple(v if d == STATIC else Dyn(divby=d) for v, d in zip(values, divisors, strict=True))


def _units(host: ArrayRecord) -> list[int]:
    units = [i for i, d in enumerate(host.strides) if d == 1]
    if len(units) > 1:
        units = [i for i in units if host.shape[i] > 1] or units
    return units


def _mode(mode: Any, rank: int, what: str) -> int:
    if type(mode) is not int or not -rank <= mode < rank:
        raise DSLCallError(f"{what}={mode!r} is no mode of a tensor of rank {rank}")
    return mode % rank


def _stride_order(
    shape: tuple[int, ...], strides: tuple[int, ...], given: Any, marked: int
) -> tuple[int, ...]:
    """The modes from slowest to fastest; DSLCallError where modes of extent 1 leave it open."""
    rank = len(shape)
    if given is not None:
        order = tuple(given)
        if sorted(order) != list(range(rank)):
            raise DSLCallError(f"stride_order={order} does not list the modes 0 to {rank - 1}")
        return order
    ones = [i for i, n in enumerate(shape) if n == 1]
    if rank > 1 and (len(ones) > 1 or marked in ones):
        raise DSLCallError(
            f"the order of the strides of {shape}:{strides} is ambiguous: modes {ones} have "
            "extent 1",
            hint="pass stride_order=, the modes from slowest to fastest",
        )
    return tuple(sorted(range(rank), key=lambda i: 0 if i in ones else -abs(strides[i])))


def _check_compact(
    shape: tuple[int, ...], strides: tuple[int, ...], order: tuple[int, ...]
) -> None:
    if 0 in shape:  # without elements, strides mean nothing
        return
    step = 1
    for i in reversed(order):
        if shape[i] != 1 and strides[i] != step:
            raise DSLCallError(
                f"{shape}:{strides} is not compact: mode {i} has stride {strides[i]}, not {step}",
                notes=((f"the order of the modes is {order}, from slowest to fastest", None),),
            )
        step *= shape[i]


def _bits(dtype: Any) -> int:
    return 8 if dtype.width < 8 else int(dtype.width)


def _span(host: ArrayRecord) -> int | None:
    if any(d < 0 for d in host.strides) or 0 in host.shape:
        return None
    last = sum((n - 1) * d for n, d in zip(host.shape, host.strides, strict=True))
    return (last + 1) * max(1, host.dtype[1] // 8)
