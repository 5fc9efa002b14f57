"""The steps `ptx` and `cubin`: LLVM makes PTX of kernels in this process, ptxas machine code."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from basedsl import (
    CompilerBug,
    DSLError,
    DSLRuntimeError,
    LLVMFatalError,
    PipelineContext,
    Span,
    catching_fatal_errors,
    span_of_location,
)
from basedsl_cute.hardware.targets import Target
from basedsl_cute.lowering.kernel_build import kernel_build
from basedsl_cute.lowering.ptx import ptxas
from basedsl_cute.lowering.ptx.link import link
from basedsl_cute.lowering.ptx.ptx_only import restore_parameters

# One pass takes arith, cf, gpu, math (as libdevice calls) and vector to llvm and nvvm, the next
# turns nvvm ops without an intrinsic into inline PTX. LLVM itself is faster at what `canonicalize`
# and `cse` would do here, and makes the same PTX.
TO_NVVM = (
    "gpu.module("
    "convert-scf-to-cf,"
    "convert-gpu-to-nvvm,"
    "convert-nvvm-to-llvm,"
    "reconcile-unrealized-casts)"
)


# Directives only: with full tables ptxas would make a debug build, and optimise nothing.
LINE_TABLES = ",ensure-debug-info-scope-on-llvm-func{emission-kind=DebugDirectivesOnly}"


@dataclass(frozen=True)
class Assemble:
    """The step `cubin`: PTX text -> machine code. What ptxas reports is left in the `KernelBuild`.

    ptxas is a process of its own and has been started by the step `ptx`; this step waits for it,
    so steps for the host's code put between the two cost no time.
    """

    target: Target
    line_info: bool = False
    options: tuple[str, ...] = ()
    libraries: tuple[str, ...] = ()

    def start(self, ptx: str, context: PipelineContext) -> None:
        """Start ptxas on `ptx`."""
        kernel_build(context).ptxas = ptxas.start(
            ptx, self.target.name, line_info=self.line_info, options=self._options
        )

    @property
    def _options(self) -> tuple[str, ...]:
        return (*self.options, "-c") if self.libraries else self.options

    def __call__(self, op: Any, context: PipelineContext) -> bytes:
        build = kernel_build(context)
        ptx = context.artifacts["ptx"]
        if not ptx:
            build.assembly = ptxas.Assembly(b"", {}, ())
            return b""
        if build.ptxas is None or build.ptxas.ptx != ptx:  # someone has put other PTX in its place
            self.start(ptx, context)
        running, build.ptxas = build.ptxas, None
        assert running is not None
        try:
            build.assembly = running.finish()
            if self.libraries:
                build.assembly = link(build.assembly, self.libraries, self.target.name)
        except ptxas.UndefinedFunction as error:
            span = _call_of(error.name, context)
            raise ptxas.UndefinedFunction(error.name, span or error.span, error.named_by) from None
        except DSLError as error:
            raise self._located(error, context) from None
        return build.assembly.cubin

    def _located(self, error: DSLError, context: PipelineContext) -> DSLError:
        """Locate an error of ptxas: compile again with line tables, to find the Python line that
        the refused PTX came from and the calls that led there.
        """
        emit, lowered = kernel_build(context).emitted or (None, None)
        if emit is None or lowered is None or self.line_info or self.libraries:
            return error
        bindings = context.bindings
        module = bindings.ir.Module.parse(lowered.data)
        manager = bindings.passmanager.PassManager.parse(f"builtin.module({LINE_TABLES[1:]})")
        manager.run(module.operation)
        ptx = emit(module.operation, context)
        again = ptxas.start(ptx, self.target.name, line_info=True, options=self.options)
        try:
            again.finish()
        except DSLError as located:
            if located.span is not None:
                span = _with_calls(located.span, module.operation, bindings.ir)
                return DSLError(error.message, span, error.hint)
        return error


def _call_of(name: str, context: PipelineContext) -> Span | None:
    """Find the Python line that calls the function `name` in a kernel."""
    _, lowered = kernel_build(context).emitted or (None, None)
    if lowered is None:
        return None
    ir = context.bindings.ir
    found: list[Span | None] = []

    def visit(op: Any) -> Any:
        if op.name == "llvm.call" and str(op.attributes["callee"]) == f"@{name}":
            found.append(span_of_location(op.location))
            return ir.WalkResult.INTERRUPT
        return ir.WalkResult.ADVANCE

    module = ir.Module.parse(lowered.data)
    module.operation.walk(visit)
    return found[0] if found else None


def _with_calls(span: Span, module: Any, ir: Any) -> Span:
    """Complete the calls of `span`, of which a line table gives at most the nearest, by those of
    the first operation with that location.
    """
    found: list[Span] = []

    def visit(op: Any) -> Any:
        place = span_of_location(op.location)
        same = place is not None and _point(place) == _point(span)
        if (
            place is not None
            and same
            and set(map(_point, span.callers)) <= set(map(_point, place.callers))
        ):
            found.append(place)
            return ir.WalkResult.INTERRUPT
        return ir.WalkResult.ADVANCE

    module.walk(visit, ir.WalkOrder.PRE_ORDER)
    return found[0] if found else span


def _point(span: Span) -> tuple[str, int, int]:
    return span.filename, span.line, span.col


@dataclass(frozen=True)
class EmitPTX:
    """The step `ptx`: the gpu.module -> PTX text, through MLIR's `gpu-module-to-binary`.

    libdevice is linked if the kernels call it (15 ms). Neither LLVM nor ptxas contracts products
    and sums (`mul.rn`, `add.rn`): that is decided while tracing (`basedsl.numeric.contraction`).
    With `assemble`, ptxas is started on the text.
    """

    target: Target
    opt_level: int = 3
    assemble: Assemble | None = None
    bitcode: tuple[str, ...] = ()

    def __call__(self, op: Any, context: PipelineContext) -> str:
        bindings = context.bindings
        features = self.target.features(kernel_build(context).ptx_version)
        options = f"chip={self.target.name} features={features} O={self.opt_level}"
        bitcode = [*self.bitcode, *([str(_libdevice())] if _calls_libdevice(op) else ())]
        if bitcode:
            options += f" l={','.join(bitcode)}"
        manager = bindings.passmanager.PassManager.parse(
            f"builtin.module(nvvm-attach-target{{{options}}},gpu-module-to-binary{{format=isa}})"
        )
        copy = op.clone()
        restore_parameters(copy)
        manager.enable_verifier(False)
        self._run(manager, copy, context)
        texts = []
        for inner in copy.regions[0].blocks[0].operations:
            if inner.operation.name == "gpu.binary":
                objects = bindings.ir.ArrayAttr(inner.attributes["objects"])
                texts += [bindings.gpu.ObjectAttr(o).object.decode() for o in objects]
        if not texts:  # host code that launches nothing
            return ""
        if len(texts) > 1:
            raise CompilerBug(f"expected one gpu.module, found {len(texts)}")
        ptx: str = texts[0].rstrip("\0")
        if self.assemble is not None:
            emit = dataclasses.replace(self, assemble=None)
            kernel_build(context).emitted = emit, context.input
            self.assemble.start(ptx, context)
        return ptx

    def _run(self, manager: Any, op: Any, context: PipelineContext) -> None:
        def work() -> None:
            with context.mlir.current_in_this_thread():
                manager.run(op.operation)

        try:
            catching_fatal_errors(context.bindings, work)
        except LLVMFatalError as error:
            reason = str(error)
            raise CompilerBug(
                f"LLVM cannot compile this kernel for {self.target.name}: {reason.splitlines()[0]}",
                _blamed(op, context.bindings.ir, reason),
                hint=f"look for what {self.target.name} does not have; if there is nothing, "
                "please report it",
            ) from None


_INTRINSIC = re.compile(r"llvm\.(nvvm\.[\w.]+)")


def _blamed(op: Any, ir: Any, reason: str) -> Span | None:
    """Find the Python line of the operation whose intrinsic LLVM names, or of the first kernel."""
    named = _INTRINSIC.search(reason)
    found: list[Any] = []
    kernels: list[Any] = []

    def visit(inner: Any) -> Any:
        if inner.name == "llvm.func" and inner.regions[0].blocks:
            kernels.append(inner)
        elif named is not None and named[1].startswith(inner.name):
            found.append(inner)
        return ir.WalkResult.ADVANCE

    op.walk(visit)
    return span_of_location((found or kernels)[0].location) if found or kernels else None


def _calls_libdevice(op: Any) -> bool:
    return any(
        str(one.attributes["sym_name"].value).startswith("__nv_")
        for module in op.regions[0].blocks[0].operations
        if module.operation.name == "gpu.module"
        for one in module.operation.regions[0].blocks[0].operations
        if one.operation.name == "llvm.func"
    )


def _libdevice() -> Path:
    found = ptxas.find_libdevice()
    if found is None:
        raise DSLRuntimeError(
            "this kernel needs CUDA's math library, and libdevice.10.bc is not to be found",
            hint="pip install 'basedsl-cute[cuda]', or set CUDA_HOME to a CUDA toolkit",
        )
    return found
