"""The kit: tools to emit arithmetic during one trace (cached types, constants, op creation).

Ops are made by name through `ir.Operation.create`, which costs about a third of the generated
builders. The tables that use a kit decide which ops an operator becomes.
"""

from __future__ import annotations

from typing import Any

from basedsl.numeric.formats import Kind
from basedsl.numeric.protocols import NumericType
from basedsl.tracing import Trace

Value = Any  # an ir.Value of the trace's bindings
_DIALECTS = ("arith", "math")

# Values of the predicate attributes of arith.cmpi and arith.cmpf (ArithBase.td).
CMPI = {
    "eq": 0, "ne": 1, "slt": 2, "sle": 3, "sgt": 4, "sge": 5, "ult": 6, "ule": 7, "ugt": 8, "uge": 9
}  # fmt: skip
CMPF = {
    "oeq": 1, "ogt": 2, "oge": 3, "olt": 4, "ole": 5, "one": 6, "ord": 7, "ueq": 8, "ugt": 9,
    "uge": 10, "ult": 11, "ule": 12, "une": 13, "uno": 14,
}  # fmt: skip


class Kit:
    """Emission tools of one trace. `loc` is the location of the operator being emitted.

    Traits are read from the trace's emitter: `checks` and `float_checks` switch the checks of
    run-time errors (`numeric.checks`), `contracts` asks for fused products and sums
    (`numeric.contraction`), `saturating_conversions` promises that the target's `arith.fptosi` and
    `arith.fptoui` saturate by themselves.
    """

    __slots__ = (
        "_attributes", "_predicates", "_types", "create", "functions", "i1", "ir", "loc", "plans",
        "trace",
    )  # fmt: skip

    def __init__(self, trace: Trace) -> None:
        ir = trace.ir
        for dialect in _DIALECTS:  # loading registers its ops, which are made by name
            getattr(trace.bindings, dialect, None)
        self.trace = trace
        self.ir = ir
        self.create = ir.Operation.create
        self.loc: Any = None
        self.plans: dict[Any, Any] = {}  # of operators, for this trace's default types
        self.functions: set[str] = set()  # that the module has got for arithmetic
        self.i1 = ir.IntegerType.get_signless(1)
        i64 = ir.IntegerType.get_signless(64)
        self._predicates = {
            op: {name: {"predicate": ir.IntegerAttr.get(i64, code)} for name, code in table.items()}
            for op, table in (("arith.cmpi", CMPI), ("arith.cmpf", CMPF))
        }
        self._types: dict[NumericType, Any] = {}
        self._attributes: dict[tuple[NumericType, Any], Any] = {}

    @property
    def checks(self) -> bool:
        """True if errors of integer arithmetic are checked: the default of an emitter."""
        return bool(getattr(self.trace.emitter, "checks", True))

    @property
    def float_checks(self) -> bool:
        """True if errors of float arithmetic are checked: only if the emitter asks for it."""
        return bool(getattr(self.trace.emitter, "float_checks", False))

    @property
    def contracts(self) -> bool:
        """True if a * b + c of floats rounds once: only if the emitter asks for it."""
        return bool(getattr(self.trace.emitter, "contracts", False))

    @property
    def saturating_conversions(self) -> bool:
        """True if the target's conversions of floats to integers saturate: only if the emitter says
        so.
        """
        return bool(getattr(self.trace.emitter, "saturating_conversions", False))

    def begin(self) -> None:
        """Start an operator: take the user's location; DSLSyntaxError if no op is allowed here."""
        if self.trace.forbidden is not None:
            self.trace.emit(_nothing)  # raises
        self.loc = self.trace.loc()

    def type_of(self, T: NumericType) -> Any:
        """Return the MLIR type of `T`."""
        found = self._types.get(T)
        if found is None:
            found = self._types[T] = mlir_type(T, self.ir)
        return found

    def op(self, name: str, type_: Any, *operands: Value) -> Value:
        """Create an op with one result of MLIR type `type_`; return the result."""
        return self.create(name, results=[type_], operands=operands, loc=self.loc).result

    def cmpi(self, predicate: str, a: Value, b: Value) -> Value:
        """Emit arith.cmpi with this predicate; return the i1."""
        return self.create(
            "arith.cmpi", results=[self.i1], operands=(a, b),
            attributes=self._predicates["arith.cmpi"][predicate], loc=self.loc,
        ).result  # fmt: skip

    def cmpf(self, predicate: str, a: Value, b: Value) -> Value:
        """Emit arith.cmpf with this predicate; return the i1."""
        return self.create(
            "arith.cmpf", results=[self.i1], operands=(a, b),
            attributes=self._predicates["arith.cmpf"][predicate], loc=self.loc,
        ).result  # fmt: skip

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        """Emit arith.select: `a` where the i1 holds, else `b`."""
        return self.op("arith.select", a.type, condition, a, b)

    def value(self, T: NumericType, operand: Any) -> Value:
        """Return an operand as an SSA value: a Python number becomes a constant of type `T`."""
        return self.constant(T, operand) if isinstance(operand, (int, float)) else operand

    def constant_i1(self, value: bool) -> Value:
        """Emit an arith.constant of type i1."""
        attribute = self.ir.IntegerAttr.get(self.i1, -1 if value else 0)
        return self.create(
            "arith.constant", results=[self.i1], attributes={"value": attribute}, loc=self.loc
        ).result

    def constant(self, T: NumericType, value: Any) -> Value:
        """Emit an arith.constant of `value`, which must be representable in `T`."""
        type_ = self.type_of(T)
        # -0.0 == 0.0, so zeros are not kept.
        attribute = self._attributes.get((T, value)) if value else None
        if attribute is None:
            attribute = self._attribute(T, type_, value)
            if value:
                self._attributes[T, value] = attribute
        return self.create(
            "arith.constant", results=[type_], attributes={"value": attribute}, loc=self.loc
        ).result

    def _attribute(self, T: NumericType, type_: Any, value: Any) -> Any:
        ir = self.ir
        if T.kind is Kind.FLOAT:
            return ir.FloatAttr.get(type_, float(value))
        if T.kind is Kind.BOOLEAN:
            return ir.IntegerAttr.get(type_, -1 if value else 0)
        if T.width > 64:
            return ir.Attribute.parse(f"{value} : {T.format.mlir}")
        bits = int(value)
        if bits >> (T.width - 1) and bits > 0:
            bits -= 1 << T.width  # MLIR integers are signless: the same bits, read as signed
        return ir.IntegerAttr.get(type_, bits)


def _nothing(loc: Any) -> None:
    return None


def kit_of(trace: Trace) -> Kit:
    """Return the kit of `trace`, made on first use."""
    kit: Kit | None = trace.kit
    if kit is None:
        kit = trace.kit = Kit(trace)
    return kit


def mlir_type(T: NumericType, ir: Any) -> Any:
    """Return the MLIR type of `T` in the current context of the bindings whose `ir` is given."""
    if T.kind is Kind.FLOAT:
        return ir.Type.parse(T.format.mlir)
    return ir.IntegerType.get_signless(T.width)
