"""Arithmetic on leaves: static integers, dynamic integers, and the numbers known to divide them."""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Callable, Mapping
from numbers import Number
from typing import Any, NamedTuple

from .errors import LayoutError
from .ignored_location import takes_location

_ARITHMETIC = ("__add__", "__mul__", "__floordiv__", "__mod__")


class Arithmetic(NamedTuple):
    """The functions by which a class of dynamic integers divides and takes a minimum.

    They divide numbers neither of which is negative, as is so with all coordinates and extents.
    """

    floordiv: Callable[[Any, Any], Any]
    mod: Callable[[Any, Any], Any]
    minimum: Callable[[Any, Any], Any]


_arithmetic: dict[type, Arithmetic] = {}


def use_for(cls: type, arithmetic: Arithmetic) -> None:
    """Use these functions instead of the operators of `cls`."""
    _arithmetic[cls] = arithmetic


def _of(a: Any, b: Any) -> Arithmetic | None:
    return _arithmetic.get(type(a)) or _arithmetic.get(type(b))


def is_static_int(x: Any) -> bool:
    """Return True for a Python int (bool excluded)."""
    return type(x) is int or (issubclass(type(x), int) and type(x) is not bool)


@takes_location
def is_dynamic_int(x: Any) -> bool:
    """Return True for an object with integer arithmetic that is no Python number and no container.

    >>> is_dynamic_int(Dyn("n")), is_dynamic_int(4), is_dynamic_int((4, 4)), is_dynamic_int(None)
    (True, False, False, False)
    """
    cls = type(x)
    if cls is int or isinstance(x, Number):
        return False
    if hasattr(cls, "__len__") or hasattr(cls, "is_scaled_basis"):
        return False
    return all(hasattr(cls, name) for name in _ARITHMETIC)


@takes_location
def divisibility(x: Any) -> int:
    """Return the largest integer known to divide ``x``; for a static int its magnitude (0 for 0).

    >>> divisibility(12), divisibility(Dyn("n", divby=8)), divisibility(Dyn("n"))
    (12, 8, 1)
    """
    if is_static_int(x):
        return abs(int(x))
    return int(getattr(x, "divby", 1))


_divisibility = divisibility.__wrapped__


def with_divby(x: Any, n: int) -> Any:
    """Return ``x`` promised to be a multiple of ``n`` as well; ``x`` itself if it cannot carry
    that.
    """
    known = _divisibility(x)
    if n > 1 and not is_static_int(x) and known % n and hasattr(x, "with_divby"):
        return x.with_divby(math.lcm(known, n))
    return x


@takes_location
def assume(x: Any, divby: int) -> Any:
    """Return ``x`` with the promise that ``divby`` divides it.

    Nothing checks the promise for a dynamic integer. Raises LayoutError for a static int that
    ``divby`` does not divide, and for a ``divby`` that is no positive int.

    >>> str(assume(Dyn("n"), 8)), assume(16, 8)
    ('?{div=8}', 16)
    """
    if not hasattr(divby, "__index__") or (divby := operator.index(divby)) < 1:
        raise LayoutError(f"assume(..., divby={divby!r}): it is a positive int")
    if is_static_int(x) and x % divby:
        raise LayoutError(f"assume({x}, divby={divby}): it does not divide")
    return with_divby(x, divby)


def is_one(x: Any) -> bool:
    """Return True if ``x`` is the static int 1."""
    return is_static_int(x) and x == 1


def is_zero(x: Any) -> bool:
    """Return True if ``x`` is the static int 0."""
    return is_static_int(x) and x == 0


def same(a: Any, b: Any) -> bool:
    """Return True if two leaves are known to be equal while tracing: never emits a comparison."""
    if is_static_int(a) or is_static_int(b):
        return is_static_int(a) and is_static_int(b) and a == b
    return a is b or leaf_key(a) == leaf_key(b)


def leaf_key(x: Any) -> Any:
    """Return hashable identity of a leaf: the value of a static int, the structure of a dynamic
    one.
    """
    if is_static_int(x):
        return x
    key = getattr(x, "structural_key", None)
    return key() if key is not None else ("id", id(x))


def mul(a: Any, b: Any) -> Any:
    """Return ``a * b``."""
    if type(a) is int and type(b) is int:
        return a * b
    if is_zero(a) or is_zero(b):
        return 0
    if is_one(a):
        return b
    if is_one(b):
        return a
    return with_divby(a * b, _divisibility(a) * _divisibility(b))


def add(a: Any, b: Any) -> Any:
    """Return ``a + b``."""
    if is_zero(a):
        return b
    if is_zero(b):
        return a
    return with_divby(a + b, math.gcd(_divisibility(a), _divisibility(b)))


def sub(a: Any, b: Any) -> Any:
    """Return ``a - b``."""
    if is_zero(b):
        return a
    return with_divby(a - b, math.gcd(_divisibility(a), _divisibility(b)))


def floordiv(a: Any, b: Any) -> Any:
    """Return ``a // b``; a static ``b`` known to divide ``a`` keeps the rest of ``a``'s
    divisibility.
    """
    if is_one(b):
        return a
    if is_zero(a):
        return 0
    exact = is_static_int(b) and b and _divisibility(a) % b == 0
    own = _of(a, b)
    quotient = a // b if own is None else own.floordiv(a, b)
    return with_divby(quotient, _divisibility(a) // abs(b) if exact else 1)


def mod(a: Any, b: Any) -> Any:
    """Return ``a % b``; 0 when ``b`` is static and known to divide ``a``."""
    if is_zero(a) or is_one(b):
        return 0
    if is_static_int(b) and b and _divisibility(a) % b == 0:
        return 0
    own = _of(a, b)
    remainder = a % b if own is None else own.mod(a, b)
    return with_divby(remainder, math.gcd(_divisibility(a), _divisibility(b)))


def ceil_div(a: Any, b: Any) -> Any:
    """Return ``ceil(a / b)`` of two leaves, ``b`` positive."""
    if is_one(b):
        return a
    if is_zero(a):
        return 0
    if is_static_int(b) and _divisibility(a) % b == 0:
        return floordiv(a, b)
    return floordiv(add(a, sub(b, 1)), b)


def min_(a: Any, b: Any) -> Any:
    """Return the smaller of two leaves; extents are at least 1, so a static 1 wins at once."""
    if is_static_int(a) and is_static_int(b):
        return min(a, b)
    if is_one(a) or is_one(b):
        return 1
    if same(a, b):
        return a
    x, y = (b, a) if is_static_int(a) else (a, b)
    own = _of(x, y)
    if own is not None:
        least = own.minimum(x, y)
        return with_divby(least, math.gcd(_divisibility(a), _divisibility(b)))
    least = x.min_with(y) if hasattr(x, "min_with") else y + (x - y) * (x < y)
    return with_divby(least, math.gcd(_divisibility(a), _divisibility(b)))


_names = itertools.count()

_OPERATIONS: dict[str, Callable[..., int]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "&": lambda a, b: a & b,
    "|": lambda a, b: a | b,
    "^": lambda a, b: a ^ b,
    "<<": lambda a, b: a << b,
    ">>": lambda a, b: a >> b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "min": min,
    "max": max,
}


class Dyn:
    """A symbolic integer: a name, or an expression over names and Python ints.

    Arithmetic builds expressions, ``evaluate`` gives them a value. Prints as ``?`` or
    ``?{div=16}``; ``repr`` shows the expression. ``==`` compares structure and is a Python bool,
    ``<`` and its kin build expressions.

    >>> n = Dyn("n", divby=16)
    >>> str(n), str(n // 4), (n * 3 + 8).evaluate({"n": 32})
    ('?{div=16}', '?{div=4}', 104)
    """

    __slots__ = ("args", "divby", "name", "op")

    def __init__(self, name: str | None = None, divby: int = 1):
        if divby < 1:
            raise ValueError(f"divby must be positive, got {divby}")
        self.name = name if name is not None else f"_{next(_names)}"
        self.op = ""
        self.args: tuple[Any, ...] = ()
        self.divby = divby

    @classmethod
    def _expression(cls, op: str, args: tuple[Any, ...], divby: int = 1) -> Dyn:
        self = cls.__new__(cls)
        self.name, self.op, self.args, self.divby = "", op, args, max(divby, 1)
        return self

    def with_divby(self, n: int) -> Dyn:
        """Return the same integer, promised to be a multiple of ``n``."""
        if self.divby % n == 0:
            return self
        if not self.op:
            return Dyn(self.name, math.lcm(self.divby, n))
        return Dyn._expression(self.op, self.args, math.lcm(self.divby, n))

    def structural_key(self) -> Any:
        """Return a key that is equal for equal expressions."""
        return ("dyn", self.name, self.op, tuple(leaf_key(a) for a in self.args))

    def evaluate(self, values: Mapping[str, int]) -> int:
        """Return the value when each name stands for ``values[name]``.

        Raises ValueError if a promised divisibility does not hold.
        """
        if self.op:
            args = (a.evaluate(values) if isinstance(a, Dyn) else a for a in self.args)
            value = int(_OPERATIONS[self.op](*args))
        else:
            value = int(values[self.name])
        if value % self.divby:
            raise ValueError(f"{self!r} is {value}, not a multiple of {self.divby} as promised")
        return value

    def __str__(self) -> str:
        return f"?{{div={self.divby}}}" if self.divby > 1 else "?"

    def __repr__(self) -> str:
        if not self.op:
            return self.name
        if self.op in ("min", "max"):
            return f"{self.op}({self.args[0]!r}, {self.args[1]!r})"
        return f"({self.args[0]!r} {self.op} {self.args[1]!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dyn) and self.structural_key() == other.structural_key()

    def __hash__(self) -> int:
        return hash(self.structural_key())

    def __bool__(self) -> bool:
        raise TypeError(f"{self!r} is a dynamic integer: its truth is not known while tracing")

    def min_with(self, other: Any) -> Any:
        """Return ``min(self, other)``."""
        return Dyn._expression(
            "min", (self, other), math.gcd(_divisibility(self), _divisibility(other))
        )

    def __add__(self, other: Any) -> Any:
        return _build("+", self, other)

    def __radd__(self, other: Any) -> Any:
        return _build("+", other, self)

    def __sub__(self, other: Any) -> Any:
        return _build("-", self, other)

    def __rsub__(self, other: Any) -> Any:
        return _build("-", other, self)

    def __neg__(self) -> Any:
        return _build("-", 0, self)

    def __mul__(self, other: Any) -> Any:
        return _build("*", self, other)

    def __rmul__(self, other: Any) -> Any:
        return _build("*", other, self)

    def __floordiv__(self, other: Any) -> Any:
        return _build("//", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return _build("//", other, self)

    def __mod__(self, other: Any) -> Any:
        return _build("%", self, other)

    def __rmod__(self, other: Any) -> Any:
        return _build("%", other, self)

    def __and__(self, other: Any) -> Any:
        return _build("&", self, other)

    def __rand__(self, other: Any) -> Any:
        return _build("&", other, self)

    def __or__(self, other: Any) -> Any:
        return _build("|", self, other)

    def __ror__(self, other: Any) -> Any:
        return _build("|", other, self)

    def __xor__(self, other: Any) -> Any:
        return _build("^", self, other)

    def __rxor__(self, other: Any) -> Any:
        return _build("^", other, self)

    def __lshift__(self, other: Any) -> Any:
        return _build("<<", self, other)

    def __rlshift__(self, other: Any) -> Any:
        return _build("<<", other, self)

    def __rshift__(self, other: Any) -> Any:
        return _build(">>", self, other)

    def __rrshift__(self, other: Any) -> Any:
        return _build(">>", other, self)

    def __lt__(self, other: Any) -> Any:
        return _build("<", self, other)

    def __le__(self, other: Any) -> Any:
        return _build("<=", self, other)

    def __gt__(self, other: Any) -> Any:
        return _build(">", self, other)

    def __ge__(self, other: Any) -> Any:
        return _build(">=", self, other)


def _build(op: str, a: Any, b: Any) -> Any:
    """Return the expression ``a op b`` with the folds of this module; NotImplemented for other
    types.
    """
    if not all(isinstance(x, Dyn) or is_static_int(x) for x in (a, b)):
        return NotImplemented
    da, db = _divisibility(a), _divisibility(b)
    if op == "+":
        if is_zero(a) or is_zero(b):
            return b if is_zero(a) else a
        return Dyn._expression(op, (a, b), math.gcd(da, db))
    if op == "-":
        return a if is_zero(b) else Dyn._expression(op, (a, b), math.gcd(da, db))
    if op == "*":
        if is_zero(a) or is_zero(b):
            return 0
        if is_one(a) or is_one(b):
            return b if is_one(a) else a
        return Dyn._expression(op, (a, b), da * db)
    if op == "//":
        if is_one(b) or is_zero(a):
            return a
        exact = is_static_int(b) and b and da % b == 0
        return Dyn._expression(op, (a, b), da // abs(b) if exact else 1)
    if op == "%":
        if is_zero(a) or is_one(b) or (is_static_int(b) and b and da % b == 0):
            return 0
        return Dyn._expression(op, (a, b), math.gcd(da, db))
    if op == "<<" and is_static_int(b):
        return Dyn._expression(op, (a, b), da << b)
    return Dyn._expression(op, (a, b))


@takes_location
def sym_int(name: str | None = None, divby: int = 1) -> Dyn:
    """Return a symbolic integer for shapes and strides that are not known yet; see `Dyn`."""
    return Dyn(name, divby)
