"""Roles of warps: uniform indices, one lane of a warp, registers moved between warpgroups.

PTX ISA 9.7.13.16 "elect.sync", 9.7.19.5 "setmaxnreg", 9.7.13.13 "griddepcontrol".
"""

from __future__ import annotations

from typing import Any

from basedsl import Boolean, DSLTypeError, Int32, as_numeric, current_trace, user_span
from basedsl_cute.algebra.ignored_location import takes_location
from basedsl_cute.arch.emit import emit_op, i32
from basedsl_cute.tensors.kernel_scope import in_kernel, kernel_operation


@takes_location
def make_warp_uniform(value: Any) -> Any:
    """Return the value of lane 0 of an integer that all lanes of the warp have.

    The shuffle tells the compiler that the value is uniform, so that branches on it do not
    diverge.
    """
    number = as_numeric(value)
    wanted = type(number)
    operands = [i32(-1), i32(number), i32(0), i32(31)]
    kind = {"kind": "#nvvm<shfl_kind idx>"}
    op = emit_op("make_warp_uniform()", "nvvm.shfl.sync", operands, ["i32"], kind)
    return Int32.from_value(op.result).to(wanted)


@takes_location
def elect_sync() -> Boolean:
    """Return True in exactly one lane of the warp (PTX `elect.sync`, sm_90).

    All 32 lanes of the warp must execute it.
    """
    return Boolean.from_value(emit_op("elect_sync()", "nvvm.elect.sync", results=["i1"]).result)


_ELECTED = "elect_one() block"


def _is_elected(region: Any) -> bool:
    while region is not None:
        if region.kind == _ELECTED:
            return True
        region = region.parent
    return False


class elect_one:
    """Run the block of a `with` statement in exactly one lane of the warp (PTX `elect.sync`,
    sm_90).

        with cute.arch.elect_one():
            cute.arch.mbarrier_init(barrier, 1)

    All 32 lanes of the warp must come to it. Values made in the block stay in it: its results are
    what it does to memory and barriers. Inside such a block another one has no effect.
    """

    __dsl_staged__ = True

    def __init__(self, *, loc: Any = None, ip: Any = None) -> None: ...

    def __enter__(self) -> None:
        trace = in_kernel("elect_one()")
        span = user_span()
        self._trace = None
        if _is_elected(trace.region):
            return
        chosen = elect_sync()
        ir = trace.ir
        self._trace = trace
        branch = trace.emit(ir.Operation.create, "scf.if", operands=[chosen.ir_value()], regions=2)
        self._insertion = trace.insertion(branch.regions[0].blocks.append())
        self._region = trace.inside(_ELECTED, span)
        self._insertion.__enter__()
        self._region.__enter__()

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if self._trace is None:
            return
        if kind is None:
            self._trace.ir.Operation.create("scf.yield", loc=self._trace.loc())
        self._region.__exit__(kind, error, traceback)
        self._insertion.__exit__(kind, error, traceback)


@takes_location
def setmaxregister_increase(reg_count: int) -> None:
    """Let each thread of this warpgroup have `reg_count` registers (PTX `setmaxnreg.inc`, sm_90a).

    It waits until other warpgroups have released enough. `reg_count` is a static multiple of 8
    from 24 to 256 (DSLTypeError otherwise); all warps of the warpgroup execute it.
    """
    _setmaxregister(reg_count, "increase")


@takes_location
def setmaxregister_decrease(reg_count: int) -> None:
    """Release registers of this warpgroup's threads, keeping `reg_count` each (PTX
    `setmaxnreg.dec`).

    For the parameter see `setmaxregister_increase`.
    """
    _setmaxregister(reg_count, "decrease")


warpgroup_reg_alloc = setmaxregister_increase
warpgroup_reg_dealloc = setmaxregister_decrease


def _setmaxregister(count: int, action: str) -> None:
    if type(count) is not int or not 24 <= count <= 256 or count % 8:
        raise DSLTypeError(f"a register count is a multiple of 8 from 24 to 256, not {count}")
    attributes = {"regCount": f"{count} : i32", "action": f"#nvvm<action {action}>"}
    what = f"setmaxregister_{action}()"
    emit_op(what, "nvvm.setmaxregister", attributes=attributes)
    # ptxas ignores the instruction where a bound on blocks does not tell it the registers at entry.
    kernel = kernel_operation(what)
    if "nvvm.minctasm" not in kernel.attributes:
        kernel.attributes["nvvm.minctasm"] = current_trace(what).ir.Attribute.parse("1 : i32")


@takes_location
def griddepcontrol_wait() -> None:
    """Wait until the grids that this one depends on are complete and their writes visible (sm_90).

    PTX `griddepcontrol.wait`, for a kernel launched with programmatic dependent launch.
    """
    _griddepcontrol("wait")


@takes_location
def griddepcontrol_launch_dependents() -> None:
    """Let the grids that depend on this one start (PTX `griddepcontrol.launch_dependents`,
    sm_90).
    """
    _griddepcontrol("launch_dependents")


def _griddepcontrol(kind: str) -> None:
    attributes = {"kind": f"#nvvm<grid_dep_action {kind}>"}
    emit_op(f"griddepcontrol_{kind}()", "nvvm.griddepcontrol", attributes=attributes)
