"""The builder of both rule-driven steps: operations at the place and line of the replaced one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from basedsl import Bindings
from basedsl_cute.dialect import define


class Builder:
    """An insertion point and a location, with short builders of common operations."""

    def __init__(self, bindings: Bindings) -> None:
        self.bindings = bindings
        self.dialect = define(bindings)
        self.ir: Any = bindings.ir
        self._create = self.ir.Operation.create
        self._ip: Any = None
        self._loc: Any = None
        self.i8 = self.ir.IntegerType.get_signless(8)
        self.i16 = self.ir.IntegerType.get_signless(16)
        self.i32 = self.ir.IntegerType.get_signless(32)
        self.i64 = self.ir.IntegerType.get_signless(64)
        self.f32 = self.ir.F32Type.get()
        self.storage_types: dict[Any, Any] = {}  # `lowering.storage` remembers its answers here
        self._integers: dict[tuple[int, int], Any] = {}

    def at(self, op: Any) -> None:
        """Insert before `op` from now on, at its location."""
        self._ip = self.ir.InsertionPoint(op)
        self._loc = op.location

    def inside(self, block: Any) -> InsertionScope:
        """Make `emit` append to `block` while entered."""
        return InsertionScope(self, self.ir.InsertionPoint(block))

    def emit(
        self,
        name: str,
        results: Sequence[Any] = (),
        operands: Sequence[Any] = (),
        attributes: Mapping[str, Any] | None = None,
        regions: int = 0,
    ) -> Any:
        """Build an operation. Returns its result if it has exactly one, else the operation."""
        op = self._create(
            name,
            results=results,
            operands=operands,
            attributes=attributes,
            regions=regions,
            loc=self._loc,
            ip=self._ip,
        )
        return op.result if len(results) == 1 else op

    def integer(self, value: int, bits: int = 64) -> Any:
        """Return an integer attribute, made once."""
        found = self._integers.get((value, bits))
        if found is None:
            kind = self.ir.IntegerType.get_signless(bits)
            found = self._integers[value, bits] = self.ir.IntegerAttr.get(kind, value)
        return found

    def constant(self, value: int, type: Any = None) -> Any:
        """Build an integer `arith.constant`, by default an i32."""
        attribute = self.ir.IntegerAttr.get(type or self.i32, value)
        return self.emit("arith.constant", [type or self.i32], [], {"value": attribute})

    def multiply(self, x: Any, factor: float) -> Any:
        """Multiply an f32 by a constant."""
        value = {"value": self.ir.FloatAttr.get(self.f32, factor)}
        return self.emit(
            "arith.mulf", [self.f32], [x, self.emit("arith.constant", [self.f32], [], value)]
        )

    def bitcast(self, value: Any, type: Any) -> Any:
        """Reinterpret the bits of a scalar as another type."""
        return value if value.type == type else self.emit("arith.bitcast", [type], [value])

    def extract(self, vector: Any, index: int) -> Any:
        """Extract an element of a vector of one dimension."""
        position = {"static_position": self.ir.DenseI64ArrayAttr.get([index])}
        return self.emit("vector.extract", [vector.type.element_type], [vector], position)

    def elementwise(self, value: Any, element: Any, compute: Callable[[Any], Any]) -> Any:
        """Apply `compute` to a scalar, or to each element of a vector; `element` is its result's
        type.
        """
        shape = getattr(value.type, "shape", None)
        if shape is None:
            return compute(value)
        results = [compute(self.extract(value, i)) for i in range(shape[0])]
        return self.emit("vector.from_elements", [self.ir.VectorType.get(shape, element)], results)

    def extract_value(self, aggregate: Any, index: int, type: Any) -> Any:
        """Extract a field of an LLVM struct."""
        position = {"position": self.ir.DenseI64ArrayAttr.get([index])}
        return self.emit("llvm.extractvalue", [type], [aggregate], position)

    def intrinsic(self, name: str, result: Any, operands: Sequence[Any]) -> Any:
        """Call an LLVM intrinsic by its name without type suffix. (The llvm dialect's own ops for
        some of them are what `convert-gpu-to-nvvm` makes libdevice calls of.)
        """
        ir = self.ir
        attributes = {
            "intrin": ir.StringAttr.get(name),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
            "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        }
        return self.emit("llvm.call_intrinsic", [result], operands, attributes)

    def assembly(
        self,
        text: str,
        constraints: str,
        results: Sequence[Any],
        operands: Sequence[Any],
        *,
        has_side_effects: bool = False,
    ) -> Any:
        """Build inline PTX in LLVM's notation; several results come as a struct."""
        ir = self.ir
        attributes = {
            "asm_string": ir.StringAttr.get(text),
            "constraints": ir.StringAttr.get(constraints),
        }
        if has_side_effects:
            attributes["has_side_effects"] = ir.UnitAttr.get()
        kinds = list(results)
        if len(kinds) > 1:
            kinds = [ir.Type.parse(f"!llvm.struct<({', '.join(map(str, kinds))})>")]
        return self.emit("llvm.inline_asm", kinds, operands, attributes)


class InsertionScope:
    """Makes a builder insert at another point while entered."""

    def __init__(self, builder: Builder, point: Any) -> None:
        self._builder = builder
        self._point = point

    def __enter__(self) -> None:
        self._outer = self._builder._ip
        self._builder._ip = self._point

    def __exit__(self, *_: object) -> None:
        self._builder._ip = self._outer
