"""The MLIR bindings as a value. Only this file imports a bindings package.

Projects built on MLIR ship their own Python bindings and objects of one do not mix with another, so
a DSL names its package and reaches `ir`, `passmanager` and dialects through a `Bindings` object.
Dialects are attributes: `bindings.arith`, `bindings.nvvm`, ...
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import importlib.util
import os
import signal
import sys
import threading
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from basedsl.errors import DSLRuntimeError
from basedsl.recursion_limit import room

ENVIRONMENT_VARIABLE = "BASEDSL_MLIR"
DEFAULTS = ("mlir", "numba_cuda_mlir._mlir")

_lock = threading.RLock()
_loaded: dict[str, Bindings] = {}


@contextlib.contextmanager
def _whole() -> Iterator[None]:
    """Let neither Ctrl-C nor a deep recursion interrupt the import of a dialect. Left halfway, it
    would register itself a second time at the next import, which fails for the rest of the process.
    """
    with uninterrupted(), room():
        yield


@contextlib.contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay Ctrl-C until the end of the block."""
    handler = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handler):
        yield
        return
    held: list[tuple[int, Any]] = []
    signal.signal(signal.SIGINT, lambda *interrupt: held.append(interrupt))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if held:
            handler(*held[0])


class Bindings:
    """One MLIR Python bindings package. `bindings.X` is its dialect module X, imported on use."""

    def __init__(self, package: str) -> None:
        self.package = package
        with _whole():
            _stand_in_for_parent(package)
            self.ir: Any = importlib.import_module(f"{package}.ir")
            self.passmanager: Any = importlib.import_module(f"{package}.passmanager")
            _lean_dialects(package)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        with _lock, _whole():
            try:
                module = importlib.import_module(f"{self.package}.dialects.{name}")
            except ModuleNotFoundError as error:
                raise AttributeError(
                    f"the MLIR bindings {self.package!r} have no dialect {name!r}"
                ) from error
        setattr(self, name, module)
        return module

    def c_library(self) -> Path | None:
        """Return the shared library of MLIR; None if the bindings have none of their own."""
        folder = _folder(self.package)
        found = sorted((folder / "_mlir_libs").glob("libMLIRPythonCAPI*")) if folder else []
        return found[0] if found else None

    def __repr__(self) -> str:
        return f"Bindings({self.package!r})"


def load_bindings(package: str | None = None, needs: tuple[str, ...] = ()) -> Bindings:
    """Return the bindings `package`, else those that the environment names, else the first default
    that is installed and has the dialects in `needs`.

    Raises DSLRuntimeError when none fits, with the candidates and what each lacks.
    """
    tried = []
    with _lock:
        for name in _candidates(package):
            lacks = _missing(name, needs)
            if not lacks:
                if name not in _loaded:
                    _loaded[name] = Bindings(name)
                return _loaded[name]
            tried.append(f"{name}: {lacks}")
    raise DSLRuntimeError(
        "no MLIR Python bindings fit (" + "; ".join(tried) + ")",
        hint=f"pip install numba-cuda-mlir, or name a package in {ENVIRONMENT_VARIABLE}",
    )


def libraries(
    package: str | None = None, needs: tuple[str, ...] = ()
) -> tuple[tuple[Path, int], ...]:
    """Return the shared libraries that `load_bindings` would load, and dlopen's mode for each.
    Mapping them is a third of its time.
    """
    for name in _candidates(package):
        if not _missing(name, needs):
            return _libraries(name) if name not in _loaded else ()
    return ()


def _candidates(package: str | None) -> tuple[str, ...]:
    chosen = package or os.environ.get(ENVIRONMENT_VARIABLE)
    return (chosen,) if chosen else DEFAULTS


def installed_stamp(package: str | None = None, needs: tuple[str, ...] = ()) -> str:
    """Return text that differs between versions of the bindings that `load_bindings` would load,
    without loading any; "" if none is installed.
    """
    for name in _candidates(package):
        folder = _folder(name)
        if folder is not None and not _missing(name, needs):
            libraries = sorted((folder / "_mlir_libs").glob("*.so*"))
            stats = [(p.name, p.stat().st_size, p.stat().st_mtime_ns) for p in libraries]
            return f"{name} {folder} {stats}"
    return ""


def _missing(package: str, needs: tuple[str, ...]) -> str:
    folder = _folder(package)
    if folder is None or not (folder / "ir.py").exists():
        return "not installed"
    absent = [
        dialect
        for dialect in needs
        if not (folder / "dialects" / f"{dialect}.py").exists()
        and not (folder / "dialects" / dialect).is_dir()
    ]
    return f"lacks the dialects {', '.join(absent)}" if absent else ""


@functools.cache
def _folder(package: str) -> Path | None:
    parent, *rest = package.split(".")
    spec = importlib.util.find_spec(parent)
    if spec is None or not spec.submodule_search_locations:
        return None
    return Path(next(iter(spec.submodule_search_locations)), *rest)


class _StandIn(types.ModuleType):
    """Stands for the parent of a bindings package, whose own import is slow, until somebody uses
    it.

    numba_cuda_mlir's `__init__` loads a whole compiler (0.4 s); `numba_cuda_mlir._mlir` needs
    nothing of it, except that MLIR's libraries are loaded without leaking symbols to another LLVM
    in the process (llvmlite's), which `_libraries` takes care of. The bindings look themselves up
    by full name from C++, so there must be a parent in `sys.modules` at all times.
    """

    def __init__(self, name: str, child: str, spec: Any) -> None:
        super().__init__(name)
        self.__spec__ = spec
        self.__path__ = list(spec.submodule_search_locations)
        self.child = child

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__version__":
            raise AttributeError(name)
        return getattr(self._real(), name)

    def _real(self) -> types.ModuleType:
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return importlib.import_module(self.__name__)


class _LeanDialect(types.ModuleType):
    """Stands for a dialect's module, with its attributes and types only, until somebody names one
    of its hundreds of op classes: making those takes a quarter of loading MLIR.

    Without them its ops are generic objects in Python, and no less valid.
    """

    def __init__(self, name: str, extension: Any) -> None:
        super().__init__(name)
        self._extension = extension

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__all__":
            raise AttributeError(name)
        if hasattr(self._extension, name):
            return getattr(self._extension, name)
        with _whole():
            if sys.modules.get(self.__name__) is self:
                del sys.modules[self.__name__]
            real = importlib.import_module(self.__name__)
        if name == "__all__":  # read by `from ... import *`
            return [key for key in vars(real) if not key.startswith("_")]
        found = getattr(real, name)
        setattr(self, name, found)  # bindings that were loaded before keep naming this module
        return found


# Dialects, and the extension module that has their attributes and types, if any.
_LEAN = {
    "arith": "",
    "builtin": "",
    "cf": "",
    "func": "",
    "gpu": "_mlirDialectsGPU",
    "irdl": "_mlirDialectsIRDL",
    "llvm": "_mlirDialectsLLVM",
    "math": "",
    "nvvm": "",
    "scf": "",
    "vector": "",
}


def _lean_dialects(package: str) -> None:
    for dialect, extension in _LEAN.items():
        name = f"{package}.dialects.{dialect}"
        if name not in sys.modules and not _missing(package, (dialect,)):
            found: Any = None
            if extension:
                found = importlib.import_module(f"{package}._mlir_libs.{extension}")
            sys.modules[name] = _LeanDialect(name, found)


class _ParentFirst:
    """A finder that finds nothing, but imports the real parent before any submodule of a stand-in
    other than `child`. It is no part of the stand-in, whose every attribute imports the parent:
    finders are asked for optional ones (`importlib.metadata` does so).
    """

    def __init__(self, stand_in: _StandIn) -> None:
        self._stand_in = stand_in

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """Import the parent where a submodule needs it; find nothing."""
        stand_in = self._stand_in
        parent, _, child = name.partition(".")
        if parent != stand_in.__name__ or child.split(".")[0] == stand_in.child:
            return
        sys.meta_path.remove(self)
        stand_in._real()


def _stand_in_for_parent(package: str) -> None:
    parent, _, child = package.partition(".")
    if not child or parent in sys.modules:
        return
    spec = importlib.util.find_spec(parent)
    stand_in = _StandIn(parent, child.split(".")[0], spec)
    for library, mode in _libraries(package):
        ctypes.CDLL(str(library), mode=mode)
    sys.modules[parent] = stand_in
    sys.meta_path.insert(0, _ParentFirst(stand_in))


def _libraries(package: str) -> tuple[tuple[Path, int], ...]:
    folder = _folder(package)
    if folder is None or not sys.platform.startswith("linux") or "." not in package:
        return ()
    # Looking up each of 36,000 functions before one is called takes a third of the time.
    mode = os.RTLD_LAZY | os.RTLD_LOCAL | getattr(os, "RTLD_DEEPBIND", 0)
    # The C API library first: the others need it and find it already bound to itself.
    found = (folder / "_mlir_libs").glob("libMLIRPython*.so")
    return tuple((path, mode) for path in sorted(found, key=lambda p: "CAPI" not in p.name))
