"""Rules of `arith` and of the LLVM ops that mean the same, elementwise on scalars and vectors.

Shift amounts at or above the width give 0 (or the sign), as PTX shl and shr do (PTX ISA, logic and
shift instructions); float to integer conversion saturates as cvt.rzi does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from basedsl_cute.sim.errors import MissingRuleError
from basedsl_cute.sim.translate.attributes import parse_constant
from basedsl_cute.sim.translate.emitter import PythonEmitter
from basedsl_cute.sim.translate.records import Op, Value
from basedsl_cute.sim.translate.rule_table import always, rule
from basedsl_cute.sim.translate.types import (
    FloatType,
    IntType,
    OpaqueType,
    Type,
    VectorType,
    aggregate_fields,
    dtype_of,
    element_type,
    is_aggregate,
)


def int_type(value: Value) -> IntType:
    """The integer type of a value's elements; i64 for pointers."""
    type_ = element_type(value.type)
    return type_ if isinstance(type_, IntType) else IntType(64)


def fit(value: Value, expression: str) -> str:
    """An integer expression, wrapped to the width of `value` where NumPy does not do that."""
    type_ = int_type(value)
    if type_.native or type_.width == 1:
        return expression
    return f"num.wrap({expression}, {type_.width})"


@rule("arith.constant", "llvm.mlir.constant", uniform=always)
def _constant(e: PythonEmitter, op: Op) -> None:
    (result,) = op.results
    if is_aggregate(result.type):
        raise MissingRuleError(op.site, f"a constant of type {result.type}")
    value = parse_constant(op.attributes["value"], result.type)
    if isinstance(result.type, VectorType):
        value = value[..., None]
    e.set_constant(result, value)


@rule("ub.poison", "llvm.mlir.poison", "llvm.mlir.undef", "llvm.mlir.zero", uniform=always)
def _zero(e: PythonEmitter, op: Op) -> None:
    e.set_constant(op.results[0], zero_of(op.results[0].type, op))


def zero_of(type_: Type, op: Op) -> Any:
    """The uniform value of a type whose bits are all zero. Raises MissingRuleError."""
    if isinstance(type_, OpaqueType):
        raise MissingRuleError(op.site, f"no values of type {type_}")
    if isinstance(type_, VectorType):
        return np.zeros((*type_.shape, 1), dtype_of(type_))
    if is_aggregate(type_):
        return tuple(zero_of(field, op) for field in aggregate_fields(type_))
    return dtype_of(type_).type(0)


# Expressions by operation: for integers of any width, and for i1.
_BINARY_INT = {
    "addi": ("{0} + {1}", "{0} ^ {1}"),
    "subi": ("{0} - {1}", "{0} ^ {1}"),
    "muli": ("{0} * {1}", "{0} & {1}"),
    "andi": ("{0} & {1}", "{0} & {1}"),
    "ori": ("{0} | {1}", "{0} | {1}"),
    "xori": ("{0} ^ {1}", "{0} ^ {1}"),
    "maxsi": ("np.maximum({0}, {1})", "{0} & {1}"),
    "minsi": ("np.minimum({0}, {1})", "{0} | {1}"),
    "maxui": ("num.signed(np.maximum(num.unsigned({0}), num.unsigned({1})))", "{0} | {1}"),
    "minui": ("num.signed(np.minimum(num.unsigned({0}), num.unsigned({1})))", "{0} & {1}"),
    "shli": ("{0} << {1}", "{0} & ~{1}"),
    "shrsi": ("{0} >> {1}", "{0}"),
    "shrui": ("num.signed(num.unsigned({0}) >> num.unsigned({1}))", "{0} & ~{1}"),
}
_LLVM_INT = {
    "llvm.add": "addi",
    "llvm.sub": "subi",
    "llvm.mul": "muli",
    "llvm.and": "andi",
    "llvm.or": "ori",
    "llvm.xor": "xori",
    "llvm.intr.smax": "maxsi",
    "llvm.intr.smin": "minsi",
    "llvm.intr.umax": "maxui",
    "llvm.intr.umin": "minui",
    "llvm.shl": "shli",
    "llvm.ashr": "shrsi",
    "llvm.lshr": "shrui",
}


def _binary_int(name: str) -> Callable[[PythonEmitter, Op], None]:
    wide, narrow = _BINARY_INT[name]

    def emit_binary(e: PythonEmitter, op: Op) -> None:
        (result,) = op.results
        refs = e.raws(op, result)
        type_ = int_type(result)
        e.dtype(type_)
        if type_.width == 1:
            e.let(result, narrow.format(*refs))
            return
        if not type_.native and name == "shrui":
            expression = (
                f"num.signed(num.low_bits({refs[0]}, {type_.width}) >> num.unsigned({refs[1]}))"
            )
        elif not type_.native and name == "shli":
            # The container is wider than the type: amounts from the width on must give zero.
            expression = f"where({refs[1]} < {type_.width}, {refs[0]} << {refs[1]}, {refs[0]} * 0)"
            expression += "" if e.varying(result) else "[()]"
        elif name == "shrui" and result in e.affine:
            expression = f"affine.shift_right({refs[0]}, {refs[1]})"
        else:
            expression = wide.format(*refs)
        e.let(result, fit(result, expression))

    return emit_binary


for _name in _BINARY_INT:
    _aliases = [llvm for llvm, arith in _LLVM_INT.items() if arith == _name]
    rule(f"arith.{_name}", *_aliases)(_binary_int(_name))


# Expressions of divisions, and True for those of unsigned operands.
# Of a divisor that is zero, `PoisonFlow` takes care.
_DIVISIONS = {
    "arith.divsi": ("num.div_trunc({0}, {1})", False),
    "llvm.sdiv": ("num.div_trunc({0}, {1})", False),
    "arith.floordivsi": ("{0} // {1}", False),
    "arith.ceildivsi": ("num.div_ceil({0}, {1})", False),
    "arith.remsi": ("np.fmod({0}, {1})", False),
    "llvm.srem": ("np.fmod({0}, {1})", False),
    "arith.divui": ("{0} // {1}", True),
    "llvm.udiv": ("{0} // {1}", True),
    "arith.ceildivui": ("num.div_ceil({0}, {1})", True),
    "arith.remui": ("{0} % {1}", True),
    "llvm.urem": ("{0} % {1}", True),
}


@rule(*_DIVISIONS)
def _divide(e: PythonEmitter, op: Op) -> None:
    (result,) = op.results
    expression, is_unsigned = _DIVISIONS[op.name]
    refs = e.refs(op)
    type_ = int_type(result)
    if type_.width == 1:  # the only divisor is 1 (or -1)
        e.let(result, f"{refs[0]} & False" if "rem" in op.name else refs[0])
        return
    whole = f"{_held_quotient(e, op, 'rem' in op.name)} or " if result in e.affine else ""
    if is_unsigned:
        refs = [
            f"num.unsigned({r})" if type_.native else f"num.low_bits({r}, {type_.width})"
            for r in refs
        ]
        e.let(result, whole + fit(result, f"num.signed({expression.format(*refs)})"))
    else:
        e.let(result, whole + fit(result, expression.format(*refs)))


def _held_quotient(e: PythonEmitter, op: Op, remainder: bool) -> str:
    """The expression of a quotient or remainder of coefficients; None where they are not kept."""
    a, b = map(e.raw, op.operands)
    return f"affine.held_quotient({a}, {b}, {remainder})"


@rule("arith.addui_extended")
def _add_extended(e: PythonEmitter, op: Op) -> None:
    total, carry = op.results
    a, b = e.refs(op)
    type_ = int_type(total)
    if not type_.native:
        raise MissingRuleError(op.site, f"on {type_}")
    e.let(total, f"{a} + {b}")
    e.let(carry, f"num.unsigned({e.ref(total)}) < num.unsigned({a})")


@rule("arith.mulsi_extended", "arith.mului_extended")
def _mul_extended(e: PythonEmitter, op: Op) -> None:
    low, high = op.results
    a, b = e.refs(op)
    if not int_type(low).native:
        raise MissingRuleError(op.site, f"on {int_type(low)}")
    if op.name == "arith.mulsi_extended":
        e.line(f"{e.ref(low)}, {e.ref(high)} = num.mul_extended({a}, {b})")
        return
    pair = e.temporary()
    e.line(f"{pair} = num.mul_extended(num.unsigned({a}), num.unsigned({b}))")
    e.let(low, f"num.signed({pair}[0])")
    e.let(high, f"num.signed({pair}[1])")


# Floats ----------------------------------------------------------------------------------------

_FLOAT = {
    ("arith.addf", "llvm.fadd"): "{0} + {1}",
    ("arith.subf", "llvm.fsub"): "{0} - {1}",
    ("arith.mulf", "llvm.fmul"): "{0} * {1}",
    ("arith.divf", "llvm.fdiv"): "{0} / {1}",
    ("arith.negf", "llvm.fneg"): "-{0}",
    ("arith.maximumf", "llvm.intr.maximum"): "num.maximum({0}, {1})",
    ("arith.minimumf", "llvm.intr.minimum"): "num.minimum({0}, {1})",
    ("arith.maxnumf", "llvm.intr.maxnum"): "num.maxnum({0}, {1})",
    ("arith.minnumf", "llvm.intr.minnum"): "num.minnum({0}, {1})",
    ("arith.remf", "llvm.frem"): "num.in_f32(np.fmod, {0}, {1})",
}


def _elementwise(template: str) -> Callable[[PythonEmitter, Op], None]:
    def emit_elementwise(e: PythonEmitter, op: Op) -> None:
        e.let(op.results[0], template.format(*e.refs(op)))

    return emit_elementwise


for _names, _template in _FLOAT.items():
    rule(*_names)(_elementwise(_template))


# Comparisons, by predicate number ---------------------------------------------------------------

_CMPI = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")


@rule("arith.cmpi", "llvm.icmp")
def _cmpi(e: PythonEmitter, op: Op) -> None:
    predicate = op.integer("predicate")
    signed = 2 <= predicate < 6
    held = signed or (predicate >= 6 and not e.affine.isdisjoint(op.operands))
    a, b = map(e.raw, op.operands) if held else e.refs(op)
    type_ = int_type(op.operands[0])
    if type_.width == 1 and predicate > 1:
        if predicate < 6:  # signed: true is -1
            a, b = b, a
    elif held and predicate >= 6:
        pair = e.temporary(), e.temporary()
        e.line(f"{', '.join(pair)} = affine.as_unsigned({a}, {b})")
        a, b = pair
    elif predicate >= 6:
        a, b = f"num.unsigned({a})", f"num.unsigned({b})"
    e.let(op.results[0], f"{a} {_CMPI[predicate]} {b}")


_CMPF = (
    None,
    "{0} == {1}",
    "{0} > {1}",
    "{0} >= {1}",
    "{0} < {1}",
    "{0} <= {1}",
    "({0} < {1}) | ({0} > {1})",
    "({0} == {0}) & ({1} == {1})",
    "~(({0} < {1}) | ({0} > {1}))",
    "~({0} <= {1})",
    "~({0} < {1})",
    "~({0} >= {1})",
    "~({0} > {1})",
    "{0} != {1}",
    "({0} != {0}) | ({1} != {1})",
    None,
)


@rule("arith.cmpf", "llvm.fcmp")
def _cmpf(e: PythonEmitter, op: Op) -> None:
    predicate = op.integer("predicate")
    a, b = e.refs(op)
    template = _CMPF[predicate]
    if template is None:
        template = (
            f"({{0}} == {{0}}) {'|' if predicate else '&'} {'True' if predicate else 'False'}"
        )
    e.let(op.results[0], template.format(a, b))


@rule("arith.select", "llvm.select")
def _select(e: PythonEmitter, op: Op) -> None:
    condition, yes, no = op.operands
    (result,) = op.results
    c = e.ref(condition)
    if not e.varying(condition) and not isinstance(condition.type, VectorType):
        e.let(result, f"{e.like(yes, result)} if {c} else {e.like(no, result)}")
    elif is_aggregate(result.type):
        e.let(result, f"num.select({c}, {e.lanes(yes)}, {e.lanes(no)})")
    else:
        e.let(result, f"where({c}, {e.ref(yes)}, {e.ref(no)})")


# Conversions -----------------------------------------------------------------------------------


@rule("arith.extsi", "llvm.sext")
def _extsi(e: PythonEmitter, op: Op) -> None:
    source, (result,) = op.operands[0], op.results
    to = e.dtype(result.type)
    expression = f"{e.raws(op, result)[0]}.astype({to})"
    e.let(result, f"-{expression}" if int_type(source).width == 1 else expression)


def _zero_extended(e: PythonEmitter, value: Value) -> str:
    type_ = int_type(value)
    if type_.width == 1:
        return e.ref(value)
    if type_.native:
        return f"num.unsigned({e.ref(value)})"
    return f"num.low_bits({e.ref(value)}, {type_.width})"


@rule("arith.extui", "llvm.zext")
def _extui(e: PythonEmitter, op: Op) -> None:
    source, (result,) = op.operands[0], op.results
    if result in e.affine:
        e.let(result, f"affine.zero_extended({e.raw(source)}, {e.dtype(result.type)})")
        return
    e.let(result, f"{_zero_extended(e, source)}.astype({e.dtype(result.type)})")


def truncate(e: PythonEmitter, expression: str, result: Value) -> str:
    """An integer expression cut to the width of `result`."""
    if int_type(result).width == 1:
        return f"({expression} & 1) != 0"
    return fit(result, f"{expression}.astype({e.dtype(result.type)})")


@rule("arith.trunci", "llvm.trunc")
def _trunci(e: PythonEmitter, op: Op) -> None:
    e.let(op.results[0], truncate(e, e.ref(op.operands[0]), op.results[0]))


@rule("arith.index_cast", "arith.index_castui")
def _index_cast(e: PythonEmitter, op: Op) -> None:
    source, (result,) = op.operands[0], op.results
    if int_type(source).width == int_type(result).width:
        e.let(result, e.raws(op, result)[0])
    elif int_type(source).width > int_type(result).width:
        e.affine.discard(result)
        e.let(result, truncate(e, e.ref(source), result))
    elif op.name == "arith.index_castui":
        _extui(e, op)
    else:
        _extsi(e, op)


@rule("arith.extf", "arith.truncf", "arith.convertf", "llvm.fpext", "llvm.fptrunc")
def _convert_float(e: PythonEmitter, op: Op) -> None:
    """Round to narrow floats as PTX does: to tf32 halves away from zero (cvt.rna.tf32), to 8 bits
    and fewer with saturation (cvt.rn.satfinite).
    """
    source, (result,) = op.operands[0], op.results
    to = e.dtype(result.type)
    type_ = element_type(result.type)
    assert isinstance(type_, FloatType)
    if type_.name == "tf32":
        expression = f"num.to_tf32_away(num.convert({e.ref(source)}, f32))"
    elif type_.bits <= 8:
        expression = f"num.convert_saturated({e.ref(source)}, {to})"
    else:
        expression = f"num.convert({e.ref(source)}, {to})"
    e.let(result, expression)


@rule("arith.sitofp", "llvm.sitofp")
def _sitofp(e: PythonEmitter, op: Op) -> None:
    source, (result,) = op.operands[0], op.results
    expression = e.ref(source)
    if int_type(source).width == 1:
        expression = f"-{expression}.astype(i8)"
    e.let(result, _int_to_float(e, expression, result))


@rule("arith.uitofp", "llvm.uitofp")
def _uitofp(e: PythonEmitter, op: Op) -> None:
    source, (result,) = op.operands[0], op.results
    e.let(result, _int_to_float(e, _zero_extended(e, source), result))


def _int_to_float(e: PythonEmitter, expression: str, result: Value) -> str:
    to = e.dtype(result.type)
    if to in ("f32", "f64"):
        return f"{expression}.astype({to})"
    return f"num.int_to_narrow({expression}, {to})"


@rule("arith.fptosi", "arith.fptoui", "llvm.fptosi", "llvm.fptoui")
def _float_to_int(e: PythonEmitter, op: Op) -> None:
    source, (result,) = op.operands[0], op.results
    type_ = int_type(result)
    to = e.dtype(result.type)
    if to == "bool_":
        e.let(result, f"{e.ref(source)} != 0")
    elif op.name.endswith("fptosi"):
        low, high = -(1 << (type_.width - 1)), (1 << (type_.width - 1)) - 1
        e.let(result, f"num.float_to_int({e.ref(source)}, {to}, {low}, {high})")
    else:
        high = (1 << type_.width) - 1
        converted = f"num.float_to_int({e.ref(source)}, u{to[1:]}, 0, {high})"
        e.let(result, fit(result, f"num.signed({converted})"))


@rule("arith.bitcast")
def _bitcast(e: PythonEmitter, op: Op) -> None:
    source, (result,) = op.operands[0], op.results
    old, new = str(element_type(source.type)), str(element_type(result.type))
    if e.dtype(source.type) == e.dtype(result.type):
        e.let(result, e.ref(source))
    elif old in ("i4", "i6"):  # an integer is sign-extended in its byte, a float alone in it
        mask = (1 << int(old[1:])) - 1
        e.let(result, f"({e.ref(source)} & {mask}).astype(np.uint8).view({e.dtype(result.type)})")
    elif new in ("i4", "i6"):
        e.let(result, f"num.sign_of_bits({e.ref(source)}.view(np.int8), {new[1:]})")
    else:
        e.let(result, f"{e.ref(source)}.view({e.dtype(result.type)})")
