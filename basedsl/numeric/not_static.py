"""The error for a dynamic number where Python needs its value while compiling."""

from __future__ import annotations

import linecache
from types import FrameType
from typing import Any

from basedsl.errors import DSLError
from basedsl.location import is_library, is_rewritten, user_frame
from basedsl.slips import called_library
from basedsl.tracing import trace as tracing


def not_static(number: Any, problem: str, hint: str | None = None) -> DSLError:
    """Return the error for a use of `number` that `problem` names; the trace remembers it, as a
    library may catch it and go on.
    """
    frame = user_frame()
    text = f"a dynamic {type(number).__name__} {problem}"
    numpy_call = None if frame is None else called_library(frame)
    if numpy_call is not None:
        text = f"{numpy_call}() runs while compiling, and this value is known at run time only"
        hint = (
            "pass a value known while compiling (Constexpr); for memory of a size known at run "
            "time, pass an array as an argument"
        )
    if hint is None:
        hint = _condition_hint(frame)
        if frame is not None and _is_in_case(frame):
            text = "`match` needs a static subject, a number in this one is dynamic"
            hint = "write it as if/elif/else"
    error = DSLError(text, hint=hint)
    trace = tracing.current_trace_or_none()
    if trace is None or frame is None or is_library(frame.f_code.co_filename):
        return error  # a library may ask for the truth, catch the error and go on
    return trace.refuse(error)


def index_hint() -> str:
    """Return what to write instead of a dynamic length, index or bound."""
    frame = user_frame()
    if frame is not None and is_rewritten(frame.f_code):
        return (
            "the length of a list or a text (a slice, a repetition) is fixed while compiling: take "
            "a value known then (Constexpr), or loop over the items with a condition"
        )
    return (
        "take a value known while compiling (Constexpr), or decorate the function with @jit "
        "(preprocess=True), which captures loops and indexing"
    )


def _is_in_case(frame: FrameType) -> bool:
    return is_rewritten(frame.f_code) and _line(frame).lstrip().startswith("case ")


def _line(frame: FrameType) -> str:
    return linecache.getline(frame.f_code.co_filename, frame.f_lineno)


def _condition_hint(frame: FrameType | None) -> str:
    if frame is not None and is_rewritten(frame.f_code):
        if frame.f_code.co_name == "<lambda>" and ":=" in _line(frame):
            return "an operator with `:=` in a lambda is left to Python: write a function with def"
        return (
            "Python itself asks for the truth here, as comparing or sorting containers and the "
            "`if` of a comprehension do: compare numbers one by one, choose with `a if c else b`"
        )
    helper = f"`{frame.f_code.co_name}`" if frame is not None else "the function"
    return (
        f"decorate {helper} with @jit, so that its conditions are captured (or switch "
        "preprocess=True back on); a condition that is known while compiling must be "
        "made of Constexpr values"
    )
