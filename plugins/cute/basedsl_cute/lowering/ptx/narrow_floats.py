"""Floats that LLVM has no type for, in PTX: Float8 and narrower, and tf32.

In kernels on the way to PTX their values are integers (an f8 its byte) or f32 (tf32); conversions
are the instructions `cvt.rn.satfinite.e4m3x2.f32` and its like (PTX ISA 9.7.9.21, "cvt"): to
nearest even, and what is too large becomes the largest finite number. Where the GPU has none for a
format, they are arithmetic that gives the same.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from basedsl import (
    DSLTypeError,
    Keep,
    Replace,
    RuleResult,
    StorageFloats,
    span_of_location,
    storage_width,
)
from basedsl_cute.hardware.requirements import CONVERSIONS
from basedsl_cute.lowering.kernel.storage import element_of, with_element

# The names of a pair of these in PTX and LLVM.
_PAIRS = {"f8E4M3FN": "e4m3x2", "f8E5M2": "e5m2x2"}

_DTYPES = {
    "f8E4M3FN": ml_dtypes.float8_e4m3fn,
    "f8E5M2": ml_dtypes.float8_e5m2,
    "f8E4M3": ml_dtypes.float8_e4m3,
    "f8E4M3B11FNUZ": ml_dtypes.float8_e4m3b11fnuz,
    "f8E8M0FNU": ml_dtypes.float8_e8m0fnu,
    "f6E3M2FN": ml_dtypes.float6_e3m2fn,
    "f6E2M3FN": ml_dtypes.float6_e2m3fn,
    "f4E2M1FN": ml_dtypes.float4_e2m1fn,
}
_BITS = {name: storage_width(name) for name in _DTYPES}

_CARRIERS = ("scf.", "cf.", "vector.", "arith.select", "gpu.func", "llvm.load", "llvm.func")


class NarrowFloats:
    """The conversions for one run of a lowering."""

    def __init__(self, builder: Any) -> None:
        self.b = builder
        self._types: dict[Any, Any] = {}
        self.in_parameters = False  # whether a kernel has parameters of such types
        self._arithmetic = StorageFloats(builder.ir, builder.emit)

    # Types -----------------------------------------------------------------------------------

    def carried(self, type: Any) -> Any:
        """Return the type that carries values of `type`."""
        found = self._types.get(type)
        if found is None:
            element = str(element_of(type))
            found = type
            if element in _BITS:
                code = self.b.ir.IntegerType.get_signless(_BITS[element])
                found = with_element(self.b, type, code)
            elif element == "tf32":
                found = with_element(self.b, type, self.b.f32)
            self._types[type] = found
        return found

    def retype(self, name: str, op: Any) -> None:
        """Change the types of an op that only passes values on."""
        if not name.startswith(_CARRIERS):
            return
        for result in op.results:
            self._retype_value(result)
        for region in op.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    self._retype_value(argument)
        if name == "gpu.func":
            self._retype_function(op)

    def _retype_value(self, value: Any) -> None:
        type = value.type
        carried = self.carried(type)
        if carried != type:
            value.set_type(carried)

    # Parameters ------------------------------------------------------------------------------

    def _passed(self, type: Any) -> Any:
        """Return the type of a kernel's parameter for a value of `type`: at least a byte."""
        carried = self.carried(type)
        return self.b.i8 if 1 < getattr(carried, "width", 8) < 8 else carried

    def _retype_function(self, op: Any) -> None:
        ir = self.b.ir
        old = ir.FunctionType(ir.TypeAttr(op.attributes["function_type"]).value)
        inputs = [self._passed(t) for t in old.inputs]
        if inputs == list(old.inputs):
            return
        new = ir.FunctionType.get(inputs, [self.carried(t) for t in old.results])
        op.attributes["function_type"] = ir.TypeAttr.get(new)
        self.in_parameters = True
        entry = op.regions[0].blocks[0]
        self.b.at(entry.operations[0])
        for argument, passed in zip(entry.arguments, inputs, strict=True):
            own = argument.type
            if own != passed:
                argument.set_type(passed)
                value = self.b.emit("arith.trunci", [own], [argument])
                argument.replace_all_uses_except(value, value.owner.operation)

    def convert_arguments(self, launch: Any) -> None:
        """Convert the arguments of a launch to the types that the kernel's parameters have now."""
        self.b.at(launch)
        for i, value in enumerate(launch.operands):
            carried, passed = self.carried(value.type), self._passed(value.type)
            if carried != value.type:
                name = "arith.extf" if carried == self.b.f32 else "arith.bitcast"
                value = self.b.emit(name, [carried], [value])
            if carried != passed:
                value = self.b.emit("arith.extui", [passed], [value])
            launch.operands[i] = value

    # Conversions -----------------------------------------------------------------------------

    def truncate(self, op: Any) -> RuleResult:
        """Replace `arith.truncf` to a narrow float; keep others."""
        b = self.b
        name = str(element_of(op.results[0].type))
        if name == "tf32":
            # cvt.rna.tf32.f32: to nearest, ties away from zero (the only rounding before sm_90).
            def round_one(x: Any) -> Any:
                return b.bitcast(b.intrinsic("llvm.nvvm.f2tf32.rna", b.i32, [x]), b.f32)

            return Replace(b.elementwise(self._as_f32(op.operands[0]), b.f32, round_one))
        if name not in _BITS:
            return Keep()
        value = self._as_f32(op.operands[0])
        instruction = self._instruction(name)
        if instruction is None:
            return Replace(self._arithmetic.encoded(value, name))
        return Replace(self._to_bytes(value, instruction))

    def extend(self, op: Any, source_type: Any) -> RuleResult:
        """Replace `arith.extf` from a narrow float, which `source_type` was; keep others."""
        name = str(element_of(source_type))
        if name == "tf32":
            return Replace(self._from_f32(op.operands[0], op.results[0].type))
        if name not in _BITS:
            return Keep()
        code, instruction = op.operands[0], self._instruction(name)
        if instruction is None:
            wide = self._arithmetic.decoded(code, name)
        else:
            wide = self._from_bytes(code, instruction)
        return Replace(self._from_f32(wide, op.results[0].type))

    def bitcast(self, op: Any, source_type: Any) -> RuleResult:
        """Replace `arith.bitcast` from or to a narrow float; keep others."""
        target = op.results[0].type
        carried = self.carried(target)
        if carried == target and self.carried(source_type) == source_type:
            return Keep()
        value = op.operands[0]
        if value.type != carried:
            value = self.b.emit("arith.bitcast", [carried], [value])
        return Replace(value)

    def constant(self, op: Any) -> RuleResult:
        """Replace `arith.constant` of a narrow float by its byte, or by an f32; keep others."""
        ir, type = self.b.ir, op.results[0].type
        carried = self.carried(type)
        if carried == type:
            return Keep()
        attribute = op.attributes["value"]
        is_vector = getattr(type, "shape", None) is not None
        if is_vector and not attribute.is_splat:
            raise DSLTypeError(
                f"a constant vector of {type} cannot be compiled for {self.b.target.name}",
                span=span_of_location(op.location),
                hint="convert a Float32 constant instead",
            )
        value = (attribute.get_splat_value() if is_vector else attribute).value
        element = element_of(carried)
        if element == self.b.f32:
            made = ir.FloatAttr.get(element, value)
        else:
            code = int(np.array(value, _DTYPES[str(element_of(type))]).view(np.uint8))
            signed = code - (1 << element.width) if code >> (element.width - 1) else code
            made = ir.IntegerAttr.get(element, signed)
        if is_vector:
            made = ir.DenseElementsAttr.get_splat(carried, made)
        return Replace(self.b.emit("arith.constant", [carried], [], {"value": made}))

    def _instruction(self, name: str) -> str | None:
        """Return the name of a pair of these in the GPU's `cvt`; None if it has none."""
        requirement = CONVERSIONS.get(name)
        if requirement is None or not requirement.is_met_by(self.b.target):
            return None
        return _PAIRS[name]

    def _to_bytes(self, value: Any, instruction: str) -> Any:
        b = self.b
        shape = getattr(value.type, "shape", None)
        if shape is None:
            zero = self._zero()
            return b.emit("arith.trunci", [b.i8], [self._pack(zero, value, instruction)])
        if shape[0] % 2:
            zero = self._zero()
            return b.elementwise(
                value,
                b.i8,
                lambda x: b.emit("arith.trunci", [b.i8], [self._pack(zero, x, instruction)]),
            )
        lanes = [b.extract(value, i) for i in range(shape[0])]
        words = [
            self._pack(high, low, instruction)
            for low, high in zip(lanes[::2], lanes[1::2], strict=True)
        ]
        element = b.i16
        if shape[0] % 4 == 0:
            # LLVM joins halves by shifts, of which ptxas makes permutations of bytes; of this it
            # makes conversions that keep the other half.
            element = b.ir.IntegerType.get_signless(32)
            text, constraints = "mov.b32 $0, {$1, $2};", "=r,h,h"
            words = [
                b.assembly(text, constraints, [element], list(pair))
                for pair in zip(words[::2], words[1::2], strict=True)
            ]
        packed = b.emit("vector.from_elements", [b.ir.VectorType.get([len(words)], element)], words)
        return b.emit("vector.bitcast", [b.ir.VectorType.get(shape, b.i8)], [packed])

    def _pack(self, high: Any, low: Any, instruction: str) -> Any:
        return self.b.intrinsic(f"llvm.nvvm.ff.to.{instruction}.rn", self.b.i16, [high, low])

    def _zero(self) -> Any:
        b = self.b
        value = {"value": b.ir.FloatAttr.get(b.f32, 0.0)}
        return b.emit("arith.constant", [b.f32], [], value)

    def _from_bytes(self, value: Any, instruction: str) -> Any:
        b = self.b
        shape = getattr(value.type, "shape", None)
        if shape is None:
            return self._unpack(b.emit("arith.extui", [b.i16], [value]), instruction)[0]
        if shape[0] % 2:
            return b.elementwise(
                value,
                b.f32,
                lambda x: self._unpack(b.emit("arith.extui", [b.i16], [x]), instruction)[0],
            )
        words = b.emit("vector.bitcast", [b.ir.VectorType.get([shape[0] // 2], b.i16)], [value])
        lanes = [
            lane
            for i in range(shape[0] // 2)
            for lane in self._unpack(b.extract(words, i), instruction)
        ]
        return b.emit("vector.from_elements", [b.ir.VectorType.get(shape, b.f32)], lanes)

    def _unpack(self, word: Any, instruction: str) -> list[Any]:
        b = self.b
        pair = b.ir.VectorType.get([2], b.ir.F16Type.get())
        halves = b.intrinsic(f"llvm.nvvm.{instruction}.to.f16x2.rn", pair, [word])
        return [b.emit("arith.extf", [b.f32], [b.extract(halves, i)]) for i in range(2)]

    def _as_f32(self, value: Any) -> Any:
        b = self.b
        kind = str(element_of(value.type))
        if kind == "f32":
            return value
        return b.emit(
            "arith.truncf" if kind == "f64" else "arith.extf",
            [with_element(b, value.type, b.f32)],
            [value],
        )

    def _from_f32(self, value: Any, type: Any) -> Any:
        if value.type == type:
            return value
        is_wider = str(element_of(type)) == "f64"
        return self.b.emit("arith.extf" if is_wider else "arith.truncf", [type], [value])
