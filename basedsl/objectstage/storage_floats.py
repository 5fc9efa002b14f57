"""Storage floats (Float8 and narrower, TFloat32), in the arithmetic of other types.

`StorageFloats` expands their conversions from and to Float32 into `arith` ops on integers, for
scalars and vectors: for processors without an instruction for them. Rounding is to nearest even,
and too large numbers become the largest finite one (as PTX's cvt.rn.satfinite has it). The step
`spell_out_storage_floats` does it to a whole module.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from basedsl.objectstage.pipeline import PipelineContext
from basedsl.objectstage.snapshot import Snapshot

# Makes an op: name, result types, operands, attributes -> its result.
Emit = Callable[[str, Any, Any, Any], Any]


@dataclass(frozen=True)
class Encoding:
    """The bits of a format: a sign, then exponent and fraction. `top` is the code of the largest
    number, `nan` that of NaN, both without sign; `infinite` says that infinity and NaNs are above
    `top` as in IEEE 754. Where there is no minus zero, its code (`nan`) is NaN.
    """

    exponent: int
    fraction: int
    bias: int
    top: int
    nan: int | None = None
    infinite: bool = False
    minus_zero: bool = True

    @property
    def width(self) -> int:
        """The width of the format in bits."""
        return 1 + self.exponent + self.fraction

    @property
    def shift(self) -> int:
        """The distance from the fraction's place to its place in a Float32, in bits."""
        return _FRACTION - self.fraction

    @property
    def rebias(self) -> int:
        """The difference of an exponent in Float32 and in the format."""
        return _BIAS - self.bias

    @property
    def least_subnormal(self) -> int:
        """The exponent of the least number above zero."""
        return 1 - self.bias - self.fraction


# Open Compute Project, "8-bit Floating Point Specification" and "Microscaling Formats"; LLVM's
# APFloat.h for those that are in neither.
ENCODINGS = {
    "f8E5M2": Encoding(5, 2, 15, 0x7B, 0x7E, infinite=True),
    "f8E4M3FN": Encoding(4, 3, 7, 0x7E, 0x7F),
    "f8E4M3": Encoding(4, 3, 7, 0x77, 0x7C, infinite=True),
    "f8E4M3B11FNUZ": Encoding(4, 3, 11, 0x7F, 0x80, minus_zero=False),
    "f6E3M2FN": Encoding(3, 2, 3, 0x1F),
    "f6E2M3FN": Encoding(2, 3, 1, 0x1F),
    "f4E2M1FN": Encoding(2, 1, 1, 0x07),
}
_EXPONENTS = "f8E8M0FNU"  # powers of two: an exponent of Float32 and nothing else
_TF32 = "tf32"
NAMES = frozenset((*ENCODINGS, _EXPONENTS, _TF32))

_FRACTION, _BIAS = 23, 127  # of Float32
_MAGNITUDE, _INFINITY, _NAN = 0x7FFFFFFF, 0x7F800000, 0x7FC00000
_PREDICATES = {"eq": 0, "sle": 3, "ult": 6, "ugt": 8}


class StorageFloats:
    """Builds conversions with `emit`, wherever that inserts. `ir` is that module of the bindings.

    `emit(name, results, operands, attributes)` makes an operation and returns its result. A format
    is called as its MLIR type is, "f8E5M2".
    """

    def __init__(self, ir: Any, emit: Emit) -> None:
        self.ir = ir
        self.emit = emit
        self.f32 = ir.F32Type.get()
        self.i32 = ir.IntegerType.get_signless(32)

    def encoded(self, x: Any, name: str) -> Any:
        """Return the codes, integers as wide as the format `name`, of `x` rounded to it: an f32, or
        a vector of them.
        """
        bits = self._op("arith.bitcast", self.i32, x)
        code = self._exponent(bits) if name == _EXPONENTS else self._code(bits, ENCODINGS[name])
        return self._op("arith.trunci", self.ir.IntegerType.get_signless(storage_width(name)), code)

    def decoded(self, code: Any, name: str) -> Any:
        """Return the f32 values of `code`, an integer as wide as the format `name`, or a vector of
        them.
        """
        wide = self._op("arith.extui", self.i32, code)
        bits = self._power(wide) if name == _EXPONENTS else self._number(wide, ENCODINGS[name])
        return self._op("arith.bitcast", self.f32, bits)

    def rounded_to_tf32(self, x: Any) -> Any:
        """Return `x`, an f32 or a vector of them, with 10 bits of fraction: to nearest, halves away
        from zero (PTX cvt.rna.tf32).
        """
        bits = self._op("arith.bitcast", self.i32, x)
        near = self._and(self._plus(bits, 0x1000), ~0x1FFF & 0xFFFFFFFF)
        is_finite = self._compare("ult", self._and(bits, _MAGNITUDE), _INFINITY)
        return self._op("arith.bitcast", self.f32, self._select(is_finite, near, bits))

    # Float32 to a format ---------------------------------------------------------------------

    def _code(self, bits: Any, to: Encoding) -> Any:
        magnitude = self._and(bits, _MAGNITUDE)
        top = self._constant((to.top << to.shift) + (to.rebias << _FRACTION), bits)
        kept = self._op("arith.minui", self.i32, magnitude, top)
        least_normal = (1 + to.rebias) << _FRACTION
        is_subnormal = self._compare("ult", kept, least_normal)
        code = self._select(is_subnormal, self._subnormal(kept, to), self._normal(kept, to))
        place = 32 - to.width
        sign = self._and(self._op("arith.shrui", self.i32, bits, self._constant(place, bits)),
                         1 << (to.width - 1))  # fmt: skip
        signed = self._op("arith.ori", self.i32, code, sign)
        if not to.minus_zero:
            signed = self._select(self._compare("eq", code, 0), code, signed)
        nan = self._constant(to.top if to.nan is None else to.nan, bits)
        if to.nan is not None and to.minus_zero:
            nan = self._op("arith.ori", self.i32, nan, sign)
        return self._select(self._compare("ugt", magnitude, _INFINITY), nan, signed)

    def _normal(self, bits: Any, to: Encoding) -> Any:
        """Round a normal number: half of the last remaining place, less one if that is even,
        carries into it.
        """
        odd = self._and(self._shifted_down(bits, to.shift), 1)
        sum_ = self._op("arith.addi", self.i32, self._plus(bits, (1 << (to.shift - 1)) - 1), odd)
        return self._plus(self._shifted_down(sum_, to.shift), -(to.rebias << to.fraction))

    def _subnormal(self, bits: Any, to: Encoding) -> Any:
        """Round a subnormal number: added to a number whose last place is the format's, it leaves
        its code in the sum's last bits.
        """
        magic = (to.least_subnormal + _FRACTION + _BIAS) << _FRACTION
        x = self._op("arith.bitcast", self.f32, bits)
        large = self._op("arith.bitcast", self.f32, self._constant(magic, bits))
        return self._plus(
            self._op("arith.bitcast", self.i32, self._op("arith.addf", self.f32, x, large)), -magic
        )

    def _exponent(self, bits: Any) -> Any:
        """Return the code of the nearest power of two, the larger of two (as ml_dtypes has it, with
        everything above 2**-127 going to 2**-126, Float32's least normal number). Below, and below
        zero, 2**-127.
        """
        least = 1 << (_FRACTION - 1)
        up = self._shifted_down(self._plus(bits, least), _FRACTION)
        top = self._constant(254, bits)
        up = self._op("arith.minui", self.i32, up, top)
        code = self._select(self._compare("sle", bits, least), self._constant(0, bits), up)
        is_nan = self._compare("ugt", self._and(bits, _MAGNITUDE), _INFINITY)
        return self._select(is_nan, self._constant(255, bits), code)

    # A format to Float32 ---------------------------------------------------------------------

    def _number(self, code: Any, of: Encoding) -> Any:
        magnitude = self._and(code, (1 << (of.width - 1)) - 1)
        moved = self._shifted_up(magnitude, of.shift)
        normal = self._plus(moved, of.rebias << _FRACTION)
        bits = self._select(
            self._compare("ult", magnitude, 1 << of.fraction),
            self._times_power(magnitude, of.least_subnormal),
            normal,
        )
        if of.nan is not None and of.minus_zero:
            special = self._constant(_NAN, code)
            if of.infinite:
                special = self._op("arith.ori", self.i32, moved, self._constant(_INFINITY, code))
            bits = self._select(self._compare("ugt", magnitude, of.top), special, bits)
        sign = self._shifted_up(self._and(code, 1 << (of.width - 1)), 32 - of.width)
        bits = self._op("arith.ori", self.i32, bits, sign)
        if not of.minus_zero:
            is_nan = self._compare("eq", code, 1 << (of.width - 1))
            bits = self._select(is_nan, self._constant(_NAN, code), bits)
        return bits

    def _times_power(self, number: Any, exponent: int) -> Any:
        """Return the bits of an integer times a power of two."""
        x = self._op("arith.uitofp", self.f32, number)
        power = self._constant((exponent + _BIAS) << _FRACTION, number)
        factor = self._op("arith.bitcast", self.f32, power)
        return self._op("arith.bitcast", self.i32, self._op("arith.mulf", self.f32, x, factor))

    def _power(self, code: Any) -> Any:
        bits = self._shifted_up(code, _FRACTION)
        least = self._constant(1 << (_FRACTION - 1), code)
        bits = self._select(self._compare("eq", code, 0), least, bits)
        is_nan = self._compare("eq", code, 255)
        return self._select(is_nan, self._constant(_NAN, code), bits)

    # Ops -------------------------------------------------------------------------------------

    def _op(self, name: str, element: Any, *operands: Any) -> Any:
        return self.emit(name, [_like(self.ir, operands[0], element)], operands, None)

    def _constant(self, value: int, like: Any) -> Any:
        kind = _like(self.ir, like, self.i32)
        number = self.ir.IntegerAttr.get(self.i32, (value + 2**31) % 2**32 - 2**31)
        if kind != self.i32:
            number = self.ir.DenseElementsAttr.get_splat(kind, number)
        return self.emit("arith.constant", [kind], [], {"value": number})

    def _plus(self, x: Any, number: int) -> Any:
        return self._op("arith.addi", self.i32, x, self._constant(number, x))

    def _and(self, x: Any, mask: int) -> Any:
        return self._op("arith.andi", self.i32, x, self._constant(mask, x))

    def _shifted_up(self, x: Any, places: int) -> Any:
        return self._op("arith.shli", self.i32, x, self._constant(places, x))

    def _shifted_down(self, x: Any, places: int) -> Any:
        return self._op("arith.shrui", self.i32, x, self._constant(places, x))

    def _compare(self, how: str, x: Any, number: int) -> Any:
        i64, i1 = (self.ir.IntegerType.get_signless(n) for n in (64, 1))
        predicate = {"predicate": self.ir.IntegerAttr.get(i64, _PREDICATES[how])}
        kind = _like(self.ir, x, i1)
        return self.emit("arith.cmpi", [kind], [x, self._constant(number, x)], predicate)

    def _select(self, condition: Any, yes: Any, no: Any) -> Any:
        return self.emit("arith.select", [yes.type], [condition, yes, no], None)


def storage_width(name: str) -> int:
    """Return the width in bits of a storage float, given MLIR's name of its type, such as
    "f8E4M3FN". Raises KeyError for another type.
    """
    return 8 if name == _EXPONENTS else ENCODINGS[name].width


def element_of(type: Any) -> Any:
    """Return the element type of a vector; a scalar's own type."""
    return getattr(type, "element_type", type)


def _like(ir: Any, value: Any, element: Any) -> Any:
    """Return `element`, or a vector of it as long as `value`."""
    shape = getattr(value.type, "shape", None)
    return element if shape is None else ir.VectorType.get(list(shape), element)


# In a module -------------------------------------------------------------------------------------


def spell_out_storage_floats(op: Any, context: PipelineContext) -> Snapshot | None:
    """The step: conversions become arithmetic, and a TFloat32 the Float32 that stores it."""
    if not _may_have_some(context):
        return context.input
    ir = context.bindings.ir
    conversions: list[tuple[Any, str, str]] = []
    in_tf32: list[Any] = []

    def visit(inner: Any) -> Any:
        if inner.name in ("arith.extf", "arith.truncf"):
            source, result = _name_of(inner.operands[0]), _name_of(inner.results[0])
            if source in NAMES or result in NAMES:
                conversions.append((inner, source, result))
        if inner.name == "func.func" or any(_name_of(value) == _TF32 for value in _values(inner)):
            in_tf32.append(inner)
        return ir.WalkResult.ADVANCE

    op.walk(visit)
    for inner in in_tf32:
        _keep_in_f32(ir, inner)
    for inner, source, result in conversions:
        _spell_out(ir, inner, source, result)
    return None


# MLIR's bytecode has no number for these types, so their names are in it.
_NAMED = re.compile(b"|".join(sorted(name.encode() for name in NAMES)))


def _may_have_some(context: PipelineContext) -> bool:
    """False only if no value has one of these types. Found without a walk, which costs more."""
    data = None if context.input is None else context.input.data
    return not isinstance(data, bytes) or _NAMED.search(data) is not None


def _values(op: Any) -> list[Any]:
    arguments = [a for region in op.regions for block in region.blocks for a in block.arguments]
    return [*op.results, *arguments]


def _name_of(value: Any) -> str:
    return str(element_of(value.type))


def _keep_in_f32(ir: Any, op: Any) -> None:
    def kept(type: Any) -> Any:
        if str(element_of(type)) != _TF32:
            return type
        shape = getattr(type, "shape", None)
        f32 = ir.F32Type.get()
        return f32 if shape is None else ir.VectorType.get(list(shape), f32)

    for value in _values(op):
        value.set_type(kept(value.type))
    if op.name == "func.func":
        old = ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value)
        new = ir.FunctionType.get([kept(t) for t in old.inputs], [kept(t) for t in old.results])
        op.attributes["function_type"] = ir.TypeAttr.get(new)
    if op.name == "arith.constant":
        attribute, type = op.attributes["value"], op.results[0].type
        splat = element_of(type) != type
        number = (attribute.get_splat_value() if splat else attribute).value
        made = ir.FloatAttr.get(element_of(type), number)
        op.attributes["value"] = ir.DenseElementsAttr.get_splat(type, made) if splat else made


def _spell_out(ir: Any, op: Any, source: str, result: str) -> None:
    def emit(name: str, results: Any, operands: Any, attributes: Any) -> Any:
        return ir.Operation.create(name, results, list(operands), attributes).result

    with ir.InsertionPoint(op), op.location:
        floats = StorageFloats(ir, emit)
        value = op.operands[0]
        if source in NAMES and source != _TF32:
            code = _like(ir, value, ir.IntegerType.get_signless(storage_width(source)))
            value = floats.decoded(emit("arith.bitcast", [code], [value], None), source)
        elif source != _TF32:
            value = _resized(ir, emit, value, floats.f32)
        if result == _TF32:
            value = floats.rounded_to_tf32(value)
        elif result in NAMES:
            value = floats.encoded(value, result)
            value = emit("arith.bitcast", [op.results[0].type], [value], None)
        else:
            value = _resized(ir, emit, value, element_of(op.results[0].type))
    op.results[0].replace_all_uses_with(value)
    op.erase()


_BITS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}


def _resized(ir: Any, emit: Emit, value: Any, element: Any) -> Any:
    """Return a float that processors know, converted to another one."""
    kind = _like(ir, value, element)
    if value.type == kind:
        return value
    grows = _BITS[str(element)] > _BITS[_name_of(value)]
    return emit("arith.extf" if grows else "arith.truncf", [kind], [value], None)
