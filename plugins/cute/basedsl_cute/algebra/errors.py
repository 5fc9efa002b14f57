"""The one error the layout algebra raises."""

from __future__ import annotations


class LayoutError(ValueError):
    """An operand for which the operation has no meaning.

    The message prints the operands and names the condition that failed, for example the stride
    divisibility condition of a composition.
    """
