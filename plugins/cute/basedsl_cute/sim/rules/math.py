"""Rules of `math` and of LLVM's math intrinsics, at the precision of the operands.

float16 and bfloat16 compute in float32 and round once. Of fast-math flags, those of exp and exp2
flush subnormal results to zero, as the instruction does that they allow.
"""

from __future__ import annotations

from collections.abc import Callable

from basedsl_cute.sim.errors import MissingRuleError
from basedsl_cute.sim.rules.arith import int_type
from basedsl_cute.sim.translate.emitter import PythonEmitter
from basedsl_cute.sim.translate.records import Op
from basedsl_cute.sim.translate.rule_table import rule

# By name in `math`: the NumPy function of floats, and the LLVM intrinsic or None.
_FUNCTIONS = {
    "acos": ("np.arccos", "acos"),
    "acosh": ("np.arccosh", None),
    "asin": ("np.arcsin", "asin"),
    "asinh": ("np.arcsinh", None),
    "atan": ("np.arctan", "atan"),
    "atan2": ("np.arctan2", "atan2"),
    "atanh": ("np.arctanh", None),
    "cbrt": ("np.cbrt", None),
    "ceil": ("np.ceil", "ceil"),
    "cos": ("np.cos", "cos"),
    "cosh": ("np.cosh", "cosh"),
    "erf": ("num.erf", None),
    "erfc": ("num.erfc", None),
    "exp": ("np.exp", "exp"),
    "exp2": ("np.exp2", "exp2"),
    "expm1": ("np.expm1", None),
    "floor": ("np.floor", "floor"),
    "log": ("np.log", "log"),
    "log10": ("np.log10", "log10"),
    "log1p": ("np.log1p", None),
    "log2": ("np.log2", "log2"),
    "powf": ("np.power", "pow"),
    "round": ("num.round_away", "round"),
    "roundeven": ("np.rint", "roundeven"),
    "rsqrt": ("num.rsqrt", None),
    "sin": ("np.sin", "sin"),
    "sinh": ("np.sinh", "sinh"),
    "sqrt": ("np.sqrt", "sqrt"),
    "tan": ("np.tan", "tan"),
    "tanh": ("np.tanh", "tanh"),
    "trunc": ("np.trunc", "trunc"),
}
_MORE_NAMES = {"roundeven": ("rint", "nearbyint"), "exp": (), "exp2": ()}


def _function(name: str) -> Callable[[PythonEmitter, Op], None]:
    def emit_function(e: PythonEmitter, op: Op) -> None:
        value = f"num.in_f32({name}, {', '.join(e.refs(op))})"
        fast = op.attributes.get("fastmath", "")
        flushes = op.name in ("math.exp", "math.exp2") and ("afn" in fast or "fast>" in fast)
        e.let(op.results[0], f"num.flush({value})" if flushes else value)

    return emit_function


for _name, (_numpy, _llvm) in _FUNCTIONS.items():
    _others = ([_llvm] if _llvm else []) + list(_MORE_NAMES.get(_name, ()))
    rule(f"math.{_name}", *(f"llvm.intr.{other}" for other in _others))(_function(_numpy))
rule("llvm.intr.exp10")(_function("num.exp10"))


_TEMPLATES = {
    ("math.absf", "llvm.intr.fabs"): "num.absolute({0})",
    ("math.copysign", "llvm.intr.copysign"): "num.copysign({0}, {1})",
    ("math.fma", "llvm.intr.fma", "llvm.intr.fmuladd"): "num.fma({0}, {1}, {2})",
    ("math.clampf",): "num.minimum(num.maximum({0}, {1}), {2})",
    ("math.isnan",): "np.isnan({0})",
    ("math.isinf",): "np.isinf({0})",
    ("math.isfinite",): "np.isfinite({0})",
    ("math.isnormal",): "num.is_normal({0})",
    ("math.fpowi", "llvm.intr.powi"): "num.in_f32(num.float_power, {0}, {1})",
}


def _template(text: str) -> Callable[[PythonEmitter, Op], None]:
    def emit_template(e: PythonEmitter, op: Op) -> None:
        e.let(op.results[0], text.format(*e.refs(op)))

    return emit_template


for _names, _text in _TEMPLATES.items():
    rule(*_names)(_template(_text))


@rule("math.sincos")
def _sincos(e: PythonEmitter, op: Op) -> None:
    for function, result in zip(("np.sin", "np.cos"), op.results, strict=True):
        e.let(result, f"num.in_f32({function}, {e.ref(op.operands[0])})")


# Integers --------------------------------------------------------------------------------------

_INTEGER = {
    ("math.absi", "llvm.intr.abs"): "np.abs({0})",
    ("math.ctlz", "llvm.intr.ctlz"): "num.leading_zeros({0})",
    ("math.cttz", "llvm.intr.cttz"): "num.trailing_zeros({0})",
    ("math.ctpop", "llvm.intr.ctpop"): "num.popcount({0})",
    ("math.ipowi",): "num.int_power({0}, {1})",
    ("llvm.intr.bitreverse",): "num.reverse_bits({0})",
    ("llvm.intr.bswap",): "{0}.byteswap()",
}


def _integer(text: str) -> Callable[[PythonEmitter, Op], None]:
    def emit_integer(e: PythonEmitter, op: Op) -> None:
        type_ = int_type(op.results[0])
        if not type_.native:
            raise MissingRuleError(op.site, f"on {type_}")
        e.let(op.results[0], text.format(*e.refs(op)))

    return emit_integer


for _names, _text in _INTEGER.items():
    rule(*_names)(_integer(_text))
