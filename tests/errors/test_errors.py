"""Wrong programs and the exact message each gives.

`programs/NAME.py` is wrong; `programs/NAME.txt` is its message, with file names without folders.
`programs/NAME_fixed.py`, where there is one, follows the hint and must run. `pytest
--update-golden` writes the messages that programs give now: read each before keeping it.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import runpy
import sys
import traceback
from pathlib import Path

import pytest

import basedsl
import basedsl_toy
from basedsl import DSLError
from basedsl.errors import SHOW_INTERNAL_FRAMES
from basedsl.location import Span, is_internal, span_of_code
from basedsl.testing import why_no_gpu
from basedsl.testing.golden import OPTION

PROGRAMS = Path(__file__).parent / "programs"
FIXED = "_fixed"
# Raised by functions of the library that users call directly, whose own frame comes last.
DIRECT = {"printf_outside", "thread_idx_in_python", "used_after_compilation"}
WRONG = sorted(p.stem for p in PROGRAMS.glob("*.py") if not p.stem.endswith(FIXED))
RIGHT = sorted(p.stem for p in PROGRAMS.glob(f"*{FIXED}.py"))


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path):
    """The simulator, a cache of its own, and everything restored that a program sets."""
    for name in list(os.environ):
        if name.startswith(("BASEDSL_", "CUTE_DSL_", "TOY_")):
            monkeypatch.delenv(name)
    before = dict(os.environ)
    monkeypatch.setenv("CUTE_DSL_ARCH", "sim")
    monkeypatch.setenv("BASEDSL_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    yield
    os.environ.clear()
    os.environ.update(before)


def path_of(name):
    return PROGRAMS / f"{name}.py"


def run(name):
    with contextlib.redirect_stdout(io.StringIO()):
        runpy.run_path(str(path_of(name)), run_name="__main__")


def error_of(name):
    limit = sys.getrecursionlimit()
    with pytest.raises(Exception) as caught:
        run(name)
    assert sys.getrecursionlimit() == limit
    return caught.value


def last_frame(error):
    """The span of the innermost frame of the traceback."""
    tb = error.__traceback__
    while tb.tb_next is not None:
        tb = tb.tb_next
    return span_of_code(tb.tb_frame.f_code, tb.tb_lasti)


def text_of(error):
    """The text that a user sees below the traceback; of errors of Python, the last frame too."""
    text = f"{type(error).__name__}: {error}"
    if not isinstance(error, DSLError):
        text += "\n" + "\n".join([last_frame(error).excerpt(), *getattr(error, "__notes__", ())])
    text = text.replace(str(PROGRAMS) + os.sep, "")
    text = re.sub(r"\S*basedsl-[\w.-]+\.mlir", "FILE.mlir", text)
    return re.sub(r"0x[0-9a-f]{6,}", "0x...", text) + "\n"


@pytest.mark.parametrize("name", WRONG)
def test_wrong(name, request):
    if name == "target_without_driver" and not why_no_gpu():
        pytest.skip("there is a driver here")
    error = error_of(name)
    text = text_of(error)
    expected = PROGRAMS / f"{name}.txt"
    if request.config.getoption(OPTION):
        expected.write_text(text, encoding="utf-8")
    assert expected.exists(), f"no {expected.name}; pytest {OPTION} writes it"
    assert text == expected.read_text(encoding="utf-8")
    check_quality(name, error, text)


def check_quality(name, error, text):
    """Every message has the user's file, no paths, no internals in the traceback."""
    assert not re.search(r"""(^|[\s'"(])/\w""", text, flags=re.M), text
    if isinstance(error, DSLError):
        assert error.span is not None
        assert Path(error.span.filename).parent == PROGRAMS
        assert type(error).__name__ not in ("Exception", "CompilerBug")
    if name in DIRECT:
        return
    frame = last_frame(error)
    assert Path(frame.filename).parent == PROGRAMS
    if isinstance(error, DSLError):
        assert error.span.line <= frame.line <= (error.span.end_line or error.span.line)


@pytest.mark.parametrize("name", RIGHT)
def test_fixed(name):
    assert name.removesuffix(FIXED) in WRONG
    run(name)


def test_corpus_is_large_and_complete():
    assert len(WRONG) >= 80
    texts = {p.stem for p in PROGRAMS.glob("*.txt")}
    assert texts == set(WRONG)


# Tracebacks --------------------------------------------------------------------------------------

IN_A_CALLEE = "chain_of_helpers"


def internal_files(error):
    frames = traceback.extract_tb(error.__traceback__)
    return [f.filename for f in frames if is_internal(f.filename)]


@pytest.mark.parametrize("name", [IN_A_CALLEE, "python_attribute", "ptxas_instruction"])
def test_internal_frames_are_hidden(name):
    error = error_of(name)
    # importlib, which runs the program, is Python's.
    assert [f for f in internal_files(error) if not f.startswith("<frozen ")] == []
    assert error.__cause__ is None


@pytest.mark.parametrize("name", [IN_A_CALLEE, "python_attribute"])
def test_one_variable_shows_internal_frames(name, monkeypatch):
    monkeypatch.setenv(SHOW_INTERNAL_FRAMES, "1")
    error = error_of(name)
    shown = {Path(f).name for f in internal_files(error)}
    assert {"function.py", "driver.py"} <= shown
    assert len(internal_files(error)) > 5


def test_the_message_is_the_same_with_internal_frames(monkeypatch):
    monkeypatch.setenv(SHOW_INTERNAL_FRAMES, "1")
    expected = (PROGRAMS / f"{IN_A_CALLEE}.txt").read_text(encoding="utf-8")
    assert text_of(error_of(IN_A_CALLEE)) == expected


def test_a_python_error_inside_the_library_says_so():
    scope = {}
    filename = str(Path(basedsl.__file__).with_name("some_room.py"))
    exec(compile("def careless(x): return [].missing", filename, "exec"), scope)

    @basedsl_toy.jit
    def entry(n):
        return scope["careless"](n)

    with pytest.raises(AttributeError) as caught:
        entry(1)
    assert last_frame(caught.value).source_line.strip() == 'return scope["careless"](n)'
    assert any("raised inside " in note for note in caught.value.__notes__)


# Spans -------------------------------------------------------------------------------------------


@pytest.fixture
def excerpt(tmp_path):
    """The carets of a span of a file with this text."""

    def make(text, *span):
        path = tmp_path / "some.py"
        path.write_text(text, encoding="utf-8")
        lines = Span(str(path), *span).excerpt().splitlines()
        assert lines[0] == f"  --> {path}:{span[0]}"
        return lines[1:]

    return make


def test_carets_below_the_expression(excerpt):
    assert excerpt("x = a + b\n", 1, 4, 1, 9) == ["  |", "1 | x = a + b", "  |     ^^^^^"]


def test_carets_keep_tabs(excerpt):
    assert excerpt("if x:\n\ty = z\n", 2, 5, 2, 6) == ["  |", "2 | \ty = z", "  | \t    ^"]


def test_carets_below_wide_characters(excerpt):
    assert excerpt("'猫' + é\n", 1, 6, 1, 7) == ["  |", "1 | '猫' + é", "  |        ^"]


def test_carets_over_several_lines(excerpt):
    assert excerpt("f(a,\n  b)\n", 1, 0, 2, 4) == [
        "  |",
        "1 | f(a,",
        "  | ^^^^",
        "2 |   b)",
        "  |   ^^",
    ]


def test_long_spans_show_their_first_line(excerpt):
    assert excerpt("f(\n1,\n2,\n3,\n4)\n", 1, 0, 5, 2) == ["  |", "1 | f(", "  | ^^"]


def test_no_source_no_excerpt(tmp_path):
    assert Span(str(tmp_path / "none.py"), 3).excerpt() == f"  --> {tmp_path / 'none.py'}:3"
