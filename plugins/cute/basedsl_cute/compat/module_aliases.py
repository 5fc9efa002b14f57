"""Module aliases: second import paths of the same module objects.

Programs written for CuTe's DSL import one module by several paths, such as `cute.nvgpu.warp` and
`basedsl_cute.cute.nvgpu.warp`. Python would load a module that it finds by two paths twice, with
different classes; aliases are therefore registered in `sys.modules` before they are imported.
"""

from __future__ import annotations

import importlib
import sys

ROOT = "basedsl_cute"

#: The modules of this package that users import by their paths.
PUBLIC = (
    "_tvm_ffi_args_spec_converter", "arch", "atom", "base_dsl", "core", "cuda", "cutlass_dsl",
    "math", "nvgpu", "pipeline", "runtime", "tensor", "testing", "torch", "typing", "utils",
)  # fmt: skip


def register_alias(path: str, real: str) -> None:
    """Register the module `real` as `path` too, and its submodules `real.x` as `path.x`.

    Of this package itself, only the public modules are registered; importing any other path below
    the alias raises ImportError, since it would load a second copy.
    """
    from pkgutil import iter_modules

    module = importlib.import_module(real)
    sys.modules[path] = module
    for child in iter_modules(getattr(module, "__path__", ())):
        inner = f"{path}.{child.name}"
        if real != ROOT or child.name in PUBLIC:
            register_alias(inner, f"{real}.{child.name}")
        elif inner not in sys.modules and child.name not in ("_mlir", "experimental"):
            sys.modules[inner] = None  # type: ignore[assignment]  # ends the import with an error
