"""Frames that stand between a program and what it calls are not the program's."""

import importlib
import traceback

import pytest

from basedsl import DSLTypeError
from basedsl.location import user_frames


def test_frames_of_frameworks_that_wrap_calls_are_no_users():
    found = {}
    code = compile(
        "def wrap(call):\n return call()\n", "/x/site-packages/torch/_dynamo/e.py", "exec"
    )
    exec(code, found)

    def innermost():
        return [frame.f_code.co_name for frame in user_frames()]

    names = found["wrap"](innermost)
    assert "wrap" not in names
    assert "test_frames_of_frameworks_that_wrap_calls_are_no_users" in names


LANGUAGE = '''
from basedsl import DSL, ArgumentType, DSLTypeError, Language


class Odd:
    """A proxy that refuses everything."""

    __dsl_leaf__ = True

    def __add__(self, other):
        return refuse()


def refuse():
    raise DSLTypeError("nothing is added to it")


class OddArgument(ArgumentType):
    storage = ()

    def ir_types(self, ir):
        return []

    def proxy(self, values):
        return Odd()


class OddLanguage(Language):
    name = "odd"
    PACKAGE

    def argument_type(self, value, annotation, name):
        return OddArgument() if value is ... else None


ODD = DSL(OddLanguage())
'''


@pytest.mark.parametrize("folder", [True, False])
def test_frames_of_a_dsls_package_are_no_users(tmp_path, monkeypatch, folder):
    """They are found by the language's package, or by the module that it names."""
    monkeypatch.syspath_prepend(tmp_path)
    package = f"odd_{'package' if folder else 'module'}"
    path = tmp_path / package / "language.py" if folder else tmp_path / f"{package}.py"
    path.parent.mkdir(exist_ok=True)
    path.write_text(LANGUAGE.replace("PACKAGE", "" if folder else "package = __name__"))
    if folder:
        (path.parent / "__init__.py").write_text("")
    odd = importlib.import_module(f"{package}.language" if folder else package).ODD

    @odd.jit
    def add(x):
        return x + 1

    with pytest.raises(DSLTypeError, match="nothing is added") as caught:
        add(...)
    assert caught.value.span.filename == __file__
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert {frame.filename for frame in frames} == {__file__}
