"""cute: CuTe tensor algebra and GPU kernels in Python. `import basedsl_cute as cute`.

Layers, each importing only those above it: `algebra` (layouts on plain integers), `dialect` (the
`cute` MLIR dialect), `tensor` and `memory`, `arch`, `nvgpu`, `pipeline`, `utils`, `lowering` (to
NVVM, PTX, machine code), `runtime` (arrays, driver), `sim` (the simulator), `executors`; `dsl.py`
ties them together.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import TYPE_CHECKING, Any

from basedsl_cute.compat import module_aliases
from basedsl_cute.hardware import unsupported

if TYPE_CHECKING:
    from basedsl_cute.public import *  # noqa: F403

_loading = False
# What modules of this package import from it by name: found without loading the rest, which may be
# what is being imported.
_PACKAGES = (
    "algebra", "arch", "core", "cuda", "cute", "cutlass_dsl", "dialect", "jax", "math", "nvgpu",
    "pipeline", "runtime", "testing", "torch", "typing", "utils",
)  # fmt: skip


def __getattr__(name: str) -> Any:
    # Asking which DSLs are installed imports this package; only using it loads the rest.
    global _loading
    if name in _PACKAGES:
        return importlib.import_module(f"{__name__}.{name}")
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
        return unsupported.absent(__name__)(name)
    return globals()[name]


def __dir__() -> list[str]:
    from basedsl_cute import public

    return sorted({*globals(), *(name for name in vars(public) if not name.startswith("_"))})


class _Package(types.ModuleType):
    """`cute.struct` is the decorator, whether or not the module it is defined in has been loaded,
    which the import system would put here.
    """

    @property
    def struct(self) -> Any:
        from basedsl_cute.public import struct

        return struct

    @struct.setter
    def struct(self, value: Any) -> None:
        pass


sys.modules[__name__].__class__ = _Package
module_aliases.install()
