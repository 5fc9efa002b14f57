"""The pipelines of cute, from the traced module to code that runs, for the GPU and the simulator.

They have as few passes as kernels need, because each pass costs time in every compilation.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from basedsl import NativeTarget, Pipeline, Step, native_steps
from basedsl_cute.dsl.options import CuteOptions
from basedsl_cute.dsl.steps import (
    launch_records,
    resource_report,
    simulator_programs,
    simulator_records,
)
from basedsl_cute.hardware.targets import Target
from basedsl_cute.lowering.host.launch import lower_launch
from basedsl_cute.lowering.kernel.rules import LowerCute
from basedsl_cute.lowering.loops.loop_pipeline import pipeline_loops

_MACHINE_CODE = frozenset(("all", "cubin", "resources", "sass"))


@dataclass(frozen=True)
class KernelOptions:
    """The options of compiling kernels for a GPU. `ptxas` are further arguments of ptxas,
    `libraries` files that kernels are linked with; `sass` are arguments of nvdisasm, None if
    machine code is not shown as text. A dry run wants `machine_code` only to keep it.
    """

    assertions: bool = False
    line_info: bool = False
    opt_level: int = 3
    ptxas: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()
    sass: str | None = None
    machine_code: bool = True

    @classmethod
    def of(cls, settings: CuteOptions) -> KernelOptions:
        """Select the options of kernels from the user's."""
        return cls(
            assertions=settings.enable_assertions,
            line_info=settings.lineinfo,
            opt_level=settings.opt_level,
            ptxas=_ptxas_arguments(settings),
            libraries=settings.link_libraries,
            sass=settings.nvdisasm_options if "sass" in settings.keep else None,
            machine_code=not settings.dryrun or not _MACHINE_CODE.isdisjoint(settings.keep),
        )


def _ptxas_arguments(settings: CuteOptions) -> tuple[str, ...]:
    """The user's arguments of ptxas, and the level of optimisation unless they say one; ptxas has 3
    by itself.
    """
    given = tuple(shlex.split(settings.ptxas_options))
    says = any(word.startswith(("-O", "--opt-level")) for word in given)
    return given if says or settings.opt_level == 3 else (f"-O{settings.opt_level}", *given)


def gpu_pipeline(target: Target, options: KernelOptions = KernelOptions()) -> Pipeline:
    """Compile kernels to PTX and machine code, and host code to native code that launches them.

    Without ptxas the kernels end as PTX, which the driver compiles when it loads them. ptxas runs
    in a process of its own: the step `ptx` starts it and `cubin` waits for it, and host code is
    compiled meanwhile.
    """
    # The simulator's pipeline does without these.
    from basedsl_cute.lowering.ptx import ptxas
    from basedsl_cute.lowering.ptx.codegen import LINE_TABLES, TO_NVVM, Assemble, EmitPTX
    from basedsl_cute.lowering.ptx.link import bitcode_of, check_libraries, linked_of
    from basedsl_cute.lowering.ptx.ptx_only import PtxOnly

    check_libraries(options.libraries)
    linked, bitcode = linked_of(options.libraries), bitcode_of(options.libraries)
    assemble = Assemble(target, options.line_info, options.ptxas, linked)
    has_ptxas = options.machine_code and ptxas.find_ptxas() is not None
    emit = EmitPTX(target, options.opt_level, assemble if has_ptxas else None, bitcode)
    return Pipeline(
        "cute-to-nvvm",
        (
            # Loops with prefetch_stages=: issue the loads of later iterations ahead.
            Step("pipeline-loops", pipeline_loops),
            # cute -> scf, arith, math, vector, llvm, nvvm, gpu
            Step("lower-cute", LowerCute(target.name)),
            # The kernels' parameters and shared memory, for the launcher.
            Step("launches", launch_records),
            # Math, narrow floats and cache operators -> PTX instructions that NVVM has no op for.
            Step("ptx-only", PtxOnly(target, options.assertions)),
            # -> llvm and nvvm
            Step("nvvm", TO_NVVM + LINE_TABLES if options.line_info else TO_NVVM),
            Step("ptx", emit, verify=False, suffix=".ptx"),
            # Launches in host code -> calls of the launcher; then host code -> native code.
            Step("host", lower_launch),
            *_host_steps(options.opt_level),
            *_when(
                has_ptxas,
                Step("cubin", assemble, verify=False, suffix=".cubin"),
                Step("resources", resource_report, suffix=".txt"),
            ),
            *(_machine_code_text(options.sass) if has_ptxas and options.sass is not None else ()),
        ),
        input="cute",
    )


def _machine_code_text(arguments: str) -> tuple[Step, ...]:
    from basedsl_cute.lowering.ptx.sass import Disassemble  # few ask for it

    return (Step("sass", Disassemble(arguments), verify=False, suffix=".sass"),)


def simulator_pipeline(target: Target, opt_level: int = 2) -> Pipeline:
    """Compile kernels to Python for the CPU simulator, and host code to native code that launches
    them.
    """
    return Pipeline(
        "cute-to-sim",
        (
            # Loops with prefetch_stages=: issue the loads of later iterations ahead.
            Step("pipeline-loops", pipeline_loops),
            # cute -> scf, arith, math, vector, llvm, nvvm, gpu
            Step("lower-cute", LowerCute(target.name)),
            # The kernels' parameters and shared memory, for the launcher.
            Step("launches", launch_records),
            # Kernels -> plain records -> Python source of the simulator.
            Step("kernels", simulator_records),
            Step("programs", simulator_programs),
            # Launches in host code -> calls of the launcher; then host code -> native code.
            Step("host", lower_launch),
            *_host_steps(opt_level),
        ),
        input="cute",
    )


def _host_steps(opt_level: int) -> tuple[Step, ...]:
    # Host code gains nothing from LLVM's O3, which takes longer.
    return native_steps(NativeTarget(min(opt_level, 2)))


def _when(condition: bool, *steps: Step) -> tuple[Step, ...]:
    return steps if condition else ()
