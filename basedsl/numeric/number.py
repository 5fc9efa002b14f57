"""Numeric, the base of the numeric classes. An instance holds a Python number, or an SSA value
while tracing.

`types` has the classes of each format; `conversion` the conversions, `promotion` the promotion
table; `operators` gives the classes Python's operators. Instances are immutable.
"""

from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any, ClassVar, SupportsIndex, TypeVar

import numpy as np

from basedsl.errors import DSLTypeError, with_article
from basedsl.location import asks_as_library
from basedsl.numeric.conversion import convert_number, emit_conversion
from basedsl.numeric.dynamic_text import DynamicText
from basedsl.numeric.formats import Kind, NumberFormat
from basedsl.numeric.kit import kit_of
from basedsl.numeric.not_static import index_hint, not_static
from basedsl.numeric.python_class import Numbers, own_classes_only, python_class
from basedsl.numeric.text_use import check_text
from basedsl.tracing import Region
from basedsl.tracing import trace as tracing

N = TypeVar("N", bound="Numeric")
Number = int | float
_new = object.__new__
#: The classes by their names; `types` fills it.
TYPES: dict[str, type[Numeric]] = {}


class NumericMeta(Numbers):
    """The metaclass of the numeric classes: their short name and their MLIR type."""

    @property
    def mlir_type(cls) -> Any:
        """The MLIR type; needs a running trace (`mlir_type(T, ir)` does not)."""
        return kit_of(tracing.current_trace(f"{cls.__name__}.mlir_type")).type_of(cls)  # type: ignore[arg-type]

    def __repr__(cls) -> str:
        return cls.__name__


class Numeric(metaclass=NumericMeta):
    """A number of a fixed format.

    `T(x)` converts the Python, NumPy or numeric value `x`; a Python number that does not fit is a
    DSLTypeError. Outside a trace the result is concrete (`value` is a Python number); while tracing
    it is dynamic (`value` is an SSA value), also from a literal. `weak` instances came from Python
    literals and adapt to the other operand's type. A plugin may note in `place` the memory address
    that it read the number from.

        Int32(7) // 2                   # Int32(3)
        Int8(300)                       # DSLTypeError: 300 does not fit Int8, ...

    Class attributes: `width` in bits, `storage_width` of an array element in bits, `signed`,
    `is_integer`, `is_float`, `zero`, `min`, `max`, `inf` (floats), `numpy_dtype`, `dlpack` (code,
    bits, lanes).
    """

    __slots__ = ("divby", "place", "region", "value", "weak")
    __array_ufunc__ = None  # NumPy scalars leave operators to these classes

    name: ClassVar[str] = "Numeric"
    format: ClassVar[NumberFormat]
    kind: ClassVar[Kind]
    width: ClassVar[int]
    storage_width: ClassVar[int]
    signed: ClassVar[bool]
    is_integer: ClassVar[bool] = False
    is_float: ClassVar[bool] = False
    zero: ClassVar[Number]
    min: ClassVar[Number]
    max: ClassVar[Number]
    inf: ClassVar[float]
    numpy_dtype: ClassVar[Any]
    dlpack: ClassVar[tuple[int, int, int]]

    value: Any
    weak: bool
    region: Region | None
    divby: int
    place: Any

    def __new__(cls: type[N], value: Any, *, loc: Any = None, ip: Any = None) -> N:
        if "format" not in cls.__dict__:
            raise DSLTypeError(
                f"{cls.__name__} is an abstract number type",
                hint="write a type with a width, for instance Int32 or Float32",
            )
        trace = tracing.current_trace_or_none()
        if isinstance(value, Numeric):
            converted = value.to(cls)
            if trace is None or converted.region is not None:
                return converted
            return cls.from_value(converted.ir_value())
        if type(value) is int and own_classes_only():
            value = _with_bits(cls, value)
        if trace is None:
            return cls.concrete(value)
        if isinstance(value, trace.ir.Value):
            return cls._from_checked(value, trace)
        if hasattr(type(value), "__dsl_number__"):  # the chosen member of an IntEnum
            return cls(value.__dsl_number__())
        number = check_literal(cls, value)
        kit = kit_of(trace)
        kit.begin()
        return cls.from_value(kit.constant(cls, number))

    # Making -------------------------------------------------------------------------------------

    @classmethod
    def from_value(cls: type[N], value: Any, weak: bool = False) -> N:
        """Make a number of this type from `value`, an SSA value of its MLIR type, made in the
        region being traced. A `weak` number takes the type of the other operand, as literals do.
        Raises DSLError outside of a function that is being compiled.
        """
        trace = tracing.current_trace_or_none()
        self = _new(cls)
        self.value = value
        self.weak = weak
        self.divby = 1
        self.region = (
            tracing.current_trace("a dynamic value").region if trace is None else trace.region
        )
        return self

    @classmethod
    def concrete(cls: type[N], value: Any, weak: bool = False) -> N:
        """Make a number of this type from `value`, a Python number; DSLTypeError if it does not
        fit. A `weak` number takes the type of the other operand, as literals do.
        """
        return cls._known(check_literal(cls, value), weak)

    @classmethod
    def _known(cls: type[N], value: Any, weak: bool = False) -> N:
        self = _new(cls)
        self.value = value
        self.weak = weak
        self.divby = 1
        self.region = None
        return self

    @classmethod
    def _from_checked(cls: type[N], value: Any, trace: tracing.Trace) -> N:
        expected = kit_of(trace).type_of(cls)
        if value.type != expected:
            raise DSLTypeError(f"{cls.__name__} is {expected} in MLIR, the value is {value.type}")
        return cls.from_value(value)

    @classmethod
    def is_same_kind(cls, other: type[Numeric]) -> bool:
        """Return True if this type and `other` are both integers, or both floats."""
        return cls.is_integer == other.is_integer and cls.is_float == other.is_float

    @classmethod
    def same_kind_of_width(cls, width: int) -> type[Numeric]:
        """Return the integer class of this signedness with `width` bits."""
        return TYPES[f"{'Int' if cls.signed else 'Uint'}{width}"]

    @classmethod
    def float32(cls) -> type[Numeric]:
        """Return the Float32 class."""
        return TYPES["Float32"]

    # Asking -------------------------------------------------------------------------------------

    def _python_class(self) -> type:
        """The class, `int`, `float` or `bool`, of the Python number that this one stands for.

        It answers `isinstance`, `match` and `functools.singledispatch` of users; the library's own
        code, which tells static numbers from dynamic ones, sees the real class.
        """
        if own_classes_only() or asks_as_library(sys._getframe(1)):
            return type(self)
        return python_class(type(self))

    __class__ = property(_python_class)

    @property
    def is_dynamic(self) -> bool:
        """True when the number is known only at run time."""
        return self.region is not None

    @property
    def dtype(self) -> type[Numeric]:
        """The numeric class."""
        return type(self)

    @property
    def ptr(self) -> Any:
        """The place in memory that the number was read from; AttributeError if no plugin has noted
        it.
        """
        try:
            return self.place
        except AttributeError:
            kind = type(self).__name__
            raise AttributeError(f"this {kind} is a value, which has no address") from None

    def data_ptr(self) -> Any:
        """The same as `ptr`."""
        return self.ptr

    def to(self, target: type[N], *, loc: Any = None, ip: Any = None) -> N:
        """Convert this number to the numeric type `target`; the result is not weak.

            Float32(2.75).to(Int32)         # Int32(2)

        Integers wrap, floats saturate and round: the table in `basedsl.numeric.conversion`. Raises
        DSLTypeError if `target` is no numeric type. `loc` and `ip` are taken and ignored.
        """
        if not (isinstance(target, type) and issubclass(target, Numeric)):
            raise DSLTypeError(f".to() takes a numeric type, not {target!r}", hint=".to(Float32)")
        if target is type(self) and not self.weak:
            return self
        if self.region is None:
            return target._known(convert_number(self.value, target.format))
        trace = tracing.current_trace("converting a dynamic value")
        value = self.ir_value()
        kit = kit_of(trace)
        kit.begin()
        result = target.from_value(emit_conversion(kit, type(self), target, value))
        if self.divby > 1 and target.is_integer:
            result.divby = _surviving_divisor(self, target)
        return result

    def ir_value(self, *, loc: Any = None, ip: Any = None) -> Any:
        """Return the SSA value; a number known while compiling becomes an `arith.constant`.

        Raises DSLError if the value was made in a region that is closed.
        """
        region = self.region
        if region is None:
            trace = tracing.current_trace("an MLIR value")
            kit = kit_of(trace)
            kit.begin()
            if loc is not None:
                kit.loc = loc
            if ip is None:
                return kit.constant(type(self), self.value)
            with ip:
                return kit.constant(type(self), self.value)
        if region.closed:
            raise tracing.escaped(with_article(type(self)), region)
        return self.value

    # Python's protocols -------------------------------------------------------------------------

    @property
    def real(self: N) -> N:
        """The number itself, as of Python's numbers; a Boolean's is an int."""
        return +self  # type: ignore[no-any-return]

    @property
    def imag(self) -> Number:
        """0, as of Python's numbers that are no complex ones."""
        return type(self).zero

    def conjugate(self: N) -> N:
        """Return the number itself, as Python's numbers do."""
        return +self  # type: ignore[no-any-return]

    def __getattr__(self, name: str) -> Any:
        """Refuse a name that Python's number has and this one has not, by an error that is no
        AttributeError: `hasattr` and `getattr` would take another path than in Python.
        """
        cls = python_class(type(self)) if "format" in type(self).__dict__ else object
        if name[:2] != "__" and hasattr(cls, name) and not asks_as_library(sys._getframe(1)):
            raise DSLTypeError(
                f"'{name}' of a number is not known in compiled code",
                hint=_INSTEAD.get(name, "compute it by operators, or where the function is called"),
            )
        kind = type(self).__name__
        raise AttributeError(f"'{kind}' object has no attribute '{name}'", name=name, obj=self)

    def __bool__(self) -> bool:
        if self.region is not None:
            raise not_static(self, "is used as a Python condition")
        return bool(self.value)

    def __int__(self) -> int:
        if self.region is not None:
            raise not_static(
                self, "cannot become a Python int",
                "in a captured function int(x) converts at run time; elsewhere write x.to(Int32)",
            )  # fmt: skip
        return int(self.value)

    def __float__(self) -> float:
        if self.region is not None:
            raise not_static(
                self, "cannot become a Python float",
                "in a captured function float(x) and math.* work at run time; elsewhere write "
                "x.to(Float32)",
            )  # fmt: skip
        return float(self.value)

    def __hash__(self) -> int:
        if self.region is not None:
            raise not_static(
                self, "is looked up in a dict or a set (hashed), which happens while compiling",
                "compare it with each key (`x in (1, 2, 3)` does), or keep what is looked up in a "
                "list or an array and index that",
            )  # fmt: skip
        return hash(self.value)

    def __str__(self) -> str:
        if self.region is None:
            return str(self.value)
        trace = tracing.current_trace_or_none()
        if trace is not None:
            trace.texts += 1
            check_text(sys._getframe(1))
        return DynamicText("?" if self.divby == 1 else f"?{{div={self.divby}}}")

    def __repr__(self) -> str:
        text = f"{type(self).__name__}({self})"
        if self.region is not None:
            check_text(sys._getframe(1), is_part=True)
        return text if self.region is None else DynamicText(text)

    def __format__(self, spec: str) -> str:
        if self.region is None:
            return format(self.value, spec)
        trace = tracing.current_trace_or_none()
        if trace is not None:
            trace.remark_on_text(sys._getframe(1))
            check_text(sys._getframe(1))
        try:
            return DynamicText(format(str(self), spec))
        except ValueError:  # a format of numbers; a dynamic number shows as "?"
            return str(self)

    def __copy__(self: N) -> N:
        return self  # immutable

    def __deepcopy__(self: N, memo: Any) -> N:
        return self

    def __reduce__(self) -> Any:
        if self.region is not None:
            raise DSLTypeError(f"a dynamic {type(self).__name__} exists only while tracing")
        return _unpickle, (type(self), self.value, self.weak)

    if TYPE_CHECKING:  # given by `operators` and `rounding`

        def __add__(self, other: Any) -> Any: ...
        def __radd__(self, other: Any) -> Any: ...
        def __sub__(self, other: Any) -> Any: ...
        def __rsub__(self, other: Any) -> Any: ...
        def __mul__(self, other: Any) -> Any: ...
        def __rmul__(self, other: Any) -> Any: ...
        def __truediv__(self, other: Any) -> Any: ...
        def __rtruediv__(self, other: Any) -> Any: ...
        def __floordiv__(self, other: Any) -> Any: ...
        def __rfloordiv__(self, other: Any) -> Any: ...
        def __mod__(self, other: Any) -> Any: ...
        def __rmod__(self, other: Any) -> Any: ...
        def __pow__(self, other: Any, modulus: Any = None) -> Any: ...
        def __rpow__(self, other: Any) -> Any: ...
        def __lshift__(self, other: Any) -> Any: ...
        def __rlshift__(self, other: Any) -> Any: ...
        def __rshift__(self, other: Any) -> Any: ...
        def __rrshift__(self, other: Any) -> Any: ...
        def __and__(self, other: Any) -> Any: ...
        def __rand__(self, other: Any) -> Any: ...
        def __or__(self, other: Any) -> Any: ...
        def __ror__(self, other: Any) -> Any: ...
        def __xor__(self, other: Any) -> Any: ...
        def __rxor__(self, other: Any) -> Any: ...
        def __lt__(self, other: Any) -> Any: ...
        def __le__(self, other: Any) -> Any: ...
        def __gt__(self, other: Any) -> Any: ...
        def __ge__(self, other: Any) -> Any: ...
        def __eq__(self, other: Any) -> Any: ...
        def __ne__(self, other: Any) -> Any: ...
        def __divmod__(self, other: Any) -> Any: ...
        def __rdivmod__(self, other: Any) -> Any: ...
        def __neg__(self) -> Any: ...
        def __pos__(self) -> Any: ...
        def __abs__(self) -> Any: ...
        def __invert__(self) -> Any: ...
        def __round__(self, digits: int | None = None) -> Any: ...
        def __floor__(self) -> Any: ...
        def __ceil__(self) -> Any: ...
        def __trunc__(self) -> Any: ...


class Integer(Numeric):
    """A whole number. `divby` is a known divisor of a dynamic one, 1 if nothing is known."""

    __slots__ = ()

    is_integer = True
    zero = 0

    @property
    def numerator(self: N) -> N:
        """The number itself, as of Python's ints."""
        return +self  # type: ignore[no-any-return]

    @property
    def denominator(self) -> int:
        """1, as of Python's ints."""
        return 1

    def with_divby(self: N, divisor: SupportsIndex) -> N:
        """Return the same number with the promise that `divisor` divides it.

        Raises DSLTypeError for a divisor below 1 and for a number known not to be a multiple.
        """
        n = divisor.__index__()
        if n < 1:
            raise DSLTypeError(f"a divisor must be positive, not {n}")
        if self.region is None:
            if self.value % n:
                raise DSLTypeError(f"{self.value} is not a multiple of {n}")
            return self
        result = _new(type(self))
        result.value, result.weak, result.region = self.value, self.weak, self.region
        result.divby = math.lcm(n, self.divby)
        return result

    def __setitem__(self, index: Any, value: Any) -> None:
        # Python would ask a dynamic index for its number before it says this.
        raise TypeError(f"{type(self).__name__!r} object does not support item assignment")

    def __index__(self) -> int:
        if self.region is not None:
            raise not_static(
                self, "is used where Python needs a number now (an index, a length, a bound)",
                index_hint(),
            )  # fmt: skip
        return int(self.value)


class Float(Numeric):
    """A floating-point number."""

    __slots__ = ()

    is_float = True
    zero = 0.0
    inf = math.inf


def is_dynamic(x: Any) -> bool:
    """Return True if x is a numeric value known only at run time, False for anything else."""
    return isinstance(x, Numeric) and x.region is not None


#: What to write for a method that Python's numbers have.
_INSTEAD = {
    "is_integer": "write x == math.floor(x)",
    "bit_length": "count in a loop: while n: n >>= 1; bits += 1",
    "bit_count": "count in a loop: while n: bits += n & 1; n >>= 1",
    "to_bytes": "write (n >> 8 * i) & 255 for byte i",
}


def _with_bits(T: type[Numeric], value: int) -> int:
    """Return the number of type `T` with the bits that an int has in its width, as -1 of 0xFFFFFFFF
    for Int32. An int of more bits stays itself. Programs for other DSLs write such constants.
    """
    if T.kind is Kind.SIGNED and T.max < value <= 2 * T.max + 1:
        return value - (1 << T.width)
    if T.kind is Kind.UNSIGNED and -(T.max // 2) - 1 <= value < 0:
        return value + (1 << T.width)
    return value


def check_literal(T: type[Numeric], value: Any) -> Number:
    """Return a Python or NumPy number as `T` holds it; DSLTypeError if it is no number or does not
    fit.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Numeric):
        return check_literal(T, value.value) if value.region is None else _reject(T, value)
    if not isinstance(value, (int, float)):
        return _reject(T, value)
    if T.kind is Kind.BOOLEAN:
        return bool(value)
    if T.kind is Kind.FLOAT:
        return _check_float(T, value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise DSLTypeError(f"{value} has no value as {T.__name__}")
        value = math.trunc(value)
    if not T.min <= value <= T.max:
        raise DSLTypeError(
            f"{value} does not fit {T.__name__}, which holds {T.min} to {T.max}",
            hint=f"use a wider type; to wrap on purpose, convert from one: x.to({T.__name__})",
        )
    return int(value)


def _check_float(T: type[Numeric], value: Number) -> float:
    rounded = convert_number(value, T.format) if not isinstance(value, int) or (
        abs(value) < 1 << 1024
    ) else math.inf  # fmt: skip
    if math.isinf(rounded) and (isinstance(value, int) or math.isfinite(value)):
        shown = repr(value) if isinstance(value, float) or abs(value) < 10**20 else "this integer"
        raise DSLTypeError(
            f"{shown} does not fit {T.__name__}, whose largest number is {T.max:.8g}",
            hint="use a wider type; math.inf is the infinity",
        )
    return float(rounded)


def _reject(T: type[Numeric], value: Any) -> Number:
    shown = repr(value)
    what = f"{shown} of type {type(value).__name__}"
    if len(shown) > 40:
        what = with_article(type(value))
    raise DSLTypeError(
        f"{T.__name__}(...) takes a number, not {what}",
        hint="convert one element, or one number, at a time",
    )


def _surviving_divisor(number: Numeric, target: type[Numeric]) -> int:
    if target.kind is Kind.BOOLEAN:
        return 1
    if target.width >= number.width:
        return number.divby
    return min(number.divby & -number.divby, 1 << target.width)


def _unpickle(T: type[Numeric], value: Any, weak: bool) -> Numeric:
    return T._known(value, weak)
