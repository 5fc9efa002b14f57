"""`install_as`: this package under the name by which programs for CuTe's DSL import it.

It puts a finder into `sys.meta_path`, which stub modules cannot replace: the name is the program's
choice, and no folder of that name is on the path. Nothing else of this package does.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
from types import ModuleType
from typing import Any

from basedsl import DSLRuntimeError
from basedsl_cute.compat.module_aliases import ROOT


def install_as(name: str = "cutlass") -> None:
    """Make `import NAME` and `import NAME.module` give this package, in this process.

    Every path of a module gives the same module object: `NAME.cute.nvgpu` is
    `basedsl_cute.nvgpu`. A path below a module that has no parts here gives that module. Raises
    DSLRuntimeError if another package of this name was imported before.

    >>> import basedsl_cute
    >>> basedsl_cute.install_as("cutlass")
    >>> import cutlass.cute
    >>> cutlass.cute.make_layout(4) == basedsl_cute.make_layout(4)
    True
    """
    if not name.isidentifier():
        raise DSLRuntimeError(f"{name!r} is no name of a module")
    root = importlib.import_module(ROOT)
    before = sys.modules.get(name)
    if before is root:
        return
    if before is not None:
        raise DSLRuntimeError(
            f"another package {name!r} is imported already, from "
            f"{getattr(before, '__file__', None) or 'an unknown place'}",
            hint=f"call basedsl_cute.install_as({name!r}) before anything imports it",
        )
    sys.meta_path.insert(0, _Finder(name))
    sys.modules[name] = root


class _Finder:
    """A finder and loader of `NAME.x`, which gives the module `basedsl_cute.x`."""

    def __init__(self, name: str) -> None:
        self.name = name

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if not name.startswith(f"{self.name}."):
            return None
        found = _module(ROOT + name.removeprefix(self.name))
        if found is None:
            return None
        loader: Any = self
        spec = importlib.machinery.ModuleSpec(name, loader)
        spec.loader_state = found, found.__spec__
        return spec

    def create_module(self, spec: Any) -> ModuleType:
        module, _ = spec.loader_state
        return module  # type: ignore[no-any-return]

    def exec_module(self, module: ModuleType) -> None:
        """Nothing is executed again. The import system has given the module the alias's spec."""
        spec: Any = module.__spec__
        _, module.__spec__ = spec.loader_state
        if not hasattr(module, "__path__"):
            module.__path__ = []  # so that paths below it come to this finder


def _module(path: str) -> ModuleType | None:
    """The module at a path, or the nearest one above it that has no modules of its own; None if
    there is neither.
    """
    try:
        return importlib.import_module(path)
    except ModuleNotFoundError as error:
        if error.name is None or not path.startswith(error.name):
            raise
    parent, _, _ = path.rpartition(".")
    above = sys.modules.get(parent)
    has_modules = bool(getattr(above, "__path__", ()))
    return None if above is None or has_modules else above
