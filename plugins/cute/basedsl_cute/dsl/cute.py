"""The DSL object: cute's types, targets and pipelines on the core's straight line."""

from __future__ import annotations

import contextlib
import os
import pickle
import shlex
from collections.abc import Callable, Sequence
from typing import Any

from basedsl import DSL, DSLError, location, objectstage
from basedsl.binding import AdaptedArgument, ArgumentType
from basedsl.binding.results import Results
from basedsl.function import DSLFunction
from basedsl.metastage import Emitter, Trace
from basedsl.mlir import Bindings
from basedsl.numeric import Float32, Int32
from basedsl.objectstage import Pipeline, PipelineContext, Step
from basedsl.objectstage.lowering import native_steps
from basedsl_cute import algebra, dialect
from basedsl_cute.device.detect import detect
from basedsl_cute.dialect.builders import COMPANIONS, HOST_ACCESS
from basedsl_cute.dsl.compiled import CuteCompiled
from basedsl_cute.dsl.emitter import CuteEmitter
from basedsl_cute.dsl.options import CuteOptions
from basedsl_cute.hardware.targets import Target, target_of
from basedsl_cute.host.adapters import adapter_of
from basedsl_cute.host.jit_protocol import protocol_argument
from basedsl_cute.host.kernel_launch import KernelCall, check_launched
from basedsl_cute.host.stream import Stream, is_stream, stream_argument
from basedsl_cute.host.tensor_argument import ON_GPU, tensor_argument
from basedsl_cute.lowering.host.launch import STATE, launch_table, lower_launch
from basedsl_cute.lowering.pipeline import KernelOptions, ptx_steps, shared_steps
from basedsl_cute.lowering.ptx.sass import Disassemble

location.mark_internal(os.path.dirname(os.path.dirname(__file__)))  # the whole package


class Cute(DSL):
    """Kernels for NVIDIA GPUs, or for the CPU simulator."""

    name = "cute"
    default_int = Int32
    default_float = Float32
    dialects = (*COMPANIONS, "irdl")
    options_class = CuteOptions
    plain_errors = (algebra.LayoutError,)
    compiled_class = CuteCompiled

    def emitter(self, trace: Trace) -> Emitter:
        return CuteEmitter(trace)

    def load_dialects(self, bindings: Bindings) -> None:
        dialect.load(bindings)

    def jit(
        self, fn: Any = None, *, preprocess: bool = True, preprocessor: bool | None = None
    ) -> Any:
        """As every DSL's; `preprocessor` is another spelling of `preprocess`."""
        return super().jit(fn, preprocess=preprocess if preprocessor is None else preprocessor)

    def kernel(
        self, fn: Any = None, *, preprocess: bool = True, preprocessor: bool | None = None
    ) -> Any:
        """As every DSL's; `preprocessor` is another spelling of `preprocess`."""
        return super().kernel(fn, preprocess=preprocess if preprocessor is None else preprocessor)

    def adapt(self, value: Any, annotation: Any, name: str) -> ArgumentType | None:
        adapter = adapter_of(type(value))
        if adapter is not None:
            return AdaptedArgument(self.argument(adapter(value), annotation, name), adapter)
        if annotation is Stream or is_stream(value):
            return stream_argument(value)
        by_protocol = protocol_argument(value, name)
        if by_protocol is not None:
            return by_protocol
        return tensor_argument(value, annotation, name)

    def begin(self, trace: Trace, module: Any) -> None:
        trace.state["module"] = module

    def finish(self, trace: Trace, module: Any) -> None:
        check_launched(trace)
        access = trace.state.get(HOST_ACCESS)
        if access is not None and self.target(trace.options).is_gpu:
            _check_host_access(trace, access)

    def launch(
        self, kernel: DSLFunction, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> KernelCall:
        return KernelCall(kernel, args, kwargs)

    def target(self, settings: Any) -> Target:
        """What code is made for: the option `arch`, else this machine's GPU, else the simulator."""
        return target_of(settings.arch) if settings.arch else detect()

    def target_key(self, settings: Any) -> str:
        return self.target(settings).name

    def pipeline(self, settings: Any) -> Pipeline:
        target = self.target(settings)
        lowered = (*shared_steps(target), Step("launches", launch_records))
        host = (Step("host", lower_launch), *native_steps())
        if not target.is_gpu:
            translate = Step("programs", simulator_programs)
            steps = (*lowered, Step("kernels", simulator_records), translate, *host)
            return Pipeline("cute-to-sim", steps, input="cute")
        options = KernelOptions(
            assertions=settings.enable_assertions,
            line_info=settings.lineinfo,
            contract=settings.contract,
            opt_level=settings.opt_level,
            ptxas=tuple(shlex.split(settings.ptxas_options)),
        )
        kernels = ptx_steps(target, options)
        steps = tuple(step for step in kernels if step.name != "cubin")
        assembly = tuple(step for step in kernels if step.name == "cubin")
        if assembly:  # ptxas works while the host's code is compiled
            assembly = (*assembly, Step("resources", resource_report, suffix=".txt"))
            if "sass" in settings.keep:
                sass = Disassemble(settings.nvdisasm_options)
                assembly = (*assembly, Step("sass", sass, verify=False, suffix=".sass"))
        return Pipeline("cute-to-nvvm", (*lowered, *steps, *host, *assembly), input="cute")

    def executor(
        self,
        stages: objectstage.Stages,
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
    """Elements of tensors that kernels on the GPU reach cannot be had on the host."""
    name = trace.state.get(ON_GPU)
    if name is None and trace.state.get("gpu module") is None:
        return
    why = "for the kernels that this function launches, its memory is the GPU's"
    if name is not None:
        why = f"the memory of '{name}' is the GPU's"
    raise DSLError(
        f"an element of a tensor is read or written on the host; {why}",
        span,
        hint="do it in a kernel, or in a function of its own that gets an array in host memory",
    )


def simulator_records(op: Any, context: PipelineContext) -> bytes:
    """Lowered kernels as plain Python records, which the simulator translates."""
    from basedsl_cute.sim.translate.records import read_kernel

    names = [entry.name for entry in launch_table(op, context.bindings).kernels]
    return pickle.dumps({name: read_kernel(op, name) for name in names})


def simulator_programs(op: Any, context: PipelineContext) -> bytes:
    """The same kernels translated. One that the simulator has no rule for is missing: the error
    comes if it is launched.
    """
    from basedsl_cute.sim import SimKernel, SimOptions

    made = {}
    options = SimOptions(check_races=context.options.check_races)
    for name, record in pickle.loads(context.artifacts["kernels"]).items():
        with contextlib.suppress(DSLError):
            made[name] = SimKernel(record).prepared(options).pack()
    return pickle.dumps(made)


def launch_records(op: Any, context: PipelineContext) -> bytes:
    """The table of kernels that the host code launches.

    Taken before kernels become NVVM, where what is passed by value no longer shows.
    """
    table = context.state[STATE] = launch_table(op, context.bindings)
    return pickle.dumps(table)


def resource_report(op: Any, context: PipelineContext) -> str:
    """What ptxas says each kernel takes: registers, spills, shared memory."""
    made = context.state["assembly"]
    lines = [f"{name}: {resources}" for name, resources in made.kernels.items()]
    return "\n".join([*lines, *made.warnings]) + "\n"


CUTE = Cute()
