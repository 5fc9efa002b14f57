"""The source of a function is found, or an error says why there is none."""

from __future__ import annotations

import ast
import functools
import linecache
import runpy
import sys
from pathlib import Path
from types import CodeType
from typing import Any

import pytest
from python_runtime import PythonRuntime

from basedsl.errors import DSLError
from basedsl.prestage import source, stage_function
from basedsl.prestage.repl import typed_source


def keep(*functions: Any) -> Any:
    return functions


def decorate(option: Any) -> Any:
    return lambda fn: (fn, option)


def same(fn: Any, *args: Any) -> None:
    assert stage_function(fn).bind(PythonRuntime())(*args) == fn(*args)


def test_several_lambdas_on_a_line() -> None:
    fs = keep(lambda x: x and 1, lambda x: x and 2, lambda x: (lambda y: y and 3)(x) or 4)
    for f in fs:
        for x in (0, 5):
            same(f, x)
    assert "2" in stage_function(fs[1]).source


def test_a_lambda_in_a_lambda() -> None:
    f = lambda x: lambda y: (x and y) or 7  # noqa: E731
    same(f(1), 0)
    same(f(0), 1)
    new = stage_function(f).bind(PythonRuntime())
    assert new(1)(2) == 2
    assert new.__name__ == "<lambda>"


def test_a_lambda_over_lines() -> None:
    f = keep(lambda x, *y: (
        x if x > 2
        else y
    ))[0]  # fmt: skip
    same(f, 3)
    same(f, 1, 2)


def test_a_lambda_in_a_decorator_and_in_a_default() -> None:
    @decorate(lambda x: x or "decorator")
    def f(x, g=lambda x: x or "default"):
        return x or "function"

    fn, option = f
    same(fn, 0)
    same(option, 0)
    same(fn.__defaults__[0], 0)
    assert stage_function(fn).bind(PythonRuntime())(0) == "function"
    assert stage_function(option).bind(PythonRuntime())(0) == "decorator"


def test_lambdas_with_walrus_and_thunks() -> None:
    k = 2
    f = lambda x: (y := x) and y + k if x < 5 < k + 9 else [z or k for z in range(x)]  # noqa: E731
    for x in range(8):
        same(f, x)


def test_decorated_functions() -> None:
    def note(fn):
        fn.noted = True
        return fn

    @note
    @functools.partial(note)
    def f(x):
        return x or 1

    same(f, 0)
    assert stage_function(f).bind(PythonRuntime()).noted  # type: ignore[attr-defined]


def test_text_known_to_linecache(tools: Any) -> None:
    same(tools.define("if 1:\n  def f(x):\n        if x: return 1\n        return 2\n"), 0)


def test_a_changed_file(tools: Any) -> None:
    fn = tools.define("def f(x):\n    y = x\n    return y\n")
    name = fn.__code__.co_filename
    text = "def f(x):\n    z = x\n    return z\n"
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    with pytest.raises(DSLError, match="changed after it was imported"):
        stage_function(fn)
    linecache.cache[name] = (1, None, ["def f(:\n"], name)
    with pytest.raises(DSLError, match="does not parse"):
        stage_function(fn)


@pytest.mark.parametrize(
    "text",
    ["def f(x):\n    return x + 2\n", "def f(x, y=1):\n    return x + 1\n", "y = 1\n"],
    ids=["another number", "another parameter", "the function is gone"],
)
def test_a_file_saved_after_its_import(tmp_path: Path, text: str) -> None:
    file = tmp_path / "edited.py"
    file.write_text("def f(x):\n    return x + 1\n")
    same, other = (runpy.run_path(str(file))["f"] for _ in range(2))
    assert stage_function(same) is not None  # saved since this process began, but not changed
    file.write_text(text)
    with pytest.raises(DSLError, match="changed after it was imported"):
        stage_function(other)


def test_no_source() -> None:
    space: dict[str, Any] = {}
    exec("def f(x): return x", space)
    with pytest.raises(DSLError) as caught:
        stage_function(space["f"])
    text = str(caught.value)
    for part in ("'f'", "save it to a file", "Jupyter", "Python 3.13", "preprocess=False"):
        assert part in text


def prompt(text: str, name: str = "f") -> Any:
    space: dict[str, Any] = {"decorate": decorate}
    exec(compile(text, "<stdin>", "single"), space)
    return space[name]


def test_a_function_typed_at_the_prompt(monkeypatch: pytest.MonkeyPatch) -> None:
    history = """
def f(x):
    return x or 1
f(1)
def f(x):
    if x:
        return 5
    return x or 2
print(
f(3)
)
class C:
    def m(self): return self or 4
g = lambda x: x or 3
""".strip().split("\n")

    class Readline:
        @staticmethod
        def get_current_history_length() -> int:
            return len(history)

        @staticmethod
        def get_history_item(number: int) -> str:
            return history[number - 1]

    monkeypatch.setitem(sys.modules, "readline", Readline)
    second = prompt("def f(x):\n    if x:\n        return 5\n    return x or 2\n")
    first = prompt("def f(x):\n    return x or 1\n")
    method = prompt("class C:\n    def m(self): return self or 4\n", "C").m
    for fn in (first, second, method, prompt("g = lambda x: x or 3\n", "g")):
        same(fn, 0)
        same(fn, 6)
    gone = prompt("def f(x):\n    return x or 99\n")
    with pytest.raises(DSLError, match="cannot be found"):
        stage_function(gone)


def test_a_function_of_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    command = """
def f(x):
    return x or 1
class C:
    def m(self): return self or 4
g = lambda x: x or 3
"""
    space: dict[str, Any] = {}
    exec(compile(command, "<string>", "exec"), space)
    with pytest.raises(DSLError, match="cannot be found"):
        stage_function(space["f"])
    monkeypatch.setattr(sys, "orig_argv", ["python", "-B", "-c", command, "def f(", "x"])
    for fn in (space["f"], space["g"], space["C"].m):
        same(fn, 0)
        same(fn, 6)
    given_to_exec: dict[str, Any] = {}
    exec("\ndef f(x):\n    return x or 2\n", given_to_exec)
    with pytest.raises(DSLError, match="cannot be found"):
        stage_function(given_to_exec["f"])


def test_history_is_asked_for_prompts_only() -> None:
    assert typed_source(same.__code__, ["def same(): pass"]) is None


def test_not_twice_the_same_filename(tools: Any) -> None:
    # Two notebook cells may hold equal code; each function keeps its own file.
    a, b = tools.define("def f(x):\n    return x\n"), tools.define("def f(x):\n    return x\n")
    files = [stage_function(fn).bind(PythonRuntime()).__code__.co_filename for fn in (a, b)]
    assert files == [a.__code__.co_filename, b.__code__.co_filename]
    assert files[0] != files[1]


TEXT = '''
class Outer:
    """A docstring
with text at the first column:
def no_function(self):
    """

    @staticmethod
    def method(
        a,
        b=(
    1
),
    ):
        return [lambda c: c + a, lambda c: c - a]

@(
    lambda function: function
)
@staticmethod
def decorated(x):
    def inner(y):
        return x + y
    return inner
if True:
    def chosen(x): return x
else:
    def chosen(x): return -x
pair = (lambda x: x,
lambda y: y + 1)
'''


def test_statements_alone_give_the_trees_of_the_whole_file(tmp_path: Path) -> None:
    path = tmp_path / "statements.py"
    path.write_text(TEXT)
    lines = TEXT.splitlines(True)
    codes = [compile(TEXT, str(path), "exec")]
    for code in codes:
        codes += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
    functions = [code for code in codes[1:] if code.co_name not in ("Outer", "<module>")]
    assert len(functions) == 10
    alone = 0
    for code in functions:
        whole, part = source._in_file(code, lines), source._in_statement(code, lines)
        assert whole is not None
        if part is not None:
            alone += 1
            assert part.class_name == whole.class_name
            shown = [ast.dump(x.node, include_attributes=True) for x in (part, whole)]
            assert shown[0] == shown[1]
    assert alone == 4
