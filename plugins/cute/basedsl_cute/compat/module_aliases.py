"""Other paths of modules: programs may import `basedsl_cute.cute.runtime`, or `utils.sm90`.

`import basedsl_cute as cutlass` and `import basedsl_cute.cute as cute` give one package; each alias
is the module itself, loaded once.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from basedsl_cute.hardware import unsupported

_ROOT = "basedsl_cute"

# None is a package with nothing of its own.
ALIASES = {
    "base_dsl": None,
    "base_dsl.arch": "arch",
    "base_dsl.dsl": "cutlass_dsl",
    "base_dsl.runtime": None,
    "base_dsl.runtime.cuda": "cuda",
    "base_dsl.typing": "typing",
    "cute": "",
    "utils.sm90": "utils.hopper_helpers",
    "utils.static_persistent_tile_scheduler": "utils.tile_scheduler",
}


# What is no part of this package, and what programs write instead.
NOT_HERE = {
    "_mlir": "MLIR's internals are not offered; inline PTX is cute.arch.inline_ptx(template, "
    "inputs, output_types)",
    "experimental": "the experimental layers of CuTe's DSL are not offered; cute.arch has the "
    "instructions",
}


def real_name(name: str) -> str | None:
    """The module that a path below this package stands for, None if it is no alias."""
    first, _, rest = name.partition(".")
    if first == "cute":
        return real_name(rest) or rest
    return ALIASES.get(name)


def _is_known(name: str) -> bool:
    return name in unsupported.MODULES or name in ALIASES or real_name(name) is not None


class _Finder(MetaPathFinder, Loader):
    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if not name.startswith(_ROOT + "."):
            return None
        inner = name[len(_ROOT) + 1 :]
        instead = NOT_HERE.get(inner.removeprefix("cute."))
        if instead is not None:
            raise ModuleNotFoundError(f"No module named {name!r}: {instead}", name=name)
        return ModuleSpec(name, self, is_package=True) if _is_known(inner) else None

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        # What is here when a loader returns is the module that the import gives.
        inner = module.__name__[len(_ROOT) + 1 :]
        real = real_name(inner)
        if inner in unsupported.MODULES:
            sys.modules[module.__name__] = unsupported.module(inner)
        elif real is not None:
            found = importlib.import_module(f"{_ROOT}.{real}" if real else _ROOT)
            sys.modules[module.__name__] = found


def install() -> None:
    """Have the import system know the aliases."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())
