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
import importlib.machinery
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
from basedsl.mlir.clashes import refuse_clash
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
            refuse_clash(package, _shared_objects(package))
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


def _shared_objects(package: str) -> list[Path]:
    folder = _folder(package)
    return [] if folder is None else sorted((folder / "_mlir_libs").glob("*.so*"))


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
        hint=f"pip install numba-cuda-mlir, or name a package in {ENVIRONMENT_VARIABLE}"
        if sys.platform == "linux"
        else "compiling needs Linux, for which the bindings have wheels; layouts need none",
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
    if folder is None or not folder.is_dir():
        return "not installed"
    if not (folder / "ir.py").exists():
        return "no MLIR bindings, which have a module 'ir'"
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
    folders = [Path(place, *rest) for place in spec.submodule_search_locations]
    return next((folder for folder in folders if folder.is_dir()), folders[0])


class _StandIn(types.ModuleType):
    """Stands for a module whose import is slow until somebody uses it; then it becomes that module,
    the same object, so that everybody who imports it shares one.
    """

    def __init__(self, spec: Any) -> None:
        super().__init__(spec.name)
        self.__spec__ = spec
        self.__loader__ = spec.loader
        self.__file__ = spec.origin
        self.__package__ = spec.parent
        if spec.submodule_search_locations is not None:
            self.__path__ = list(spec.submodule_search_locations)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in ("__version__", "__all__"):
            raise AttributeError(name)
        _become_real(self)
        return getattr(self, name)


def _become_real(stand_in: types.ModuleType) -> None:
    """Execute the module that `stand_in` stands for, in its place."""
    if not isinstance(stand_in, _StandIn):
        return
    spec: Any = stand_in.__spec__
    with _lock, _whole():
        if isinstance(stand_in, _StandIn):  # no other thread was first
            kind, stand_in.__class__ = type(stand_in), types.ModuleType  # type: ignore[assignment]
            try:
                spec.loader.exec_module(stand_in)
            except BaseException:
                stand_in.__class__ = kind
                raise


class _LeanDialect(_StandIn):
    """Stands for a dialect's module, with its attributes and types only, until somebody names one
    of its hundreds of op classes: making those takes a quarter of loading MLIR.

    Without them its ops are generic objects in Python, and no less valid.
    """

    def __init__(self, spec: Any, extension: Any) -> None:
        super().__init__(spec)
        self._extension = extension

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("__") and hasattr(self._extension, name):
            return getattr(self._extension, name)
        if name == "__all__":  # read by `from ... import *`
            _become_real(self)
            return [key for key in vars(self) if not key.startswith("_")]
        return super().__getattr__(name)


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
    dialects: Any = None
    for dialect, extension in _LEAN.items():
        name = f"{package}.dialects.{dialect}"
        if name in sys.modules or _missing(package, (dialect,)):
            continue
        found: Any = None
        if extension:
            try:
                found = importlib.import_module(f"{package}._mlir_libs.{extension}")
            except ModuleNotFoundError:  # in other versions it is elsewhere, or is none
                continue
        dialects = dialects or importlib.import_module(f"{package}.dialects")
        stand_in = _LeanDialect(importlib.util.find_spec(name), found)
        sys.modules[name] = stand_in
        setattr(dialects, dialect, stand_in)


class _ParentFirst:
    """A finder that makes the stand-in of a package real before any submodule of it other than
    `child` is imported, because that submodule may need what the package's `__init__` does.
    """

    def __init__(self, stand_in: _StandIn, child: str) -> None:
        self._stand_in = stand_in
        self._child = child

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return the spec of a submodule that the package's `__init__` has imported; else None."""
        parent, _, rest = name.partition(".")
        if parent != self._stand_in.__name__ or rest.split(".")[0] == self._child:
            return None
        with contextlib.suppress(ValueError):  # another thread was first
            sys.meta_path.remove(self)
        _become_real(self._stand_in)
        known = sys.modules.get(name)
        if known is None or known.__spec__ is None:
            return None
        loader: Any = _Known(known)
        return importlib.machinery.ModuleSpec(name, loader, origin=known.__spec__.origin)


class _Known:
    """A loader of a module that is imported already."""

    def __init__(self, module: types.ModuleType) -> None:
        self._module = module
        self._spec = module.__spec__

    def create_module(self, spec: Any) -> types.ModuleType:
        return self._module

    def exec_module(self, module: types.ModuleType) -> None:
        module.__spec__ = self._spec
        module.__loader__ = self._spec.loader if self._spec else None


def _stand_in_for_parent(package: str) -> None:
    """Put a stand-in for the parent of a bindings package, whose own import is slow.

    numba_cuda_mlir's `__init__` loads a whole compiler (0.4 s); `numba_cuda_mlir._mlir` needs
    nothing of it, except that MLIR's libraries are loaded without leaking symbols to another LLVM
    in the process (llvmlite's), which `_libraries` takes care of. The bindings look themselves up
    by full name from C++, so there must be a parent in `sys.modules` at all times.
    """
    parent, _, child = package.partition(".")
    if not child or parent in sys.modules:
        return
    spec = importlib.util.find_spec(parent)
    if spec is None or spec.loader is None:  # a namespace package: nothing to import
        return
    stand_in = _StandIn(spec)
    for library, mode in _libraries(package):
        ctypes.CDLL(str(library), mode=mode)
    sys.modules[parent] = stand_in
    sys.meta_path.insert(0, _ParentFirst(stand_in, child.split(".")[0]))


def _libraries(package: str) -> tuple[tuple[Path, int], ...]:
    folder = _folder(package)
    if folder is None or not sys.platform.startswith("linux") or "." not in package:
        return ()
    # Looking up each of 36,000 functions before one is called takes a third of the time.
    mode = os.RTLD_LAZY | os.RTLD_LOCAL | getattr(os, "RTLD_DEEPBIND", 0)
    # The C API library first: the others need it and find it already bound to itself.
    found = (folder / "_mlir_libs").glob("libMLIRPython*.so")
    return tuple((path, mode) for path in sorted(found, key=lambda p: "CAPI" not in p.name))
