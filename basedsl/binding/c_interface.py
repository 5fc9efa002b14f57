"""`CParameter`: how an argument is passed from C to an exported function."""

from __future__ import annotations

import re
from dataclasses import dataclass

# `struct` codes -> C types. Half and narrower floats are passed as their bits.
C_TYPES = {
    "b": "int8_t", "B": "uint8_t", "h": "int16_t", "H": "uint16_t", "e": "uint16_t",
    "i": "int32_t", "I": "uint32_t", "q": "int64_t", "Q": "uint64_t", "f": "float", "d": "double",
}  # fmt: skip


@dataclass(frozen=True)
class CParameter:
    """One parameter of an exported C function. `name` is that of the argument, or its path in a
    tree of them; `kind` says how it is passed:

    - "number": by value, of the C type of its one `struct` code in `storage`.
    - "pointer": an address, by value.
    - "array": a pointer to a struct of an address, `extents` extents and then the strides.
    - "struct": a pointer to a struct with a number for each code of `storage`.
    - any other: by value, as the C type of that name (`CUstream`).

    `fields` are the names of a struct's fields, of an array those of the address, the extents and
    the strides; `suffix` is put between the function's name and the parameter's in the struct's.
    `text` describes the parameter in the header. The code refuses what it is not compiled for: an
    address that is no multiple of `align` bytes, extents and strides that are no multiples of
    `divisors`, other extents and strides than those `known` (both one for each, or none), and a
    null address unless an extent is 0, which `is_empty` tells of a static one.
    """

    name: str
    kind: str
    storage: tuple[str, ...]
    extents: int = 0
    fields: tuple[str, ...] = ("data", "shape", "strides")
    suffix: str = ""
    text: str = ""
    align: int = 1
    divisors: tuple[int, ...] = ()
    known: tuple[int | None, ...] = ()
    is_empty: bool = False

    @property
    def identifier(self) -> str:
        """The name in C: `pair_0_x` for the path `pair[0].x`."""
        return re.sub(r"\W+", "_", self.name).strip("_")

    @property
    def strides(self) -> int:
        """The number of strides of an array."""
        return len(self.storage) - 1 - self.extents

    @property
    def is_struct(self) -> bool:
        """True if a pointer to a struct is passed."""
        return self.kind in ("array", "struct")

    def divisor(self, leaf: int) -> int:
        """The number that divides the extent or stride with the place `leaf` among both."""
        return self.divisors[leaf] if self.divisors else 1

    def number(self, leaf: int) -> int | None:
        """The only number that the extent or stride with the place `leaf` may be, None for any."""
        return self.known[leaf] if self.known else None
