"""`TensorSSA`: the elements of a tensor as one immutable vector in registers.

The IR vector is one-dimensional, in colexicographic order of the shape (first mode fastest).
Arithmetic is that of numbers (`basedsl.numeric.lane_kit`). Shapes broadcast as in NumPy: they are
aligned at the last mode, and extent 1 stretches.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from basedsl import (
    Boolean,
    DSLTypeError,
    Numeric,
    as_numeric,
    current_trace,
    escaped,
    in_common_type,
    is_dynamic,
    lanes,
    mlir_type,
    select,
)
from basedsl_cute import algebra
from basedsl_cute.algebra.coordinates import compact_col_major, dice_tuple, slice_tuple
from basedsl_cute.algebra.ignored_location import takes_location, takes_location_untyped
from basedsl_cute.algebra.int_tuple import flatten_to_tuple
from basedsl_cute.tensors.bounds_checks import check_known
from basedsl_cute.tensors.coordinate import as_coordinate, as_index
from basedsl_cute.tensors.vector_ops import (
    bits_as,
    combine,
    extract,
    from_elements,
    pick,
    splat,
    to_elements,
)


class ReductionOp(enum.Enum):
    """The operation of `TensorSSA.reduce`: sum, product, maximum or minimum."""

    ADD = "add"
    MUL = "mul"
    MAX = "max"
    MIN = "min"


class TensorSSA:
    """An immutable vector of numbers with a (nested) static shape, from `tensor.load()`.

    Operators work elementwise on vectors and numbers, with broadcasting. `x[coord]` is an element;
    with `None` in the coordinate, which keeps a mode, it is a smaller vector. `value` is the IR's
    `vector<n x T>`, and `dtype` the numeric type of its elements.

    >>> import basedsl_cute as cute
    >>> @cute.kernel
    ... def normalise(x: cute.Tensor):
    ...     v = x.load()
    ...     x.store(v / v.reduce(cute.ReductionOp.ADD, 0.0))
    """

    __slots__ = ("dtype", "region", "shape", "value")
    __array_ufunc__ = None

    def __init__(self, value: Any, shape: Any, dtype: Any) -> None:
        self.value = value
        self.shape = shape
        self.dtype = dtype
        self.region = current_trace("a vector").region

    @classmethod
    @takes_location_untyped
    def from_elements(
        cls, elements: Sequence[Any], shape: Any = None, dtype: Any = None
    ) -> TensorSSA:
        """Return the vector of the numbers `elements`, converted to `dtype` (by default their
        common type) and with `shape` (by default one mode), its first mode fastest. A numeric class
        in the place of `shape` is the `dtype`. Raises DSLTypeError for no number at all.
        """
        if isinstance(shape, type):
            shape, dtype = None, shape
        if not elements:
            raise DSLTypeError("a vector has at least one element")
        numbers = [as_numeric(x) for x in elements]
        if dtype is None:
            first = numbers[0]
            for other in numbers[1:]:
                first, _ = in_common_type(first, other)
            dtype = type(first)
        made = from_elements([x.to(dtype).ir_value() for x in numbers])
        return cls(made, (len(numbers),), dtype).reshape(shape or (len(numbers),))

    # A leaf of trees that control flow carries ----------------------------------------------------

    @takes_location
    def ir_value(self) -> Any:
        """The vector as an SSA value."""
        if self.region.closed:
            raise escaped("a vector", self.region)
        return self.value

    def with_ir_value(self, value: Any) -> TensorSSA:
        """Return the vector of the same shape and type with the SSA `value`, a `vector<n x T>`."""
        return TensorSSA(value, self.shape, self.dtype)

    def leaf_type(self) -> str:
        return str(self)

    def undefined(self) -> Any:
        with lanes(self.size) as kit:
            kit.begin()
            return kit.constant(self.dtype, 0)

    # What it is -----------------------------------------------------------------------------------

    @property
    def element_type(self) -> Any:
        """The element type, a numeric class."""
        return self.dtype

    @property
    def size(self) -> int:
        """The number of elements."""
        return int(algebra.product(self.shape))

    def __str__(self) -> str:
        return f"vector<{self.dtype.__name__} o {_text(self.shape)}>"

    __repr__ = __str__

    def __bool__(self) -> bool:
        raise DSLTypeError(
            f"a {self} has no truth value", hint="use cute.all_(x), cute.any_(x) or cute.where"
        )

    def __len__(self) -> int:
        raise DSLTypeError("a vector has no len()", hint="use cute.size(x.shape)")

    def __iter__(self, *_: Any) -> Any:
        raise DSLTypeError(
            "a vector is not iterated", hint="index it in a loop over range_constexpr"
        )

    __contains__ = __iter__  # Python would say that the class is no container

    def __setitem__(self, coord: Any, value: Any) -> NoReturn:
        raise DSLTypeError(
            "an element of a vector cannot be assigned",
            hint="t = cute.make_rmem_tensor(x.shape, x.dtype), t.store(x), t[i] = value",
        )

    def __hash__(self) -> int:
        return id(self)

    # Elements -------------------------------------------------------------------------------------

    def __getitem__(self, coord: Any, *, loc: Any = None, ip: Any = None) -> Any:
        coord = as_index(coord)
        rank = algebra.rank(self.shape)
        if isinstance(coord, tuple) and len(coord) != rank:
            raise DSLTypeError(
                f"a vector of shape {_text(self.shape)} is indexed with {len(coord)} coordinates"
            )
        check_known(coord, self.shape, "a vector", self.shape)
        layout = algebra.Layout(self.shape, compact_col_major(self.shape))
        if coord is not None and None not in flatten_to_tuple(_as_tuple(coord)):
            return self.dtype.from_value(extract(self.ir_value(), layout(coord)))
        kept, offset = algebra.slice_and_offset(coord, layout)
        if is_dynamic(offset):
            positions = [algebra.add_offset(offset, kept(i)) for i in range(algebra.size(kept))]
            values = [extract(self.ir_value(), p) for p in positions]
            return TensorSSA(from_elements(values), kept.shape, self.dtype)
        positions = [offset + kept(i) for i in range(algebra.size(kept))]
        return TensorSSA(pick(self.ir_value(), positions), kept.shape, self.dtype)

    # Conversions ----------------------------------------------------------------------------------

    @takes_location
    def to(self, dtype: Any) -> TensorSSA:
        """The vector with its elements converted to the numeric class `dtype`."""
        if dtype is self.dtype:
            return self
        converted: TensorSSA = elementwise(lambda x: x.to(dtype), self)
        return converted

    @takes_location
    def bitcast(self, dtype: Any) -> TensorSSA:
        """The vector of the same bits as elements of `dtype`. For another width the vector has one
        mode, and the first elements are the low bits of a wider one. Raises DSLTypeError for more
        modes, and for bits that are no whole number of elements.
        """
        n, rest = divmod(self.size * self.dtype.width, dtype.width)
        as_wide = dtype.width == self.dtype.width
        if rest or not (as_wide or len(_as_tuple(self.shape)) == 1):
            raise DSLTypeError(
                f"bitcast of {self} to {dtype.__name__}: the widths differ",
                hint="to(dtype) converts the values; only a vector with one mode has its elements "
                "joined or divided",
            )
        trace = current_trace("bitcast()")
        element = mlir_type(dtype, trace.ir)
        if not as_wide:
            return TensorSSA(bits_as(self.ir_value(), element, n), (n,), dtype)
        kind = trace.ir.VectorType.get([n], element)
        value = trace.emit_op("arith.bitcast", kind, self.ir_value())
        return TensorSSA(value, self.shape, dtype)

    @takes_location
    def to_elements(self) -> tuple[Any, ...]:
        """The numbers of the vector, in colexicographic order."""
        value = self.ir_value()
        return tuple(self.dtype.from_value(extract(value, i)) for i in range(self.size))

    @takes_location
    def broadcast_to(self, shape: Any) -> TensorSSA:
        """The vector broadcast to `shape`: extents of 1 repeat, missing leading modes are added.

        Raises DSLTypeError for a shape that the vector does not broadcast to.
        """
        wanted = as_coordinate(shape)
        if broadcast_shapes(self.shape, wanted) != wanted:
            raise DSLTypeError(f"{_text(self.shape)} does not broadcast to {_text(wanted)}")
        return TensorSSA(self.stretched(wanted), wanted, self.dtype)

    def stretched(self, shape: Any) -> Any:
        """The SSA value of the vector broadcast to a larger shape."""
        if shape == self.shape:
            return self.ir_value()
        strides = _stretched_strides(self.shape, shape)
        layout = algebra.Layout(shape, strides)
        return pick(self.ir_value(), [layout(i) for i in range(algebra.size(layout))])

    @takes_location
    def reshape(self, shape: Any) -> TensorSSA:
        """The same elements, in colexicographic order, with another shape of the same size.

        Raises DSLTypeError for another size.
        """
        wanted = as_coordinate(shape)
        if algebra.product(wanted) != self.size:
            raise DSLTypeError(f"{_text(self.shape)} cannot be reshaped to {_text(wanted)}")
        return TensorSSA(self.ir_value(), wanted, self.dtype)

    # Reductions -----------------------------------------------------------------------------------

    @takes_location
    def reduce(self, op: ReductionOp, init_val: Any, reduction_profile: Any = 0) -> Any:
        """Reduce the elements by `op`, pairwise, and the result with `init_val`.

        `reduction_profile` 0 reduces all elements to a number. In a tuple, `None` keeps a mode and
        1 reduces it: `(None, 1)` gives a vector with one element for each row. The order of
        additions is fixed: halves are added elementwise until one element is left. Raises
        DSLTypeError for an `op` that is no `ReductionOp`.
        """
        function = _COMBINE.get(op)
        if function is None:
            raise DSLTypeError(f"reduce takes a ReductionOp, not {op!r}")
        if not isinstance(reduction_profile, tuple):
            return self._fold(function, init_val)
        if None not in flatten_to_tuple(reduction_profile):
            return self._fold(function, init_val)
        flat = algebra.Layout(self.shape, compact_col_major(self.shape))
        kept = algebra.Layout(
            slice_tuple(reduction_profile, flat.shape), slice_tuple(reduction_profile, flat.stride)
        )
        reduced = algebra.Layout(
            dice_tuple(reduction_profile, flat.shape), dice_tuple(reduction_profile, flat.stride)
        )
        rows = [
            TensorSSA(
                pick(
                    self.ir_value(),
                    [kept(i) + reduced(j) for i in range(algebra.size(kept))],
                ),
                kept.shape,
                self.dtype,
            )
            for j in range(algebra.size(reduced))
        ]
        return elementwise(function, _pairwise(function, rows), init_val)

    def _fold(self, function: Callable[[Any, Any], Any], init_val: Any) -> Any:
        x, rest = self.reshape((self.size,)), []
        while x.size > 1:
            half = x.size // 2
            if x.size % 2:
                rest.append(x[x.size - 1])
            low = TensorSSA(pick(x.ir_value(), range(half)), (half,), x.dtype)
            high = TensorSSA(pick(x.ir_value(), range(half, 2 * half)), (half,), x.dtype)
            x = elementwise(function, low, high)
        total = x[0]
        for part in rest:
            total = function(total, part)
        return function(total, init_val)


def _pairwise(function: Callable[[Any, Any], Any], parts: list[Any]) -> Any:
    while len(parts) > 1:
        half = len(parts) // 2
        paired = [elementwise(function, parts[i], parts[i + half]) for i in range(half)]
        parts = [*paired, *parts[2 * half :]]
    return parts[0]


_COMBINE: dict[Any, Callable[[Any, Any], Any]] = {
    ReductionOp.ADD: operator.add,
    ReductionOp.MUL: operator.mul,
    ReductionOp.MAX: lambda x, y: combine("max", x, y),
    ReductionOp.MIN: lambda x, y: combine("min", x, y),
}


# Elementwise -------------------------------------------------------------------------------------


def elementwise(function: Callable[..., Any], *operands: Any) -> Any:
    """Apply `function`, written for numbers, to all elements of vectors and numbers, broadcast.

    Without a vector among the operands, the result is `function(*operands)`.
    """
    vectors = [x for x in operands if isinstance(x, TensorSSA)]
    if not vectors:
        return function(*operands)
    shape = vectors[0].shape
    for x in vectors[1:]:
        shape = broadcast_shapes(shape, x.shape)
    n = int(algebra.product(shape))
    values: list[Any] = []
    for x in operands:
        if isinstance(x, TensorSSA):
            values.append((x.dtype, x.stretched(shape), False))
        elif is_dynamic(x):
            values.append((type(x), splat(x.ir_value(), n), x.weak))
        else:
            values.append(x)
    with lanes(n):
        made = [x[0].from_value(x[1], weak=x[2]) if type(x) is tuple else x for x in values]
        result = function(*made)
        return TensorSSA(as_numeric(result).ir_value(), shape, type(result))


def lane_by_lane(function: Callable[..., Any], *operands: Any) -> Any:
    """Apply `function` like `elementwise`, but to one element after the other."""
    vectors = [x for x in operands if isinstance(x, TensorSSA)]
    shape = vectors[0].shape
    for x in vectors[1:]:
        shape = broadcast_shapes(shape, x.shape)
    n = int(algebra.product(shape))
    columns = [
        [x.dtype.from_value(v) for v in to_elements(x.stretched(shape))]
        if isinstance(x, TensorSSA)
        else [x] * n
        for x in operands
    ]
    results = [function(*row) for row in zip(*columns, strict=True)]
    return TensorSSA(from_elements([r.ir_value() for r in results]), shape, type(results[0]))


def broadcast_shapes(a: Any, b: Any) -> Any:
    """The shape that both shapes broadcast to; DSLTypeError if there is none."""
    joined = _joined(a, b)
    if joined is None:
        raise DSLTypeError(f"vectors of shapes {_text(a)} and {_text(b)} do not broadcast")
    return joined


def _joined(a: Any, b: Any) -> Any:
    if a == b:
        return a
    if isinstance(a, tuple) and isinstance(b, tuple):
        rank = max(len(a), len(b))
        pairs = [
            _joined(x, y)
            for x, y in zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, strict=True)
        ]
        return None if None in pairs else tuple(pairs)
    if not isinstance(a, tuple) and a == 1:
        return b
    if not isinstance(b, tuple) and b == 1:
        return a
    if isinstance(a, tuple) != isinstance(b, tuple):
        nested, extent = (a, b) if isinstance(a, tuple) else (b, a)
        return nested if algebra.product(nested) == extent else None
    return None


def _stretched_strides(shape: Any, target: Any) -> Any:
    """The strides over `target` that broadcast a colexicographic vector of `shape`."""
    strides = compact_col_major(shape)

    def match(s: Any, d: Any, t: Any) -> Any:
        if isinstance(s, tuple):
            pad = len(t) - len(s)
            zeros = tuple(algebra.repeat_like(0, x) for x in t[:pad])
            return zeros + tuple(match(*part) for part in zip(s, d, t[pad:], strict=True))
        if isinstance(t, tuple):
            return algebra.repeat_like(0, t) if s == 1 else compact_col_major(t, d)
        return d if s == t else 0

    return match(shape, strides, target)


def _as_tuple(x: Any) -> tuple[Any, ...]:
    return x if isinstance(x, tuple) else (x,)


def _text(shape: Any) -> str:
    return algebra.Layout(shape, shape).__str__().partition(":")[0]


# Functions ---------------------------------------------------------------------------------------


@takes_location
def where(cond: Any, x: Any, y: Any) -> Any:
    """Select `x` where `cond` holds, else `y`; both are computed.

    Operands are vectors, which broadcast, or numbers; the element type is the promotion of those of
    `x` and `y`. Raises DSLTypeError for a condition that is not Boolean.
    """
    kind = cond.dtype if isinstance(cond, TensorSSA) else type(cond)
    if kind not in (bool, Boolean):
        raise DSLTypeError(
            f"where() takes a Boolean condition, got {getattr(kind, '__name__', kind)}",
            hint="compare first: where(x > 0, ...)",
        )
    return elementwise(select, cond, x, y)


@takes_location
def full(shape: Any, fill_value: Any, dtype: Any) -> TensorSSA:
    """A vector of the static `shape` whose elements, of type `dtype`, are all `fill_value`."""
    shape = as_coordinate(shape)
    number = fill_value if isinstance(fill_value, Numeric) else dtype(fill_value)
    value = splat(number.to(dtype).ir_value(), int(algebra.product(shape)))
    return TensorSSA(value, shape, dtype)


@takes_location
def full_like(x: Any, fill_value: Any, dtype: Any = None) -> TensorSSA:
    """A vector filled with `fill_value`, of the shape of `x`, a vector or tensor, and of the
    numeric type `dtype`, by default that of its elements.
    """
    if not algebra.is_static(x.shape):
        raise DSLTypeError(
            f"a vector has a static shape, and this is {x.shape}",
            hint="tile the tensor with a static tiler first, or give full(shape, value, dtype) one",
        )
    return full(x.shape, fill_value, x.element_type if dtype is None else dtype)


@takes_location
def zeros_like(x: Any, dtype: Any = None) -> TensorSSA:
    """A vector of zeros, of the shape of `x`, a vector or tensor, and of the numeric type `dtype`,
    by default that of its elements.
    """
    return full_like(x, 0, dtype)


@takes_location
def ones_like(x: Any, dtype: Any = None) -> TensorSSA:
    """A vector of ones, of the shape of `x`, a vector or tensor, and of the numeric type `dtype`,
    by default that of its elements.
    """
    return full_like(x, 1, dtype)


@takes_location
def all_(x: TensorSSA) -> Any:
    """Return a Boolean: True if all elements of the vector `x` are true (not 0)."""
    return x.to(Boolean)._fold(operator.and_, True)


@takes_location
def any_(x: TensorSSA) -> Any:
    """Return a Boolean: True if any element of the vector `x` is true (not 0)."""
    return x.to(Boolean)._fold(operator.or_, False)


# Operators ---------------------------------------------------------------------------------------

_BINARY: Sequence[str] = (
    "add", "sub", "mul", "truediv", "floordiv", "mod", "and_", "or_", "xor", "lshift", "rshift",
)  # fmt: skip
_COMPARE: Sequence[str] = ("lt", "le", "gt", "ge", "eq", "ne")


def _is_operand(x: Any) -> bool:
    return isinstance(x, TensorSSA | Numeric | int | float) or hasattr(x, "item")


def _power(x: Any, y: Any) -> Any:
    def is_integer(v: Any) -> bool:
        kind = v.dtype if isinstance(v, TensorSSA) else type(v)
        return kind is int or bool(getattr(kind, "is_integer", False))

    known = not isinstance(y, TensorSSA) and not is_dynamic(y)
    if is_integer(x) and is_integer(y) and not known:
        return lane_by_lane(operator.pow, x, y)
    return elementwise(operator.pow, x, y)


def _install() -> None:
    def binary(function: Callable[[Any, Any], Any]) -> tuple[Any, Any]:
        def forward(self: Any, other: Any) -> Any:
            return elementwise(function, self, other) if _is_operand(other) else NotImplemented

        def reflected(self: Any, other: Any) -> Any:
            return elementwise(function, other, self) if _is_operand(other) else NotImplemented

        return forward, reflected

    for name in _BINARY:
        forward, reflected = binary(getattr(operator, name))
        stem = name.rstrip("_")
        setattr(TensorSSA, f"__{stem}__", forward)
        setattr(TensorSSA, f"__r{stem}__", reflected)
    for name in _COMPARE:
        setattr(TensorSSA, f"__{name}__", binary(getattr(operator, name))[0])
    methods: dict[str, Any] = {
        "__pow__": _power,
        "__rpow__": lambda self, other: _power(other, self),
        "__neg__": lambda self: elementwise(operator.neg, self),
        "__pos__": lambda self: self,
        "__invert__": lambda self: elementwise(operator.invert, self),
        "__abs__": lambda self: elementwise(abs, self),
    }
    for name, method in methods.items():
        setattr(TensorSSA, name, method)


_install()
