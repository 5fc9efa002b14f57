"""Aliases of modules: a second import path that gives the very same module objects.

Programs written for CuTe's DSL import one module by several paths, such as `cute.nvgpu.warp` and
`basedsl_cute.cute.nvgpu.warp`. A module that Python finds by two paths is loaded twice, and its
classes differ; an alias is registered in `sys.modules` instead, before anybody asks.
"""

from __future__ import annotations

import importlib
import pkgutil
import sys

ROOT = "basedsl_cute"

#: The modules of this package that users import by their paths.
PUBLIC = (
    "arch", "core", "cuda", "cutlass_dsl", "math", "nvgpu", "pipeline", "runtime", "testing",
    "torch", "typing", "utils",
)  # fmt: skip


def register_alias(path: str, real: str) -> None:
    """Make `import path` give the module `real`, and `path.x` give `real.x` for its submodules.

    Of this package itself the public modules are taken; any other path below the alias is an
    ImportError, since finding it would load a second copy.
    """
    module = importlib.import_module(real)
    sys.modules[path] = module
    for child in pkgutil.iter_modules(getattr(module, "__path__", ())):
        inner = f"{path}.{child.name}"
        if real != ROOT or child.name in PUBLIC:
            register_alias(inner, f"{real}.{child.name}")
        elif inner not in sys.modules and child.name not in ("_mlir", "experimental"):
            sys.modules[inner] = None  # type: ignore[assignment]  # ends the import with an error
