"""Which symbols relocatable object code defines and which it needs: enough of ELF to tell.

System V ABI, chapters "Sections" and "Symbol Table". 64-bit little-endian files only; for others
(COFF, Mach-O) the answer is None, and linking finds out by itself.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

_MAGIC = b"\x7fELF\x02\x01"
_SYMTAB = 2
_LOCAL = 0
_UNDEFINED = 0


@dataclass(frozen=True)
class Symbols:
    """Global names of one object file."""

    defined: frozenset[str]
    undefined: frozenset[str]


def read_symbols(data: bytes) -> Symbols | None:
    """The global symbols of object code, or None if it is not 64-bit little-endian ELF."""
    if not data.startswith(_MAGIC):
        return None
    (table_at,) = struct.unpack_from("<Q", data, 0x28)
    entry_size, count = struct.unpack_from("<HH", data, 0x3A)
    sections = [
        struct.unpack_from("<IIQQQQIIQQ", data, table_at + i * entry_size) for i in range(count)
    ]
    defined: set[str] = set()
    undefined: set[str] = set()
    for _, kind, _, _, offset, size, link, _, _, step in sections:
        if kind != _SYMTAB:
            continue
        strings = sections[link][4]
        for at in range(offset, offset + size, step):
            name_at, info, _, section = struct.unpack_from("<IBBH", data, at)
            if not name_at or info >> 4 == _LOCAL:
                continue
            start = strings + name_at
            name = data[start : data.index(b"\0", start)].decode()
            (undefined if section == _UNDEFINED else defined).add(name)
    return Symbols(frozenset(defined), frozenset(undefined))
