"""The numeric classes as the modules below `types` see them."""

from __future__ import annotations

from typing import Any, Protocol

from basedsl.numeric.formats import Kind, NumberFormat


class NumericType(Protocol):
    """A class of numbers of one format, such as `Int32`."""

    @property
    def name(self) -> str:
        """The name of the format, for instance "Int32"."""

    @property
    def format(self) -> NumberFormat:
        """The row of the format table that the class is made from."""

    @property
    def kind(self) -> Kind:
        """The meaning of the bits."""

    @property
    def width(self) -> int:
        """The width in bits."""

    @property
    def signed(self) -> bool:
        """True for signed integers and floats."""

    @property
    def min(self) -> int | float:
        """The least number; of floats, the least finite one."""

    @property
    def max(self) -> int | float:
        """The largest number; of floats, the largest finite one."""

    def same_kind_of_width(self, width: int) -> Any:
        """The integer class of this signedness with `width` bits."""

    def float32(self) -> NumericType:
        """The Float32 class."""
