"""The one family of errors users meet, and the trimming of tracebacks to users' own frames.

Every message says what is wrong in the user's words, shows `file:line` with the source line and a
caret, and where possible says what to write instead.
"""

from __future__ import annotations

import os
import types

from basedsl.location import Span, is_internal, user_span

SHOW_INTERNAL_FRAMES = "BASEDSL_FULL_TRACEBACK"


class DSLError(Exception):
    """A program that the DSL cannot take, or that failed in the user's terms.

    `span` defaults to what the innermost user frame is executing; `hint` says what to write
    instead; `notes` are further places, each shown with its own source line.
    """

    def __init__(
        self,
        message: str,
        span: Span | None = None,
        hint: str | None = None,
        notes: tuple[tuple[str, Span | None], ...] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.span = span if span is not None else user_span()
        self.hint = hint
        self.notes = notes

    def __str__(self) -> str:
        parts = [self.message]
        if self.span is not None:
            parts.append(self.span.excerpt())
        for text, span in self.notes:
            parts.append(f"note: {text}")
            if span is not None:
                parts.append(span.excerpt())
        if self.hint:
            parts.append(f"hint: {self.hint}")
        return "\n".join(parts)


class DSLSyntaxError(DSLError):
    """A Python construct that cannot be captured, or source that cannot be found."""


class DSLTypeError(DSLError, TypeError):
    """Types that do not go together, or a value where the DSL needs another kind."""


class DSLNameError(DSLError, NameError):
    """A read of a name that is not bound on every path."""


class DSLCallError(DSLError, TypeError):
    """A call that the calling convention forbids, or arguments that do not fit."""


class DSLRuntimeError(DSLError, RuntimeError):
    """Compiled code could not be run here, or failed while running."""


class CompilerBug(DSLError):
    """Not the user's fault: the message names the stage, and asks for a report."""


def hide_internal_frames(error: BaseException) -> BaseException:
    """`error` with library frames cut out of its traceback (all kept if the environment asks)."""
    if os.environ.get(SHOW_INTERNAL_FRAMES, "0") not in ("", "0"):
        return error
    kept = []
    tb = error.__traceback__
    while tb is not None:
        if not is_internal(tb.tb_frame.f_code.co_filename):
            kept.append(tb)
        tb = tb.tb_next
    new: types.TracebackType | None = None
    for tb in reversed(kept):
        new = types.TracebackType(new, tb.tb_frame, tb.tb_lasti, tb.tb_lineno)
    return error.with_traceback(new)
