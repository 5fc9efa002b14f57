"""Tensors inside compiled code: an iterator (the pointer to the first element) and a layout.

The layout algebra evaluates indexing while tracing: dynamic parts become arithmetic in the IR, the
access itself one `cute.load` or `cute.store`. A tensor is a *view* of the algebra
(`algebra.views`): divides and partitions take tensors and return tensors.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

from basedsl import (
    DSLAttributeError,
    DSLError,
    DSLTypeError,
    Int32,
    Int64,
    Numeric,
    Trace,
    current_trace,
    current_trace_or_none,
    is_dynamic,
    is_internal_frame,
    with_article,
)
from basedsl_cute import algebra
from basedsl_cute.algebra import dynamic
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.dialect import define, note_access
from basedsl_cute.dialect.cute_trace import cute_trace
from basedsl_cute.dialect.ops import Load, Store
from basedsl_cute.hardware.other_names import tensor_attribute_instead
from basedsl_cute.tensors import origin
from basedsl_cute.tensors.bounds_checks import (
    check_coordinate,
    check_element,
    check_known,
    check_sign,
)
from basedsl_cute.tensors.coordinate import as_coordinate, as_index
from basedsl_cute.tensors.origin import ViewOrigin
from basedsl_cute.tensors.pointer import (
    Pointer,
    as_element,
    index_value,
    memref_type,
    refuse_tensor_memory,
)

if TYPE_CHECKING:
    from basedsl_cute.tensors.tensor_ssa import TensorSSA

Iterator = Pointer


class TensorType(NamedTuple):
    """The static facts of a tensor: element type, memory space and layout."""

    dtype: Any
    memspace: Any
    layout: Any


class _LayoutLeaves(NamedTuple):
    """The carried leaf of a tensor's layout; errors use the field name, as in 'x.layout'."""

    layout: tuple[Any, ...]


@dataclass(frozen=True)
class DeclaredTensor:
    """The annotation `Tensor[dtype, rank]`; a rank of None takes any."""

    dtype: Any
    rank: int | None = None


_OF_VECTORS = ("to", "reduce", "broadcast_to", "reshape", "bitcast")


class NoVector:
    """A base of tensors that makes operators, and the methods of vectors, errors with a hint."""

    __slots__ = ()

    def _refuse(self, *other: Any) -> NoReturn:
        raise DSLTypeError(
            "a tensor is memory: arithmetic needs a vector or an element",
            hint="x.load() is the vector of its elements, x[i] one of them",
        )

    __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = _refuse
    __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = __rpow__ = _refuse
    __and__ = __or__ = __xor__ = __rand__ = __ror__ = __rxor__ = _refuse
    __neg__ = __pos__ = __abs__ = __invert__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = _refuse

    def __getattr__(self, name: str) -> Any:
        if name in _OF_VECTORS:
            raise DSLAttributeError(
                f"{name}() is of vectors, and this is a tensor", hint=f"x.load().{name}(...)"
            )
        if name.startswith("__"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        kind: Any = type(self)
        raise DSLAttributeError(
            f"a tensor has no '{name}'", hint=tensor_attribute_instead(kind, name)
        )

    def _refuse_numpy(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise DSLTypeError(
            "NumPy computes while compiling, and the elements of a tensor are known at run time",
            hint="cute.math has functions of elements, x.load().reduce(...) reduces a thread's "
            "values; loop over range(cute.size(x)) for others",
        )

    __array__ = __array_ufunc__ = __array_function__ = _refuse_numpy


class Tensor(NoVector):
    """A tensor in compiled code: a view of memory by a pointer and a layout.

    `t[coord]` loads an element, `t[coord] = x` stores one, and with `None` in `coord`, which keeps
    a mode, it is a slice that shares the memory. A single integer is a linear index, first mode
    fastest. A tensor whose iterator is a coordinate (`make_identity_tensor`) has no memory: its
    elements are coordinates.

    As the annotation of a parameter, `Tensor` takes any array, and `Tensor[Int32, 1]` declares the
    element type and the number of modes. The caller passes an array of NumPy, PyTorch, CuPy or JAX,
    or a host tensor (`cute.runtime.from_dlpack`).

    >>> import numpy as np
    >>> import basedsl_cute as cute
    >>> @cute.jit
    ... def double_rows(x: cute.Tensor[cute.Int32, 2]):
    ...     for i in range(x.shape[0]):
    ...         row = x[i, None]
    ...         for j in range(cute.size(row)):
    ...             row[j] = 2 * row[j]
    >>> x = np.arange(4, dtype=np.int32).reshape(2, 2)
    >>> double_rows(x)
    >>> x
    array([[0, 2],
           [4, 6]], dtype=int32)
    """

    __slots__ = ("_leaves", "_origin", "_start", "_static", "_wide", "layout")

    def __init__(self, iterator: Any, layout: Any) -> None:
        self._wide: bool | None = None
        self._leaves: tuple[Any, ...] | None = None
        self._static: Any = None
        self._origin: ViewOrigin | None = None
        self._start = iterator.typed(layout) if isinstance(iterator, Pointer) else iterator
        self.layout = layout

    def __class_getitem__(cls, item: Any) -> Any:
        return DeclaredTensor(*item) if isinstance(item, tuple) else DeclaredTensor(item, None)

    # A tree: where it begins, and the leaves of its layout that are dynamic ----------------------

    def __dsl_leaves__(self) -> tuple[Any, ...]:
        if self._leaves is None:  # the same ones each time: branches and loops ask for them often
            found = _LayoutLeaves(tuple(_dynamic_leaves(self._numbers())))
            self._leaves = (self._start, found)
        return self._leaves

    def __dsl_static__(self) -> Any:
        if self._static is None:
            template = _template(self._numbers())
            self._static = (self.has_memory, template, _inner_key(self.layout))
        return self._static

    def __dsl_rebuild__(self, parts: tuple[Any, ...]) -> Tensor:
        shape, stride, offset = _filled(self._numbers(), iter(parts[1].layout))
        layout: algebra.Layout | algebra.ComposedLayout = algebra.Layout(shape, stride)
        if isinstance(self.layout, algebra.ComposedLayout):
            layout = algebra.ComposedLayout(self.layout.inner, offset, layout)
        made = Tensor(as_coordinate(parts[0]) if not self.has_memory else parts[0], layout)
        if self._origin is not None and _same_leaves(parts, self.__dsl_leaves__()):
            made._origin = self._origin
        return made

    def _numbers(self) -> Any:
        """The parts of this tensor's layout that may be dynamic: shape, stride and offset."""
        layout, offset = self.layout, 0
        while isinstance(layout, algebra.ComposedLayout):
            offset, layout = layout.offset, layout.outer
        return (layout.shape, layout.stride, offset)

    # What it is ---------------------------------------------------------------------------------

    @property
    def type(self) -> TensorType:
        """The static facts: element type, memory space and layout."""
        return TensorType(self.element_type, self.memspace, self.layout)

    @property
    def has_memory(self) -> bool:
        """False for a coordinate tensor."""
        return isinstance(self._start, Pointer)

    @property
    def iterator(self) -> Any:
        """The pointer to the element at offset 0; the first coordinate of a coordinate tensor."""
        return self._start

    @property
    def pointer(self) -> Pointer:
        """The iterator of a tensor with memory; DSLTypeError for a coordinate tensor."""
        if not isinstance(self._start, Pointer):
            raise DSLTypeError(f"{self} is a coordinate tensor; it has no memory")
        return self._start

    @property
    def shape(self) -> Any:
        """The shape of the layout: integers and nested tuples of them."""
        return self.layout.shape

    @property
    def stride(self) -> Any:
        """The strides of the layout in elements; DSLTypeError for a composed layout."""
        if isinstance(self.layout, algebra.ComposedLayout):
            raise DSLTypeError(f"the composed layout {self.layout} has no strides")
        return self.layout.stride

    @property
    def element_type(self) -> Any:
        """The element type, a numeric class; Int32 of a coordinate tensor."""
        return self._start.dtype if isinstance(self._start, Pointer) else Int32

    dtype = _dtype = element_type

    @property
    def memspace(self) -> Any:
        """The address space: `gmem`, `smem`, `rmem`, ...; None for a coordinate tensor."""
        return self._start.space if isinstance(self._start, Pointer) else None

    @property
    def leading_dim(self) -> Any:
        """The mode whose stride is statically 1; None if there is no single one."""
        return leading_dim(self.layout)

    def __len__(self) -> int:
        raise DSLTypeError("a tensor has no len()", hint="use cute.size(t) or t.shape")

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if isinstance(other, Tensor | Numeric | int | float):
            self._refuse(other)
        return NotImplemented

    __hash__ = object.__hash__

    def __delitem__(self, coord: Any) -> NoReturn:
        raise DSLTypeError("an element of a tensor cannot be deleted", hint="x[i] = value writes")

    def __bool__(self) -> bool:
        raise DSLTypeError("a tensor has no truth value", hint="compare cute.size(t) or an element")

    def __iter__(self, *_: Any) -> Any:
        raise DSLTypeError("a tensor is not iterated", hint="loop over range(cute.size(t))")

    __contains__ = __iter__  # Python would say that the class is no container

    def __str__(self) -> str:
        return f"tensor<{self._start} o {self.layout}>"

    __repr__ = __str__

    # Views --------------------------------------------------------------------------------------

    def with_layout(self, layout: Any) -> Tensor:
        """The tensor with the same iterator and another layout."""
        return Tensor(self._start, layout)

    def relaid(self, change: Callable[[Any], Any]) -> Tensor:
        """The tensor with the same iterator and the layout `change(layout)`."""
        made, own = self.with_layout(change(self.layout)), self._own_origin()
        made._origin = own and own.relaid(change, made.layout.shape)
        return made

    def _own_origin(self) -> ViewOrigin | None:
        """The coordinates of this tensor's elements in the one that it is cut from, or in itself;
        None where the simulator does not check them.
        """
        if self._origin is not None or self.memspace != "gmem":
            return self._origin
        trace = origin.are_followed()
        return None if trace is None or self._is_whole_vector(trace) else origin.whole(self.shape)

    def domain_offset(self, coord: Any) -> Tensor:
        """The tensor that starts at coordinate `coord` of this one, with the same layout."""
        coord = self._widened(as_coordinate(coord))
        layout, offset = algebra.domain_offset(coord, self.layout)
        made, own = self._at(offset, layout), self._own_origin()
        made._origin = own and own.at(own.layout(coord), own.layout)
        return made

    def _at(self, offset: Any, layout: Any) -> Tensor:
        if not isinstance(self._start, Pointer):
            return Tensor(algebra.add_offset(self._start, offset), layout)
        return Tensor(self._start.moved(offset, self._start.access_layout(layout)), layout)

    # Elements -----------------------------------------------------------------------------------

    def __getitem__(self, coord: Any, *, loc: Any = None, ip: Any = None) -> Any:
        coord = self._checked(coord)
        self._check_bounds(coord)
        if _has_none(coord):
            made = self._at(*reversed(algebra.slice_and_offset(coord, self.layout)))
            own = self._own_origin()
            made._origin = own and own.sliced(coord)
            return made
        offset = self.layout(coord)
        if not isinstance(self._start, Pointer):
            return algebra.add_offset(self._start, offset)
        trace = current_trace("reading a tensor")
        refuse_tensor_memory(self._start.space, "read")
        note_access()
        load = Load(
            define(trace.bindings),
            memref=self._start.address.ir_value(),
            index=index_value(self._start.index(offset)),
            loc=trace.loc(),
        )
        return self.element_type.from_value(load.value)

    def __setitem__(self, coord: Any, value: Any, *, loc: Any = None, ip: Any = None) -> None:
        coord = self._checked(coord)
        self._check_bounds(coord)
        trace = current_trace("writing a tensor")
        if _has_none(coord):
            if not hasattr(value, "element_type"):
                raise DSLTypeError(
                    "a slice of a tensor cannot be assigned a scalar", hint="use t.fill(...)"
                )
            self[coord].store(value)
            return
        start = self.pointer
        refuse_tensor_memory(start.space, "write")
        number = as_element(self.element_type, value)
        note_access()
        Store(
            define(trace.bindings),
            value=number.ir_value(),
            memref=start.address.ir_value(),
            index=index_value(start.index(self.layout(coord))),
            loc=trace.loc(),
        )

    # Vectors ------------------------------------------------------------------------------------

    if TYPE_CHECKING:  # `late_methods` has these three

        @takes_location
        def load(self) -> TensorSSA:
            """Load all elements as a vector."""

        @takes_location
        def store(self, value: TensorSSA) -> None:
            """Store all elements from `value`, a vector of the same shape and element type."""

        @takes_location
        def fill(self, value: Any) -> None:
            """Set all elements to the number `value`."""

    def _checked(self, coord: Any) -> Any:
        coord = as_index(coord)
        if isinstance(coord, tuple) and len(coord) != algebra.rank(self.layout):
            raise DSLTypeError(
                f"a tensor with {algebra.rank(self.layout)} mode(s), layout {self.layout}, is "
                f"indexed with {len(coord)} coordinates",
                hint="give one coordinate a mode, or a single linear index",
            )
        if type(coord) is not tuple and coord is not None:
            if isinstance(self.layout.shape, tuple) and not self.layout.shape:
                raise DSLTypeError(
                    "a tensor without modes is indexed with a number",
                    hint="x[()] is its only element",
                )
            if algebra.rank(self.layout) > 1:
                self._check_linear()
        return self._widened(coord)

    def _check_linear(self) -> None:
        """Raise DSLTypeError for one index into several modes, if the option asks for that."""
        trace = current_trace_or_none()
        if trace is None or not getattr(trace.options, "check_linear_index", False):
            return
        frame: FrameType | None = sys._getframe(3)
        while frame is not None and frame.f_globals["__name__"].startswith("basedsl.metastage"):
            frame = frame.f_back  # what the user's brackets were rewritten to
        if frame is None or is_internal_frame(frame):
            return
        modes = ", ".join("ijklmnop"[: algebra.rank(self.layout)])
        raise DSLTypeError(
            f"a tensor with {algebra.rank(self.layout)} modes is indexed by one number",
            hint=f"write x[{modes}]; a linear index (first mode fastest) is allowed without "
            "check_linear_index",
        )

    def _check_bounds(self, coord: Any) -> None:
        """In host code, emit a check that raises IndexError for a coordinate outside of the shape.
        For registers, a known coordinate outside of the shape is a DSLTypeError. Kernels check
        elements on the simulator alone, where the check has a level (`check_coordinates`).
        """
        check_sign(coord)
        if self.memspace == "rmem" and algebra.is_static(self.layout.shape):
            check_known(coord, self.layout.shape, "registers", self.layout.shape)
        trace = current_trace_or_none()
        if trace is not None and trace.function_kind != "kernel" and self.has_memory:
            check_coordinate(trace, coord, self.layout.shape)
        elif trace is not None and self.has_memory and cute_trace(trace).checks_coordinates:
            if not _has_none(coord) and not self._is_whole_vector(trace):
                check_element(trace, coord, self.layout.shape)
                if self._origin is not None:
                    self._origin.check_element(trace, coord)

    def check_elements(self, trace: Trace, numbers: range) -> None:
        """Emit in `trace` the simulator's check that the elements `numbers` lie in the tensor that
        this one is cut from.
        """
        if self._origin is not None:
            self._origin.check_elements(trace, numbers)

    def _is_whole_vector(self, trace: Trace) -> bool:
        """True for a kernel's argument of one mode: its memory ends where the extent does."""
        if isinstance(self.layout.shape, tuple) and len(self.layout.shape) != 1:
            return False
        return isinstance(self.pointer.address.ir_value().owner, trace.ir.Block)

    def _widened(self, coord: Any) -> Any:
        """The coordinate, in 64 bits if offsets of this layout need them."""
        if self._wide is None:
            self._wide = self.has_memory and _needs_64_bits(self.layout)
        return _to_64_bits(coord) if self._wide else coord


def check_partitioned(x: Any, what: str) -> None:
    """Raise DSLTypeError for what is neither a tensor nor a layout; `what` begins the message."""
    if not isinstance(x, algebra.Layout | algebra.ComposedLayout) and not hasattr(x, "layout"):
        kind = type(x).__name__
        raise DSLTypeError(
            f"{what} takes a tensor, not {with_article(kind)}",
            hint="a vector has no memory: partition the tensor, and load() after it"
            if kind == "TensorSSA"
            else None,
        )


def of_a_thread(tiled: Any, name: str) -> DSLAttributeError:
    """The error for asking a whole tiled copy or MMA for an attribute of a thread's slice."""
    kind = type(tiled).__name__
    return DSLAttributeError(
        f"{name} is of one thread's slice of {with_article(kind)}, not of the {kind}",
        hint=f"x.get_slice(tid).{name}(tensor), with tid = cute.arch.thread_idx()[0]",
    )


def _same_leaves(one: tuple[Any, ...], other: tuple[Any, ...]) -> bool:
    """True for the leaves of one tensor: the same values, not those of other iterations."""
    pairs = zip((one[0], *one[1].layout), (other[0], *other[1].layout), strict=True)
    try:
        return all(a is b or a.ir_value() == b.ir_value() for a, b in pairs)
    except DSLError:  # a value of a branch that has ended
        return False


def leading_dim(layout: Any) -> Any:
    """The mode whose stride is statically 1; None if there is no single one."""
    if not isinstance(layout, algebra.Layout) or not isinstance(layout.shape, tuple):
        return None
    units = [i for i, d in enumerate(layout.stride) if _is_static_one(d)]
    if len(units) > 1:
        units = [i for i in units if not _is_static_one(layout.shape[i])]
    return units[0] if len(units) == 1 else None


def _is_static_one(x: Any) -> bool:
    return type(x) is int and x == 1


def same_extents(a: Any, b: Any) -> bool:
    """True if two static shapes agree mode by mode, however the modes are nested."""
    if a == b:
        return True
    rank = algebra.rank(a)
    return rank == algebra.rank(b) and algebra.product_each(a) == algebra.product_each(b)


def _needs_64_bits(layout: Any) -> bool:
    """True if offsets may not fit 31 bits: dynamic extents and strides are 64-bit then."""
    while isinstance(layout, algebra.ComposedLayout):
        layout = layout.outer
    if any(leaf.width > 32 for leaf in _dynamic_leaves((layout.shape, layout.stride))):
        return True
    return bool(algebra.is_static(layout)) and algebra.cosize(layout) > 2**31


def _to_64_bits(coord: Any) -> Any:
    if isinstance(coord, tuple):
        return tuple(map(_to_64_bits, coord))
    return coord.to(Int64) if is_dynamic(coord) and coord.width < 64 else coord


# Dynamic leaves of nested tuples ----------------------------------------------------------------


def _has_none(coord: Any) -> bool:
    return any(map(_has_none, coord)) if isinstance(coord, tuple) else coord is None


def _dynamic_leaves(x: Any) -> list[Any]:
    if type(x) is int:
        return []
    if is_dynamic(x):
        return [x]
    if isinstance(x, tuple):
        return [leaf for part in x if type(part) is not int for leaf in _dynamic_leaves(part)]
    return _dynamic_leaves(x.value) if isinstance(x, algebra.ScaledBasis) else []


def _template(x: Any) -> Any:
    """The static part of `x`: its numbers, and the types and divisors of dynamic ones."""
    if is_dynamic(x):
        return ("dynamic", type(x).__name__, x.divby)
    if isinstance(x, tuple):
        return tuple(map(_template, x))
    return ("basis", _template(x.value), x.mode) if isinstance(x, algebra.ScaledBasis) else x


def _filled(x: Any, leaves: Any) -> Any:
    if is_dynamic(x):
        return dynamic.with_divby(next(leaves), x.divby)
    if isinstance(x, tuple):
        return tuple(_filled(part, leaves) for part in x)
    if isinstance(x, algebra.ScaledBasis):
        return algebra.ScaledBasis(_filled(x.value, leaves), x.mode)
    return x


def _inner_key(layout: Any) -> Any:
    """A key that tells the inner functions of composed layouts apart."""
    keys = []
    while isinstance(layout, algebra.ComposedLayout):
        keys.append(layout.inner if _is_value(layout.inner) else id(layout.inner))
        layout = layout.outer
    return tuple(keys)


def _is_value(inner: Any) -> bool:
    return isinstance(inner, algebra.Swizzle | algebra.Layout)


__all__ = ["Iterator", "Tensor", "is_dynamic", "leading_dim", "memref_type"]
