"""The contract of a plugin: what a DSL's author declares.

    class Toy(Language):
        name = "toy"
        ...

    TOY = DSL(Toy())

A `Language` runs nothing: the driver asks it at each stage. Everything but `name` has a default.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from basedsl.binding.arguments import ArgumentType
from basedsl.binding.results import Results
from basedsl.compiled import Compiled
from basedsl.errors import DSLCallError, DSLRuntimeError
from basedsl.function import DSLFunction
from basedsl.mlir import Bindings
from basedsl.native_call.invoker import native_invoker
from basedsl.numeric import Float64, Int64
from basedsl.objectstage import Pipeline, Stages
from basedsl.options import Options
from basedsl.tracing import Emitter, Trace


class Language:
    """Subclass this to declare a DSL; `DSL(YourLanguage())` makes its decorators."""

    #: The DSL's name: in symbols, in messages, and for hooks of other plugins.
    name: ClassVar[str]
    #: The numeric types that a Python int and a Python float become.
    default_int: ClassVar[Any] = Int64
    default_float: ClassVar[Any] = Float64
    #: The dialects that the MLIR bindings must have.
    dialects: ClassVar[tuple[str, ...]] = ("func", "arith", "scf", "cf", "math", "llvm")
    #: The package of the MLIR bindings; None takes the one that the option `mlir` names.
    bindings_package: ClassVar[str | None] = None
    #: The record of options, a subclass of `Options`.
    options_class: ClassVar[type[Options]] = Options
    #: The classes of decorated and of compiled functions.
    function_class: ClassVar[type[DSLFunction]] = DSLFunction
    compiled_class: ClassVar[type[Compiled]] = Compiled
    #: True if the outputs of the pipeline's steps are all that `executor` needs, also in another
    #: process: then compilations are kept on disk.
    kept_on_disk: ClassVar[bool] = True
    #: Names of packages for which programs may have been written that this DSL runs as well.
    stands_for: ClassVar[tuple[str, ...]] = ()
    #: Errors of parts of the DSL that work without compiling, and so know no place in a program:
    #: raised while tracing, they become DSLErrors at the user's line.
    plain_errors: ClassVar[tuple[type[Exception], ...]] = ()

    def install_as(self, name: str) -> None:
        """Make `import name`, one of `stands_for`, give this DSL's package in this process."""
        raise DSLRuntimeError(f"the DSL '{self.name}' runs no programs of another")

    # Arguments -----------------------------------------------------------------------------------

    def argument_type_of(self, value: Any, annotation: Any, name: str) -> ArgumentType | None:
        """The type of an argument of the DSL's own kinds: arrays, pointers, streams. None for
        others. `annotation` and `name` are the parameter's.
        """
        return None

    def target_key(self, settings: Any) -> Any:
        """What code depends on besides arguments and options: a device's architecture. In a process
        it depends on the settings alone: native calls do not ask again.
        """
        return None

    # Tracing -------------------------------------------------------------------------------------

    def load_dialects(self, bindings: Bindings) -> None:
        """Load dialects that the DSL defines from Python into the current context."""

    def emitter(self, trace: Trace) -> Emitter:
        """The builder of control flow in the IR; the core's over `scf` unless overridden."""
        from basedsl.metastage.scf_emitter import ScfEmitter

        return ScfEmitter(trace)

    def new_extension(self) -> Any:
        """A record of the DSL's own for one compilation, which becomes `trace.extension`."""
        return None

    def after_trace(self, trace: Trace) -> None:
        """Called when a function was traced, with the whole IR in `trace.module`."""

    def launch(self, kernel: DSLFunction, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of calling a kernel in a @jit function, to be launched by the program."""
        raise DSLCallError(f"the DSL '{self.name}' has no kernels")

    # Compiling and running -----------------------------------------------------------------------

    def pipeline(self, settings: Any) -> Pipeline:
        """The steps from the traced module to what `executor` takes; to native code unless
        overridden.
        """
        from basedsl.objectstage.lowering import native_pipeline

        return native_pipeline(opt_level=settings.opt_level)

    def executor(
        self,
        stages: Stages,
        symbol: str,
        arguments: Sequence[ArgumentType],
        results: Results,
        settings: Any,
    ) -> Callable[[Sequence[Any]], Any]:
        """A callable on packed arguments that runs the function `symbol` of the pipeline's output:
        object code unless overridden. Calls need no Python if it is an `Invoker` with an entry
        point.
        """
        assert isinstance(stages.artifact, bytes)
        return native_invoker(stages.artifact, symbol, arguments, results)
