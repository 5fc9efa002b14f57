"""Executes an operator: plan its types, compute it now if both operands are known, else emit its
ops.

`Operator` is one row of the table in `operators`; `apply` executes it. Plans are cached by the
combination of operand types, so that a repeated operator takes a short path.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Number
from types import FunctionType
from typing import Any, NamedTuple

from basedsl.errors import DSLTypeError, with_article
from basedsl.numeric.concrete import Concrete
from basedsl.numeric.contraction import SUMS, fused
from basedsl.numeric.conversion import convert_number, emit_conversion
from basedsl.numeric.formats import Kind
from basedsl.numeric.kit import Kit, kit_of
from basedsl.numeric.literals import as_numeric, is_numeric_literal
from basedsl.numeric.number import Numeric, check_literal
from basedsl.numeric.promotion import (
    PLAIN_PYTHON,
    Defaults,
    Tie,
    Type,
    defaults,
    operand_type,
    storage_only,
)
from basedsl.numeric.types import TYPES
from basedsl.tracing import trace as tracing

# An op name, or a function that emits ops from `(kit, left type, right type, x, y)`. The operands
# are SSA values, or Python numbers where they are known (never both); so may the result be.
Sequence = Callable[[Kit, Any, Any, Any, Any], Any]
Rule = str | Sequence


class OperatorPlan(NamedTuple):
    """The plan for one combination of operand types: the types to convert to, and the rule."""

    left: Type
    right: Type
    result: Type
    rule: Rule
    weak: bool


Planner = Callable[["Operator", Type, Tie, Type, Tie, Defaults], OperatorPlan]
Shortcut = Callable[[OperatorPlan, Any, Any], Any]


@dataclass(frozen=True, eq=False, slots=True)
class Operator:
    """One binary operator. A kind without a rule does not have the operator.

    `concrete` computes it on Python numbers of the plan's left type. `divisor` combines known
    divisors of integers. `x OP identity` is x for integers, and `identity OP x` if it `commutes`.
    `shortcut` may answer with no op, or fewer, from facts about the operands that are known; None
    if it cannot.
    """

    symbol: str
    plan: Planner
    concrete: Concrete
    signed: Rule | None = None
    unsigned: Rule | None = None
    floating: Rule | None = None
    boolean: Rule | None = None
    divisor: Callable[[int, int], int] | None = None
    identity: int | None = None
    commutes: bool = False
    shortcut: Shortcut | None = None

    def rule(self, T: Type) -> Rule:
        """Return the rule for operands of type `T`; DSLTypeError if there is none."""
        if not T.format.arithmetic:
            raise storage_only(T)
        rule: Rule | None = getattr(self, _RULE_OF_KIND[T.kind])
        if rule is None:
            raise DSLTypeError(f"{T.__name__} has no operator {self.symbol}")
        return rule


_RULE_OF_KIND = {
    Kind.SIGNED: "signed",
    Kind.UNSIGNED: "unsigned",
    Kind.FLOAT: "floating",
    Kind.BOOLEAN: "boolean",
}

_new = object.__new__
_current = tracing.current_trace_or_none
_PLANS: dict[Defaults, dict[Any, OperatorPlan]] = {}
_PLAIN_PLANS = _PLANS.setdefault(PLAIN_PYTHON, {})
_PYTHON = frozenset((int, float, bool))
_OPERANDS: frozenset[Any] = _PYTHON | frozenset(TYPES.values())


def apply(op: Operator, a: Any, b: Any) -> Any:
    """Compute `a OP b`, of which at least one is a numeric value.

    Returns NotImplemented if the other is no number. Raises DSLTypeError for types that do not go
    together, and DSLError for a value whose region is closed.
    """
    A, B = type(a), type(b)
    if A not in _OPERANDS or B not in _OPERANDS:
        return _apply_other(op, a, b)
    kit: Kit | None = None
    plans = _PLAIN_PLANS
    trace = _current()
    if trace is not None:
        kit = kit_of(trace)
        plans = kit.plans or _plans_of(kit)
    a_known = A in _PYTHON or a.region is None
    b_known = B in _PYTHON or b.region is None
    key = (
        op,
        A if A in _PYTHON or not a.weak else (A, a_known),
        B if B in _PYTHON or not b.weak else (B, b_known),
    )
    plan = plans.get(key)
    if plan is None:
        plan = plans[key] = _make_plan(op, a, b)
    if (a_known or b_known) and op.shortcut is not None:
        answer = op.shortcut(plan, a, b)
        if answer is not None:
            return answer
    if a_known and b_known:
        return _known_result(op, plan, a, b)
    if kit is None:
        return tracing.current_trace("arithmetic on a dynamic value")
    return _emit(op, plan, kit, a, b, a_known, b_known)


def _emit(
    op: Operator, plan: OperatorPlan, kit: Kit, a: Any, b: Any, a_known: bool, b_known: bool
) -> Any:
    """Emit `a OP b`, of which one operand at least is an SSA value."""
    left, right, result, rule, weak = plan
    A: Any = type(a)
    B: Any = type(b)
    if kit.trace.forbidden is not None:
        kit.begin()  # raises
    kit.loc = kit.trace.loc(4)  # this function, `apply` and the method that calls it
    if a_known:
        x = number_of(a, left)
        if op.commutes and B is result and not b.weak and type(x) is int and x == op.identity:
            return b
    elif a.region.closed:
        raise tracing.escaped(with_article(A), a.region)
    else:
        x = a.value if A is left else emit_conversion(kit, A, left, a.value)
    if b_known:
        y = number_of(b, right)
        if A is result and not a.weak and type(y) is int and y == op.identity:
            return a
    elif b.region.closed:
        raise tracing.escaped(with_article(B), b.region)
    else:
        y = b.value if B is right else emit_conversion(kit, B, right, b.value)
    if type(rule) is str:
        operands = (
            kit.constant(left, x) if a_known else x,
            kit.constant(right, y) if b_known else y,
        )
        value = None
        if rule in SUMS and kit.contracts:
            value = fused(kit, rule, *operands)
        if value is None:
            value = kit.create(
                rule, results=[kit.type_of(result)], operands=operands, loc=kit.loc
            ).result
    else:
        value = rule(kit, left, right, x, y)  # type: ignore[operator]
        if type(value) in _PYTHON:
            return result._known(value, weak)
    self = _new(result)
    self.value = value
    self.weak = weak
    self.region = kit.trace.region
    if op.divisor is None or not result.is_integer:
        self.divby = 1
    else:
        self.divby = op.divisor(divisor_of(a), divisor_of(b))
    return self


def _apply_other(op: Operator, a: Any, b: Any) -> Any:
    for x, number in ((a, b), (b, a)):
        if not (isinstance(x, Numeric) or is_numeric_literal(x)):
            if type(number) in _OPERANDS and _computes_in_c(type(x)):
                raise _meets_other_numbers(op, number, x)
            return NotImplemented
    own = _reflected(op, a, b)
    if own is not None:
        answer = own(b, a)
        if answer is not NotImplemented:
            return answer
    return apply(op, as_numeric(_stored(a)), as_numeric(_stored(b)))


def _stored(x: Any) -> Any:
    """Return the number that an operator in C reads: not what a program's `__int__` says it is."""
    for kind, name in ((int, "__int__"), (float, "__float__")):
        if isinstance(x, kind) and isinstance(getattr(type(x), name, None), FunctionType):
            return getattr(kind, name)(x)
    return x


_REFLECTED = {
    "+": "__radd__",
    "-": "__rsub__",
    "*": "__rmul__",
    "/": "__rtruediv__",
    "//": "__rfloordiv__",
    "%": "__rmod__",
    "**": "__rpow__",
    "<<": "__rlshift__",
    ">>": "__rrshift__",
    "&": "__rand__",
    "|": "__ror__",
    "^": "__rxor__",
    "<": "__gt__",
    ">": "__lt__",
    "<=": "__ge__",
    ">=": "__le__",
    "==": "__eq__",
    "!=": "__ne__",
}


def _reflected(op: Operator, a: Any, b: Any) -> Any:
    """Return the method of a program's own class of numbers, such as `__radd__`, that Python calls
    before the operator of the int or float on the left; None if there is none.
    """
    if not isinstance(a, Numeric):  # the method on the left had its turn
        return None
    if not (isinstance(b, float) or (isinstance(b, int) and a.is_integer)):
        return None
    method = getattr(type(b), _REFLECTED.get(op.symbol, ""), None)
    # Those of `enum` know nothing that Python's numbers do not.
    if isinstance(method, FunctionType) and method.__module__ != "enum":
        return method
    return None


def _computes_in_c(cls: type) -> bool:
    """Return True for arrays and numbers (complex, Decimal) whose code in C would take the other
    operand for no number at all: `==` would be False.
    """
    if isinstance(getattr(cls, "__eq__", None), FunctionType):
        return False
    return hasattr(cls, "__array_ufunc__") or issubclass(cls, Number)


def _meets_other_numbers(op: Operator, number: Any, other: Any) -> DSLTypeError:
    is_array = hasattr(type(other), "__array_ufunc__")
    return DSLTypeError(
        f"{_described(number)} {op.symbol} {with_article(type(other))} cannot be computed",
        hint="compute with the items one by one, or pass the array as an argument"
        if is_array
        else "use an int or a float, or compare its parts",
    )


def _known_result(op: Operator, plan: OperatorPlan, a: Any, b: Any) -> Numeric:
    value = op.concrete(plan.left, number_of(a, plan.left), number_of(b, plan.right))
    return plan.result._known(value, plan.weak)


def _plans_of(kit: Kit) -> dict[Any, OperatorPlan]:
    now = Defaults((kit.trace.default_int, kit.trace.default_float))
    kit.plans = _PLANS.setdefault(now, {})
    return kit.plans


def _make_plan(op: Operator, a: Any, b: Any) -> OperatorPlan:
    now = defaults()
    (A, a_tie), (B, b_tie) = operand_type(a, now), operand_type(b, now)
    try:
        return op.plan(op, A, a_tie, B, b_tie, now)
    except DSLTypeError as error:
        raise DSLTypeError(
            f"{_described(a)} {op.symbol} {_described(b)}: {error.message}", hint=error.hint
        ) from None


def _described(x: Any) -> str:
    return type(x).__name__ if isinstance(x, Numeric) else repr(x)


def number_of(x: Any, T: Type) -> Any:
    """Return a known operand as a Python number of type `T`; a literal has to fit."""
    X = type(x)
    if X is T:
        return x.value
    if X in _PYTHON:
        return convert_number(x, T.format) if X is bool else check_literal(T, x)
    return check_literal(T, x.value) if x.weak else convert_number(x.value, T.format)


def divisor_of(x: Any) -> int:
    """Return a divisor of the operand that is known while compiling; of a known number, itself."""
    X = type(x)
    if X in _PYTHON:
        return abs(int(x)) if X is not float else 1
    return abs(x.value) if x.region is None and X.is_integer else x.divby  # type: ignore[no-any-return]
