"""Launching kernels from @jit functions: `kernel(args).launch(grid=..., block=...)`."""

from __future__ import annotations

import contextlib
import inspect
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Never, NoReturn

from basedsl import (
    DSLAttributeError,
    DSLCallError,
    DSLFunction,
    DSLTypeError,
    Each,
    Int32,
    Numeric,
    Span,
    closest_name,
    current_trace,
    is_dynamic,
    trace_kernel,
    user_span,
    with_article,
)
from basedsl_cute.dialect.attributes import (
    CARVEOUT_ATTRIBUTE,
    COOPERATIVE_ATTRIBUTE,
    EVENTS_ATTRIBUTE,
    MERGED_BRANCHES_ATTRIBUTE,
    PDL_ATTRIBUTE,
    PREFERRED_CLUSTER_ATTRIBUTE,
    SMEM_IS_TOTAL_ATTRIBUTE,
)
from basedsl_cute.dialect.cute_trace import cute_trace
from basedsl_cute.hardware.launch_limits import (
    LaunchLimits,
    LaunchProblem,
    launch_problem,
    three_extents,
)
from basedsl_cute.hardware.targets import MAX_BLOCKS_PER_SM, MAX_THREADS_PER_BLOCK
from basedsl_cute.host.debug_points import debug_points
from basedsl_cute.host.event import event_value
from basedsl_cute.host.stream import stream_value

MODULE = "kernels"


class KernelCall:
    """A kernel with its arguments, on which the program calls `launch`."""

    __dsl_leaf__ = True

    def __init__(self, kernel: DSLFunction, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.kernel = kernel
        self.values = kernel.signature.bind(args, kwargs)
        self.span = user_span()
        self.launched = False
        cute_trace(current_trace("a kernel")).kernel_calls.append(self)

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise DSLCallError(
            f"{self.kernel.__name__}(...) already has its arguments: launch it",
            hint="kernel(a, b).launch(grid=(n, 1, 1), block=(128, 1, 1))",
        )

    if not TYPE_CHECKING:  # a type checker reports attributes that do not exist

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("__"):
                raise AttributeError(name)
            raise DSLAttributeError(
                f"{self.kernel.__name__}(...) is a kernel with its arguments: it has no '{name}'",
                hint=f"{self.kernel.__name__}(...).launch(grid=(n, 1, 1), block=(128, 1, 1))",
            )

    def launch(
        self,
        *positional: Never,
        grid: Any = None,
        block: Any = None,
        cluster: Sequence[int] | None = None,
        smem: Any = None,
        stream: Any = None,
        max_number_threads: Sequence[int] | None = None,
        min_blocks_per_mp: int = 0,
        use_pdl: bool = False,
        cooperative: bool = False,
        preferred_smem_carveout: int | None = None,
        fallback_cluster: Sequence[int] | None = None,
        smem_merge_branch_allocs: bool = False,
        hint_smem_base_uniform: bool = True,
        launch_completion_event: Any = None,
        launch_completion_event_flags: int = 0,
        programmatic_event: Any = None,
        programmatic_event_flags: int = 0,
        programmatic_event_trigger_at_block_start: Any = 0,
        **unknown: Never,
    ) -> None:
        """Launch the kernel on `grid` blocks of `block` threads, each one to three integers.

        `cluster`: the static shape of clusters in blocks (sm_90 and later).
        `smem`: bytes of shared memory of a block, at least what the kernel allocates (the default).
        `stream`: a CUDA stream; by default the default stream.
        `max_number_threads`: up to three static integers, whose product bounds the threads of a
        block for register allocation, instead of the block's exact size.
        `min_blocks_per_mp`: blocks on one multiprocessor for which registers must suffice.
        `use_pdl`: programmatic dependent launch: the kernel may start before its predecessor ends,
        and waits in `griddepcontrol_wait`.
        `cooperative`: all blocks run at once, or the launch fails.
        `preferred_smem_carveout`: the percentage of the L1 cache to use as shared memory, a hint.
        `launch_completion_event`: a CUDA event that fires when all blocks have begun.
        `programmatic_event`: an event that fires when all blocks have triggered it: by
        `griddepcontrol_launch_dependents`, or by starting, with
        `programmatic_event_trigger_at_block_start`. `..._flags` are those of
        cuEventRecordWithFlags.
        `fallback_cluster`: the shape of clusters where one of the shape `cluster` finds no room,
        which it divides in x and y (sm_100). The kernel asks `block_in_cluster_dim()` which it got:
        on the simulator every second place of a large one has small ones.
        `smem_merge_branch_allocs`: what the two branches of an `if` allocate lies in the same
        shared memory; all threads of the block then take the same branch.
        `hint_smem_base_uniform` has no effect.

        Raises DSLCallError for a missing `grid` or `block` and for sizes over the target's limits,
        DSLTypeError for sizes that are not integers.
        """
        if positional:
            raise DSLCallError(
                "launch() takes its extents by name",
                hint="launch(grid=(blocks, 1, 1), block=(threads, 1, 1))",
            )
        _check_named(unknown, grid, block)
        trace = current_trace("launching a kernel")
        span = user_span()
        self.launched = True
        grid3 = _extents(grid, "grid", span)
        block3 = _extents(block, "block", span)
        cluster3 = None if cluster is None else _cluster(cluster, span)
        preferred = None
        if fallback_cluster is not None:
            preferred, cluster3 = cluster3, _cluster(fallback_cluster, span)
            _check_fallback(preferred, cluster3, grid3, span)
        grid_known, block_known = map(_known, (grid3, block3))
        problem = launch_problem(LaunchLimits(), grid_known, block_known, cluster3)
        if problem is not None:
            raise DSLCallError(problem.message, span, hint=problem.hint)
        attributes = _kernel_attributes(
            trace,
            None if None in block_known else block3,
            cluster3,
            max_number_threads,
            min_blocks_per_mp,
            preferred_smem_carveout,
        )
        ir = trace.ir
        if preferred is not None:  # the kernel is compiled for no shape of clusters
            attributes.pop("nvvm.cluster_dim")
            attributes[PREFERRED_CLUSTER_ATTRIBUTE] = ir.DenseI32ArrayAttr.get(preferred)
        if smem_merge_branch_allocs:
            attributes[MERGED_BRANCHES_ATTRIBUTE] = ir.UnitAttr.get()
        flags = {COOPERATIVE_ATTRIBUTE: cooperative, PDL_ATTRIBUTE: use_pdl}
        flags[SMEM_IS_TOTAL_ATTRIBUTE] = smem is not None
        trigger = bool(programmatic_event_trigger_at_block_start)
        events = {
            "completion_event": (launch_completion_event, launch_completion_event_flags),
            "programmatic_event": (programmatic_event, programmatic_event_flags | trigger << 32),
        }
        # A `with` of host code, such as a profiler's range, says nothing about the kernel.
        with trace.allowing():
            name, operands = _trace_kernel(trace, self, attributes, span)
            _emit_launch(
                trace, name, grid3, block3, cluster3, smem, stream, operands, flags, events
            )


def _cluster(given: Any, span: Span | None) -> list[int]:
    extents = _extents(given, "cluster", span)
    if any(is_dynamic(n) for n in extents):
        raise DSLTypeError(
            "the shape of a cluster is static: the kernel is compiled for it",
            span,
            hint="pass it as a Constexpr",
        )
    return extents


def _check_fallback(
    preferred: list[int] | None, fallback: list[int], grid: list[Any], span: Span | None
) -> None:
    """Raise DSLCallError unless clusters of the fallback shape fill a preferred one."""
    if preferred is None:
        raise DSLCallError(
            "fallback_cluster= needs cluster=, the shape that is preferred",
            span,
            hint="launch(cluster=(4, 2, 1), fallback_cluster=(2, 1, 1))",
        )
    if fallback[2] != preferred[2] or any(p % f for p, f in zip(preferred, fallback, strict=True)):
        raise DSLCallError(
            f"fallback_cluster={tuple(fallback)} does not divide cluster={tuple(preferred)}",
            span,
            notes=(("it divides x and y, and z is the same", None),),
        )
    problem = launch_problem(LaunchLimits(), _known(grid), [1, 1, 1], preferred)
    if problem is not None:
        raise DSLCallError(problem.message, span, hint=problem.hint)


def _known(extents: list[Any]) -> list[int | None]:
    return [None if is_dynamic(n) else n for n in extents]


def check_launched(trace: Any) -> None:
    """Raise DSLCallError for a kernel that was called but not launched: it would never run."""
    for call in cute_trace(trace).kernel_calls:
        if not call.launched:
            raise DSLCallError(
                f"the kernel '{call.kernel.fn.__qualname__}' is called and never launched",
                call.span,
                hint="write kernel(...).launch(grid=..., block=...)",
            )


# CUDA's and Triton's words for arguments of a launch.
_OTHER_WORDS = {
    "shared": "smem", "shared_mem": "smem", "sharedmem": "smem", "shared_memory": "smem",
    "smem_bytes": "smem", "griddim": "grid", "blockdim": "block", "gridDim": "grid",
    "blockDim": "block",
}  # fmt: skip


def _check_named(unknown: dict[str, Any], grid: Any, block: Any) -> None:
    parameters = inspect.signature(KernelCall.launch).parameters
    known = [name for name in parameters if name not in ("self", "positional", "unknown")]
    for name in unknown:
        near = _OTHER_WORDS.get(name) or closest_name(name, known)
        raise DSLCallError(
            f"launch() has no argument '{name}'",
            hint=f"did you mean {near}=?" if near else "it needs grid= and block=",
        )
    for name, value in (("grid", grid), ("block", block)):
        if value is None:
            raise DSLCallError(
                f"launch() needs {name}=", hint="launch(grid=(blocks, 1, 1), block=(threads, 1, 1))"
            )


def _extents(given: Any, name: str, span: Span | None) -> list[Any]:
    """Return three extents, the static ones as ints."""
    extents = three_extents(name, given, _is_integer)
    if isinstance(extents, LaunchProblem):
        raise DSLTypeError(extents.message, span, hint=extents.hint)
    return [x if is_dynamic(x) else int(x) for x in extents]


def _is_integer(value: Any) -> bool:
    return bool(type(value).is_integer) if isinstance(value, Numeric) else type(value) is int


def _kernel_attributes(
    trace: Any,
    block: list[int] | None,
    cluster: list[Any] | None,
    most_threads: Sequence[int] | None,
    min_blocks: int,
    carveout: int | None,
) -> dict[str, Any]:
    """Return the kernel attributes that the launch implies, as MLIR's NVVM dialect names them."""
    _check_bounds(most_threads, min_blocks, carveout)
    ir = trace.ir
    attributes: dict[str, Any] = {}
    bounded = most_threads is not None and any(most_threads)
    if block is not None and not bounded:
        attributes["known_block_size"] = ir.DenseI32ArrayAttr.get(block)
    if cluster is not None:
        attributes["nvvm.cluster_dim"] = ir.DenseI32ArrayAttr.get(cluster)
    if bounded:
        assert most_threads is not None
        most = math.prod(n or 1 for n in most_threads)
        if block is not None and math.prod(block) > most:
            raise DSLCallError(
                f"block={tuple(block)} has more threads than max_number_threads="
                f"{tuple(most_threads)}",
                user_span(),
            )
        attributes["nvvm.maxntid"] = ir.DenseI32ArrayAttr.get([*most_threads, 1, 1][:3])
    if min_blocks:
        i32 = ir.IntegerType.get_signless(32)
        attributes["nvvm.minctasm"] = ir.IntegerAttr.get(i32, min_blocks)
    if carveout is not None:
        i64 = ir.IntegerType.get_signless(64)
        attributes[CARVEOUT_ATTRIBUTE] = ir.IntegerAttr.get(i64, carveout + 1)
    return attributes


def _check_bounds(
    most_threads: Sequence[int] | None, min_blocks: Any, carveout: int | None
) -> None:
    span = user_span()
    if type(min_blocks) is not int or not 0 <= min_blocks <= MAX_BLOCKS_PER_SM:
        raise DSLCallError(
            f"min_blocks_per_mp is a static integer, 0 to {MAX_BLOCKS_PER_SM}, not {min_blocks!r}",
            span,
        )
    if most_threads is not None:
        extents = list(most_threads)
        if not 1 <= len(extents) <= 3 or any(type(n) is not int or n < 0 for n in extents):
            raise DSLCallError(
                f"max_number_threads is up to three static integers, not {most_threads!r}", span
            )
        if math.prod(n or 1 for n in extents) > MAX_THREADS_PER_BLOCK:
            raise DSLCallError(
                f"max_number_threads={extents} is more than the {MAX_THREADS_PER_BLOCK} threads of "
                "a block",
                span,
            )
    if carveout is not None and (type(carveout) is not int or not 0 <= carveout <= 100):
        raise DSLCallError(
            f"preferred_smem_carveout is a static percentage, 0 to 100, not {carveout!r}", span
        )


def _trace_kernel(
    trace: Any, call: KernelCall, attributes: dict[str, Any], span: Span | None
) -> tuple[str, list[Any]]:
    """Trace the kernel into the module's gpu.module; return its symbol and the launch's
    operands.
    """
    ir = trace.ir
    kernel = call.kernel
    code = kernel.fn.__code__
    place = trace.loc_of_code(code)
    parameters: list[Any] = []

    @contextlib.contextmanager
    def opened(name: str, types: list[Any], passed: list[Any]) -> Iterator[Sequence[Any]]:
        with ir.InsertionPoint(_gpu_module(trace).regions[0].blocks[0]), place:
            every = {
                "function_type": ir.TypeAttr.get(ir.FunctionType.get(types, [])),
                "sym_name": ir.StringAttr.get(name),
                "gpu.kernel": ir.UnitAttr.get(),
                **attributes,
            }
            marks = _parameter_marks(ir, passed)
            if any(marks):
                every["arg_attrs"] = ir.ArrayAttr.get(marks)
            op = ir.Operation.create("gpu.func", attributes=every, regions=1)
            entry = op.regions[0].blocks.append(*types, arg_locs=[place] * len(types))
        parameters.extend(entry.arguments)
        with trace.insertion(entry):
            yield entry.arguments
            ir.Operation.create("gpu.return")

    pairs = zip(call.values, kernel.signature.parameters, strict=True)
    values = [v if p.is_constexpr else _declared(v, p) for v, p in pairs]
    on_simulator = not trace.language.target(trace.options).is_gpu
    with debug_points(kernel.fn, on_simulator):
        name, operands = trace_kernel(trace, kernel, values, opened, span=span)
    cute_trace(trace).kernel_operands += zip(parameters, operands, strict=True)
    return name, operands


def _parameter_marks(ir: Any, kinds: Sequence[Any]) -> list[Any]:
    """Return the attributes of the kernel's parameters, `parameter_marks` of the leaves'
    classes.
    """
    texts = [getattr(kind, "parameter_marks", {}) for kind in kinds]
    return [
        ir.DictAttr.get({name: ir.Attribute.parse(text) for name, text in marks.items()})
        for marks in texts
    ]


def _declared(value: Any, parameter: Any) -> Any:
    """Return the value, a Python number converted to a numeric annotation."""
    kind = parameter.annotation
    if isinstance(kind, Each):
        return kind.convert(value, _number)
    return _number(value, kind)


def _number(value: Any, kind: Any) -> Any:
    if isinstance(kind, type) and issubclass(kind, Numeric) and isinstance(value, int | float):
        return kind(value)
    return value


def _gpu_module(trace: Any) -> Any:
    record = cute_trace(trace)
    found = record.gpu_module
    if found is None:
        ir, module = trace.ir, trace.module
        module.operation.attributes["gpu.container_module"] = ir.UnitAttr.get()
        with ir.InsertionPoint.at_block_begin(module.body), ir.Location.unknown():
            named = {"sym_name": ir.StringAttr.get(MODULE)}
            found = ir.Operation.create("gpu.module", attributes=named, regions=1)
            found.regions[0].blocks.append()
        record.gpu_module = found
    return found


def _emit_launch(
    trace: Any,
    name: str,
    grid: list[Any],
    block: list[Any],
    cluster: list[Any] | None,
    smem: Any,
    stream: Any,
    operands: list[Any],
    flags: dict[str, bool],
    events: dict[str, tuple[Any, int]],
) -> None:
    ir = trace.ir
    index = ir.IndexType.get()

    def as_index(x: Any) -> Any:
        if not is_dynamic(x):
            return trace.emit_op("arith.constant", index, value=ir.IntegerAttr.get(index, int(x)))
        return trace.emit_op("arith.index_cast", index, x.ir_value())

    sizes = [as_index(x) for x in (*grid, *block, *(cluster or ()))]
    if not (smem is None or _is_integer(smem)):
        raise DSLTypeError(
            f"smem must be an integer, got {with_article(type(smem))}",
            hint="it is the bytes of shared memory of a block, at least what the kernel allocates",
        )
    if isinstance(smem, int) and smem < 0:
        raise DSLCallError(
            f"smem must be 0 or more bytes, got {smem}",
            hint="leave it out: without smem=, it is what the kernel allocates",
        )
    dynamic = [] if smem is None else [Int32(smem).ir_value()]
    on = [] if stream is None else [stream_value(stream)]
    clusters = [1, 1, 1] if cluster else [0, 0, 0]
    recorded = {name: (event, n) for name, (event, n) in events.items() if event is not None}
    token = ir.Type.parse("!gpu.async.token")
    tokens = [
        trace.emit_op("builtin.unrealized_conversion_cast", token, event_value(event))
        for event, _ in recorded.values()
    ]
    i64 = ir.IntegerType.get_signless(64)
    kept = {name: ir.IntegerAttr.get(i64, n) for name, (_, n) in recorded.items()}
    noted = {EVENTS_ATTRIBUTE: ir.DictAttr.get(kept)} if kept else {}
    segments = [len(tokens), *[1] * 6, *clusters, len(dynamic), len(operands), len(on)]
    symbol = ir.SymbolRefAttr.get([MODULE, name])
    ir.Operation.create(
        "gpu.launch_func",
        operands=[*tokens, *sizes, *dynamic, *operands, *on],
        attributes={
            "kernel": symbol,
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get(segments),
            **{flag: ir.UnitAttr.get() for flag, wanted in flags.items() if wanted},
            **noted,
        },
        loc=trace.loc(),
    )
