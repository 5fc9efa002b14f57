"""Division by a number known before the kernel: a multiplication and a shift.

For a divisor d and l = ceil(log2 d), m = floor(2**32 (2**l - d) / d) + 1: the quotient of an
unsigned 32-bit n is (t + ((n - t) >> min(l, 1))) >> max(l - 1, 0) with t = mulhi(m, n) (Granlund
and Montgomery, "Division by Invariant Integers using Multiplication", 1994, figure 4.1).
"""

from __future__ import annotations

from typing import Any

from basedsl.errors import DSLTypeError
from basedsl.numeric import Int32, Numeric, Uint32, Uint64, as_numeric, is_dynamic


class FastDivmodDivisor:
    """A divisor d from 1 to 2**31 - 1: `divmod(n, d)`, `n // d` and `n % d` for n from 0.

    Made on the host, it travels to kernels with its multiplier. Of a static d nothing travels.
    """

    def __init__(self, divisor: Any, *, loc: Any = None, ip: Any = None) -> None:
        kind = type(as_numeric(divisor))
        if not kind.is_integer or kind.width > 32:
            raise DSLTypeError(f"a fast divisor is an integer of at most 32 bits, not {kind!r}")
        if not is_dynamic(divisor) and int(divisor) < 1:
            raise DSLTypeError(f"a fast divisor is at least 1, not {int(divisor)}")
        self.divisor: Any = divisor if is_dynamic(divisor) else int(divisor)
        self._multiplier: Any = None
        self._shift: Any = None
        if is_dynamic(divisor):
            self.divisor = divisor.to(Int32)
            self._prepare(divisor.to(Uint32))

    def _prepare(self, d: Any) -> None:
        bits: Any = Int32(0)  # ceil(log2 d)
        for k in range(31):
            bits = bits + (d > Uint32(1 << k)).to(Int32)
        power = Uint64(1) << bits.to(Uint64)
        wide = d.to(Uint64)
        self._multiplier = ((((power - wide) << 32) // wide) + 1).to(Uint32)
        self._shift = bits

    def __rfloordiv__(self, n: Any) -> Any:
        if self._multiplier is None:
            return n // self.divisor
        number = as_numeric(n).to(Uint32)
        high = ((number.to(Uint64) * self._multiplier.to(Uint64)) >> 32).to(Uint32)
        first = _clamped(self._shift)
        half = (number - high) >> first.to(Uint32)
        return ((high + half) >> (self._shift - first).to(Uint32)).to(_kind(n))

    def __rmod__(self, n: Any) -> Any:
        return self.__rdivmod__(n)[1]

    def __rdivmod__(self, n: Any) -> tuple[Any, Any]:
        quotient = n // self
        return quotient, n - quotient * self.divisor

    def __repr__(self) -> str:
        return f"FastDivmodDivisor({self.divisor})"


def _clamped(shift: Any) -> Any:
    """min(shift, 1)."""
    return (shift > 0).to(Int32)


def _kind(n: Any) -> Any:
    return type(n) if isinstance(n, Numeric) and n.width == 32 else Int32


def fast_divmod_create_divisor(divisor: Any, *, loc: Any = None, ip: Any = None) -> Any:
    """The divisor prepared for `divmod(n, result)`."""
    return FastDivmodDivisor(divisor)
