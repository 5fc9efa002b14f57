"""Calls that repeat another one at other addresses: for arrays of which all else is known to be as
in that call, so that nothing is looked at.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Any

from basedsl.binding.arguments import ArgumentType
from basedsl.binding.results import Results
from basedsl.binding.signature import NO_DEFAULT, Parameters
from basedsl.binding.unpacker import Unpacker
from basedsl.errors import DSLCallError
from basedsl.native_call.entry import SLOT_BYTES, NativeEntryPoint, NativeVariant, new_entry
from basedsl.native_call.runtime import runtime, unpacker
from basedsl.native_call.variant import native_results, size_of
from basedsl.objectstage.entry_thunk import slot_format


def repeated_call(
    arguments: Sequence[ArgumentType],
    packed: Sequence[Sequence[Any]],
    numbers: Sequence[int],
    code: NativeEntryPoint,
    results: Results,
) -> Callable[[tuple[int, ...]], Any] | None:
    """Return a native function of a tuple of integers that calls `code` with the C storage `packed`
    of `arguments`, but for the addresses in it, in their order, and then for the arguments at the
    places `numbers`, of 64 bits each. None where there are no native calls, and for arguments of a
    type whose calls cannot be repeated.
    """
    if runtime() is None:
        return None
    addresses: list[int] = []
    starts: list[int] = []
    at = 0
    for argument in arguments:
        if argument.address_places is None:
            return None
        starts.append(at)
        addresses += [at + size_of(argument.storage[:place]) for place in argument.address_places]
        at += size_of(argument.storage)
    changed = [*addresses, *(starts[i] for i in numbers)]
    wrapped = native_results(results, at)
    if at + wrapped.size > SLOT_BYTES:
        return None
    formats = [one for argument in arguments for one in argument.storage]
    flat = [one for values in packed for one in values]
    slots = ctypes.create_string_buffer(struct.pack(slot_format(formats), *flat), max(at, 1))
    data = (at, ctypes.addressof(slots), len(changed), *changed)
    variant = NativeVariant([(Unpacker(unpacker("repeated"), data, (slots,)), 0)], code, wrapped)

    def refuse(*_: Any) -> Any:
        raise DSLCallError(f"a repeated call takes a tuple of {len(changed)} addresses")

    never_traced = ctypes.c_int64(0)
    entry = new_entry(Parameters(("addresses",), (NO_DEFAULT,), 1), refuse, never_traced)
    if entry is None:
        return None
    entry.add(variant)
    made: Callable[[tuple[int, ...]], Any] = entry.call
    return made
