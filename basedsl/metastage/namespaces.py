"""Classes, functions and modules of the program, whose attributes staged code must not set.

No loop or branch can carry them: setting an attribute inside staged control flow would happen once,
while compiling, whatever happens at run time.
"""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Any

from basedsl.errors import DSLError
from basedsl.location import Span, file_of_module, is_internal, is_library, span_of_code

_KINDS = (type, FunctionType, ModuleType)
_MISSING = object()

ONCE = ("that would happen once, while compiling, however often the program gets here", None)


class Namespaces:
    """The attributes that some classes, functions and modules have now."""

    __slots__ = ("_held",)

    def __init__(self, named: Iterable[tuple[str, Any]], codes: Iterable[CodeType]) -> None:
        self._held: dict[int, tuple[str, Any, dict[str, Any], tuple[str, ...] | None]] = {}
        stored: tuple[str, ...] | None = None
        for name, value in named:
            if not isinstance(value, _KINDS) or id(value) in self._held or _is_foreign(value):
                continue
            names = None
            if isinstance(value, ModuleType):  # of its many names only those that the code sets
                if stored is None:
                    stored = tuple({s for code in codes for s in stored_attributes(code)})
                names = stored
            self._held[id(value)] = name, value, _contents(value, names), names

    def check(self) -> None:
        """Raise a DSLError if one of them has other attributes now."""
        for name, value, before, stored in self._held.values():
            now = _contents(value, stored)
            if before.keys() == now.keys() and all(now[k] is v for k, v in before.items()):
                continue
            changed = next(
                k for k in (*before, *now) if before.get(k, _MISSING) is not now.get(k, _MISSING)
            )
            raise DSLError(
                f"'{name}.{changed}' is set inside staged control flow",
                notes=(ONCE,),
                hint=f"keep '{changed}' in a variable or in an object of the function's own",
            )


def _contents(value: Any, stored: tuple[str, ...] | None) -> dict[str, Any]:
    table = vars(value)
    if stored is not None:
        return {k: table[k] for k in stored if k in table}
    return {k: v for k, v in table.items() if not k.startswith("__")}


def _is_foreign(value: Any) -> bool:
    """Return True if the value belongs to a library."""
    if isinstance(value, FunctionType):
        filename: str | None = value.__code__.co_filename
    else:
        name = value.__name__ if isinstance(value, ModuleType) else value.__module__
        if name in sys.builtin_module_names:
            return True
        module = value if isinstance(value, ModuleType) else sys.modules.get(name)
        filename = file_of_module(module) or None
    return filename is not None and (is_internal(filename) or is_library(filename))


def instructions(code: CodeType) -> Iterator[tuple[CodeType, dis.Instruction]]:
    """Yield the instructions of code, and of functions in it, that name something."""
    for instruction in dis.get_instructions(code):
        if isinstance(instruction.argval, str):
            yield code, instruction
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from instructions(constant)


def changing_lines(code: CodeType) -> frozenset[int]:
    """Return the lines of code, and of functions in it, that store to an item or attribute, or call
    something for its effect.
    """
    found = set()
    before = ""
    line = code.co_firstlineno
    for instruction in dis.get_instructions(code):
        where = instruction.positions
        line = line if where is None or where.lineno is None else where.lineno
        name = instruction.opname
        if name in _STORES or (name == "POP_TOP" and before.startswith("CALL")):
            found.add(line)
        before = name
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= changing_lines(constant)
    return frozenset(found)


def naming_span(codes: Iterable[CodeType], name: str) -> tuple[Span | None, bool]:
    """Return the first line that names a variable and stores or calls something, with True; else
    the first that names it at all.
    """
    first = None
    for code in codes:
        changing = changing_lines(code)
        for here, instruction in instructions(code):
            if instruction.argval == name and "CONST" not in instruction.opname:
                span = span_of_code(here, instruction.offset)
                if span.line in changing:
                    return span, True
                first = first or span
    return first, False


_STORES = frozenset(
    {"STORE_SUBSCR", "DELETE_SUBSCR", "STORE_ATTR", "DELETE_ATTR", "STORE_GLOBAL", "STORE_SLICE"}
)

# By the id of a code object that the entry keeps alive. Not by the code itself: comparing two that
# are equal takes time exponential in how deep functions are nested in them.
_known_names: dict[int, tuple[CodeType, tuple[str, ...]]] = {}
_MOST_KNOWN = 4096


def named_in(code: CodeType) -> tuple[str, ...]:
    """Return the names of globals and attributes in code, and in functions in it."""
    known = _known_names.get(id(code))
    if known is not None:
        return known[1]
    found = dict.fromkeys(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found.update(dict.fromkeys(named_in(constant)))
    if len(_known_names) >= _MOST_KNOWN:
        _known_names.clear()
    _known_names[id(code)] = code, tuple(found)
    return tuple(found)


_OF_GLOBALS = frozenset(
    dis.opmap[name]
    for name in (
        "LOAD_NAME",
        "STORE_GLOBAL",
        "DELETE_GLOBAL",
        "LOAD_FROM_DICT_OR_GLOBALS",
    )
    if name in dis.opmap
)
_LOAD_GLOBAL, _EXTENDED_ARG = dis.opmap["LOAD_GLOBAL"], dis.opmap["EXTENDED_ARG"]
_known_globals: dict[int, tuple[CodeType, frozenset[str]]] = {}


def globals_in(code: CodeType) -> frozenset[str]:
    """Return the names of globals, not of attributes, in code and in functions in it."""
    known = _known_globals.get(id(code))
    if known is not None:
        return known[1]
    found, high, text = set[str](), 0, code.co_code
    for op, argument in zip(text[::2], text[1::2], strict=True):
        argument |= high
        high = argument << 8 if op == _EXTENDED_ARG else 0
        if op == _LOAD_GLOBAL:
            found.add(code.co_names[argument >> 1])  # its lowest bit asks for a NULL to call
        elif op in _OF_GLOBALS:
            found.add(code.co_names[argument])
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= globals_in(constant)
    if len(_known_globals) >= _MOST_KNOWN:
        _known_globals.clear()
    _known_globals[id(code)] = code, frozenset(found)
    return _known_globals[id(code)][1]


_known: dict[int, tuple[CodeType, frozenset[str]]] = {}


def stored_attributes(code: CodeType) -> frozenset[str]:
    """Return the names of attributes that code, or functions in it, sets or deletes."""
    known = _known.get(id(code))
    if known is not None:
        return known[1]
    found = {
        str(one.argval)
        for one in dis.get_instructions(code)
        if one.opname in ("STORE_ATTR", "DELETE_ATTR")
    }
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= stored_attributes(constant)
    _known[id(code)] = code, frozenset(found)
    return _known[id(code)][1]
