"""Errors for a failing pass or verifier: the user's Python line, plain words, a repro file.

MLIR reports the op's location; tracing gave ops the location of the user's Python line, so the
diagnostic maps back. What is wrong in the IR goes into a file, not into the message.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import shlex
import tempfile
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from basedsl.errors import CompilerBug
from basedsl.location import Span, is_internal, name_of_utf8


@dataclass(frozen=True)
class Diagnostic:
    """A diagnostic of MLIR with its span and its notes."""

    severity: str
    message: str
    span: Span | None
    notes: tuple[tuple[str, Span | None], ...] = ()


class PassFailed(CompilerBug):
    """A step of a pipeline failed. `step` and `failed_pass` name it; `dump` is the repro file;
    `stages` has the outputs up to the failure (set by the runner).
    """

    step: str = ""
    failed_pass: str = ""
    dump: Path | None = None
    diagnostics: tuple[Diagnostic, ...] = ()
    stages: Any = None


class Rejected(Exception):
    """Raised by `reject`; the runner makes it a `PassFailed`."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostics = (diagnostic,)


def reject(op: Any, message: str) -> NoReturn:
    """Fail a Python pass at the user's line of `op`, with the headline `message`."""
    _state.rejected = Rejected(
        Diagnostic("error", message, span_of_location(op.operation.location))
    )
    raise _state.rejected


_state = threading.local()
_IN_CALLBACK = "Exception raised in callback: "


def of_callback(error: Exception) -> Exception | str | None:
    """Return what a function that was given to `op.walk` raised: the bindings raise a RuntimeError
    with its traceback as text in its place. None for another error, the last line of the text for
    an exception that is lost.
    """
    rejected, _state.rejected = getattr(_state, "rejected", None), None
    text = str(error)
    if type(error) is not RuntimeError or not text.startswith(_IN_CALLBACK):
        return None
    last = text.strip().splitlines()[-1]
    found = rejected is not None and str(rejected) in last
    return rejected if found else last.removeprefix(_IN_CALLBACK)


def span_of_location(location: Any) -> Span | None:
    """Find the Python span that `location`, an `ir.Location`, stands for, or None.

    Of several (fused or call-site locations) the first one in a user's file wins, then any file;
    call sites around it are its callers.
    """
    spans = list(_spans(location))
    users = (span for span in spans if not is_internal(span.filename))
    return next(users, spans[0] if spans else None)


def _spans(location: Any) -> list[Span]:
    if type(location).__name__ == "Location" and not hasattr(location, "is_a_file"):
        location = location.from_attr(location.attr)  # diagnostics have it without its kind
    if _is_a(location, "file", "FileLineColLoc"):
        # MLIR's columns are 1-based, 0 where unknown; "-" is text that was parsed from a string.
        if location.filename in ("-", "<unknown>") or location.start_line < 1:
            return []
        start, end = location.start_col, location.end_col
        known_end = location.end_line == location.start_line and end > start
        return [
            Span(
                name_of_utf8(location.filename),
                location.start_line,
                max(start - 1, 0),
                location.end_line,
                end - 1 if known_end else None,
            )
        ]
    if _is_a(location, "name", "NameLoc"):
        return _spans(location.child_loc)
    if _is_a(location, "callsite", "CallSiteLoc"):
        outer = _spans(location.caller)
        callers = (outer[0], *outer[0].callers) if outer else ()
        inner = _spans(location.callee)
        return [dataclasses.replace(one, callers=one.callers + callers) for one in inner] + outer
    if _is_a(location, "fused", "FusedLoc"):
        return [span for inner in location.locations for span in _spans(inner)]
    if type(location).__name__ == "Location" and not hasattr(location, "is_a_file"):
        return spans_of_text(str(location))
    return []


# Compiled when one fails: that takes longer than most modules.
_PLACE = r'"((?:[^"\\]|\\.)+)":(\d+):(\d+)(?: to (?:(\d+))?:(\d+))?'


def spans_of_text(text: str) -> list[Span]:
    """Return the spans in the text of a location, of bindings that say no more: of call sites the
    callee's first, with the callers behind it.
    """
    found = []
    for place in re.finditer(_PLACE, text):
        name, line, col, end_line, end_col = place.groups()
        if name in ("-", "<unknown>") or line == "0":
            continue
        known = end_col is not None and end_line in (None, line)
        end = int(end_col) - 1 if known else None
        found.append(Span(name, int(line), max(int(col) - 1, 0), int(line) if known else None, end))
    if text.startswith("loc(callsite(") and len(found) > 1:
        return [dataclasses.replace(found[0], callers=tuple(found[1:])), *found[1:]]
    return found


def _is_a(location: Any, kind: str, class_name: str) -> bool:
    # Newer bindings have a class for each kind of location, older ones a method on one class.
    ask = getattr(location, f"is_a_{kind}", None)
    return type(location).__name__ == class_name if ask is None else bool(ask())


def read_diagnostic(info: Any) -> Diagnostic:
    """Copy MLIR's `Diagnostic` or `DiagnosticInfo`, which do not outlive the call."""
    notes = tuple((note.message, span_of_location(note.location)) for note in info.notes)
    return Diagnostic(
        str(info.severity).rpartition(".")[2].lower(),
        info.message,
        span_of_location(info.location),
        notes,
    )


# What MLIR says, and how we say it. `{0}` is the op's name.
_PLAIN = (
    (
        r"failed to legalize operation '([^']+)'",
        "the operation {0} has no lowering for this target",
    ),
    (
        r"'([^']+)' op created with unregistered dialect",
        "the operation {0} belongs to a dialect that is not loaded",
    ),
    (
        r"'builtin\.unrealized_conversion_cast'|unrealized_conversion_cast",
        "a value of a type that this target cannot represent is left over",
    ),
    (
        r"operand #(\d+) does not dominate this use",
        "a value is used outside the loop or branch in which it was made",
    ),
)


def in_plain_words(message: str) -> str:
    """Translate a message of MLIR into words that need no knowledge of it, where there are any."""
    for pattern, plain in _PLAIN:
        found = re.search(pattern, message)
        if found:
            said = plain.format(*found.groups()) if found.groups() else plain
            return f"{said} (MLIR: {message.splitlines()[0]})"
    return message


def failure(
    pipeline: str,
    step: str,
    what: str,
    diagnostics: tuple[Diagnostic, ...],
    failed_pass: str = "",
    dump: Path | None = None,
    detail: str = "",
) -> PassFailed:
    """Make the error for a failed step. `what` begins its message, such as "lowering failed"."""
    errors = [d for d in diagnostics if d.severity == "error"] or list(diagnostics)
    main = errors[0] if errors else Diagnostic("error", detail or "no reason was given", None)
    where = f"step '{step}' of pipeline '{pipeline}'"
    if failed_pass:
        where += f" (pass {failed_pass})"
    notes: list[tuple[str, Span | None]] = [
        (in_plain_words(other.message), other.span) for other in errors[1:4]
    ]
    if dump is not None:
        notes.append((f"the module and a command that repeats this are in {dump}", None))
    error = PassFailed(
        f"{what} in {where}: {in_plain_words(main.message)}", main.span, notes=tuple(notes)
    )
    error.step, error.failed_pass = step, failed_pass
    error.dump, error.diagnostics = dump, diagnostics
    return error


def save_repro(name: str, module_text: str, passes: str, dialects: str = "") -> Path | None:
    """Write `module_text` under a first line with the command that repeats the failure.

    None when no file can be written: a failing disk must not hide the failure.
    """
    safe = re.sub(r"[^\w.-]+", "_", name)[:60]
    with contextlib.suppress(OSError):
        handle, path = tempfile.mkstemp(prefix=f"basedsl-{safe}-", suffix=".mlir", text=True)
        dsl = f" --dsl {dialects}" if dialects else ""
        command = f"python -m basedsl opt{dsl} {shlex.quote(path)}"
        if passes:
            command += f" --passes {shlex.quote(passes)}"
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(f"// {command}\n{module_text}")
        return Path(path)
    return None
