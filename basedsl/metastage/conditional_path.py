"""Python's own exceptions on a path that may not be taken at run time.

What is static is computed while compiling, on every path. There Python would raise only if it got
that far, so the exception becomes an error that says so: it must not look like one of the run.
"""

from __future__ import annotations

from types import TracebackType

from basedsl.errors import DSLError
from basedsl.location import Span, is_internal, span_of_code

# What stays as it is: our own errors, and what is a mistake in the program wherever it runs.
_PLAIN = (DSLError, RecursionError, AttributeError, NameError, TypeError)


class Eager:
    """While a path is traced that runs only if `span` says so at run time; `kind` names it."""

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
            f"{text}. It is raised while compiling, on a path that may not be taken at run time",
            place,
            notes=((f"the {self.kind}", self.span),),
            hint="what is known while compiling is computed then, on every path: make the "
            "condition static too (Constexpr, const_expr), or `raise` in a decorated function",
        ) from error
