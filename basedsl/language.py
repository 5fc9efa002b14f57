"""`Language`: the declarations by which a plugin defines a DSL.

    class Toy(Language):
        name = "toy"
        ...

    TOY = DSL(Toy())

A `Language` is passive: the driver calls its methods at each stage. Only `name` has no default.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from basedsl.errors import DSLCallError, DSLRuntimeError, plugin_defect
from basedsl.function import DSLFunction
from basedsl.numeric import Float64, Int64
from basedsl.options import Options

if TYPE_CHECKING:  # a plugin's declaration loads nothing of what compiles
    from basedsl.binding.arguments import ArgumentType
    from basedsl.binding.result_types import ResultType
    from basedsl.binding.results import Results
    from basedsl.compiled import Compiled
    from basedsl.export import Export, LoadedFunction
    from basedsl.findings import Finding
    from basedsl.mlir import Bindings
    from basedsl.objectstage import Pipeline, Stages
    from basedsl.tracing import Emitter, Trace


class Language:
    """Subclass this to declare a DSL; `DSL(YourLanguage())` makes its decorators."""

    #: The DSL's name, used in symbols and messages; hooks of other plugins get it as `dsl`.
    name: ClassVar[str]
    #: The package whose files are the plugin's: their frames are hidden from users' error messages.
    #: None is the package that the language's module is in; a DSL that is one module, in no
    #: package, and that programs import, names itself: `package = __name__`.
    package: ClassVar[str | None] = None
    #: The numeric types that a Python int and a Python float become.
    default_int: ClassVar[Any] = Int64
    default_float: ClassVar[Any] = Float64
    #: The names of the MLIR dialects that the bindings must provide.
    dialects: ClassVar[tuple[str, ...]] = ("func", "arith", "scf", "cf", "math", "llvm")
    #: True if modules may have operations of dialects that the bindings do not know.
    allow_unregistered_dialects: ClassVar[bool] = False
    #: The package of the MLIR bindings; None takes the one that the option `mlir` names, else the
    #: first that is installed and has `dialects`.
    bindings_package: ClassVar[str | None] = None
    #: The record of options, a subclass of `Options`.
    options_class: ClassVar[type[Options]] = Options
    #: The class of decorated functions.
    function_class: ClassVar[type[DSLFunction]] = DSLFunction
    #: True if `executor` can run the pipeline's outputs in another process too: then compilations
    #: are stored in the disk cache.
    kept_on_disk: ClassVar[bool] = True
    #: Names of packages whose programs this DSL runs as well.
    stands_for: ClassVar[tuple[str, ...]] = ()
    #: The call that prints a value at run time, for the remark on a `print` while compiling.
    run_time_print: ClassVar[str] = ""

    @property
    def compiled_class(self) -> type[Compiled]:
        """The class of compiled functions, a subclass of `Compiled`. The first compilation asks."""
        from basedsl.compiled import Compiled

        return Compiled

    @property
    def plain_errors(self) -> tuple[type[Exception], ...]:
        """Classes of exceptions without a source location, such as those of a library that also
        works outside of compilations. Raised while tracing, they become DSLErrors at the user's
        line.
        """
        return ()

    def hint(self, error: Exception, source: str) -> str | None:
        """Return what to write instead of `source`, the user's expression at which Python raised
        `error` (a NameError, an AttributeError, a TypeError, an IndexError) while tracing; None
        leaves it to the core, which knows misspellings and signatures.
        """
        return None

    def is_rebuilt(self, cls: type) -> bool:
        """Return True for a class whose objects are values that control flow may make anew.

        Where one side of a dynamic `if` makes such an object and the other keeps an older one, the
        variable has a new object after it, with the merged contents. For other classes, which is
        the default, that is an error: compiled code cannot choose between objects.
        """
        return False

    def findings(self, settings: Any) -> Iterable[Finding]:
        """Return what `basedsl doctor` tells about this machine besides what the core needs: tools,
        devices, libraries. `settings` is the record of options that the environment gives.
        """
        return ()

    def install_as(self, name: str) -> None:
        """Make `import name`, one of `stands_for`, give this DSL's package in this process."""
        raise DSLRuntimeError(f"the DSL '{self.name}' runs no programs of another")

    # Arguments -----------------------------------------------------------------------------------

    def adapter_of(self, kind: type) -> Callable[[Any], Any] | None:
        """Return the function that `DSL.argument_adapter` registered for the class `kind` or for
        the nearest base of it; None without one.
        """
        adapters: dict[type, Callable[[Any], Any]] | None = vars(self).get("_adapters")
        if not adapters:
            return None
        return next((adapters[base] for base in kind.__mro__ if base in adapters), None)

    def register_adapter(self, kind: type, adapter: Callable[[Any], Any]) -> None:
        """Let `adapter` convert values of the class `kind` and its subclasses to arguments."""
        vars(self).setdefault("_adapters", {})[kind] = adapter

    def argument_type(self, value: Any, annotation: Any, name: str) -> ArgumentType | None:
        """Return the argument type of a value of the DSL's own kinds, such as an array, pointer or
        stream; None leaves the value to the core (numbers, static values, trees) and to adapters of
        plugins. `annotation` and `name` are the parameter's. May raise DSLCallError.
        """
        return None

    def result_type(self, value: Any) -> ResultType | None:
        """Return how `value`, a leaf of what a traced function returns, comes back to Python: None
        for numbers and static values, which the core returns. A value of the DSL's own kinds for
        which this is None cannot be returned.
        """
        return None

    def target_key(self, settings: Any) -> Any:
        """Return the part of the cache key besides arguments and options, such as the device's
        architecture: any hashable value. In one process it must depend on `settings` alone, because
        native calls do not ask again.
        """
        return None

    # Tracing -------------------------------------------------------------------------------------

    def load_dialects(self, bindings: Bindings) -> None:
        """Load the dialects that the DSL defines in Python (IRDL) into the current MLIR context, by
        the MLIR `bindings`.
        """

    def emitter(self, trace: Trace) -> Emitter:
        """Return the builder of control flow in the IR of this `trace`; by default that of the
        core, which emits `scf`.
        """
        from basedsl.metastage.scf_emitter import ScfEmitter

        return ScfEmitter(trace)

    def new_function(self, trace: Trace, symbol: str, types: Sequence[Any]) -> Any:
        """Make the operation of the traced function at the insertion point of `trace`, by default a
        `func.func`, and return it. It is called `symbol`, and its first region has one block with
        arguments of `types`, a sequence of `ir.Type`.
        """
        from basedsl.mlir import new_function

        return new_function(trace.ir, symbol, types, body=True)

    def end_function(self, trace: Trace, operation: Any, values: Sequence[Any]) -> None:
        """End the function `operation` that `new_function` made: `values` are its results, as
        `ir.Value`s. The insertion point of `trace` is the end of its body. By default emits
        `func.return`, and completes the function's type.
        """
        ir = trace.ir
        ir.Operation.create("func.return", operands=values)
        taken = [argument.type for argument in operation.regions[0].blocks[0].arguments]
        kind = ir.FunctionType.get(taken, [value.type for value in values])
        operation.attributes["function_type"] = ir.TypeAttr.get(kind)

    def new_extension(self) -> Any:
        """Return the DSL's own record of one compilation, which becomes `trace.extension`."""
        return None

    def after_trace(self, trace: Trace) -> None:
        """Complete the module after tracing: `trace.module` has the whole IR."""

    def launch(self, kernel: DSLFunction, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Return the value of a call of `kernel` in a @jit function, with the arguments `args` by
        position and `kwargs` by name; the program calls `launch` on it. By default raises
        DSLCallError: the DSL has no kernels.
        """
        raise DSLCallError(f"the DSL '{self.name}' has no kernels")

    # Compiling and running -----------------------------------------------------------------------

    def pipeline(self, settings: Any) -> Pipeline:
        """Return the steps from the traced module to the artifact that `executor` runs, with the
        options `settings`; by default to native object code of this machine.
        """
        from basedsl.objectstage.lowering import native_pipeline

        return native_pipeline(opt_level=settings.opt_level)

    def stage_names(self, settings: Any) -> Collection[str]:
        """Return the names of the stages that this DSL can have, on any target, with the options
        `settings`: the option `keep` refuses others.
        """
        pipeline = self.pipeline(settings)
        return [pipeline.input, *(step.name for step in pipeline)]

    def target_name(self, settings: Any) -> str:
        """Return the name of the machine that code with the options `settings` is for, a part of
        names of saved files.
        """
        return platform.machine()

    def synchronize(self, settings: Any) -> None:
        """Wait until what was launched with the options `settings` has finished: before the time of
        a run is taken.
        """

    @property
    def exported_packages(self) -> tuple[str, ...]:
        """The packages whose classes the description of an exported function may name: those of
        argument types and of results.
        """
        return ("basedsl", type(self).__module__.partition(".")[0])

    def export(self, compiled: Compiled, prefix: str) -> Export:
        """Return the export of a compiled function, whose C names begin with `prefix`: by default
        code that needs the C library alone.
        """
        from basedsl.export import Export

        return Export(compiled, prefix)

    def exported_symbols(self, names: Any) -> dict[str, int]:
        """Return the addresses of what an exported object calls besides the C library, of which
        `names.undefined` has the names. By default none.
        """
        return {}

    def loaded_function(
        self, prefix: str, meta: dict[str, Any], address_of: Callable[[str], int]
    ) -> LoadedFunction:
        """Return the callable for the exported function `prefix`, described by `meta`, in a loaded
        file, of whose symbols `address_of` gives the addresses.
        """
        from basedsl.export import LoadedFunction

        return LoadedFunction(self, prefix, meta, address_of)

    def executor(
        self,
        stages: Stages,
        symbol: str,
        arguments: Sequence[ArgumentType],
        results: Results,
        settings: Any,
    ) -> Callable[[Sequence[Any]], Any]:
        """Return a callable that takes the packed arguments, runs the function `symbol` of
        `stages.artifact`, and returns the Python result. By default the artifact is object code. If
        the callable is an `Invoker` with an entry point, later calls run without Python.

        `arguments` are the types of the function's arguments, one for each parameter, `results` is
        the structure of what it returns, and `settings` is the record of options.
        """
        from basedsl.native_call.invoker import native_invoker

        if not isinstance(stages.artifact, bytes):
            made = "no artifact" if stages.artifact is None else "text"
            raise plugin_defect(
                self,
                f"the pipeline '{stages.pipeline.name}' leaves {made}, not object code",
                hint="end it with native_steps(), or override executor()",
            )
        return native_invoker(stages.artifact, symbol, arguments, results)
