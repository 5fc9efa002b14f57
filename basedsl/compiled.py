"""Compiled functions: what a compilation leaves behind, and calling it."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from basedsl.binding.arguments import ArgumentType, StaticArgument, describe
from basedsl.errors import DSLCallError
from basedsl.guards import Guards
from basedsl.objectstage import Stages, asserts, native
from basedsl.objectstage.entry import SUFFIX, slot_format
from basedsl.results import Results

if TYPE_CHECKING:
    from basedsl.function import DSLFunction


class Compiled:
    """A function compiled for one tuple of argument types.

    Calling it takes the run-time arguments only: Constexpr parameters are left out, parameters with
    defaults may be. Arguments of another type than it was compiled for are an error.

    `stages` has every stage's output (`stages.text("llvmir")`), `seconds` the time each took,
    `source` the rewritten Python.
    """

    def __init__(
        self,
        function: DSLFunction,
        arguments: Sequence[ArgumentType],
        results: Results,
        stages: Stages,
        invoke: Callable[[Sequence[Any]], Any],
        seconds: dict[str, float],
        guards: Guards,
        source: str,
    ) -> None:
        self.function = function
        self.arguments = tuple(arguments)
        self.results = results
        self.stages = stages
        self.seconds = seconds
        self.guards = guards
        self.source = source
        self._invoke = invoke
        parameters = function.signature.parameters
        self._runtime = [
            i
            for i, (p, a) in enumerate(zip(parameters, self.arguments, strict=True))
            if not isinstance(a, StaticArgument)
        ]
        self._names = [parameters[i].name for i in self._runtime]

    def __repr__(self) -> str:
        kinds = ", ".join(
            f"{p.name}: {a}"
            for p, a in zip(self.function.signature.parameters, self.arguments, strict=True)
        )
        return f"<compiled {self.function.fn.__qualname__}({kinds})>"

    @property
    def __mlir__(self) -> str:
        """The IR that tracing made, in the DSL's own dialects."""
        return self.stages.text(self.stages.names[0])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        parameters = self.function.signature.parameters
        values = self._bind(args, kwargs)
        packed: list[Any] = []
        for i, value in zip(self._runtime, values, strict=True):
            expected = self.arguments[i]
            found = self.function.dsl.argument(value, parameters[i].annotation, parameters[i].name)
            if found != expected:
                raise DSLCallError(
                    f"'{parameters[i].name}' was compiled as {expected}, got {found}"
                    + ("" if str(found) != str(expected) else f" ({describe(value)})"),
                    hint="pass an argument like the one it was compiled for, or compile again",
                )
            packed += expected.pack(value)
        return self._invoke(packed)

    def run(self, values: Sequence[Any]) -> Any:
        """Run on one value a parameter, statics included, already known to be of these types."""
        packed: list[Any] = []
        for argument, value in zip(self.arguments, values, strict=True):
            packed += argument.pack(value)
        return self._invoke(packed)

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        if len(args) > len(self._runtime):
            raise DSLCallError(
                f"this compiled function takes {len(self._runtime)} arguments "
                f"({', '.join(self._names)}), got {len(args)}",
                hint="Constexpr parameters are left out of the call",
            )
        values = list(args)
        parameters = self.function.signature.parameters
        for i in self._runtime[len(args) :]:
            parameter = parameters[i]
            if parameter.name in kwargs:
                values.append(kwargs.pop(parameter.name))
            elif parameter.has_default:
                values.append(parameter.default)
            else:
                raise DSLCallError(f"missing the argument '{parameter.name}'")
        if kwargs:
            raise DSLCallError(
                f"unexpected argument '{next(iter(kwargs))}'",
                hint=f"the run-time arguments are: {', '.join(self._names) or 'none'}",
            )
        return values


def native_invoker(
    object_code: bytes,
    symbol: str,
    arguments: Sequence[ArgumentType],
    results: Results,
    symbols: dict[str, int] | None = None,
    raise_failure: Callable[[], None] = asserts.raise_failed_assertion,
) -> Callable[[Sequence[Any]], Any]:
    """A Python callable on packed values that runs the entry of native code.

    `raise_failure` is called after code that can fail; it raises what went wrong in this thread.
    """
    code = native.load(object_code, symbols)
    entry = code.function(symbol + SUFFIX, None, ctypes.c_void_p)
    into = struct.Struct(slot_format([f for argument in arguments for f in argument.formats]))
    out = struct.Struct(slot_format(results.formats))
    size = into.size + out.size
    pack_into, unpack_from, buffer_of = into.pack_into, out.unpack_from, ctypes.create_string_buffer
    at, make = into.size, results.make
    checked = asserts.can_fail(object_code)

    def invoke(packed: Sequence[Any]) -> Any:
        slots = buffer_of(size)
        pack_into(slots, 0, *packed)
        entry(slots)
        if checked:
            raise_failure()
        return make(unpack_from(slots, at))

    return invoke
