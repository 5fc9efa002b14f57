"""The one error that the layout algebra raises."""

from __future__ import annotations


class LayoutError(ValueError):
    """The error for an operand for which an operation has no meaning.

    The message prints the operands and names the condition that failed, for example the stride
    divisibility condition of a composition. `hint` says what to write instead, if that is known.
    """

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint

    def __str__(self) -> str:
        message = str(self.args[0])
        return message if self.hint is None else f"{message}\nhint: {self.hint}"
