"""Rules of NVVM's arithmetic, conversions and hints.

Approximate functions give the exact result rounded once.
"""

from __future__ import annotations

from basedsl_cute.sim.errors import MissingRuleError
from basedsl_cute.sim.machine import guards, register_pool
from basedsl_cute.sim.translate.emitter import PythonEmitter
from basedsl_cute.sim.translate.records import Op
from basedsl_cute.sim.translate.rule_table import nvidia_rule

_TO_NEAREST = ("", "none", "rn", "default")


def _rounding(op: Op) -> None:
    mode = op.word("rnd")
    if mode not in _TO_NEAREST:
        raise MissingRuleError(op.site, f"with rounding mode {mode}")


def _flushed(op: Op, refs: list[str], template: str) -> str:
    """Fill `template` with `refs`; with `ftz`, subnormal inputs and results become zero."""
    if not op.flag("ftz"):
        return template.format(*refs)
    return f"num.flush({template.format(*(f'num.flush({r})' for r in refs))})"


_ARITHMETIC = {
    "nvvm.addf": "{0} + {1}",
    "nvvm.subf": "{0} - {1}",
    "nvvm.fma": "num.fma({0}, {1}, {2})",
}


@nvidia_rule(*_ARITHMETIC)
def _float_op(e: PythonEmitter, op: Op) -> None:
    _rounding(op)
    for flag in ("relu", "oob"):
        if op.flag(flag):
            raise MissingRuleError(op.site, f"with {flag}")
    expression = _flushed(op, e.refs(op), _ARITHMETIC[op.name])
    if op.word("sat") == "sat":
        expression = f"num.clamp_unit({expression})"
    e.let(op.results[0], expression)


_UNARY = {
    "nvvm.ex2": "num.in_f32(np.exp2, {0})",
    "nvvm.log2": "num.in_f32(np.log2, {0})",
    "nvvm.sin": "num.in_f32(np.sin, {0})",
    "nvvm.cos": "num.in_f32(np.cos, {0})",
}


@nvidia_rule(*_UNARY)
def _unary(e: PythonEmitter, op: Op) -> None:
    e.let(op.results[0], _flushed(op, e.refs(op), _UNARY[op.name]))


@nvidia_rule("nvvm.rcp.approx.ftz.f")
def _rcp(e: PythonEmitter, op: Op) -> None:
    e.let(op.results[0], f"num.flush(f32(1) / num.flush({e.ref(op.operands[0])}))")


@nvidia_rule("nvvm.convert.float.to.tf32")
def _to_tf32(e: PythonEmitter, op: Op) -> None:
    """Round a float32 to the bits of a tf32; `rna` rounds halves away from zero."""
    mode = op.word("rnd", "rna")
    if mode not in ("rn", "rna"):
        raise MissingRuleError(op.site, f"with rounding mode {mode}")
    function = "to_tf32" if mode == "rn" else "to_tf32_away"
    e.let(op.results[0], f"num.{function}({e.ref(op.operands[0])}).view(i32)")


@nvidia_rule("nvvm.prmt")
def _prmt(e: PythonEmitter, op: Op) -> None:
    """Pick bytes of a register pair by a selector, in the default mode (PTX ISA, prmt)."""
    if op.word("mode", "default") != "default":
        raise MissingRuleError(op.site, f"in mode {op.word('mode')}")
    e.let(op.results[0], "num.permute_bytes({}, {}, {})".format(*e.refs(op)))


@nvidia_rule("nvvm.setmaxregister", sync="warp")
def _setmaxregister(e: PythonEmitter, op: Op) -> None:
    e.globals["register_pool"] = register_pool
    count = op.integer("regCount")
    e.wait(f"register_pool.set_max_registers(g, {count}, {e.mask}, {e.at()}, {e.branch()})")


@nvidia_rule("nvvm.griddepcontrol")
def _griddepcontrol(e: PythonEmitter, op: Op) -> None:
    """Kernels run one after another, so this only records that the kernel waits."""
    if op.word("kind") == "wait":
        e.globals["guards"] = guards
        e.line("guards.end_dependency(g.launch)")


@nvidia_rule("nvvm.nanosleep", "nvvm.pmevent", "nvvm.prefetch")
def _hint(e: PythonEmitter, op: Op) -> None:
    """Timing and resources only."""
