"""A run of a program as plain data: its source, its compilations stage by stage, its error.

`record` runs in a process of its own for each version of the file, so that a program that crashes,
hangs or changes global state leaves the explorer alone.
"""

from __future__ import annotations

import contextlib
import io
import os
import runpy
import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from basedsl.compile_hooks import observing
from basedsl.compiled import Compiled
from basedsl.errors import DSLError, hide_internal_frames
from basedsl.inspection import program
from basedsl.line_maps import Lined

# Options that add line tables to machine code, where a DSL has them: tables change no instruction.
_LINE_TABLES = ("lineinfo",)


def record(
    manager: Any, path: Path, name: str, arguments: Sequence[str], options: str
) -> dict[str, Any]:
    """Run the file `path` as the main program or, with a function's `name`, compile that for
    `arguments` (`inspection.program.read_arguments`) without running it.

    Returns {"file", "source", "error", "output", "warnings", "compilations"}.
    """
    compiled: list[Compiled] = []
    error, output = "", io.StringIO()
    file = str(path.resolve())
    with warnings.catch_warnings(record=True) as warned, _line_tables(manager):
        warnings.simplefilter("always")
        try:
            with contextlib.redirect_stdout(output), observing(compiled.append):
                if name:
                    _compile(manager, path, name, arguments, options)
                else:
                    _run_file(path)
        except SystemExit as end:
            error = "" if not end.code else f"the program ends with status {end.code}"
        except DSLError as raised:
            error = str(raised)
        except Exception as raised:  # the program's own
            hide_internal_frames(raised)
            error = "".join(traceback.format_exception(raised)).rstrip()
    try:
        source = program.read_text(path)
    except DSLError as missing:
        source, error = "", missing.message
    return {
        "file": path.name,
        "source": source,
        "error": error,
        "output": output.getvalue()[-20_000:],
        "warnings": [_warning(one, file) for one in warned],
        "compilations": [_compilation(one, file) for one in compiled],
    }


def _run_file(path: Path) -> None:
    program.read_text(path)  # with a clear error
    sys.argv = [str(path)]
    sys.path.insert(0, str(path.resolve().parent))
    runpy.run_path(str(path.resolve()), run_name="__main__")


def _compile(manager: Any, path: Path, name: str, arguments: Sequence[str], options: str) -> None:
    module = program.load_program(path.resolve())
    function = program.find_function(module, name)
    dsl = manager.get_dsl(program.dsl_function(function).language.name)
    args, kwargs = program.read_arguments(arguments, vars(module))
    dsl.compile(function, *args, options=dsl.settings(options), **kwargs)


@contextlib.contextmanager
def _line_tables(manager: Any) -> Iterator[None]:
    """Set the variables that ask for line tables, of every DSL that has them."""
    known = dict(os.environ)
    for name in manager.dsl_names():
        for info in manager.get_dsl(name).language.options_class.describe():
            if info.name in _LINE_TABLES:
                os.environ.setdefault(info.variables[0], "1")
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(known)


def _warning(one: warnings.WarningMessage, file: str) -> dict[str, Any]:
    line = one.lineno if os.path.realpath(one.filename) == file else None
    return {"text": f"{one.category.__name__}: {one.message}", "line": line}


def _compilation(compiled: Compiled, file: str) -> dict[str, Any]:
    views = []
    seconds = compiled.stages.seconds
    for name in compiled.views():
        with contextlib.suppress(DSLError):  # a tool that is missing
            lined = compiled.lined_view(name)
            if not lined.text.startswith("<"):  # bytes that have no text
                views.append(_view(name, lined, file) | {"seconds": seconds.get(name)})
    resources = [
        {"name": name, "figures": one.figures()} for name, one in compiled.resources.items()
    ]
    return {
        "title": compiled.function.fn.__qualname__,
        "dsl": compiled.function.language.name,
        "arguments": [str(argument) for argument in compiled.arguments],
        "target": compiled.function.language.target_name(compiled.settings),
        "seconds": compiled.seconds,
        "resources": resources,
        "views": views,
    }


def _view(name: str, lined: Lined, file: str) -> dict[str, Any]:
    lines = [
        list(dict.fromkeys(line for where, line in places if os.path.realpath(where) == file))
        for places in lined.places
    ]
    return {"name": name, "text": lined.text, "lines": lines}


def failed(path: Path, error: str) -> dict[str, Any]:
    """Return the record of a program whose process ended without one."""
    source = ""
    with contextlib.suppress(DSLError):
        source = program.read_text(path)
    return {
        "file": path.name, "source": source, "error": error, "output": "", "warnings": [],
        "compilations": [],
    }  # fmt: skip
