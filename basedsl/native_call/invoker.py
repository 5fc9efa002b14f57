"""Invokers: callables that pass packed arguments to native code and return the Python result."""

from __future__ import annotations

import ctypes
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from basedsl.binding.arguments import ArgumentType
from basedsl.binding.results import Results
from basedsl.errors import hide_internal_frames
from basedsl.native_call.entry import ALWAYS, NativeEntryPoint
from basedsl.objectstage import asserts, native
from basedsl.objectstage.entry_thunk import ENTRY_SUFFIX, slot_format


class Invoker(ABC):
    """A callable that takes packed arguments and returns the Python result. `native` is the entry
    point of the same code for native calls, None where calls need Python. An executor that wraps an
    invoker may offer the wrapped one's entry point.
    """

    native: NativeEntryPoint | None = None

    @abstractmethod
    def __call__(self, packed: Sequence[Any]) -> Any:
        """Run the code on the storage of its arguments, and return the Python result."""


class NativeInvoker(Invoker):
    """An invoker of an entry function in native code (`objectstage.entry_thunk`).

    `address` is where the entry is, `formats` are the `struct` codes of its arguments' storage, in
    order, `results` is the structure of what it returns, and `native` tells native calls the same.
    """

    native: NativeEntryPoint

    def __init__(
        self, address: int, formats: Sequence[str], results: Results, native: NativeEntryPoint
    ) -> None:
        self.native = native
        entry: Any = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)
        into = struct.Struct(slot_format(formats))
        out = struct.Struct(slot_format(results.storage))
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
    """Load `object_code` and return an invoker of the entry function of `symbol`.

    `arguments` are the types of its arguments, one for each parameter, and `results` is the
    structure of what it returns. `symbols` are the addresses of external symbols by name.
    `raise_failure` is called after a call of code that can fail: it raises the exception of this
    thread's call, if there was one.
    """
    code = native.load_object(object_code, symbols)
    address = code.address_of(symbol + ENTRY_SUFFIX)
    formats = [f for argument in arguments for f in argument.storage]

    def on_failure() -> BaseException | None:
        try:
            raise_failure()
        except Exception as error:  # the one that it raises is the answer
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
