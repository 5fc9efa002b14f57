"""The docstring of each public function, method and class names each of its parameters.

A method's parameters may be named where the method that it overrides is documented, and those of a
class by one of its bases.
"""

from __future__ import annotations

import enum
import importlib
import inspect
import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

PACKAGES = ("basedsl", "basedsl_toy", "basedsl_cute")
#: Packages of cute whose names programs use.
FACADES = """arch nvgpu nvgpu.cpasync nvgpu.tcgen05 nvgpu.tma nvgpu.warp nvgpu.warpgroup pipeline
    runtime testing torch cuda math typing core cutlass_dsl utils utils.blackwell_helpers
    utils.blockscaled_layout utils.gemm.sm100 utils.hopper_helpers utils.tile_scheduler"""
MODULES = (*PACKAGES, *(f"basedsl_cute.{name}" for name in FACADES.split()))

#: Taken everywhere and documented once: `loc` and `ip` are ignored.
EVERYWHERE = {"self", "cls", "loc", "ip"}
VARIADIC = {inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD}


def public_names(module: ModuleType) -> Iterator[Any]:
    """Yield the functions and classes of these packages that `module` offers."""
    names = getattr(module, "__all__", None) or [n for n in dir(module) if not n.startswith("_")]
    for name in names:
        value = getattr(module, name)
        owner = getattr(value, "__module__", None) or ""
        if callable(value) and owner.partition(".")[0] in PACKAGES:
            yield value


def parameters(function: Any) -> set[str]:
    try:
        known = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return set()
    names = {name for name, one in known.items() if one.kind not in VARIADIC}
    return {name for name in names - EVERYWHERE if not name.startswith("_")}


def unnamed(function: Any, *docs: str | None) -> set[str]:
    """The parameters of `function` that no text of `docs` has as a word."""
    words = set(re.findall(r"\w+", " ".join(doc or "" for doc in docs)))
    return parameters(function) - words


def unnamed_in_class(cls: type) -> Iterator[tuple[str, set[str]]]:
    """Yield the name of a class and of each method, with the parameters that it does not name."""
    if not issubclass(cls, enum.Enum | BaseException):
        texts = [
            text for base in cls.__mro__[:-1] for text in (base.__doc__, base.__init__.__doc__)
        ]
        yield cls.__qualname__, unnamed(cls, *texts)
    for name, member in vars(cls).items():
        function = getattr(member, "__func__", member)
        if inspect.isfunction(function) and not name.startswith("_"):
            same = [getattr(base, name, None) for base in cls.__mro__]
            texts = [getattr(one, "__doc__", None) for one in same]
            yield f"{cls.__qualname__}.{name}", unnamed(function, *texts)


def found() -> list[str]:
    """Return a line for each function or class whose docstring does not name all parameters."""
    missing: list[str] = []
    seen = set()
    for path in MODULES:
        for value in public_names(importlib.import_module(path)):
            if id(value) in seen:
                continue
            seen.add(id(value))
            if inspect.isclass(value):
                results = list(unnamed_in_class(value))
            else:
                name = getattr(value, "__name__", type(value).__name__)
                results = [(name, unnamed(value, value.__doc__))]
            for name, names in results:
                if names:
                    missing.append(f"{value.__module__}.{name}: {', '.join(sorted(names))}")
    return missing


def test_docstrings_name_each_parameter() -> None:
    missing = found()
    assert missing == [], "name these parameters in the docstring:\n" + "\n".join(missing)


def test_what_is_not_named_is_found() -> None:
    def f(size: int, *, align: int = 1) -> None:
        """Allocate `size` bytes."""

    class Base:
        """Has a `name`."""

        def __init__(self, name: str) -> None: ...

        def put(self, place: int) -> None:
            """Put it at `place`."""

    class Derived(Base):
        """Another one."""

        def put(self, place: int) -> None:
            """Put it there."""

        def get(self, place: int) -> None:
            """Get it."""

    assert unnamed(f, f.__doc__) == {"align"}
    assert dict(unnamed_in_class(Derived)) == {
        "test_what_is_not_named_is_found.<locals>.Derived": set(),
        "test_what_is_not_named_is_found.<locals>.Derived.put": set(),
        "test_what_is_not_named_is_found.<locals>.Derived.get": {"place"},
    }


@pytest.mark.parametrize("path", MODULES)
def test_the_modules_have_public_names(path: str) -> None:
    assert list(public_names(importlib.import_module(path)))
