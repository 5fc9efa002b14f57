"""The errors that users meet, and the trimming of tracebacks to users' own frames.

Every message says in the user's words what is wrong, shows `file:line` with the source line and a
caret, the calls that led there, and where possible what to write instead. An error leaves the
library through `users_frames`.
"""

from __future__ import annotations

import ast
import inspect
import os
import sys
import types
from collections.abc import Sequence
from typing import Any

from basedsl.location import (
    Span,
    called_from,
    enclosing_function,
    in_bytes,
    is_internal,
    is_internal_frame,
    lines_of_code,
    span_of_code,
    span_of_frame,
    user_frame,
    user_span,
)

SHOW_INTERNAL_FRAMES = "BASEDSL_FULL_TRACEBACK"

# A longer chain of calls is shortened to its first and last few.
MOST_CALLS_SHOWN = 6

Note = tuple[str, Span | None]

# Spelt with a vowel and spoken with a consonant: a Uint32, a ufunc.
_SPOKEN_AS_YOU = ("uint", "ufunc", "uni", "use")


def with_article(noun: str | type) -> str:
    """The name of a type, or another noun, after "a" or "an", for messages: "an Int32"."""
    name = noun if isinstance(noun, str) else noun.__name__
    word = name.lower()
    vowel = word.startswith(("a", "e", "i", "o", "u", "nd"))
    vowel = vowel and not word.startswith(_SPOKEN_AS_YOU)
    return f"{'an' if vowel else 'a'} {name}"


class DSLError(Exception):
    """The base class of errors in a program: the DSL cannot compile it, or it failed while running.

    `message` is the headline; `span` is the place, by default the line that the innermost user
    frame is executing; `notes` are pairs of a text and a further place (or None), each shown with
    its source line; `hint` says what to write instead. `calls` are the calls between the entry
    function and `span`, innermost first, set when the error leaves the library.
    """

    def __init__(
        self,
        message: str,
        span: Span | None = None,
        hint: str | None = None,
        notes: tuple[Note, ...] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.span = span if span is not None else user_span()
        self.hint = hint
        self.notes = notes
        callers = () if self.span is None else self.span.callers
        self.calls: tuple[Note, ...] = _shortened([(called_from(one), one) for one in callers])

    def __str__(self) -> str:
        parts = [self.message]
        if self.span is not None:
            parts.append(self.span.excerpt())
        for text, span in (*self.notes, *self.calls):
            parts.append(f"note: {text}")
            if span is not None:
                parts.append(span.excerpt())
        if self.hint:
            parts.append(f"hint: {self.hint}")
        return "\n".join(parts)


class DSLSyntaxError(DSLError):
    """A Python construct that cannot be captured, or source that cannot be found."""


class DSLTypeError(DSLError, TypeError):
    """Types that do not go together, or a value of a kind that the DSL cannot use there."""


class DSLNameError(DSLError, NameError):
    """A read of a name that is not bound on every path."""


class DSLAttributeError(DSLError, AttributeError):
    """An attribute that an object of the DSL does not have."""


class DSLCallError(DSLError, TypeError):
    """A call that the calling convention forbids, or arguments that do not fit."""


class DSLRecursionError(DSLError, RecursionError):
    """A function that calls itself without end while it is compiled."""


class DSLRuntimeError(DSLError, RuntimeError):
    """Compiled code could not be run here, or failed while running."""


class CompilerBug(DSLError):
    """A defect of a DSL or of basedsl, not of the program: the message names the stage."""


def plugin_defect(
    language: Any,
    message: str,
    span: Span | None = None,
    hint: str | None = None,
    notes: tuple[Note, ...] = (),
) -> CompilerBug:
    """Return the error for a plugin that breaks its contract: it names the plugin of `language`,
    and `hint` says to its author what to write instead.
    """
    found = CompilerBug(f"{message} (in {plugin_of(language)})", span, hint, notes)
    if hint is None:
        found.hint = f"please report it to the authors of {plugin_of(language)}"
    return found


def plugin_of(language: Any) -> str:
    """Return the name under which errors speak of the plugin that defines a language."""
    package = getattr(language, "package", None) or type(language).__module__.partition(".")[0]
    return f"the DSL '{language.name}' of {package}"


# An error on its way out of the library --------------------------------------------------------


class users_frames:
    """Context manager around a call from Python: an error leaves it as users should see it, without
    any frame of the library, this one included.
    """

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        tb: types.TracebackType | None,
    ) -> None:
        # The end of a `with` raises again what it got, which adds no frame to the traceback.
        if isinstance(error, Exception):
            hide_internal_frames(error)


def hide_internal_frames(error: Exception) -> Exception:
    """Give `error` the calls that led to it, and a traceback of users' own frames that ends at the
    user's line (of all frames if the environment asks for them).
    """
    if isinstance(error, DSLError):
        error.calls = error.calls or _calls(error.__traceback__, error.span)
    if _shows_all():
        return error
    if isinstance(error, DSLError):
        error.__cause__ = None
        error.__suppress_context__ = True
    elif isinstance(error, _DEFECTS) and _is_unexplained(error) and _was_raised_inside(error):
        raiser = _entries(error.__traceback__)[-1].tb_frame
        package = str(raiser.f_globals.get("__name__", "")).partition(".")[0]
        error.add_note(
            f"This was raised inside {package or 'the library'}: by an argument that it did not "
            f"expect, or by a defect of it. {SHOW_INTERNAL_FRAMES}=1 shows where."
        )
    entries = [run[-1] for run in _runs(_entries(error.__traceback__))]
    last = _last_entry(error, entries)
    return error.with_traceback(_linked(entries, last))


# The library raises none of these on purpose.
_DEFECTS = (AttributeError, KeyError, NameError, NotImplementedError, TypeError)


def _is_unexplained(error: BaseException) -> bool:
    return not getattr(error, "__dsl_explained__", False)


def _was_raised_inside(error: BaseException) -> bool:
    entries = _entries(error.__traceback__)
    return bool(entries) and _is_internal(entries[-1])


_OFF = ("", "0", "false", "no", "off")
_traceback_prefixes = ["BASEDSL_"]


def read_traceback_variables_of(prefix: str) -> None:
    """Read the variables that show the library's own frames with this prefix too."""
    if prefix not in _traceback_prefixes:
        _traceback_prefixes.append(prefix)


def _shows_all() -> bool:
    for prefix in _traceback_prefixes:
        for name in ("FULL_TRACEBACK", "DEBUG"):
            if os.environ.get(prefix + name, "0").lower() not in _OFF:
                return True
        if os.environ.get(prefix + "FILTER_STACKTRACE", "1").lower() in _OFF:
            return True
    return False


def _is_internal(tb: types.TracebackType) -> bool:
    return is_internal_frame(tb.tb_frame)


def _entries(tb: types.TracebackType | None) -> list[types.TracebackType]:
    found = []
    while tb is not None:
        found.append(tb)
        tb = tb.tb_next
    return found


# The chain of calls ----------------------------------------------------------------------------


def _calls(tb: types.TracebackType | None, span: Span | None) -> tuple[Note, ...]:
    """Return a note for each call between the entry function and `span`, innermost first."""
    runs = _runs(_entries(tb))
    if span is None or not runs:
        return ()
    # The message shows the run of the span; the others have called it.
    depth = len(runs)
    while depth and not _holds(runs[depth - 1][0].tb_frame.f_code, span):
        depth -= 1
    callers = runs[: depth - 1] if depth else runs
    notes: list[Note] = []
    for run in reversed(callers):
        last = run[-1]
        where = span_of_code(last.tb_frame.f_code, last.tb_lasti)
        notes.append((f"called from {_name(run[0].tb_frame.f_code)}", where))
    return _shortened(notes)


def _runs(entries: Sequence[types.TracebackType]) -> list[list[types.TracebackType]]:
    """Group user frames by the run of a function they belong to, outermost first: the bodies of
    rewritten loops and branches, and comprehensions, are functions to Python and not to users.
    """
    runs: list[list[types.TracebackType]] = []
    through_library = False
    for tb in entries:
        if _is_internal(tb):
            through_library = True
            continue
        code = tb.tb_frame.f_code
        is_part = through_library or code.co_name in ("<listcomp>", "<genexpr>", "<dictcomp>")
        if runs and is_part and code in runs[-1][-1].tb_frame.f_code.co_consts:
            runs[-1].append(tb)
        else:
            runs.append([tb])
        through_library = False
    return runs


def _holds(code: types.CodeType, span: Span) -> bool:
    first, last = lines_of_code(code)
    return span.filename == code.co_filename and first <= span.line <= last


def _name(code: types.CodeType) -> str:
    name = code.co_qualname.replace("<locals>.", "")
    return "a lambda" if name.endswith("<lambda>") else f"{name}()"


def _shortened(notes: Sequence[Note]) -> tuple[Note, ...]:
    if len(notes) <= MOST_CALLS_SHOWN:
        return tuple(notes)
    half = MOST_CALLS_SHOWN // 2
    left_out: Note = (f"{len(notes) - 2 * half} more calls are left out here", None)
    return (*notes[:half], left_out, *notes[-half:])


# A function that recurses without end is on the stack more often than this.
_FEW_CALLS = 20


#: What to write in place of a function that is nested too deeply.
TOO_DEEP = (
    "some 500 levels fit, and each `elif` is one more: split it into several functions, or look "
    "the value up in a list or an array"
)


def endless_recursion(error: RecursionError) -> DSLError:
    """Return the error for a recursion error of tracing: it names the function that recurses."""
    runs = _runs(_entries(error.__traceback__))
    if not runs:
        return DSLRecursionError(f"Python's recursion limit is reached: {error}")
    counts: dict[types.CodeType, int] = {}
    for run in runs:
        code = run[0].tb_frame.f_code
        counts[code] = counts.get(code, 0) + 1
    code = max(counts, key=lambda c: counts[c])
    if counts[code] <= _FEW_CALLS:
        first = runs[0][0]
        return DSLRecursionError(
            f"{_name(first.tb_frame.f_code)} is nested too deeply to be compiled",
            span_of_code(first.tb_frame.f_code, first.tb_lasti),
            hint=TOO_DEEP,
        )
    run = next(r for r in runs if r[0].tb_frame.f_code is code)
    last = run[-1]
    made = DSLRecursionError(
        f"{_name(code)} calls itself without end while it is compiled",
        span_of_code(last.tb_frame.f_code, last.tb_lasti),
        hint="calls are inlined, so what ends a recursion must be known while compiling: compare "
        "Constexpr arguments, or write a loop",
    )
    entries = _entries(error.__traceback__)
    up_to_here = _linked(entries[: entries.index(last) + 1])
    made.calls = _calls(up_to_here, made.span)
    return made.with_traceback(up_to_here)


def placed(error: Exception) -> DSLError:
    """Return an error without a place as a DSLError of its class too, at the user's line."""
    runs = _runs(_entries(error.__traceback__))
    last = runs[-1][-1] if runs else None
    span = None if last is None else span_of_code(last.tb_frame.f_code, last.tb_lasti)
    hint = getattr(error, "hint", None)
    message = str(error) if hint is None else str(error.args[0])
    made: DSLError = _placed_class(type(error))(message, span, hint=hint)
    return made.with_traceback(error.__traceback__)


_placed_classes: dict[type[Exception], Any] = {}


def _placed_class(cls: type[Exception]) -> Any:
    # The same name: users see one error, wherever it was raised.
    if cls not in _placed_classes:
        attributes = {"__doc__": cls.__doc__, "__module__": cls.__module__}
        _placed_classes[cls] = type(cls.__name__, (DSLError, cls), attributes)
    return _placed_classes[cls]


# Tracebacks ------------------------------------------------------------------------------------


def _last_entry(
    error: BaseException, entries: Sequence[types.TracebackType]
) -> types.TracebackType | None:
    """Return the user's line for errors that were raised in no frame of the user's: by a verifier,
    ptxas. None if `entries` end there, or the call did that raises the error.
    """
    span = error.span if isinstance(error, DSLError) else None
    if span is None or is_internal(span.filename):
        return None
    if entries and _is_at(entries[-1].tb_frame.f_code, entries[-1].tb_lineno, span):
        return None
    caller = user_frame(sys._getframe(1))
    if caller is not None and span == span_of_frame(caller):
        return None  # the traceback shows its frame already
    return _frame_at(span)


def _is_at(code: types.CodeType, line: int, span: Span) -> bool:
    last = max(span.line, span.end_line or 0)
    return code.co_filename == span.filename and span.line <= line <= last


def _linked(
    entries: Sequence[types.TracebackType], after: types.TracebackType | None = None
) -> types.TracebackType | None:
    for tb in reversed(entries):
        after = types.TracebackType(after, tb.tb_frame, tb.tb_lasti, tb.tb_lineno)
    return after


def _frame_at(span: Span) -> types.TracebackType | None:
    """Return a traceback of one frame at `span`."""
    node = ast.Raise(ast.Name("error", ast.Load()), None)
    start, end_line, end = in_bytes(span)
    for part in ast.walk(node):
        if isinstance(part, ast.stmt | ast.expr):
            part.lineno, part.col_offset = span.line, start
            part.end_lineno, part.end_col_offset = end_line, end
    code = compile(ast.Module([node], []), span.filename, "exec")
    name = enclosing_function(span) or code.co_name
    code = code.replace(co_name=name, co_qualname=name)
    try:
        exec(code, {"error": _Marker(), "__name__": inspect.getmodulename(span.filename)})
    except _Marker as marker:
        tb = marker.__traceback__
        return None if tb is None else tb.tb_next
    return None


class _Marker(Exception):
    """Raised to make a frame, and caught at once."""
