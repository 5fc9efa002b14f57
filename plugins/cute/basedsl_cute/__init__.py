"""cute: CuTe tensor algebra and GPU kernels in Python. `import basedsl_cute as cute`.

Rooms, each importing only those before it: `algebra` (layouts on plain integers) and `hardware`
(facts), `dialect` (the `cute` MLIR dialect), `lowering` (to NVVM, PTX, machine code), `device` (the
driver, launches), `arrays` (arguments by DLPack), `tensors`, `host` (argument types, launches),
`sim` (the simulator), `aot`, `executors`, `dsl` (the compiler's face), `atoms`, `compat`,
`arch`, `nvgpu`, `pipeline`, `distributed`, `interop`, `utils`. `public` has every public name,
`ops` kernels.
"""

from __future__ import annotations

import ast
import functools
import importlib
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from basedsl_cute import algebra, dialect, jax, public
    from basedsl_cute.public import *  # noqa: F403

    # Strict type checkers take a name for public only if it is listed.
    __all__ = ["algebra", "dialect", "jax"]
    __all__ += public.__all__

# Public modules are found by name before all else.
_MODULES = (
    "_mlir", "algebra", "arch", "base_dsl", "core", "cuda", "cute", "cutlass_dsl", "dialect",
    "distributed", "experimental", "jax", "math", "nvgpu", "pipeline", "runtime", "testing",
    "torch", "typing", "utils",
)  # fmt: skip


@functools.cache
def _homes() -> dict[str, tuple[str, str]]:
    """The module that has each public name, and the name there, as `public` imports them.

    Reading the file instead of importing it loads only what a program names.
    """
    source = Path(__file__).with_name("public.py").read_text(encoding="utf-8")
    return {
        alias.asname or alias.name: (statement.module, alias.name)
        for statement in ast.parse(source).body
        if isinstance(statement, ast.ImportFrom) and statement.module
        for alias in statement.names
    }


if not TYPE_CHECKING:  # a type checker reports names that do not exist

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return importlib.import_module(f"{__name__}.{name}")
        if name == "__version__":
            from importlib.metadata import version

            return version("basedsl-cute")
        if name.startswith("__"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if name in _homes():
            module, inner = _homes()[name]
            value = getattr(__import__(module, fromlist=[inner]), inner)
            globals()[name] = value
            return value
        if importlib.util.find_spec(f"{__name__}.{name}") is not None:
            return importlib.import_module(f"{__name__}.{name}")
        from basedsl_cute.hardware import unsupported

        return unsupported.unsupported_names(__name__)(name)


def __dir__() -> list[str]:
    from basedsl_cute import public

    return sorted({*globals(), *(name for name in vars(public) if not name.startswith("_"))})
