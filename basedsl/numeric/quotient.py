"""`n / m` of integers as ops, rounded once to the float type, as Python's quotient is.

Where both integers are floats of the type, the quotient of the floats is that. Else a function that
the module gets divides in 128 bits, to two bits more than the float has, of which the last one
tells that there is a remainder. On targets that do not check floats (kernels), both integers are
rounded first: a GPU would take hundreds of instructions.
"""

from __future__ import annotations

import math
from typing import Any

from basedsl.numeric.checks import check_float
from basedsl.numeric.conversion import emit_conversion
from basedsl.numeric.division import true_quotient
from basedsl.numeric.formats import Kind, round_float
from basedsl.numeric.kit import Kit, Value
from basedsl.numeric.protocols import NumericType

_MOST_BITS = 64
#: By the width of a float type: significant bits, bias of the exponent, bits of the fraction.
_FORMATS = {32: (24, 127, 23), 64: (53, 1023, 52)}

_FUNCTION = """
func.func private @{name}(%a: i64, %b: i64) -> {f}
    attributes {{llvm.linkage = #llvm.linkage<internal>}} {{
  %most = arith.constant {most} : i64
  %a_small = arith.cmpi ule, %a, %most : i64
  %b_small = arith.cmpi ule, %b, %most : i64
  %small = arith.andi %a_small, %b_small : i1
  cf.cond_br %small, ^floats, ^integers
^floats:
  %x = arith.uitofp %a : i64 to {f}
  %y = arith.uitofp %b : i64 to {f}
  %xy = arith.divf %x, %y : {f}
  func.return %xy : {f}
^integers:
  %zero = arith.constant 0 : i64
  %bits = arith.constant {bits} : i64
  %a_zeros = math.ctlz %a : i64
  %b_zeros = math.ctlz %b : i64
  %more = arith.addi %bits, %a_zeros : i64
  %wanted = arith.subi %more, %b_zeros : i64
  %shift = arith.maxsi %wanted, %zero : i64
  %wide_shift = arith.extui %shift : i64 to i128
  %wide_a = arith.extui %a : i64 to i128
  %wide_b = arith.extui %b : i64 to i128
  %n = arith.shli %wide_a, %wide_shift : i128
  %q = arith.divui %n, %wide_b : i128
  %product = arith.muli %q, %wide_b : i128
  %inexact = arith.cmpi ne, %n, %product : i128
  %last = arith.extui %inexact : i1 to i64
  %low = arith.trunci %q : i128 to i64
  %sticky = arith.ori %low, %last : i64
  %quotient = arith.uitofp %sticky : i64 to {f}
  %bias = arith.constant {bias} : i64
  %exponent = arith.subi %bias, %shift : i64
  %fraction = arith.constant {fraction} : i64
  %raised = arith.shli %exponent, %fraction : i64
  {narrowed}
  %scale = arith.bitcast %power : {i} to {f}
  %result = arith.mulf %quotient, %scale : {f}
  func.return %result : {f}
}}
"""


def integer_quotient(F: NumericType) -> Any:
    """Return the rule that emits the quotient of two integers as a float of type `F`."""

    def emit(kit: Kit, L: NumericType, R: NumericType, x: Any, y: Any) -> Value:
        a, b = kit.value(L, x), kit.value(R, y)
        halved = isinstance(y, int) and y > 0 and y & (y - 1) == 0  # changes the exponent only
        if halved or not kit.float_checks or max(L.width, R.width) > _MOST_BITS:
            rounded = [emit_conversion(kit, T, F, v) for T, v in ((L, a), (R, b))]
            return true_quotient(kit, F, F, *rounded)
        if y is b or y == 0:
            check_float(
                kit,
                lambda: kit.cmpi("ne", b, kit.constant(R, 0)),
                ZeroDivisionError,
                "division by zero",
            )
        i64 = kit.ir.IntegerType.get_signless(_MOST_BITS)
        (p, a_negative), (q, b_negative) = (_magnitude(kit, T, v) for T, v in ((L, a), (R, b)))
        found = kit.create(
            "func.call", results=[kit.type_of(F)], operands=[_wide(kit, i64, v) for v in (p, q)],
            attributes={"callee": kit.ir.FlatSymbolRefAttr.get(_declared(kit, F))}, loc=kit.loc,
        ).result  # fmt: skip
        negative = kit.op("arith.xori", kit.i1, a_negative, b_negative)
        return kit.select(negative, kit.op("arith.negf", kit.type_of(F), found), found)

    return emit


def _magnitude(kit: Kit, T: NumericType, value: Value) -> tuple[Value, Value]:
    """Return the absolute value, to be read as unsigned, and the i1 that tells a negative one."""
    if T.kind is not Kind.SIGNED:
        return value, kit.constant_i1(False)
    zero = kit.constant(T, 0)
    negative = kit.cmpi("slt", value, zero)
    return kit.select(negative, kit.op("arith.subi", kit.type_of(T), zero, value), value), negative


def _wide(kit: Kit, i64: Any, value: Value) -> Value:
    return value if value.type == i64 else kit.op("arith.extui", i64, value)


def _declared(kit: Kit, F: NumericType) -> str:
    """Return the name of the function for `F`, which the module has from now on."""
    name = f"basedsl_quotient_f{F.width}"
    if name not in kit.functions:
        kit.functions.add(name)
        precision, bias, fraction = _FORMATS[F.width]
        narrowed = "%power = arith.trunci %raised : i64 to i32"
        if F.width == _MOST_BITS:
            narrowed = "%power = arith.addi %raised, %zero : i64"
        text = _FUNCTION.format(
            name=name, f=f"f{F.width}", i=f"i{F.width}", narrowed=narrowed, most=1 << precision,
            bits=precision + 2, bias=bias, fraction=fraction,
        )  # fmt: skip
        ir = kit.ir
        for dialect in ("cf", "func", "llvm"):  # that the text needs
            getattr(kit.trace.bindings, dialect)
        with ir.InsertionPoint.at_block_begin(kit.trace.module.body), ir.Location.unknown():
            ir.InsertionPoint.current.insert(ir.Operation.parse(text))
    return name


def rounded_quotient(x: int, y: int, F: NumericType) -> float:
    """Return x / y rounded once to the float type `F`; an infinity or NaN if y is 0."""
    if y == 0:
        return math.copysign(math.inf, x) if x else math.nan
    precision = _FORMATS[F.width][0]
    negative, n, m = (x < 0) != (y < 0), abs(x), abs(y)
    shift = max(precision + 2 + m.bit_length() - n.bit_length(), 0)
    quotient, rest = divmod(n << shift, m)
    cut = max(quotient.bit_length() - (precision + 2), 0)
    rest |= quotient & ((1 << cut) - 1)
    kept = (quotient >> cut) | (rest != 0)
    # Of 26 or 55 bits, the last one sticky: the float type rounds it once.
    result = round_float(float(_rounded_to(kept, precision)), F.format) * 2.0 ** (cut - shift)
    return -result if negative else result


def _rounded_to(value: int, precision: int) -> int:
    """Round an integer of more bits to `precision` significant ones, ties to even."""
    over = max(value.bit_length() - precision, 0)
    if not over:
        return value
    half, below = 1 << (over - 1), value & ((1 << over) - 1)
    kept = value >> over
    kept += below > half or (below == half and kept & 1)
    return kept << over
