"""`load_module`: calling the functions of an exported object file or shared library from Python."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from basedsl import (
    ArgumentType,
    DSLCallError,
    DSLRuntimeError,
    NumericArgument,
    Results,
    argument_type,
    hide_internal_frames,
    load_object,
    read_object_file,
    slot_format,
)
from basedsl_cute.aot.metadata import MetadataError, opened, read_metadata
from basedsl_cute.device import driver
from basedsl_cute.dsl.cute import CUTE

_META = "_basedsl_meta"


class LoadedModule:
    """The functions of an exported object file, as attributes named by their prefixes."""

    def __init__(self, functions: dict[str, LoadedFunction]) -> None:
        self._functions = functions

    def __getattr__(self, name: str) -> LoadedFunction:
        try:
            return self.__dict__["_functions"][name]  # type: ignore[no-any-return]
        except KeyError:
            known = ", ".join(self.__dict__.get("_functions", ()))
            raise AttributeError(f"no exported function {name!r}, only: {known}") from None

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._functions]


class LoadedFunction:
    """An exported function. Calls pass the run-time arguments by position or name and raise
    DSLCallError for an argument of another type than the function was compiled for; a failing CUDA
    call raises DSLCudaRuntimeError. The first call loads the kernels.
    """

    def __init__(self, prefix: str, meta: dict[str, Any], address_of: Callable[[str], int]) -> None:
        self._prefix = prefix
        self._name = meta["name"]
        self._parameters: list[tuple[str, Any]] = meta["parameters"]
        self._results = Results.of_parts(*meta["results"])
        self._address_of = address_of
        self._library: ctypes.c_void_p | None = None
        entry: Any = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        self._entry = entry(address_of(f"{prefix}_basedsl_entry"))
        self._error = ctypes.c_int32.from_address(address_of(f"{prefix}_error"))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}: {kind}" for name, kind in self._parameters)
        return f"<exported {self._name}({shown})>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        try:
            return self._call(args, kwargs)
        except Exception as error:
            raise hide_internal_frames(error)  # noqa: B904 - the same one, for users' eyes

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        rest = [name for name, _ in self._parameters[len(args) :]]
        if set(rest) == set(kwargs):
            args = (*args, *(kwargs[name] for name in rest))
        if len(args) != len(self._parameters) or set(rest) != set(kwargs):
            names = ", ".join(name for name, _ in self._parameters)
            raise DSLCallError(
                f"{self._name} takes {len(self._parameters)} arguments ({names}), got {len(args)}",
                hint="defaults are not exported; keywords are the names of parameters",
            )
        packed: list[Any] = []
        formats: list[str] = []
        for value, (name, kind) in zip(args, self._parameters, strict=True):
            packed += _checked(value, name, kind).pack(value)
            formats += kind.storage
        self._load()
        into, out = (
            struct.Struct(slot_format(formats)),
            struct.Struct(slot_format(self._results.storage)),
        )
        slots = ctypes.create_string_buffer(into.size + out.size + 8)
        into.pack_into(slots, 0, *packed)
        self._error.value = 0
        self._entry(slots)
        if self._error.value:
            code = self._error.value
            name, meaning = driver.describe_error(code)
            message = f"{self._name} failed: {name}, {meaning}"
            raise driver.DSLCudaRuntimeError(message, code, name)
        return self._results.make(out.unpack_from(slots, into.size))

    def _load(self) -> None:
        driver.require()
        driver.ensure_context()
        if self._library is not None:
            return
        load: Any = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
        library = ctypes.c_void_p()
        address = self._address_of(f"{self._prefix}_Kernel_Module_Load")
        code = load(address)(ctypes.addressof(library))
        if code:
            name, meaning = driver.describe_error(code)
            message = f"loading the kernels of {self._name} failed: {name}, {meaning}"
            raise driver.DSLCudaRuntimeError(message, code, name)
        self._library = library


def _checked(value: Any, name: str, expected: ArgumentType) -> ArgumentType:
    annotation = expected.type if isinstance(expected, NumericArgument) else None
    found = argument_type(CUTE.language, value, annotation, name)
    if found != expected and not (type(found) is type(expected) and expected.accepts(value, name)):
        raise DSLCallError(f"'{name}' was exported as {expected}, got {found}")
    return expected


def load_module(path: str | Path, *, enable_tvm_ffi: bool = False) -> LoadedModule:
    """Load the functions of the object file at `path`, which `export_to_c` wrote, or of a shared
    library (".so") linked from such files. `enable_tvm_ffi` has no effect.

    Returns a module with each function as the attribute of its prefix. Raises DSLRuntimeError for
    a file without exported functions, and for one that is not as it was written: an object file has
    a digest of all of it, a shared library one of the description of its functions. Only load files
    that you trust: they contain machine code.
    """
    path = Path(path)
    try:
        data = path.read_bytes()
        return _loaded(path, opened(data) if path.suffix == ".o" else data)
    except OSError as error:
        raise DSLRuntimeError(f"{path} cannot be loaded: {error}") from None
    except MetadataError as error:
        raise DSLRuntimeError(
            f"{path} is no file that export_to_c wrote: {error}",
            hint="export it again with this version: compiled.export_to_c(...)",
        ) from None


def _loaded(path: Path, data: bytes) -> LoadedModule:
    try:
        file = read_object_file(data)
        names = file.names() if file is not None else None
    except (IndexError, ValueError, struct.error):
        raise MetadataError("its tables are damaged") from None
    prefixes = sorted(
        name.removesuffix(_META)
        for name in (names.defined if names is not None else ())
        if name.endswith(_META)
    )
    if names is None or not prefixes:
        raise DSLRuntimeError(f"{path} has no function that basedsl_cute exported")
    if path.suffix == ".o":
        driver.require()
        needed = [name for name in names.undefined if name.startswith("cu")]
        code = load_object(data, {name: driver.address_of(name) for name in needed})
        address_of: Callable[[str], int] = code.address_of
    else:
        library = ctypes.CDLL(str(path.resolve()))

        def address_of(name: str) -> int:
            return ctypes.addressof(ctypes.c_char.in_dll(library, name))

    functions = {}
    for prefix in prefixes:
        size = ctypes.c_int64.from_address(address_of(f"{prefix}{_META}_size")).value
        if not 0 < size < len(data):
            raise MetadataError("the description of its functions is damaged")
        meta = read_metadata(ctypes.string_at(address_of(prefix + _META), size))
        functions[prefix] = LoadedFunction(prefix, meta, address_of)
    return LoadedModule(functions)


def find_runtime_libraries(*, enable_tvm_ffi: bool = False) -> list[str]:
    """Return the libraries that an exported object is linked with besides libcuda: none, whatever
    `enable_tvm_ffi` is."""
    return []
