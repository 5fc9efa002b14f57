"""Tensors inside compiled code: an iterator (where the data begins) and a layout.

Indexing is evaluated by the layout algebra while tracing; what stays dynamic is arithmetic in the
IR, and the access itself is one `cute.load` or `cute.store`.
"""

from __future__ import annotations

from typing import Any

from basedsl.errors import DSLTypeError
from basedsl.metastage import require
from basedsl.numeric import Numeric, as_numeric, is_dynamic, mlir_type
from basedsl_cute import algebra
from basedsl_cute.dialect import define


class Iterator:
    """The place of a tensor's first element: element type, memory space, alignment in bytes."""

    __dsl_leaf__ = True

    def __init__(self, dtype: Any, space: str, align: int, value: Any) -> None:
        self.dtype = dtype
        self.space = space
        self.align = align
        self._value = value

    @property
    def memspace(self) -> str:
        return self.space

    @property
    def alignment(self) -> int:
        return self.align

    def ir_value(self) -> Any:
        return self._value

    def with_ir_value(self, value: Any) -> Iterator:
        return Iterator(self.dtype, self.space, self.align, value)

    def leaf_type(self) -> Any:
        return str(self._value.type)

    def __str__(self) -> str:
        return f"ptr<{self.dtype.__name__}, {self.space}, align<{self.align}>>"

    __repr__ = __str__


class Tensor:
    """A view of memory: `t[coord]` loads, `t[coord] = x` stores, a `None` in `coord` slices.

    A single integer is a linear index, first mode fastest. As an annotation, `Tensor` takes any
    array and `Tensor[Int32, 1]` declares the element type and the number of modes.
    """

    def __init__(self, iterator: Iterator, layout: Any) -> None:
        self.iterator = iterator
        self.layout = layout

    def __class_getitem__(cls, item: Any) -> Any:
        from basedsl_cute.arguments import DeclaredTensor

        return DeclaredTensor(*item) if isinstance(item, tuple) else DeclaredTensor(item, None)

    # A tree: where it begins, and the leaves of its layout that are dynamic.

    def __dsl_leaves__(self) -> tuple[Any, ...]:
        return (self.iterator, self.layout.shape, self.layout.stride)

    def __dsl_rebuild__(self, parts: tuple[Any, ...]) -> Tensor:
        iterator, shape, stride = parts
        return Tensor(iterator, algebra.Layout(shape, stride))

    @property
    def shape(self) -> Any:
        return self.layout.shape

    @property
    def stride(self) -> Any:
        return self.layout.stride

    @property
    def element_type(self) -> Any:
        return self.iterator.dtype

    dtype = element_type

    @property
    def memspace(self) -> str:
        return self.iterator.space

    def __len__(self) -> int:
        raise DSLTypeError("a tensor has no len()", hint="use cute.size(t) or t.shape")

    def __str__(self) -> str:
        return f"tensor<{self.iterator} o {self.layout}>"

    __repr__ = __str__

    def __getitem__(self, coord: Any) -> Any:
        coord = self._checked(coord)
        if _has_none(coord):
            return self._slice(coord)
        trace = require("reading a tensor")
        value = _dialect(trace).load_value(
            self.iterator.ir_value(), _offset(self.layout(coord)), loc=trace.loc()
        )
        return self.element_type.from_value(value)

    def __setitem__(self, coord: Any, value: Any) -> None:
        coord = self._checked(coord)
        trace = require("writing a tensor")
        if _has_none(coord):
            raise DSLTypeError(
                "a slice of a tensor cannot be assigned a scalar", hint="use t.fill(...)"
            )
        number = self._element(value)
        _dialect(trace).store_value(
            number.ir_value(),
            self.iterator.ir_value(),
            _offset(self.layout(coord)),
            loc=trace.loc(),
        )

    def _element(self, value: Any) -> Any:
        """`value` as an element: Python numbers convert, other types must match."""
        kind = self.element_type
        if not isinstance(value, Numeric):
            if isinstance(value, float) and kind.is_integer:
                raise DSLTypeError(
                    f"the float {value} is stored into a tensor of {kind.__name__}",
                    hint=f"write {int(value) if value == value else 0}, or convert with int(...)",
                )
            return kind(value)
        if type(value) is kind:
            return value
        if value.weak and (kind.is_float or not type(value).is_float):
            return value.to(kind)
        raise DSLTypeError(
            f"a {type(value).__name__} is stored into a tensor of {kind.__name__}",
            hint=f"convert it with .to({kind.__name__})",
        )

    def _checked(self, coord: Any) -> Any:
        for leaf in _leaves(coord):
            if leaf is None or (isinstance(leaf, int) and not isinstance(leaf, bool)):
                continue
            if isinstance(leaf, Numeric) and type(leaf).is_integer:
                continue
            raise DSLTypeError(
                f"a tensor is indexed with a {type(leaf).__name__}",
                hint="coordinates are integers, tuples of them, or None to keep a mode",
            )
        if isinstance(coord, tuple) and len(coord) != algebra.rank(self.layout):
            raise DSLTypeError(
                f"a tensor with {algebra.rank(self.layout)} mode(s), shape {self.shape}, is "
                f"indexed with {len(coord)} coordinates"
            )
        return coord

    def _slice(self, coord: Any) -> Tensor:
        trace = require("slicing a tensor")
        layout, offset = algebra.slice_and_offset(coord, self.layout)
        dialect = _dialect(trace)
        kind = memref_type(trace, self.element_type, self.memspace, layout, None)
        if isinstance(offset, int) and offset == 0:
            offset = as_numeric(0)
        value = dialect.view(self.iterator.ir_value(), _offset(offset), kind, loc=trace.loc())
        align = max(1, self.element_type.width // 8)
        return Tensor(Iterator(self.element_type, self.memspace, align, value), layout)


def memref_type(trace: Any, dtype: Any, space: str, layout: Any, align: int | None) -> Any:
    """The IR type of a tensor; the layout prints with `?` for what is dynamic."""
    natural = max(1, dtype.width // 8)
    element = mlir_type(dtype, trace.ir)
    return _dialect(trace).memref_type(
        element, space, str(layout), align if align is not None and align > natural else None
    )


def _dialect(trace: Any) -> Any:
    return define(trace.bindings)


def _offset(index: Any) -> Any:
    """A linear index as an i32 or i64."""
    number = as_numeric(index)
    if number.width not in (32, 64):
        from basedsl.numeric import Int32

        number = number.to(Int32)
    return number.ir_value()


def _has_none(coord: Any) -> bool:
    return any(leaf is None for leaf in _leaves(coord))


def _leaves(coord: Any) -> list[Any]:
    if isinstance(coord, tuple):
        return [leaf for part in coord for leaf in _leaves(part)]
    return [coord]


__all__ = ["Iterator", "Tensor", "is_dynamic", "memref_type"]
