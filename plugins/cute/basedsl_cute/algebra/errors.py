"""The one error that the layout algebra raises."""

from __future__ import annotations


class LayoutError(ValueError):
    """The error for an operand for which an operation has no meaning.

    The message prints the operands and names the condition that failed, for example the stride
    divisibility condition of a composition.
    """
