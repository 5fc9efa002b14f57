"""Arrays as arguments: what of a tensor the compiled code depends on, and what travels.

An array passed as it is gets a dynamic layout: shape and strides at run time, but for the unit
stride of the contiguous mode, which is static. Extents and strides are 32-bit where every offset
fits 31 bits, else 64-bit: the two are compiled apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from basedsl.errors import DSLCallError
from basedsl.numeric import Int32, Int64, from_dlpack
from basedsl_cute import algebra
from basedsl_cute.dialect import define
from basedsl_cute.pointer import Pointer
from basedsl_cute.runtime.dlpack import HostTensor
from basedsl_cute.tensor import Tensor

MAX_ALIGN = 16  # the widest access of one thread, in bytes


@dataclass(frozen=True)
class DeclaredTensor:
    """The annotation `Tensor[dtype, rank]`; rank None takes any."""

    dtype: Any
    rank: int | None = None


@dataclass(frozen=True)
class TensorArgument:
    """A tensor as a parameter. In `shape` and `stride`, None is a leaf known at run time."""

    dtype: Any
    space: str
    shape: tuple[int | None, ...]
    stride: tuple[int | None, ...]
    align: int
    wide: bool
    device: str
    writable: bool = True
    name: str = field(default="", compare=False)

    @property
    def formats(self) -> tuple[str, ...]:
        return ("Q",) + (("q",) if self.wide else ("i",)) * self._dynamic_leaves

    @property
    def _dynamic_leaves(self) -> int:
        return sum(leaf is None for leaf in (*self.shape, *self.stride))

    def ir_types(self, ir: Any) -> list[Any]:
        from basedsl.metastage import require

        trace = require("a tensor argument")
        integer = ir.IntegerType.get_signless(64 if self.wide else 32)
        element = self.dtype.mlir_type
        align = self.align if self.align > max(1, self.dtype.width // 8) else None
        memref = define(trace.bindings).memref_type(element, self.space, self.layout_text, align)
        return [memref, *[integer] * self._dynamic_leaves]

    @property
    def layout_text(self) -> str:
        def text(leaves: tuple[int | None, ...]) -> str:
            return "(" + ",".join("?" if leaf is None else str(leaf) for leaf in leaves) + ")"

        return f"{text(self.shape)}:{text(self.stride)}"

    def proxy(self, values: Sequence[Any]) -> Tensor:
        integer = Int64 if self.wide else Int32
        numbers = iter(values[1:])

        def fill(leaves: tuple[int | None, ...]) -> Any:
            return tuple(integer.from_value(next(numbers)) if x is None else x for x in leaves)

        shape = fill(self.shape)
        stride = fill(self.stride)
        if len(shape) == 1:  # CuTe prints and treats rank-1 tensors as one mode
            layout = algebra.Layout(shape, stride)
        else:
            layout = algebra.Layout(shape, stride)
        return Tensor(Pointer(self.dtype, self.space, self.align, values[0]), layout)

    def pack(self, value: Any) -> tuple[Any, ...]:
        host = HostTensor.of(value)
        leaves = [
            actual
            for static, actual in zip(
                (*self.shape, *self.stride), (*host.shape, *host.strides), strict=True
            )
            if static is None
        ]
        return (host.address, *leaves)

    def byte_range(self, packed: Sequence[int]) -> tuple[int, int]:
        """The lowest and one past the highest byte that the layout reaches, from packed values."""
        address, *numbers = packed
        dynamic = iter(numbers)
        shape = [next(dynamic) if n is None else n for n in self.shape]
        stride = [next(dynamic) if d is None else d for d in self.stride]
        size = max(1, self.dtype.width // 8)
        if 0 in shape:
            return address, address
        spans = [(n - 1) * d for n, d in zip(shape, stride, strict=True)]
        low, high = sum(min(s, 0) for s in spans), sum(max(s, 0) for s in spans)
        return address + low * size, address + (high + 1) * size

    def __str__(self) -> str:
        text = f"Tensor[{self.dtype.__name__}, {len(self.shape)}] {self.layout_text}"
        return f"{text} on {self.device}, align {self.align}" + (", 64-bit" if self.wide else "")


def tensor_argument(value: Any, annotation: Any, name: str) -> TensorArgument | None:
    """The argument type of an array, or None if `value` is none."""
    declared = annotation is Tensor or isinstance(annotation, DeclaredTensor)
    host = HostTensor.of(value, name) if HostTensor.can_read(value) else None
    if host is None:
        if declared:
            raise DSLCallError(
                f"'{name}' is declared a Tensor, got {type(value).__name__}",
                hint="pass a NumPy, PyTorch, CuPy or JAX array: anything with __dlpack__",
            )
        return None
    dtype = from_dlpack(*host.dtype)
    if isinstance(annotation, DeclaredTensor):
        _check_declared(annotation, dtype, host, name)
    shape: tuple[int | None, ...] = (None,) * len(host.shape)
    stride = _dynamic_strides(host.shape, host.strides)
    furthest = sum((n - 1) * abs(d) for n, d in zip(host.shape, host.strides, strict=True) if n)
    wide = furthest >= 2**31 or any(n >= 2**31 for n in host.shape)
    natural = max(1, dtype.width // 8)
    align = max(natural, min(MAX_ALIGN, host.address & -host.address or MAX_ALIGN))
    return TensorArgument(
        dtype, "gmem", shape, stride, align, wide, host.device_name, not host.readonly, name
    )


def _dynamic_strides(shape: Sequence[int], strides: Sequence[int]) -> tuple[int | None, ...]:
    """The static stride of the leading mode: the one of stride 1, among several the only one
    with an extent over 1. No such mode, or no single one: every stride is dynamic.
    """
    units = [i for i, d in enumerate(strides) if d == 1]
    if len(units) > 1:
        units = [i for i in units if shape[i] > 1] or units[-1:]
    leading = units[0] if len(units) == 1 else None
    return tuple(1 if i == leading else None for i in range(len(strides)))


def _check_declared(declared: DeclaredTensor, dtype: Any, host: HostTensor, name: str) -> None:
    rank = len(host.shape)
    if dtype is not declared.dtype or declared.rank not in (None, rank):
        wanted = declared.dtype.__name__ + ("" if declared.rank is None else f", {declared.rank}")
        raise DSLCallError(
            f"'{name}' is declared Tensor[{wanted}], got {dtype.__name__} elements in {rank} "
            f"mode(s), shape {tuple(host.shape)}",
            hint=f"convert the array, or change the annotation of '{name}'",
        )
