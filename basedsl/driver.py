"""The driver: the straight line from a call to its result.

    bind -> key -> memory -> disk -> rewrite -> trace -> compile -> load -> keep -> run

This module alone knows all stages. Each stage has its own folder; `stages` defines the records
passed from one to the next; `compile_cost` has timing, pausing garbage collection and preloading.
"""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from basedsl import logs, objectstage
from basedsl.binding.argument_types import argument_type
from basedsl.binding.arguments import static_parts
from basedsl.binding.equality import check_equal
from basedsl.binding.results import Results
from basedsl.cache.disk import Disk, DiskEntry
from basedsl.compile_cost import (
    Clock,
    check_kept,
    compilation_cost,
    gc_paused,
    load_libraries,
    preload_libraries,
    printing,
    ranged,
    report,
    report_loaded,
    shows_stages,
    timed,
)
from basedsl.compile_hooks import observers_of
from basedsl.compiled import Compiled
from basedsl.errors import (
    DSLError,
    DSLRuntimeError,
    plugin_defect,
    plugin_of,
    with_article,
)
from basedsl.function import DSLFunction
from basedsl.language import Language
from basedsl.location import is_internal, span_of_function
from basedsl.mlir import Bindings, MLIRContext, load_bindings, uninterrupted
from basedsl.nvtx_ranges import nvtx_range
from basedsl.objectstage import native
from basedsl.objectstage.entry_thunk import AddEntry
from basedsl.options import Options
from basedsl.plugin import plugin_manager
from basedsl.stages import BoundCall, Built, Rewritten, Traced
from basedsl.staleness.effects import check_left_values, drop_new_dynamic_attributes, effects
from basedsl.staleness.environment import Environment
from basedsl.staleness.guards import Guards
from basedsl.staleness.overlap import Overlap, arrays_of, check_shared_objects
from basedsl.tracer import trace_call
from basedsl.warning import OptionWarning, warn

_warned: set[tuple[str, bool]] = set()


class Driver:
    """Compiles and runs the calls of one language's functions."""

    def __init__(self, language: Language) -> None:
        self.language = language
        self.disk = Disk(language)
        self.counts: Counter[str] = Counter()
        self._lock = threading.RLock()
        self._contexts: dict[str, MLIRContext] = {}
        self._options: tuple[Environment, Any] | None = None

    # A call --------------------------------------------------------------------------------------

    def call(self, function: DSLFunction, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a @jit function from Python."""
        is_fresh = _pop_call_option("no_cache", function, kwargs)
        try:
            return self._call(function, args, kwargs, is_fresh)
        except Exception as error:  # told, and raised again
            self.raised(function, error)
            raise

    def _call(
        self, function: DSLFunction, args: tuple[Any, ...], kwargs: dict[str, Any], is_fresh: bool
    ) -> Any:
        call = self.bind(function, args, kwargs, self.options)
        compiled, is_new = (self.compile(call), True) if is_fresh else self.variant(call)
        run = _run_once if compiled.effects else _run
        if compiled.guards.arrays and arrays_of(call.values):
            overlap = Overlap(compiled.guards, call.values)
            if not overlap.is_empty:
                result = run(compiled, call)
                overlap.check(function.fn)
                return result
        if not is_new and not compiled.effects:
            function.call_natively(compiled.native_variant(call.values))
        return run(compiled, call)

    def raised(self, function: DSLFunction, error: Exception) -> None:
        """Tell plugins of an exception that leaves a compilation or a run of a function."""
        plugin_manager().raised(self.language.name, function.symbol, error)

    def bind(
        self, function: DSLFunction, args: tuple[Any, ...], kwargs: dict[str, Any], settings: Any
    ) -> BoundCall:
        """Return a call with one value and one argument type for each parameter. Raises
        DSLCallError for arguments that do not fit the signature or that the language cannot pass.
        """
        values = function.signature.bind(args, kwargs)
        parameters, receiver = function.signature.parameters, function.receiver
        arguments = tuple(
            argument_type(
                self.language, value, parameter.annotation, parameter.name, parameter is receiver
            )
            for parameter, value in zip(parameters, values, strict=True)
        )
        return BoundCall(function, values, arguments, settings, self.language.target_key(settings))

    def variant(self, call: BoundCall) -> tuple[Compiled, bool]:
        """Return the code for a call, and True if it was not in memory with guards that hold. Code
        that changed something while it was traced is for this call only.
        """
        variants = call.function.variants
        with variants.lock:
            known = variants.find(call.key)
            if known is not None:
                check_equal(self.language, known.arguments, call.arguments)
                return known, False
            with gc_paused(keep=not self._contexts):
                made = self._load_or_compile(call)
            return made if made.effects else variants.keep(call.key, made), True

    def _load_or_compile(self, call: BoundCall) -> Compiled:
        """Load the code from the disk cache if it is there, else compile it and store it there."""
        logs.configure_logs(call.settings)
        clock = Clock()
        with clock("key"):
            guards = self._guards(call)
            observed = observers_of(self.language.name)
            entry = None if observed else self.disk.entry(call, guards)
            compiled = self._from_disk(call, guards, entry)
        if compiled is not None:
            self.counts["loaded"] += 1
            report_loaded(call, compiled)
            return compiled
        text = guards.portable_text
        compiled = self.compile(call, guards)
        self.counts["compiled"] += 1
        clock.seconds |= compiled.seconds
        with clock("keep"):
            # Tracing may have found more to guard than the key covers: then the key is not unique.
            alike = not compiled.effects and compiled.guards.portable_text == text
            alike = alike and not compiled.results.returns_arguments
            if entry is not None and alike and not shows_stages(call.settings):
                entry.write(call, compiled.results, compiled.stages)
        compiled.seconds = clock.seconds
        return compiled

    def _from_disk(
        self, call: BoundCall, guards: Guards, entry: DiskEntry | None
    ) -> Compiled | None:
        """Load the code of a disk-cache entry; None if there is none, or if it cannot be loaded."""
        if entry is None or shows_stages(call.settings):
            return None
        clock = Clock()
        try:
            with clock("read"):
                found = entry.read(call, self._pipeline(call), lambda: self.context(call.settings))
            if found is None:
                return None
            results, stages = found
            built = Built(stages, results, guards, call.function.staged_source)
            return self._load(call, built, clock)
        except (DSLRuntimeError, ValueError, LookupError, AttributeError):
            # The entry does not match its key (e.g. written by an older version): ignore it.
            return None

    # A compilation -------------------------------------------------------------------------------

    def compile(self, call: BoundCall, before: Guards | None = None) -> Compiled:
        """Compile for a call without looking into memory or the disk cache. `before` are guards
        that were collected before tracing, if the caller has them.
        """
        logs.configure_logs(call.settings)
        check_kept(self.language, call.settings)
        clock = Clock()
        is_first = not self._contexts
        with compilation_cost(self.language, is_first):
            before = before or self._guards(call)
            with clock("pre-stage"):
                rewritten = Rewritten.of(call.function)
            with clock("mlir"):
                if is_first:
                    native.begin_import()
                mlir = self.context(call.settings)
            with (
                mlir.entered(),
                nvtx_range(call.settings.nvtx, f"compile {call.function.symbol}"),
            ):
                with clock("trace"):
                    traced = trace_call(
                        self.language,
                        mlir.bindings,
                        call,
                        rewritten,
                        before,
                    )
                drop_new_dynamic_attributes(before)
                after = self._guards(call)
                changed = self._effects(call, traced, before, after)
                guards = self._guards(call, traced.functions) if traced.functions else after
                stages = self._run_pipeline(call, traced)
            clock.seconds |= stages.seconds
            report(call, stages, clock)
            built = Built(
                stages, traced.results, guards, rewritten.source, changed, traced.functions
            )
            compiled = self._load(call, built, clock)
        for observe in observers_of(self.language.name):
            observe(compiled)
        return compiled

    def _effects(
        self, call: BoundCall, traced: Traced, before: Guards, after: Guards
    ) -> tuple[str, ...]:
        """The names of what outlives the call and was changed by tracing; DSLError if a dynamic
        value is left in one.
        """
        for function in traced.functions:
            after.meets(function)
        check_shared_objects(call.function.fn, call.values, call.arguments, before)
        found = effects(before, after)
        traced_codes = [one.fn.__code__ for one in (call.function, *traced.functions)]
        check_left_values(found, before, traced_codes)
        return tuple(found)

    def _guards(self, call: BoundCall, traced: Sequence[DSLFunction] = ()) -> Guards:
        """Collect guards for the called function, the functions traced into it, and the static
        parts of the arguments. The library's own functions need none: they change with its version
        only.
        """
        users = [one for one in traced if not is_internal(one.fn.__code__.co_filename)]
        parts = [
            (parameter.name, part)
            for parameter, argument in zip(
                call.function.signature.parameters, call.arguments, strict=True
            )
            for part in static_parts(argument)
        ]
        return Guards.collect(
            [function.fn for function in (call.function, *users)],
            [part for _, part in parts],
            [name for name, _ in parts],
        )

    def _run_pipeline(self, call: BoundCall, traced: Traced) -> objectstage.Stages:
        """Run the object-stage on a traced module."""
        symbol = call.function.symbol
        observe = plugin_manager().stage_observer(self.language.name, symbol)
        if call.settings.print_ir_after_all:
            observe = printing(observe, symbol)
        stages = objectstage.run(
            self._pipeline(call, traced.results),
            traced.module,
            self.context(call.settings),
            options=call.settings,
            observe=observe,
            label=symbol,
            dsl=self.language.name,
            plugin=plugin_of(self.language),
        )
        traced.results.forget()
        return stages

    def _pipeline(self, call: BoundCall, results: Results | None = None) -> objectstage.Pipeline:
        """Return the language's pipeline; one that makes native code also adds the entry function
        that Python calls. `results` are those of the traced function, if it is to be compiled.
        """
        pipeline = self.language.pipeline(call.settings)
        if not isinstance(pipeline, objectstage.Pipeline):
            raise plugin_defect(
                self.language,
                f"pipeline() returned {with_article(type(pipeline))}, not a Pipeline",
                hint="return a basedsl.Pipeline, such as native_pipeline()",
            )
        pipeline = plugin_manager().pipeline(self.language.name, pipeline, call.settings)
        named = {step.name for step in pipeline}
        if "llvmir" in named and any(getattr(step.passes, "of_host", False) for step in pipeline):
            names = [parameter.name for parameter in call.function.signature.parameters]
            taken = tuple(zip(names, call.arguments, strict=True))
            add = AddEntry(call.function.symbol, taken, results, self.language)
            entry = objectstage.Step("entry", add)
            pipeline = pipeline.after("llvmir", entry)
        if call.settings.dryrun:
            pipeline = _kept_part(pipeline, call.settings.keep)
        return pipeline.one_step_each_pass() if call.settings.pass_stages else pipeline

    def _load(self, call: BoundCall, built: Built, clock: Clock) -> Compiled:
        """Load the built code into this process and wrap it as a `Compiled`."""
        language, settings = self.language, call.settings
        if settings.dryrun:
            return language.compiled_class(call, built, _do_nothing, clock.seconds)
        with clock("load"), uninterrupted():
            load_libraries(settings)
            try:
                invoke = language.executor(
                    built.stages, call.function.symbol, call.arguments, built.results, settings
                )
            except DSLError:
                raise
            except Exception as error:  # a plugin's code
                raise plugin_defect(
                    language, f"executor() broke: {type(error).__name__}: {error}"
                ) from error
        if not callable(invoke):
            raise plugin_defect(
                language,
                f"executor() returned {with_article(type(invoke))}, which is not callable",
                hint="return a function of the packed arguments",
            )
        if settings.nvtx:
            invoke = ranged(invoke, f"run {call.function.symbol}")
        if settings.time_stages:
            invoke = timed(invoke, self.language, call)
        compiled = language.compiled_class(call, built, invoke, clock.seconds)
        plugin_manager().compiled(language.name, call.function.symbol, compiled)
        return compiled

    # What all calls share ------------------------------------------------------------------------

    @property
    def mlir(self) -> MLIRContext:
        """The MLIR bindings and context of calls with the options that the environment sets."""
        return self.context(self.options)

    def context(self, settings: Any) -> MLIRContext:
        """Return the MLIR bindings that `settings` choose, where the language does not, and the
        one context that this language has in them. They are loaded at the first use.
        """
        language = self.language
        package = language.bindings_package or settings.mlir
        found = self._contexts.get(package)
        if found is None:
            with self._lock:
                found = self._contexts.get(package)
                if found is None:
                    found = self._contexts[package] = MLIRContext(
                        load_bindings(package or None, language.dialects),
                        self._load_dialects,
                        allow_unregistered_dialects=language.allow_unregistered_dialects,
                    )
        return found

    def _load_dialects(self, bindings: Bindings) -> None:
        self.language.load_dialects(bindings)
        plugin_manager().load_dialects(self.language.name, bindings)

    @property
    def options_class(self) -> type[Options]:
        """The record of options: the language's, with those that plugins add."""
        language = self.language
        return plugin_manager().options_class(language.name, language.options_class)

    @property
    def options(self) -> Any:
        """The options that the environment variables set now."""
        known = self._options
        if known is None or not known[0].holds():
            environment = Environment()
            record = self.options_class
            known = self._options = environment, record.from_environment()
            self._warn_of_unknown(record, known[1])
        return known[1]

    def _warn_of_unknown(self, record: type[Options], options: Options) -> None:
        """Warn of variables with the DSL's prefix that nothing reads, once for each."""
        for name, near in record.unknown_variables().items():
            if (name, options.warnings_as_errors) not in _warned:
                _warned.add((name, options.warnings_as_errors))
                hint = f"did you mean {near}?" if near else "`basedsl options` lists what there is"
                message = f"nothing reads the environment variable {name}"
                warn(options, message, OptionWarning, hint=hint)

    def start_preload(self) -> None:
        """Start to map MLIR's libraries if the disk cache is empty, so that a call must compile."""
        with contextlib.suppress(DSLError):  # the first call reports wrong options
            store = self.disk.store(self.options)
            if not self._contexts and (store is None or store.is_empty()):
                preload_libraries(self.language)


def _run(compiled: Compiled, call: BoundCall) -> Any:
    return compiled.run(call.values)


def _do_nothing(packed: Sequence[Any]) -> None:
    """Stand for code that a dry run has not compiled."""


def _kept_part(pipeline: objectstage.Pipeline, keep: Sequence[str]) -> objectstage.Pipeline:
    """Return the steps of a pipeline that make what a dry run is to keep."""
    if "all" in keep:
        return pipeline
    names = [step.name for step in pipeline]
    last = max((at for at, name in enumerate(names) if name in keep), default=-1)
    return replace(pipeline, steps=pipeline.steps[: last + 1])


def _run_once(compiled: Compiled, call: BoundCall) -> Any:
    """Run code that changed something while it was traced. An exception of the run may come before
    the change in Python: then nothing is certain.
    """
    try:
        return compiled.run(call.values)
    except Exception as error:  # whatever the run raises
        function = call.function
        changed = [path for path in compiled.effects if path not in compiled.guards.volatile]
        if not changed:
            raise
        raised = type(error).__name__.removeprefix("DSL")
        raise DSLError(
            f"'{function.fn.__qualname__}' changes '{changed[0]}' while compiling, then "
            f"raises {raised}",
            span_of_function(function.fn),
            notes=((f"the exception: {error}", None),),
            hint="return what changes, and change it where the function is called",
        ) from error


def _pop_call_option(option: str, function: DSLFunction, kwargs: dict[str, Any]) -> bool:
    """Remove an option of the call from its keyword arguments and return it as a bool; False if a
    parameter of the function has that name.
    """
    if option not in kwargs or any(p.name == option for p in function.signature.parameters):
        return False
    return bool(kwargs.pop(option))
