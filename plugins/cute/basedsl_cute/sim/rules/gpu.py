"""Rules of thread and block indices, and of printing."""

from __future__ import annotations

from collections.abc import Callable

from basedsl_cute.dialect.attributes import DEBUG_ATTRIBUTE
from basedsl_cute.sim.debugging import debugger
from basedsl_cute.sim.debugging.point import DebugPoint
from basedsl_cute.sim.errors import MissingRuleError
from basedsl_cute.sim.machine import printf
from basedsl_cute.sim.translate.emitter import PythonEmitter
from basedsl_cute.sim.translate.records import Op
from basedsl_cute.sim.translate.rule_table import always, never, nvidia_rule, per_block, rule
from basedsl_cute.sim.translate.types import IntType, element_type

_AXES = "xyz"


@rule("gpu.thread_id", uniform=never)
def _thread_id(e: PythonEmitter, op: Op) -> None:
    e.let(op.results[0], f"g.tid_index[{_AXES.index(op.word('dimension'))}]")


@rule("gpu.block_id", uniform=per_block)
def _block_id(e: PythonEmitter, op: Op) -> None:
    e.let(op.results[0], f"g.ctaid({_AXES.index(op.word('dimension'))}).astype(i64)")


@rule("gpu.block_dim", uniform=always)
def _block_dim(e: PythonEmitter, op: Op) -> None:
    e.let(op.results[0], f"i64(g.block_dim[{_AXES.index(op.word('dimension'))}])")


@rule("gpu.grid_dim", uniform=always)
def _grid_dim(e: PythonEmitter, op: Op) -> None:
    e.let(op.results[0], f"i64(g.grid_dim[{_AXES.index(op.word('dimension'))}])")


@rule("gpu.global_id", uniform=never)
def _global_id(e: PythonEmitter, op: Op) -> None:
    axis = _AXES.index(op.word("dimension"))
    block = f"g.ctaid({axis}).astype(i64) * g.block_dim[{axis}]"
    e.let(op.results[0], f"{block} + g.tid_index[{axis}]")


@rule("gpu.lane_id", uniform=never)
def _lane_id(e: PythonEmitter, op: Op) -> None:
    e.let(op.results[0], "g.shape.lane.astype(i64)")


@rule("gpu.subgroup_id", uniform=never)
def _subgroup_id(e: PythonEmitter, op: Op) -> None:
    e.let(op.results[0], "g.shape.warp.astype(i64)")


@rule("gpu.subgroup_size", uniform=always)
def _subgroup_size(e: PythonEmitter, op: Op) -> None:
    e.let(op.results[0], f"i64({e.machine.lanes})")


@rule("gpu.num_subgroups", uniform=always)
def _num_subgroups(e: PythonEmitter, op: Op) -> None:
    e.let(op.results[0], "i64(g.block.warps)")


@rule("gpu.printf")
def _printf(e: PythonEmitter, op: Op) -> None:
    """Each active lane prints, in lane order; a debug point may stop."""
    if DEBUG_ATTRIBUTE in op.attributes:
        e.globals["debugger"] = debugger
        point = e.const(DebugPoint.parse(op.string(DEBUG_ATTRIBUTE), op.site), "point")
        values = "".join(f"{e.ref(value)}, " for value in op.operands)
        e.line(f"debugger.reach(g, {point}, ({values}), {e.mask})")
        return
    e.globals["printf"] = printf.printf
    fmt = e.const(op.string("format"), f"format{op.site.span.line if op.site.span else ''}")
    args = "".join(f"{e.lanes(value)}, " for value in op.operands)
    widths = []
    for value in op.operands:
        type_ = element_type(value.type)
        widths.append(type_.width if isinstance(type_, IntType) else 64)
    e.line(f"printf(g, {fmt}, ({args}), {widths}, {e.mask})")


@nvidia_rule("llvm.call")
def _call(e: PythonEmitter, op: Op) -> None:
    """Only vprintf(format, buffer), the system call that CUDA's printf becomes."""
    name = op.attributes.get("callee", "").lstrip("@").strip('"')
    if name != "vprintf":
        raise MissingRuleError(op.site, f"to the external function '{name}', which is for GPUs")
    e.globals["vprintf"] = printf.vprintf
    fmt, buffer = (e.lanes(value) for value in op.operands)
    e.line(f"vprintf(g, {fmt}, {buffer}, {e.at()}, {e.mask})")
    for result in op.results:
        e.let(result, "num.spread(i32(1), lanes)" if e.varying(result) else "i32(1)")


# Special registers (PTX ISA, special registers) by name: expression, and when it is uniform.
_REGISTERS: dict[str, tuple[str, Callable[..., bool]]] = {
    "laneid": ("g.shape.lane", never),
    "warpid": ("g.shape.warp", never),
    "nwarpid": ("i32(g.block.warps)", always),
    "warpsize": ("i32(32)", always),
    "lanemask.eq": ("i32(1) << g.shape.lane", never),
    "lanemask.lt": ("(i32(1) << g.shape.lane) - i32(1)", never),
    "lanemask.le": ("((i32(1) << g.shape.lane) - i32(1)) | (i32(1) << g.shape.lane)", never),
    "lanemask.ge": ("i32(-1) << g.shape.lane", never),
    "lanemask.gt": ("(i32(-1) << g.shape.lane) << i32(1)", never),
    "smid": ("i32(0)", always),
    "nsmid": ("i32(1)", always),
    "gridid": ("i64(0)", always),
    "clock": ("i32(g.ticks() & 0x7FFFFFFF)", always),
    "clock64": ("i64(g.ticks())", always),
    "globaltimer": ("i64(g.ticks())", always),
    "dynamic.smem.size": ("i32(g.launch.dynamic_smem)", always),
    "total.smem.size": ("i32(g.launch.shared_size)", always),
    "aggr.smem.size": ("i32(g.launch.shared_size)", always),
    "cluster.ctarank": ("g.cluster_rank()", per_block),
    "cluster.nctarank": ("i32(np.prod(g.block.cluster.shape))", per_block),
}
for _i, _axis in enumerate(_AXES):
    _REGISTERS |= {
        f"tid.{_axis}": (f"g.tid[{_i}]", never),
        f"ctaid.{_axis}": (f"g.ctaid({_i})", per_block),
        f"ntid.{_axis}": (f"i32(g.block_dim[{_i}])", always),
        f"nctaid.{_axis}": (f"i32(g.grid_dim[{_i}])", always),
        f"clusterid.{_axis}": (f"g.ctaid({_i}) // i32(g.block.cluster.shape[{_i}])", per_block),
        f"nclusterid.{_axis}": (f"i32(g.grid_dim[{_i}] // g.launch.cluster[{_i}])", always),
        f"cluster.ctaid.{_axis}": (f"g.ctaid({_i}) % i32(g.block.cluster.shape[{_i}])", per_block),
        f"cluster.nctaid.{_axis}": (f"i32(g.block.cluster.shape[{_i}])", per_block),
    }


def _register(name: str, expression: str, uniform: Callable[..., bool]) -> None:
    @nvidia_rule(f"nvvm.read.ptx.sreg.{name}", uniform=uniform)
    def read_register(e: PythonEmitter, op: Op) -> None:
        (result,) = op.results
        if result not in e.uniformity.used:
            return
        if result in e.affine:
            kind, _, axis = name.partition(".")
            e.let(result, f"g.affine_{kind}({_AXES.index(axis) if axis else ''})")
            return
        dtype = e.dtype(result.type)
        wide = "i64" if "i64(" in expression else "i32"
        e.let(result, expression if dtype == wide else f"({expression}).astype({dtype})")


for _name, (_expression, _uniform) in _REGISTERS.items():
    _register(_name, _expression, _uniform)
