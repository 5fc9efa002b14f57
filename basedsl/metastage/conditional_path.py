"""Python's own exceptions on a path that may not be taken at run time.

Static expressions are computed while compiling, on every path, where Python would raise only if it
got that far. The exception therefore becomes an error that says so.
"""

from __future__ import annotations

from types import TracebackType

from basedsl.errors import DSLError
from basedsl.location import Span, is_internal, span_of_code

# Raised unchanged: our own errors, and mistakes in the program on whatever path they are.
_PLAIN = (DSLError, RecursionError, AttributeError, NameError, TypeError)


class ConditionalPath:
    """Context of tracing a path that runs only if `span` says so at run time; `kind` names it."""

    __slots__ = ("kind", "span")

    def __init__(self, kind: str, span: Span | None) -> None:
        self.kind = kind
        self.span = span

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, cls: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None
    ) -> None:
        if not isinstance(error, Exception) or isinstance(error, _PLAIN):
            return
        place = None
        while tb is not None:
            if not is_internal(tb.tb_frame.f_code.co_filename):
                place = span_of_code(tb.tb_frame.f_code, tb.tb_lasti)
            tb = tb.tb_next
        text = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        raise DSLError(
            f"{text} (while compiling, on a path that may not be taken at run time)",
            place,
            notes=((f"the {self.kind}", self.span),),
            hint="what is known while compiling is computed then, on every path: make the "
            "condition static too (Constexpr, const_expr), or `raise` in a decorated function",
        ) from error
