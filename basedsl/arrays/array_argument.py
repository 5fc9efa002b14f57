"""Arrays of other libraries as arguments: their address, extents and strides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

from basedsl.arrays.array_record import ArrayRecord
from basedsl.binding.arguments import ArgumentType
from basedsl.binding.c_interface import CParameter
from basedsl.binding.unpacker import Unpacker
from basedsl.errors import DSLCallError, DSLError
from basedsl.native_call import Leaf, array_unpacker
from basedsl.numeric import Int64, Numeric, from_dlpack


@dataclass(frozen=True)
class ArrayArgument(ArgumentType):
    """An array on the CPU, NumPy's, PyTorch's or of another library with DLPack, as an argument.

    Compiled code depends on the type of the elements (`dtype`) and the number of modes (`rank`);
    with `is_compact` also on the last stride, which is 1 then. In IR, an array is an `!llvm.ptr`,
    an i64 for each extent and an i64 for each stride, in elements. A subclass defines `proxy`,
    where `parts` names these values:

        class Rows(ArrayArgument):
            def proxy(self, values):
                return Array(self.dtype, *self.parts(values))
    """

    dtype: type[Numeric]
    rank: int
    is_compact: bool = False

    address_places = (0,)

    #: False if the compiled function only reads: then arrays may be read-only.
    is_written = True

    @classmethod
    def of(cls, value: Any, name: str) -> Self:
        """Return the type of the array `value` for the parameter `name`. Raises DSLCallError for an
        array on another device, or a read-only one where `is_written`; DSLTypeError for what is no
        array, or has elements of no numeric type.
        """
        record = ArrayRecord.of(value, name)
        if record.device_name != "cpu":
            raise DSLCallError(
                f"'{name}' is on {record.device_name}, where code of the CPU cannot reach it",
                hint="copy it: x.cpu() of PyTorch, cupy.asnumpy(x)",
            )
        if record.readonly and cls.is_written:
            raise DSLCallError(f"'{name}' is read-only", hint="pass a copy")
        is_compact = not record.strides or record.strides[-1] == 1
        return cls(from_dlpack(*record.dtype), len(record.shape), is_compact)

    def parts(self, values: Sequence[Any]) -> tuple[Any, tuple[Int64, ...], tuple[Int64, ...]]:
        """Name the IR parameters of the function, `values` in the order of `ir_types`: returns the
        pointer, the `rank` extents, and the `rank` strides in elements.
        """
        numbers = [Int64.from_value(value) for value in values[1:]]
        return values[0], tuple(numbers[: self.rank]), tuple(numbers[self.rank :])

    def ir_types(self, ir: Any) -> list[Any]:
        """The types of the address, of each extent and of each stride."""
        return [ir.Type.parse("!llvm.ptr"), *[ir.IntegerType.get_signless(64)] * (2 * self.rank)]

    def pack(self, value: Any) -> tuple[int, ...]:
        """The address of the first element, the extents, the strides in elements."""
        record = ArrayRecord.of(value)
        return (record.data_address(""), *record.shape, *record.strides)

    def c_parameters(self, name: str) -> list[CParameter]:
        """A struct of the address, the extents and the strides."""
        size = -(-self.dtype.width // 8)
        known: tuple[int | None, ...] = (None,) * (2 * self.rank)
        if self.is_compact and self.rank:
            known = (*known[:-1], 1)
        return [
            CParameter(
                name,
                "array",
                self.storage,
                self.rank,
                text=str(self),
                align=size,
                known=known,
            )
        ]

    def unpacker(self) -> Unpacker | None:
        """`pack` of compact NumPy arrays as native code; other arrays are packed in Python."""
        if not self.is_compact:
            return None  # it would take compact ones too
        kind = self.dtype.numpy_dtype
        try:
            same = kind is not None and from_dlpack(*self.dtype.dlpack) is self.dtype
        except DSLError:
            same = False
        if not same:
            return None
        size = self.dtype.dlpack[1] // 8
        axes = range(self.rank)
        leaves = [Leaf(False, i) for i in axes]
        leaves += [
            Leaf(True, i, known=1 if i + 1 == self.rank else None, divisor=size) for i in axes
        ]
        return array_unpacker(kind, self.rank, leaves, writeable=self.is_written)

    def __str__(self) -> str:
        return f"{self.dtype.__name__}[{', '.join('?' * self.rank)}]"
