"""Division by a divisor that is known before the kernel runs, by two multiplications and a shift.

For a divisor d up to 2**31 and m = ceil(2**63 / d), the quotient of an unsigned 32-bit n is
n m >> 63: n m / 2**63 is larger than n / d by less than n / 2**63, which is less than 1 / d. The
halves of m keep products within 64 bits.
"""

from __future__ import annotations

from typing import Any

from basedsl import DSLTypeError, Int32, Numeric, Uint32, Uint64, as_numeric, is_dynamic, select
from basedsl_cute.algebra.ignored_location import takes_location


class FastDivmodDivisor:
    """A divisor d from 1 to 2**31 - 1 with its factor, for `divmod(n, d)`, `n // d` and `n % d`.

    Made in host code and passed to a kernel, it makes divisions of 32-bit numbers n >= 0 cheap.
    A static divisor passes no data. `is_power_of_2` is accepted and not used. Raises DSLTypeError
    for a divisor that is no integer of at most 32 bits, and for a static one below 1.

    >>> import basedsl_cute as cute
    >>> divmod(17, cute.FastDivmodDivisor(5))
    (3, 2)
    """

    @takes_location  # type: ignore[misc]
    def __init__(self, divisor: Any, is_power_of_2: bool | None = None) -> None:
        kind = type(as_numeric(divisor))
        if not kind.is_integer or kind.width > 32:
            raise DSLTypeError(f"a fast divisor is an integer of at most 32 bits, not {kind!r}")
        if not is_dynamic(divisor) and int(divisor) < 1:
            raise DSLTypeError(f"a fast divisor is at least 1, not {int(divisor)}")
        self.divisor: Any = divisor if is_dynamic(divisor) else int(divisor)
        self._high: Any = None  # the upper and lower 32 bits of m
        self._low: Any = None
        if is_dynamic(divisor):
            self.divisor = divisor.to(Int32)
            wide = divisor.to(Uint32).to(Uint64)
            m = ((wide - 1) + (1 << 63)) // wide
            self._high, self._low = (m >> 32).to(Uint32), m.to(Uint32)

    def __rfloordiv__(self, n: Any) -> Any:
        if self._high is None:
            return n // self.divisor
        wide = as_numeric(n).to(Uint32).to(Uint64)
        low = (wide * self._low.to(Uint64)) >> 32
        return ((wide * self._high.to(Uint64) + low) >> 31).to(_kind(n))

    def __rmod__(self, n: Any) -> Any:
        return self.__rdivmod__(n)[1]

    def __rdivmod__(self, n: Any) -> tuple[Any, Any]:
        quotient = n // self
        divisor = self.divisor
        if is_dynamic(divisor) and is_dynamic(quotient):
            divisor = divisor.to(type(quotient))  # of the dividend's sign
        return quotient, n - quotient * divisor

    def __repr__(self) -> str:
        return f"FastDivmodDivisor({self.divisor})"


class FastDivmodDivisorV2(FastDivmodDivisor):
    """A `FastDivmodDivisor` for dividends of either sign: quotients are rounded down, as in Python.

    >>> import basedsl_cute as cute
    >>> divmod(-7, cute.FastDivmodDivisorV2(5))
    (-2, 3)
    """

    def __rfloordiv__(self, n: Any) -> Any:
        if self._high is None or not type(as_numeric(n)).signed:
            return super().__rfloordiv__(n)
        number = as_numeric(n).to(_kind(n))
        # floor(n / d) is ~(~n // d) for negative n, and ~n is not negative then.
        negative = number < 0
        quotient = super().__rfloordiv__(select(negative, ~number, number))
        return select(negative, ~quotient, quotient)


def _kind(n: Any) -> Any:
    return type(n) if isinstance(n, Numeric) and n.width == 32 else Int32


@takes_location
def fast_divmod_create_divisor(divisor: Any) -> Any:
    """Prepare a divisor for `divmod(n, result)`; see `FastDivmodDivisor`."""
    return FastDivmodDivisor(divisor)
