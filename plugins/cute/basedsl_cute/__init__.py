"""cute: CuTe tensor algebra and GPU kernels in Python. `import basedsl_cute as cute`.

Rooms, each importing only those before it: `algebra` (layouts on plain integers) and `hardware`
(facts), `dialect` (the `cute` MLIR dialect), `lowering` (to NVVM, PTX, machine code), `device` (the
driver, launches), `arrays` (arguments by DLPack), `tensors`, `host` (argument types, launches),
`sim` (the simulator), `aot`, `executors`, `dsl` (the compiler's face), `atoms`, `compat`,
`arch`, `nvgpu`, `pipeline`, `distributed`, `interop`, `utils`. `public` has every public name,
`ops` kernels.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from basedsl_cute import algebra, dialect, jax, public
    from basedsl_cute.public import *  # noqa: F403

    # Strict type checkers take a name for public only if it is listed.
    __all__ = ["algebra", "dialect", "jax"]
    __all__ += public.__all__

_loading = False
# Public modules are found by name without loading the other names, which may be what is loading.
_MODULES = (
    "_mlir", "algebra", "arch", "base_dsl", "core", "cuda", "cute", "cutlass_dsl", "dialect",
    "distributed", "experimental", "jax", "math", "nvgpu", "pipeline", "runtime", "testing",
    "torch", "typing", "utils",
)  # fmt: skip

if not TYPE_CHECKING:  # a type checker reports names that do not exist

    def __getattr__(name: str) -> Any:
        # Asking which DSLs are installed imports this package; only using it loads the rest.
        global _loading
        if name in _MODULES:
            return importlib.import_module(f"{__name__}.{name}")
        if name == "__version__":
            from importlib.metadata import version

            return version("basedsl-cute")
        if _loading or name.startswith("__"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        _loading = True
        try:
            from basedsl_cute import public
        finally:
            _loading = False
        for key, value in vars(public).items():
            if not key.startswith("_"):
                globals()[key] = value
        if name not in globals():
            from basedsl_cute.hardware import unsupported

            return unsupported.unsupported_names(__name__)(name)
        return globals()[name]


def __dir__() -> list[str]:
    from basedsl_cute import public

    return sorted({*globals(), *(name for name in vars(public) if not name.startswith("_"))})
