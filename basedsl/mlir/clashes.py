"""Finds MLIR packages that cannot live in one process.

A shared library may mark symbols as unique in the process (STB_GNU_UNIQUE): the dynamic linker then
gives all libraries the first one's, however they were opened. Two builds of LLVM whose C++ shares
such static variables overwrite each other's state, and the process dies at its end or before it.
"""

from __future__ import annotations

import functools
import mmap
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from basedsl.errors import DSLRuntimeError

_SHT_DYNSYM = 11
_STB_GNU_UNIQUE = 10
_SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("at", "<u8", (2,))]
)


def refuse_clash(package: str, libraries: Iterable[Path]) -> None:
    """Raise DSLRuntimeError if the libraries of `package` and those of MLIR bindings that this
    process has loaded share unique symbols of LLVM. Elsewhere than on Linux there are none.
    """
    if not sys.platform.startswith("linux"):
        return
    own: frozenset[bytes] | None = None
    for other, theirs in loaded_packages().items():
        if other == package:
            continue
        if own is None:
            own = _unique_symbols(tuple(libraries))
        common = own & _unique_symbols(tuple(theirs))
        if common:
            raise DSLRuntimeError(
                f"the MLIR bindings {package!r} and {other!r} cannot be in one process",
                notes=(
                    (
                        f"{other!r} is loaded, and both export {len(common)} static variables of "
                        "LLVM under the same names, so that one would use the other's",
                        None,
                    ),
                ),
                hint=f"use {package!r} in a process of its own",
            )


def loaded_packages() -> dict[str, list[Path]]:
    """Return the MLIR bindings that this process has imported, whoever did, and the shared
    libraries of each.
    """
    found = {}
    for name, module in sys.modules.copy().items():  # imports may run meanwhile
        parent, _, last = name.rpartition(".")
        if last == "_mlir_libs" and f"{name}._mlir" in sys.modules:
            found[parent] = [
                path for folder in module.__path__ for path in sorted(Path(folder).glob("*.so*"))
            ]
    return found


@functools.cache
def _unique_symbols(libraries: tuple[Path, ...]) -> frozenset[bytes]:
    return frozenset(name for path in libraries for name in unique_symbols(path))


def unique_symbols(path: Path) -> frozenset[bytes]:
    """Return the mangled names of a library's unique symbols of LLVM and MLIR; none for a file that
    is no 64-bit little-endian ELF.
    """
    with path.open("rb") as file:
        if file.read(6) != b"\x7fELF\x02\x01":
            return frozenset()
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return frozenset(_names(data))


def _names(data: mmap.mmap) -> list[bytes]:
    (table,) = struct.unpack_from("<Q", data, 40)
    size, count = struct.unpack_from("<HH", data, 58)
    sections = [struct.unpack_from("<IIQQQQII", data, table + size * i) for i in range(count)]
    found = []
    for _, kind, _, _, start, length, link, _ in sections:
        if kind != _SHT_DYNSYM:
            continue
        strings = sections[link][4]
        # A copy: the file cannot be closed while an array refers to it.
        symbols = np.frombuffer(data[start : start + length], _SYMBOL)
        for symbol in symbols[symbols["info"] >> 4 == _STB_GNU_UNIQUE]:
            at = strings + int(symbol["name"])
            name = data[at : data.find(b"\0", at)]
            if b"4llvm" in name or b"4mlir" in name:
                found.append(name)
    return found
