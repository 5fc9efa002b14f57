"""cute: CuTe tensor algebra and GPU kernels in Python. `import basedsl_cute as cute`.

Rooms, each importing only those before it: `algebra` (layouts on plain integers) and `hardware`
(facts), `dialect` (the `cute` MLIR dialect), `lowering` (to NVVM, PTX, machine code), `device` (the
driver, launches), `arrays` (arguments by DLPack), `tensors`, `host` (argument types, launches),
`sim` (the simulator), `aot`, `executors`, `dsl` (the compiler's face), `atoms`, `compat`,
`arch`, `nvgpu`, `pipeline`, `distributed`, `interop`, `utils`. `public` has every public name,
`ops` kernels.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from basedsl_cute import algebra as algebra
    from basedsl_cute import cutlass_dsl as cutlass_dsl
    from basedsl_cute import dialect as dialect
    from basedsl_cute import jax as jax
    from basedsl_cute.public import *  # noqa: F403

# Public modules are found by name before all else.
_MODULES = (
    "_mlir", "algebra", "arch", "base_dsl", "core", "cuda", "cute", "cutlass_dsl", "dialect",
    "distributed", "experimental", "jax", "math", "nvgpu", "pipeline", "runtime", "testing",
    "torch", "typing", "utils",
)  # fmt: skip


def _other(name: str) -> Any:
    """Return what has a name that no public object has: a module, or the stand-in for a name that
    is not offered.
    """
    if importlib.util.find_spec(f"{__name__}.{name}") is not None:
        return importlib.import_module(f"{__name__}.{name}")
    from basedsl_cute.hardware.unsupported import unsupported_names

    return unsupported_names(__name__)(name)


@functools.cache
def _public() -> Callable[[str], Any]:
    from basedsl import imported_later  # `algebra` is used without

    return imported_later(__name__, _other, imports=Path(__file__).with_name("public.py"))


if not TYPE_CHECKING:  # a type checker reports names that do not exist

    def __getattr__(name: str) -> Any:
        if name in _MODULES:
            return importlib.import_module(f"{__name__}.{name}")
        if name == "__version__":
            from importlib.metadata import version

            return version("basedsl-cute")
        return _public()(name)


def __dir__() -> list[str]:
    from basedsl_cute import public

    return sorted({*globals(), *(name for name in vars(public) if not name.startswith("_"))})
