"""Tables of relocatable object code: enough of ELF to know what it defines and needs, and to link.

System V ABI, chapters "Sections", "Symbol Table" and "Relocation". 64-bit little-endian files only;
for others (COFF, Mach-O) the answer is None.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

UNDEFINED = 0
PROGBITS, SYMTAB, RELA, NOBITS = 1, 2, 4, 8
LOCAL = 0
_EXECUTABLE = 4  # a section's flag SHF_EXECINSTR
_MAGIC = b"\x7fELF\x02\x01"


@dataclass(frozen=True)
class Section:
    """A section header: `kind` and `flags` as ELF numbers them; `size` bytes at `offset`."""

    name: str
    kind: int
    flags: int
    offset: int
    size: int
    link: int
    info: int
    align: int


@dataclass(frozen=True)
class Symbol:
    """A row of the symbol table; `section` is an index, or UNDEFINED."""

    name: str
    binding: int
    section: int
    value: int


@dataclass(frozen=True)
class Relocation:
    """A row that patches `offset` of a section with a function (`kind`) of `symbol` (an index) and
    `addend`.
    """

    offset: int
    kind: int
    symbol: int
    addend: int


@dataclass(frozen=True)
class SymbolTable:
    """The global names of one object file."""

    defined: frozenset[str]
    undefined: frozenset[str]


class ObjectFile:
    """One object file. `machine` is ELF's number of the processor."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        (self.machine,) = struct.unpack_from("<H", data, 0x12)
        (table_at,) = struct.unpack_from("<Q", data, 0x28)
        step, count, names = struct.unpack_from("<HHH", data, 0x3A)
        rows = [struct.unpack_from("<IIQQQQIIQQ", data, table_at + i * step) for i in range(count)]
        self.sections = [
            Section(
                self._text(rows[names][4], name),
                kind,
                flags,
                offset,
                size,
                link,
                info,
                max(align, 1),
            )
            for name, kind, flags, _, offset, size, link, info, align, _ in rows
        ]
        self.symbols = list(self._symbols())

    def _text(self, table: int, at: int) -> str:
        start = table + at
        return self.data[start : self.data.index(b"\0", start)].decode()

    def _symbols(self) -> Iterator[Symbol]:
        for section in self.sections:
            if section.kind != SYMTAB:
                continue
            strings = self.sections[section.link].offset
            for at in range(section.offset, section.offset + section.size, 24):
                name, info, _, home, value = struct.unpack_from("<IBBHQ", self.data, at)
                yield Symbol(self._text(strings, name), info >> 4, home, value)

    @property
    def code_size(self) -> int:
        """The number of bytes of machine code."""
        return sum(one.size for one in self.sections if one.flags & _EXECUTABLE)

    def relocations(self, section: Section) -> Iterator[Relocation]:
        """Return the rows of a section of kind RELA."""
        for at in range(section.offset, section.offset + section.size, 24):
            offset, info, addend = struct.unpack_from("<QQq", self.data, at)
            yield Relocation(offset, info & 0xFFFFFFFF, info >> 32, addend)

    def names(self) -> SymbolTable:
        """Return the global names that it defines, and those that it needs."""
        named = [one for one in self.symbols if one.name and one.binding != LOCAL]
        return SymbolTable(
            frozenset(one.name for one in named if one.section != UNDEFINED),
            frozenset(one.name for one in named if one.section == UNDEFINED),
        )


def read_object_file(data: bytes) -> ObjectFile | None:
    """Return the tables of object code, whose bytes `data` are, or None if it is not 64-bit
    little-endian ELF.
    """
    return ObjectFile(data) if data.startswith(_MAGIC) else None
