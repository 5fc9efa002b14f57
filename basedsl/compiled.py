"""Compiled functions: the code of one compilation, its stages, and calling it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from basedsl.binding.argument_types import argument_type
from basedsl.binding.arguments import (
    ArgumentType,
    ReceiverArgument,
    StaticArgument,
    describe,
    is_plainly_static,
)
from basedsl.errors import DSLCallError, DSLRuntimeError, plugin_defect, users_frames
from basedsl.line_maps import Lined, joined, of_mlir
from basedsl.native_call.conditions import Row
from basedsl.native_call.entry import NativeEntry, NativeVariant, new_entry
from basedsl.native_call.invoker import Invoker
from basedsl.native_call.repeated import repeated_call
from basedsl.native_call.variant import native_variant
from basedsl.objectstage import native, read_object_file
from basedsl.resources import HostResources, Resources, details, escape_html
from basedsl.slips import closest_name
from basedsl.stages import BoundCall, Built
from basedsl.staleness.environment import Environment
from basedsl.staleness.overlap import arrays_of, captured_stretches
from basedsl.tracing import RUNNING

# Stages of bytes that have no text.
_NOT_IN_NOTEBOOKS = ("object", "cubin", "launches", "kernels", "programs")


class Compiled:
    """A function compiled for one tuple of argument types.

    A call passes the run-time arguments only: Constexpr parameters are left out; parameters with
    defaults and arguments that are static without an annotation (None, a dtype) may be left out. It
    raises DSLCallError for an argument of another type than the code was compiled for. Globals and
    all else that tracing read keep the values that they had when it was compiled; what tracing
    changed, it changed then.

    It is made of the `call` that was compiled for, of what was `built`, of `invoke`, which runs the
    code on the C storage of the run-time arguments and returns the Python result, and of `seconds`.

    `stages` has every stage's output (`stages.text("llvmir")`), `seconds` the wall-clock time of
    each stage in seconds, `settings` the record of options, `arguments` the argument types,
    `functions` the function and those that tracing met in it.
    """

    __slots__ = ("__call__", "__dict__", "__weakref__")
    __call__: Callable[..., Any]

    def __init__(
        self,
        call: BoundCall,
        built: Built,
        invoke: Callable[[Sequence[Any]], Any],
        seconds: dict[str, float],
    ) -> None:
        self.function = call.function
        self.arguments = call.arguments
        self.settings = call.settings
        self.results = built.results
        self.stages = built.stages
        self.guards = built.guards
        self.effects = built.effects
        self.functions = (call.function, *(f for f in built.functions if f is not call.function))
        self.seconds = seconds
        self._source = built.source
        self._invoke = invoke
        self._signature = call.function.signature
        self._parameters = self._signature.parameters
        self._runtime = [
            i
            for i, a in enumerate(self.arguments)
            if not (isinstance(a, StaticArgument) or a.implicit)
        ]
        self._names = [self._parameters[i].name for i in self._runtime]
        # Static without being declared so: calls may pass these again.
        self._static = {
            i
            for i, a in enumerate(self.arguments)
            if isinstance(a, StaticArgument)
            and not (self._parameters[i].is_constexpr or isinstance(a, ReceiverArgument))
        }
        self._native: NativeVariant | None = None
        self._entry: NativeEntry | None = None
        self._memory: list[Row] = []  # that of the captured arrays has not moved
        self._tried = self._tried_own = False
        self.__call__ = self._call

    @property
    def source(self) -> str:
        """The rewritten Python text; "" with preprocess=False."""
        return self._source()

    def __copy__(self) -> Compiled:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Compiled:
        return self

    def __reduce__(self) -> Any:
        raise TypeError(
            f"{self} cannot be pickled: pickle the function, and compile it where it is needed"
        )

    def __str__(self) -> str:
        return "\n".join(filter(None, (repr(self), str(self.resources))))

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the resources, and every stage to open."""
        title = f"<p><code>{escape_html(repr(self))}</code></p>"
        shown = [name for name in self.views() if name not in _NOT_IN_NOTEBOOKS]
        stages = "".join(details(name, self.view(name)) for name in shown)
        return f"{title}{self.resources.to_html()}{stages}"

    def __repr__(self) -> str:
        kinds = ", ".join(
            f"{p.name}: {a}"
            for p, a in zip(self.function.signature.parameters, self.arguments, strict=True)
        )
        return f"<compiled {self.function.fn.__qualname__}({kinds})>"

    def views(self) -> tuple[str, ...]:
        """Return the names of the texts that `view` gives: "python", "source", every stage, and
        "assembly", the host's machine code, where there is any.
        """
        host = ("assembly",) if "optimised" in self.stages else ()
        return ("python", "source", *self.stages.names, *host)

    def view(self, name: str, *, locations: bool = False) -> str:
        """Return a text about this compilation: "python", the function as written; "source", as
        rewritten; or the output of a stage, with Python lines in MLIR if `locations`.

        Raises DSLRuntimeError, with the nearest name, for one that there is not.
        """
        if name == "python":
            return "\n\n".join(one.written_source().rstrip() for one in self.functions) + "\n"
        if name == "source":
            return "\n\n".join(filter(None, (one.staged_source() for one in self.functions))) + "\n"
        if name in self.stages:
            return self.stages.text(name, locations=locations)
        if name == "assembly" and "optimised" in self.stages:
            target = native.NativeTarget(self.settings.opt_level)
            return native.assembly(self.stages.binary("optimised"), target)
        known = self.views()
        near = closest_name(name, known)
        raise DSLRuntimeError(
            f"{self.function!r} has no stage {name!r} here; there is {', '.join(known)}",
            hint=f"did you mean {near}?" if near else self.hint_for_stage(name),
        )

    def lined_view(self, name: str) -> Lined:
        """Return the text that `view` gives by this `name`, without its locations, and the Python
        lines that each of its lines comes from. Raises as `view` does.
        """
        if name == "python":
            return joined([one.lined_source() for one in self.functions])
        if name == "source":
            return joined([one.lined_staged_source() for one in self.functions if one.preprocess])
        if name in self.stages and self.stages[name].kind == "mlir":
            return of_mlir(self.view(name, locations=True))
        return Lined.unknown(self.view(name))

    def export_to_c(
        self,
        file_path: str | Path,
        file_name: str | None = None,
        function_prefix: str | None = None,
        *,
        target: native.NativeTarget | None = None,
    ) -> tuple[Path, Path]:
        """Write an object file and a C header, by which C programs call this function; return
        their paths.

        `file_path` is a folder and `file_name` the name of both files without suffix; without
        `file_name`, `file_path` is the path of the object file. The C names begin with
        `function_prefix`, by default the file's name. `target` is the machine, by default any of
        this architecture. `DSL.load_module` loads the file into Python.

        Raises DSLCallError for parameters or results that have no C type, DSLRuntimeError for a
        function without native code.
        """
        from basedsl.export import export_to_c

        language = self.function.language
        with users_frames():
            return export_to_c(language.export, self, file_path, file_name, function_prefix, target)

    def instruction_histogram(self) -> Counter[str]:
        """Return how often each instruction occurs in the machine code, most frequent first: of the
        kernels where the DSL has them, else of the host's code.
        """
        text = self.view("assembly")
        found = re.findall(r"^\t([a-z][\w.]*)(?:\s|$)", text, re.MULTILINE)
        return Counter(dict(Counter(found).most_common()))

    @property
    def resources(self) -> Resources[Any]:
        """The resources that the code takes, by the name of the function: records that
        `print(compiled)` shows.
        """
        if "object" not in self.stages:
            return Resources({})
        file = read_object_file(self.stages.binary("object"))
        size = 0 if file is None else file.code_size
        return Resources({self.function.plain_symbol: HostResources(size)})

    def hint_for_stage(self, name: str) -> str | None:
        """Return what to do to get the stage `name`, which other targets or options have; None for
        one that is not known. By default None.
        """
        return None

    @property
    def ir_module(self) -> Any:
        """The module that tracing built, an `ir.Module` of the DSL's bindings, parsed anew."""
        return self.stages[self.stages.names[0]].module()

    @property
    def lowered_module(self) -> Any:
        """The module as the last step left it that kept functions in MLIR, parsed anew."""
        names = [name for name in self.stages.names if self.stages[name].kind == "mlir"]
        return self.stages[names[-1]].module()

    def get_constexpr_args(self) -> list[dict[str, Any]]:
        """Return the parameters that are part of the code and left out of calls: dicts of
        "argument_index", "argument_name" and "value".
        """
        return [
            {"argument_index": i, "argument_name": self._parameters[i].name, "value": a.value}
            for i, a in enumerate(self.arguments)
            if isinstance(a, StaticArgument)
        ]

    @property
    def __mlir__(self) -> str:
        """The text of the IR that tracing made, in the DSL's own dialects."""
        return self.stages.text(self.stages.names[0])

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        with users_frames():
            given = self._bind(args, kwargs)
            packed: list[Any] = []
            for i, argument in enumerate(self.arguments):
                if i in given:
                    argument = self._expect(i, given[i])
                packed += self._pack(i, argument, given.get(i))
            result = self._invoke(packed)
            if self.results.returns_arguments:
                every = [given.get(i) for i in range(len(self.arguments))]
                result = self.results.settle(result, every)
        if not self._tried_own:
            self._tried_own = True
            self._arm(given)
        return result

    def _expect(self, i: int, value: Any) -> ArgumentType:
        parameter, expected = self._parameters[i], self.arguments[i]
        language = self.function.language
        found = argument_type(language, value, parameter.annotation, parameter.name)
        if found != expected and not (
            type(found) is type(expected) and expected.accepts(value, parameter.name)
        ):
            raise DSLCallError(
                f"'{parameter.name}' was compiled as {expected}, got {found}"
                + ("" if str(found) != str(expected) else f" ({describe(value)})"),
                hint="pass an argument like the one it was compiled for, or compile again",
            )
        return expected

    def _arm(self, given: dict[int, Any]) -> None:
        """From now on, let native code make the calls that pass the same parameters as `given`, the
        values of one call by the index of their parameter.
        """
        if any(a.implicit for a in self.arguments):
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
        """The table for calling this code natively, one value per parameter (static ones included).
        `values` are one valid call, used to check the unpackers. Guards are refreshed to the
        current state. None if some argument type has no native unpacker, or a parameter is
        variadic.
        """
        if not self._tried:
            self._tried = True
            if self._signature.native() is not None:
                self._native = self._make_native(range(len(self.arguments)), values, False)
        if self._native is not None:
            environment = Environment()
            rows, kept = self.guards.native_conditions()
            self._native.guard(
                [*environment.native_conditions(), *self._memory, *rows],
                [environment, self.guards, kept],
            )
        return self._native

    def _make_native(
        self, places: Sequence[int], values: Sequence[Any], accepting: bool
    ) -> NativeVariant | None:
        code = self._invoke.native if isinstance(self._invoke, Invoker) else None
        if code is None or self.results.returns_arguments:
            return None
        apart: list[tuple[int, int]] = []
        if not accepting and self.guards.arrays and arrays_of(values):
            captured = captured_stretches(self.guards)
            if captured is None:
                return None
            apart, self._memory = captured
        return native_variant(
            self.function.language,
            [self._parameters[i] for i in places],
            [self.arguments[i] for i in places],
            values,
            code,
            self.results,
            accepting=accepting,
            apart=apart,
        )

    def repeated(
        self, values: Sequence[Any], numbers: Sequence[str] = ()
    ) -> Callable[[tuple[int, ...]], Any] | None:
        """Return a native function that repeats a call with `values`, one for each parameter, at
        other addresses: it gets a tuple of these, one for each array of the arguments in their
        order, those in tuples too, and then an integer for each parameter of 64 bits that `numbers`
        names. It looks at no array, so the caller promises that all else is as in that call, and
        keeps the arrays alive. None where calls need Python.
        """
        code = self._invoke.native if isinstance(self._invoke, Invoker) else None
        if code is None or self.results.returns_arguments or self.effects or self.guards.arrays:
            return None
        places = {parameter.name: i for i, parameter in enumerate(self._parameters)}
        pairs = zip(self.arguments, values, strict=True)
        packed = [self._pack(i, argument, value) for i, (argument, value) in enumerate(pairs)]
        wanted = [places[name] for name in numbers]
        return repeated_call(self.arguments, packed, wanted, code, self.results)

    def run(self, values: Sequence[Any]) -> Any:
        """Run on `values`, one for each parameter, static ones included. The types are not checked.
        Returns the result.
        """
        packed: list[Any] = []
        for i, (argument, value) in enumerate(zip(self.arguments, values, strict=True)):
            packed += self._pack(i, argument, value)
        return self.results.settle(self._invoke(packed), values)

    def _pack(self, i: int, argument: ArgumentType, value: Any) -> tuple[Any, ...]:
        """Return the C storage of an argument; an error if its type packs another number of items
        than it declares, which would move those of the arguments behind it.
        """
        packed = argument.pack(value)
        wanted = len(argument.storage)
        if len(packed) != wanted:
            raise plugin_defect(
                self.function.language,
                f"{type(argument).__name__}.pack returned {len(packed)} items for '"
                f"{self._parameters[i].name}', whose storage has {wanted}",
                hint=f"return one item for each of {argument.storage}",
            )
        return packed

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[int, Any]:
        """Return the values of a call by the index of their parameter, in order. Raises
        DSLCallError for missing, surplus and unknown arguments.
        """
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
                raise DSLCallError(
                    f"missing the argument '{parameter.name}'",
                    hint=f"it takes ({', '.join(self._names)}), as the call that compiled it",
                )
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
