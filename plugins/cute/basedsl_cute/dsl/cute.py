"""The language cute and its DSL: argument types, targets and pipelines for the core's driver."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from basedsl import DSL, DSLCallError, DSLFunction, Float32, Int32, Language
from basedsl_cute.dsl.function import CuteFunction
from basedsl_cute.dsl.options import CuteOptions

if TYPE_CHECKING:
    from basedsl import (
        ArgumentType,
        Bindings,
        Compiled,
        Emitter,
        Export,
        Finding,
        LoadedFunction,
        Pipeline,
        Results,
        Stages,
        Trace,
    )
    from basedsl_cute.dialect.cute_trace import CuteTrace
    from basedsl_cute.dsl.compiled import CuteCompiled
    from basedsl_cute.hardware.targets import Target
    from basedsl_cute.host.kernel_launch import KernelCall

P = ParamSpec("P")
R = TypeVar("R")


class Cute(Language):
    """The language of kernels for NVIDIA GPUs and for the CPU simulator.

    Its methods import what they use: a program that defines kernels, and calls of code that is on
    the disk, do without the rest.
    """

    name = "cute"
    package = "basedsl_cute"
    default_int = Int32
    default_float = Float32
    dialects = (
        "arith", "builtin", "cf", "func", "gpu", "llvm", "math", "nvvm", "scf", "vector", "irdl",
    )  # fmt: skip
    options_class = CuteOptions
    stands_for = ("cutlass",)
    function_class = CuteFunction

    @property
    def compiled_class(self) -> type[CuteCompiled]:
        from basedsl_cute.dsl.compiled import CuteCompiled

        return CuteCompiled

    @property
    def plain_errors(self) -> tuple[type[Exception], ...]:
        from basedsl_cute.algebra import LayoutError

        return (LayoutError,)

    def findings(self, settings: Any) -> Iterable[Finding]:
        from basedsl_cute.dsl.findings import findings

        return findings()

    run_time_print = 'cute.printf("{}", x)'

    def hint(self, error: Exception, source: str) -> str | None:
        from basedsl_cute.dsl import slips

        return slips.hint(error, source)

    def is_rebuilt(self, cls: type) -> bool:
        # By the argument protocol a class says how its objects are made anew from their values.
        return all(hasattr(cls, f"__{name}_mlir_values__") for name in ("extract", "new_from"))

    def install_as(self, name: str) -> None:
        importlib.import_module("basedsl_cute.compat.install").install_as(name)

    def emitter(self, trace: Trace) -> Emitter:
        from basedsl_cute.dsl.emitter import CuteEmitter

        return CuteEmitter(trace)

    def load_dialects(self, bindings: Bindings) -> None:
        from basedsl_cute import dialect

        dialect.load(bindings)

    def argument_type(self, value: Any, annotation: Any, name: str) -> ArgumentType | None:
        from basedsl_cute.dsl.arguments import argument_type_of

        return argument_type_of(self, value, annotation, name)

    def new_extension(self) -> CuteTrace:
        from basedsl_cute.dialect.cute_trace import CuteTrace

        return CuteTrace()

    def after_trace(self, trace: Trace) -> None:
        from basedsl_cute.dsl.tracing import check_traced

        check_traced(trace, self.target(trace.options))

    def launch(
        self, kernel: DSLFunction, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> KernelCall:
        from basedsl_cute.dsl.tracing import kernel_call

        return kernel_call(kernel, args, kwargs, self.target)

    def target(self, settings: Any) -> Target:
        """Return the target of the options: `arch`, else this machine's GPU, else the simulator."""
        from basedsl_cute.device.detect import detect
        from basedsl_cute.hardware.targets import target_of

        return target_of(settings.arch) if settings.arch else detect()

    def target_key(self, settings: Any) -> tuple[str, ...]:
        name = self.target(settings).name
        if not settings.link_libraries:
            return (name,)
        from basedsl_cute.lowering.ptx.link import stamps

        return (name, *stamps(settings.link_libraries))

    def pipeline(self, settings: Any) -> Pipeline:
        # The lowering is imported by the first compilation: programs that do not compile, and
        # calls that are refused, do without.
        from basedsl_cute.dsl.pipelines import KernelOptions, gpu_pipeline, simulator_pipeline

        target = self.target(settings)
        if target.is_gpu:
            return gpu_pipeline(target, KernelOptions.of(settings))
        return simulator_pipeline(target, settings.opt_level)

    def stage_names(self, settings: Any) -> Collection[str]:
        from basedsl_cute.dsl.pipelines import gpu_pipeline, simulator_pipeline
        from basedsl_cute.hardware.targets import SIM, TARGETS

        both = [gpu_pipeline(TARGETS["sm_90a"]), simulator_pipeline(TARGETS[SIM])]
        names = [name for one in both for name in (one.input, *(step.name for step in one))]
        return list(dict.fromkeys((*names, "cubin", "resources", "sass")))

    def target_name(self, settings: Any) -> str:
        return self.target(settings).name

    def synchronize(self, settings: Any) -> None:
        if self.target(settings).is_gpu:
            from basedsl_cute.device import driver

            driver.synchronize()

    def export(self, compiled: Compiled, prefix: str) -> Export:
        from basedsl_cute.aot import KernelExport

        return KernelExport(compiled, prefix)

    def exported_symbols(self, names: Any) -> dict[str, int]:
        from basedsl_cute.device import driver

        driver.require()
        needed = [name for name in names.undefined if name.startswith("cu")]
        return {name: driver.address_of(name) for name in needed}

    def loaded_function(
        self, prefix: str, meta: dict[str, Any], address_of: Callable[[str], int]
    ) -> LoadedFunction:
        from basedsl_cute.aot import LoadedKernels

        return LoadedKernels(self, prefix, meta, address_of)

    def executor(
        self,
        stages: Stages,
        symbol: str,
        arguments: Sequence[ArgumentType],
        results: Results,
        settings: Any,
    ) -> Callable[[Sequence[Any]], Any]:
        if "kernels" in stages:
            from basedsl_cute.executors.simulator import simulator_executor

            return simulator_executor(stages, symbol, arguments, results, settings)
        from basedsl_cute.executors.gpu import gpu_executor

        return gpu_executor(stages, symbol, arguments, results, self.target(settings).name)


def _check_named(decorator: str, unknown: dict[str, Any]) -> None:
    """Raise DSLCallError for an argument that a decorator does not take."""
    for name in unknown:
        of_launches = name in ("grid", "block", "cluster", "smem", "stream", "launch_bounds")
        raise DSLCallError(
            f"@{decorator} has no argument '{name}'",
            hint=f"{name}= belongs to .launch()"
            if of_launches
            else "it takes preprocess=; options of a compilation are those of cute.compile",
        )


class CuteDSL(DSL[Cute]):
    """Cute's decorators, with the spellings that programs for CuTe use."""

    if TYPE_CHECKING:

        def compile(
            self, function: Any, *args: Any, options: Any = None, **kwargs: Any
        ) -> CuteCompiled: ...

    @overload
    def jit(
        self, fn: Callable[P, R], *, preprocess: bool = True, preprocessor: bool | None = None
    ) -> CuteFunction[P, R]: ...
    @overload
    def jit(
        self, fn: None = None, *, preprocess: bool = True, preprocessor: bool | None = None
    ) -> Callable[[Callable[P, R]], CuteFunction[P, R]]: ...

    def jit(
        self,
        fn: Any = None,
        *,
        preprocess: bool = True,
        preprocessor: bool | None = None,
        **unknown: Any,
    ) -> Any:
        """Decorate the function `fn`, which Python calls: each new tuple of argument types compiles
        it.

        With `preprocess=False` (or `preprocessor=False`) the function is traced as written: then a
        dynamic value cannot be the condition of an `if` or `while`, or a bound of a `for`. Raises
        DSLTypeError for anything but a Python function.
        """
        _check_named("jit", unknown)
        return super().jit(fn, preprocess=preprocess if preprocessor is None else preprocessor)

    @overload
    def kernel(
        self, fn: Callable[P, R], *, preprocess: bool = True, preprocessor: bool | None = None
    ) -> CuteFunction[P, R, KernelCall]: ...
    @overload
    def kernel(
        self, fn: None = None, *, preprocess: bool = True, preprocessor: bool | None = None
    ) -> Callable[[Callable[P, R]], CuteFunction[P, R, KernelCall]]: ...

    def kernel(
        self,
        fn: Any = None,
        *,
        preprocess: bool = True,
        preprocessor: bool | None = None,
        **unknown: Any,
    ) -> Any:
        """Decorate the kernel `fn`, which a @jit function launches: `fn(a).launch(grid=, block=)`.

        `preprocess` and `preprocessor` are those of `jit`. Raises DSLTypeError for anything but a
        Python function.
        """
        _check_named("kernel", unknown)
        return super().kernel(fn, preprocess=preprocess if preprocessor is None else preprocessor)


CUTE = CuteDSL(Cute())

jit = CUTE.jit
kernel = CUTE.kernel
register_jit_arg_adapter = CUTE.argument_adapter
