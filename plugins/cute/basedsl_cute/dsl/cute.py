"""The language cute and its DSL: argument types, targets and pipelines for the core's driver."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar, overload

from basedsl import (
    DSL,
    ArgumentType,
    Bindings,
    Compiled,
    DSLCallError,
    DSLError,
    DSLFunction,
    Emitter,
    Finding,
    Float32,
    Int32,
    Language,
    Pipeline,
    Results,
    Stages,
    Trace,
    argument_type,
    current_trace_or_none,
)
from basedsl_cute import algebra, dialect
from basedsl_cute.device import driver
from basedsl_cute.device.detect import detect
from basedsl_cute.dialect.cute_trace import CuteTrace, cute_trace
from basedsl_cute.dialect.definition import COMPANIONS
from basedsl_cute.dsl import slips
from basedsl_cute.dsl.compiled import CuteCompiled
from basedsl_cute.dsl.emitter import CuteEmitter
from basedsl_cute.dsl.function import CuteFunction
from basedsl_cute.dsl.options import CuteOptions
from basedsl_cute.hardware.targets import SIM, TARGETS, Target, target_of
from basedsl_cute.host.event import Event, EventArgument, is_event
from basedsl_cute.host.jit_protocol import protocol_argument
from basedsl_cute.host.kept_argument import kept_argument
from basedsl_cute.host.kernel_launch import KernelCall, check_launched
from basedsl_cute.host.read_only import check_read_only
from basedsl_cute.host.stream import Stream, is_stream, stream_argument
from basedsl_cute.host.tensor_argument import tensor_argument

if TYPE_CHECKING:  # only exports need them
    from basedsl import Export, LoadedFunction

P = ParamSpec("P")
R = TypeVar("R")


class Cute(Language):
    """The language of kernels for NVIDIA GPUs and for the CPU simulator."""

    name = "cute"
    package = "basedsl_cute"
    default_int = Int32
    default_float = Float32
    dialects = (*COMPANIONS, "irdl")
    options_class = CuteOptions
    stands_for = ("cutlass",)
    plain_errors = (algebra.LayoutError,)
    function_class = CuteFunction
    compiled_class = CuteCompiled

    def findings(self, settings: Any) -> Iterable[Finding]:
        from basedsl_cute.dsl.findings import findings

        return findings()

    run_time_print = 'cute.printf("{}", x)'

    def hint(self, error: Exception, source: str) -> str | None:
        return slips.hint(error, source)

    def install_as(self, name: str) -> None:
        importlib.import_module("basedsl_cute.compat.install").install_as(name)

    def emitter(self, trace: Trace) -> Emitter:
        return CuteEmitter(trace)

    def load_dialects(self, bindings: Bindings) -> None:
        dialect.load(bindings)

    def argument_type(self, value: Any, annotation: Any, name: str) -> ArgumentType | None:
        if hasattr(value, "dsl_kept"):
            return kept_argument(value, lambda form: argument_type(self, form, annotation, name))
        if annotation is Stream or is_stream(value):
            return stream_argument(value)
        if annotation is Event or is_event(value):
            return EventArgument()
        by_protocol = protocol_argument(value, name)
        if by_protocol is not None:
            return by_protocol
        return tensor_argument(value, annotation, name)

    def new_extension(self) -> CuteTrace:
        return CuteTrace()

    def after_trace(self, trace: Trace) -> None:
        check_launched(trace)
        check_read_only(trace)
        access = cute_trace(trace).host_access
        if access is not None and self.target(trace.options).is_gpu:
            _check_host_access(trace, access)

    def launch(
        self, kernel: DSLFunction, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> KernelCall:
        trace = current_trace_or_none()
        if trace is not None:
            on_simulator = not self.target(trace.options).is_gpu
            asked = trace.options.check_coordinates != "off"
            cute_trace(trace).checks_coordinates = on_simulator and asked
        return KernelCall(kernel, args, kwargs)

    def target(self, settings: Any) -> Target:
        """Return the target of the options: `arch`, else this machine's GPU, else the simulator."""
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


def _check_host_access(trace: Trace, span: Any) -> None:
    """Raise DSLError for host code that accesses an element of a tensor in GPU memory."""
    record = cute_trace(trace)
    name = record.on_gpu
    if name is None and record.gpu_module is None:
        return
    why = "for the kernels that this function launches, its memory is the GPU's"
    if name is not None:
        why = f"the memory of '{name}' is the GPU's"
    raise DSLError(
        f"an element of a tensor is read or written on the host; {why}",
        span,
        hint="do it in a kernel, or in a function of its own that gets an array in host memory",
    )


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
