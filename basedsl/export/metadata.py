"""Metadata of exported functions: their parameters and results as JSON, and digests of files.

Reading it runs no code of the file: what it names are classes of `basedsl` and of the DSL's
packages, whose fields are plain values.
"""

from __future__ import annotations

import hashlib
import importlib
import json
from collections.abc import Sequence
from typing import Any

_MARK = b"\0basedsl-object-1"
_DIGEST = hashlib.sha256().digest_size


class MetadataError(ValueError):
    """Metadata, or a file, that is not what was written."""


# Digests ------------------------------------------------------------------------------------------


def sealed(code: bytes) -> bytes:
    """An object file with a digest behind it, which linkers leave out."""
    return code + _MARK + hashlib.sha256(code).digest()


def opened(data: bytes) -> bytes:
    """The object file that was `sealed`. Raises MetadataError for one that is not whole."""
    end = len(data) - _DIGEST - len(_MARK)
    if end < 0 or data[end : end + len(_MARK)] != _MARK:
        raise MetadataError("it is cut short, or another program wrote it or changed it")
    if hashlib.sha256(data[:end]).digest() != data[-_DIGEST:]:
        raise MetadataError("its contents are not those that were exported")
    return data[:end]


# JSON ---------------------------------------------------------------------------------------------


def write_metadata(value: Any, packages: Sequence[str]) -> bytes:
    """The text of plain values, classes of `packages` and their instances, behind its digest.
    Raises TypeError for anything else.
    """
    text = json.dumps(_Writer(packages).encoded(value), separators=(",", ":")).encode()
    return hashlib.sha256(text).digest() + text


def read_metadata(data: bytes, packages: Sequence[str]) -> Any:
    """The value that `write_metadata` wrote, with classes of `packages`. Raises MetadataError."""
    digest, text = data[:_DIGEST], data[_DIGEST:]
    if hashlib.sha256(text).digest() != digest:
        raise MetadataError("the description of its functions is damaged")
    try:
        return _MetadataReader(packages).decoded(json.loads(text))
    except (AttributeError, ImportError, KeyError, TypeError, ValueError) as error:
        raise MetadataError(f"another version exported it ({error})") from None


class _Writer:
    def __init__(self, packages: Sequence[str]) -> None:
        self.packages = packages

    def encoded(self, value: Any) -> Any:
        if value is None or type(value) in (bool, int, str):
            return value
        if type(value) is float:
            return {"float": value.hex()}
        if type(value) is list:
            return [self.encoded(part) for part in value]
        if type(value) is tuple:
            return {"tuple": [self.encoded(part) for part in value]}
        if type(value) is dict:
            pairs = value.items()
            return {"dict": [[self.encoded(key), self.encoded(part)] for key, part in pairs]}
        if isinstance(value, type):
            return {"class": self.name(value)}
        return {"object": self.name(type(value)), "fields": self.encoded(_fields(value))}

    def name(self, kind: type) -> str:
        module = kind.__module__
        if not _is_of(module, self.packages) or "<" in kind.__qualname__:
            raise TypeError(f"{kind.__qualname__} of {module} has no form in a file")
        return f"{module}:{kind.__qualname__}"


def _is_of(module: str, packages: Sequence[str]) -> bool:
    return module.partition(".")[0] in (*packages, "builtins")


def _fields(value: Any) -> dict[str, Any]:
    fields = dict(getattr(value, "__dict__", {}))
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__") and hasattr(value, name):
                fields[name] = getattr(value, name)
    return fields


class _MetadataReader:
    def __init__(self, packages: Sequence[str]) -> None:
        self.packages = packages

    def decoded(self, value: Any) -> Any:
        match value:
            case list():
                return [self.decoded(part) for part in value]
            case {"float": text}:
                return float.fromhex(text)
            case {"tuple": parts}:
                return tuple(self.decoded(part) for part in parts)
            case {"dict": pairs}:
                return {self.decoded(key): self.decoded(part) for key, part in pairs}
            case {"class": name}:
                return self.named(name)
            case {"object": name, "fields": fields}:
                made: Any = object.__new__(self.named(name))
                for field, part in self.decoded(fields).items():
                    object.__setattr__(made, field, part)
                return made
            case None | bool() | int() | str():
                return value
        raise ValueError(f"unknown form {str(value)[:40]}")

    def named(self, name: str) -> type:
        module, _, path = name.partition(":")
        if not _is_of(module, self.packages):
            raise ValueError(f"a class of {module}")
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
        if not isinstance(found, type):
            raise ValueError(f"{name} is no class")
        return found
