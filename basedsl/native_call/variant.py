"""The native call of a compilation: the table of its arguments, code and results.

A function gets a native entry on the second call of one of its variants; a `Compiled` gets its own.
Where some argument type has no unpacker, calls stay in Python and mean the same.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from basedsl.binding.argument_types import DeclaresArguments, argument_type
from basedsl.binding.arguments import (
    ArgumentType,
    NumericArgument,
    StaticArgument,
    TreeArgument,
)
from basedsl.binding.results import Results
from basedsl.binding.unpacker import Unpacker
from basedsl.errors import DSLError
from basedsl.logs import logger
from basedsl.native_call import unpackers
from basedsl.native_call.entry import (
    NOTHING,
    PYTHON,
    SINGLE,
    SLOT_BYTES,
    TUPLE,
    NativeEntryPoint,
    NativeResults,
    NativeVariant,
    tuple_unpacker,
)
from basedsl.native_call.runtime import runtime
from basedsl.native_call.unpackers import apart_unpacker
from basedsl.objectstage.entry_thunk import slot_format

_log = logger("native_call")
_NUMBERS: tuple[Any, ...] = (0, 0.0, False)
_WITHOUT_MEMORY = (NumericArgument, StaticArgument)


def native_variant(
    language: DeclaresArguments,
    parameters: Sequence[Any],
    arguments: Sequence[Any],
    values: Sequence[Any],
    code: NativeEntryPoint,
    results: Results,
    *,
    accepting: bool = False,
    apart: Sequence[tuple[int, int]] = (),
) -> NativeVariant | None:
    """Return the table for calls with these argument types; None where calls must stay in Python.

    `parameters`, `arguments` and `values` have one item for each parameter of the native call;
    `values` are those of one valid call, on which each unpacker is compared with `pack`. With
    `accepting` the table takes all values that the types' `accepts` takes. `apart` are stretches of
    memory (first address, end) that no array argument may share.
    """
    if runtime() is None:
        return None
    taken, slot = [], 0
    for parameter, argument, value in zip(parameters, arguments, values, strict=True):
        found = _unpacker(language, argument, parameter.annotation, parameter.name, accepting)
        if apart and found is not None and not isinstance(argument, _WITHOUT_MEMORY):
            is_array = type(value) is np.ndarray
            found = apart_unpacker(found, value.itemsize, apart) if is_array else None
        if found is None or not _agrees(found, argument, value):
            why = "of a type without native form" if found is None else "read by Python alone"
            _log.debug("calls stay in Python: '%s', %s, is %s", parameter.name, argument, why)
            return None
        taken.append((found, slot))
        slot += size_of(argument.storage)
    wrapped = native_results(results, slot)
    if slot + wrapped.size > SLOT_BYTES:
        return None
    return NativeVariant(taken, code, wrapped)


def size_of(formats: Sequence[str]) -> int:
    """The bytes of the slots of values with these `struct` codes."""
    return struct.calcsize(slot_format(formats))


def _unpacker(
    language: DeclaresArguments, argument: ArgumentType, annotation: Any, name: str, accepting: bool
) -> Unpacker | None:
    if isinstance(argument, NumericArgument):
        return _number(language, argument, annotation, name)
    if isinstance(argument, StaticArgument):
        return unpackers.static_unpacker(argument.value)
    if isinstance(argument, TreeArgument):
        return _tuple(language, argument, name, accepting)
    return argument.accepting_unpacker() if accepting else argument.unpacker()


def _number(
    language: DeclaresArguments, argument: NumericArgument, annotation: Any, name: str
) -> Unpacker | None:
    """Return an unpacker of the Python numbers that become this type under this annotation."""
    kinds = set()
    for sample in _NUMBERS:
        try:
            if argument_type(language, sample, annotation, name) == argument:
                kinds.add(type(sample))
        except DSLError:
            continue
    kind = argument.type
    if kind.is_float:
        return unpackers.float_unpacker(kind.width, or_int=int in kinds) if float in kinds else None
    if kind.width == 1:
        return unpackers.boolean_unpacker() if kinds == {bool} else None
    return unpackers.integer_unpacker(kind.width, kind.signed) if int in kinds else None


def _tuple(
    language: DeclaresArguments, argument: TreeArgument, name: str, accepting: bool
) -> Unpacker | None:
    node = argument.node
    if type(node.obj) is not tuple or any(child is not None for child in node.children):
        return None
    items, slot = [], 0
    for part in argument.parts:
        found = _unpacker(language, part, None, name, accepting)
        if found is None:
            return None
        items.append((found, slot))
        slot += size_of(part.storage)
    return tuple_unpacker(items)


def _agrees(unpacker: Unpacker, argument: Any, value: Any) -> bool:
    """Return True if the unpacker writes the same bytes for `value` as `argument.pack`."""
    format_ = slot_format(argument.storage)
    wanted = struct.pack(format_, *argument.pack(value))
    slots = ctypes.create_string_buffer(max(len(wanted), 1))
    data = (ctypes.c_int64 * max(len(unpacker.data), 1))(*unpacker.data)
    function = _UNPACK(unpacker.address)
    taken = function(value, ctypes.addressof(slots), ctypes.addressof(data))
    return bool(taken) and slots.raw[: len(wanted)] == wanted


_UNPACK = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p)


def native_results(results: Results, start: int) -> NativeResults:
    """The conversion of results whose slots begin `start` bytes behind the first argument's."""
    size = size_of(results.storage)
    formats = results.native_storage
    if formats is not None:
        slots = tuple((code, start + 8 * i) for i, code in enumerate(formats))
        if results.shape is None and results.places:
            return NativeResults(SINGLE, slots, start, size)
        if results.shape is None and results.leaves == [None]:
            return NativeResults(NOTHING, (), start, size)
        if results.is_flat_tuple:
            return NativeResults(TUPLE, slots, start, size)
    out, make = struct.Struct(slot_format(results.storage)), results.make
    return NativeResults(PYTHON, (), start, size, lambda raw: make(out.unpack(raw)))
