"""Functions that reach outside of the program are found in code by the values of its names."""

import argparse
import pathlib
import shutil
import tempfile
import time
import types

import numpy as np
import pytest

from basedsl.metastage import volatile
from basedsl.metastage.volatile import outside_calls

clock = types.ModuleType("clock")
clock.now = time.time


def of_a_module():
    return time.time()


def of_an_alias_of_a_module():
    return clock.now().load()


def of_a_file(name):
    return np.load(name)


def of_python(name):
    return open(name)


def of_another_name():
    module = np
    return module.load("x")


def of_a_path(name):
    path = pathlib.Path(name)
    return [path.read_text() for _ in range(2)]


def inside(name):
    return [np.load(name) for _ in range(2)]


def imported():
    import time as t

    return t.sleep(1)


def of_a_closure():
    module = np
    return lambda: module.load("x")


def of_something_else(x):
    return np.sum(x.load()) + x.read + x.copy


@pytest.mark.parametrize(
    ("function", "found"),
    [
        (of_a_module, ["time.time"]),
        (of_an_alias_of_a_module, ["clock.now"]),
        (of_a_file, ["np.load"]),
        (of_python, ["open"]),
        (of_another_name, ["module.load"]),
        (inside, ["np.load"]),
        (of_a_path, ["path.read_text"]),
        (imported, ["t.sleep"]),
        (of_a_closure(), ["module.load"]),
        (of_something_else, []),
    ],
)
def test_calls_are_found(function, found):
    assert [call.path for call in outside_calls(function)] == found


def test_the_quick_look_leaves_out_nothing(monkeypatch):
    modules = (argparse, pathlib, shutil, tempfile, volatile)
    functions = [f for m in modules for f in vars(m).values() if type(f) is types.FunctionType]
    classes = [c for m in modules for c in vars(m).values() if type(c) is type]
    functions += [f for c in classes for f in vars(c).values() if type(f) is types.FunctionType]
    functions += [of_a_path, inside, of_something_else]
    quick = [list(outside_calls(one)) for one in functions]
    monkeypatch.setattr(volatile, "_may_call", lambda code, scope, values: True)
    assert quick == [list(outside_calls(one)) for one in functions]
    assert sum(map(len, quick)) > 20
