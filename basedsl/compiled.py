"""Compiled functions: what a compilation leaves behind, and calling it."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from basedsl.binding.arguments import (
    ArgumentType,
    StaticArgument,
    describe,
    is_plainly_static,
)
from basedsl.binding.results import Results
from basedsl.errors import DSLCallError, hide_internal_frames, users_frames
from basedsl.native_call.entry import ALWAYS, NativeCode, NativeEntry, NativeVariant, new_entry
from basedsl.native_call.variant import native_variant
from basedsl.objectstage import Stages, asserts, native
from basedsl.objectstage.entry_thunk import SUFFIX, slot_format
from basedsl.staleness.environment import Environment
from basedsl.staleness.guards import Guards
from basedsl.tracing import RUNNING

if TYPE_CHECKING:
    from basedsl.function import DSLFunction


class Compiled:
    """A function compiled for one tuple of argument types.

    Calling it takes the run-time arguments only: Constexpr parameters are left out, parameters with
    defaults may be, and so may what is static by itself (None, a dtype). Arguments of another type
    than it was compiled for are an error. Globals and whatever else tracing read are as they were
    when it was compiled.

    `stages` has every stage's output (`stages.text("llvmir")`), `seconds` the time each took,
    `settings` the options it was compiled with.
    """

    __slots__ = ("__call__", "__dict__", "__weakref__")
    __call__: Callable[..., Any]

    def __init__(
        self,
        function: DSLFunction,
        arguments: Sequence[ArgumentType],
        results: Results,
        stages: Stages,
        invoke: Callable[[Sequence[Any]], Any],
        seconds: dict[str, float],
        guards: Guards,
        source: Callable[[], str],
        settings: Any,
    ) -> None:
        self.function = function
        self.arguments = tuple(arguments)
        self.results = results
        self.stages = stages
        self.seconds = seconds
        self.guards = guards
        self.settings = settings
        self._source = source
        self._invoke = invoke
        self._signature = function.signature
        self._parameters = self._signature.parameters
        self._runtime = [
            i
            for i, a in enumerate(self.arguments)
            if not (isinstance(a, StaticArgument) or getattr(a, "implicit", False))
        ]
        self._names = [self._parameters[i].name for i in self._runtime]
        # Static without being declared so: calls may pass these again.
        self._static = {
            i
            for i, a in enumerate(self.arguments)
            if isinstance(a, StaticArgument)
            and not (self._parameters[i].is_constexpr or self._parameters[i].name == "self")
        }
        self._native: NativeVariant | None = None
        self._entry: NativeEntry | None = None
        self._tried = self._tried_own = False
        self.__call__ = self._call

    @property
    def source(self) -> str:
        """The rewritten Python; "" without a pre-stage."""
        return self._source()

    def __copy__(self) -> Compiled:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Compiled:
        return self

    def __reduce__(self) -> Any:
        raise TypeError(
            f"{self} cannot be pickled: pickle the function, and compile it where it is needed"
        )

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

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        with users_frames():
            given = self._bind(args, kwargs)
            packed: list[Any] = []
            for i, argument in enumerate(self.arguments):
                if i in given:
                    argument = self._expect(i, given[i])
                packed += argument.pack(given.get(i))
            result = self._invoke(packed)
        if not self._tried_own:
            self._tried_own = True
            self._arm(given)
        return result

    def _expect(self, i: int, value: Any) -> ArgumentType:
        parameter, expected = self._parameters[i], self.arguments[i]
        found = self.function.dsl.argument(value, parameter.annotation, parameter.name)
        accepts = getattr(expected, "accepts", None)
        if found != expected and not (
            type(found) is type(expected) and accepts and accepts(value, parameter.name)
        ):
            raise DSLCallError(
                f"'{parameter.name}' was compiled as {expected}, got {found}"
                + ("" if str(found) != str(expected) else f" ({describe(value)})"),
                hint="pass an argument like the one it was compiled for, or compile again",
            )
        return expected

    def _arm(self, given: dict[int, Any]) -> None:
        """Let native code make calls like one with these values, by parameter, from now on."""
        if any(getattr(a, "implicit", False) for a in self.arguments):
            return
        places, values = list(given), list(given.values())
        parameters = self._signature.native(places)
        variant = None if parameters is None else self._make_native(places, values, True)
        if parameters is None or variant is None:
            return
        entry = new_entry(parameters, self._call, RUNNING)
        if entry is None:
            return
        entry.add(variant)
        self._entry = entry
        self.__call__ = entry.call

    def native_variant(self, values: Sequence[Any]) -> NativeVariant | None:
        """The native call with one value a parameter, statics included, of which `values` are an
        example; guarded as of now. None where calls stay in Python.
        """
        if not self._tried:
            self._tried = True
            self._native = self._make_native(range(len(self.arguments)), values, False)
        if self._native is not None:
            environment = Environment()
            rows, kept = self.guards.rows()
            self._native.guard([*environment.rows(), *rows], [environment, self.guards, kept])
        return self._native

    def _make_native(
        self, places: Sequence[int], values: Sequence[Any], accepting: bool
    ) -> NativeVariant | None:
        code = getattr(self._invoke, "native", None)
        if not isinstance(code, NativeCode):
            return None
        return native_variant(
            self.function.dsl,
            [self._parameters[i] for i in places],
            [self.arguments[i] for i in places],
            values,
            code,
            self.results,
            accepting=accepting,
        )

    def run(self, values: Sequence[Any]) -> Any:
        """Run on one value a parameter, statics included, already known to be of these types."""
        packed: list[Any] = []
        for argument, value in zip(self.arguments, values, strict=True):
            packed += argument.pack(value)
        return self._invoke(packed)

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[int, Any]:
        """The values of the call by the number of their parameter, in order."""
        given: dict[int, Any] = {}
        left, parameters = list(args), self._parameters
        places = sorted({*self._runtime, *self._static})
        every = len(left) == len(places)
        for i in places:
            parameter = parameters[i]
            if parameter.variadic == "*":
                given[i], left = tuple(left), []
            elif parameter.variadic:
                given[i], kwargs = kwargs, {}
            elif i in self._static and not (every or (left and is_plainly_static(left[0]))):
                if parameter.name in kwargs:
                    given[i] = kwargs.pop(parameter.name)
            elif left:
                given[i] = left.pop(0)
            elif parameter.name in kwargs:
                given[i] = kwargs.pop(parameter.name)
            elif parameter.has_default:
                given[i] = parameter.default
            else:
                raise DSLCallError(f"missing the argument '{parameter.name}'")
        if left:
            raise DSLCallError(
                f"this compiled function takes {len(self._runtime)} arguments "
                f"({', '.join(self._names)}), got {len(args)}",
                hint="Constexpr parameters are left out of the call",
            )
        if kwargs:
            raise DSLCallError(
                f"unexpected argument '{next(iter(kwargs))}'",
                hint=f"the run-time arguments are: {', '.join(self._names) or 'none'}",
            )
        return given


class NativeInvoker:
    """A callable on packed values that runs the entry of native code. `native` is what a native
    call needs instead; an executor that wraps this one may give it on as its own.
    """

    def __init__(
        self, address: int, formats: Sequence[str], results: Results, native: NativeCode
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
    code = native.load(object_code, symbols)
    address = code.address_of(symbol + SUFFIX)
    formats = [f for argument in arguments for f in argument.formats]

    def on_failure() -> BaseException | None:
        try:
            raise_failure()
        except Exception as error:
            return hide_internal_frames(error)
        return None

    described = NativeCode(address, keep=(code,))
    if asserts.can_fail(object_code):
        # Only of its own assertions is known that they count.
        own = raise_failure is asserts.raise_failed_assertion
        failed = asserts.FAILURES if own else ALWAYS
        described = replace(described, failed=failed, on_failure=on_failure)
    return NativeInvoker(address, formats, results, described)
