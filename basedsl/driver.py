"""The driver: the straight line from a call to its result.

    bind -> key -> memory -> disk -> rewrite -> trace -> compile -> load -> keep -> run

This module alone knows all stages. Each stage has its own folder or module; `stages` defines the
records passed from one to the next, and `compilation` has what surrounds them.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from typing import Any

from basedsl import logs
from basedsl.binding.argument_types import argument_type
from basedsl.binding.equality import check_equal
from basedsl.cache.disk import Disk, DiskEntry
from basedsl.compilation.call_guards import guards_and_effects, guards_of
from basedsl.compilation.call_pipeline import pipeline_of, run_call_pipeline
from basedsl.compilation.contexts import Contexts
from basedsl.compilation.cost import Clock, compilation_cost, gc_paused, preload_libraries
from basedsl.compilation.loader import load_built
from basedsl.compilation.report import prepare_reports, report, report_loaded
from basedsl.compilation.tracer import trace_call
from basedsl.compile_hooks import observers_of
from basedsl.compiled import Compiled
from basedsl.current_options import CurrentOptions
from basedsl.errors import DSLError, DSLRuntimeError
from basedsl.frame_stack import in_one_chunk
from basedsl.function import DSLFunction
from basedsl.language import Language
from basedsl.mlir import MLIRContext, preload
from basedsl.nvtx_ranges import nvtx_range
from basedsl.objectstage import native
from basedsl.plugin import plugin_manager
from basedsl.run_compiled import run_compiled
from basedsl.stages import BoundCall, Built, Rewritten
from basedsl.staleness.guards import Guards


class Driver:
    """Compiles and runs the calls of one language's functions."""

    def __init__(self, language: Language) -> None:
        self.language = language
        self.contexts = Contexts(language)
        self.disk = Disk(language)
        self.counts: Counter[str] = Counter()
        self._current_options = CurrentOptions(language)
        self.options_number = self._current_options.number

    def call(self, function: DSLFunction, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a @jit function from Python."""
        try:
            is_fresh = "no_cache" in kwargs and function.signature.pop_option("no_cache", kwargs)
            call = self.bind(function, args, kwargs, self.options)
            compiled, is_new = (self.compile(call), True) if is_fresh else self.variant(call)
            return run_compiled(compiled, call, is_new)
        except Exception as error:  # told, and raised again
            self.raised(function, error)
            raise

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
            with gc_paused(keep=not self.contexts):
                made = self._load_or_compile(call)
            return made if made.effects else variants.keep(call.key, made), True

    def _load_or_compile(self, call: BoundCall) -> Compiled:
        """Load the code from the disk cache if it is there, else compile it and store it there."""
        logs.configure_logs(call.settings)
        clock = Clock()
        with clock("key"):
            guards = guards_of(call)
            entry = self.disk.entry(call, guards)
            compiled = None if entry is None else self._from_disk(call, guards, entry)
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
            if entry is not None and alike and not compiled.results.returns_arguments:
                entry.write(call, compiled.results, compiled.stages)
        compiled.seconds = clock.seconds
        return compiled

    def _from_disk(self, call: BoundCall, guards: Guards, entry: DiskEntry) -> Compiled | None:
        """Load the code of a disk-cache entry; None if it is empty or cannot be loaded."""
        clock = Clock()
        # Both are made when they are asked for, and keep none of the call's arrays meanwhile.
        settings, described = call.settings, call._replace(values=[])
        # An entry that does not match its key (e.g. written by an older version) is ignored.
        with contextlib.suppress(DSLRuntimeError, ValueError, LookupError, AttributeError):
            with clock("read"):
                found = entry.read(
                    call,
                    lambda: pipeline_of(self.language, described),
                    lambda: self.contexts.of(settings),
                )
            if found is not None:
                results, stages = found
                built = Built(stages, results, guards, call.function.staged_source)
                return load_built(self.language, call, built, clock)
        return None

    @in_one_chunk
    def compile(self, call: BoundCall, before: Guards | None = None) -> Compiled:
        """Compile for a call without looking into memory or the disk cache. `before` are guards
        that were collected before tracing, if the caller has them.
        """
        language, settings = self.language, call.settings
        prepare_reports(language, settings)
        clock = Clock()
        is_first = not self.contexts
        with compilation_cost(language, is_first):
            before = before or guards_of(call)
            with clock("pre-stage"):
                rewritten = Rewritten.of(call.function)
            with clock("mlir"):
                if is_first and preload.is_busy():
                    native.begin_import()
                mlir = self.contexts.of(settings)
            with mlir.entered(), nvtx_range(settings.nvtx, f"compile {call.function.symbol}"):
                with clock("trace"):
                    traced = trace_call(language, mlir.bindings, call, rewritten, before)
                guards, changed = guards_and_effects(call, traced, before)
                stages = run_call_pipeline(language, call, traced, mlir)
            clock.seconds |= stages.seconds
            report(call, stages, clock)
            source, functions = rewritten.source, traced.functions
            built = Built(stages, traced.results, guards, source, changed, functions)
            compiled = load_built(language, call, built, clock)
        for observe in observers_of(language.name):
            observe(compiled)
        return compiled

    def raised(self, function: DSLFunction, error: Exception) -> None:
        """Tell plugins of an exception that leaves a compilation or a run of a function."""
        plugin_manager().raised(self.language.name, function.symbol, error)

    @property
    def mlir(self) -> MLIRContext:
        """The MLIR bindings and context of calls with the options that the environment sets."""
        return self.contexts.of(self.options)

    @property
    def options(self) -> Any:
        """The options that the environment variables set now."""
        return self._current_options.read()

    def start_preload(self) -> None:
        """Start to map MLIR's libraries if the disk cache is empty, so that a call must compile."""
        with contextlib.suppress(DSLError):  # the first call reports wrong options
            store = self.disk.store(self.options)
            if not self.contexts and (store is None or store.is_empty()):
                preload_libraries(self.language)
