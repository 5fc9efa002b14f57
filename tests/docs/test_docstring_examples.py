"""The examples in the docstrings of public names run and print what they show."""

import doctest
import importlib
import inspect
import linecache
import pkgutil

import numpy as np
import pytest

import basedsl_cute as cute

ROOMS = (
    "algebra", "arch", "arrays", "atoms", "interop", "nvgpu", "ops", "pipeline", "tensors", "utils",
)  # fmt: skip


def modules():
    """The names of the rooms' modules, but those of `ops` that import PyTorch."""
    for room in ROOMS:
        package = importlib.import_module(f"basedsl_cute.{room}")
        yield package.__name__
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not (room == "ops" and ".torch_" in info.name):
                yield info.name


def examples(module):
    """The doctests of a module: of itself, its functions (under decorators too) and classes."""
    algebra = vars(cute.algebra) if ".algebra" in module.__name__ else {}
    scope = {"cute": cute, "np": np, **algebra, **vars(module)}
    finder = doctest.DocTestFinder(recurse=False, exclude_empty=True)
    found = finder.find(module, module.__name__, module=False, globs=scope)
    for name, value in vars(module).items():
        value = inspect.unwrap(value) if callable(value) else value
        if getattr(value, "__module__", None) != module.__name__ or not hasattr(value, "__name__"):
            continue
        found += finder.find(value, f"{module.__name__}.{name}", module=False, globs=scope)
        for member, method in vars(value).items() if inspect.isclass(value) else ():
            method = getattr(method, "fget", None) or getattr(method, "__func__", method)
            if inspect.isfunction(method):
                method = inspect.unwrap(method)
                place = f"{module.__name__}.{name}.{member}"
                found += finder.find(method, place, module=False, globs=scope)
    return [test for test in found if test.examples]


# Two names may be one module.
MODULES = {id(module): module for module in map(importlib.import_module, modules())}
CASES = [test for module in MODULES.values() for test in examples(module)]


@pytest.mark.parametrize("test", CASES, ids=lambda test: test.name.removeprefix("basedsl_cute."))
def test_example_prints_what_it_shows(test, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)  # some write files
    monkeypatch.setenv("CUTE_DSL_ARCH", "sim")
    for example in range(len(test.examples)):
        linecache.cache.pop(f"<doctest {test.name}[{example}]>", None)
    results = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test, clear_globs=False)
    assert results.failed == 0


def test_there_are_examples_in_every_room():
    rooms = {test.name.split(".")[1] for test in CASES}
    assert {
        "algebra",
        "arch",
        "arrays",
        "atoms",
        "interop",
        "ops",
        "pipeline",
        "tensors",
        "utils",
    } <= rooms
