"""Python's operators on numeric values: the table, one row per operator.

Sequences longer than one op live in `division`, `shifts`, `powers` and `comparisons`; `engine`
executes a row. Importing this module gives the classes of `types` their operators.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from basedsl.errors import DSLError, DSLTypeError, with_article
from basedsl.numeric import comparisons, concrete, division, powers, quotient, shifts
from basedsl.numeric.engine import Operator, OperatorPlan, Shortcut, apply
from basedsl.numeric.formats import Kind
from basedsl.numeric.kit import kit_of
from basedsl.numeric.lane_kit import LaneKit
from basedsl.numeric.number import Numeric
from basedsl.numeric.promotion import Defaults, Tie, Type, common_type, defaults, storage_only
from basedsl.numeric.types import Boolean, Float32, Float64, Int64, Uint64
from basedsl.tracing import trace as tracing
from basedsl.warning import warn

# Planners -------------------------------------------------------------------------------------


def _both_weak(a: Tie, b: Tie) -> bool:
    return a is not Tie.STRONG and b is not Tie.STRONG


def _plan_arithmetic(op: Operator, A: Type, a: Tie, B: Type, b: Tie, now: Defaults) -> OperatorPlan:
    T = common_type(A, a, B, b, now)
    if T is Boolean:
        T = now.int
    return OperatorPlan(T, T, T, op.rule(T), _both_weak(a, b))


def _plan_true_division(
    op: Operator, A: Type, a: Tie, B: Type, b: Tie, now: Defaults
) -> OperatorPlan:
    T = common_type(A, a, B, b, now)
    weak = _both_weak(a, b)
    if T.is_integer:
        T = now.float
        if not all(comparisons.is_exact_in(operand, T) for operand in (A, B)):
            return OperatorPlan(A, B, T, quotient.integer_quotient(T), weak)
    return OperatorPlan(T, T, T, op.rule(T), weak)


def _quotient_of_literals(plan: OperatorPlan, a: Any, b: Any) -> Any:
    """Return `a / b` of two integers that are known, or of one and a literal that the default type
    does not hold; None for others.
    """
    if not plan.left.is_integer:
        return None
    x, y = (z.value if isinstance(z, Numeric) else z for z in (a, b))
    if not (isinstance(x, int) and isinstance(y, int)):
        x, y = _held(a, plan.left, type(b)), _held(b, plan.right, type(a))
        return None if x is a and y is b else apply(TRUEDIV, x, y)
    return plan.result._known(quotient.rounded_quotient(int(x), int(y), plan.result), plan.weak)


def _held(x: Any, T: Type, other: Type) -> Any:
    """Return an int that `T` does not hold as a number of a wider type that does; else `x`."""
    if type(x) is not int or T.min <= x <= T.max:
        return x
    wide = next((W for W in (other, Int64, Uint64) if W.min <= x <= W.max), None)
    return x if wide is None else wide.concrete(x)


def _plan_bits(op: Operator, A: Type, a: Tie, B: Type, b: Tie, now: Defaults) -> OperatorPlan:
    _require_integers(A, B)
    T = common_type(A, a, B, b, now)
    return OperatorPlan(T, T, T, op.rule(T), _both_weak(a, b))


def _plan_shift(op: Operator, A: Type, a: Tie, B: Type, b: Tie, now: Defaults) -> OperatorPlan:
    # The result has the type of what is shifted (a literal takes the count's); the count keeps its.
    _require_integers(A, B)
    T = B if a is Tie.LITERAL and b is not Tie.LITERAL else A
    if T is Boolean:
        T = now.int
    count = now.int if B is Boolean else B
    return OperatorPlan(T, count, T, op.rule(T), _both_weak(a, b))


def _plan_power(op: Operator, A: Type, a: Tie, B: Type, b: Tie, now: Defaults) -> OperatorPlan:
    T = common_type(A, a, B, b, now)
    if T is Boolean:
        T = now.int
    exponent = B if T.is_integer and b is Tie.LITERAL else T
    return OperatorPlan(T, exponent, T, op.rule(T), _both_weak(a, b))


def _comparison_planner(name: str) -> Callable[..., OperatorPlan]:
    def plan(op: Operator, A: Type, a: Tie, B: Type, b: Tie, now: Defaults) -> OperatorPlan:
        if Tie.LITERAL not in (a, b) and A.is_integer and B.is_integer:
            a = b = Tie.STRONG
            types = comparisons.mixed_types(A, B)
            if types is not None:
                return OperatorPlan(*types, Boolean, comparisons.mixed(name), False)
        T = common_type(A, a, B, b, now)
        if A.is_integer != B.is_integer and Tie.LITERAL not in (a, b):
            integer = A if A.is_integer else B
            if T.format.arithmetic and not comparisons.is_exact_in(integer, T):
                F = Float64 if Float64 in (A, B) or integer.width > 64 else Float32
                left, right = (A, F) if A.is_integer else (F, B)
                return OperatorPlan(
                    left, right, Boolean, comparisons.integer_with_float(name), False
                )
        return OperatorPlan(T, T, Boolean, op.rule(T), False)

    return plan


def _require_integers(A: Type, B: Type) -> None:
    if A.is_float or B.is_float:
        raise DSLTypeError(
            "this operator needs integers on both sides",
            hint="convert the float with .to(Int32) or .to(Int64)",
        )


# Shortcuts ------------------------------------------------------------------------------------


def _known_int(x: Any) -> int | None:
    """Return the value of an integer known while compiling, else None."""
    value = x.value if isinstance(x, Numeric) else x
    return value if type(value) is int else None


def _exact_quotient(plan: OperatorPlan, a: Any, b: Any) -> Any:
    """Return `a // b` where b is known to divide a: without the ops that floor."""
    n, left = _known_int(b), plan.left
    if n is None or n < 2 or type(a) is not plan.left or a.divby % n or a.region is None:
        return None
    trace = tracing.current_trace("arithmetic on a dynamic value")
    kit = kit_of(trace)
    x = a.ir_value()
    kit.begin()
    if n & (n - 1):
        op, by = ("arith.divsi" if a.signed else "arith.divui"), n
    else:
        op, by = ("arith.shrsi" if a.signed else "arith.shrui"), n.bit_length() - 1
    value = kit.op(op, kit.type_of(left), x, kit.constant(left, by))
    result = plan.result.from_value(value)
    result.divby = a.divby // n
    return result


def _no_remainder(plan: OperatorPlan, a: Any, b: Any) -> Any:
    """Return `a % b` where b is known to divide a: a constant 0."""
    n = _known_int(b)
    if n is None or n < 1 or not isinstance(a, Numeric) or a.region is None or a.divby % n:
        return None
    return plan.result._known(0) if plan.result.is_integer else None


def _zero_divisor(shortcut: Shortcut) -> Shortcut:
    """Return a shortcut that refuses a divisor known to be zero, then tries `shortcut`. Where the
    emitter has `known_zero_divisors`, it is as one that turns out to be zero at run time, and a
    warning tells of it.
    """

    def check(plan: OperatorPlan, a: Any, b: Any) -> Any:
        if plan.left.is_integer and _known_int(b) == 0:
            if not isinstance(a, Numeric) or a.region is None:
                raise ZeroDivisionError(division.ZERO_DIVISOR)
            trace = tracing.current_trace("arithmetic")
            if not getattr(trace.emitter, "known_zero_divisors", False):
                raise DSLError(division.ZERO_DIVISOR, hint="compare the divisor with 0 before")
            hint = "divide only where the divisor is not zero"
            warn(trace.options, division.ZERO_DIVISOR, hint=hint)
        return shortcut(plan, a, b)

    return check


def _of_two_kinds(name: str, a: Any, b: Any) -> Any:
    """Compare a dynamic integer with a known float as integers, a dynamic float with a known int
    that its type does not hold as floats; None for other operands.
    """
    if isinstance(a, Numeric) and a.region is not None:
        number, literal = a, b
    elif not isinstance(b, Numeric) or b.region is None:
        x, y = (z.value if isinstance(z, Numeric) else z for z in (a, b))
        if {type(x), type(y)} != {int, float}:
            return None
        return Boolean._known(getattr(operator, name)(x, y))
    else:
        number, literal, name = b, a, comparisons.MIRRORED[name]
    if isinstance(literal, Numeric):
        literal = literal.value
    if number.is_float:
        if type(literal) is not int and not _overflows(literal, type(number)):
            return None
        changed = comparisons.with_large_literal(name, literal, type(number))
        return changed and apply(COMPARISONS[changed[0]], number, changed[1])
    if type(literal) is not float or number.kind is Kind.BOOLEAN:
        return None
    answer = comparisons.with_float_literal(name, literal)
    if isinstance(answer, bool):
        return Boolean._known(answer)
    return apply(COMPARISONS[answer[0]], number, answer[1])


def _overflows(literal: Any, T: Type) -> bool:
    return type(literal) is float and math.isfinite(literal) and abs(literal) > T.max


def _out_of_range(name: str) -> Shortcut:
    """Return a shortcut: comparing an integer with an int out of its range has one answer."""

    def shortcut(plan: OperatorPlan, a: Any, b: Any) -> Any:
        if not (plan.left.is_integer and plan.right.is_integer):
            return _of_two_kinds(name, a, b)
        for literal, is_left in ((a, True), (b, False)):
            if type(literal) is int or (isinstance(literal, Numeric) and literal.weak):
                n = _known_int(literal)
                answer = (
                    None if n is None
                    else comparisons.always(name, n, plan.left, literal_left=is_left)
                )  # fmt: skip
                if answer is not None:
                    return Boolean._known(answer)
        return None

    return shortcut


# Known divisors -------------------------------------------------------------------------------


def _product(a: int, b: int) -> int:
    return a * b or 1


def _common(a: int, b: int) -> int:
    return math.gcd(a, b) or 1


# The table ------------------------------------------------------------------------------------

ADD = Operator(
    "+", _plan_arithmetic, concrete.arithmetic(operator.add),
    signed="arith.addi", unsigned="arith.addi", floating="arith.addf",
    divisor=_common, identity=0, commutes=True,
)  # fmt: skip
SUB = Operator(
    "-", _plan_arithmetic, concrete.arithmetic(operator.sub),
    signed="arith.subi", unsigned="arith.subi", floating="arith.subf",
    divisor=_common, identity=0,
)  # fmt: skip
MUL = Operator(
    "*", _plan_arithmetic, concrete.arithmetic(operator.mul),
    signed="arith.muli", unsigned="arith.muli", floating="arith.mulf",
    divisor=_product, identity=1, commutes=True,
)  # fmt: skip
TRUEDIV = Operator(
    "/", _plan_true_division, concrete.true_division, floating=division.true_quotient,
    shortcut=_quotient_of_literals,
)  # fmt: skip
FLOORDIV = Operator(
    "//", _plan_arithmetic, concrete.floor_division,
    signed=division.signed_floor, unsigned=division.unsigned_floor,
    floating=division.float_floor, identity=1, shortcut=_zero_divisor(_exact_quotient),
)  # fmt: skip
MOD = Operator(
    "%", _plan_arithmetic, concrete.modulo,
    signed=division.signed_modulo, unsigned=division.unsigned_modulo,
    floating=division.float_modulo, divisor=_common, shortcut=_zero_divisor(_no_remainder),
)  # fmt: skip
POW = Operator(
    "**", _plan_power, concrete.power,
    signed=powers.integer, unsigned=powers.integer, floating=powers.floating,
)  # fmt: skip
LSHIFT = Operator(
    "<<", _plan_shift, concrete.shift_left,
    signed=shifts.left, unsigned=shifts.left, identity=0,
)  # fmt: skip
RSHIFT = Operator(
    ">>", _plan_shift, concrete.shift_right,
    signed=shifts.right_signed, unsigned=shifts.right_unsigned, identity=0,
)  # fmt: skip
AND = Operator(
    "&", _plan_bits, concrete.bitwise(operator.and_),
    signed="arith.andi", unsigned="arith.andi", boolean="arith.andi",
)  # fmt: skip
OR = Operator(
    "|", _plan_bits, concrete.bitwise(operator.or_),
    signed="arith.ori", unsigned="arith.ori", boolean="arith.ori",
)  # fmt: skip
XOR = Operator(
    "^", _plan_bits, concrete.bitwise(operator.xor),
    signed="arith.xori", unsigned="arith.xori", boolean="arith.xori",
)  # fmt: skip


def _comparison(symbol: str, function: Callable[[Any, Any], bool], name: str) -> Operator:
    ordered = name not in ("eq", "ne")
    return Operator(
        symbol, _comparison_planner(name), concrete.comparison(function),
        signed=comparisons.integer("s" + name if ordered else name),
        unsigned=comparisons.integer("u" + name if ordered else name),
        boolean=comparisons.integer("u" + name if ordered else name),
        floating=comparisons.floating("une" if name == "ne" else "o" + name),
        shortcut=_out_of_range(name),
    )  # fmt: skip


LT = _comparison("<", operator.lt, "lt")
LE = _comparison("<=", operator.le, "le")
GT = _comparison(">", operator.gt, "gt")
GE = _comparison(">=", operator.ge, "ge")
EQ = _comparison("==", operator.eq, "eq")
NE = _comparison("!=", operator.ne, "ne")

BINARY: dict[str, Operator] = {
    "add": ADD, "sub": SUB, "mul": MUL, "truediv": TRUEDIV, "floordiv": FLOORDIV, "mod": MOD,
    "lshift": LSHIFT, "rshift": RSHIFT, "and": AND, "or": OR, "xor": XOR,
}  # fmt: skip
COMPARISONS: dict[str, Operator] = {"lt": LT, "le": LE, "gt": GT, "ge": GE, "eq": EQ, "ne": NE}


# `**` and divmod ------------------------------------------------------------------------------


def power(a: Any, b: Any) -> Any:
    """`a ** b`. An integer to a known negative power is a float, as in Python."""
    n = _known_int(b)
    if n is not None and n < 0 and not isinstance(a, float):
        integer = not isinstance(a, Numeric) or a.is_integer
        if integer:
            target = defaults().float
            a = a.to(target) if isinstance(a, Numeric) else target.concrete(a)
            b = float(n)
    return apply(POW, a, b)


def divide(a: Any, b: Any) -> Any:
    """`divmod(a, b)`."""
    quotient = apply(FLOORDIV, a, b)
    return quotient if quotient is NotImplemented else (quotient, apply(MOD, a, b))


# Unary operators ------------------------------------------------------------------------------


def negative(x: Numeric) -> Numeric:
    """`-x`; an int for a Boolean."""
    x = _not_boolean(x)
    if x.region is None:
        return x._known(concrete.negative(type(x), x.value), x.weak)
    if x.is_float:
        return _unary(x, "arith.negf")
    result: Numeric = apply(SUB, type(x)._known(0, x.weak), x)
    return result


def positive(x: Numeric) -> Numeric:
    """`+x`; an int for a Boolean."""
    return _not_boolean(x)


def invert(x: Numeric) -> Numeric:
    """`~x` of an integer; of a vector of Booleans, the opposite of each, as in NumPy.

    Of one Boolean Python makes -1 or -2, both of which are true: that is a DSLTypeError.
    """
    if x.is_float:
        raise DSLTypeError(f"`~` needs an integer, not {with_article(type(x))}")
    if x.kind is Kind.BOOLEAN:
        if x.region is not None and isinstance(kit_of(tracing.current_trace("~")), LaneKit):
            return logical_not(x)
        raise DSLTypeError(
            "`~` of a Boolean is -1 or -2 in Python, which both are true",
            hint="`not x` is the opposite of x; ~x.to(Int32) is Python's number",
        )
    ones = type(x)._known(-1 if x.signed else type(x).max, x.weak)
    result: Numeric = apply(XOR, x, ones)
    return result


def logical_not(x: Numeric) -> Numeric:
    """Return `not x` as a Boolean, for a number of any type."""
    result: Numeric = apply(XOR, x.to(Boolean), True)
    return result


def absolute(x: Numeric) -> Numeric:
    """`abs(x)`; the least signed integer has no opposite and stays."""
    x = _not_boolean(x)
    if x.region is None:
        return x._known(concrete.absolute(type(x), x.value), x.weak)
    if x.kind is Kind.UNSIGNED:
        return x
    result = _unary(x, "math.absf" if x.is_float else "math.absi")
    result.divby = x.divby
    return result


def _not_boolean(x: Numeric) -> Numeric:
    if x.kind is Kind.BOOLEAN:
        return x.to(defaults().int)
    if not x.format.arithmetic:
        raise storage_only(type(x))
    return x


def _unary(x: Numeric, op: str) -> Numeric:
    trace = tracing.current_trace("arithmetic on a dynamic value")
    kit = kit_of(trace)
    value = x.ir_value()
    kit.begin()
    return type(x).from_value(kit.op(op, kit.type_of(type(x)), value), x.weak)


# Giving the classes their operators -----------------------------------------------------------


def _install() -> None:
    def forward(op: Operator) -> Any:
        return lambda self, other: apply(op, self, other)

    def reflected(op: Operator) -> Any:
        return lambda self, other: apply(op, other, self)

    methods: dict[str, Any] = {}
    for name, op in BINARY.items():
        methods[f"__{name}__"] = forward(op)
        methods[f"__r{name}__"] = reflected(op)
    for name, op in COMPARISONS.items():
        methods[f"__{name}__"] = forward(op)
    methods |= {
        "__divmod__": divide,
        "__rdivmod__": lambda self, other: divide(other, self),
        "__rpow__": lambda self, other: power(other, self),
        "__pow__": _power_method,
        "__neg__": negative,
        "__pos__": positive,
        "__invert__": invert,
        "__abs__": absolute,
    }
    for name, method in methods.items():
        setattr(Numeric, name, method)


def _power_method(self: Numeric, other: Any, modulus: Any = None) -> Any:
    if modulus is not None:
        raise DSLTypeError(
            "pow() with a modulus is not available", hint="write (a ** b) % m, if a ** b fits"
        )
    return power(self, other)


_install()
