"""Loads object code into executable memory: linking without a linker, for ELF on x86-64 Linux.

A process that only loads code from the disk cache needs no LLVM for it: importing llvmlite costs
more than all else of a first call. System V ABI, AMD64 supplement, chapter "Relocation"; of its
kinds, those that LLVM emits for position-independent code of the small code model. Object code with
other kinds, or for another machine, gives None, and LLVM links it.
"""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
import struct
import sys
import weakref
from collections.abc import Callable
from typing import Any

from basedsl.errors import DSLRuntimeError
from basedsl.objectstage.object_file import (
    LOCAL,
    NOBITS,
    PROGBITS,
    RELA,
    UNDEFINED,
    ObjectFile,
    Symbol,
)

_X86_64 = 62
_WRITE, _ALLOC, _EXECUTE, _THREAD_LOCAL = 0x1, 0x2, 0x4, 0x400
_UNWIND = 0x70000001
_CONTENTS = (PROGBITS, NOBITS, _UNWIND)
_ABSOLUTE, _COMMON, _EXTENDED = 0xFFF1, 0xFFF2, 0xFFFF

# Relocations: the address itself; its distance; the distance of a slot with the address.
_ADDRESS, _DISTANCE, _CALL, _DISTANCE_64 = 1, 2, 4, 24
_SLOT = (9, 41, 42)
_KNOWN = frozenset((_ADDRESS, _DISTANCE, _CALL, _DISTANCE_64, *_SLOT))

_JUMP = b"\xff\x25\x00\x00\x00\x00"  # jmp [rip + 0]: the address follows
_STUB, _WORD = 16, 8


class LoadedImage:
    """Object code in memory, for as long as this object lives."""

    def __init__(self, file: ObjectFile, find: Callable[[str], int]) -> None:
        self._file = file
        self._find = find
        self._places: dict[int, int] = {}  # section -> offset
        self._stubs: dict[str, int] = {}  # undefined name -> offset
        self._slots = 0
        code, constants, size = self._lay_out()
        self._base = _map(size)
        unwound: list[int] = []
        free = weakref.finalize(self, _release, self._base, size, unwound)
        # A thread may still run in it while the process ends.
        free.atexit = False
        memory = memoryview((ctypes.c_uint8 * size).from_address(self._base)).cast("B")
        self._fill(memory)
        self._relocate(memory)
        _protect(self._base, code, mmap.PROT_READ | mmap.PROT_EXEC)
        _protect(self._base + code, constants - code, mmap.PROT_READ)
        unwinder = _unwinder()
        for index, at in self._places.items():
            if file.sections[index].kind == _UNWIND and unwinder is not None:
                # A thread that ends inside a callback is unwound through the code that called it.
                unwinder[0](self._base + at)
                unwound.append(self._base + at)

    def address_of(self, name: str) -> int:
        """Return the address of a global name that the code defines; KeyError if there is none."""
        for symbol in self._file.symbols:
            if symbol.name == name and symbol.section != UNDEFINED and symbol.binding != LOCAL:
                return self._address(symbol)
        raise KeyError(name)

    def _lay_out(self) -> tuple[int, int, int]:
        """Give every section an offset: code, constants, variables, each kind on pages of its own;
        return the end of each of the three.
        """
        groups: list[list[int]] = [[], [], []]
        for index, section in enumerate(self._file.sections):
            if section.flags & _ALLOC and section.size:
                kind = 0 if section.flags & _EXECUTE else 2 if section.flags & _WRITE else 1
                groups[kind].append(index)
        at, ends = 0, []
        for kind, group in enumerate(groups):
            for index in group:
                section = self._file.sections[index]
                self._places[index] = at = _up(at, section.align)
                # Four zeros end the table of unwind information.
                at += section.size + (4 if section.kind == _UNWIND else 0)
            if kind == 0:
                for symbol in self._file.symbols:
                    if symbol.name and symbol.section == UNDEFINED:
                        self._stubs[symbol.name] = at = _up(at, _STUB)
                        at += _STUB
            if kind == 1:
                self._slots = _up(at, _WORD)
                at = self._slots + _WORD * len(self._file.symbols)
            at = _up(at, mmap.PAGESIZE)
            ends.append(at)
        return ends[0], ends[1], ends[2]

    def _fill(self, memory: memoryview) -> None:
        for index, at in self._places.items():
            section = self._file.sections[index]
            if section.kind != NOBITS:
                content = self._file.data[section.offset : section.offset + section.size]
                memory[at : at + section.size] = content
        for name, at in self._stubs.items():
            stub = _JUMP + struct.pack("<Q", self._find(name))
            memory[at : at + len(stub)] = stub

    def _address(self, symbol: Symbol) -> int:
        if symbol.section == _ABSOLUTE:
            return symbol.value
        return self._base + self._places[symbol.section] + symbol.value

    def _relocate(self, memory: memoryview) -> None:
        file = self._file
        for table in file.sections:
            place = self._places.get(table.info)
            if table.kind != RELA or place is None:
                continue
            for one in file.relocations(table):
                symbol, at = file.symbols[one.symbol], place + one.offset
                if symbol.section != UNDEFINED:
                    target = self._address(symbol)
                elif one.kind == _CALL:
                    target = self._base + self._stubs[symbol.name]
                else:
                    target = self._find(symbol.name)
                if one.kind in _SLOT:
                    slot = self._slots + _WORD * one.symbol
                    struct.pack_into("<Q", memory, slot, target)
                    target = self._base + slot
                if one.kind == _ADDRESS:
                    struct.pack_into("<Q", memory, at, (target + one.addend) % 2**64)
                else:
                    format_ = "<q" if one.kind == _DISTANCE_64 else "<i"
                    struct.pack_into(format_, memory, at, target + one.addend - self._base - at)


def load_image(file: ObjectFile, find: Callable[[str], int]) -> LoadedImage | None:
    """Link `file` into this process; `find` gives the addresses of the names that it needs. None if
    it has anything that this file does not know.
    """
    return LoadedImage(file, find) if _can_map() and _is_known(file) else None


def _is_known(file: ObjectFile) -> bool:
    if file.machine != _X86_64:
        return False
    loaded = {index for index, section in enumerate(file.sections) if section.flags & _ALLOC}
    for index in loaded:
        section = file.sections[index]
        if section.flags & _THREAD_LOCAL or section.kind not in _CONTENTS:
            return False
    for symbol in file.symbols:
        if symbol.section not in loaded and symbol.section in (_COMMON, _EXTENDED):
            return False
    for table in file.sections:
        if table.kind != RELA or table.info not in loaded:
            continue
        for one in file.relocations(table):
            symbol = file.symbols[one.symbol]
            outside = symbol.section == UNDEFINED
            if one.kind not in _KNOWN or (outside and one.kind not in (_ADDRESS, _CALL, *_SLOT)):
                return False
    return True


def _up(at: int, align: int) -> int:
    return -(-at // align) * align


# Memory --------------------------------------------------------------------------------------


@functools.cache
def _can_map() -> bool:
    return sys.platform.startswith("linux") and sys.maxsize == 2**63 - 1


@functools.cache
def _c_library() -> ctypes.CDLL:
    library = ctypes.CDLL(None, use_errno=True)
    library.mmap.restype = ctypes.c_void_p
    library.mmap.argtypes = [
        *(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int),
        ctypes.c_ssize_t,
    ]
    library.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    library.mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    return library


@functools.cache
def _unwinder() -> tuple[Any, Any] | None:
    """Return the functions that register unwind information and remove it; None without libgcc."""
    try:
        library = ctypes.CDLL("libgcc_s.so.1")
        functions = library["__register_frame"], library["__deregister_frame"]
    except (OSError, AttributeError):
        return None
    for function in functions:
        function.argtypes, function.restype = [ctypes.c_void_p], None
    return functions


def _map(size: int) -> int:
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    found = _c_library().mmap(None, size, mmap.PROT_READ | mmap.PROT_WRITE, flags, -1, 0)
    if found in (None, 2**64 - 1):
        raise MemoryError(f"no memory for {size} bytes of code")
    return int(found)


def _protect(address: int, size: int, protection: int) -> None:
    if size and _c_library().mprotect(address, size, protection):
        reason = os.strerror(ctypes.get_errno())
        raise DSLRuntimeError(
            f"this system does not let a process make code: mprotect says {reason}"
        )


def _release(base: int, size: int, unwound: list[int]) -> None:
    unwinder = _unwinder()
    for table in unwound:
        assert unwinder is not None
        unwinder[1](table)
    _c_library().munmap(base, size)
