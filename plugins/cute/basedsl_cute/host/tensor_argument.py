"""The argument types of arrays and pointers: the parts known while compiling, and those passed.

A plain array has a dynamic layout: shape and strides are passed at run time, but the unit stride of
the contiguous mode is static. `runtime.from_dlpack` makes layouts static, or dynamic with known
divisors. Extents and strides are 32-bit where every offset fits 31 bits, else 64-bit; each of the
two compiles its own code.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from basedsl import (
    ArgumentType,
    ArrayRecord,
    CParameter,
    DSLCallError,
    Int32,
    Int64,
    Numeric,
    Unpacker,
    current_trace,
    from_dlpack,
)
from basedsl_cute import algebra
from basedsl_cute.algebra import repeat_like
from basedsl_cute.algebra.int_tuple import flatten_to_tuple, unflatten_tuple
from basedsl_cute.arrays.address_owner import owner_of
from basedsl_cute.arrays.placeholders import FakeTensor, SymInt
from basedsl_cute.arrays.record import record_of
from basedsl_cute.arrays.tensor import HostPointer, HostTensor, reaches_beyond_32_bits
from basedsl_cute.arrays.unpack import as_bytes, slots_unpacker, tensor_unpacker
from basedsl_cute.device.detect import detect
from basedsl_cute.dialect.cute_trace import cute_trace
from basedsl_cute.tensors.pointer import RUN, Pointer, element_bytes, memref_type, storage_bits
from basedsl_cute.tensors.tensor import DeclaredTensor, Tensor

MAX_ALIGN = 16  # the widest access of one thread, in bytes
_ON_SOME_GPU = "cuda"  # the device of a placeholder: any GPU


@dataclass(frozen=True)
class TensorArgument(ArgumentType):
    """The argument type of a tensor.

    In `shape` and `stride` (in elements), None is a leaf that is known at run time. `divisors` and
    `symbols` have one item for each such leaf, or none: a number that divides it, and its name;
    leaves of equal names are equal. `profile` is the nesting of the modes in the kernel, None for
    one mode for each leaf. `align` is the alignment of the address in bytes; `wide` means 64-bit
    extents and strides.
    """

    dtype: Any
    space: str
    shape: tuple[int | None, ...]
    stride: tuple[int | None, ...]
    align: int
    wide: bool
    device: str
    writable: bool = True
    name: str = field(default="", compare=False)
    divisors: tuple[int, ...] = ()
    symbols: tuple[str | None, ...] = ()
    profile: Any = None

    address_places = (0,)

    @property
    def storage(self) -> tuple[str, ...]:
        return ("Q",) + (("q",) if self.wide else ("i",)) * self._dynamic_leaves

    @property
    def _dynamic_leaves(self) -> int:
        return sum(leaf is None for leaf in (*self.shape, *self.stride))

    @property
    def _divisors(self) -> tuple[int, ...]:
        return self.divisors or (1,) * self._dynamic_leaves

    def ir_types(self, ir: Any) -> list[Any]:
        trace = current_trace("a tensor argument")
        integer = ir.IntegerType.get_signless(64 if self.wide else 32)
        memref = memref_type(trace, self.dtype, self.space, self.layout_text, self.align)
        return [memref, *[integer] * self._dynamic_leaves]

    @property
    def layout_text(self) -> str:
        divisors = iter(self._divisors)

        def leaf(x: int | None) -> str:
            if x is not None:
                return str(x)
            divisor = next(divisors)
            return f"?{{div={divisor}}}" if divisor > 1 else "?"

        def text(x: Any) -> str:
            return f"({','.join(map(text, x))})" if isinstance(x, tuple) else leaf(x)

        return f"{text(self._nested(self.shape))}:{text(self._nested(self.stride))}"

    def _nested(self, leaves: tuple[Any, ...]) -> Any:
        return leaves if self.profile is None else unflatten_tuple(leaves, self.profile)

    def proxy(self, values: Sequence[Any]) -> Tensor:
        if self.device != "cpu":
            cute_trace(current_trace("a tensor argument")).on_gpu = self.name
        if not self.writable:
            cute_trace(current_trace("a tensor argument")).read_only.append((values[0], self.name))
        integer = Int64 if self.wide else Int32
        symbols = self.symbols or (None,) * self._dynamic_leaves
        numbers = iter(
            [
                _same_symbol(integer.from_value(value), symbol, self.name).with_divby(divisor)
                for value, divisor, symbol in zip(values[1:], self._divisors, symbols, strict=True)
            ]
        )

        def fill(leaves: tuple[int | None, ...]) -> Any:
            return tuple(next(numbers) if x is None else x for x in leaves)

        shape = fill(self.shape)
        stride = fill(self.stride)
        pointer = Pointer(self.dtype, self.space, self.align, values[0])
        return Tensor(pointer, algebra.Layout(self._nested(shape), self._nested(stride)))

    def pack(self, value: Any) -> tuple[Any, ...]:
        host = host_tensor(value)
        leaves = [
            actual
            for static, actual in zip(
                (*self.shape, *self.stride), (*host.shape, *host.strides), strict=True
            )
            if static is None
        ]
        return (host.data_address(self.name), *leaves)

    def unpacker(self) -> Unpacker | None:
        """Return the native form of `pack` for values of exactly this type."""
        leading = self.stride.index(1) if 1 in self.stride else None
        vector = _row_vector(self.dtype, len(self.shape), leading)
        divisor = vector if self.divisors else 1
        device, writable = self.device, self.writable
        plain = _plain(
            self.dtype, len(self.shape), leading, divisor, self.align, self.wide, device, writable
        )

        def make(value: Any) -> bytes | None:
            fits = tensor_argument(value, None, self.name) == self
            return self._bytes(value) if fits else None

        pack = _keeping(make)
        if self != plain:
            return slots_unpacker(self.storage, pack)
        return tensor_unpacker(self, pack, exact=True, leading=leading, vector=vector)

    def accepting_unpacker(self) -> Unpacker | None:
        """Return the native form of `pack` for values that `accepts` takes."""

        def make(value: Any) -> bytes | None:
            return self._bytes(value) if self.accepts(value, self.name) else None

        return tensor_unpacker(self, _keeping(make))

    def _bytes(self, value: Any) -> bytes:
        return as_bytes(self.storage, self.pack(value))

    def accepts(self, value: Any, name: str) -> bool:
        """Return True if code compiled for this type may be called with `value`. If not, raises
        DSLCallError, which names the first violated property.
        """
        host = host_tensor(value, name)
        dtype = value.element_type if isinstance(value, HostTensor) else None
        problem = self._violated(host, dtype or from_dlpack(*host.dtype))
        if problem is not None:
            hint = "pass an array like the one it was compiled for, or compile again"
            if "no multiple" in problem:
                hint += "; compiled with from_dlpack(x).mark_layout_dynamic() it takes any strides"
            raise DSLCallError(f"'{name}' was compiled as {self}; {problem}", hint=hint)
        return True

    def _violated(self, host: ArrayRecord, dtype: Any) -> str | None:
        if dtype is not self.dtype:
            return f"the elements are {dtype.__name__}"
        if len(host.shape) != len(self.shape):
            return f"it has {len(host.shape)} mode(s)"
        divisors = iter(self._divisors)
        for what, known, actual in (
            ("the extent", self.shape, host.shape),
            ("the stride", self.stride, host.strides),
        ):
            for mode, (static, number) in enumerate(zip(known, actual, strict=True)):
                divisor = 1 if static is not None else next(divisors)
                matters = what == "the extent" or host.shape[mode] > 1
                if static is not None and static != number and matters:
                    return f"{what} of mode {mode} is {number}, not {static}"
                if number % divisor and matters:
                    return f"{what} {number} of mode {mode} is no multiple of {divisor}"
        if host.address % self.align:
            return f"its address {host.address:#x} is not aligned to {self.align} bytes"
        if not self.wide and reaches_beyond_32_bits(host.shape, host.strides):
            return "its offsets do not fit 32 bits"
        device = host.device_name
        if device != self.device and not (self.device == _ON_SOME_GPU and host.is_on_gpu):
            return f"it is on {device}"
        if self.writable and host.readonly:
            return "it is read-only"
        return None

    def c_parameters(self, name: str) -> list[CParameter]:
        """A struct of the address and the dynamic extents and strides."""
        one = CParameter(
            name,
            "array",
            self.storage,
            sum(n is None for n in self.shape),
            ("data", "dynamic_shapes", "dynamic_strides"),
            "_Tensor",
            str(self),
            self.align,
            self.divisors,
            is_empty=0 in self.shape,
        )
        return [one]

    def byte_range(self, packed: Sequence[int]) -> tuple[int, int]:
        """Return the address of the lowest byte that the layout reaches and that past the highest,
        from the packed values.
        """
        address, *numbers = packed
        dynamic = iter(numbers)
        shape = [next(dynamic) if n is None else n for n in self.shape]
        stride = [next(dynamic) if d is None else d for d in self.stride]
        size = element_bytes(self.dtype)
        if 0 in shape:
            return address, address
        spans = [(n - 1) * d for n, d in zip(shape, stride, strict=True)]
        low, high = sum(min(s, 0) for s in spans), sum(max(s, 0) for s in spans)
        return address + low * size, address + (high + 1) * size

    def __str__(self) -> str:
        text = f"Tensor[{self.dtype.__name__}, {len(self.shape)}] {self.layout_text}"
        return f"{text} on {self.device}, align {self.align}" + (", 64-bit" if self.wide else "")


def _same_symbol(number: Any, symbol: str | None, name: str) -> Any:
    """Return the number of a symbolic extent: for a symbol that was seen before, the first number,
    after emitting a check that the two are equal.
    """
    if symbol is None:
        return number
    trace = current_trace("a tensor argument")
    first, where = cute_trace(trace).symbols.setdefault(symbol, (number, name))
    if first is number:
        return number
    width = max(first.width, number.width)
    integer = Int64 if width == 64 else Int32
    trace.emitter.assert_(
        (first.to(integer) == number.to(integer)).ir_value(),
        f"ValueError: an extent of '{name}' differs from that of '{where}' with the same symbol",
        trace.loc(),
    )
    return first.to(type(number)) if type(first) is not type(number) else first


@dataclass(frozen=True)
class PointerArgument(ArgumentType):
    """The argument type of a pointer. `align` is the alignment of the address in bytes."""

    dtype: Any
    space: str
    align: int
    name: str = field(default="", compare=False)

    storage = ("Q",)
    device = "any"
    writable = True

    def ir_types(self, ir: Any) -> list[Any]:
        trace = current_trace("a pointer argument")
        return [memref_type(trace, self.dtype, self.space, RUN, self.align)]

    def proxy(self, values: Sequence[Any]) -> Pointer:
        return Pointer(self.dtype, self.space, self.align, values[0])

    def pack(self, value: HostPointer) -> tuple[Any, ...]:
        if value.num_bytes is not None:
            _sizes[value.address] = value.num_bytes
        else:
            _sizes.pop(value.address, None)
        return (value.address,)

    def unpacker(self) -> Unpacker | None:
        """Return the native form of `pack` for values of exactly this type."""

        def pack(value: Any) -> bytes | None:
            fits = type(value) is HostPointer and pointer_argument(value, self.name) == self
            return as_bytes(self.storage, self.pack(value)) if fits else None

        return slots_unpacker(self.storage, pack)

    def accepting_unpacker(self) -> Unpacker | None:
        """Return the native form of `pack` for values that `accepts` takes."""

        def pack(value: Any) -> bytes | None:
            fits = type(value) is HostPointer and self.accepts(value, self.name)
            return as_bytes(self.storage, self.pack(value)) if fits else None

        return slots_unpacker(self.storage, pack)

    def c_parameters(self, name: str) -> list[CParameter]:
        """An address."""
        kind = "pointer"
        return [CParameter(name, kind, self.storage, text=str(self), align=self.align)]

    def byte_range(self, packed: Sequence[int]) -> tuple[int, int]:
        """Return the first address of the memory behind the pointer and the one past it: the bytes
        that `make_ptr(num_bytes=)` declared, else those of the array that the address lies in.
        Raises DSLCallError if no array is found.
        """
        (address,) = packed
        size = _sizes.get(address)
        if size is not None or address == 0:
            return address, address + (size or 0)
        owner = owner_of(address)
        if owner is None:
            raise DSLCallError(
                f"'{self.name}' points to memory of unknown size, and the simulator checks bounds",
                hint="cute.runtime.make_ptr(..., num_bytes=...), or keep the array in a variable",
            )
        return owner

    def accepts(self, value: Any, name: str) -> bool:
        problem = self._violated(value)
        if problem is not None:
            raise DSLCallError(f"'{name}' was compiled as {self}, got {value}: {problem}")
        return True

    def _violated(self, value: Any) -> str | None:
        if not isinstance(value, HostPointer):
            return "it is no pointer"
        if value.dtype is not self.dtype:
            return f"its elements are {value.dtype.__name__}"
        if value.space != self.space and not {value.space, self.space} <= _OF_THE_HOST:
            return f"it points to {value.space}"
        if value.address % self.align:
            return f"its address is not aligned to {self.align} bytes"
        return None

    def __str__(self) -> str:
        return f"Pointer[{self.dtype.__name__}] to {self.space}, align {self.align}"


# Host code has addresses of global memory alone, whichever of these names they are written with.
_OF_THE_HOST = {"gmem", "generic"}
_sizes: dict[int, int] = {}  # address -> bytes, of pointers that were made with `num_bytes=`


def pointer_argument(value: HostPointer, name: str) -> PointerArgument:
    """Return the argument type of a pointer."""
    return PointerArgument(value.dtype, value.space, value.align, name)


def host_tensor(value: Any, name: str = "") -> ArrayRecord:
    """Return the record of an array or of a `from_dlpack` of one. Raises DSLCallError for a
    placeholder, which has no data.
    """
    if isinstance(value, HostTensor):
        return value.host
    if isinstance(value, FakeTensor):
        raise DSLCallError(
            f"{value} has no data", hint="compile with it, and call the result with arrays"
        )
    return record_of(value, name)


def tensor_argument(value: Any, annotation: Any, name: str) -> ArgumentType | None:
    """Return the argument type of an array, tensor or pointer; None for other values.

    Raises DSLCallError for a value that the annotation `Tensor[...]` excludes. `name` is the
    parameter's.
    """
    if isinstance(value, HostPointer):
        return pointer_argument(value, name)
    declared = annotation is Tensor or isinstance(annotation, DeclaredTensor)
    if isinstance(value, FakeTensor):
        return _of_fake(value, annotation, name)
    if isinstance(value, HostTensor):
        return _of_runtime(value, annotation, name)
    host = record_of(value, name) if ArrayRecord.can_read(value) else None
    if host is None:
        if declared:
            raise DSLCallError(
                f"'{name}' is declared a Tensor, got {type(value).__name__}",
                hint="pass a NumPy, PyTorch, CuPy or JAX array: anything with __dlpack__",
            )
        return None
    if isinstance(annotation, type) and issubclass(annotation, Numeric):
        return None  # a number is expected: the core says that this is none
    dtype = from_dlpack(*host.dtype)
    if isinstance(annotation, DeclaredTensor):
        _check_declared(annotation, dtype, host.shape, name)
    wide = reaches_beyond_32_bits(host.shape, host.strides)
    natural = element_bytes(dtype)
    align = max(natural, min(MAX_ALIGN, host.address & -host.address or MAX_ALIGN))
    leading = _leading_mode(host.shape, host.strides)
    vector = _row_vector(dtype, len(host.shape), leading)
    others = [d for i, d in enumerate(host.strides) if i != leading and host.shape[i] > 1]
    divisor = vector if all(d % vector == 0 for d in others) else 1
    rank, device, writable = len(host.shape), host.device_name, not host.readonly
    return _plain(dtype, rank, leading, divisor, align, wide, device, writable, name)


def _row_vector(dtype: Any, rank: int, leading: int | None) -> int:
    """Return the number of elements of the widest access, which the other strides must be multiples
    of; 1 without a leading mode or with a single mode.
    """
    if leading is None or rank < 2:
        return 1
    return max(1, MAX_ALIGN * 8 // storage_bits(dtype))


def _plain(
    dtype: Any,
    rank: int,
    leading: int | None,
    divisor: int,
    align: int,
    wide: bool,
    device: str,
    writable: bool,
    name: str = "",
) -> TensorArgument:
    """Return the type of a plain array. `divisor` divides all strides but that of the leading mode:
    it is 1 or the elements of the widest access, and never between, so that only two types of code
    are compiled for arrays of one rank and order.
    """
    shape: tuple[int | None, ...] = (None,) * rank
    stride = tuple(1 if i == leading else None for i in range(rank))
    divisors = (1,) * rank + (divisor,) * (rank - 1) if divisor > 1 else ()
    return TensorArgument(
        dtype, "gmem", shape, stride, align, wide, device, writable, name, divisors
    )


def _keeping(make: Callable[[Any], bytes | None]) -> Callable[[Any], bytes | None]:
    """Wrap `make` so that its result for a `runtime.Tensor` is reused until the tensor's argument
    type changes.
    """

    def pack(value: Any) -> bytes | None:
        if type(value) is not HostTensor:
            return make(value)
        kept = value.packed
        if kept is None or kept[0] is not value.argument or kept[1] is not make:
            found = make(value)
            # `make` may ask for the type, which makes it.
            kept = value.packed = value.argument or _of_runtime(value, None, ""), make, found
        return kept[2]  # type: ignore[no-any-return]

    return pack


def _of_runtime(value: HostTensor, annotation: Any, name: str) -> TensorArgument:
    host = value.host
    if isinstance(annotation, DeclaredTensor):
        _check_declared(annotation, value.element_type, host.shape, name)
    made = value.argument
    if made is None or made.name != name:
        divisors = (*value.shape_divisors, *value.stride_divisors)
        leaves = [
            None if divisor else number
            for divisor, number in zip(divisors, (*host.shape, *host.strides), strict=True)
        ]
        rank = len(host.shape)
        made = value.argument = TensorArgument(
            value.element_type,
            "gmem",
            tuple(leaves[:rank]),
            tuple(leaves[rank:]),
            value.align,
            not value.narrow and reaches_beyond_32_bits(host.shape, host.strides),
            host.device_name,
            not host.readonly,
            name,
            tuple(divisor for divisor in divisors if divisor),
        )
    return made  # type: ignore[no-any-return]


def _of_fake(value: FakeTensor, annotation: Any, name: str) -> TensorArgument:
    if isinstance(annotation, DeclaredTensor):
        _check_declared(annotation, value.element_type, value.shape, name)
    shape, stride = flatten_to_tuple(value.shape), flatten_to_tuple(value.stride)
    leaves = [x for x in (*shape, *stride) if type(x) is not int]
    profile = None if shape == value.shape else repeat_like(0, value.shape)
    return TensorArgument(
        value.element_type,
        value.memspace.value,
        tuple(x if type(x) is int else None for x in shape),
        tuple(x if type(x) is int else None for x in stride),
        value.align,
        any(x.width == 64 for x in leaves),
        _ON_SOME_GPU if detect().is_gpu else "cpu",
        True,
        name,
        tuple(x.divby for x in leaves),
        tuple(x.name if isinstance(x, SymInt) else None for x in leaves),
        profile,
    )


def _leading_mode(shape: Sequence[int], strides: Sequence[int]) -> int | None:
    """Return the mode whose stride is static: the one of stride 1; of several, the only one with an
    extent over 1. None if there is no such mode or no single one: then every stride is dynamic.
    """
    units = [i for i, d in enumerate(strides) if d == 1]
    if len(units) > 1:
        units = [i for i in units if shape[i] > 1] or units[-1:]
    return units[0] if len(units) == 1 else None


def _check_declared(declared: DeclaredTensor, dtype: Any, shape: Any, name: str) -> None:
    rank = len(shape)
    if dtype is not declared.dtype or declared.rank not in (None, rank):
        wanted = declared.dtype.__name__ + ("" if declared.rank is None else f", {declared.rank}")
        raise DSLCallError(
            f"'{name}' is declared Tensor[{wanted}], got {dtype.__name__} in {rank} mode(s)",
            notes=((f"'{name}' has the shape {tuple(shape)}", None),),
            hint=f"convert the array, or change the annotation of '{name}'",
        )
