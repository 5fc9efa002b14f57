"""An exception whose class its module does not lead to comes back as that class."""

import linecache
import sys
import types

import pytest

import basedsl_toy as toy

TEXT = """
class Failure(Exception):
    def __init__(self, code):
        super().__init__(f"code {code}", code)
        self.code = code

@jit
def program(n):
    if n > 2:
        raise Failure(7)
    return n
"""


def load(name):
    linecache.cache[name] = (len(TEXT), None, TEXT.splitlines(True), name)
    module = types.ModuleType(name)
    module.jit = toy.jit
    exec(compile(TEXT, name, "exec"), module.__dict__)
    return module


def test_code_run_by_exec():
    module = load("no_module_of_this_name")
    with pytest.raises(module.Failure) as caught:
        module.program(3)
    assert caught.value.args == ("code 7", 7) and caught.value.code == 7


def test_a_module_loaded_again(monkeypatch):
    first = load("module_loaded_twice")
    monkeypatch.setitem(sys.modules, "module_loaded_twice", load("module_loaded_twice"))
    with pytest.raises(first.Failure, match="code 7"):
        first.program(3)
