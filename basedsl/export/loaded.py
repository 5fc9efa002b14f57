"""Exported functions in Python again: of an object file, or of a shared library made of such."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

from basedsl.binding.argument_types import argument_type
from basedsl.binding.arguments import ArgumentType, NumericArgument
from basedsl.binding.results import Results
from basedsl.errors import DSLCallError, DSLRuntimeError, hide_internal_frames
from basedsl.export.export import META
from basedsl.export.metadata import MetadataError, opened, read_metadata
from basedsl.objectstage import asserts, load_object, read_object_file, slot_format

AddressOf = Callable[[str], int]


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
    DSLCallError for an argument of another type than the function was compiled for, and the
    exceptions that the function raises.

    `prefix` begins the names of its symbols, whose addresses `address_of` gives; `meta` is what the
    file says of it.

    A language whose `Export` has its own support has a subclass, which `Language.loaded_function`
    returns: `prepare` is called before each call, `failure` after one that has failed.
    """

    def __init__(
        self, language: Any, prefix: str, meta: dict[str, Any], address_of: AddressOf
    ) -> None:
        self.language, self.prefix, self.address_of = language, prefix, address_of
        self.name: str = meta["name"]
        self._parameters: list[tuple[str, Any]] = meta["parameters"]
        self._results = Results.of_parts(*meta["results"])
        self._entry = self.function("basedsl_entry", None, ctypes.c_void_p)
        self._begin = self.function("basedsl_begin", None)
        self._status = self.function("basedsl_status", ctypes.c_int32)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}: {kind}" for name, kind in self._parameters)
        return f"<exported {self.name}({shown})>"

    def function(self, name: str, result: Any, *arguments: Any) -> Any:
        """Return the C function PREFIX_`name`; `result` and `arguments` are ctypes types."""
        kind: Any = ctypes.CFUNCTYPE(result, *arguments)
        return kind(self.address_of(f"{self.prefix}_{name}"))

    def prepare(self) -> None:
        """Do what must be done before each call. By default nothing."""

    def failure(self, status: int) -> BaseException | None:
        """Return the exception for a `status` of a call that is not 0; None if there is none."""
        state: int = self.function("basedsl_failure", ctypes.c_void_p)()
        where, *values = (ctypes.c_int64 * 3).from_address(state)
        asserts.record_failure(ctypes.string_at(where), tuple(values))
        try:
            asserts.raise_failed_assertion()
        except BaseException as error:  # the one that it raises is the answer
            return error
        return None

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
                f"{self.name} takes {len(self._parameters)} arguments ({names}), got {len(args)}",
                hint="defaults are not exported; keywords are the names of parameters",
            )
        packed: list[Any] = []
        formats: list[str] = []
        for value, (name, kind) in zip(args, self._parameters, strict=True):
            packed += self._checked(value, name, kind).pack(value)
            formats += kind.storage
        self.prepare()
        into, out = (
            struct.Struct(slot_format(formats)),
            struct.Struct(slot_format(self._results.storage)),
        )
        slots = ctypes.create_string_buffer(into.size + out.size + 8)
        into.pack_into(slots, 0, *packed)
        self._begin()
        self._entry(slots)
        status = self._status()
        error = self.failure(status) if status else None
        if error is not None:
            raise error
        return self._results.make(out.unpack_from(slots, into.size))

    def _checked(self, value: Any, name: str, expected: ArgumentType) -> ArgumentType:
        annotation = expected.type if isinstance(expected, NumericArgument) else None
        found = argument_type(self.language, value, annotation, name)
        if found != expected and not (
            type(found) is type(expected) and expected.accepts(value, name)
        ):
            raise DSLCallError(f"'{name}' was exported as {expected}, got {found}")
        return expected


def load_module(language: Any, path: str | Path) -> LoadedModule:
    """Load the functions of `language` in the file at `path` (see `DSL.load_module`)."""
    path = Path(path)
    try:
        data = path.read_bytes()
        return _loaded(language, path, opened(data) if path.suffix == ".o" else data)
    except OSError as error:
        raise DSLRuntimeError(f"{path} cannot be loaded: {error}") from None
    except MetadataError as error:
        raise DSLRuntimeError(
            f"{path} is no file that export_to_c wrote: {error}",
            hint="export it again with this version: compiled.export_to_c(...)",
        ) from None


def _loaded(language: Any, path: Path, data: bytes) -> LoadedModule:
    try:
        file = read_object_file(data)
        names = file.names() if file is not None else None
    except (IndexError, ValueError, struct.error):
        raise MetadataError("its tables are damaged") from None
    prefixes = sorted(
        name.removesuffix(META)
        for name in (names.defined if names is not None else ())
        if name.endswith(META)
    )
    if names is None or not prefixes:
        raise DSLRuntimeError(f"{path} has no function that was exported")
    if path.suffix == ".o":
        address_of: AddressOf = load_object(data, language.exported_symbols(names)).address_of
    else:
        library = ctypes.CDLL(str(path.resolve()))

        def address_of(name: str) -> int:
            return ctypes.addressof(ctypes.c_char.in_dll(library, name))

    functions = {}
    for prefix in prefixes:
        size = ctypes.c_int64.from_address(address_of(f"{prefix}{META}_size")).value
        if not 0 < size < len(data):
            raise MetadataError("the description of its functions is damaged")
        text = ctypes.string_at(address_of(prefix + META), size)
        meta = read_metadata(text, language.exported_packages)
        functions[prefix] = language.loaded_function(prefix, meta, address_of)
    return LoadedModule(functions)
