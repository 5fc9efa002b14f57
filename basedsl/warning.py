"""Warnings of the library: at the user's line, once for each, and errors where the options ask."""

from __future__ import annotations

import warnings
from typing import Any

from basedsl.errors import DSLError
from basedsl.location import Span, user_span


class DSLWarning(UserWarning):
    """The base class of the library's warnings about a program."""


class OptionWarning(DSLWarning):
    """An environment variable with a prefix of the library's that nothing reads."""


def warn(
    settings: Any,
    message: str,
    category: type[DSLWarning] = DSLWarning,
    span: Span | None = None,
    hint: str | None = None,
) -> None:
    """Warn of `message`, of class `category`, at `span`, by default the user's line that runs now;
    `hint` says what to write instead. With the option `warnings_as_errors` of the record
    `settings`, raise DSLError instead.
    """
    if settings is not None and settings.warnings_as_errors:
        raise DSLError(f"{message} (a warning, and warnings_as_errors is set)", span, hint)
    span = span or user_span()
    text = message if hint is None else f"{message}; {hint}"
    if span is None:
        warnings.warn(text, category, stacklevel=2)
    else:
        warnings.warn_explicit(text, category, span.filename, span.line)
