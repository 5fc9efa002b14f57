"""A DSL: what a plugin subclasses, and the straight line from a call to its result.

    arguments -> key -> cache, or: pre-stage -> meta-stage -> object-stage -> Compiled -> result

`DSL` is the only place that knows all stages. A plugin gives its types, its emitter, its pipeline
and its own argument kinds; everything else is here.
"""

from __future__ import annotations

import contextlib
import gc
import inspect
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from logging import INFO
from pathlib import Path
from time import perf_counter
from typing import Any, ClassVar

from basedsl import cache, logs, objectstage
from basedsl.binding import (
    NumericArgument,
    TreeArgument,
    static_parts,
)
from basedsl.binding.argument_types import argument_type
from basedsl.binding.arguments import (
    ArgumentType,
)
from basedsl.binding.results import Results
from basedsl.cache import entry
from basedsl.compiled import Compiled
from basedsl.errors import (
    DSLCallError,
    DSLError,
    DSLRuntimeError,
    endless_recursion,
    placed,
    users_frames,
)
from basedsl.function import BoundFunction, DSLFunction
from basedsl.location import is_internal, span_of_function
from basedsl.mlir import (
    Bindings,
    MLIRContext,
    libraries,
    load_bindings,
    new_function,
    preload,
    uninterrupted,
)
from basedsl.native_call.invoker import native_invoker
from basedsl.numeric import Float64, Int64
from basedsl.objectstage import native
from basedsl.objectstage.entry_thunk import AddEntry
from basedsl.options import Options
from basedsl.plugin import plugin_manager
from basedsl.pytree import Node, flatten, same_shape
from basedsl.recursion_limit import deeper
from basedsl.staleness.environment import Environment
from basedsl.staleness.guards import Guards
from basedsl.tracing import Emitter, Trace, activate

_log = logs.logger("compile")

# How many compilations for the same argument types are kept, of which at most one holds.
MOST_KEPT = 8


class DSL:
    """Subclass this to make a DSL; one instance is the DSL.

    `default_int` and `default_float` are what a Python int and float become; `dialects` are those
    the MLIR bindings must have; `options_class` is its record of options. `kept_on_disk` says that
    the outputs of the pipeline's steps are all that `executor` needs, in another process too.
    `plain_errors` are raised by parts of the DSL that work without compiling, and know no place in
    a program: raised while tracing, they become DSLErrors as well.
    """

    name: ClassVar[str]
    default_int: ClassVar[Any] = Int64
    default_float: ClassVar[Any] = Float64
    dialects: ClassVar[tuple[str, ...]] = ("func", "arith", "scf", "cf", "math", "llvm")
    options_class: ClassVar[type[Options]] = Options
    bindings_package: ClassVar[str | None] = None
    kept_on_disk: ClassVar[bool] = True
    plain_errors: ClassVar[tuple[type[Exception], ...]] = ()
    compiled_class: ClassVar[type[Compiled]] = Compiled

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._mlir: MLIRContext | None = None
        self._options: tuple[Environment, Any] | None = None
        self._has_decorated = False
        #: How many functions were "compiled" here, and "loaded" from the disk.
        self.counts: Counter[str] = Counter()

    # What a plugin provides --------------------------------------------------------------------

    def load_dialects(self, bindings: Bindings) -> None:
        """Load dialects that the DSL defines from Python into the current context."""

    def emitter(self, trace: Trace) -> Emitter:
        """How control flow becomes IR; the core's over `scf` unless a DSL brings its own."""
        from basedsl.metastage.scf_emitter import ScfEmitter

        return ScfEmitter(trace)

    def adapt(self, value: Any, annotation: Any, name: str) -> ArgumentType | None:
        """The DSL's own kinds of arguments: arrays, pointers, streams. None for others."""
        return None

    def pipeline(self, settings: Any) -> objectstage.Pipeline:
        """From the traced module to what `executor` takes; native code unless overridden."""
        from basedsl.objectstage.lowering import native_pipeline

        return native_pipeline(opt_level=settings.opt_level)

    def executor(
        self,
        stages: objectstage.Stages,
        symbol: str,
        arguments: Sequence[ArgumentType],
        results: Results,
        settings: Any,
    ) -> Callable[[Sequence[Any]], Any]:
        """A callable on packed arguments; the artifact is object code unless overridden."""
        assert isinstance(stages.artifact, bytes)
        return native_invoker(stages.artifact, symbol, arguments, results)

    def new_extension(self) -> Any:
        """A record of the DSL's own for one compilation, as `trace.extension`."""
        return None

    def after_trace(self, trace: Trace) -> None:
        """Called when a function was traced, with the whole IR in `trace.module`."""

    def launch(self, kernel: DSLFunction, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What calling a kernel in a @jit function gives."""
        raise DSLCallError(f"the DSL '{self.name}' has no kernels")

    def target_key(self, settings: Any) -> Any:
        """What code depends on besides arguments and options: a device's architecture. In a process
        it depends on the settings alone: native calls do not ask again.
        """
        return None

    # What users call ---------------------------------------------------------------------------

    def jit(self, fn: Any = None, *, preprocess: bool = True) -> Any:
        """Decorator: compile the function on its first call with arguments of a kind.

        `preprocess=False` only traces it: then a dynamic value cannot be a condition or bound.
        """
        with users_frames():
            return self._decorate(fn, "jit", preprocess)

    def kernel(self, fn: Any = None, *, preprocess: bool = True) -> Any:
        """Decorator: a function that a @jit function launches."""
        with users_frames():
            return self._decorate(fn, "kernel", preprocess)

    def _decorate(self, fn: Any, kind: str, preprocess: bool) -> Any:
        if fn is None:
            return lambda f: self._decorate(f, kind, preprocess)
        with users_frames():
            made = DSLFunction(self, fn, kind, preprocess)
        if not self._has_decorated and not is_internal(made.fn.__code__.co_filename):
            self._has_decorated = True
            self._foresee()
        return made

    def _foresee(self) -> None:
        """Begin with what a compilation needs, where a program has a first function and no call of
        one can find its code on the disk.
        """
        with contextlib.suppress(DSLError):  # wrong settings are the call's to report
            settings = self.options
            store = self._store(settings)
            if store is None or store.is_empty():
                self._map_libraries()

    def _store(self, settings: Any) -> cache.Store | None:
        """Where code is kept, or None."""
        if not (settings.cache and self.kept_on_disk):
            return None
        folder = settings.cache_dir or cache.default_folder()
        return cache.Store(folder, settings.cache_size * 2**20)

    def _map_libraries(self) -> None:
        if self._mlir is None:
            needed = libraries(self.bindings_package, self.dialects)
            preload.begin((*needed, *native.libraries()))

    @property
    def mlir(self) -> MLIRContext:
        """The DSL's bindings and its one context."""
        if self._mlir is None:
            with self._lock:
                if self._mlir is None:
                    bindings = load_bindings(self.bindings_package, self.dialects)
                    self._mlir = MLIRContext(bindings, self.load_dialects)
        return self._mlir

    @property
    def options(self) -> Any:
        """The options that the environment asks for now."""
        known = self._options
        if known is None or not known[0].holds():
            environment = Environment()
            known = self._options = environment, self.options_class.from_environment()
        return known[1]

    # A call ------------------------------------------------------------------------------------

    def run(self, function: DSLFunction, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call `function` from Python. The option `no_cache=True` of a call compiles anew."""
        fresh = _takes_out("no_cache", function, kwargs)
        values = function.signature.bind(args, kwargs)
        arguments = self.arguments(function, values)
        if fresh:
            return self.build(function, values, arguments, self.options).run(values)
        compiled, is_new = self._variant(function, values, arguments, self.options)
        if not is_new:
            function.arm(compiled, values)
        return compiled.run(values)

    def compile(self, function: Any, *args: Any, options: Any = None, **kwargs: Any) -> Compiled:
        """Compile for arguments like these; always compiles, caches nothing.

        `function` is a @jit function, a bound method, or an object whose `__call__` is one.
        """
        with users_frames():
            function, args = _callee(function, args)
            if function.kind != "jit":
                raise DSLCallError(
                    f"'{function.fn.__qualname__}' is a kernel; only @jit functions are compiled",
                    hint="compile the @jit function that launches it",
                )
            values = function.signature.bind(args, kwargs)
            settings = self.settings(options)
            return self.build(function, values, self.arguments(function, values), settings)

    def settings(self, given: Any) -> Any:
        """Compile options: those of the environment, changed by `given`."""
        if isinstance(given, Options):
            return given
        return self.options.parse(given) if isinstance(given, str) else self.options

    def variant(
        self,
        function: DSLFunction,
        values: list[Any],
        arguments: list[ArgumentType],
        settings: Any,
    ) -> Compiled:
        """The compiled code for these argument types: from memory if it still holds, else new."""
        return self._variant(function, values, arguments, settings)[0]

    def _variant(
        self,
        function: DSLFunction,
        values: list[Any],
        arguments: list[ArgumentType],
        settings: Any,
    ) -> tuple[Compiled, bool]:
        target = self.target_key(settings)
        key = (tuple(arguments), settings, target)
        with function.lock:
            known = function.variants.setdefault(key, [])
            for compiled in known:
                if compiled.guards.holds():
                    return compiled, False
            compiled = self._kept_or_built(function, values, arguments, settings, target)
            known.append(compiled)
            del known[:-MOST_KEPT]
            return compiled, True

    def _kept_or_built(
        self,
        function: DSLFunction,
        values: Sequence[Any],
        arguments: list[ArgumentType],
        settings: Any,
        target: Any,
    ) -> Compiled:
        """From the disk if it has this compilation, else compiled, and kept there."""
        start = perf_counter()
        logs.configure(settings)
        before = self._guards([function], arguments)
        observed = plugin_manager().stage_observer(self.name, function.symbol) is not None
        store = None if observed else self._store(settings)
        key = None
        if store is not None:
            key = entry.cache_key(self, function, arguments, settings, target, before.portable_text)
        shows = settings.print_ir or settings.print_after_preprocess or settings.keep
        if store is not None and key is not None and not (shows or settings.time_stages):
            content = store.read(key)
            found = content and self._restore(function, arguments, settings, before, content)
            if found:
                self.counts["loaded"] += 1
                _log.info("%s: %r from the disk", function.symbol, found)
                return found
        looked = perf_counter() - start
        compiled = self.build(function, values, arguments, settings, before)
        self.counts["compiled"] += 1
        start = perf_counter()
        # Only what was found without tracing tells entries apart.
        if (
            store is not None
            and key is not None
            and compiled.guards.portable_text == before.portable_text
        ):
            shown = ", ".join(map(str, arguments))
            with contextlib.suppress(TypeError):
                packed = entry.serialize(self, function, shown, compiled.results, compiled.stages)
                store.write(key, packed)
        compiled.seconds = {"key": looked, **compiled.seconds, "keep": perf_counter() - start}
        return compiled

    def _restore(
        self,
        function: DSLFunction,
        arguments: list[ArgumentType],
        settings: Any,
        guards: Guards,
        content: bytes,
    ) -> Compiled | None:
        start = perf_counter()
        try:
            pipeline = self._pipeline(function, settings)
            results, stages = entry.deserialize(content, self, pipeline)
            with uninterrupted():
                invoke = self.executor(stages, function.symbol, arguments, results, settings)
        except (DSLRuntimeError, ValueError, LookupError, AttributeError):
            return None  # of another make than the key says: compiled anew
        seconds = {"load": perf_counter() - start}

        def source() -> str:
            return function.source if function.preprocess else ""

        return self.compiled_class(
            function, arguments, results, stages, invoke, seconds, guards, source, settings
        )

    def arguments(self, function: DSLFunction, values: Sequence[Any]) -> list[ArgumentType]:
        """The type of every argument."""
        return [
            self.argument(value, parameter.annotation, parameter.name)
            for parameter, value in zip(function.signature.parameters, values, strict=True)
        ]

    def argument(self, value: Any, annotation: Any, name: str) -> ArgumentType:
        """The type of one argument; DSLCallError if no adapter knows it."""
        return argument_type(self, value, annotation, name)

    # A compilation -----------------------------------------------------------------------------

    def build(
        self,
        function: DSLFunction,
        values: Sequence[Any],
        arguments: list[ArgumentType],
        settings: Any,
        before: Guards | None = None,
    ) -> Compiled:
        """Stage, trace and compile `function` for these argument types. `before` are its guards
        from a moment ago.
        """
        with _no_collection(keep=self._mlir is None):
            return self._build(function, arguments, settings, before)

    def _build(
        self,
        function: DSLFunction,
        arguments: list[ArgumentType],
        settings: Any,
        before: Guards | None,
    ) -> Compiled:
        logs.configure(settings)
        seconds: dict[str, float] = {}
        is_first = self._mlir is None
        self._map_libraries()
        before = before or self._guards([function], arguments)
        start = perf_counter()
        source = _rewritten(function)
        seconds["pre-stage"] = perf_counter() - start
        start = perf_counter()
        if is_first:
            native.begin_import()
        with self.mlir.entered():
            seconds["mlir"] = perf_counter() - start
            start = perf_counter()
            trace, module, results = self._trace(function, arguments, settings)
            seconds["trace"] = perf_counter() - start
            guards = self._guards([function, *_of_programs(trace)], arguments)
            guards.keep_earlier_values(before)
            start = perf_counter()
            stages = objectstage.run(
                self._pipeline(function, settings),
                module,
                self.mlir,
                options=settings,
                observe=plugin_manager().stage_observer(self.name, function.symbol),
                label=function.symbol,
                dsl=self.name,
            )
            results.forget()
            seconds |= stages.seconds
        _show(stages, function.symbol, seconds, settings)
        if _log.isEnabledFor(INFO):
            shown = ", ".join(map(str, arguments))
            took = sum(seconds.values()) * 1e3
            _log.info("%s(%s): compiled in %.1f ms", function.symbol, shown, took)
            _log.debug("%s: %s", function.symbol, _milliseconds(seconds))
        start = perf_counter()
        with uninterrupted():
            invoke = self.executor(stages, function.symbol, arguments, results, settings)
        seconds["load"] = perf_counter() - start
        return self.compiled_class(
            function, arguments, results, stages, invoke, seconds, guards, source, settings
        )

    def _pipeline(self, function: DSLFunction, settings: Any) -> objectstage.Pipeline:
        pipeline = self.pipeline(settings)
        if any(step.name == "llvmir" for step in pipeline):
            step = objectstage.Step("entry", AddEntry(function.symbol))
            pipeline = pipeline.after("llvmir", step)
        return pipeline

    def _guards(
        self, functions: Sequence[DSLFunction], arguments: Sequence[ArgumentType]
    ) -> Guards:
        return Guards.collect(
            [function.fn for function in functions],
            [part for argument in arguments for part in static_parts(argument)],
        )

    def _trace(
        self, function: DSLFunction, arguments: Sequence[ArgumentType], settings: Any
    ) -> tuple[Trace, Any, Results]:
        bindings = self.mlir.bindings
        ir = bindings.ir
        module = ir.Module.create()
        trace = Trace(
            self,
            bindings,
            module,
            self.emitter,
            default_int=self.default_int,
            default_float=self.default_float,
            options=settings,
            extension=self.new_extension(),
        )
        trace.function_name = function.fn.__qualname__
        code = function.fn.__code__
        place = ir.Location.file(code.co_filename, code.co_firstlineno, 1)
        with activate(trace), place, deeper():
            types = [a.ir_types(ir) for a in arguments]
            flat = [t for ts in types for t in ts]
            with ir.InsertionPoint(module.body):
                op = new_function(ir, function.symbol, flat, body=True)
            block = op.regions[0].blocks[0]
            with trace.insertion(block):
                parameters = iter(block.arguments)
                proxies = [
                    a.proxy([next(parameters) for _ in ts])
                    for a, ts in zip(arguments, types, strict=True)
                ]
                before = [flatten(p) for p in proxies]
                args, kwargs = function.signature.spread(proxies)
                returned = _traced(trace, function.staged, args, kwargs)
                trace.check_refused()
                trace.region.check()
                results = Results(returned, function.fn)
                _check_unchanged(function, arguments, proxies, before)
                ir.Operation.create("func.return", operands=results.values)
            kind = ir.FunctionType.get(flat, [v.type for v in results.values])
            op.attributes["function_type"] = ir.TypeAttr.get(kind)
            self.after_trace(trace)
        return trace, module, results


def _traced(
    trace: Trace, staged: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    try:
        with trace.body_of(staged):
            return staged(*args, **kwargs)
    except RecursionError as error:
        if isinstance(error, DSLError):
            raise
        raise endless_recursion(error) from None
    except trace.dsl.plain_errors as error:
        if isinstance(error, DSLError):
            raise
        raise placed(error) from None


def _rewritten(function: DSLFunction) -> Callable[[], str]:
    """The text of what the pre-stage makes of a function as it is now."""
    if not function.preprocess:
        return lambda: ""
    stage = function.stage()
    return lambda: stage.source


def _show(
    stages: objectstage.Stages, symbol: str, seconds: dict[str, float], settings: Options
) -> None:
    """Print and save what the options ask for."""
    if settings.print_ir:
        print(stages.text(stages.names[0]))
    if settings.keep:
        names = None if "all" in settings.keep else settings.keep
        stages.save(settings.dump_dir or Path.cwd(), symbol, names)
    if settings.time_stages:
        print(f"{symbol}: {_milliseconds(seconds)} ms", file=sys.stderr)


def _of_programs(trace: Trace) -> list[DSLFunction]:
    """The functions traced, but for the DSL's own, which change with its version only."""
    found: list[DSLFunction] = trace.functions
    return [one for one in found if not is_internal(one.fn.__code__.co_filename)]


@contextlib.contextmanager
def _no_collection(keep: bool) -> Iterator[None]:
    """A compilation makes many objects at once and little garbage: to look for cycles meanwhile
    takes up to a fifth of its time. With `keep` the objects made, as those of the modules that the
    first compilation imports, are not looked at right afterwards either: they count as old.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if keep and enabled and not gc.get_freeze_count():
            gc.freeze()
            gc.unfreeze()
        if enabled:
            gc.enable()


def _milliseconds(seconds: dict[str, float]) -> str:
    return ", ".join(f"{name} {value * 1e3:.2f}" for name, value in seconds.items())


def _takes_out(option: str, function: DSLFunction, kwargs: dict[str, Any]) -> bool:
    """The value of an option among the keyword arguments, unless it is a parameter's name."""
    if option not in kwargs or any(p.name == option for p in function.signature.parameters):
        return False
    return bool(kwargs.pop(option))


def _callee(function: Any, args: tuple[Any, ...]) -> tuple[DSLFunction, tuple[Any, ...]]:
    if isinstance(function, DSLFunction):
        return function, args
    if isinstance(function, BoundFunction):
        return function.function, (function.instance, *args)
    call = inspect.getattr_static(type(function), "__call__", None)
    if isinstance(call, DSLFunction):
        return call, (function, *args)
    raise DSLCallError(
        f"compile takes a @jit function, got a {type(function).__name__}",
        hint="decorate the function with @jit",
    )


def _check_unchanged(
    function: DSLFunction,
    arguments: Sequence[ArgumentType],
    proxies: Sequence[Any],
    before: Sequence[tuple[Node | None, list[Any]]],
) -> None:
    """A change that a function makes to its argument would not reach the caller's object."""
    for parameter, argument, proxy, (node, leaves) in zip(
        function.signature.parameters, arguments, proxies, before, strict=True
    ):
        if not isinstance(argument, TreeArgument):
            continue
        now, new = flatten(proxy)
        if same_shape(node, now) and all(a is b for a, b in zip(leaves, new, strict=True)):
            continue
        raise DSLError(
            f"'{function.fn.__qualname__}' changes its argument '{parameter.name}' in place, which "
            "the caller in Python would not see",
            span_of_function(function.fn),
            hint="return the new value instead",
        )


__all__ = ["DSL", "NumericArgument"]
