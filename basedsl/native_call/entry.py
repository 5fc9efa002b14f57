"""Native entries: the tables from which `call.c` runs a function without Python.

`NativeVariant` describes one compilation: guards, how each argument is unpacked, the code, how
results are wrapped. `NativeEntry` is a function's list of them, and the built-in function that
Python calls. Whatever the tables point to stays alive as long as the entry: a call may be running.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from basedsl.binding.signature import NO_DEFAULT, Parameters
from basedsl.binding.unpacker import Unpacker
from basedsl.native_call.conditions import Row
from basedsl.native_call.runtime import Runtime, runtime, unpacker

MOST_VARIANTS, MOST_PARAMETERS, SLOT_BYTES = 8, 32, 1024
NOTHING, SINGLE, TUPLE, PYTHON = range(4)

# A result's `struct` code -> its kind in call.c; "?" stands for a boolean.
RESULT_KINDS = {code: kind for kind, code in enumerate("?bhiqBHIQfd")}

NO_FAILURE = ctypes.c_int64(0)
ALWAYS = ctypes.c_int64(1)


@dataclass(frozen=True)
class NativeEntryPoint:
    """The C function of compiled code: `address` of a `void (*)(void *slots)`.

    `failed` is a counter that is not zero when a call may have failed; then `on_failure()` returns
    the exception, or None if another thread's call failed. The call releases the GIL if
    `releases_gil`. The objects in `keep` live as long as the entry point.
    """

    address: int
    failed: ctypes.c_int64 = field(default=NO_FAILURE)
    on_failure: Callable[[], BaseException | None] | None = None
    releases_gil: bool = True
    keep: tuple[Any, ...] = ()


@dataclass(frozen=True)
class NativeResults:
    """The conversion of C results to Python: `shape` is NOTHING (None), SINGLE, TUPLE or PYTHON.

    `slots` has the `struct` character ("?" for booleans) and the byte offset of each leaf. With
    PYTHON, `make(raw)` gets the `size` bytes from offset `start` and returns the result.
    """

    shape: int
    slots: tuple[tuple[str, int], ...]
    start: int
    size: int
    make: Callable[[bytes], Any] | None = None


class NativeVariant:
    """The table by which `call.c` calls one compilation: guards, arguments, code, results."""

    def __init__(
        self,
        arguments: Sequence[tuple[Unpacker, int]],
        code: NativeEntryPoint,
        results: NativeResults,
    ) -> None:
        self._keep: list[Any] = [code, results]
        self._guards: Any = None
        self._guarded: Sequence[Any] = ()
        triples: list[int] = []
        for one, slot in arguments:
            triples += (one.address, self._words(one.data), slot)
            self._keep.append(one)
        kinds: list[int] = []
        for letter, slot in results.slots:
            kinds += (RESULT_KINDS.get(letter, 0), slot)
        self.table = (ctypes.c_int64 * 13)(
            0,
            0,
            self._words(triples),
            code.address,
            results.shape,
            len(results.slots),
            self._words(kinds),
            results.start,
            results.size,
            _pointer(results.make),
            ctypes.addressof(code.failed),
            _pointer(code.on_failure),
            int(code.releases_gil),
        )

    def guard(self, rows: Sequence[Row], keep: Sequence[Any]) -> None:
        """Check these conditions in each call. `keep` are the values whose addresses they compare:
        none may be freed and its address taken by another while they are compared.
        """
        previous, self._guarded = self._guarded, [keep, self._guarded]
        self._set_guards(rows)
        self._guarded = keep
        del previous

    def _set_guards(self, rows: Sequence[Row]) -> None:
        words = [_signed(word) for row in rows for word in row]
        if self._guards is not None and len(self._guards) == len(words):
            self._guards[:] = words
            return
        self.table[0] = 0
        self._guards = (ctypes.c_int64 * max(len(words), 1))(*words)
        self._keep.append(self._guards)
        self.table[1] = ctypes.addressof(self._guards)
        self.table[0] = len(rows)

    def _words(self, values: Sequence[int]) -> int:
        if not values:
            return 0
        made = (ctypes.c_int64 * len(values))(*(_signed(value) for value in values))
        self._keep.append(made)
        return ctypes.addressof(made)


_VARIANTS_AT = 7


class NativeEntry:
    """A function's variants, and `call`, the built-in function that tries them.

    `fallback` gets every call that none takes. `tracing` is a counter: while it is not zero, all
    calls go to `fallback`.
    """

    def __init__(
        self,
        loaded: Runtime,
        parameters: Parameters,
        fallback: Callable[..., Any],
        tracing: ctypes.c_int64,
    ) -> None:
        count = len(parameters.names)
        names, defaults = (ctypes.c_int64 * (count + 1))(), (ctypes.c_int64 * (count + 1))()
        for i, (name, default) in enumerate(
            zip(parameters.names, parameters.defaults, strict=True)
        ):
            names[i], defaults[i] = _pointer(name), 0 if default is NO_DEFAULT else id(default)
        self._table = (ctypes.c_int64 * (_VARIANTS_AT + MOST_VARIANTS))(
            count,
            parameters.positional,
            ctypes.addressof(names),
            ctypes.addressof(defaults),
            ctypes.addressof(tracing),
            id(fallback),
        )
        self._keep = [fallback, tracing, parameters, names, defaults]
        self._all: list[NativeVariant] = []
        self.variants: list[NativeVariant] = []
        self.call = loaded.callable(ctypes.addressof(self._table), self)

    def add(self, variant: NativeVariant) -> None:
        """Try `variant` first from now on."""
        self._all.append(variant)
        self.variants = [variant, *self.variants][:MOST_VARIANTS]
        self._table[_VARIANTS_AT - 1] = 0
        for i, one in enumerate(self.variants):
            self._table[_VARIANTS_AT + i] = ctypes.addressof(one.table)
        self._table[_VARIANTS_AT - 1] = len(self.variants)


def new_entry(
    parameters: Parameters, fallback: Callable[..., Any], tracing: ctypes.c_int64
) -> NativeEntry | None:
    """Return an entry for a function of these parameters; None where native calls do not work."""
    loaded = runtime() if len(parameters.names) <= MOST_PARAMETERS else None
    return None if loaded is None else NativeEntry(loaded, parameters, fallback, tracing)


def tuple_unpacker(items: Sequence[tuple[Unpacker, int]]) -> Unpacker:
    """Return the unpacker of a `tuple` (no subclass) of as many items; each has an unpacker and the
    byte offset of its slots.
    """
    data, keep = [len(items)], []
    for one, slot in items:
        words = (ctypes.c_int64 * max(len(one.data), 1))(*map(_signed, one.data))
        data += (one.address, ctypes.addressof(words), slot)
        keep += [words, one]
    return Unpacker(unpacker("tuple"), tuple(data), tuple(keep))


def _pointer(value: Any) -> int:
    return 0 if value is None else _signed(id(value))


def _signed(value: int) -> int:
    return value - 2**64 if value >= 2**63 else value
