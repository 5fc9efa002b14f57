"""Invokers: callables on packed values that run the entry of native code."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from basedsl.binding.arguments import ArgumentType
from basedsl.binding.results import Results
from basedsl.errors import hide_internal_frames
from basedsl.native_call.entry import ALWAYS, NativeEntryPoint
from basedsl.objectstage import asserts, native
from basedsl.objectstage.entry_thunk import ENTRY_SUFFIX, slot_format


class Invoker:
    """A callable on packed values. `native` is the same code's entry point for native calls, None
    where calls need Python; an executor that wraps an invoker may pass on its entry point.
    """

    native: NativeEntryPoint | None = None

    def __call__(self, packed: Sequence[Any]) -> Any:
        raise NotImplementedError


class NativeInvoker(Invoker):
    """A callable on packed values that runs the entry of native code."""

    native: NativeEntryPoint

    def __init__(
        self, address: int, formats: Sequence[str], results: Results, native: NativeEntryPoint
    ) -> None:
        self.native = native
        entry: Any = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)
        into = struct.Struct(slot_format(formats))
        out = struct.Struct(slot_format(results.formats))
        size, at = into.size + out.size, into.size
        pack_into, unpack_from, make = into.pack_into, out.unpack_from, results.make
        buffer_of, failures = ctypes.create_string_buffer, native.failed
        on_failure = native.on_failure

        def invoke(packed: Sequence[Any]) -> Any:
            slots = buffer_of(size)
            pack_into(slots, 0, *packed)
            entry(slots)
            if on_failure is not None and failures.value:
                failure = on_failure()
                if failure is not None:
                    raise failure
            return make(unpack_from(slots, at))

        self._invoke = invoke

    def __call__(self, packed: Sequence[Any]) -> Any:
        return self._invoke(packed)


def native_invoker(
    object_code: bytes,
    symbol: str,
    arguments: Sequence[ArgumentType],
    results: Results,
    symbols: dict[str, int] | None = None,
    raise_failure: Callable[[], None] = asserts.raise_failed_assertion,
) -> NativeInvoker:
    """A Python callable on packed values that runs the entry of native code.

    `raise_failure` is called after code that can fail; it raises what went wrong in this thread.
    """
    code = native.load_object(object_code, symbols)
    address = code.address_of(symbol + ENTRY_SUFFIX)
    formats = [f for argument in arguments for f in argument.formats]

    def on_failure() -> BaseException | None:
        try:
            raise_failure()
        except Exception as error:
            return hide_internal_frames(error)
        return None

    described = NativeEntryPoint(address, keep=(code,))
    if asserts.can_fail(object_code):
        # Only the core's assertion callback increments FAILED_ASSERTIONS; for any other source of
        # failures the call must always look.
        own = raise_failure is asserts.raise_failed_assertion
        failed = asserts.FAILED_ASSERTIONS if own else ALWAYS
        described = replace(described, failed=failed, on_failure=on_failure)
    return NativeInvoker(address, formats, results, described)
